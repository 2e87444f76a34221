//! Commands that read one set: SCARD, SISMEMBER, SMISMEMBER, SMEMBERS.

use super::Set;
use crate::context::Context;
use crate::listpack::Item;
use simurgh_protocol::{Args, CommandError, Reply};

/// `SCARD key`: the number of members.
pub fn scard(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let (set, reply) = cx.look::<Set>(&key)?;
    reply.count(set.map_or(0, |set| set.len()));
    Ok(())
}

/// `SISMEMBER key member`: 1 or 0.
pub fn sismember(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let (set, reply) = cx.look::<Set>(&key)?;
    reply.integer(set.is_some_and(|set| set.contains(&Item::from(args.at(2)))).into());
    Ok(())
}

/// `SMISMEMBER key member [member ...]`: 1 or 0 for each.
pub fn smismember(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let (set, reply) = cx.look::<Set>(&key)?;
    let members = args.from(2);
    reply.array(members.len());
    for member in members {
        reply.integer(set.as_ref().is_some_and(|set| set.contains(&Item::from(member))).into());
    }
    Ok(())
}

/// `SMEMBERS key`: all members.
pub fn smembers(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    match cx.look::<Set>(&key)? {
        (Some(set), reply) => write_all(&set, reply),
        (None, reply) => reply.set(0),
    }
    Ok(())
}

/// Writes a set as a reply.
pub(super) fn write_all(set: &Set, reply: &mut Reply) {
    reply.set(set.len());
    set.iter().for_each(|item| item.write_to(reply));
}
