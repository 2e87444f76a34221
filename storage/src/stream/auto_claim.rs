//! XAUTOCLAIM: a consumer takes over whatever others have held for too long. Commands: <https://redis.io/docs/latest/commands/xautoclaim/>.

use super::claim::{Claims, Member, Position, no_key_or_group, read_min_idle, tell_of_consumer, write_claimed};
use super::group::{Group, Pending};
use super::id::StreamId;
use super::{Entries, Stream, edit_replying};
use crate::context::Context;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError, Reply};

/// How many entries are looked at for each that may be claimed.
const LOOKS: u64 = 10;
/// The greatest `COUNT`.
const COUNT_MAX: i64 = i64::MAX / 16;

/// XAUTOCLAIM's arguments.
struct Options {
    min_idle: i64,
    start: StreamId,
    count: u64,
    only_ids: bool,
}

impl Options {
    fn read(args: &Args<'_>) -> Result<Self, CommandError> {
        let min_idle = read_min_idle(args.at(4), "ERR Invalid min-idle-time argument for XAUTOCLAIM")?;
        let start = StreamId::parse_start(args.at(5))?;
        let (mut options, mut at) = (Self { min_idle, start, count: 100, only_ids: false }, 6);
        while at < args.len() {
            if let Some(count) = args.get(at + 1).filter(|_| args.is(at, "COUNT")) {
                let count = parse_i64(count).filter(|count| (1..=COUNT_MAX).contains(count));
                let count = count.ok_or(CommandError::Text("ERR COUNT must be > 0"))?;
                options.count = count.unsigned_abs();
                at += 2;
            } else if args.is(at, "JUSTID") {
                options.only_ids = true;
                at += 1;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(options)
    }
}

/// What XAUTOCLAIM did.
struct Done {
    member: Member,
    claims: Claims,
    position: Position,
}

/// `XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]`: where to go on, what was claimed, what is gone.
pub fn xautoclaim(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let options = Options::read(args)?;
    let (key, group, name, now_ms) = (cx.first_key(args), args.at(2), args.at(3), cx.now_ms);
    let done = edit_replying(cx, &key, |stream, reply| {
        let Stream { entries, groups } = stream;
        groups.edit(group, |group| claim(entries, group, name, &options, now_ms, reply))
    })?;
    let done = done.flatten().ok_or_else(|| no_key_or_group(key.bytes, group))?;
    if done.member.is_new {
        tell_of_consumer(cx, &key, group, name, !done.claims.make(done.member.id));
    }
    done.claims.log(cx, &key, group, done.position.last_id);
    if !done.claims.is_empty() {
        cx.effects.change();
    }
    Ok(())
}

fn claim(entries: &Entries, group: &mut Group, name: &[u8], options: &Options, now_ms: i64, reply: &mut Reply) -> Done {
    let (member, mut claims) = (group.member(name, now_ms), Claims::default());
    let (mut looks, mut left) = (options.count.saturating_mul(LOOKS), options.count);
    let (mut claimed, mut gone, mut next) = (Vec::new(), Vec::new(), Some(options.start));
    while let Some(from) = next {
        let Some((id, before)) = group.pending_in(from..=StreamId::MAX).next() else {
            next = None;
            break;
        };
        next = Some(id);
        if looks == 0 || left == 0 {
            break;
        }
        looks -= 1;
        next = id.next();
        if entries.get(id).is_none() {
            claims.note(group, id, before);
            group.forget(id);
            gone.push(id);
            left -= 1;
        } else if options.min_idle == 0 || now_ms.saturating_sub(before.delivered_ms) >= options.min_idle {
            let deliveries = before.deliveries.saturating_add(u64::from(!options.only_ids));
            let after = Pending { consumer: member.id, delivered_ms: now_ms, deliveries };
            group.assign(id, after);
            group.consumer_mut(member.id).active_ms = Some(now_ms);
            claims.note(group, id, after);
            claimed.push(id);
            left -= 1;
        }
    }
    reply.array(3);
    next.unwrap_or_default().write_to(reply);
    reply.array(claimed.len());
    for id in claimed {
        let entry = if options.only_ids { None } else { entries.get(id) };
        write_claimed(reply, id, entry);
    }
    reply.array(gone.len());
    gone.iter().for_each(|id| id.write_to(reply));
    Done { member, claims, position: group.position() }
}
