//! GETDEL, GETEX, GETSET: commands that answer a string and change its key.

use super::expiration::Expiration;
use super::reply_value;
use super::set::log_set;
use crate::context::{Context, Expiry};
use crate::key_hash::Key;
use crate::notify::Class;
use crate::string_value::Value;
use simurgh_protocol::{Args, CommandError};

/// Answers the value or null; whether the key is there.
fn answer(cx: &mut Context<'_>, key: &Key<'_>) -> Result<bool, CommandError> {
    let (entry, reply) = cx.lookup(key);
    match entry {
        Some(entry) => reply_value(reply, entry.string()?),
        None => reply.null(),
    }
    Ok(entry.is_some())
}

/// `GETDEL key`: the value, whose key is gone afterwards, or null.
pub fn getdel(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    if answer(cx, &key)? {
        cx.remove(&key);
        cx.log_instead(&[b"DEL", key.bytes]);
        cx.notify(Class::GENERIC, "del", &key);
    }
    Ok(())
}

/// `GETSET key value`: the value before, or null.
pub fn getset(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (key, value) = (cx.first_key(args), args.at(2));
    answer(cx, &key)?;
    cx.store(&key, Value::from_bytes(value), Expiry::Clear);
    cx.notify(Class::STRING, "set", &key);
    log_set(cx, key.bytes, value, Expiry::Clear);
    Ok(())
}

/// What GETEX does to the expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change<'a> {
    Nothing,
    Persist,
    Set(Expiration<'a>),
}

impl<'a> Change<'a> {
    fn read(args: &Args<'a>) -> Result<Self, CommandError> {
        let (mut change, mut index) = (Self::Nothing, 2);
        while index < args.len() {
            let (said, width) = if args.is(index, "PERSIST") {
                (Self::Persist, 1)
            } else {
                (Self::Set(Expiration::read(args, index).ok_or(CommandError::Syntax)?), 2)
            };
            let agrees = match (change, said) {
                (Self::Nothing, _) | (Self::Persist, Self::Persist) => true,
                (Self::Set(before), Self::Set(said)) => before.form == said.form,
                (Self::Persist | Self::Set(_), _) => false,
            };
            if !agrees {
                return Err(CommandError::Syntax);
            }
            (change, index) = (said, index + width);
        }
        Ok(change)
    }
}

/// `GETEX key [EX seconds | PX milliseconds | EXAT seconds | PXAT milliseconds | PERSIST]`: the value, or null.
pub fn getex(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let change = Change::read(args)?;
    let key = cx.first_key(args);
    if !answer(cx, &key)? {
        return Ok(());
    }
    match change {
        Change::Nothing => {}
        Change::Persist => {
            if cx.peek(&key).is_some_and(|entry| entry.expires_at().is_some()) {
                cx.set_expiry(&key, None);
                cx.log_instead(&[b"PERSIST", key.bytes]);
                cx.notify(Class::GENERIC, "persist", &key);
            }
        }
        Change::Set(expiration) => {
            let at = expiration.instant(cx.now_ms, "getex")?;
            expire_at(cx, &key, at);
        }
    }
    Ok(())
}

/// Sets the expiry of a key that is there; one in the past deletes it.
fn expire_at(cx: &mut Context<'_>, key: &Key<'_>, at: i64) {
    if at <= cx.now_ms && !cx.replaying {
        cx.remove(key);
        cx.log_instead(&[b"DEL", key.bytes]);
        cx.notify(Class::GENERIC, "del", key);
    } else {
        cx.set_expiry(key, Some(at));
        cx.log_instead(&[b"PEXPIREAT", key.bytes, itoa::Buffer::new().format(at).as_bytes()]);
        cx.notify(Class::GENERIC, "expire", key);
    }
}
