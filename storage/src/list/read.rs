//! LLEN, LINDEX, LRANGE: commands that only read.

use super::{End, List};
use crate::context::Context;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};
use std::ops::Range;

/// `LLEN key`: the number of elements, 0 without a list.
pub fn llen(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let (list, reply) = cx.look::<List>(&key)?;
    reply.count(list.map_or(0, |list| list.len()));
    Ok(())
}

/// `LINDEX key index`: the element, negative indexes counting from the back, or null.
pub fn lindex(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let (list, reply) = cx.look::<List>(&key)?;
    let Some(list) = list else {
        reply.null();
        return Ok(());
    };
    let index = parse_i64(args.at(2)).ok_or(CommandError::NotAnInteger)?;
    match list.get(index) {
        Some(item) => item.write_to(reply),
        None => reply.null(),
    }
    Ok(())
}

/// `LRANGE key start stop`: the elements between two indexes, both included; negative ones count from the back.
pub fn lrange(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let start = parse_i64(args.at(2)).ok_or(CommandError::NotAnInteger)?;
    let stop = parse_i64(args.at(3)).ok_or(CommandError::NotAnInteger)?;
    let key = cx.first_key(args);
    let (list, reply) = cx.look::<List>(&key)?;
    let Some(list) = list else {
        reply.array(0);
        return Ok(());
    };
    let range = range(list.len(), start, stop);
    reply.array(range.len());
    list.iter_from(range.start, End::Back).take(range.len()).for_each(|item| item.write_to(reply));
    Ok(())
}

/// The elements that two indexes pick from a list of `length`: none if they are in the wrong order.
pub(super) fn range(length: usize, start: i64, stop: i64) -> Range<usize> {
    let number = |index: i64| match usize::try_from(index) {
        Ok(number) => Some(number),
        Err(_) => usize::try_from(index.unsigned_abs()).ok().and_then(|distance| length.checked_sub(distance)),
    };
    let start = number(start).unwrap_or(0);
    let end = number(stop).map_or(0, |stop| stop.saturating_add(1)).min(length);
    if start < end { start..end } else { 0..0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_pick_what_redis_picks() {
        for (length, start, stop, expected) in [
            (5, 0, -1, 0..5),
            (5, -100, 100, 0..5),
            (5, 1, 3, 1..4),
            (5, -3, -2, 2..4),
            (5, 3, 1, 0..0),
            (5, 5, 9, 0..0),
            (5, 0, -6, 0..0),
            (0, 0, -1, 0..0),
            (5, i64::MIN, i64::MAX, 0..5),
            (5, i64::MAX, i64::MIN, 0..0),
        ] {
            assert_eq!(range(length, start, stop), expected, "{start} {stop} of {length}");
        }
    }
}
