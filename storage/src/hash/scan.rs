//! HSCAN: a walk through a hash in steps, while it changes.
//!
//! A packed hash comes at once, as in Redis; a table in steps with the guarantee of `dict.rs`.

use super::{Hash, field_clock};
use crate::context::Context;
use crate::scan::parse_cursor;
use crate::scan_found::Found;
use crate::scan_options::ScanOptions;
use simurgh_protocol::{Args, CommandError};

/// `HSCAN key cursor [MATCH pattern] [COUNT count] [NOVALUES]`: the next cursor, 0 at the end, and some fields with their values.
pub fn hscan(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let mut cursor = parse_cursor(args.at(2)).ok_or(CommandError::InvalidCursor)?;
    let (key, now_ms) = (cx.first_key(args), field_clock(cx));
    let (hash, reply) = cx.look::<Hash>(&key)?;
    let mut found = Found::new(reply.protocol());
    let Some(hash) = hash else {
        found.answer(0, reply);
        return Ok(());
    };
    let mut has_values = true;
    let options = ScanOptions::parse(args, 3, |index| {
        let is_own = args.is(index, "NOVALUES");
        has_values &= !is_own;
        Ok(usize::from(is_own))
    })?;
    cursor = found.walk(cursor, &options, |found, cursor| {
        hash.scan(cursor, |row| {
            found.meet(&row.field, &options, |found| {
                if !row.is_live(now_ms) {
                    return 0;
                }
                row.field.write_to(found);
                if has_values {
                    row.value.write_to(found);
                }
                1 + usize::from(has_values)
            });
        })
    });
    found.answer(cursor, reply);
    Ok(())
}
