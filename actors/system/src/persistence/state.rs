//! What is known of snapshots and rewrites, for INFO and for those who decide when the next one begins.

use super::{Job, Outcome, SnapshotError};
use simurgh_storage::aof::manifest::Manifest;
use simurgh_storage::snapshot::Plan;
use std::sync::Arc;

/// The snapshot under way.
#[derive(Debug)]
pub(crate) struct Active {
    pub job: Job,
    pub plan: Arc<Plan>,
    pub began_ms: i64,
    pub keys_total: u64,
}

/// What is known of all snapshots of one kind.
#[derive(Debug)]
pub(crate) struct Record {
    /// The last one succeeded, or there was none.
    pub is_ok: bool,
    /// How long it took; -1 before the first.
    pub seconds: i64,
    /// When the last one was begun, in milliseconds of Unix time.
    pub tried_ms: i64,
    /// How many succeeded.
    pub count: u64,
    /// Failures since the last success.
    pub failures: u64,
    /// The most memory that the last one held.
    pub held_bytes: u64,
}

impl Default for Record {
    fn default() -> Self {
        Self { is_ok: true, seconds: -1, tried_ms: 0, count: 0, failures: 0, held_bytes: 0 }
    }
}

/// What is known.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// What is under way.
    pub active: Option<Arc<Active>>,
    /// A snapshot is to begin when nothing else is under way.
    pub save_scheduled: bool,
    /// A rewrite is.
    pub rewrite_scheduled: bool,
    /// `appendonly` was switched on, and the log has no base yet.
    pub log_starts: bool,
    /// The files of the log, as the manifest on the disk has them; nothing while there is no log.
    pub manifest: Option<Manifest>,
    pub saves: Record,
    pub rewrites: Record,
    /// When the last snapshot was finished, in seconds of Unix time; at first, when the node started.
    pub last_save_s: i64,
    /// Changes of the keyspace that the last snapshot holds.
    pub changes_saved: u64,
}

impl State {
    /// What is known of snapshots of this kind.
    pub fn record(&mut self, job: Job) -> &mut Record {
        match job {
            Job::Save => &mut self.saves,
            Job::Rewrite => &mut self.rewrites,
        }
    }

    /// One has begun.
    pub fn began(&mut self, job: Job, now_ms: i64) {
        match job {
            Job::Save => self.save_scheduled = false,
            Job::Rewrite => self.rewrite_scheduled = false,
        }
        self.record(job).tried_ms = now_ms;
    }

    /// The one under way has ended.
    pub fn ended(&mut self, outcome: &Outcome, now_ms: i64, changes: u64) {
        let Some(active) = self.active.take() else { return };
        let record = self.record(active.job);
        record.seconds = (now_ms - active.began_ms).max(0) / 1000;
        record.held_bytes = active.plan.peak_bytes();
        match outcome {
            Ok(()) => {
                record.is_ok = true;
                record.failures = 0;
                record.count += 1;
                if active.job == Job::Save {
                    self.last_save_s = now_ms / 1000;
                    self.changes_saved = changes;
                }
            }
            // Who gives one up knows of it.
            Err(SnapshotError::Cancelled) => {}
            Err(SnapshotError::Disk { .. } | SnapshotError::Switch(_)) => {
                record.is_ok = false;
                record.failures += 1;
            }
        }
    }

    /// Whether a rewrite is under way, or the log is about to begin with one.
    pub fn is_rewriting(&self) -> bool {
        self.is_active(Job::Rewrite) || self.log_starts
    }

    /// Whether one for `job` is under way.
    pub fn is_active(&self, job: Job) -> bool {
        self.active.as_ref().is_some_and(|active| active.job == job)
    }
}
