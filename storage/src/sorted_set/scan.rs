//! ZSCAN: a walk through a sorted set in steps, while it changes.
//!
//! A packed set comes at once, as in Redis; a large one in steps with the guarantee of `dict.rs`. Its scores come with 17 digits, as
//! Redis writes them here and nowhere else.

use super::SortedSet;
use crate::context::Context;
use crate::listpack::Item;
use crate::packed_or::Form;
use crate::scan::parse_cursor;
use crate::scan_found::Found;
use crate::scan_options::ScanOptions;
use simurgh_protocol::number::{format_f64, format_f64_17};
use simurgh_protocol::{Args, CommandError};

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

/// `ZSCAN key cursor [MATCH pattern] [COUNT count] [NOSCORES]`: the next cursor, 0 at the end, and some members with their scores.
pub fn zscan(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let mut cursor = parse_cursor(args.at(2)).ok_or(CommandError::InvalidCursor)?;
    let key = cx.first_key(args);
    let (set, reply) = cx.look::<SortedSet>(&key)?;
    let mut found = Found::new(reply.protocol());
    match set {
        None => cursor = 0,
        Some(set) => cursor = walk(&set, cursor, &Options::parse(args)?, &mut found),
    }
    found.answer(cursor, reply);
    Ok(())
}

/// Walks on from `cursor` until enough members were seen; the next cursor.
fn walk(set: &SortedSet, cursor: u64, options: &Options, found: &mut Found) -> u64 {
    let meet = |found: &mut Found, member: Item<'_>, score: &dyn Fn() -> String| {
        found.meet(&member, &options.common, |reply| {
            member.write_to(reply);
            if options.has_scores {
                reply.bulk(score().as_bytes());
            }
            1 + usize::from(options.has_scores)
        });
    };
    let Form::Large(ranked) = set.0.get() else {
        set.members(0..set.len()).for_each(|(member, score)| meet(found, member, &|| format_f64(score)));
        return 0;
    };
    found.walk(cursor, &options.common, |found, cursor| {
        ranked.scan(cursor, |member| meet(found, Item::Bytes(member.member()), &|| format_f64_17(member.score())))
    })
}
