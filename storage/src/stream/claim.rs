//! XCLAIM: a consumer takes over entries that were delivered before. Commands: <https://redis.io/docs/latest/commands/xclaim/>.
//!
//! What a group holds changes by reading too, and all such changes are recorded as XCLAIM with their outcome ([`Claims`]): who holds
//! the entry, since when, and how often it was delivered.

use super::group::{ConsumerId, Group, Pending};
use super::id::StreamId;
use super::manage::no_group;
use super::range::write_entry;
use super::{Entries, Entry, Stream, edit_replying};
use crate::context::Context;
use crate::key_hash::Key;
use crate::notify::Class;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError, Reply};

/// XCLAIM's options.
#[derive(Debug, Default)]
struct Options {
    /// The entries named.
    ids: Vec<StreamId>,
    /// `IDLE` and `TIME`: when they count as delivered.
    delivered_ms: Option<i64>,
    /// `RETRYCOUNT`.
    deliveries: Option<u64>,
    /// `FORCE`: take what nobody holds.
    is_forced: bool,
    /// `JUSTID`: answer ids only, and do not count this as a delivery.
    only_ids: bool,
    /// `LASTID`.
    last_id: StreamId,
}

impl Options {
    fn read(args: &Args<'_>, now_ms: i64) -> Result<Self, CommandError> {
        let ids: Vec<StreamId> = args.from(5).map_while(|text| StreamId::parse(text, 0).ok()).collect();
        let mut at = 5 + ids.len();
        let mut options = Self { ids, ..Self::default() };
        while at < args.len() {
            at += options.read_one(args, at, now_ms)?;
        }
        Ok(options)
    }

    /// Reads the option at `at`. How many arguments it has.
    fn read_one(&mut self, args: &Args<'_>, at: usize, now_ms: i64) -> Result<usize, CommandError> {
        if args.is(at, "FORCE") {
            self.is_forced = true;
            return Ok(1);
        }
        if args.is(at, "JUSTID") {
            self.only_ids = true;
            return Ok(1);
        }
        let Some(value) = args.get(at + 1) else { return Err(unknown(args.at(at))) };
        let number = |text| parse_i64(value).ok_or(CommandError::Text(text));
        if args.is(at, "IDLE") {
            let idle = number("ERR Invalid IDLE option argument for XCLAIM")?;
            self.delivered_ms = Some(now_ms.wrapping_sub(idle));
        } else if args.is(at, "TIME") {
            self.delivered_ms = Some(number("ERR Invalid TIME option argument for XCLAIM")?);
        } else if args.is(at, "RETRYCOUNT") {
            let count = number("ERR Invalid RETRYCOUNT option argument for XCLAIM")?;
            self.deliveries = u64::try_from(count).ok();
        } else if args.is(at, "LASTID") {
            self.last_id = StreamId::parse(value, 0)?;
        } else {
            return Err(unknown(args.at(at)));
        }
        Ok(2)
    }
}

fn unknown(word: &[u8]) -> CommandError {
    CommandError::repeats("ERR Unrecognized XCLAIM option '", word, "'")
}

/// Reads the least idle time of XCLAIM and XAUTOCLAIM; what is negative counts as 0.
pub(super) fn read_min_idle(text: &[u8], error: &'static str) -> Result<i64, CommandError> {
    parse_i64(text).map(|idle| idle.max(0)).ok_or(CommandError::Text(error))
}

/// NOGROUP, as most commands tell it.
pub(super) fn no_key_or_group(key: &[u8], group: &[u8]) -> CommandError {
    no_group(["NOGROUP No such key '", "' or consumer group '", "'"], [key, group])
}

/// Changes of what a group holds, to be recorded by their outcome.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// Entries that now are held so.
    held: Vec<(StreamId, Pending, Box<[u8]>)>,
}

impl Claims {
    /// An entry is held as `pending` says, or was until it went, in which case a replay finds that there is none.
    pub(super) fn note(&mut self, group: &Group, entry: StreamId, pending: Pending) {
        let same = self.held.last().filter(|(_, last, _)| last.consumer == pending.consumer);
        let name = same.map_or_else(|| group.consumer(pending.consumer).name.clone(), |(_, _, name)| name.clone());
        self.held.push((entry, pending, name));
    }

    /// Whether nothing has changed.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether the consumer holds something by one of the changes, so that their replay makes it.
    pub(super) fn make(&self, consumer: ConsumerId) -> bool {
        self.held.iter().any(|(_, pending, _)| pending.consumer == consumer)
    }

    /// Records the changes, those of a kind together. `last_id` is what the group was given last.
    pub(super) fn log(&self, cx: &mut Context<'_>, key: &Key<'_>, group: &[u8], last_id: StreamId) {
        let last_id = last_id.to_text();
        for run in self.held.chunk_by(|(_, one, _), (_, other, _)| one == other) {
            let [(_, pending, consumer), ..] = run else { continue };
            let (time, count) = (pending.delivered_ms.to_string(), pending.deliveries.to_string());
            let ids: Vec<Vec<u8>> = run.iter().map(|(id, ..)| id.to_text()).collect();
            let mut words: Vec<&[u8]> = vec![b"XCLAIM", key.bytes, group, consumer, b"0"];
            words.extend(ids.iter().map(Vec::as_slice));
            words.extend([&b"TIME"[..], time.as_bytes(), b"RETRYCOUNT", count.as_bytes()]);
            words.extend([&b"FORCE"[..], b"JUSTID", b"LASTID", &last_id]);
            cx.log_instead(&words);
        }
    }
}

/// A consumer that a command found, or made because it was not there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub id: ConsumerId,
    pub is_new: bool,
}

impl Group {
    /// The consumer of this name, made if it is not there; it has been seen now.
    pub(super) fn member(&mut self, name: &[u8], now_ms: i64) -> Member {
        let (id, is_new) = match self.consumer_named(name) {
            Some(id) => (id, false),
            None => (self.create_consumer(name, now_ms).expect("there is none of this name"), true),
        };
        self.consumer_mut(id).seen_ms = now_ms;
        Member { id, is_new }
    }
}

/// Tells and records that a consumer was made; the record is needed only where nothing else makes it in a replay.
pub(super) fn tell_of_consumer(cx: &mut Context<'_>, key: &Key<'_>, group: &[u8], name: &[u8], is_recorded: bool) {
    cx.notify(Class::STREAM, "xgroup-createconsumer", key);
    if is_recorded {
        cx.log_instead(&[b"XGROUP", b"CREATECONSUMER", key.bytes, group, name]);
        cx.effects.change();
    }
}

/// Records up to where a group was given entries.
pub(super) fn log_position(cx: &mut Context<'_>, key: &Key<'_>, group: &[u8], position: Position) {
    let (id, read) =
        (position.last_id.to_text(), position.entries_read.map_or_else(|| "-1".into(), |read| read.to_string()));
    cx.log_instead(&[b"XGROUP", b"SETID", key.bytes, group, &id, b"ENTRIESREAD", read.as_bytes()]);
}

/// Up to where a group was given entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub last_id: StreamId,
    pub entries_read: Option<u64>,
}

impl Group {
    pub(super) fn position(&self) -> Position {
        Position { last_id: self.last_id, entries_read: self.entries_read }
    }
}

/// What XCLAIM did.
struct Done {
    member: Member,
    has_moved: bool,
    claims: Claims,
    position: Position,
}

/// `XCLAIM key group consumer min-idle-time id [id ...] [IDLE ms] [TIME ms] [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID id]`.
pub fn xclaim(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (key, group, name, now_ms) = (cx.first_key(args), args.at(2), args.at(3), cx.now_ms);
    let has_group = cx.edit::<Stream>(&key)?.is_some_and(|stream| stream.groups.get(group).is_some());
    if !has_group {
        return Err(no_key_or_group(key.bytes, group));
    }
    let min_idle = read_min_idle(args.at(4), "ERR Invalid min-idle-time argument for XCLAIM")?;
    let mut options = Options::read(args, now_ms)?;
    // What a replay says is what was; live, nothing was delivered before time began or after now.
    options.delivered_ms = options.delivered_ms.filter(|at| cx.replaying || (0..=now_ms).contains(at));
    let done = edit_replying(cx, &key, |stream, reply| {
        let Stream { entries, groups } = stream;
        groups.edit(group, |group| claim(entries, group, name, &options, min_idle, now_ms, reply))
    })?;
    let Some(done) = done.flatten() else { return Ok(()) };
    if done.member.is_new {
        tell_of_consumer(cx, &key, group, name, !done.claims.make(done.member.id));
    }
    done.claims.log(cx, &key, group, done.position.last_id);
    if done.has_moved && done.claims.is_empty() {
        log_position(cx, &key, group, done.position);
    }
    if done.has_moved || !done.claims.is_empty() {
        cx.effects.change();
    }
    Ok(())
}

fn claim(
    entries: &Entries,
    group: &mut Group,
    name: &[u8],
    options: &Options,
    min_idle: i64,
    now_ms: i64,
    reply: &mut Reply,
) -> Done {
    let has_moved = options.last_id > group.last_id;
    group.last_id = group.last_id.max(options.last_id);
    let (member, mut claims) = (group.member(name, now_ms), Claims::default());
    let (mark, mut count) = (reply.open_array(), 0);
    for id in &options.ids {
        let entry = entries.get(*id);
        let before = match group.pending().get(id).copied() {
            Some(pending) if entry.is_none() => {
                claims.note(group, *id, pending);
                group.forget(*id);
                continue;
            }
            Some(pending) if min_idle > 0 && now_ms.saturating_sub(pending.delivered_ms) < min_idle => continue,
            Some(pending) => pending,
            None if options.is_forced && entry.is_some() => {
                Pending { consumer: member.id, delivered_ms: now_ms, deliveries: 1 }
            }
            None => continue,
        };
        let one_more = before.deliveries.saturating_add(u64::from(!options.only_ids));
        let after = Pending {
            consumer: member.id,
            delivered_ms: options.delivered_ms.unwrap_or(now_ms),
            deliveries: options.deliveries.unwrap_or(one_more),
        };
        group.assign(*id, after);
        group.consumer_mut(member.id).active_ms = Some(now_ms);
        claims.note(group, *id, after);
        write_claimed(reply, *id, entry.filter(|_| !options.only_ids));
        count += 1;
    }
    reply.close_array(mark, count);
    Done { member, has_moved, claims, position: group.position() }
}

/// Writes a claimed entry, or only its id.
pub(super) fn write_claimed(reply: &mut Reply, id: StreamId, entry: Option<Entry<'_>>) {
    match entry {
        Some(entry) => write_entry(reply, &entry),
        None => id.write_to(reply),
    }
}
