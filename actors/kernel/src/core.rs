//! A core: one thread with one single-threaded event loop, which owns the tasks spawned on it. There is no work stealing,
//! so what a core owns stays on its processor's caches. In the simulator a core is a group of tasks on the simulated node
//! that started it; there are no threads.
//!
//! Also here: what a panic means. A connection that panics ends alone, but a shard or the log writer that panics may have
//! left half a change behind, and a node that lives on without it is worse than one that crashed and recovers from its
//! log. Those wrap themselves in [`abort_on_panic`] or [`AbortOnUnwind`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

#[cfg(not(madsim))]
pub use real::{Core, run, spawn};
#[cfg(madsim)]
pub use simulated::{Core, spawn};

/// Lets the core's other tasks run.
pub async fn yield_now() {
    tokio::task::yield_now().await;
}

/// Lets the core's other tasks run after work that has taken about so long. In the simulator work takes no time by itself: there
/// that time passes here.
#[cfg(not(madsim))]
pub async fn rest_after(_work: std::time::Duration) {
    yield_now().await;
}

/// As in production, but for the time that the work would have taken.
#[cfg(madsim)]
pub async fn rest_after(work: std::time::Duration) {
    crate::time::sleep(work).await;
}

/// How many processors this process may use.
pub fn available_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs an essential task: if it panics, the process aborts at once (in the simulator, the run fails).
pub async fn abort_on_panic<F: Future>(future: F) -> F::Output {
    /// Nothing is left where the task has ended in the simulator, though others may still wake it.
    struct Guarded<F>(Option<Pin<Box<F>>>);
    impl<F: Future> Future for Guarded<F> {
        type Output = F::Output;
        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
            let Some(task) = &mut self.0 else { return Poll::Pending };
            match catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(cx))) {
                Ok(poll) => poll,
                Err(panic) => {
                    let poll = abort(panic);
                    self.0 = None;
                    poll
                }
            }
        }
    }
    Guarded(Some(Box::pin(future))).await
}

/// Aborts the process when dropped by an unwinding panic; costs nothing otherwise. For essential code that runs inside a
/// task which is not essential itself, such as a shard's command on a connection's task.
#[derive(Debug, Default)]
#[must_use = "the guard protects only the scope it lives in"]
pub struct AbortOnUnwind {}

impl AbortOnUnwind {
    /// Protects the rest of the scope.
    #[inline]
    pub fn new() -> Self {
        Self {}
    }
}

impl Drop for AbortOnUnwind {
    #[inline]
    fn drop(&mut self) {
        if std::thread::panicking() {
            essential_code_panicked();
        }
    }
}

/// Stops the node here and now, without running anything more: what is on the disk is what recovery goes by.
#[cfg(not(madsim))]
pub fn abort_node() -> ! {
    std::process::abort()
}

/// Stops the node here and now: the simulated machine's tasks are ended, whoever may catch the panic that ends the caller.
/// Unlike other panics this one is no finding by itself; whether the node had a reason is for the timeline to judge.
#[cfg(madsim)]
pub fn abort_node() -> ! {
    let machine = madsim::plugin::node();
    crate::net::wires::process_ended(machine);
    madsim::runtime::Handle::current().kill(machine);
    std::panic::panic_any(NodeStopped)
}

/// What [`abort_node`] unwinds with in the simulator.
#[cfg(madsim)]
#[derive(Debug)]
pub struct NodeStopped;

/// Panics because a client asked for it, which ends the task that runs this and must cost nobody else anything.
#[cfg(not(madsim))]
pub fn panic_as_asked() -> ! {
    panic!("a client asked for it")
}

/// The same. Unlike other panics this one is no finding.
#[cfg(madsim)]
pub fn panic_as_asked() -> ! {
    std::panic::panic_any(PanicAsked)
}

/// What [`panic_as_asked`] unwinds with in the simulator.
#[cfg(madsim)]
#[derive(Debug)]
pub struct PanicAsked;

/// The panic hook has already told what happened; nothing may run after it, not even destructors.
#[cfg(not(madsim))]
#[cold]
fn abort<T>(_panic: Box<dyn std::any::Any + Send>) -> Poll<T> {
    std::process::abort()
}

/// A node that stopped itself is gone already, and a panic that was asked for ends its task, as in production. Any other panic has already failed the run by the simulator's panic
/// hook; the executor carries it to the runner.
#[cfg(madsim)]
#[cold]
fn abort<T>(panic: Box<dyn std::any::Any + Send>) -> Poll<T> {
    if !panic.is::<NodeStopped>() && !panic.is::<PanicAsked>() {
        std::panic::resume_unwind(panic);
    }
    Poll::Pending
}

#[cfg(not(madsim))]
#[cold]
fn essential_code_panicked() {
    std::process::abort()
}

/// The simulator's panic hook fails the run for any panic, so there is nothing to add.
#[cfg(madsim)]
#[cold]
fn essential_code_panicked() {}

#[cfg(not(madsim))]
mod real {
    use std::io;
    use std::sync::Mutex;
    use std::thread::JoinHandle;

    use tokio::runtime::{Builder, Handle, Runtime};
    use tokio::sync::watch;

    /// Of a thread: a script nests C calls two hundred deep. Only what is used is ever backed by memory.
    const STACK_BYTES: usize = 8 << 20;

    /// A running core. Dropping the handle leaves it running; [`Core::stop`] ends it.
    #[derive(Debug)]
    pub struct Core {
        index: usize,
        handle: Handle,
        stop: watch::Sender<bool>,
        thread: Mutex<Option<JoinHandle<()>>>,
    }

    impl Core {
        /// Starts a core whose thread is called `name-index`.
        pub fn start(name: &str, index: usize) -> io::Result<Self> {
            let runtime = event_loop()?;
            let handle = runtime.handle().clone();
            let (stop, mut stopped) = watch::channel(false);
            let thread = std::thread::Builder::new().name(format!("{name}-{index}")).stack_size(STACK_BYTES).spawn(
                move || {
                    runtime.block_on(async move {
                        let _ = stopped.wait_for(|stop| *stop).await;
                    });
                },
            )?;
            Ok(Self { index, handle, stop, thread: Mutex::new(Some(thread)) })
        }

        /// The number it was started with.
        pub fn index(&self) -> usize {
            self.index
        }

        /// Runs `task` on this core, from any thread.
        pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
            self.handle.spawn(task);
        }

        /// Ends the core: its tasks are dropped where they wait, and its thread is waited for (unless it is the caller's).
        pub fn stop(&self) {
            self.stop.send_replace(true);
            let thread = self.thread.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
            if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
                let _ = thread.join();
            }
        }
    }

    /// Runs `task` on the core of the caller.
    pub fn spawn(task: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(task);
    }

    /// Makes the calling thread a core for as long as `main` runs. For `main` alone.
    pub fn run<F: Future>(main: F) -> io::Result<F::Output> {
        Ok(event_loop()?.block_on(main))
    }

    fn event_loop() -> io::Result<Runtime> {
        Builder::new_current_thread().enable_all().build()
    }
}

#[cfg(madsim)]
mod simulated {
    use std::io;
    use std::sync::Mutex;

    use madsim::task::AbortHandle;

    /// A group of tasks on the simulated node that started it.
    #[derive(Debug)]
    pub struct Core {
        index: usize,
        tasks: Mutex<Vec<AbortHandle>>,
    }

    impl Core {
        /// Starts an empty group.
        pub fn start(_name: &str, index: usize) -> io::Result<Self> {
            Ok(Self { index, tasks: Mutex::default() })
        }

        /// The number it was started with.
        pub fn index(&self) -> usize {
            self.index
        }

        /// Runs `task` in this group. The caller is on the same node.
        pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
            let handle = madsim::task::spawn(super::abort_on_panic(task)).abort_handle();
            let mut tasks = self.tasks.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            if tasks.len() == tasks.capacity() {
                tasks.retain(|task| !task.is_finished());
            }
            tasks.push(handle);
        }

        /// Ends the group's tasks where they wait.
        pub fn stop(&self) {
            let tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
            for task in tasks {
                task.abort();
            }
        }
    }

    /// Runs `task` on the node of the caller.
    pub fn spawn(task: impl Future<Output = ()> + Send + 'static) {
        madsim::task::spawn(super::abort_on_panic(task));
    }
}

#[cfg(all(test, not(madsim)))]
mod tests {
    use super::*;

    #[test]
    fn tasks_run_on_their_core_until_it_stops() {
        let core = Core::start("test", 7).unwrap();
        let (answer, received) = std::sync::mpsc::channel();
        let (dropped, dropped_received) = std::sync::mpsc::channel::<()>();
        core.spawn(async move {
            let first = std::thread::current().name().map(str::to_owned);
            spawn(async move {
                yield_now().await;
                let second = std::thread::current().name().map(str::to_owned);
                answer.send((first, second)).unwrap();
                let _held = dropped;
                std::future::pending::<()>().await;
            });
        });
        let expected = Some("test-7".to_owned());
        assert_eq!(received.recv().unwrap(), (expected.clone(), expected));
        core.stop();
        assert!(dropped_received.recv().is_err(), "the waiting task was dropped with its core");
    }

    #[test]
    fn a_core_may_stop_itself() {
        let core = std::sync::Arc::new(Core::start("test", 0).unwrap());
        let (done, received) = std::sync::mpsc::channel();
        let itself = core.clone();
        core.spawn(async move {
            itself.stop();
            done.send(()).unwrap();
        });
        received.recv().unwrap();
    }

    #[test]
    fn guarded_code_without_a_panic_is_unchanged() {
        let _guard = AbortOnUnwind::new();
        assert_eq!(run(abort_on_panic(async { 41 + 1 })).unwrap(), 42);
    }
}
