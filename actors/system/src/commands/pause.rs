//! CLIENT PAUSE: for a while, requests of all clients or those that write are held back.
//!
//! The mode is one atomic that every request looks at; the rest is looked at only while it is set. CLIENT PAUSE holds all shards,
//! and a write looks with its shards held, so once the pause has been answered no write is under way.

use simurgh_kernel::sync::Notify;
use simurgh_kernel::time;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};
use std::time::Duration;

/// What is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paused {
    /// Requests that write.
    Writes,
    /// All requests.
    All,
}

const NOTHING: u8 = 0;
const WRITES: u8 = 1;
const ALL: u8 = 2;

/// The pause of a node.
#[derive(Debug, Default)]
pub struct Pause {
    mode: AtomicU8,
    ends_ms: AtomicI64,
    changed: Notify,
}

impl Pause {
    /// What is held back at `now_ms`, which is asked for only when there is a pause.
    #[inline]
    pub fn at(&self, now_ms: impl FnOnce() -> i64) -> Option<Paused> {
        let mode = self.mode.load(Ordering::Acquire);
        if mode == NOTHING {
            return None;
        }
        self.unless_over(mode, now_ms())
    }

    #[cold]
    fn unless_over(&self, mode: u8, now_ms: i64) -> Option<Paused> {
        if now_ms >= self.ends_ms.load(Ordering::Acquire) {
            return None;
        }
        Some(if mode == ALL { Paused::All } else { Paused::Writes })
    }

    /// Whether there is a pause, in which the keyspace stands still: nothing expires or is evicted by itself.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.at(time::wall_ms).is_some()
    }

    /// What is held back now and until when (milliseconds of Unix time).
    #[must_use]
    pub fn state(&self) -> Option<(Paused, i64)> {
        self.at(time::wall_ms).map(|paused| (paused, self.ends_ms.load(Ordering::Acquire)))
    }

    /// Begins a pause. One that is in force is neither shortened nor narrowed.
    pub fn begin(&self, wanted: Paused, ends_ms: i64, now_ms: i64) {
        let current = self.at(|| now_ms);
        let mode = if wanted == Paused::All || current == Some(Paused::All) { ALL } else { WRITES };
        let ends_ms = match current {
            Some(_) => ends_ms.max(self.ends_ms.load(Ordering::Acquire)),
            None => ends_ms,
        };
        self.ends_ms.store(ends_ms, Ordering::Release);
        self.mode.store(mode, Ordering::Release);
    }

    /// Ends it.
    pub fn end(&self) {
        self.mode.store(NOTHING, Ordering::Release);
        self.changed.notify_waiters();
    }

    /// Waits until there is none.
    pub async fn over(&self) {
        loop {
            let changed = self.changed.notified();
            let Some((_, ends_ms)) = self.state() else { return };
            let left_ms = u64::try_from(ends_ms - time::wall_ms()).unwrap_or(0).clamp(1, 1000);
            // Waits in pieces: the clock of the wall may be set.
            let _ = time::timeout(Duration::from_millis(left_ms), changed).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_neither_shortened_nor_narrowed() {
        let pause = Pause::default();
        assert_eq!(pause.at(|| 0), None);
        pause.begin(Paused::Writes, 100, 0);
        assert_eq!(pause.at(|| 99), Some(Paused::Writes));
        pause.begin(Paused::All, 50, 0);
        assert_eq!(pause.at(|| 99), Some(Paused::All));
        pause.begin(Paused::Writes, 200, 0);
        assert_eq!(pause.at(|| 199), Some(Paused::All));
        assert_eq!(pause.at(|| 200), None);
    }

    #[test]
    fn after_its_end_a_new_one_stands_alone() {
        let pause = Pause::default();
        pause.begin(Paused::All, 100, 0);
        pause.begin(Paused::Writes, 150, 100);
        assert_eq!(pause.at(|| 120), Some(Paused::Writes));
        pause.end();
        assert_eq!(pause.at(|| 120), None);
    }
}
