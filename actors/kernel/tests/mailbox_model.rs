//! Model check of the mailbox: random schedules of threads that take one, two or all of three actors, and of threads that come through
//! the gate, hold one or two, and want the others in the middle.
//!
//! `tests/model/run`, which is `cargo test -p simurgh-kernel --features model-check --test mailbox_model`; `SIMURGH_SCHEDULES` sets how many.
#![cfg(feature = "model-check")]

use shuttle::scheduler::PctScheduler;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::sync::{Arc, Condvar, Mutex};
use shuttle::thread;
use simurgh_kernel::mailbox::{Detached, Entered, GATE, Held, Job, Mailboxes};

/// An actor's state. `inside` finds two holders at a time, `seen` the order in which each sender's jobs ran.
#[derive(Default)]
struct State {
    inside: bool,
    sum: u64,
    seen: Vec<(usize, usize)>,
}

struct Add {
    sender: usize,
    number: usize,
    wanted: u64,
    /// What it wants once it has changed the first.
    more: u64,
    done: Arc<AtomicUsize>,
    back: Arc<Back>,
}

/// How a sender learns that its job has run.
#[derive(Default)]
struct Back {
    jobs: Mutex<usize>,
    /// A job that could not be run to its end where it was.
    begun: Mutex<Option<(Box<Add>, Detached)>>,
    came: Condvar,
}

impl Add {
    /// Changes every actor that it wants, with a chance for others to run in between.
    fn begin(wanted: u64, held: &mut Held<'_, State, Add>) {
        for index in indices(wanted) {
            assert!(!std::mem::replace(&mut held.get(index).inside, true), "two holders of one actor");
        }
    }

    fn apply(&self, held: &mut Held<'_, State, Add>) {
        Self::begin(self.wanted, held);
        thread::yield_now();
        while self.more != 0 && !held.try_extend(self.more) && !held.try_borrow(self.more) {
            thread::yield_now();
        }
        Self::begin(self.more, held);
        thread::yield_now();
        for index in indices(self.wanted | self.more) {
            let state = held.get(index);
            state.sum += 1;
            state.seen.push((self.sender, self.number));
            state.inside = false;
        }
        self.done.fetch_add(1, Ordering::SeqCst);
    }
}

fn indices(set: u64) -> impl Iterator<Item = usize> {
    (0..3).filter(move |index| set & (1 << index) != 0)
}

impl Job<State> for Add {
    fn run(self: Box<Self>, held: &mut Held<'_, State, Self>) {
        let back = self.back.clone();
        if self.more == 0 {
            self.apply(held);
        } else {
            // It may have to wait, which who runs it must not: it goes on by itself, with what it holds.
            *back.begun.lock().expect("not poisoned") = Some((self, held.detach()));
        }
        // Only now may the sender send its next job.
        *back.jobs.lock().expect("not poisoned") += 1;
        back.came.notify_one();
    }
}

const JOBS: usize = 3;

/// One sender: each job after the one before has come back, as a connection does it.
fn send(sender: usize, greedy: std::ops::Range<usize>, boxes: &Mailboxes<State, Add>, done: &Arc<AtomicUsize>) {
    let back = Arc::new(Back::default());
    for number in 0..JOBS {
        let choice = sender * JOBS + number;
        let (wanted, more) = match greedy.contains(&sender) {
            false => ([0b001, 0b110, 0b111, 0b101, 0b010][choice % 5], 0),
            true => [(0b100, 0b001), (0b001, 0b110), (0b110, 0b001), (0b010, 0b101)][choice % 4],
        };
        let through = if more == 0 { wanted } else { wanted | GATE };
        let mut job = Box::new(Add { sender, number, wanted, more, done: done.clone(), back: back.clone() });
        loop {
            match boxes.enter(through, job) {
                Entered::Here(mut held, job) => {
                    job.apply(&mut held);
                    break;
                }
                Entered::Queued => {
                    let jobs = back.jobs.lock().expect("not poisoned");
                    *back.came.wait_while(jobs, |jobs| *jobs == 0).expect("not poisoned") -= 1;
                    if let Some((job, detached)) = back.begun.lock().expect("not poisoned").take() {
                        job.apply(&mut boxes.attach(detached));
                    }
                    break;
                }
                Entered::Full(refused) => {
                    job = refused;
                    thread::yield_now();
                }
            }
        }
    }
}

fn scenario(senders: usize, greedy: std::ops::Range<usize>, capacity: usize, spins: u32) {
    let states = (0..3).map(|_| State::default()).collect();
    let boxes = Arc::new(Mailboxes::<State, Add>::new(states, capacity, spins));
    let done = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..senders)
        .map(|sender| {
            let (boxes, done, greedy) = (boxes.clone(), done.clone(), greedy.clone());
            thread::spawn(move || send(sender, greedy, &boxes, &done))
        })
        .collect();
    for thread in threads {
        thread.join().expect("a sender ends");
    }
    assert_eq!(done.load(Ordering::SeqCst), senders * JOBS, "every job ran once");
    let mut held = boxes.try_hold(boxes.all()).expect("everybody has let go");
    for index in 0..3 {
        let state = held.get(index);
        assert!(!state.inside);
        assert_eq!(state.sum as usize, state.seen.len());
        for sender in 0..senders {
            let numbers: Vec<usize> = state.seen.iter().filter(|job| job.0 == sender).map(|job| job.1).collect();
            assert!(numbers.is_sorted(), "a sender's jobs run in the order sent: {numbers:?}");
        }
    }
}

fn schedules() -> usize {
    std::env::var("SIMURGH_SCHEDULES").ok().and_then(|text| text.parse().ok()).unwrap_or(100_000)
}

/// The same schedules everywhere, unless SIMURGH_SEED says otherwise.
fn seed() -> u64 {
    std::env::var("SIMURGH_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000_000_000)
}

#[test]
fn model_every_job_runs_once_alone_and_in_order() {
    shuttle::check_random_with_seed(|| scenario(3, 0..0, 8, 0), seed(), schedules() / 4);
    let by_priority = PctScheduler::new_from_seed(seed(), 3, schedules() / 4);
    shuttle::Runner::new(by_priority, shuttle::Config::default()).run(|| scenario(3, 0..0, 8, 0));
}

#[test]
fn model_a_full_queue_loses_nothing() {
    shuttle::check_random_with_seed(|| scenario(4, 0..0, 1, 0), seed(), schedules() / 4);
}

#[test]
fn model_who_wants_more_gets_it_and_nobody_waits_for_ever() {
    shuttle::check_random_with_seed(|| scenario(3, 0..1, 8, 0), seed(), schedules() / 8);
    shuttle::check_random_with_seed(|| scenario(4, 1..3, 8, 0), seed(), schedules() / 8);
}
