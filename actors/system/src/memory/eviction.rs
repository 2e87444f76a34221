//! Making room for the next command, by removing keys.
//!
//! Room is made before a command takes its shards, so that every shard can be asked in turn, the busy ones left out, and none is
//! held for longer than one key takes. A pass has a time limit, set by `maxmemory-eviction-tenacity`; what it leaves the next
//! command or the timer does. While it gets on, commands are allowed, as in Redis; only when no key may go are they refused.

use crate::client::Client;
use crate::commands::latency::measured;
use crate::commands::transaction::Transaction;
use crate::configuration::Live;
use crate::node::Node;
use simurgh_kernel::core::{self, AbortOnUnwind};
use simurgh_kernel::mailbox::Held;
use simurgh_kernel::time;
use simurgh_protocol::command::{Command, CommandFlags};
use simurgh_storage::eviction::{Eviction, EvictionPolicy};
use simurgh_storage::{Effects, Random, Shard};
use std::sync::atomic::Ordering::{self, Relaxed};

/// Rounds over all shards, some of them busy and the others without a key to give, after which a pass ends.
const BUSY_ROUNDS: usize = 64;
/// Keys between two looks at the clock.
const CLOCK_STEP: usize = 8;

/// Whether there is room for the next command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Room {
    /// Not looked at yet.
    #[default]
    Unknown,
    /// Enough, or it is being made.
    Enough,
    /// None, and no key may go.
    None,
}

impl Client {
    /// Whether EXEC would run a command that needs memory, or `command` is one.
    pub(crate) fn needs_memory(&self, command: Command) -> bool {
        let is_exec = command == crate::commands::EXEC;
        command.spec().flags.contains(CommandFlags::DENYOOM)
            || (is_exec && self.transaction.as_ref().is_some_and(Transaction::needs_memory))
    }

    /// Whether the next command was found to have no room.
    pub(crate) fn is_without_room(&self) -> bool {
        self.room == Room::None
    }

    /// The shards that are held say how large they are now.
    pub(crate) fn publish_sizes(&self, held: &mut Held<'_, Shard, Self>) {
        let mut set = held.set();
        while set != 0 {
            self.node.memory.publish(held.get(set.trailing_zeros() as usize));
            set &= set - 1;
        }
    }
}

/// Looks whether there is room, and makes some. No shard may be held.
#[inline]
pub(crate) fn make_room(node: &Node, live: &Live) -> Room {
    let max = live.config.max_memory_bytes as usize;
    if max == 0
        || !node.memory.is_over(node, max)
        || node.pause.is_active()
        || node.loading.is_loading.load(Ordering::Acquire)
    {
        return Room::Enough;
    }
    evict(node, live, max)
}

/// The timer's part: goes on where commands have left off, step by step.
pub(crate) async fn keep_room(node: &Node) {
    let live = node.configuration.current();
    let max = live.config.max_memory_bytes as usize;
    if max == 0 {
        node.memory.rest();
    }
    if max == 0 || node.pause.is_active() {
        return;
    }
    while node.memory.is_over(node, max) && evict(node, &live, max) == Room::Enough && !node.shutdown.is_asked() {
        core::yield_now().await;
    }
}

/// For how long a pass may last, in nanoseconds, by `maxmemory-eviction-tenacity`.
fn patience_ns(tenacity: u32) -> u64 {
    match tenacity {
        0..=10 => 50_000 * u64::from(tenacity),
        11..=99 => (500_000.0 * 1.15f64.powi(tenacity as i32 - 10)) as u64,
        _ => u64::MAX,
    }
}

#[cold]
fn evict(node: &Node, live: &Live, max: usize) -> Room {
    let policy = EvictionPolicy::parse(live.config.max_memory_policy.name()).unwrap_or_default();
    if policy == EvictionPolicy::NoEviction {
        return Room::None;
    }
    let gauge = &node.memory;
    let pass = gauge.passes.fetch_add(1, Relaxed);
    let mut random = Random::new(node.seed ^ pass.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let terms = Eviction {
        policy,
        samples: live.config.max_memory_samples as usize,
        access: live.storage.access,
        now_ms: time::wall_ms(),
        hasher: &node.layout.hasher,
        events: live.storage.events,
    };
    let began_ns = time::monotonic_ns();
    let end = began_ns.saturating_add(patience_ns(live.config.max_memory_eviction_tenacity));
    let (mut without, mut busy) = (0, 0);
    for step in 1.. {
        match evict_from_next(node, live, &terms, &mut random) {
            Asked::Evicted => (without, busy) = (0, 0),
            Asked::Nothing => without += 1,
            Asked::Busy => busy += 1,
        }
        if gauge.used() <= max {
            break;
        }
        if without >= node.layout.shards && busy == 0 {
            measured(node, "eviction-cycle", time::monotonic_ns() - began_ns);
            return Room::None;
        }
        let is_too_busy = busy > 0 && without + busy >= node.layout.shards * BUSY_ROUNDS;
        if is_too_busy || (step % CLOCK_STEP == 0 && time::monotonic_ns() > end) {
            break;
        }
    }
    measured(node, "eviction-cycle", time::monotonic_ns() - began_ns);
    Room::Enough
}

/// What came of asking a shard.
enum Asked {
    Evicted,
    /// It has no key that may go.
    Nothing,
    Busy,
}

fn evict_from_next(node: &Node, live: &Live, terms: &Eviction<'_>, random: &mut Random) -> Asked {
    let gauge = &node.memory;
    let index = gauge.next_shard.fetch_add(1, Relaxed) % node.layout.shards;
    let Some(mut held) = node.shards.try_hold(1 << index) else { return Asked::Busy };
    let _guard = AbortOnUnwind::new();
    let shard = held.get(index);
    let mut effects = Effects::new(node.log.mode() != crate::log::Mode::Off);
    let began_ns = time::monotonic_ns();
    effects.watching = node.tracking.is_active();
    let freed = terms.evict_one(shard, random, &mut effects);
    measured(node, "eviction-del", time::monotonic_ns() - began_ns);
    if effects.has_records() {
        shard.log_position = node.log.append(0, &effects);
    }
    if effects.has_news() {
        node.tell_touched(&live.config, &mut effects);
        node.tell_events(live, &mut effects, 0);
    }
    gauge.publish(shard);
    match freed {
        Some(_) => {
            node.stats.evicted_keys.add(1);
            Asked::Evicted
        }
        None => Asked::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenacity_is_the_time_of_a_pass() {
        assert_eq!(patience_ns(0), 0);
        assert_eq!(patience_ns(10), 500_000);
        assert!((570_000..=580_000).contains(&patience_ns(11)));
        assert!(patience_ns(99) > 100_000_000_000, "minutes");
        assert_eq!(patience_ns(100), u64::MAX);
    }
}
