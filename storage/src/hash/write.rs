//! HSET, HMSET, HSETNX, HDEL.

use super::expired::forget_expired;
use super::{Hash, Limits};
use crate::context::{Context, Expiry};
use crate::notify::Class;
use simurgh_protocol::{Args, CommandError};

/// `HSET key field value ...`: how many fields are new.
pub fn hset(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let added = set_pairs(cx, args, "hset")?;
    cx.reply.count(added);
    Ok(())
}

/// `HMSET key field value ...`.
pub fn hmset(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    set_pairs(cx, args, "hmset")?;
    cx.reply.ok();
    Ok(())
}

fn set_pairs(cx: &mut Context<'_>, args: &Args<'_>, command: &'static str) -> Result<usize, CommandError> {
    if !args.len().is_multiple_of(2) {
        return Err(CommandError::WrongArity(command));
    }
    let (key, limits) = (cx.first_key(args), Limits::of(cx));
    forget_expired(cx, &key, args.from(2).step_by(2));
    let mut hash = cx.edit_or_create::<Hash>(&key)?;
    hash.prepare(args.len() / 2 - 1, &limits);
    let pairs = (2..args.len()).step_by(2).map(|at| (args.at(at), args.at(at + 1)));
    let added = pairs.filter(|(field, value)| hash.set(field, value, Expiry::Clear, &limits)).count();
    drop(hash);
    cx.changed(&key);
    cx.notify(Class::HASH, "hset", &key);
    Ok(added)
}

/// `HSETNX key field value`: 1 if the field is new, 0 if it was there and stays as it was.
pub fn hsetnx(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (key, field, limits) = (cx.first_key(args), args.at(2), Limits::of(cx));
    forget_expired(cx, &key, std::iter::once(field));
    let mut hash = cx.edit_or_create::<Hash>(&key)?;
    let is_new = hash.find(field).is_none();
    if is_new {
        hash.set(field, args.at(3), Expiry::Clear, &limits);
    }
    drop(hash);
    if is_new {
        cx.changed(&key);
        cx.notify(Class::HASH, "hset", &key);
    }
    cx.reply.integer(i64::from(is_new));
    Ok(())
}

/// `HDEL key field ...`: how many fields there were, those included whose time has come but that were still there, as in Redis.
pub fn hdel(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let removed = match cx.edit::<Hash>(&key)? {
        Some(mut hash) => args.from(2).filter(|field| hash.remove(field)).count(),
        None => 0,
    };
    if removed > 0 {
        cx.changed(&key);
        cx.notify(Class::HASH, "hdel", &key);
        cx.notify_if_gone(&key);
    }
    cx.reply.count(removed);
    Ok(())
}
