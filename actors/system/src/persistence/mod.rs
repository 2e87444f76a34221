//! Snapshots and rewrites of the log: when one begins, what is known of those that ended, and who waits for them.
//!
//! ```text
//! BGSAVE, SAVE, BGREWRITEAOF, CONFIG SET    hold all shards and cut where they stand ──┐
//! save points, growth of the log, SCHEDULE  the snapshotter takes all shards and cuts ─┴─> snapshotter writes
//! ```
//!
//! At most one is under way. What it is made of is in `storage::snapshot`; the actor that writes it is [`snapshotter`].

mod adopt;
mod manifest_file;
mod output;
pub(crate) mod reload;
mod rewrite;
mod schedule;
pub(crate) mod snapshotter;
mod state;

pub(crate) use adopt::{adopt_single_file, adopt_snapshot};
pub(crate) use manifest_file::{Installed, Place, current_manifest, install_manifest, write_new};
pub use reload::Reload;
pub(crate) use rewrite::{Switched, discard_leftovers};
pub(crate) use state::{Active, State};

use crate::commands::pause::Paused;
use crate::log::Mode;
use crate::node::{Node, mode_of};
use crate::shard::{HeldShards, hold_all};
use simurgh_kernel::rehearsal;
use simurgh_kernel::sync::{Notify, oneshot};
use simurgh_kernel::time;
use simurgh_storage::Shards;
use simurgh_storage::snapshot::{Format, Hint, Plan};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a snapshot is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// The file that `dbfilename` names.
    Save,
    /// A new base for the log.
    Rewrite,
}

/// Why a snapshot or a rewrite failed.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum SnapshotError {
    #[error("{path}: {error}")]
    Disk { path: String, error: String },
    #[error("it was given up")]
    Cancelled,
    #[error("the log could not go on in a new file: {0}")]
    Switch(String),
}

/// How a snapshot ended.
pub(crate) type Outcome = Result<(), SnapshotError>;

/// A snapshot that has begun: the cut is made, nothing is written.
pub(crate) struct Begun {
    pub active: Arc<Active>,
    pub hints: Vec<Hint>,
    /// The texts of libraries of functions at the cut; who changes them holds all shards, too.
    pub libraries: Vec<Arc<[u8]>>,
    /// Position of the log at the cut.
    pub position: Option<u64>,
    /// Changes of the keyspace before the cut.
    pub changes: u64,
    /// The log goes on in a new file from the cut on: tells which, when it does.
    pub switch: Option<oneshot::Receiver<Result<Switched, String>>>,
    /// Who waits for the end.
    pub ended: oneshot::Sender<Outcome>,
}

/// Snapshots and rewrites of a node.
#[derive(Default)]
pub struct Persistence {
    state: Mutex<State>,
    begun: Mutex<Option<Begun>>,
    /// Wakes the snapshotter.
    pub(crate) wake: Notify,
    save_failed: AtomicBool,
    is_active: AtomicBool,
}

impl std::fmt::Debug for Persistence {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Persistence")
    }
}

impl Persistence {
    /// What is known.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The snapshot that has begun, for who writes it.
    fn take_begun(&self) -> Option<Begun> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether the last snapshot failed.
    #[inline]
    pub(crate) fn save_failed(&self) -> bool {
        self.save_failed.load(Ordering::Acquire)
    }

    /// Bytes that were handed over to the snapshot under way and wait to be written.
    #[inline]
    pub(crate) fn handed_bytes(&self) -> u64 {
        if self.is_active.load(Ordering::Acquire) { self.handed_bytes_now() } else { 0 }
    }

    #[cold]
    fn handed_bytes_now(&self) -> u64 {
        self.state().active.as_ref().map_or(0, |active| active.plan.handed_bytes())
    }

    fn set_save_failed(&self, failed: bool) {
        self.save_failed.store(failed, Ordering::Release);
    }
}

impl Node {
    /// Cuts, and leaves the rest to the snapshotter. All shards are held. Nothing if a snapshot is under way; who waits for the end
    /// gets it otherwise.
    pub(crate) fn begin_snapshot(&self, shards: &mut dyn Shards, job: Job) -> Option<oneshot::Receiver<Outcome>> {
        let (begun, waits) = self.cut(shards, job)?;
        *self.persistence.begun.lock().unwrap_or_else(PoisonError::into_inner) = Some(begun);
        self.persistence.wake.notify_one();
        Some(waits)
    }

    /// Cuts: what the shards hold now is the snapshot. All of them are held. Nothing if one is under way.
    fn cut(&self, shards: &mut dyn Shards, job: Job) -> Option<(Begun, oneshot::Receiver<Outcome>)> {
        let live = self.configuration.current();
        let mut state = self.persistence.state();
        if state.active.is_some() {
            return None;
        }
        let format = match job {
            Job::Rewrite if !live.config.aof_use_rdb_preamble => Format::Commands,
            Job::Rewrite | Job::Save => Format::Rdb,
        };
        let (now_ms, policy) = (time::wall_ms(), live.config.max_memory_policy);
        let keeps_access = policy.is_lfu() || policy.is_lru();
        let access = keeps_access.then_some((live.storage.access, now_ms));
        let mut plan = Plan::new(format, access, live.config.rdb_compression, &self.layout.hasher);
        if rehearsal::is_on() {
            // Simulated collections are small.
            plan = plan.with_large_bytes(0);
        }
        let plan = Arc::new(plan);
        let hints = self.hints(shards);
        for index in 0..self.layout.shards {
            shards.shard(index).begin_snapshot(&plan);
        }
        let keys_total = hints.iter().map(|hint| hint.keys).sum();
        let active = Arc::new(Active { job, plan, began_ms: now_ms, keys_total });
        let starts_log = job == Job::Rewrite && state.log_starts;
        if starts_log {
            // From here on every change is recorded: nobody is in the middle of one.
            self.log.set_mode(mode_of(&live.config));
        }
        let is_logged = self.log.mode() != Mode::Off;
        let position = is_logged.then(|| self.log.end());
        let switch = (job == Job::Rewrite && is_logged).then(|| self.log.cut(starts_log));
        let (ended, waits) = oneshot::channel();
        state.active = Some(active.clone());
        self.persistence.is_active.store(true, Ordering::Release);
        state.began(job, now_ms);
        let libraries = self.scripting.libraries().all().map(|library| library.source.clone().into()).collect();
        let begun = Begun { active, hints, libraries, position, changes: self.stats.changes.get(), switch, ended };
        Some((begun, waits))
    }

    /// How much there is in each database.
    fn hints(&self, shards: &mut dyn Shards) -> Vec<Hint> {
        let mut hints = Vec::new();
        for number in 0..self.layout.databases {
            let mut hint = Hint { database: number as u32, keys: 0, expires: 0, hashes_expiring: 0 };
            for index in 0..self.layout.shards {
                let database = shards.shard(index).database(number);
                hint.keys += database.len() as u64;
                hint.expires += database.expiring() as u64;
                hint.hashes_expiring += database.hashes_expiring() as u64;
            }
            hints.push(hint);
        }
        hints
    }

    /// Makes a snapshot, after which nothing is written any more: the node is about to stop. Whether that succeeded; if not, the
    /// node goes on as before.
    pub async fn save_before_stop(&self) -> bool {
        tracing::info!("saving the final snapshot before the end");
        self.pause.begin(Paused::Writes, i64::MAX, time::wall_ms());
        let ended = loop {
            self.cancel_snapshot(Job::Save);
            self.cancel_snapshot(Job::Rewrite);
            let mut held = hold_all(self).await;
            if let Some(ended) = self.begin_snapshot(&mut HeldShards(&mut held), Job::Save) {
                break ended;
            }
            drop(held);
            time::sleep(Duration::from_millis(1)).await;
        };
        let is_saved = matches!(ended.await, Ok(Ok(())));
        if !is_saved {
            self.pause.end();
            tracing::error!("the final snapshot could not be saved; the server goes on");
        }
        is_saved
    }

    /// All databases were emptied. A snapshot of what there was would bring it back, so it is given up; who counts on snapshots gets
    /// one of nothing as soon as may be (Redis writes it before it answers).
    pub(crate) fn flushed_all(&self) {
        self.cancel_snapshot(Job::Save);
        if !self.configuration.current().config.save_points.is_empty() {
            self.persistence.state().save_scheduled = true;
            self.persistence.wake.notify_one();
        }
    }

    /// Gives up the snapshot that is under way, if it is for `job`; whether there was one. What was scheduled is forgotten.
    pub(crate) fn cancel_snapshot(&self, job: Job) -> bool {
        let mut state = self.persistence.state();
        let scheduled = match job {
            Job::Save => std::mem::take(&mut state.save_scheduled),
            Job::Rewrite => std::mem::take(&mut state.rewrite_scheduled),
        };
        match &state.active {
            Some(active) if active.job == job => {
                active.plan.cancel();
                true
            }
            Some(_) | None => scheduled,
        }
    }
}
