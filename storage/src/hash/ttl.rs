//! HTTL, HPTTL, HEXPIRETIME, HPEXPIRETIME: when fields expire.

use super::expire::{NO_EXPIRY, NO_FIELD};
use super::field_list::FieldList;
use super::{Hash, field_clock};
use crate::context::Context;
use simurgh_protocol::{Args, CommandError};

/// `HTTL key FIELDS numfields field ...`: seconds left for each field, -1 without an expiry, -2 without the field.
pub fn httl(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let now_ms = cx.now_ms;
    tell(cx, args, |at| seconds(at.saturating_sub(now_ms)))
}

/// `HPTTL key FIELDS numfields field ...`: as HTTL, in milliseconds.
pub fn hpttl(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let now_ms = cx.now_ms;
    tell(cx, args, |at| at.saturating_sub(now_ms))
}

/// `HEXPIRETIME key FIELDS numfields field ...`: the Unix time in seconds, -1 without an expiry, -2 without the field.
pub fn hexpiretime(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    tell(cx, args, seconds)
}

/// `HPEXPIRETIME key FIELDS numfields field ...`: as HEXPIRETIME, in milliseconds.
pub fn hpexpiretime(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    tell(cx, args, |at| at)
}

fn tell(cx: &mut Context<'_>, args: &Args<'_>, of: impl Fn(i64) -> i64) -> Result<(), CommandError> {
    let (key, now_ms) = (cx.first_key(args), field_clock(cx));
    let (hash, reply) = cx.look::<Hash>(&key)?;
    let fields = FieldList::at(args, 2)?;
    reply.array(fields.len());
    for field in fields.iter() {
        let row = hash.as_deref().and_then(|hash| hash.get(field, now_ms));
        reply.integer(match row.map(|row| row.expires_at) {
            None => NO_FIELD,
            Some(None) => NO_EXPIRY,
            Some(Some(at)) => of(at),
        });
    }
    Ok(())
}

/// Milliseconds as seconds, rounded up.
fn seconds(milliseconds: i64) -> i64 {
    milliseconds / 1000 + i64::from(milliseconds % 1000 > 0)
}
