//! Model check of the mailbox: random schedules of threads that take one, two or all of three actors.
//!
//! `cargo test -p simurgh-kernel --features model-check --release --test mailbox_model`; `MODEL_SCHEDULES` sets how many.
#![cfg(feature = "model-check")]

use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;
use simurgh_kernel::mailbox::{Entered, Held, Job, Mailboxes};

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
    done: Arc<AtomicUsize>,
    again: Option<Arc<Mutex<Vec<Box<Add>>>>>,
}

impl Add {
    /// Changes every actor that it wants, with a chance for others to run in between.
    fn apply(&self, held: &mut Held<'_, State, Add>) {
        let wanted: Vec<usize> = (0..3).filter(|index| self.wanted & (1 << index) != 0).collect();
        for index in &wanted {
            assert!(!std::mem::replace(&mut held.get(*index).inside, true), "two holders of one actor");
        }
        thread::yield_now();
        for index in &wanted {
            let state = held.get(*index);
            state.sum += 1;
            state.seen.push((self.sender, self.number));
            state.inside = false;
        }
        self.done.fetch_add(1, Ordering::SeqCst);
    }
}

impl Job<State> for Add {
    fn run(self: Box<Self>, held: &mut Held<'_, State, Self>) {
        self.apply(held);
        // What the sender gets back: only now may it send its next job.
        if let Some(again) = self.again.clone() {
            again.lock().expect("not poisoned").push(self);
        }
    }
}

const JOBS: usize = 3;

/// One sender: each job after the one before has come back, as a connection does it.
fn send(sender: usize, boxes: &Mailboxes<State, Add>, done: &Arc<AtomicUsize>) {
    let back = Arc::new(Mutex::new(Vec::new()));
    for number in 0..JOBS {
        let wanted = [0b001, 0b110, 0b111, 0b101, 0b010][(sender * JOBS + number) % 5];
        let mut job = Box::new(Add { sender, number, wanted, done: done.clone(), again: Some(back.clone()) });
        loop {
            match boxes.enter(wanted, job) {
                Entered::Here(mut held, job) => {
                    job.apply(&mut held);
                    break;
                }
                Entered::Queued => {
                    while back.lock().expect("not poisoned").pop().is_none() {
                        thread::yield_now();
                    }
                    break;
                }
                Entered::Full(back) => {
                    job = back;
                    thread::yield_now();
                }
            }
        }
    }
}

fn scenario(senders: usize, capacity: usize, spins: u32) {
    let states = (0..3).map(|_| State::default()).collect();
    let boxes = Arc::new(Mailboxes::<State, Add>::new(states, capacity, spins));
    let done = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..senders)
        .map(|sender| {
            let (boxes, done) = (boxes.clone(), done.clone());
            thread::spawn(move || send(sender, &boxes, &done))
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
    std::env::var("MODEL_SCHEDULES").ok().and_then(|text| text.parse().ok()).unwrap_or(100_000)
}

#[test]
fn every_job_runs_once_alone_and_in_order() {
    shuttle::check_random(|| scenario(3, 8, 0), schedules() / 2);
    shuttle::check_pct(|| scenario(3, 8, 1), schedules() / 4, 3);
}

#[test]
fn a_full_queue_loses_nothing() {
    shuttle::check_random(|| scenario(4, 1, 0), schedules() / 4);
}
