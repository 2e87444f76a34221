//! SSCAN: a walk through a set in steps, while it changes.
//!
//! A packed set comes at once, as in Redis; a table in steps with the guarantee of `dict.rs`.

use super::{Set, Shape};
use crate::context::Context;
use crate::listpack::Item;
use crate::scan::parse_cursor;
use crate::scan_options::ScanOptions;
use simurgh_protocol::{Args, CommandError, Reply};

/// Steps through a table that a call takes at most for each member it is asked for: many may find none.
const STEPS_PER_MEMBER: u64 = 10;

/// What a call has come upon. The next cursor stands before the members and is known after them.
struct Found {
    reply: Reply,
    count: usize,
    seen: u64,
}

impl Found {
    fn meet(&mut self, item: &Item<'_>, options: &ScanOptions) {
        self.seen += 1;
        if item.with_text(|text| options.wants(text)) {
            item.write_to(&mut self.reply);
            self.count += 1;
        }
    }
}

/// `SSCAN key cursor [MATCH pattern] [COUNT count]`: the next cursor, 0 at the end, and some members.
pub fn sscan(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let mut cursor = parse_cursor(args.at(2)).ok_or(CommandError::InvalidCursor)?;
    let key = cx.first_key(args);
    let (set, reply) = cx.look::<Set>(&key)?;
    let mut found = Found { reply: Reply::new(reply.protocol()), count: 0, seen: 0 };
    match set {
        None => cursor = 0,
        Some(set) => {
            let options = ScanOptions::parse(args, 3, |index| ScanOptions::without_values(args, index))?;
            cursor = walk(&set, cursor, &options, &mut found);
        }
    }
    reply.array(2);
    reply.bulk(itoa::Buffer::new().format(cursor).as_bytes());
    reply.array(found.count);
    reply.buffer().extend_from_slice(found.reply.bytes());
    Ok(())
}

/// Walks on from `cursor` until enough members were seen; the next cursor.
fn walk(set: &Set, mut cursor: u64, options: &ScanOptions, found: &mut Found) -> u64 {
    let Shape::Table(table) = set.shape() else {
        set.iter().for_each(|item| found.meet(&item, options));
        return 0;
    };
    let mut steps = 0;
    loop {
        cursor = table.scan(cursor, |member| found.meet(&Item::Bytes(member), options));
        steps += 1;
        if cursor == 0 || found.seen >= options.count || steps >= options.count.saturating_mul(STEPS_PER_MEMBER) {
            return cursor;
        }
    }
}
