//! LPUSH, RPUSH, LPUSHX, RPUSHX: elements come to an end.

use super::{End, Limit, List};
use crate::context::Context;
use crate::notify::Class;
use simurgh_protocol::{Args, CommandError};

/// `LPUSH key element [element ...]`: the new length. The last element named is then the first of the list.
pub fn lpush(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    push(cx, args, End::Front, true)
}

/// `RPUSH key element [element ...]`: the new length.
pub fn rpush(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    push(cx, args, End::Back, true)
}

/// `LPUSHX key element [element ...]`: as LPUSH, but 0 without a list.
pub fn lpushx(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    push(cx, args, End::Front, false)
}

/// `RPUSHX key element [element ...]`: as RPUSH, but 0 without a list.
pub fn rpushx(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    push(cx, args, End::Back, false)
}

fn push(cx: &mut Context<'_>, args: &Args<'_>, end: End, creates: bool) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let limit = Limit::new(&cx.settings.packing);
    let length = if creates {
        push_all(&mut *cx.edit_or_create::<List>(&key)?, args, end, limit)
    } else {
        cx.edit::<List>(&key)?.map_or(0, |mut list| push_all(&mut list, args, end, limit))
    };
    if length > 0 {
        cx.effects.change_many(args.len() as u64 - 3);
        cx.changed(&key);
        cx.notify(Class::LIST, end.push_event(), &key);
    }
    cx.reply.count(length);
    Ok(())
}

/// Adds the elements from argument 2 on; the new length.
fn push_all(list: &mut List, args: &Args<'_>, end: End, limit: Limit) -> usize {
    let elements = args.from(2);
    list.make_room(elements.clone().map(<[u8]>::len).sum(), elements.len(), limit);
    for element in elements {
        list.push(end, element.into(), limit);
    }
    list.len()
}
