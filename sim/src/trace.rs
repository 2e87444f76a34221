//! What happened in a timeline, as a hash that two runs of one seed must share, and as text for whoever replays it. Every
//! event that a client could see goes in, with its virtual time.

use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use simurgh_kernel::time;

/// The events so far.
#[derive(Debug, Clone, Default)]
pub struct Trace(Arc<Mutex<Events>>);

#[derive(Debug)]
struct Events {
    hash: u128,
    count: u64,
    print: bool,
}

impl Default for Events {
    fn default() -> Self {
        Self { hash: 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, count: 0, print: false }
    }
}

impl Trace {
    /// An empty trace; `print` shows every event as it happens.
    pub fn new(print: bool) -> Self {
        Self(Arc::new(Mutex::new(Events { print, ..Events::default() })))
    }

    /// Notes an event of `who`.
    pub fn note(&self, who: &str, what: impl Display) {
        let line = format!("{:>13.6} ms {who}: {what}", time::monotonic_ns() as f64 / 1e6);
        let mut events = self.events();
        events.count += 1;
        for byte in line.bytes() {
            // FNV-1a of 128 bits.
            events.hash = (events.hash ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
        }
        if events.print {
            println!("{line}");
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
