//! XPENDING: what a group has yet to acknowledge. Commands: <https://redis.io/docs/latest/commands/xpending/>.

use super::Stream;
use super::claim::no_key_or_group;
use super::group::{Group, Pending};
use super::id::StreamId;
use crate::context::Context;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError, Reply};

/// The most arguments that XPENDING takes.
const ARGUMENTS_MAX: usize = 9;

/// Which pending entries are asked for, one by one.
struct Query<'a> {
    start: StreamId,
    end: StreamId,
    count: usize,
    consumer: Option<&'a [u8]>,
    min_idle: i64,
}

impl<'a> Query<'a> {
    /// `[IDLE min-idle-time] start end count [consumer]`, if there are any arguments.
    fn read(args: &Args<'a>) -> Result<Option<Self>, CommandError> {
        if args.len() == 3 {
            return Ok(None);
        }
        if !(6..=ARGUMENTS_MAX).contains(&args.len()) {
            return Err(CommandError::Syntax);
        }
        let (mut min_idle, mut at) = (0, 3);
        if args.is(3, "IDLE") {
            min_idle = parse_i64(args.at(4)).ok_or(CommandError::NotAnInteger)?;
            if args.len() < 8 {
                return Err(CommandError::Syntax);
            }
            at = 5;
        }
        let count = parse_i64(args.at(at + 2)).ok_or(CommandError::NotAnInteger)?;
        let (start, end) = (StreamId::parse_start(args.at(at))?, StreamId::parse_end(args.at(at + 1))?);
        let count = usize::try_from(count).unwrap_or(0);
        Ok(Some(Self { start, end, count, consumer: args.get(at + 3), min_idle }))
    }
}

/// `XPENDING key group [[IDLE min-idle-time] start end count [consumer]]`.
pub fn xpending(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let query = Query::read(args)?;
    let (key, now_ms) = (cx.first_key(args), cx.now_ms);
    let (stream, reply) = cx.look::<Stream>(&key)?;
    let group = stream.as_ref().and_then(|stream| stream.groups.get(args.at(2)));
    let group = group.ok_or_else(|| no_key_or_group(key.bytes, args.at(2)))?;
    match query {
        None => reply_summary(group, reply),
        Some(query) => reply_entries(group, &query, now_ms, reply),
    }
    Ok(())
}

/// How many are pending, the first and the last of them, and how many each consumer holds.
fn reply_summary(group: &Group, reply: &mut Reply) {
    reply.array(4);
    reply.count(group.pending().len());
    let (Some((first, _)), Some((last, _))) = (group.pending().first_key_value(), group.pending().last_key_value())
    else {
        reply.null();
        reply.null();
        reply.null_array();
        return;
    };
    first.write_to(reply);
    last.write_to(reply);
    let holders: Vec<_> = group.consumers().filter(|consumer| !consumer.pending().is_empty()).collect();
    reply.array(holders.len());
    for consumer in holders {
        reply.array(2);
        reply.bulk(&consumer.name);
        reply.bulk_integer(i64::try_from(consumer.pending().len()).unwrap_or(i64::MAX));
    }
}

fn reply_entries(group: &Group, query: &Query<'_>, now_ms: i64, reply: &mut Reply) {
    let interval = query.start..=query.end;
    match query.consumer {
        None => reply_each(group, group.pending_in(interval), query, now_ms, reply),
        Some(name) => match group.consumer_named(name) {
            Some(consumer) => reply_each(group, group.held_in(consumer, interval), query, now_ms, reply),
            None => reply.array(0),
        },
    }
}

/// Writes the entries that are idle for long enough: id, consumer, idle time, number of deliveries.
fn reply_each(
    group: &Group,
    entries: impl Iterator<Item = (StreamId, Pending)>,
    query: &Query<'_>,
    now_ms: i64,
    reply: &mut Reply,
) {
    let idle = |pending: &Pending| now_ms.saturating_sub(pending.delivered_ms).max(0);
    let entries = entries.filter(|(_, pending)| query.min_idle <= 0 || idle(pending) >= query.min_idle);
    let (mark, mut count) = (reply.open_array(), 0);
    for (id, pending) in entries.take(query.count) {
        reply.array(4);
        id.write_to(reply);
        reply.bulk(&group.consumer(pending.consumer).name);
        reply.integer(idle(&pending));
        reply.integer(i64::try_from(pending.deliveries).unwrap_or(i64::MAX));
        count += 1;
    }
    reply.close_array(mark, count);
}
