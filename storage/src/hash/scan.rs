//! HSCAN: a walk through a hash in steps, while it changes.
//!
//! A packed hash comes at once, as in Redis; a table in steps with the guarantee of `dict.rs`.

use super::{Hash, field_clock};
use crate::context::Context;
use crate::scan::parse_cursor;
use simurgh_protocol::glob::Glob;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError, Reply};

/// Fields visited by a call that does not say how many.
const COUNT: u64 = 10;

struct Options {
    count: u64,
    pattern: Option<Glob>,
    has_values: bool,
}

impl Options {
    fn parse(args: &Args<'_>) -> Result<Self, CommandError> {
        let mut options = Self { count: COUNT, pattern: None, has_values: true };
        let mut index = 3;
        while index < args.len() {
            if args.is(index, "NOVALUES") {
                options.has_values = false;
                index += 1;
                continue;
            }
            let value = args.get(index + 1).ok_or(CommandError::Syntax)?;
            if args.is(index, "COUNT") {
                let count = parse_i64(value).ok_or(CommandError::NotAnInteger)?;
                options.count = u64::try_from(count).ok().filter(|count| *count > 0).ok_or(CommandError::Syntax)?;
            } else if args.is(index, "MATCH") {
                options.pattern = Some(Glob::new(value)).filter(|pattern| !pattern.matches_everything());
            } else {
                return Err(CommandError::Syntax);
            }
            index += 2;
        }
        Ok(options)
    }
}

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
    let options = Options::parse(args)?;
    // The next cursor stands before the fields and is known after them.
    let (mut found, mut items, mut seen) = (Reply::new(reply.protocol()), 0, 0);
    loop {
        cursor = hash.scan(cursor, |row| {
            seen += 1;
            let is_wanted = options.pattern.as_ref().is_none_or(|glob| row.field.with_text(|text| glob.matches(text)));
            if !is_wanted || !row.is_live(now_ms) {
                return;
            }
            row.field.write_to(&mut found);
            items += 1;
            if options.has_values {
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
