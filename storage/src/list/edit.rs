//! LSET, LINSERT, LREM, LTRIM: changes inside a list.

use super::read::range;
use super::{End, Limit, List, Side};
use crate::context::Context;
use crate::notify::Class;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};

/// The one 64-bit integer that counts of occurrences may not be: it has no opposite.
pub(super) const OUT_OF_RANGE: CommandError =
    CommandError::Text("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807");

/// `LSET key index element`: OK.
pub fn lset(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let limit = Limit::new(&cx.settings.packing);
    let Some(mut list) = cx.edit::<List>(&key)? else { return Err(CommandError::NoSuchKey) };
    let index = parse_i64(args.at(2)).ok_or(CommandError::NotAnInteger)?;
    let element = args.at(3);
    list.make_room(element.len(), 1, limit);
    if !list.set(index, element.into(), limit) {
        return Err(CommandError::Text("ERR index out of range"));
    }
    list.shrink(limit);
    drop(list);
    cx.changed(&key);
    cx.notify(Class::LIST, "lset", &key);
    cx.reply.ok();
    Ok(())
}

/// `LINSERT key BEFORE | AFTER pivot element`: the new length, -1 without the pivot, 0 without a list.
pub fn linsert(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let side = match () {
        () if args.is(2, "BEFORE") => Side::Before,
        () if args.is(2, "AFTER") => Side::After,
        () => return Err(CommandError::Syntax),
    };
    let key = cx.first_key(args);
    let limit = Limit::new(&cx.settings.packing);
    let Some(mut list) = cx.edit::<List>(&key)? else {
        cx.reply.integer(0);
        return Ok(());
    };
    let (pivot, element) = (args.at(3), args.at(4));
    list.make_room(element.len(), 1, limit);
    let is_inserted = list.insert(pivot.into(), side, element.into(), limit);
    let length = list.len();
    drop(list);
    if !is_inserted {
        cx.reply.integer(-1);
        return Ok(());
    }
    cx.changed(&key);
    cx.notify(Class::LIST, "linsert", &key);
    cx.reply.count(length);
    Ok(())
}

/// `LREM key count element`: how many were removed: up to `count` from the front, from the back if it is negative, all if it is 0.
pub fn lrem(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let count = parse_i64(args.at(2)).ok_or(CommandError::NotAnInteger)?;
    if count == i64::MIN {
        return Err(OUT_OF_RANGE);
    }
    let key = cx.first_key(args);
    let limit = Limit::new(&cx.settings.packing);
    let Some(mut list) = cx.edit::<List>(&key)? else {
        cx.reply.integer(0);
        return Ok(());
    };
    let end = if count < 0 { End::Back } else { End::Front };
    let count_max = if count == 0 { usize::MAX } else { usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX) };
    let removed = list.remove_equal(args.at(3).into(), end, count_max);
    if removed > 0 {
        list.shrink(limit);
    }
    drop(list);
    if removed > 0 {
        cx.effects.change_many(removed as u64 - 1);
        cx.changed(&key);
        cx.notify(Class::LIST, "lrem", &key);
        cx.notify_if_gone(&key);
    }
    cx.reply.count(removed);
    Ok(())
}

/// `LTRIM key start stop`: OK; only the elements between two indexes stay, both included.
pub fn ltrim(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let start = parse_i64(args.at(2)).ok_or(CommandError::NotAnInteger)?;
    let stop = parse_i64(args.at(3)).ok_or(CommandError::NotAnInteger)?;
    let key = cx.first_key(args);
    let limit = Limit::new(&cx.settings.packing);
    let removed = cx.edit::<List>(&key)?.map(|mut list| {
        let (length, kept) = (list.len(), range(list.len(), start, stop));
        list.remove_run(kept.end, length - kept.end);
        list.remove_run(0, kept.start);
        list.shrink(limit);
        length - kept.len()
    });
    if let Some(removed) = removed {
        // One that removes nothing is told of, but not logged.
        cx.effects.change_many(removed as u64);
        cx.tell_watchers(&key);
        cx.notify(Class::LIST, "ltrim", &key);
        cx.notify_if_gone(&key);
    }
    cx.reply.ok();
    Ok(())
}
