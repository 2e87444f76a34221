//! ZSCAN: a walk through a sorted set in steps, while it changes.
//!
//! A packed set comes at once, as in Redis; a large one in steps with the guarantee of `dict.rs`. Its scores come with 17 digits, as
//! Redis writes them here and nowhere else.

use super::SortedSet;
use crate::context::Context;
use crate::listpack::Item;
use crate::packed_or::Form;
use crate::scan::parse_cursor;
use crate::scan_options::ScanOptions;
use simurgh_protocol::number::{format_f64, format_f64_17};
use simurgh_protocol::{Args, CommandError, Reply};

/// What a call asks for.
struct Options {
    common: ScanOptions,
    has_scores: bool,
}

impl Options {
    fn parse(args: &Args<'_>) -> Result<Self, CommandError> {
        let mut has_scores = true;
        let common = ScanOptions::parse(args, 3, |index| {
            // Valkey has brought it.
            if args.is(index, "NOSCORES") {
                has_scores = false;
                return Ok(1);
            }
            ScanOptions::without_values(args, index)
        })?;
        Ok(Self { common, has_scores })
    }
}

/// What a call has come upon. The next cursor stands before the members and is known after them.
struct Found {
    reply: Reply,
    count: usize,
    seen: u64,
}

impl Found {
    fn meet(&mut self, member: Item<'_>, options: &Options, score: impl FnOnce() -> String) {
        self.seen += 1;
        if member.with_text(|text| options.common.wants(text)) {
            member.write_to(&mut self.reply);
            self.count += 1;
            if options.has_scores {
                self.reply.bulk(score().as_bytes());
                self.count += 1;
            }
        }
    }
}

/// `ZSCAN key cursor [MATCH pattern] [COUNT count] [NOSCORES]`: the next cursor, 0 at the end, and some members with their scores.
pub fn zscan(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let mut cursor = parse_cursor(args.at(2)).ok_or(CommandError::InvalidCursor)?;
    let key = cx.first_key(args);
    let (set, reply) = cx.look::<SortedSet>(&key)?;
    let mut found = Found { reply: Reply::new(reply.protocol()), count: 0, seen: 0 };
    match set {
        None => cursor = 0,
        Some(set) => cursor = walk(&set, cursor, &Options::parse(args)?, &mut found),
    }
    reply.array(2);
    reply.bulk(itoa::Buffer::new().format(cursor).as_bytes());
    reply.array(found.count);
    reply.buffer().extend_from_slice(found.reply.bytes());
    Ok(())
}

/// Walks on from `cursor` until enough members were seen; the next cursor.
fn walk(set: &SortedSet, mut cursor: u64, options: &Options, found: &mut Found) -> u64 {
    let Form::Large(ranked) = set.0.get() else {
        set.members(0..set.len()).for_each(|(member, score)| found.meet(member, options, || format_f64(score)));
        return 0;
    };
    loop {
        cursor = ranked.scan(cursor, |member| {
            found.meet(Item::Bytes(member.member()), options, || format_f64_17(member.score()));
        });
        if cursor == 0 || found.seen >= options.common.count {
            return cursor;
        }
    }
}
