//! The timer actor: what a node does now and then. Expiry in bounded steps, idle clients, limits over all clients.

use crate::client::Client;
use crate::node::Node;
use crate::samples::Sample;
use simurgh_kernel::actor::{Actor, ActorProcessingErr, ActorRef};
use simurgh_kernel::core::AbortOnUnwind;
use simurgh_kernel::mailbox::Held;
use simurgh_kernel::time;
use simurgh_storage::{Effects, Shard};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Keys, and fields of hashes, that expire in one step, between two of which others get at the shard.
const EXPIRE_STEP: usize = 64;
/// Steps for one shard in one round, times `active-expire-effort`; more are due again at the next.
const EXPIRE_STEPS: usize = 64;

/// The timer actor.
pub(crate) struct Cron;

/// Messages of the timer.
pub(crate) enum CronMessage {
    /// `hz` times a second.
    Tick,
}

pub(crate) struct State {
    node: Arc<Node>,
    rounds: u64,
}

impl Actor for Cron {
    type Msg = CronMessage;
    type State = State;
    type Arguments = Arc<Node>;

    async fn pre_start(&self, myself: ActorRef<CronMessage>, node: Arc<Node>) -> Result<State, ActorProcessingErr> {
        myself.cast(CronMessage::Tick)?;
        Ok(State { node, rounds: 0 })
    }

    async fn handle(
        &self,
        myself: ActorRef<CronMessage>,
        CronMessage::Tick: CronMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let node = &state.node;
        let hz = u64::from(node.configuration.current().config.hz.max(1));
        time::sleep(Duration::from_micros(1_000_000 / hz)).await;
        state.rounds += 1;
        if !node.shutdown.is_asked() && !node.cron_paused.load(Relaxed) {
            sample(node);
            expire(node).await;
            crate::memory::keep_room(node).await;
            crate::memory::check_all(node);
            if node.tracking.is_active() {
                node.shrink_table(&node.configuration.current().config, b"", NOBODY);
            }
            if state.rounds.is_multiple_of(hz) {
                close_idle(node);
            }
        }
        Ok(myself.cast(CronMessage::Tick)?)
    }
}

/// Notes what INFO tells as rates and peaks.
fn sample(node: &Node) {
    let stats = &node.stats;
    node.samples.take(Sample {
        at_ms: (time::monotonic_ns() / 1_000_000) as i64,
        commands: stats.total_commands_processed.get(),
        input: stats.total_net_input_bytes.get(),
        output: stats.total_net_output_bytes.get(),
    });
    if let Some(bytes) = node.allocated_bytes() {
        node.samples.note_memory(bytes, time::wall_ms() / 1000);
    }
}

/// Removes what is due from every shard.
async fn expire(node: &Arc<Node>) {
    if !node.expires_actively.load(Relaxed) || node.pause.is_active() {
        return;
    }
    let effort = node.configuration.current().config.active_expire_effort as usize;
    let mut nanos = 0;
    for index in 0..node.layout.shards {
        for _ in 0..EXPIRE_STEPS * effort {
            let began_ns = time::monotonic_ns();
            let is_more_due = match node.shards.try_hold(1 << index) {
                Some(mut held) => expire_step(node, &mut held, index),
                None => true,
            };
            nanos += time::monotonic_ns() - began_ns;
            if !is_more_due {
                break;
            }
            simurgh_kernel::core::yield_now().await;
        }
    }
    crate::commands::latency::measured(node, "expire-cycle", nanos);
}

/// No client has this number.
const NOBODY: u64 = 0;

fn expire_step(node: &Node, held: &mut Held<'_, Shard, Client>, index: usize) -> bool {
    let _guard = AbortOnUnwind::new();
    let mut effects = Effects::new(node.log.mode() != crate::log::Mode::Off);
    effects.watching = node.tracking.is_active();
    let shard = held.get(index);
    let live = node.configuration.current();
    let (now_ms, hasher, events) = (time::wall_ms(), &node.layout.hasher, live.storage.events);
    let are_keys_due = simurgh_storage::expiry::expire_cycle(shard, now_ms, EXPIRE_STEP, events, &mut effects);
    let are_fields_due = simurgh_storage::hash::expire_fields(shard, hasher, now_ms, EXPIRE_STEP, events, &mut effects);
    if effects.has_news() {
        node.tell_touched(&live.config, &mut effects);
        node.tell_events(&live, &mut effects, NOBODY);
    }
    if effects.has_records() {
        shard.log_position = node.log.append(0, &effects);
    }
    node.memory.publish(shard);
    are_keys_due || are_fields_due
}

/// Closes clients that have been idle for longer than `timeout`.
fn close_idle(node: &Node) {
    let config = node.configuration.current();
    let timeout_ms = i64::from(config.config.timeout_seconds) * 1000;
    if timeout_ms == 0 {
        return;
    }
    let now_ms = time::wall_ms();
    for client in node.clients.all() {
        let is_idle =
            !client.is_blocked.load(Relaxed) && now_ms - client.last_interaction_ms.load(Relaxed) > timeout_ms;
        if is_idle && !client.is_monitor.load(Relaxed) && !client.subscriptions.any() {
            client.kill();
        }
    }
}
