//! LMOVEM (Redis 8.10): several elements go from an end of one list to an end of another, or of the same.
//!
//! `OBO` moves them one by one, as so many LMOVE would; `BULK` takes them in one piece, so that they keep their order. Either way the
//! answer is the piece as it then stands in the destination.

use super::pop::positive;
use super::transfer::{Element, length};
use super::{End, Limit, List};
use crate::context::Context;
use crate::key_hash::Key;
use crate::notify::Class;
use simurgh_protocol::{Args, CommandError};

/// How many elements, and in which order.
#[derive(Clone, Copy, Debug)]
pub struct HowMany {
    /// At most so many.
    pub count: usize,
    /// No fewer either.
    pub is_exact: bool,
    /// They keep their order.
    pub is_bulk: bool,
}

impl HowMany {
    /// Reads `COUNT | EXACTLY number OBO | BULK` from argument `index` on; one element without it.
    pub fn parse(args: &Args<'_>, index: usize) -> Result<Self, CommandError> {
        if args.len() == index {
            return Ok(Self { count: 1, is_exact: false, is_bulk: false });
        }
        let is_exact = args.is(index, "EXACTLY");
        if args.len() != index + 3 || !is_exact && !args.is(index, "COUNT") {
            return Err(CommandError::Syntax);
        }
        let count = positive(args.at(index + 1), "ERR count should be greater than 0")?;
        let is_bulk = args.is(index + 2, "BULK");
        if !is_bulk && !args.is(index + 2, "OBO") {
            return Err(CommandError::Syntax);
        }
        Ok(Self { count, is_exact, is_bulk })
    }
}

/// `LMOVEM source destination LEFT | RIGHT LEFT | RIGHT [COUNT | EXACTLY number OBO | BULK]`: the elements, or null without any.
pub fn lmovem(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (from, to) = (End::parse(args, 3)?, End::parse(args, 4)?);
    let how_many = HowMany::parse(args, 5)?;
    let (source, destination) = (cx.first_key(args), cx.key(args.at(2)));
    if !move_several(cx, [&source, &destination], [from, to], how_many)? {
        cx.reply.null_array();
    }
    Ok(())
}

/// Moves elements from the first key's list to the second's, answers with an array of them and tells of it; false, and no answer, if
/// there are none or too few.
pub fn move_several(
    cx: &mut Context<'_>,
    [source, destination]: [&Key<'_>; 2],
    [from, to]: [End; 2],
    how_many: HowMany,
) -> Result<bool, CommandError> {
    let there = length(cx, source)?.unwrap_or(0);
    if there == 0 || how_many.is_exact && there < how_many.count {
        return Ok(false);
    }
    length(cx, destination)?;
    let mut elements = take(cx, source, from, how_many.count)?;
    // In the order in which they stand in the destination.
    let is_reversed = if how_many.is_bulk { from == End::Back } else { to == End::Front };
    if is_reversed {
        elements.reverse();
    }
    put(cx, destination, to, &elements)?;
    if source.bytes != destination.bytes {
        cx.tell_watchers(source);
    }
    cx.effects.change_many(elements.len() as u64 - 1);
    cx.changed(destination);
    tell(cx, [source, destination], [from, to]);
    log(cx, [source, destination], [from, to], &elements);
    cx.reply.array(elements.len());
    elements.iter().for_each(|element| element.item().write_to(cx.reply));
    Ok(true)
}

fn take(cx: &mut Context<'_>, key: &Key<'_>, end: End, count: usize) -> Result<Vec<Element>, CommandError> {
    let limit = Limit::new(&cx.settings.packing);
    let Some(mut list) = cx.edit::<List>(key)? else { return Ok(Vec::new()) };
    let elements = (0..count).map_while(|_| list.pop(end, Element::of)).collect();
    list.shrink(limit);
    Ok(elements)
}

fn put(cx: &mut Context<'_>, key: &Key<'_>, end: End, elements: &[Element]) -> Result<(), CommandError> {
    let limit = Limit::new(&cx.settings.packing);
    let mut list = cx.edit_or_create::<List>(key)?;
    list.make_room(elements.iter().map(Element::counted_length).sum(), elements.len(), limit);
    match end {
        End::Back => elements.iter().for_each(|element| list.push(end, element.item(), limit)),
        End::Front => elements.iter().rev().for_each(|element| list.push(end, element.item(), limit)),
    }
    Ok(())
}

/// Of one list it tells that elements went and came, of two that they came and went, as Redis.
fn tell(cx: &mut Context<'_>, [source, destination]: [&Key<'_>; 2], [from, to]: [End; 2]) {
    if source.bytes == destination.bytes {
        cx.notify(Class::LIST, from.pop_event(), source);
        cx.notify(Class::LIST, to.push_event(), destination);
        return;
    }
    cx.notify(Class::LIST, to.push_event(), destination);
    cx.notify(Class::LIST, from.pop_event(), source);
    cx.notify_if_gone(source);
}

/// Records the move in commands that Redis 8.2 knows.
fn log(cx: &mut Context<'_>, [source, destination]: [&Key<'_>; 2], [from, to]: [End; 2], elements: &[Element]) {
    super::log_pop(cx, source, from, Some(elements.len()));
    let texts: Vec<Vec<u8>> = elements.iter().map(|element| element.item().to_vec()).collect();
    let mut words: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
    let name: &[u8] = match to {
        End::Front => {
            words.reverse();
            b"LPUSH"
        }
        End::Back => b"RPUSH",
    };
    cx.log_instead(&[&[name, destination.bytes], &words[..]].concat());
}
