//! SSCAN: a walk through a set in steps, while it changes.
//!
//! A packed set comes at once, as in Redis; a table in steps with the guarantee of `dict.rs`.

use super::{Set, Shape};
use crate::context::Context;
use crate::listpack::Item;
use crate::scan::parse_cursor;
use crate::scan_found::Found;
use crate::scan_options::ScanOptions;
use simurgh_protocol::{Args, CommandError};

/// `SSCAN key cursor [MATCH pattern] [COUNT count]`: the next cursor, 0 at the end, and some members.
pub fn sscan(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let mut cursor = parse_cursor(args.at(2)).ok_or(CommandError::InvalidCursor)?;
    let key = cx.first_key(args);
    let (set, reply) = cx.look::<Set>(&key)?;
    let mut found = Found::new(reply.protocol());
    match set {
        None => cursor = 0,
        Some(set) => {
            let options = ScanOptions::parse(args, 3, |index| ScanOptions::without_values(args, index))?;
            cursor = walk(&set, cursor, &options, &mut found);
        }
    }
    found.answer(cursor, reply);
    Ok(())
}

/// Walks on from `cursor` until enough members were seen; the next cursor.
fn walk(set: &Set, cursor: u64, options: &ScanOptions, found: &mut Found) -> u64 {
    fn meet(found: &mut Found, member: &Item<'_>, options: &ScanOptions) {
        found.meet(member, options, |reply| {
            member.write_to(reply);
            1
        });
    }
    let Shape::Table(table) = set.shape() else {
        set.iter().for_each(|item| meet(found, &item, options));
        return 0;
    };
    found.walk(cursor, options, |found, cursor| table.scan(cursor, |member| meet(found, &Item::Bytes(member), options)))
}
