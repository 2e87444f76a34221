//! Streams: their nodes as they are, then the counters, then the groups with what each consumer holds.
//!
//! ```text
//! nodes: count, then for each its id (16 bytes, as a string) and its listpack
//! entries, last id               numbers as lengths, an id as two
//! first id, greatest deleted id, entries ever added                                     not in the oldest form
//! groups: count, then for each its name, last id and entries read                       the latter not in the oldest form
//!     pending: count, then for each its id (16 bytes), since when (8), how often
//!     consumers: count, then for each its name, when seen (8), when active (8)           the latter in newer forms only
//!         pending: count, then the ids (16 bytes)
//!     released: count, then the ids (16 bytes) that are pending without a consumer       in Redis 8.10's form only
//! producers: two limits; count, then for each its name and what it added; two counters   in Redis 8.10's form only
//! ```

use super::{Loading, Refusal, kind, read_listpack};
use crate::listpack::Listpack;
use crate::rdb::cursor::{Cursor, Fault};
use crate::rdb::length::{read_length, write_length};
use crate::rdb::skip::skip_producers;
use crate::rdb::string::{Sink, read_string};
use crate::stream::{Consumer, ConsumerId, Entries, Group, Pending, Stream, StreamId};
use std::collections::BTreeMap;

/// The number that stands for entries read when that is not known.
const UNKNOWN: u64 = u64::MAX;

/// The form that holds when consumers were active is needed only where that is not when they were seen.
pub(super) fn kind_of(stream: &Stream) -> u8 {
    let is_as_seen = |consumer: &Consumer| consumer.active_ms == Some(consumer.seen_ms);
    if stream.groups.iter().all(|(_, group)| group.consumers().all(is_as_seen)) {
        kind::STREAM_LISTPACKS_2
    } else {
        kind::STREAM_LISTPACKS_3
    }
}

fn write_id(out: &mut Vec<u8>, id: StreamId) {
    write_length(out, id.ms);
    write_length(out, id.seq);
}

pub(super) fn write(out: &mut Sink<'_>, stream: &Stream) {
    let entries = &stream.entries;
    write_length(out, entries.nodes().len() as u64);
    entries.nodes().iter().for_each(|(id, node)| write_node(out, *id, node));
    write_tail(out, stream);
}

pub(crate) fn write_node(out: &mut Sink<'_>, id: StreamId, node: &Listpack) {
    out.string(&id.to_bytes());
    out.string(node.as_bytes());
}

/// What stands behind the nodes.
pub(crate) fn write_tail(out: &mut Sink<'_>, stream: &Stream) {
    let entries = &stream.entries;
    write_length(out, entries.len());
    write_id(out, entries.last_id);
    write_id(out, entries.first_id());
    write_id(out, entries.max_deleted_id);
    write_length(out, entries.added);
    write_length(out, stream.groups.len() as u64);
    for (name, group) in stream.groups.iter() {
        out.string(name);
        write_group(out, group, kind_of(stream) == kind::STREAM_LISTPACKS_3);
    }
}

fn write_group(out: &mut Sink<'_>, group: &Group, has_active: bool) {
    write_id(out, group.last_id);
    write_length(out, group.entries_read.unwrap_or(UNKNOWN));
    write_length(out, group.pending().len() as u64);
    for (id, pending) in group.pending() {
        out.extend_from_slice(&id.to_bytes());
        out.extend_from_slice(&pending.delivered_ms.to_le_bytes());
        write_length(out, pending.deliveries);
    }
    write_length(out, group.consumers().len() as u64);
    for consumer in group.consumers() {
        out.string(&consumer.name);
        out.extend_from_slice(&consumer.seen_ms.to_le_bytes());
        if has_active {
            out.extend_from_slice(&consumer.active_ms.unwrap_or(-1).to_le_bytes());
        }
        write_length(out, consumer.pending().len() as u64);
        consumer.pending().iter().for_each(|id| out.extend_from_slice(&id.to_bytes()));
    }
}

fn read_id(cursor: &mut Cursor<'_>) -> Result<StreamId, Fault> {
    Ok(StreamId::new(read_length(cursor)?, read_length(cursor)?))
}

fn read_moment(cursor: &mut Cursor<'_>) -> Result<i64, Fault> {
    Ok(i64::from_le_bytes(cursor.array()?))
}

/// Entries that nobody holds (XNACK) there are none here: such a stream is refused. What producers added is skipped; it serves to
/// know repeated requests within some seconds.
pub(super) fn read(kind: u8, cursor: &mut Cursor<'_>, loading: &Loading<'_>) -> Result<Stream, Refusal> {
    let mut stream = Stream::default();
    let entries = &mut stream.entries;
    for _ in 0..read_length(cursor)? {
        let id: [u8; 16] = (&*read_string(cursor, loading.string_bytes_max)?).try_into().map_err(|_| Fault::Packed)?;
        entries.push_node(StreamId::from_bytes(id), read_listpack(cursor, loading)?)?;
    }
    let length = read_length(cursor)?;
    entries.last_id = read_id(cursor)?;
    entries.added = length;
    if kind != kind::STREAM_LISTPACKS {
        // The first id is where the first entry is.
        read_id(cursor)?;
        entries.max_deleted_id = read_id(cursor)?;
        entries.added = read_length(cursor)?;
    }
    if length != entries.len() || entries.greatest_id() > entries.last_id {
        return Err(Fault::Packed.into());
    }
    for _ in 0..read_length(cursor)? {
        let name = read_string(cursor, loading.string_bytes_max)?;
        let group = read_group(kind, cursor, loading, &stream.entries)?;
        if !stream.groups.insert(&name, group) {
            return Err(Fault::Repeated.into());
        }
    }
    if kind == kind::STREAM_LISTPACKS_5 {
        skip_producers(cursor, loading.string_bytes_max)?;
    }
    Ok(stream)
}

/// What is pending in a group, before its consumers are known.
type Unowned = BTreeMap<StreamId, (i64, u64)>;

fn read_group(kind: u8, cursor: &mut Cursor<'_>, loading: &Loading<'_>, entries: &Entries) -> Result<Group, Refusal> {
    let last_id = read_id(cursor)?;
    let entries_read = match kind {
        // How far it has read was not counted then.
        kind::STREAM_LISTPACKS => entries.count_up_to(last_id),
        _ => Some(read_length(cursor)?).filter(|read| *read != UNKNOWN),
    };
    let (mut group, mut unowned) = (Group::new(last_id, entries_read), Unowned::new());
    for _ in 0..read_length(cursor)? {
        let id = StreamId::from_bytes(cursor.array()?);
        let pending = (read_moment(cursor)?, read_length(cursor)?);
        if unowned.insert(id, pending).is_some() {
            return Err(Fault::Repeated.into());
        }
    }
    for _ in 0..read_length(cursor)? {
        let name = read_string(cursor, loading.string_bytes_max)?;
        let seen_ms = read_moment(cursor)?;
        let consumer = group.create_consumer(&name, seen_ms).ok_or(Fault::Repeated)?;
        let has_active = kind == kind::STREAM_LISTPACKS_3 || kind == kind::STREAM_LISTPACKS_5;
        let active_ms = if has_active { read_moment(cursor)? } else { seen_ms };
        group.consumer_mut(consumer).active_ms = Some(active_ms).filter(|at| *at >= 0);
        read_held(cursor, &mut group, consumer, &mut unowned)?;
    }
    if kind == kind::STREAM_LISTPACKS_5 && read_length(cursor)? > 0 {
        return Err(Refusal::Unsupported("stream with entries that were given back (XNACK)"));
    }
    // What is pending is held by somebody.
    if unowned.is_empty() { Ok(group) } else { Err(Fault::Packed.into()) }
}

/// Reads what a consumer holds: entries that are pending and that nobody else holds.
fn read_held(
    cursor: &mut Cursor<'_>,
    group: &mut Group,
    consumer: ConsumerId,
    unowned: &mut Unowned,
) -> Result<(), Fault> {
    for _ in 0..read_length(cursor)? {
        let id = StreamId::from_bytes(cursor.array()?);
        let (delivered_ms, deliveries) = unowned.remove(&id).ok_or(Fault::Packed)?;
        group.assign(id, Pending { consumer, delivered_ms, deliveries });
    }
    Ok(())
}
