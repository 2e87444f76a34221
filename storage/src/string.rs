//! Strings: bytes up to `proto-max-bulk-len`, or a 64-bit integer kept as one.
//!
//! Commands: <https://redis.io/docs/latest/commands/?group=string>. To add one, write its row in
//! `protocol/commands/string.toml`, its function here and its case in `tests/cases`.

use crate::context::{Context, Expiry};
use crate::entry::Value;
use simurgh_protocol::{Args, CommandError};

/// Writes a stored value as a bulk string.
pub(crate) fn reply_value(reply: &mut simurgh_protocol::Reply, value: Value<'_>) {
    match value {
        Value::Int(number) => reply.bulk_integer(number),
        Value::Bytes(bytes) => reply.bulk(bytes),
    }
}

/// `GET key`: the value, or null.
pub fn get(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    match cx.lookup(&key) {
        (Some(entry), reply) => reply_value(reply, entry.value()),
        (None, reply) => reply.null(),
    }
    Ok(())
}

/// `SETNX key value`: 1 if the key was set, 0 if it was there.
pub fn setnx(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let is_new = cx.write(&key).is_none();
    if is_new {
        cx.store(&key, Value::from_bytes(args.at(2)), Expiry::Clear);
    }
    cx.reply.integer(i64::from(is_new));
    Ok(())
}
