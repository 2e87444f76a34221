//! INCR, INCRBY, DECR, DECRBY, INCRBYFLOAT.

use super::set::log_set;
use crate::context::{Context, Expiry};
use crate::entry::Encoding;
use crate::notify::Class;
use crate::string_value::Value;
use simurgh_protocol::long_double::LongDouble;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};

/// `INCR key`: the number afterwards.
pub fn incr(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    add(cx, args, 1)
}

/// `DECR key`: the number afterwards.
pub fn decr(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    add(cx, args, -1)
}

/// `INCRBY key increment`: the number afterwards.
pub fn incrby(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    add(cx, args, parse_i64(args.at(2)).ok_or(CommandError::NotAnInteger)?)
}

/// `DECRBY key decrement`: the number afterwards.
pub fn decrby(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let decrement = parse_i64(args.at(2)).ok_or(CommandError::NotAnInteger)?;
    add(cx, args, decrement.checked_neg().ok_or(CommandError::Text("ERR decrement would overflow"))?)
}

/// A stored value as an integer.
pub(super) fn as_integer(value: Value<'_>) -> Result<i64, CommandError> {
    match value {
        Value::Int(number) => Ok(number),
        Value::Bytes(bytes) => parse_i64(bytes).ok_or(CommandError::NotAnInteger),
    }
}

fn add(cx: &mut Context<'_>, args: &Args<'_>, increment: i64) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let sum = match cx.write(&key) {
        Some(mut entry) => {
            let before = as_integer(entry.view().string()?)?;
            let sum = before.checked_add(increment).ok_or(CommandError::IncrementOverflow)?;
            entry.set_value(Value::Int(sum), Encoding::Int);
            cx.changed(&key);
            sum
        }
        None => {
            cx.store(&key, Value::Int(increment), Expiry::Clear);
            increment
        }
    };
    cx.notify(Class::STRING, "incrby", &key);
    cx.reply.integer(sum);
    Ok(())
}

/// `INCRBYFLOAT key increment`: the number afterwards, as text.
pub fn incrbyfloat(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let before = match cx.write(&key) {
        Some(entry) => entry.view().string()?.with_text(LongDouble::parse).ok_or(CommandError::NotAFloat)?,
        None => LongDouble::ZERO,
    };
    let increment = LongDouble::parse(args.at(2)).ok_or(CommandError::NotAFloat)?;
    let sum = before.checked_add(increment).filter(|sum| sum.is_finite());
    let text = sum.ok_or(CommandError::IncrementNotFinite)?.format();
    // Redis keeps the result as text even where it is a whole number.
    let value = Value::Bytes(text.as_bytes());
    cx.store_update(&key, value, value.encoding(), Expiry::Keep);
    cx.notify(Class::STRING, "incrbyfloat", &key);
    log_set(cx, key.bytes, text.as_bytes(), Expiry::Keep);
    cx.reply.bulk(text.as_bytes());
    Ok(())
}
