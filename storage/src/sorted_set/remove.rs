//! ZREM, ZREMRANGEBYRANK, ZREMRANGEBYSCORE, ZREMRANGEBYLEX: members go.

use super::SortedSet;
use super::interval::{Interval, Measure};
use crate::context::Context;
use crate::key_hash::Key;
use crate::notify::Class;
use simurgh_protocol::{Args, CommandError};

/// `ZREM key member [member ...]`: how many were removed.
pub fn zrem(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let removed = match cx.edit::<SortedSet>(&key)? {
        Some(mut set) => args.from(2).filter(|member| set.remove(member).is_some()).count(),
        None => 0,
    };
    tell(cx, &key, removed, "zrem");
    cx.reply.count(removed);
    Ok(())
}

/// Tells of removed members, if there were any.
pub(super) fn tell(cx: &mut Context<'_>, key: &Key<'_>, removed: usize, event: &'static str) {
    if removed > 0 {
        cx.changed(key);
        cx.notify(Class::SORTED_SET, event, key);
        cx.notify_if_gone(key);
    }
}

/// `ZREMRANGEBYRANK key start stop`: how many were removed.
pub fn zremrangebyrank(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    remove_between(cx, args, Measure::Rank, "zremrangebyrank")
}

/// `ZREMRANGEBYSCORE key min max`: how many were removed.
pub fn zremrangebyscore(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    remove_between(cx, args, Measure::Score, "zremrangebyscore")
}

/// `ZREMRANGEBYLEX key min max`: how many were removed.
pub fn zremrangebylex(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    remove_between(cx, args, Measure::Member, "zremrangebylex")
}

fn remove_between(
    cx: &mut Context<'_>,
    args: &Args<'_>,
    measure: Measure,
    event: &'static str,
) -> Result<(), CommandError> {
    let interval = Interval::parse(measure, args.at(2), args.at(3), false)?;
    let key = cx.first_key(args);
    let removed = match cx.edit::<SortedSet>(&key)? {
        Some(mut set) => {
            let ranks = interval.ranks(&set, false);
            set.remove_ranks(ranks.clone());
            ranks.len()
        }
        None => 0,
    };
    tell(cx, &key, removed, event);
    cx.reply.count(removed);
    Ok(())
}
