//! GET, GETRANGE, MGET, STRLEN, SUBSTR: commands that only read.

use super::{reply_value, reply_value_or_null};
use crate::context::Context;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};

/// `GET key`: the value, or null.
#[inline]
pub fn get(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    match cx.lookup(&key) {
        (Some(entry), reply) => reply_value(reply, entry.string()?),
        (None, reply) => reply.null(),
    }
    Ok(())
}

/// `MGET key [key ...]`: the values, each of them or null.
pub fn mget(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    cx.reply.array(args.len() - 1);
    for bytes in args.from(1) {
        let key = cx.key(bytes);
        let (entry, reply) = cx.lookup(&key);
        reply_value_or_null(reply, entry.and_then(|entry| entry.string().ok()));
    }
    Ok(())
}

/// `STRLEN key`: the length in bytes, 0 when the key is not there.
pub fn strlen(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let (entry, reply) = cx.lookup(&key);
    reply.count(entry.map_or(Ok(0), |entry| entry.string().map(|value| value.text_length()))?);
    Ok(())
}

/// `GETRANGE key start end`: the bytes between two offsets, both included; negative ones count from the end.
pub fn getrange(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let start = parse_i64(args.at(2)).ok_or(CommandError::NotAnInteger)?;
    let end = parse_i64(args.at(3)).ok_or(CommandError::NotAnInteger)?;
    let key = cx.first_key(args);
    let (entry, reply) = cx.lookup(&key);
    match entry {
        Some(entry) => entry.string()?.with_text(|text| reply.bulk(&text[range(text.len(), start, end)])),
        None => reply.bulk(b""),
    }
    Ok(())
}

/// `SUBSTR key start end`: GETRANGE under its old name.
pub fn substr(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    getrange(cx, args)
}

/// The bytes that GETRANGE's offsets pick from a string of `length`.
///
/// Two negative offsets in the wrong order pick nothing; otherwise offsets before the string mean its first byte, so that
/// `-100 -50` picks that byte, as in Redis.
fn range(length: usize, start: i64, end: i64) -> std::ops::Range<usize> {
    if length == 0 || (start < 0 && end < 0 && start > end) {
        return 0..0;
    }
    let length = length as i64;
    let from_start = |offset: i64| if offset < 0 { (length + offset).max(0) } else { offset };
    let (start, end) = (from_start(start), from_start(end).min(length - 1));
    if start > end {
        return 0..0;
    }
    start as usize..end as usize + 1
}
