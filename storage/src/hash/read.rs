//! Commands that read a hash: HGET, HMGET, HGETALL, HKEYS, HVALS, HLEN, HSTRLEN, HEXISTS.

use super::expired::forget_read;
use super::{Hash, Row, field_clock};
use crate::context::Context;
use simurgh_protocol::{Args, CommandError, Reply};

/// Answers a field's value, or null without the field.
pub(super) fn reply_value(reply: &mut Reply, row: Option<Row<'_>>) {
    match row {
        Some(row) => row.value.write_to(reply),
        None => reply.null(),
    }
}

/// `HGET key field`: the value, or null.
pub fn hget(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (key, now_ms) = (cx.first_key(args), field_clock(cx));
    forget_read(cx, &key, args.from(2));
    let (hash, reply) = cx.look::<Hash>(&key)?;
    reply_value(reply, hash.as_deref().and_then(|hash| hash.get(args.at(2), now_ms)));
    Ok(())
}

/// `HMGET key field ...`: the values, null where there is no such field.
pub fn hmget(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (key, now_ms) = (cx.first_key(args), field_clock(cx));
    forget_read(cx, &key, args.from(2));
    let (hash, reply) = cx.look::<Hash>(&key)?;
    reply.array(args.len() - 2);
    for field in args.from(2) {
        reply_value(reply, hash.as_deref().and_then(|hash| hash.get(field, now_ms)));
    }
    Ok(())
}

/// `HGETALL key`: a map of fields and values.
pub fn hgetall(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (key, now_ms) = (cx.first_key(args), field_clock(cx));
    let (hash, reply) = cx.look::<Hash>(&key)?;
    let Some(hash) = hash else {
        reply.map(0);
        return Ok(());
    };
    reply.map(hash.live_len(now_ms));
    hash.each_live(now_ms, |row| {
        row.field.write_to(reply);
        row.value.write_to(reply);
    });
    Ok(())
}

/// `HKEYS key`: the fields.
pub fn hkeys(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    list(cx, args, |row, reply| row.field.write_to(reply))
}

/// `HVALS key`: the values.
pub fn hvals(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    list(cx, args, |row, reply| row.value.write_to(reply))
}

fn list(cx: &mut Context<'_>, args: &Args<'_>, write: impl Fn(Row<'_>, &mut Reply)) -> Result<(), CommandError> {
    let (key, now_ms) = (cx.first_key(args), field_clock(cx));
    let (hash, reply) = cx.look::<Hash>(&key)?;
    let Some(hash) = hash else {
        reply.array(0);
        return Ok(());
    };
    reply.array(hash.live_len(now_ms));
    hash.each_live(now_ms, |row| write(row, reply));
    Ok(())
}

/// `HLEN key`: the number of fields, those included whose time has come but that are still there.
pub fn hlen(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let (hash, reply) = cx.look::<Hash>(&key)?;
    reply.count(hash.map_or(0, |hash| hash.len()));
    Ok(())
}

/// `HSTRLEN key field`: the length of the value, 0 without one.
pub fn hstrlen(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (key, now_ms) = (cx.first_key(args), field_clock(cx));
    forget_read(cx, &key, args.from(2));
    let (hash, reply) = cx.look::<Hash>(&key)?;
    let row = hash.as_deref().and_then(|hash| hash.get(args.at(2), now_ms));
    reply.count(row.map_or(0, |row| row.value.text_length()));
    Ok(())
}

/// `HEXISTS key field`: 1 or 0.
pub fn hexists(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (key, now_ms) = (cx.first_key(args), field_clock(cx));
    forget_read(cx, &key, args.from(2));
    let (hash, reply) = cx.look::<Hash>(&key)?;
    let row = hash.as_deref().and_then(|hash| hash.get(args.at(2), now_ms));
    reply.integer(i64::from(row.is_some()));
    Ok(())
}
