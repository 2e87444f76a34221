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
use crate::key_hash::SLOTS;
use simurgh_protocol::glob::Glob;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError, Reply};

/// Bits of the cursor that hold the slot.
const SLOT_BITS: u32 = SLOTS.trailing_zeros();
/// Keys visited by a call that does not say how many.
const COUNT: u64 = 10;

/// What a call asks for.
struct Options<'a> {
    count: u64,
    pattern: Option<Glob>,
    type_name: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn parse(args: &Args<'a>) -> Result<Self, CommandError> {
        let mut options = Self { count: COUNT, pattern: None, type_name: None };
        let mut index = 2;
        while index < args.len() {
            if args.is(index, "NOVALUES") {
                return Err(CommandError::Text("ERR NOVALUES option can only be used in HSCAN"));
            }
            let value = args.get(index + 1).ok_or(CommandError::Syntax)?;
            if args.is(index, "COUNT") {
                let count = parse_i64(value).ok_or(CommandError::NotAnInteger)?;
                options.count = u64::try_from(count).ok().filter(|count| *count > 0).ok_or(CommandError::Syntax)?;
            } else if args.is(index, "MATCH") {
                options.pattern = Some(Glob::new(value)).filter(|pattern| !pattern.matches_everything());
            } else if args.is(index, "TYPE") {
                options.type_name = Some(value);
            } else {
                return Err(CommandError::Syntax);
            }
            index += 2;
        }
        Ok(options)
    }
}

/// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`: the next cursor, 0 at the end, and some keys.
pub fn scan(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let cursor = parse_cursor(args.at(1)).ok_or(CommandError::InvalidCursor)?;
    let options = Options::parse(args)?;
    // The next cursor stands before the keys and is known after them.
    let mut found = Found { reply: Reply::new(cx.reply.protocol()), count: 0, expired: Vec::new() };
    let next = walk(cx, cursor, &options, &mut found);
    for key in &found.expired {
        cx.peek(&cx.key(key));
    }
    cx.reply.array(2);
    cx.reply.bulk(itoa::Buffer::new().format(next).as_bytes());
    cx.reply.array(found.count);
    cx.reply.buffer().extend_from_slice(found.reply.bytes());
    Ok(())
}

/// What a call has come upon.
struct Found {
    reply: Reply,
    count: usize,
    expired: Vec<Vec<u8>>,
}

/// Walks on from `cursor` until enough keys were seen; the next cursor.
fn walk(cx: &mut Context<'_>, cursor: u64, options: &Options<'_>, found: &mut Found) -> u64 {
    let (mut slot, mut position) = (cursor as usize & (SLOTS - 1), cursor >> SLOT_BITS);
    let (now_ms, mut seen) = (cx.now_ms, 0);
    loop {
        let database = cx.shards.shard(cx.layout.shard_of_slot(slot)).database(cx.database);
        match database.next_occupied(slot) {
            Some(next) if next == slot => {
                position = database.scan(slot, position, |entry| {
                    seen += 1;
                    let is_wanted =
                        options.type_name.is_none_or(|name| entry.type_name().as_bytes().eq_ignore_ascii_case(name))
                            && options.pattern.as_ref().is_none_or(|pattern| pattern.matches(entry.key()));
                    if entry.expires_at().is_some_and(|at| at <= now_ms) {
                        found.expired.push(entry.key().to_vec());
                    } else if is_wanted {
                        found.reply.bulk(entry.key());
                        found.count += 1;
                    }
                });
                slot += usize::from(position == 0);
            }
            Some(next) => (slot, position) = (next, 0),
            None => (slot, position) = (database.slots().end, 0),
        }
        if slot >= SLOTS {
            return 0;
        }
        if seen >= options.count {
            return position << SLOT_BITS | slot as u64;
        }
    }
}

/// Reads a cursor as Redis does: an unsigned number as C's `strtoull` takes one, blanks and a sign in front included.
/// A NUL ends the text, as it does there.
fn parse_cursor(text: &[u8]) -> Option<u64> {
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
