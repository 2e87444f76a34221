//! KEYS over a large database, and SCAN, in steps: each holds one shard and sees a bounded number of keys. Between two steps the
//! core serves its other connections, and whoever waits for the shard gets it.
//!
//! A walk travels with its client like everything of it, so a step may run wherever the client waits for a busy shard.

use crate::client::Client;
use simurgh_kernel::time;
use simurgh_protocol::Args;
use simurgh_protocol::command::{Command, DataCommand, Lookup};
use simurgh_storage::Shards;
use simurgh_storage::walk::{Step, Walk};

/// Keys that one step sees: a fraction of a millisecond.
const STEP_KEYS: u64 = 4096;

/// A walk under way.
#[derive(Debug)]
pub(crate) struct Walking {
    walk: Walk,
    /// Time of its steps so far.
    nanos: u64,
    /// The last position in the log of all shards that it has seen: what its reply must wait for.
    pub seen_position: u64,
    /// It has had its turn.
    is_paused: bool,
}

/// Whether a command may be one that walks.
#[inline]
pub(crate) fn may_walk(command: Command) -> bool {
    matches!(command, Command::Data(DataCommand::Scan | DataCommand::Keys))
}

impl Client {
    /// The shard that the walk under way needs next, as a set.
    #[inline]
    pub(crate) fn walk_shard(&self) -> Option<u64> {
        self.walking.as_ref().map(|walking| 1 << walking.walk.shard(&self.node.layout))
    }

    /// Whether a walk has had its turn, and others of this core should have theirs.
    #[inline]
    pub(crate) fn is_walk_paused(&self) -> bool {
        self.walking.as_ref().is_some_and(|walking| walking.is_paused)
    }

    /// Begins a walk, if the request asks for one.
    pub(crate) fn begins_walk(&mut self, command: Command, args: &Args<'_>, shards: &mut dyn Shards) -> bool {
        let Command::Data(command) = command else { return false };
        let place = (self.database, &self.node.layout);
        let walk = Walk::begin(command, args, place, self.reply.protocol(), shards);
        self.walking = walk.map(|walk| Box::new(Walking { walk, nanos: 0, seen_position: 0, is_paused: false }));
        self.walking.is_some()
    }

    /// Takes a step; whether the walk is done and has replied.
    pub(crate) fn walk_on(&mut self, found: Lookup, args: &Args<'_>, shards: &mut dyn Shards) -> bool {
        let Some(mut walking) = self.walking.take() else { return true };
        let started = time::ticks();
        let step = self.with_context(shards, None, |cx| {
            cx.effects.begin();
            let step = walking.walk.step(cx, STEP_KEYS);
            // Keys whose time has come may have gone; the command itself changes nothing.
            cx.effects.finish(cx.database, None, std::iter::empty());
            step
        });
        let ended = time::ticks();
        walking.nanos += time::ticks_to_ns(started, ended);
        walking.is_paused = step == Step::Paused;
        if step != Step::Done {
            self.walking = Some(walking);
            return false;
        }
        walking.walk.finish(&mut self.reply);
        self.wait_for_position(walking.seen_position);
        if let Lookup::Found(command) = found {
            self.walked(command, args, walking.nanos);
        }
        true
    }

    /// A walk has ended, which took so long in all.
    fn walked(&mut self, command: Command, args: &Args<'_>, nanos: u64) {
        self.commands += 1;
        self.ticks = time::ticks();
        self.called(command, args, nanos, true);
    }
}
