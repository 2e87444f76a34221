//! XINFO: what a stream, its groups and their consumers are like. Commands: <https://redis.io/docs/latest/commands/xinfo-stream/>.

use super::group::{Consumer, Group};
use super::id::StreamId;
use super::manage::no_group_of_key;
use super::range::{write_entries, write_entry};
use super::{Entry, Stream};
use crate::context::Context;
use simurgh_protocol::command::replies::help;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError, Reply};

/// How many entries XINFO STREAM FULL tells of without `COUNT`.
const COUNT_DEFAULT: usize = 10;

/// `XINFO STREAM key [FULL [COUNT count]]`.
pub fn xinfo_stream(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.key(args.at(2));
    let (stream, reply) = cx.look::<Stream>(&key)?;
    let stream = stream.ok_or(CommandError::NoSuchKey)?;
    match read_full(args)? {
        None => reply_brief(&stream, reply),
        Some(count) => reply_full(&stream, count, reply),
    }
    Ok(())
}

/// The count behind `FULL`, if that is given.
fn read_full(args: &Args<'_>) -> Result<Option<usize>, CommandError> {
    const UNKNOWN: CommandError =
        CommandError::Text("ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP.");
    match args.len() {
        3 => return Ok(None),
        4 | 6 if args.is(3, "FULL") => {}
        _ => return Err(UNKNOWN),
    }
    let Some(count) = args.get(5) else { return Ok(Some(COUNT_DEFAULT)) };
    if !args.is(4, "COUNT") {
        return Err(UNKNOWN);
    }
    let count = parse_i64(count).ok_or(CommandError::NotAnInteger)?;
    Ok(Some(match usize::try_from(count) {
        Ok(0) => usize::MAX,
        Ok(count) => count,
        Err(_) => COUNT_DEFAULT,
    }))
}

fn reply_count(reply: &mut Reply, name: &str, count: u64) {
    reply.bulk(name.as_bytes());
    reply.integer(i64::try_from(count).unwrap_or(i64::MAX));
}

fn reply_id(reply: &mut Reply, name: &str, id: StreamId) {
    reply.bulk(name.as_bytes());
    id.write_to(reply);
}

/// What both forms of XINFO STREAM begin with: seven pairs.
fn reply_counters(stream: &Stream, reply: &mut Reply) {
    let entries = &stream.entries;
    reply_count(reply, "length", entries.len());
    reply_count(reply, "radix-tree-keys", entries.nodes().len() as u64);
    let ids: Vec<[u8; 16]> = entries.nodes().keys().map(|id| id.to_bytes()).collect();
    reply_count(reply, "radix-tree-nodes", radix_nodes(&ids, 0));
    reply_id(reply, "last-generated-id", entries.last_id);
    reply_id(reply, "max-deleted-entry-id", entries.max_deleted_id);
    reply.bulk(b"entries-added");
    // Counted on beyond what a signed number holds, as in Redis.
    reply.integer(entries.added as i64);
    reply_id(reply, "recorded-first-entry-id", entries.first_id());
}

/// How many nodes a compressed radix tree has that holds `keys` (in order, all the same up to `depth`): Redis keeps nodes in one,
/// and tells its size.
fn radix_nodes(keys: &[[u8; 16]], depth: usize) -> u64 {
    let (Some(first), Some(last)) = (keys.first(), keys.last()) else { return 1 };
    let shared = (depth..first.len()).take_while(|at| first[*at] == last[*at]).count();
    let (run, at) = (u64::from(shared > 0), depth + shared);
    if at == first.len() {
        return run + 1;
    }
    let children = keys.chunk_by(|one, other| one[at] == other[at]);
    run + 1 + children.map(|child| radix_nodes(child, at + 1)).sum::<u64>()
}

fn reply_entry_or_null(reply: &mut Reply, name: &str, entry: Option<Entry<'_>>) {
    reply.bulk(name.as_bytes());
    match entry {
        Some(entry) => write_entry(reply, &entry),
        None => reply.null(),
    }
}

fn reply_brief(stream: &Stream, reply: &mut Reply) {
    reply.map(10);
    reply_counters(stream, reply);
    reply_count(reply, "groups", stream.groups.len() as u64);
    reply_entry_or_null(reply, "first-entry", stream.entries.iter().next());
    reply_entry_or_null(reply, "last-entry", stream.entries.iter().next_back());
}

fn reply_full(stream: &Stream, count: usize, reply: &mut Reply) {
    reply.map(9);
    reply_counters(stream, reply);
    reply.bulk(b"entries");
    write_entries(reply, stream.entries.iter().take(count));
    reply.bulk(b"groups");
    reply.array(stream.groups.len());
    for (name, group) in stream.groups.iter() {
        reply.map(7);
        reply.bulk(b"name");
        reply.bulk(name);
        reply_id(reply, "last-delivered-id", group.last_id);
        reply_progress(stream, group, reply);
        reply_count(reply, "pel-count", group.pending().len() as u64);
        reply.bulk(b"pending");
        reply.array(group.pending().len().min(count));
        for (id, pending) in group.pending().iter().take(count) {
            reply.array(4);
            id.write_to(reply);
            reply.bulk(&group.consumer(pending.consumer).name);
            reply.integer(pending.delivered_ms);
            reply.integer(i64::try_from(pending.deliveries).unwrap_or(i64::MAX));
        }
        reply.bulk(b"consumers");
        reply.array(group.consumers().len());
        group.consumers().for_each(|consumer| reply_consumer(group, consumer, count, reply));
    }
}

fn reply_consumer(group: &Group, consumer: &Consumer, count: usize, reply: &mut Reply) {
    reply.map(5);
    reply.bulk(b"name");
    reply.bulk(&consumer.name);
    reply.bulk(b"seen-time");
    reply.integer(consumer.seen_ms);
    reply.bulk(b"active-time");
    reply.integer(consumer.active_ms.unwrap_or(-1));
    reply_count(reply, "pel-count", consumer.pending().len() as u64);
    reply.bulk(b"pending");
    reply.array(consumer.pending().len().min(count));
    let held = consumer.pending().iter().filter_map(|id| Some((id, group.pending().get(id)?)));
    for (id, pending) in held.take(count) {
        reply.array(3);
        id.write_to(reply);
        reply.integer(pending.delivered_ms);
        reply.integer(i64::try_from(pending.deliveries).unwrap_or(i64::MAX));
    }
}

/// How many entries a group was given, and how many it has yet to be given; null where that is not known.
fn reply_progress(stream: &Stream, group: &Group, reply: &mut Reply) {
    let read = group.entries_read.map(|read| i64::try_from(read).unwrap_or(i64::MAX));
    for (name, number) in [("entries-read", read), ("lag", stream.entries.lag(group))] {
        reply.bulk(name.as_bytes());
        match number {
            Some(number) => reply.integer(number),
            None => reply.null(),
        }
    }
}

/// `XINFO GROUPS key`.
pub fn xinfo_groups(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.key(args.at(2));
    let (stream, reply) = cx.look::<Stream>(&key)?;
    let stream = stream.ok_or(CommandError::NoSuchKey)?;
    reply.array(stream.groups.len());
    for (name, group) in stream.groups.iter() {
        reply.map(6);
        reply.bulk(b"name");
        reply.bulk(name);
        reply_count(reply, "consumers", group.consumers().len() as u64);
        reply_count(reply, "pending", group.pending().len() as u64);
        reply_id(reply, "last-delivered-id", group.last_id);
        reply_progress(&stream, group, reply);
    }
    Ok(())
}

/// `XINFO CONSUMERS key group`.
pub fn xinfo_consumers(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (key, now_ms) = (cx.key(args.at(2)), cx.now_ms);
    let (stream, reply) = cx.look::<Stream>(&key)?;
    let stream = stream.ok_or(CommandError::NoSuchKey)?;
    let group = stream.groups.get(args.at(3)).ok_or_else(|| no_group_of_key(args.at(3), key.bytes))?;
    reply.array(group.consumers().len());
    for consumer in group.consumers() {
        let since = |at: i64| now_ms.saturating_sub(at).max(0);
        reply.map(4);
        reply.bulk(b"name");
        reply.bulk(&consumer.name);
        reply_count(reply, "pending", consumer.pending().len() as u64);
        reply.bulk(b"idle");
        reply.integer(since(consumer.seen_ms));
        reply.bulk(b"inactive");
        reply.integer(consumer.active_ms.map_or(-1, since));
    }
    Ok(())
}

/// `XINFO HELP`.
pub fn xinfo_help(cx: &mut Context<'_>, _: &Args<'_>) -> Result<(), CommandError> {
    let lines = [
        "CONSUMERS <key> <groupname>",
        "    Show consumers of <groupname>.",
        "GROUPS <key>",
        "    Show the stream consumer groups.",
        "STREAM <key> [FULL [COUNT <count>]",
        "    Show information about the stream.",
    ];
    help("XINFO", &lines, cx.reply);
    Ok(())
}
