//! XACK, XACKDEL: entries that a group has dealt with. Commands: <https://redis.io/docs/latest/commands/xack/>.

use super::Stream;
use super::delete::{Outcome, Selection, read_ids};
use crate::context::Context;
use crate::notify::Class;
use simurgh_protocol::{Args, CommandError};

/// `XACK key group id [id ...]`.
pub fn xack(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let stream = cx.edit::<Stream>(&key)?;
    let Some(mut stream) = stream.filter(|stream| stream.groups.get(args.at(2)).is_some()) else {
        cx.reply.integer(0);
        return Ok(());
    };
    let ids = read_ids(args, 3)?;
    let acknowledged = stream.groups.edit(args.at(2), |group| ids.iter().filter(|id| group.forget(**id)).count());
    drop(stream);
    let acknowledged = acknowledged.unwrap_or(0);
    if acknowledged > 0 {
        cx.effects.change();
    }
    cx.reply.count(acknowledged);
    Ok(())
}

/// `XACKDEL key group [KEEPREF|DELREF|ACKED] IDS numids id [id ...]`.
pub fn xackdel(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let has_group = cx.edit::<Stream>(&key)?.is_some_and(|stream| stream.groups.get(args.at(2)).is_some());
    let selection = Selection::read(args, 3)?;
    if !has_group {
        selection.reply_none(cx);
        return Ok(());
    }
    let ids = selection.ids(args)?;
    let Some(mut stream) = cx.edit::<Stream>(&key)? else { return Ok(()) };
    let (mut outcomes, mut deleted) = (Vec::with_capacity(ids.len()), false);
    for id in ids {
        if stream.groups.edit(args.at(2), |group| group.forget(id)) != Some(true) {
            outcomes.push(Outcome::Absent);
            continue;
        }
        // What is acknowledged counts as deleted even if the entry was gone before.
        let outcome = stream.delete_entry(id, selection.references);
        deleted |= outcome == Outcome::Deleted;
        outcomes.push(if outcome == Outcome::Absent { Outcome::Deleted } else { outcome });
    }
    drop(stream);
    if deleted {
        cx.notify(Class::STREAM, "xdel", &key);
        cx.changed(&key);
    } else if outcomes.iter().any(|outcome| *outcome != Outcome::Absent) {
        cx.effects.change();
    }
    cx.reply.array(outcomes.len());
    outcomes.iter().for_each(|outcome| cx.reply.integer(outcome.code()));
    Ok(())
}
