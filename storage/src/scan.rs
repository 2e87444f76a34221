//! SCAN: a walk through a database in steps, while it changes.
//!
//! ```text
//! cursor:  [ position in the slot's table (up to 16 bits) ][ slot (14) ]
//! ```
//!
//! Slots are walked in order and the buckets of a slot's table in reverse-binary order, which keeps its place over any growth or
//! shrinking. So a key that is there from the first call to the last is returned at least once; one that comes or goes in
//! between may or may not be, and one may be returned twice. Slots without a key are skipped by the group, so a step through a
//! sparse database is short.

use crate::context::Context;
use crate::entry::EntryRef;
use crate::key_hash::SLOTS;
use crate::scan_options::ScanOptions;
use crate::walk::Step;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::resp::Protocol;
use simurgh_protocol::{Args, CommandError, Reply};

/// Bits of the cursor that hold the slot.
const SLOT_BITS: u32 = SLOTS.trailing_zeros();

/// What a call asks for.
#[derive(Debug)]
struct Options {
    common: ScanOptions,
    type_name: Option<Vec<u8>>,
}

impl Options {
    fn parse(args: &Args<'_>) -> Result<Self, CommandError> {
        let mut type_name = None;
        let common = ScanOptions::parse(args, 2, |index| match args.get(index + 1) {
            Some(name) if args.is(index, "TYPE") => {
                type_name = Some(name.to_vec());
                Ok(2)
            }
            Some(_) | None => ScanOptions::without_values(args, index),
        })?;
        Ok(Self { common, type_name })
    }

    fn wants(&self, entry: EntryRef<'_>) -> bool {
        self.type_name.as_ref().is_none_or(|name| entry.type_name().as_bytes().eq_ignore_ascii_case(name))
            && self.common.wants(entry.key())
    }
}

/// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`: the next cursor, 0 at the end, and some keys.
pub fn scan(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let mut call = Call::begin(args, cx.reply.protocol())?;
    while call.step(cx, u64::MAX) != Step::Done {}
    call.finish(cx.reply);
    Ok(())
}

/// The slot in which a call with this cursor begins: its shard is the first that it needs.
#[must_use]
pub fn first_slot(cursor: &[u8]) -> Option<usize> {
    parse_cursor(cursor).map(|cursor| cursor as usize & (SLOTS - 1))
}

/// A call of SCAN under way. It can be taken in steps, each of which needs one shard; between two of them keys may come and go
/// as they may between two calls.
#[derive(Debug)]
pub struct Call {
    options: Options,
    slot: usize,
    position: u64,
    seen: u64,
    /// The next cursor stands before the keys and is known after them.
    found: Reply,
    count: usize,
}

impl Call {
    /// Reads the request.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn begin(args: &Args<'_>, protocol: Protocol) -> Result<Self, CommandError> {
        let cursor = parse_cursor(args.at(1)).ok_or(CommandError::InvalidCursor)?;
        let (slot, position) = (cursor as usize & (SLOTS - 1), cursor >> SLOT_BITS);
        Ok(Self { options: Options::parse(args)?, slot, position, seen: 0, found: Reply::new(protocol), count: 0 })
    }

    /// The slot in which it goes on.
    #[must_use]
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// Walks on, through one shard at the most, until so many more keys were seen.
    pub fn step(&mut self, cx: &mut Context<'_>, limit: u64) -> Step {
        let (now_ms, mut expired) = (cx.now_ms, Vec::new());
        let until = self.options.common.count.min(self.seen.saturating_add(limit));
        let database = cx.shards.shard(cx.layout.shard_of_slot(self.slot)).database(cx.database);
        let end = database.slots().end;
        while self.slot < end && self.seen < until {
            match database.next_occupied(self.slot) {
                Some(next) if next == self.slot => {
                    self.position = database.scan(self.slot, self.position, |entry| {
                        self.seen += 1;
                        if entry.expires_at().is_some_and(|at| at <= now_ms) {
                            expired.push(entry.key().to_vec());
                        } else if self.options.wants(entry) {
                            self.found.bulk(entry.key());
                            self.count += 1;
                        }
                    });
                    self.slot += usize::from(self.position == 0);
                }
                Some(next) => (self.slot, self.position) = (next, 0),
                None => (self.slot, self.position) = (end, 0),
            }
        }
        for key in &expired {
            cx.peek(&cx.key(key));
        }
        if self.slot >= SLOTS || self.seen >= self.options.common.count {
            Step::Done
        } else if self.slot >= end {
            Step::NextShard
        } else {
            Step::Paused
        }
    }

    /// Writes the reply.
    pub fn finish(self, reply: &mut Reply) {
        let next = if self.slot >= SLOTS { 0 } else { self.position << SLOT_BITS | self.slot as u64 };
        reply.array(2);
        reply.bulk(itoa::Buffer::new().format(next).as_bytes());
        reply.array(self.count);
        reply.buffer().extend_from_slice(self.found.bytes());
    }
}

/// Reads a cursor as Redis does: an unsigned number as C's `strtoull` takes one, blanks and a sign in front included.
/// A NUL ends the text, as it does there.
pub(crate) fn parse_cursor(text: &[u8]) -> Option<u64> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or(text);
    if let Some(number) = parse_i64(text) {
        return u64::try_from(number).ok();
    }
    let blanks = text.iter().take_while(|byte| byte.is_ascii_whitespace() || **byte == 0x0b).count();
    let (negative, digits) = match &text[blanks..] {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(if negative { number.wrapping_neg() } else { number })
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
