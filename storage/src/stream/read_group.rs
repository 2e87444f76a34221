//! XREADGROUP: a consumer is given what no other of its group was, or again what it holds already.
//! Commands: <https://redis.io/docs/latest/commands/xreadgroup/>.
//!
//! The record is the outcome: XCLAIM for what a consumer was given, XGROUP SETID for up to where the group was given entries.

use super::claim::{Claims, Member, Position, log_position, tell_of_consumer};
use super::group::{ConsumerId, Group, Pending};
use super::id::StreamId;
use super::manage::no_group;
use super::range::write_entry;
use super::read::{From, Membership, Reading, close_answers, open_answer, wait_or_reply};
use super::{Entries, Stream, edit_replying};
use crate::context::Context;
use crate::key_hash::Key;
use simurgh_protocol::{Args, CommandError, Reply};

/// NOGROUP, as XREADGROUP tells it.
pub(super) fn no_key_or_group(key: &[u8], group: &[u8]) -> CommandError {
    no_group(["NOGROUP No such key '", "' or consumer group '", "' in XREADGROUP with GROUP option"], [key, group])
}

/// `XREADGROUP GROUP group consumer [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS key [key ...] id [id ...]`.
pub fn xreadgroup(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let reading = Reading::of_xreadgroup(cx, args)?;
    if !serve(cx, &reading)? {
        wait_or_reply(cx, &reading);
    }
    Ok(())
}

/// Answers a reading of a group if there is anything to answer it with. Whether there was. The consumer has come to be either way.
pub fn serve(cx: &mut Context<'_>, reading: &Reading<'_>) -> Result<bool, CommandError> {
    let Some(membership) = &reading.membership else { return super::read::serve(cx, reading) };
    // What is read is logged by its outcome, and a reading that moves nothing on is no change.
    cx.effects.suppress();
    let mark = cx.reply.len();
    let mut answered = 0;
    for source in &reading.sources {
        let key = cx.key(source.key);
        let done = serve_source(cx, &key, source.from, reading.count, membership)?;
        answered += usize::from(done.is_answered);
        record(cx, &key, membership, &done);
    }
    close_answers(cx.reply, mark, answered);
    Ok(answered > 0)
}

/// What a reading did with one stream.
struct Done {
    is_answered: bool,
    member: Member,
    claims: Claims,
    /// Up to where the group was given entries, if that has changed.
    moved_to: Option<Position>,
    last_id: StreamId,
}

fn serve_source(
    cx: &mut Context<'_>,
    key: &Key<'_>,
    from: From,
    count: usize,
    membership: &Membership<'_>,
) -> Result<Done, CommandError> {
    let now_ms = cx.now_ms;
    let done = edit_replying(cx, key, |stream, reply| {
        let Stream { entries, groups } = stream;
        groups.edit(membership.group, |group| {
            let member = group.member(membership.consumer, now_ms);
            let mut delivery =
                Delivery { entries, group, consumer: member.id, count, now_ms, claims: Claims::default() };
            let before = delivery.group.position();
            let is_answered = delivery.serve(key.bytes, from, !membership.is_unacknowledged, reply);
            let (claims, after) = (delivery.claims, group.position());
            Done { is_answered, member, claims, moved_to: (after != before).then_some(after), last_id: after.last_id }
        })
    })?;
    done.flatten().ok_or_else(|| no_key_or_group(key.bytes, membership.group))
}

fn record(cx: &mut Context<'_>, key: &Key<'_>, membership: &Membership<'_>, done: &Done) {
    if done.member.is_new {
        tell_of_consumer(cx, key, membership.group, membership.consumer, !done.claims.make(done.member.id));
    }
    done.claims.log(cx, key, membership.group, done.last_id);
    if let Some(position) = done.moved_to {
        log_position(cx, key, membership.group, position);
    }
    // What is given again is recorded, but counts as no change, as in Redis.
    if done.moved_to.is_some() {
        cx.effects.change();
    }
}

/// What one consumer is given of one stream.
struct Delivery<'a> {
    entries: &'a Entries,
    group: &'a mut Group,
    consumer: ConsumerId,
    count: usize,
    now_ms: i64,
    claims: Claims,
}

impl Delivery<'_> {
    /// Answers what there is; of what is held already also that it is nothing.
    fn serve(&mut self, key: &[u8], from: From, is_acknowledged: bool, reply: &mut Reply) -> bool {
        match from {
            // The greatest id stands for `>`, as in Redis.
            From::After(id) if id != StreamId::MAX => {
                open_answer(reply, key);
                self.give_again(id, reply);
                true
            }
            From::After(_) | From::New | From::Last => {
                let has_more = !self.entries.is_empty() && self.entries.greatest_id() > self.group.last_id;
                if has_more {
                    open_answer(reply, key);
                    self.give(is_acknowledged, reply);
                }
                has_more
            }
        }
    }

    /// Gives entries that the group was not given yet.
    fn give(&mut self, is_acknowledged: bool, reply: &mut Reply) {
        let Some(first) = self.group.last_id.next() else { return reply.array(0) };
        let (mark, mut count) = (reply.open_array(), 0);
        for entry in self.entries.range(first, StreamId::MAX).take(self.count) {
            self.entries.advance(self.group, entry.id);
            write_entry(reply, &entry);
            count += 1;
            if is_acknowledged {
                self.hold(entry.id, 1);
                self.group.consumer_mut(self.consumer).active_ms = Some(self.now_ms);
            }
        }
        reply.close_array(mark, count);
    }

    /// Gives entries again that the consumer holds; those that are deleted are told by their ids.
    fn give_again(&mut self, behind: StreamId, reply: &mut Reply) {
        let first = behind.next().unwrap_or(StreamId::MAX);
        let held = self.group.held_in(self.consumer, first..=StreamId::MAX).take(self.count);
        let held: Vec<(StreamId, Pending)> = held.collect();
        reply.array(held.len());
        for (id, pending) in held {
            if let Some(entry) = self.entries.get(id) {
                write_entry(reply, &entry);
                self.hold(id, pending.deliveries.saturating_add(1));
            } else {
                reply.array(2);
                id.write_to(reply);
                reply.null_array();
            }
        }
    }

    /// The consumer holds the entry, given to it now.
    fn hold(&mut self, id: StreamId, deliveries: u64) {
        let pending = Pending { consumer: self.consumer, delivered_ms: self.now_ms, deliveries };
        self.group.assign(id, pending);
        self.claims.note(self.group, id, pending);
    }
}
