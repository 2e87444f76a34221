//! What happened in a timeline, as a hash that two runs of one seed must share, and as text for whoever replays it. Every
//! event that a client could see goes in, with its virtual time.

use std::fmt::{Display, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use simurgh_kernel::time;
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// The events so far.
#[derive(Debug, Clone, Default)]
pub struct Trace(Arc<Mutex<Events>>);

#[derive(Debug)]
struct Events {
    hash: u128,
    count: u64,
    print: bool,
    /// The text of an event, kept for its memory.
    line: String,
}

impl Default for Events {
    fn default() -> Self {
        Self { hash: 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, count: 0, print: false, line: String::new() }
    }
}

impl Trace {
    /// An empty trace; `print` shows every event as it happens.
    pub fn new(print: bool) -> Self {
        Self(Arc::new(Mutex::new(Events { print, ..Events::default() })))
    }

    /// Notes an event of `who`.
    pub fn note(&self, who: &str, what: impl Display) {
        let at_ns = time::monotonic_ns();
        let Events { hash, count, print, line } = &mut *self.events();
        line.clear();
        // Writing to a string does not fail.
        let _ = write!(line, "{who}: {what}");
        *count += 1;
        // Each event's hash begins from the one before.
        let seed = u64::try_from(*hash & u128::from(u64::MAX)).unwrap_or(0) ^ at_ns;
        *hash = hash.rotate_left(1) ^ xxh3_128_with_seed(line.as_bytes(), seed);
        if *print {
            println!("{:>13.6} ms {line}", at_ns as f64 / 1e6);
        }
    }

    /// The hash of everything noted.
    pub fn hash(&self) -> u128 {
        self.events().hash
    }

    /// How many events were noted.
    pub fn count(&self) -> u64 {
        self.events().count
    }

    fn events(&self) -> MutexGuard<'_, Events> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
