//! XLEN, XRANGE, XREVRANGE: what is in a stream. Commands: <https://redis.io/docs/latest/commands/xrange/>.

use super::id::StreamId;
use super::{Entry, Stream};
use crate::context::Context;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError, Reply};

/// `XLEN key`.
pub fn xlen(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let (stream, reply) = cx.look::<Stream>(&key)?;
    reply.count(stream.map_or(0, |stream| stream.len()));
    Ok(())
}

/// `XRANGE key start end [COUNT count]`.
pub fn xrange(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    range(cx, args, Order::Ascending)
}

/// `XREVRANGE key end start [COUNT count]`.
pub fn xrevrange(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    range(cx, args, Order::Descending)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Ascending,
    Descending,
}

fn range(cx: &mut Context<'_>, args: &Args<'_>, order: Order) -> Result<(), CommandError> {
    let (start, end) = match order {
        Order::Ascending => (args.at(2), args.at(3)),
        Order::Descending => (args.at(3), args.at(2)),
    };
    let (start, end) = (StreamId::parse_start(start)?, StreamId::parse_end(end)?);
    let count = read_count(args)?;
    let key = cx.first_key(args);
    let (stream, reply) = cx.look::<Stream>(&key)?;
    let Some(stream) = stream else {
        reply.array(0);
        return Ok(());
    };
    if count == Some(0) {
        reply.null_array();
        return Ok(());
    }
    let (range, count) = (stream.entries.range(start, end), count.unwrap_or(usize::MAX));
    match order {
        Order::Ascending => write_entries(reply, range.take(count)),
        Order::Descending => write_entries(reply, range.rev().take(count)),
    };
    Ok(())
}

/// The last `COUNT count`; what is negative counts as nothing.
fn read_count(args: &Args<'_>) -> Result<Option<usize>, CommandError> {
    let (mut count, mut index) = (None, 4);
    while index < args.len() {
        let number = args.get(index + 1).filter(|_| args.is(index, "COUNT")).ok_or(CommandError::Syntax)?;
        let number = parse_i64(number).ok_or(CommandError::NotAnInteger)?;
        count = Some(usize::try_from(number.max(0)).unwrap_or(usize::MAX));
        index += 2;
    }
    Ok(count)
}

/// Writes entries as an array. How many there were.
pub(super) fn write_entries<'a>(reply: &mut Reply, entries: impl Iterator<Item = Entry<'a>>) -> usize {
    let mark = reply.open_array();
    let mut count = 0;
    for entry in entries {
        write_entry(reply, &entry);
        count += 1;
    }
    reply.close_array(mark, count);
    count
}

/// Writes an entry: its id, and its names and values in turn.
pub(super) fn write_entry(reply: &mut Reply, entry: &Entry<'_>) {
    reply.array(2);
    entry.id.write_to(reply);
    reply.array(entry.fields() * 2);
    entry.items().for_each(|item| item.write_to(reply));
}
