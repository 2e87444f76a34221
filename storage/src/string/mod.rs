//! Strings: bytes up to `proto-max-bulk-len`, or a 64-bit integer kept as one.
//!
//! | file | commands |
//! | --- | --- |
//! | `read` | GET GETRANGE MGET STRLEN SUBSTR |
//! | `take` | GETDEL GETEX GETSET: read and change at once |
//! | `set` | SET SETEX PSETEX SETNX |
//! | `several` | MSET MSETEX MSETNX |
//! | `edit` | APPEND SETRANGE: change in place |
//! | `increment` | INCR INCRBY DECR DECRBY INCRBYFLOAT |
//! | `increment_within` | INCREX |
//! | `compare` | DELEX DELIFEQ DIGEST |
//! | `lcs` | LCS |
//!
//! Commands: <https://redis.io/docs/latest/commands/?group=string>. To add one, write its row in
//! `protocol/commands/string.toml`, its function here and its case in `tests/cases`.
//!
//! What goes to the log must mean the same whenever it is replayed, and to Redis 8.2 and Valkey 9 too. So an expiry is recorded
//! as the instant it falls at, and a condition or a number computed on this node as its outcome.

mod compare;
mod edit;
mod expiration;
mod increment;
mod increment_within;
mod lcs;
mod read;
mod set;
mod several;
mod take;
#[cfg(test)]
mod tests;

pub use compare::{delex, delifeq, digest};
pub(crate) use edit::edit_bytes;
pub use edit::{append, setrange};
pub use increment::{decr, decrby, incr, incrby, incrbyfloat};
pub use increment_within::increx;
pub use lcs::lcs;
pub use read::{get, getrange, mget, strlen, substr};
pub use set::{psetex, set, setex, setnx};
pub use several::{mset, msetex, msetnx};
pub use take::{getdel, getex, getset};

use crate::context::Context;
use crate::entry::LENGTH_MAX;
use crate::string_value::Value;
use simurgh_protocol::{CommandError, Reply};

/// Writes a stored value as a bulk string.
pub(crate) fn reply_value(reply: &mut Reply, value: Value<'_>) {
    match value {
        Value::Int(number) => reply.bulk_integer(number),
        Value::Bytes(bytes) => reply.bulk(bytes),
    }
}

/// Writes a stored value as a bulk string, or null.
fn reply_value_or_null(reply: &mut Reply, value: Option<Value<'_>>) {
    match value {
        Some(value) => reply_value(reply, value),
        None => reply.null(),
    }
}

/// The longest that a string may become, in bytes.
fn longest(cx: &Context<'_>) -> usize {
    usize::try_from(cx.settings.bulk_max).unwrap_or(usize::MAX).min(LENGTH_MAX)
}

/// `offset + length`, unless that is longer than a string may be.
fn checked_length(offset: usize, length: usize, longest: usize) -> Result<usize, CommandError> {
    offset.checked_add(length).filter(|total| *total <= longest).ok_or(CommandError::StringTooLong)
}
