//! HSCAN: a walk through a hash in steps, while it changes.
//!
//! A packed hash comes at once, as in Redis; a table in steps with the guarantee of `dict.rs`.

use super::{Hash, field_clock};
use crate::context::Context;
use crate::scan::parse_cursor;
use crate::scan_options::ScanOptions;
use simurgh_protocol::{Args, CommandError, Reply};

/// `HSCAN key cursor [MATCH pattern] [COUNT count] [NOVALUES]`: the next cursor, 0 at the end, and some fields with their values.
pub fn hscan(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let mut cursor = parse_cursor(args.at(2)).ok_or(CommandError::InvalidCursor)?;
    let (key, now_ms) = (cx.first_key(args), field_clock(cx));
    let (hash, reply) = cx.look::<Hash>(&key)?;
    let Some(hash) = hash else {
        reply.array(2);
        reply.bulk(b"0");
        reply.array(0);
        return Ok(());
    };
    let mut has_values = true;
    let options = ScanOptions::parse(args, 3, |index| {
        let is_own = args.is(index, "NOVALUES");
        has_values &= !is_own;
        Ok(usize::from(is_own))
    })?;
    // The next cursor stands before the fields and is known after them.
    let (mut found, mut items, mut seen) = (Reply::new(reply.protocol()), 0, 0);
    loop {
        cursor = hash.scan(cursor, |row| {
            seen += 1;
            let is_wanted = row.field.with_text(|text| options.wants(text));
            if !is_wanted || !row.is_live(now_ms) {
                return;
            }
            row.field.write_to(&mut found);
            items += 1;
            if has_values {
                row.value.write_to(&mut found);
                items += 1;
            }
        });
        if cursor == 0 || seen >= options.count {
            break;
        }
    }
    reply.array(2);
    reply.bulk(itoa::Buffer::new().format(cursor).as_bytes());
    reply.array(items);
    reply.buffer().extend_from_slice(found.bytes());
    Ok(())
}
