//! The script that runs, as seen from other cores: since when, whether it has changed data, whether it is to end.

use crate::node::Node;
use simurgh_kernel::time;
use simurgh_scripting::Watch;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What others may know of the script that runs.
#[derive(Debug, Default)]
pub(crate) struct Running {
    runs: AtomicBool,
    has_written: AtomicBool,
    is_killed: AtomicBool,
    /// It runs longer than `busy-reply-threshold`.
    is_slow: AtomicBool,
    core: AtomicUsize,
}

/// Why a script cannot be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotKilled {
    /// None runs.
    NotBusy,
    /// It has changed data, which nobody takes back.
    HasWritten,
}

impl Running {
    /// A script begins on `core`.
    pub fn begin(&self, core: usize) {
        self.has_written.store(false, Ordering::Relaxed);
        self.is_killed.store(false, Ordering::Relaxed);
        self.core.store(core, Ordering::Relaxed);
        self.runs.store(true, Ordering::Release);
    }

    /// It has ended.
    pub fn end(&self) {
        self.is_slow.store(false, Ordering::Release);
        self.runs.store(false, Ordering::Release);
    }

    /// It changes data.
    pub fn note_write(&self) {
        self.has_written.store(true, Ordering::Release);
    }

    /// Whether it has changed data.
    pub fn has_written(&self) -> bool {
        self.has_written.load(Ordering::Acquire)
    }

    /// Whether others are told that the node is busy.
    #[inline]
    pub fn is_slow(&self) -> bool {
        self.is_slow.load(Ordering::Acquire)
    }

    /// The core that does nothing else now.
    pub fn busy_core(&self) -> Option<usize> {
        self.is_slow().then(|| self.core.load(Ordering::Relaxed))
    }

    /// Asks the script to end.
    pub fn kill(&self) -> Result<(), NotKilled> {
        if !self.runs.load(Ordering::Acquire) {
            return Err(NotKilled::NotBusy);
        }
        if self.has_written() {
            return Err(NotKilled::HasWritten);
        }
        self.is_killed.store(true, Ordering::Release);
        Ok(())
    }
}

/// Watches a script for its engine.
pub(crate) struct Watcher {
    node: Arc<Node>,
    started_ns: u64,
    slow_after_ns: u64,
}

impl Watcher {
    /// From now on. `slow_after_ms` of 0 means never.
    pub fn new(node: Arc<Node>, slow_after_ms: u64) -> Self {
        let slow_after_ns = if slow_after_ms == 0 { u64::MAX } else { slow_after_ms.saturating_mul(1_000_000) };
        Self { node, started_ns: time::monotonic_ns(), slow_after_ns }
    }
}

impl Watch for Watcher {
    fn is_killed(&self) -> bool {
        let running = &self.node.scripting.running;
        if time::monotonic_ns().saturating_sub(self.started_ns) > self.slow_after_ns {
            running.is_slow.store(true, Ordering::Release);
        }
        // A node that stops waits for no script.
        running.is_killed.load(Ordering::Acquire) || self.node.shutdown.is_asked()
    }

    fn clock_seconds(&self) -> f64 {
        time::monotonic_ns() as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_script_that_has_changed_nothing_is_killed() {
        let running = Running::default();
        assert_eq!(running.kill(), Err(NotKilled::NotBusy));
        running.begin(1);
        assert_eq!((running.kill(), running.is_killed.load(Ordering::Relaxed)), (Ok(()), true));
        running.note_write();
        assert_eq!(running.kill(), Err(NotKilled::HasWritten));
        running.end();
        running.begin(0);
        assert!(!running.has_written() && !running.is_killed.load(Ordering::Relaxed));
    }
}
