//! Run-where-you-stand mailboxes: the state of an actor, and the jobs that wait for it.
//!
//! A job for an idle actor is handled where its sender stands: same thread, arguments still borrowed, no queue and no wake-up.
//! A job for a busy actor is queued, and whoever holds the actor runs it before letting go. A job for several actors takes
//! them in ascending order and so is atomic over all of them without a coordinator:
//!
//! ```text
//! state of a mailbox     IDLE ──hold──> HELD ──park──> QUEUED
//!                          ^─────release──┘  ^─last popped─┘
//! ```
//!
//! No deadlock: a job that waits in the queue of actor `i` holds only actors below `i`, and whoever holds `i` never waits for
//! one below it. Before all others comes the gate, an actor without a state: jobs that may want more once they run, and then
//! wait without letting go, come one by one through it.
//!
//! Such a job asks again and again for what it lacks, and [`Held::try_borrow`] keeps that from being a deadlock: a job that waits in
//! the queue of an actor which one holds, directly or behind another that does, has not begun and cannot move before one lets
//! go. So what it holds is nobody's, and may be used meanwhile. Whoever else holds something never waits for it to be given up.
//!
//! Bounded: a sender has at most one job under way, and the queue refuses more than its capacity.
//!
//! `tests/mailbox_model.rs` explores the interleavings of this file with shuttle.
#![allow(unsafe_code)]

#[cfg(feature = "model-check")]
use shuttle::sync::{Mutex, atomic::AtomicU8};
#[cfg(not(feature = "model-check"))]
use std::sync::{Mutex, atomic::AtomicU8};

use crate::rehearsal::{Point, reached};
use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

/// A set of mailboxes, one bit each.
pub type Set = u64;
/// The most mailboxes that one [`Mailboxes`] can have: the bits of a [`Set`], but for the gate's.
pub const MAILBOXES_MAX: usize = Set::BITS as usize - 1;
/// The gate, as part of a [`Set`].
pub const GATE: Set = 1 << MAILBOXES_MAX;

const IDLE: u8 = 0;
const HELD: u8 = 1;
const QUEUED: u8 = 2;

/// What is sent to one or several actors with state `S`.
pub trait Job<S: Send>: Send + Sized {
    /// Handles the job; every actor it wants is held. It hands itself back to its sender by a way of its own.
    fn run(self: Box<Self>, held: &mut Held<'_, S, Self>);
}

/// A job in a queue: what it wants, and what it holds already.
struct Parked<J> {
    job: Box<J>,
    wanted: Set,
    held: Set,
}

/// Whether somebody holds an actor, and who waits for it.
struct Lane<J> {
    state: AtomicU8,
    queue: Mutex<VecDeque<Parked<J>>>,
}

/// One actor's lane and state, on cache lines of its own.
#[repr(align(128))]
struct Mailbox<S, J> {
    lane: Lane<J>,
    content: UnsafeCell<S>,
}

/// The mailboxes of a group of actors.
pub struct Mailboxes<S, J> {
    gate: Lane<J>,
    boxes: Box<[Mailbox<S, J>]>,
    capacity: usize,
    spins: u32,
}

// SAFETY: `content` is reached only through `Held`, which exists once for each mailbox at a time (see `hold` and `release`);
// jobs move between threads, hence `J: Send`.
unsafe impl<S: Send, J: Send> Sync for Mailboxes<S, J> {}

/// What came of [`Mailboxes::enter`].
pub enum Entered<'a, S: Send, J: Job<S>> {
    /// The actors are held: run the job here.
    Here(Held<'a, S, J>, Box<J>),
    /// An actor was busy: the job will be run by whoever holds it.
    Queued,
    /// An actor was busy and its queue full: try again later.
    Full(Box<J>),
}

/// What came of taking the rest of what a job wants.
enum Acquired<J> {
    All(Parked<J>),
    Waiting,
    Full(Parked<J>),
}

impl<S: Send, J: Job<S>> Mailboxes<S, J> {
    /// One mailbox for each state. At most `capacity` jobs wait in one; a busy actor is tried `spins` times before a job queues.
    ///
    /// # Panics
    /// With more than [`MAILBOXES_MAX`] states.
    #[must_use]
    pub fn new(states: Vec<S>, capacity: usize, spins: u32) -> Self {
        assert!(states.len() <= MAILBOXES_MAX, "a set has one bit for each mailbox");
        let boxes = states.into_iter().map(|state| Mailbox { lane: Lane::new(), content: UnsafeCell::new(state) });
        Self { gate: Lane::new(), boxes: boxes.collect(), capacity, spins }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.boxes.len()
    }

    /// The set of all, without the gate.
    #[must_use]
    pub fn all(&self) -> Set {
        Set::MAX.checked_shr(Set::BITS - self.boxes.len() as u32).unwrap_or(0)
    }

    #[inline]
    fn lane(&self, index: usize) -> &Lane<J> {
        if index == MAILBOXES_MAX { &self.gate } else { &self.boxes[index].lane }
    }

    /// Takes `wanted` for `job`, or leaves the job with the first actor that is busy.
    #[inline]
    pub fn enter(&self, wanted: Set, job: Box<J>) -> Entered<'_, S, J> {
        match self.acquire(Parked { job, wanted, held: 0 }, self.capacity) {
            Acquired::All(parked) => Entered::Here(Held::new(self, wanted), parked.job),
            Acquired::Waiting => Entered::Queued,
            Acquired::Full(parked) => {
                drop(Held::new(self, parked.held));
                Entered::Full(parked.job)
            }
        }
    }

    /// Takes `wanted` if all of it is idle.
    #[must_use]
    #[inline]
    pub fn try_hold(&self, wanted: Set) -> Option<Held<'_, S, J>> {
        let mut held = Held::new(self, 0);
        for index in members(wanted) {
            if !self.lane(index).hold() {
                return None;
            }
            held.set |= 1 << index;
        }
        Some(held)
    }

    /// What [`Held::detach`] had taken, held again.
    ///
    /// # Panics
    /// When it is of other mailboxes.
    #[must_use]
    pub fn attach(&self, detached: Detached) -> Held<'_, S, J> {
        assert!(self.boxes.as_ptr().addr() == detached.owner, "what is attached is of these mailboxes");
        Held { owner: self, set: detached.set, borrowed: detached.borrowed }
    }

    /// Takes out of the queues of `set` those waiting jobs that `pick` picks, and lets go of what they held. Only for who holds
    /// `set`: they are answered otherwise than by being run. Jobs that have lent something of `borrowed` stay.
    pub fn turn_away(&self, set: Set, borrowed: Set, mut pick: impl FnMut(&J) -> bool) -> Vec<Box<J>> {
        let mut jobs = Vec::new();
        for index in members(set) {
            for parked in self.lane(index).pick(|parked| parked.held & borrowed == 0 && pick(&parked.job)) {
                drop(Held::new(self, parked.held));
                jobs.push(parked.job);
            }
        }
        jobs
    }

    /// What `set` holds, and what is held by jobs that wait for it, and for what those hold. Only for who holds `set`.
    fn waiting_behind(&self, set: Set) -> Set {
        let (mut seen, mut to_see) = (set, set);
        while to_see != 0 {
            let index = to_see.trailing_zeros() as usize;
            to_see &= to_see - 1;
            for parked in self.lane(index).queue.lock().expect("no job panics under this lock").iter() {
                to_see |= parked.held & !seen;
                seen |= parked.held;
            }
        }
        seen
    }

    /// Takes what `parked` still lacks, the gate first and then in ascending order.
    #[inline]
    fn acquire(&self, mut parked: Parked<J>, capacity: usize) -> Acquired<J> {
        for index in members(parked.wanted & !parked.held) {
            let lane = self.lane(index);
            if !lane.hold_within(self.spins) {
                let is_holding = parked.held != 0;
                match lane.park(parked, capacity) {
                    Acquired::All(back) => parked = back,
                    other @ (Acquired::Waiting | Acquired::Full(_)) => {
                        let is_full = matches!(other, Acquired::Full(_));
                        reached(if is_full {
                            Point::QueueFull
                        } else if is_holding {
                            Point::QueuedHolding
                        } else {
                            Point::Queued
                        });
                        return other;
                    }
                }
            }
            parked.held |= 1 << index;
        }
        Acquired::All(parked)
    }

    /// Lets go of `set`, running what waits.
    fn release(&self, set: Set) {
        let mut to_release = set;
        while to_release != 0 {
            let index = to_release.trailing_zeros() as usize;
            to_release &= to_release - 1;
            let Some(mut parked) = self.lane(index).release() else { continue };
            parked.held |= 1 << index;
            // It was accepted once: no capacity stops it now.
            match self.acquire(parked, usize::MAX) {
                Acquired::All(parked) => {
                    let mut held = Held::new(self, parked.wanted);
                    parked.job.run(&mut held);
                    to_release |= std::mem::take(&mut held.set);
                }
                Acquired::Waiting => {}
                Acquired::Full(_) => unreachable!("without a capacity nothing is full"),
            }
        }
    }
}

/// The indices in a set: the gate's, then ascending.
#[inline]
fn members(mut set: Set) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if set & GATE != 0 {
            set &= !GATE;
            return Some(MAILBOXES_MAX);
        }
        let index = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(index)
    })
}

impl<J> Lane<J> {
    fn new() -> Self {
        Self { state: AtomicU8::new(IDLE), queue: Mutex::new(VecDeque::new()) }
    }

    #[inline]
    fn hold(&self) -> bool {
        self.state.compare_exchange(IDLE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn hold_within(&self, spins: u32) -> bool {
        if self.hold() {
            return true;
        }
        for _ in 0..spins {
            std::hint::spin_loop();
            if self.state.load(Ordering::Relaxed) == IDLE && self.hold() {
                return true;
            }
        }
        false
    }

    /// Queues a job, unless the mailbox has become idle: then it is held, and the job comes back.
    fn park(&self, parked: Parked<J>, capacity: usize) -> Acquired<J> {
        let mut queue = self.queue.lock().expect("no job panics under this lock");
        loop {
            match self.state.compare_exchange(IDLE, HELD, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Acquired::All(parked),
                Err(_) if queue.len() >= capacity => return Acquired::Full(parked),
                Err(QUEUED) => break,
                Err(_) => {
                    if self.state.compare_exchange(HELD, QUEUED, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                        break;
                    }
                }
            }
        }
        queue.push_back(parked);
        Acquired::Waiting
    }

    /// Lets go, unless a job waits: then the mailbox stays held, for that job.
    #[inline]
    fn release(&self) -> Option<Parked<J>> {
        if self.state.compare_exchange(HELD, IDLE, Ordering::Release, Ordering::Relaxed).is_ok() {
            return None;
        }
        let mut queue = self.queue.lock().expect("no job panics under this lock");
        let parked = queue.pop_front().expect("QUEUED means that a job waits");
        if queue.is_empty() {
            self.state.store(HELD, Ordering::Relaxed);
        }
        Some(parked)
    }

    /// Takes the waiting jobs that `pick` picks; the mailbox is held by the caller.
    fn pick(&self, mut pick: impl FnMut(&Parked<J>) -> bool) -> Vec<Parked<J>> {
        let mut queue = self.queue.lock().expect("no job panics under this lock");
        let mut picked = Vec::new();
        for parked in std::mem::take(&mut *queue) {
            if pick(&parked) {
                picked.push(parked);
            } else {
                queue.push_back(parked);
            }
        }
        if queue.is_empty() && !picked.is_empty() {
            self.state.store(HELD, Ordering::Relaxed);
        }
        picked
    }
}

/// A hold without the borrow of its mailboxes: it may travel with its job. Dropped, its actors stay held for ever.
#[derive(Debug)]
#[must_use = "actors that are detached and not attached again stay held"]
pub struct Detached {
    /// Where the mailboxes are, to tell them from others.
    owner: usize,
    set: Set,
    borrowed: Set,
}

impl Detached {
    /// The actors that it holds.
    #[must_use]
    pub fn set(&self) -> Set {
        self.set
    }
}

/// Exclusive access to a set of actors. Dropping it runs the jobs that came meanwhile.
pub struct Held<'a, S: Send, J: Job<S>> {
    owner: &'a Mailboxes<S, J>,
    set: Set,
    /// Held by jobs that wait for what is held here, and used meanwhile.
    borrowed: Set,
}

impl<'a, S: Send, J: Job<S>> Held<'a, S, J> {
    #[inline]
    fn new(owner: &'a Mailboxes<S, J>, set: Set) -> Self {
        Self { owner, set, borrowed: 0 }
    }

    /// The actors that may be used: those held, and those borrowed.
    #[must_use]
    #[inline]
    pub fn set(&self) -> Set {
        (self.set | self.borrowed) & !GATE
    }

    /// The same with the gate, if that is held.
    #[must_use]
    #[inline]
    pub fn set_with_gate(&self) -> Set {
        self.set | self.borrowed
    }

    /// The actors that are borrowed.
    #[must_use]
    pub fn borrowed(&self) -> Set {
        self.borrowed
    }

    /// Takes further actors if all of them are idle; never waits, so the order in which others take theirs does not matter. Whether
    /// they may be used now.
    pub fn try_extend(&mut self, wanted: Set) -> bool {
        let Some(mut more) = self.owner.try_hold(wanted & !self.set_with_gate()) else { return false };
        self.set |= std::mem::take(&mut more.set);
        true
    }

    /// Borrows what is held by jobs that cannot move before this hold ends, and takes of the rest what is idle. Whether all that
    /// is wanted may be used now.
    pub fn try_borrow(&mut self, wanted: Set) -> bool {
        for index in members(wanted & !self.set_with_gate()) {
            self.try_extend(1 << index);
        }
        self.borrowed |= self.owner.waiting_behind(self.set_with_gate()) & !self.set;
        wanted & !self.set_with_gate() == 0
    }

    /// The same hold without its borrow; this value holds nothing any more.
    pub fn detach(&mut self) -> Detached {
        let (set, borrowed) = (std::mem::take(&mut self.set), std::mem::take(&mut self.borrowed));
        Detached { owner: self.owner.boxes.as_ptr().addr(), set, borrowed }
    }

    /// Holds, besides, what was detached.
    ///
    /// # Panics
    /// When it is of other mailboxes.
    pub fn absorb(&mut self, detached: Detached) {
        let mut other = self.owner.attach(detached);
        self.set |= std::mem::take(&mut other.set);
        self.borrowed |= other.borrowed;
    }

    /// The state of actor `index`.
    ///
    /// # Panics
    /// When that actor is not held.
    #[inline]
    pub fn get(&mut self, index: usize) -> &mut S {
        // What is beyond the boxes is refused below.
        let bit = 1u64.wrapping_shl(index as u32);
        assert!((self.set | self.borrowed) & !GATE & bit != 0, "actor {index} is not held");
        // SAFETY: the bit in `set` was put there by winning IDLE -> HELD (or by being handed the mailbox in `release`), and goes only
        // when this value does. A bit in `borrowed` belongs to a job in the queue of an actor of `set` or of another such job: it is
        // taken out of there only by this value's end, after it is used. The borrow of `self` keeps it to one reference at a time.
        unsafe { &mut *self.owner.boxes[index].content.get() }
    }
}

impl<S: Send, J: Job<S>> Drop for Held<'_, S, J> {
    #[inline]
    fn drop(&mut self) {
        self.owner.release(self.set);
    }
}
