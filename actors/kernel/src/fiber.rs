//! Fibers: synchronous code on a stack of its own, which can be left in the middle and gone on with later, on the same thread.
//!
//! A script is such code: deep in an interpreter's C frames it cannot await, yet others of its core must have their turns.
//! Whoever starts a fiber gets it back when it ends or when [`suspend`] is called inside of it. It never moves to another
//! thread, whatever is done with the handle. A fiber that is dropped in the middle is forgotten as it is, with all that
//! its frames own: there is no way to unwind through an interpreter that catches.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::ptr;
use std::thread::ThreadId;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

/// Of a fiber's stack, behind a guard page: a script nests C calls two hundred deep. Only what is used is ever backed by memory.
const STACK_BYTES: usize = 8 << 20;
/// How many unused stacks a thread keeps.
const KEPT_MAX: usize = 4;

thread_local! {
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
    /// The fiber that runs on this thread: null outside of all.
    static CURRENT: Cell<*const Yielder<(), ()>> = const { Cell::new(ptr::null()) };
}

/// A fiber in the middle of its code.
pub struct Fiber<R: Send + 'static> {
    coroutine: ManuallyDrop<Coroutine<(), (), R>>,
    home: ThreadId,
}

// SAFETY: the coroutine is touched by `resume` alone, which checks that it is on the thread it began on; dropping does nothing to
// it. What it ends with is `Send`.
unsafe impl<R: Send> Send for Fiber<R> {}

impl<R: Send> std::fmt::Debug for Fiber<R> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Fiber({:?})", self.home)
    }
}

/// Whoever resumes a fiber is in its own again afterwards, also by a panic.
struct Outer(*const Yielder<(), ()>);

impl Drop for Outer {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// What has become of a fiber.
#[derive(Debug)]
pub enum Turn<R: Send + 'static> {
    /// It has ended.
    Ended(R),
    /// It lets others have their turn.
    Suspended(Fiber<R>),
}

/// Runs `body` on a stack of its own until it ends or suspends. Where there is no memory for a stack, it runs on the caller's
/// and [`suspend`] does nothing.
pub fn start<R: Send + 'static>(body: impl FnOnce() -> R + 'static) -> Turn<R> {
    let stack = STACKS.with_borrow_mut(Vec::pop).map_or_else(|| DefaultStack::new(STACK_BYTES), Ok);
    let Ok(stack) = stack else { return Turn::Ended(body()) };
    let coroutine = Coroutine::with_stack(stack, move |yielder, ()| {
        CURRENT.set(yielder);
        body()
    });
    go_on(coroutine)
}

fn go_on<R: Send + 'static>(mut coroutine: Coroutine<(), (), R>) -> Turn<R> {
    let result = {
        let _outer = Outer(CURRENT.get());
        coroutine.resume(())
    };
    match result {
        CoroutineResult::Return(value) => {
            STACKS.with_borrow_mut(|stacks| {
                if stacks.len() < KEPT_MAX {
                    stacks.push(coroutine.into_stack());
                }
            });
            Turn::Ended(value)
        }
        CoroutineResult::Yield(()) => {
            Turn::Suspended(Fiber { coroutine: ManuallyDrop::new(coroutine), home: std::thread::current().id() })
        }
    }
}

impl<R: Send + 'static> Fiber<R> {
    /// Goes on with it.
    ///
    /// # Panics
    /// On another thread than it began on.
    pub fn resume(self) -> Turn<R> {
        assert_eq!(self.home, std::thread::current().id(), "a fiber stays on its thread");
        go_on(ManuallyDrop::into_inner(self.coroutine))
    }
}

/// Leaves the fiber that runs, until it is resumed; whether there is one.
pub fn suspend() -> bool {
    let current = CURRENT.get();
    if current.is_null() {
        return false;
    }
    // SAFETY: `CURRENT` is set while the code of that fiber runs and at no other time: its start and the line below set it,
    // `go_on` takes it back. The yielder lives as long as that code.
    unsafe { (*current).suspend(()) };
    CURRENT.set(current);
    true
}

/// Whether the caller runs in a fiber.
#[must_use]
pub fn is_inside() -> bool {
    !CURRENT.get().is_null()
}

#[cfg(all(test, not(madsim)))]
mod tests {
    use super::*;
    use std::rc::Rc;

    fn suspended<R: Send + std::fmt::Debug>(turn: Turn<R>) -> Fiber<R> {
        match turn {
            Turn::Suspended(fiber) => fiber,
            Turn::Ended(value) => panic!("it ended with {value:?}"),
        }
    }

    fn ended<R: Send>(turn: Turn<R>) -> R {
        match turn {
            Turn::Ended(value) => value,
            Turn::Suspended(_) => panic!("it has not ended"),
        }
    }

    #[test]
    fn fibers_take_turns_and_nest() {
        let steps = Rc::new(RefCell::new(Vec::new()));
        let begin = |name: u32| {
            let steps = steps.clone();
            start(move || {
                for step in 0..2 {
                    steps.borrow_mut().push(name * 10 + step);
                    assert!(suspend());
                    assert!(is_inside());
                }
                name
            })
        };
        let (one, two) = (suspended(begin(1)), suspended(begin(2)));
        let outer = start({
            let steps = steps.clone();
            move || {
                let one = suspended(one.resume());
                assert!(is_inside(), "the inner one has given the place back");
                suspend();
                steps.borrow_mut().push(99);
                ended(one.resume())
            }
        });
        let two = suspended(two.resume());
        assert_eq!(ended(suspended(outer).resume()), 1);
        assert_eq!(ended(two.resume()), 2);
        assert_eq!(*steps.borrow(), [10, 20, 11, 21, 99]);
        assert!(!suspend() && !is_inside());
    }

    #[test]
    fn one_that_is_dropped_is_forgotten_and_a_panic_reaches_who_resumed() {
        let _ = suspended(start(suspend));
        let caught = std::panic::catch_unwind(|| ended(start(|| -> u32 { panic!("on purpose") })));
        assert!(caught.is_err() && !is_inside());
        assert_eq!(ended(start(|| 5)), 5);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "two threads are what it is about")]
    fn a_fiber_stays_on_its_thread() {
        let fiber = suspended(start(suspend));
        assert!(std::thread::spawn(move || fiber.resume()).join().is_err());
    }
}
