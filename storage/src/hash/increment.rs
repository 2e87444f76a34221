//! HINCRBY, HINCRBYFLOAT.

use super::expired::forget_expired;
use super::{Hash, Limits};
use crate::context::{Context, Expiry};
use crate::notify::Class;
use simurgh_protocol::long_double::LongDouble;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};

/// `HINCRBY key field increment`: the number afterwards. The field keeps its expiry.
pub fn hincrby(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let increment = parse_i64(args.at(3)).ok_or(CommandError::NotAnInteger)?;
    let (key, field, limits) = (cx.first_key(args), args.at(2), Limits::of(cx));
    forget_expired(cx, &key, std::iter::once(field));
    let mut hash = cx.edit_or_create::<Hash>(&key)?;
    let before = match hash.find(field) {
        Some(row) => row.value.to_i64().ok_or(CommandError::Text("ERR hash value is not an integer"))?,
        None => 0,
    };
    let sum = before.checked_add(increment).ok_or(CommandError::IncrementOverflow)?;
    hash.set(field, itoa::Buffer::new().format(sum).as_bytes(), Expiry::Keep, &limits);
    drop(hash);
    cx.changed(&key);
    cx.notify(Class::HASH, "hincrby", &key);
    cx.reply.integer(sum);
    Ok(())
}

/// `HINCRBYFLOAT key field increment`: the number afterwards, as text. The field keeps its expiry.
pub fn hincrbyfloat(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let increment = LongDouble::parse(args.at(3)).ok_or(CommandError::NotAFloat)?;
    if !increment.is_finite() {
        return Err(CommandError::Text("ERR value is NaN or Infinity"));
    }
    let (key, field, limits) = (cx.first_key(args), args.at(2), Limits::of(cx));
    forget_expired(cx, &key, std::iter::once(field));
    let mut hash = cx.edit_or_create::<Hash>(&key)?;
    let before = match hash.find(field) {
        Some(row) => {
            row.value.with_text(LongDouble::parse).ok_or(CommandError::Text("ERR hash value is not a float"))?
        }
        None => LongDouble::ZERO,
    };
    let sum = before.checked_add(increment).filter(|sum| sum.is_finite());
    let text = sum.ok_or(CommandError::IncrementNotFinite)?.format();
    hash.set(field, text.as_bytes(), Expiry::Keep, &limits);
    drop(hash);
    cx.changed(&key);
    cx.notify(Class::HASH, "hincrbyfloat", &key);
    cx.log_instead(&[b"HSETEX", key.bytes, b"KEEPTTL", b"FIELDS", b"1", field, text.as_bytes()]);
    cx.reply.bulk(text.as_bytes());
    Ok(())
}
