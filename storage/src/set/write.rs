//! Commands that add members to a set or take named ones away: SADD, SREM, SMOVE.

use super::{Limits, Set};
use crate::collection::View;
use crate::context::Context;
use crate::entry::LENGTH_MAX;
use crate::key_hash::Key;
use crate::listpack::Item;
use crate::notify::Class;
use simurgh_protocol::{Args, CommandError};

/// `SADD key member [member ...]`: how many were added.
pub fn sadd(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (key, limits, members) = (cx.first_key(args), Limits::of(cx), args.from(2));
    if members.clone().any(|member| member.len() > LENGTH_MAX) {
        return Err(CommandError::StringTooLong);
    }
    let mut set = cx.edit_or_create::<Set>(&key)?;
    if set.is_empty() {
        *set = Set::for_members(&Item::from(args.at(2)), members.len(), &limits);
    } else {
        set.make_room(members.len(), &limits);
    }
    let added = members.filter(|member| set.insert(Item::from(*member), &limits)).count();
    drop(set);
    if added > 0 {
        cx.changed(&key);
        cx.effects.change_many(added as u64 - 1);
        cx.notify(Class::SET, "sadd", &key);
    }
    cx.reply.count(added);
    Ok(())
}

/// `SREM key member [member ...]`: how many were removed.
pub fn srem(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let mut removed = 0;
    if let Some(mut set) = cx.edit::<Set>(&key)? {
        for member in args.from(2) {
            removed += usize::from(set.remove(&Item::from(member)));
            if removed > 0 && set.is_empty() {
                break;
            }
        }
    }
    if removed > 0 {
        cx.changed(&key);
        cx.effects.change_many(removed as u64 - 1);
        cx.notify(Class::SET, "srem", &key);
        cx.notify_if_gone(&key);
    }
    cx.reply.count(removed);
    Ok(())
}

/// Asks something of the set under a key, if it is there, without a trace.
fn ask<R>(cx: &mut Context<'_>, key: &Key<'_>, what: impl FnOnce(&Set) -> R) -> Result<Option<R>, CommandError> {
    let Some(entry) = cx.peek(key) else { return Ok(None) };
    let set = entry.collection().and_then(View::<Set>::new).ok_or(CommandError::WrongType)?;
    Ok(Some(what(&set)))
}

/// `SMOVE source destination member`: 1 if the member was in the source; then it is in the destination only.
pub fn smove(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (from, to, limits) = (cx.first_key(args), cx.key(args.at(2)), Limits::of(cx));
    let member = Item::from(args.at(3));
    let Some(is_member) = ask(cx, &from, |set| set.contains(&member))? else {
        cx.reply.integer(0);
        return Ok(());
    };
    ask(cx, &to, |_| ())?;
    if is_member && from.bytes != to.bytes {
        if let Some(mut set) = cx.edit::<Set>(&from)? {
            set.remove(&member);
        }
        cx.changed(&from);
        cx.notify(Class::SET, "srem", &from);
        cx.notify_if_gone(&from);
        let mut set = cx.edit_or_create::<Set>(&to)?;
        if set.is_empty() {
            *set = Set::for_members(&member, 1, &limits);
        }
        let is_new = set.insert(member, &limits);
        drop(set);
        if is_new {
            cx.changed(&to);
            cx.notify(Class::SET, "sadd", &to);
        }
    }
    cx.reply.integer(is_member.into());
    Ok(())
}
