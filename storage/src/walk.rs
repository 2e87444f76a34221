//! Commands that walk through a whole database, in steps: KEYS and SCAN. A step needs one shard and sees a bounded number of keys, so
//! that others get their turn between two of them.
//!
//! What that costs: a KEYS in steps is no snapshot. A key that is there from its beginning to its end is answered once; one that
//! comes, goes or is renamed meanwhile may or may not be. Small databases are walked in one go (see [`KEYS_AT_ONCE`]).

use crate::context::Context;
use crate::key_hash::SLOTS;
use crate::scan;
use crate::shard::{Layout, Shards};
use simurgh_protocol::command::DataCommand;
use simurgh_protocol::glob::Glob;
use simurgh_protocol::resp::Protocol;
use simurgh_protocol::{Args, Reply};

/// Up to so many keys KEYS answers from one moment, with every shard held: about a millisecond.
pub const KEYS_AT_ONCE: usize = 8192;

/// How far a step has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The command is done.
    Done,
    /// The shard is done, others follow.
    NextShard,
    /// Enough for one step.
    Paused,
}

/// A command that walks.
#[derive(Debug)]
pub enum Walk {
    /// KEYS, with more keys than are answered at once.
    Keys(Keys),
    /// SCAN.
    Scan(scan::Call),
}

impl Walk {
    /// The shards that a request needs at first where those are fewer than its row says.
    #[must_use]
    pub fn first_shard(command: DataCommand, args: &Args<'_>, layout: &Layout) -> Option<usize> {
        let slot = if command == DataCommand::Scan { scan::first_slot(args.get(1)?)? } else { return None };
        Some(layout.shard_of_slot(slot))
    }

    /// The walk of a request, if that is what it asks for and it is large enough. What is wrong with a request its handler says.
    pub fn begin(
        command: DataCommand,
        args: &Args<'_>,
        (database, layout): (usize, &Layout),
        protocol: Protocol,
        shards: &mut dyn Shards,
    ) -> Option<Self> {
        if command == DataCommand::Scan {
            return scan::Call::begin(args, protocol).ok().map(Self::Scan);
        }
        let is_large = command == DataCommand::Keys && {
            let count: usize = (0..layout.shards).map(|index| shards.shard(index).database(database).len()).sum();
            count > KEYS_AT_ONCE
        };
        is_large.then(|| Self::Keys(Keys::begin(args, protocol)))
    }

    /// The shard that the next step needs.
    #[must_use]
    pub fn shard(&self, layout: &Layout) -> usize {
        layout.shard_of_slot(match self {
            Self::Keys(keys) => keys.slot,
            Self::Scan(call) => call.slot(),
        })
    }

    /// Walks on, through one shard at the most, until so many more keys were seen.
    pub fn step(&mut self, cx: &mut Context<'_>, limit: u64) -> Step {
        match self {
            Self::Keys(keys) => keys.step(cx, limit),
            Self::Scan(call) => call.step(cx, limit),
        }
    }

    /// Writes the reply.
    pub fn finish(self, reply: &mut Reply) {
        match self {
            Self::Keys(keys) => keys.finish(reply),
            Self::Scan(call) => call.finish(reply),
        }
    }
}

/// A KEYS under way.
#[derive(Debug)]
pub struct Keys {
    pattern: Glob,
    slot: usize,
    found: Reply,
    count: usize,
}

impl Keys {
    fn begin(args: &Args<'_>, protocol: Protocol) -> Self {
        Self { pattern: Glob::new(args.at(1)), slot: 0, found: Reply::new(protocol), count: 0 }
    }

    fn step(&mut self, cx: &mut Context<'_>, limit: u64) -> Step {
        let database = cx.shards.shard(cx.layout.shard_of_slot(self.slot)).database(cx.database);
        let mut seen = 0;
        // A slot is taken whole, and so no key twice.
        while let Some(slot) = database.next_occupied(self.slot) {
            database.for_each_in(slot, |entry| {
                seen += 1;
                let is_live = entry.expires_at().is_none_or(|at| at > cx.now_ms);
                if is_live && self.pattern.matches(entry.key()) {
                    self.found.bulk(entry.key());
                    self.count += 1;
                }
            });
            self.slot = slot + 1;
            if seen >= limit && self.slot < database.slots().end {
                return Step::Paused;
            }
        }
        self.slot = database.slots().end;
        if self.slot >= SLOTS { Step::Done } else { Step::NextShard }
    }

    fn finish(self, reply: &mut Reply) {
        reply.array(self.count);
        reply.buffer().extend_from_slice(self.found.bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;
    use crate::{generic, keyspace, string};
    use std::collections::BTreeSet;

    fn filled(count: usize) -> Fixture {
        let mut fixture = Fixture::new();
        for index in 0..count {
            fixture.reply(string::setnx, &["SETNX", &format!("k{index}"), "v"]);
        }
        fixture
    }

    fn words(reply: &[u8]) -> Vec<String> {
        String::from_utf8_lossy(reply).split("\r\n").filter(|word| word.starts_with('k')).map(str::to_owned).collect()
    }

    /// The keys that a walk of `pattern` answers when `between` happens between its steps, each of which sees `limit` keys.
    fn walk(fixture: &mut Fixture, pattern: &str, limit: u64, mut between: impl FnMut(&mut Fixture)) -> Vec<String> {
        let range = |start, length| simurgh_protocol::resp::Range { start, length };
        let line = format!("KEYS{pattern}");
        let ranges = [range(0, 4), range(4, pattern.len() as u32)];
        let mut keys = Keys::begin(&Args::new(line.as_bytes(), &ranges), Protocol::Resp2);
        let mut step = Step::Paused;
        while step != Step::Done {
            step = fixture.with(|cx| keys.step(cx, limit));
            between(fixture);
        }
        let mut reply = Reply::new(Protocol::Resp2);
        keys.finish(&mut reply);
        let found = words(reply.bytes());
        assert!(reply.bytes().starts_with(format!("*{}\r\n", found.len()).as_bytes()));
        found
    }

    #[test]
    fn in_steps_of_any_size_keys_answers_what_it_does_at_once() {
        let mut fixture = filled(3000);
        for limit in [1, 7, 1000, u64::MAX] {
            let mut found = walk(&mut fixture, "k*7", limit, |_| {});
            found.sort();
            let mut at_once = words(fixture.reply(keyspace::keys, &["KEYS", "k*7"]).replace(' ', "\r\n").as_bytes());
            at_once.sort();
            assert_eq!(found, at_once);
            assert_eq!(found.len(), 300);
        }
    }

    #[test]
    fn keys_that_stay_are_answered_once_whatever_comes_and_goes() {
        let mut fixture = filled(2000);
        let mut round = 0;
        let found = walk(&mut fixture, "k*", 20, |fixture| {
            // The even ones go, as many others come, and tables grow and shrink.
            for _ in 0..40 {
                fixture.reply(generic::del, &["DEL", &format!("k{}", round * 2 % 2000)]);
                fixture.reply(string::setnx, &["SETNX", &format!("knew{round}"), "v"]);
                round += 1;
            }
        });
        let distinct: BTreeSet<&String> = found.iter().collect();
        assert_eq!(distinct.len(), found.len(), "no key twice");
        for index in (1..2000).step_by(2) {
            assert!(distinct.contains(&format!("k{index}")), "k{index} was there all the time");
        }
    }
}
