//! LMOVE, RPOPLPUSH: an element goes from an end of one list to an end of another, or of the same.

use super::{End, Limit, List};
use crate::collection::Kind as _;
use crate::context::Context;
use crate::key_hash::Key;
use crate::listpack::Item;
use crate::notify::Class;
use simurgh_protocol::{Args, CommandError};

/// `LMOVE source destination LEFT | RIGHT LEFT | RIGHT`: the element, or null without one.
pub fn lmove(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (from, to) = (End::parse(args, 3)?, End::parse(args, 4)?);
    let (source, destination) = (cx.first_key(args), cx.key(args.at(2)));
    if !move_one(cx, &source, &destination, from, to)? {
        cx.reply.null();
    }
    Ok(())
}

/// `RPOPLPUSH source destination`: LMOVE from the end to the beginning.
pub fn rpoplpush(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (source, destination) = (cx.first_key(args), cx.key(args.at(2)));
    if !move_one(cx, &source, &destination, End::Back, End::Front)? {
        cx.reply.null();
    }
    Ok(())
}

/// An element between two lists.
pub(super) enum Element {
    Int(i64),
    Text(Vec<u8>),
}

impl Element {
    pub fn of(item: Item<'_>) -> Self {
        match item {
            Item::Int(number) => Self::Int(number),
            Item::Bytes(text) => Self::Text(text.to_vec()),
        }
    }

    pub fn item(&self) -> Item<'_> {
        match self {
            Self::Int(number) => Item::Int(*number),
            Self::Text(text) => Item::Bytes(text),
        }
    }

    /// What a list that may outgrow its packed form counts: integers not at all, as Redis.
    pub fn counted_length(&self) -> usize {
        match self {
            Self::Int(_) => 0,
            Self::Text(text) => text.len(),
        }
    }
}

/// The length of a key's list, without any trace of the look.
pub(super) fn length(cx: &mut Context<'_>, key: &Key<'_>) -> Result<Option<usize>, CommandError> {
    let Some(entry) = cx.peek(key) else { return Ok(None) };
    let collection = entry.collection().ok_or(CommandError::WrongType)?;
    List::of(&collection).map(|list| Some(list.len())).ok_or(CommandError::WrongType)
}

/// Moves an element, answers with it and tells of it; false, and no answer, if there is no source.
pub fn move_one(
    cx: &mut Context<'_>,
    source: &Key<'_>,
    destination: &Key<'_>,
    from: End,
    to: End,
) -> Result<bool, CommandError> {
    let limit = Limit::new(&cx.settings.packing);
    if length(cx, source)?.is_none() {
        return Ok(false);
    }
    length(cx, destination)?;
    let (Some(mut list), reply) = cx.edit_with_reply::<List>(source)? else { return Ok(false) };
    let Some(element) = list.pop(from, Element::of) else { return Ok(false) };
    element.item().write_to(reply);
    let add = |list: &mut List| {
        list.make_room(element.counted_length(), 1, limit);
        list.push(to, element.item(), limit);
    };
    if source.bytes == destination.bytes {
        add(&mut list);
        list.shrink(limit);
        drop(list);
    } else {
        list.shrink(limit);
        drop(list);
        add(&mut *cx.edit_or_create::<List>(destination)?);
        cx.tell_watchers(source);
    }
    cx.changed(destination);
    cx.notify(Class::LIST, to.push_event(), destination);
    cx.notify(Class::LIST, from.pop_event(), source);
    cx.notify_if_gone(source);
    Ok(true)
}
