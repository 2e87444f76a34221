//! The snapshotter actor: writes what a cut has left to write, and begins what is due by itself.
//!
//! It enters one shard at a time, writes a bounded number of its entries into a piece, lets go, hands the piece to the disk, and goes
//! on only when the disk has it. Whatever happens to the file, the visit goes to its end: no shard is left in a snapshot.

use super::output::{Output, PIECE, failed};
use super::{Begun, Job, Outcome, SnapshotError, schedule};
use crate::client::Client;
use crate::node::Node;
use crate::shard::HeldShards;
use simurgh_kernel::actor::{Actor, ActorProcessingErr, ActorRef};
use simurgh_kernel::core::{self, AbortOnUnwind};
use simurgh_kernel::mailbox::Held;
use simurgh_kernel::time;
use simurgh_storage::aof::manifest::temporary_name;
use simurgh_storage::aof::whole::Whole;
use simurgh_storage::snapshot::{Piece, Plan, Step, Stop, Tour};
use simurgh_storage::{Discarded, Shard};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often it looks whether something is due.
const TICK: Duration = Duration::from_millis(100);
/// What one visit to a shard does at most: a fraction of a millisecond.
const STEP: Step = Step { bytes: PIECE, entries: 512 };
/// How long it waits for a collection that is on its way to being freed.
const PAUSE: Duration = Duration::from_millis(1);
/// What lies handed over in all shards is taken from them when it has so many bytes.
const HANDED_BYTES_MAX: u64 = 1 << 20;

/// The snapshotter; each message is one turn: write a snapshot that has begun, or wait for one.
pub(crate) struct Snapshotter;

/// Messages of the snapshotter.
pub(crate) enum SnapshotMessage {
    /// Look what there is to do.
    Turn,
}

impl Actor for Snapshotter {
    type Msg = SnapshotMessage;
    type State = Arc<Node>;
    type Arguments = Arc<Node>;

    async fn pre_start(
        &self,
        myself: ActorRef<SnapshotMessage>,
        node: Arc<Node>,
    ) -> Result<Arc<Node>, ActorProcessingErr> {
        myself.cast(SnapshotMessage::Turn)?;
        Ok(node)
    }

    async fn handle(
        &self,
        myself: ActorRef<SnapshotMessage>,
        SnapshotMessage::Turn: SnapshotMessage,
        node: &mut Arc<Node>,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(begun) = node.persistence.take_begun() {
            // Whoever waits for it is told, and INFO.
            let _ = perform(node, begun, None).await;
        } else if let Some(job) = due(node) {
            let mut held = crate::shard::hold_all(node).await;
            let _guard = AbortOnUnwind::new();
            node.begin_snapshot(&mut HeldShards(&mut held), job);
        } else {
            let _ = time::timeout(TICK, node.persistence.wake.notified()).await;
        }
        Ok(myself.cast(SnapshotMessage::Turn)?)
    }
}

/// What is to begin by itself now.
fn due(node: &Node) -> Option<Job> {
    if node.shutdown.is_asked() || node.loading.is_loading.load(Ordering::Acquire) {
        return None;
    }
    let live = node.configuration.current();
    let size = node.aof_earlier_size.load(Ordering::Relaxed) + node.aof_size.load(Ordering::Relaxed);
    let log_bytes = (size, node.aof_base_size.load(Ordering::Relaxed));
    let state = node.persistence.state();
    schedule::due(&state, &live.config, node.stats.changes.get(), log_bytes, time::wall_ms())
}

/// Writes a snapshot that has begun, and tells how it went.
async fn perform(node: &Arc<Node>, mut begun: Begun, mut held: Option<&mut AllHeld<'_>>) -> Outcome {
    let (job, plan) = (begun.active.job, begun.active.plan.clone());
    tracing::info!(keys = begun.active.keys_total, "{} started", title(job));
    let outcome = match job {
        Job::Save => save(node, &begun, held.as_deref_mut()).await,
        Job::Rewrite => super::rewrite::rewrite(node, &mut begun).await,
    };
    if outcome.is_err() {
        plan.cancel();
        let mut nothing = Piece::default();
        let mut visitor = Visitor::new(node, &plan, held);
        while visitor.step(&mut nothing).await {
            core::yield_now().await;
        }
    }
    match &outcome {
        Ok(()) => {
            tracing::info!(keys = plan.keys(), held_bytes = plan.peak_bytes(), "{} terminated with success", title(job))
        }
        Err(SnapshotError::Cancelled) => tracing::warn!("{} was given up", title(job)),
        Err(error) => tracing::error!(%error, "{} failed", title(job)),
    }
    let now_ms = time::wall_ms();
    let is_ok = {
        let mut state = node.persistence.state();
        state.ended(&outcome, now_ms, begun.changes);
        node.persistence.is_active.store(false, Ordering::Release);
        state.saves.is_ok
    };
    node.persistence.set_save_failed(!is_ok);
    // Nobody may be waiting.
    let _ = begun.ended.send(outcome.clone());
    outcome
}

/// Makes a snapshot while the caller holds all shards, and so nothing else happens: DEBUG RELOAD.
pub(crate) async fn save_held(node: &Arc<Node>, held: &mut AllHeld<'_>) -> Outcome {
    match node.cut(&mut HeldShards(held), Job::Save) {
        Some((begun, _)) => perform(node, begun, Some(held)).await,
        None => Err(SnapshotError::Cancelled),
    }
}

fn title(job: Job) -> &'static str {
    match job {
        Job::Save => "Background saving",
        Job::Rewrite => "Background AOF rewrite",
    }
}

/// Writes the file that `dbfilename` names.
async fn save(node: &Arc<Node>, begun: &Begun, held: Option<&mut AllHeld<'_>>) -> Outcome {
    let live = node.configuration.current();
    let name = &live.config.db_file_name;
    let temporary = temporary_name(name);
    let written = write(node, &temporary, begun, held).await;
    let renamed = match written {
        Ok(_) => node.disk.rename(&temporary, name).await.map_err(|error| failed(name, error)),
        Err(error) => Err(error),
    };
    if renamed.is_err() {
        // It may not even be there.
        let _ = node.disk.unlink(&temporary).await;
        return renamed;
    }
    node.disk.sync_directory("").await.map_err(|error| failed(name, error))
}

/// Writes the snapshot to a new file at `path`, and syncs it; what all of it is.
pub(super) async fn write(
    node: &Arc<Node>,
    path: &str,
    begun: &Begun,
    held: Option<&mut AllHeld<'_>>,
) -> Result<Whole, SnapshotError> {
    let sums = node.configuration.current().config.rdb_checksum;
    let plan = &begun.active.plan;
    let mut output = Output::create(node, path.to_owned(), begun).await?;
    let mut visitor = Visitor::new(node, plan, held);
    let mut keys = 0;
    while visitor.step(&mut output.piece).await {
        if plan.is_cancelled() {
            return Err(SnapshotError::Cancelled);
        }
        if output.piece.bytes.len() >= PIECE / 2 {
            output.write().await?;
        }
        linger(node, plan, &mut keys).await;
        core::yield_now().await;
    }
    if plan.is_cancelled() {
        return Err(SnapshotError::Cancelled);
    }
    output.end(sums).await
}

/// `rdb-key-save-delay`: what the keys that were written since the last time have to take, until the setting changes.
async fn linger(node: &Node, plan: &Plan, keys: &mut u64) {
    let new = plan.keys() - std::mem::replace(keys, plan.keys());
    let begin_ns = time::monotonic_ns();
    while !plan.is_cancelled() && !node.shutdown.is_asked() {
        let owed_us = match node.configuration.current().config.rdb_key_save_delay {
            0 => return,
            delay @ 1.. => new.saturating_mul(delay.unsigned_abs()),
            delay => new / delay.unsigned_abs(),
        };
        let owed = Duration::from_micros(owed_us).saturating_sub(Duration::from_nanos(time::monotonic_ns() - begin_ns));
        if owed.is_zero() {
            return;
        }
        time::sleep(owed.min(TICK)).await;
    }
}

/// All shards, held by one.
type AllHeld<'a> = Held<'a, Shard, Client>;

/// A walk through what a snapshot has not seen.
struct Visitor<'a, 'h> {
    node: &'a Arc<Node>,
    plan: &'a Plan,
    /// The shards, if whoever walks holds them anyway.
    held: Option<&'a mut AllHeld<'h>>,
    tour: Tour,
}

impl<'a, 'h> Visitor<'a, 'h> {
    fn new(node: &'a Arc<Node>, plan: &'a Plan, held: Option<&'a mut AllHeld<'h>>) -> Self {
        Self { node, plan, held, tour: Tour::new(node.layout.shards) }
    }

    async fn with_shard<R>(&mut self, index: usize, with: impl FnOnce(&mut Shard, &mut Tour) -> R) -> R {
        match &mut self.held {
            Some(held) => with(held.get(index), &mut self.tour),
            None => {
                let mut held = crate::shard::hold(self.node, index).await;
                let _guard = AbortOnUnwind::new();
                with(held.get(index), &mut self.tour)
            }
        }
    }

    /// Takes a step; whether there is more to do.
    async fn step(&mut self, piece: &mut Piece) -> bool {
        if self.plan.visit_orphans(STEP, piece) {
            return true;
        }
        if !piece.is_open() && self.plan.whole_bytes() > HANDED_BYTES_MAX {
            for index in self.tour.seen()..self.node.layout.shards {
                self.with_shard(index, |shard, _| shard.take_handed_over(piece)).await;
            }
        }
        match self.tour.next(self.plan, piece) {
            Stop::Shard(index) => {
                let freed = self.with_shard(index, |shard, tour| tour.step(shard, STEP, piece)).await;
                if let Some(database) = freed {
                    self.node.discard(vec![Discarded::Database(database)]);
                }
                true
            }
            Stop::Wait => {
                time::sleep(PAUSE).await;
                true
            }
            Stop::Done => false,
        }
    }
}
