//! Commands that wait for a key: what a waiting one is, and who waits for which key.
//!
//! A handler that finds nothing to answer calls [`Context::block`] and returns. Whoever runs it then leaves a [`Waiter`], which holds the
//! command itself, with the shards of its keys. A change of such a key is noted in [`Effects::ready`](crate::Effects::ready); before
//! the shards are let go, the commands that wait for it are run again, in the order of their arrival (see `actors/system`). So a
//! waiter is served at the very point of the stream of commands at which it could be, and blocked clients cost a writer nothing
//! but the look whether anybody waits.
//!
//! <https://redis.io/docs/latest/commands/blpop/>

use crate::context::Context;
use crate::key_hash::Key;
use crate::shard::Shard;
use simurgh_protocol::command::DataCommand;
use simurgh_protocol::long_double::LongDouble;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::resp::{Protocol, Range};
use simurgh_protocol::{Args, CommandError};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// What a command waits for at its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaits {
    /// A list that is there.
    List,
    /// A sorted set that is there.
    SortedSet,
    /// A stream's new entry.
    Stream,
    /// The same for a consumer group, which may also vanish: any change of the key is looked at.
    Group,
}

impl Awaits {
    /// Whether a value of type `type_name` (none: the key is not there) is worth a look.
    #[must_use]
    pub fn may_be_served_by(self, type_name: Option<&str>) -> bool {
        match self {
            Self::List => type_name == Some("list"),
            Self::SortedSet => type_name == Some("zset"),
            Self::Stream => type_name == Some("stream"),
            Self::Group => true,
        }
    }
}

/// The null with which a command answers where it cannot wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Null {
    /// Of a command whose answer is an array.
    Array,
    /// Of a command whose answer is a string.
    Bulk,
}

/// A command's wish to wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The keys that it waits for.
    pub keys: Vec<Box<[u8]>>,
    /// What for.
    pub awaits: Awaits,
    /// When it gives up, in milliseconds of Unix time; never if there is none.
    pub deadline_ms: Option<i64>,
    /// The command to run again, where that is not the one that came (`$` of XREAD has become an id).
    pub words: Option<Vec<Box<[u8]>>>,
}

/// When a command that waits gives up, from a timeout in seconds (0: never).
pub fn deadline_of_seconds(text: &[u8], now_ms: i64) -> Result<Option<i64>, CommandError> {
    let seconds = LongDouble::parse(text).ok_or(CommandError::Text("ERR timeout is not a float or out of range"))?;
    let milliseconds = (seconds.to_f64().unwrap_or(f64::INFINITY) * 1000.0).ceil();
    if milliseconds < 0.0 {
        return Err(CommandError::Text("ERR timeout is negative"));
    }
    // The nearest double above the largest integer is out of range itself.
    if milliseconds >= i64::MAX as f64 {
        return Err(CommandError::Text("ERR timeout is out of range"));
    }
    deadline(milliseconds as i64, now_ms)
}

/// When a command that waits gives up, from a timeout in milliseconds (0: never).
pub fn deadline_of_milliseconds(text: &[u8], now_ms: i64) -> Result<Option<i64>, CommandError> {
    let milliseconds = parse_i64(text).ok_or(CommandError::Text("ERR timeout is not an integer or out of range"))?;
    if milliseconds < 0 {
        return Err(CommandError::Text("ERR timeout is negative"));
    }
    deadline(milliseconds, now_ms)
}

fn deadline(milliseconds: i64, now_ms: i64) -> Result<Option<i64>, CommandError> {
    if milliseconds == 0 {
        return Ok(None);
    }
    now_ms.checked_add(milliseconds).map(Some).ok_or(CommandError::Text("ERR timeout is out of range"))
}

impl Context<'_> {
    /// The command waits for its keys; where it may not, it answers `null` at once, as after its time.
    pub fn block(&mut self, block: Block, null: Null) {
        if self.may_block {
            self.effects.block = Some(block);
            return;
        }
        match null {
            Null::Array => self.reply.null_array(),
            Null::Bulk => self.reply.null(),
        }
    }
}

/// Where a waiter is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum WaiterState {
    /// It waits.
    Waiting = 0,
    /// Somebody runs its command, and then either answers or lets it wait on.
    Served = 1,
    /// It was answered, its time is over, its client has gone, or somebody else ended its wait.
    Ended = 2,
}

/// On whose behalf a command waits, and how it is run.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The client.
    pub client: u64,
    /// Its database.
    pub database: usize,
    /// The protocol of its replies.
    pub protocol: Protocol,
    /// CLIENT NO-TOUCH.
    pub no_touch: bool,
    /// The shards that its command needs.
    pub shards: u64,
}

/// A command that waits, on behalf of a client.
#[derive(Debug)]
pub struct Waiter {
    /// On whose behalf, and how it is run.
    pub terms: Terms,
    /// The command.
    pub command: DataCommand,
    bytes: Vec<u8>,
    ranges: Vec<Range>,
    /// What it waits for.
    pub awaits: Awaits,
    /// The keys that it waits for.
    pub keys: Vec<Box<[u8]>>,
    /// When it gives up.
    pub deadline_ms: Option<i64>,
    state: AtomicU8,
}

impl Waiter {
    /// The command `args`, which wants to wait as `block` says.
    #[must_use]
    pub fn new(terms: Terms, command: DataCommand, args: &Args<'_>, block: Block) -> Self {
        let mut waiter = Self {
            terms,
            command,
            bytes: Vec::new(),
            ranges: Vec::new(),
            awaits: block.awaits,
            keys: block.keys,
            deadline_ms: block.deadline_ms,
            state: AtomicU8::new(WaiterState::Waiting as u8),
        };
        match block.words {
            Some(words) => words.iter().for_each(|word| waiter.push(word)),
            None => args.from(0).for_each(|word| waiter.push(word)),
        }
        waiter
    }

    fn push(&mut self, word: &[u8]) {
        self.ranges.push(Range { start: self.bytes.len() as u32, length: word.len() as u32 });
        self.bytes.extend_from_slice(word);
    }

    /// The words of its command.
    #[must_use]
    pub fn args(&self) -> Args<'_> {
        Args::new(&self.bytes, &self.ranges)
    }

    /// Where it is in its life.
    #[must_use]
    pub fn state(&self) -> WaiterState {
        match self.state.load(Ordering::Acquire) {
            0 => WaiterState::Waiting,
            1 => WaiterState::Served,
            _ => WaiterState::Ended,
        }
    }

    /// Ends the wait from outside; whether there was one to end. Who runs its command at this moment decides first, and may find that
    /// it has to wait on: then it is ended all the same. That takes as long as one command.
    pub fn end(&self) -> bool {
        loop {
            if self.turn(WaiterState::Waiting, WaiterState::Ended) {
                return true;
            }
            if self.state() != WaiterState::Served {
                return false;
            }
            std::hint::spin_loop();
        }
    }

    /// Moves it on; whether it was in `from`.
    pub fn turn(&self, from: WaiterState, to: WaiterState) -> bool {
        self.state.compare_exchange(from as u8, to as u8, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// A key that has changed and that commands wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyKey {
    /// Its database.
    pub database: usize,
    /// Its name.
    pub key: Box<[u8]>,
}

impl Shard {
    /// A waiter waits for one of its keys, which is in this shard.
    pub fn wait(&mut self, key: &Key<'_>, waiter: &Arc<Waiter>) {
        let queue = self.waiting.entry((waiter.terms.database, key.bytes.to_vec())).or_default();
        // A key that is named twice is waited for once.
        if !queue.iter().any(|other| Arc::ptr_eq(other, waiter)) {
            queue.push_back(waiter.clone());
        }
    }

    /// A waiter waits for a key no longer.
    pub fn stop_waiting(&mut self, key: &[u8], waiter: &Waiter) {
        let place = (waiter.terms.database, key.to_vec());
        if let Some(queue) = self.waiting.get_mut(&place) {
            queue.retain(|other| !std::ptr::eq(&**other, waiter));
            if queue.is_empty() {
                self.waiting.remove(&place);
            }
        }
    }

    /// Whether anybody waits for a key.
    #[inline]
    pub(crate) fn is_awaited(&self, database: usize, key: &[u8]) -> bool {
        !self.waiting.is_empty() && self.waiting.contains_key(&(database, key.to_vec()))
    }

    /// Those who wait for a key, first come first.
    #[must_use]
    pub fn waiters(&self, database: usize, key: &[u8]) -> VecDeque<Arc<Waiter>> {
        self.waiting.get(&(database, key.to_vec())).cloned().unwrap_or_default()
    }

    fn awaited_in(&self, database: usize) -> Vec<Vec<u8>> {
        let from = (database, Vec::new());
        self.waiting.range(from..).take_while(|((at, _), _)| *at == database).map(|((_, key), _)| key.clone()).collect()
    }

    /// The keys of a database that somebody waits for, to be looked at since all of it has changed.
    pub(crate) fn awaited_now(&self, database: usize) -> impl Iterator<Item = ReadyKey> {
        let key = move |key: Vec<u8>| ReadyKey { database, key: key.into() };
        self.awaited_in(database).into_iter().map(key)
    }

    /// Number of keys that somebody waits for, and of those for which a vanished key counts too.
    #[must_use]
    pub fn awaited_keys(&self) -> (usize, usize) {
        let groups = self.waiting.values().filter(|queue| queue.iter().any(|waiter| waiter.awaits == Awaits::Group));
        (self.waiting.len(), groups.count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiter() -> Waiter {
        let terms = Terms { client: 1, database: 0, protocol: Protocol::Resp2, no_touch: false, shards: 1 };
        let block = Block { keys: Vec::new(), awaits: Awaits::List, deadline_ms: None, words: None };
        Waiter::new(terms, DataCommand::Blpop, &Args::new(b"", &[]), block)
    }

    /// Its command runs elsewhere when CLIENT UNBLOCK comes.
    fn ended_while_served(outcome: WaiterState) -> bool {
        let waiter = waiter();
        assert!(waiter.turn(WaiterState::Waiting, WaiterState::Served));
        std::thread::scope(|scope| {
            let ends = scope.spawn(|| waiter.end());
            (0..10_000).for_each(|_| std::hint::spin_loop());
            assert!(!ends.is_finished(), "it is not known yet");
            assert!(waiter.turn(WaiterState::Served, outcome));
            ends.join().unwrap()
        })
    }

    #[test]
    fn a_wait_that_goes_on_after_a_try_is_ended_by_who_came_meanwhile() {
        assert!(ended_while_served(WaiterState::Waiting));
        assert!(!ended_while_served(WaiterState::Ended));
    }

    /// Redis 8.2.3 answered so.
    #[test]
    fn timeouts() {
        let at = |text: &str| deadline_of_seconds(text.as_bytes(), 1000).map_err(|error| error.to_string());
        assert_eq!(at("0"), Ok(None));
        assert_eq!(at("0.0001"), Ok(Some(1001)));
        assert_eq!(at("1e-20"), Ok(Some(1001)));
        assert_eq!(at("0x1"), Ok(Some(2000)));
        for text in ["abc", "nan", " 1", ""] {
            assert_eq!(at(text), Err("ERR timeout is not a float or out of range".into()), "{text}");
        }
        assert_eq!(at("-1"), Err("ERR timeout is negative".into()));
        for text in ["inf", "1e300", "9223372036854775807", "9223372036854775"] {
            assert_eq!(at(text), Err("ERR timeout is out of range".into()), "{text}");
        }
        let at = |text: &str| deadline_of_milliseconds(text.as_bytes(), 1000).map_err(|error| error.to_string());
        assert_eq!((at("0"), at("5")), (Ok(None), Ok(Some(1005))));
        assert_eq!(at("1.5"), Err("ERR timeout is not an integer or out of range".into()));
        assert_eq!(at("-1"), Err("ERR timeout is negative".into()));
        assert_eq!(at("9223372036854775807"), Err("ERR timeout is out of range".into()));
    }
}
