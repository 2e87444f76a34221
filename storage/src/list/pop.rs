//! LPOP, RPOP, LMPOP: elements go from an end.
//!
//! [`pop_one`] and [`pop_several`] take from a key, answer, and tell of it: whoever waited for an element does just that when there is one.

use super::{End, Limit, List};
use crate::context::Context;
use crate::key_hash::Key;
use crate::notify::Class;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};

/// `LPOP key [count]`: the first element, or the first ones.
pub fn lpop(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    pop(cx, args, End::Front, "lpop")
}

/// `RPOP key [count]`: the last element, or the last ones, the last of them first.
pub fn rpop(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    pop(cx, args, End::Back, "rpop")
}

fn pop(cx: &mut Context<'_>, args: &Args<'_>, end: End, name: &'static str) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let Some(count) = args.get(2) else {
        if !pop_one(cx, &key, end)? {
            cx.reply.null();
        }
        return Ok(());
    };
    if args.len() > 3 {
        return Err(CommandError::WrongArity(name));
    }
    let count = parse_i64(count)
        .and_then(|count| usize::try_from(count).ok())
        .ok_or(CommandError::Text("ERR value is out of range, must be positive"))?;
    if pop_several(cx, &key, end, count)?.is_none() {
        cx.reply.null_array();
    }
    Ok(())
}

/// Takes the element at one end of a list, answers with it and tells of it; false, and no answer, if there is no list.
pub fn pop_one(cx: &mut Context<'_>, key: &Key<'_>, end: End) -> Result<bool, CommandError> {
    let limit = Limit::new(&cx.settings.packing);
    let (Some(mut list), reply) = cx.edit_with_reply::<List>(key)? else { return Ok(false) };
    list.pop(end, |item| item.write_to(reply));
    list.shrink(limit);
    drop(list);
    tell(cx, key, end);
    Ok(true)
}

/// Takes up to `count` elements from one end of a list, answers with an array of them and tells of it; how many there were, or
/// nothing, and no answer, if there is no list.
pub fn pop_several(cx: &mut Context<'_>, key: &Key<'_>, end: End, count: usize) -> Result<Option<usize>, CommandError> {
    let limit = Limit::new(&cx.settings.packing);
    let (Some(mut list), reply) = cx.edit_with_reply::<List>(key)? else { return Ok(None) };
    let length = list.len();
    let count = count.min(length);
    reply.array(count);
    let (first, start, towards) = match end {
        End::Front => (0, 0, End::Back),
        End::Back => (length - 1, length - count, End::Front),
    };
    list.iter_from(first, towards).take(count).for_each(|item| item.write_to(reply));
    if count == 0 {
        return Ok(Some(0));
    }
    list.remove_run(start, count);
    list.shrink(limit);
    drop(list);
    cx.effects.change_many(count as u64 - 1);
    tell(cx, key, end);
    Ok(Some(count))
}

fn tell(cx: &mut Context<'_>, key: &Key<'_>, end: End) {
    cx.changed(key);
    cx.notify(Class::LIST, end.pop_event(), key);
    cx.notify_if_gone(key);
}

/// Records LPOP or RPOP in place of the command that took the elements.
pub fn log_pop(cx: &mut Context<'_>, key: &Key<'_>, end: End, count: Option<usize>) {
    let name: &[u8] = if end == End::Front { b"LPOP" } else { b"RPOP" };
    match count {
        None => cx.log_instead(&[name, key.bytes]),
        Some(count) => cx.log_instead(&[name, key.bytes, itoa::Buffer::new().format(count).as_bytes()]),
    }
}

/// What follows the number of keys in LMPOP and BLMPOP.
pub struct Several {
    /// The index behind the last key.
    pub end_of_keys: usize,
    /// From which end.
    pub end: End,
    /// How many at most.
    pub count: usize,
}

impl Several {
    /// Reads the number of keys at argument `index`, and what follows the keys.
    pub fn parse(args: &Args<'_>, index: usize) -> Result<Self, CommandError> {
        let keys = positive(args.at(index), "ERR numkeys should be greater than 0")?;
        let end_of_keys = keys.checked_add(index + 1).filter(|end| *end < args.len()).ok_or(CommandError::Syntax)?;
        let end = End::parse(args, end_of_keys)?;
        let count = match args.len() - end_of_keys {
            1 => 1,
            3 if args.is(end_of_keys + 1, "COUNT") => {
                positive(args.at(end_of_keys + 2), "ERR count should be greater than 0")?
            }
            // A count that stands twice is a syntax error only if the first one is good.
            length if length > 3 && args.is(end_of_keys + 1, "COUNT") => {
                positive(args.at(end_of_keys + 2), "ERR count should be greater than 0")?;
                return Err(CommandError::Syntax);
            }
            _ => return Err(CommandError::Syntax),
        };
        Ok(Self { end_of_keys, end, count })
    }
}

/// A number of at least one.
pub(super) fn positive(text: &[u8], otherwise: &'static str) -> Result<usize, CommandError> {
    let number = parse_i64(text).and_then(|number| usize::try_from(number).ok()).filter(|number| *number > 0);
    number.ok_or(CommandError::Text(otherwise))
}

/// `LMPOP numkeys key [key ...] LEFT | RIGHT [COUNT count]`: the first key that holds a list, and elements from its end.
pub fn lmpop(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let several = Several::parse(args, 1)?;
    if !pop_first_of(cx, args, 2..several.end_of_keys, &several)? {
        cx.reply.null_array();
    }
    Ok(())
}

/// Takes elements from the first of the keys at these arguments that holds a list, answers with the key and them, and records LPOP or
/// RPOP; false, and no answer, if none does.
pub fn pop_first_of(
    cx: &mut Context<'_>,
    args: &Args<'_>,
    keys: std::ops::Range<usize>,
    several: &Several,
) -> Result<bool, CommandError> {
    for index in keys {
        let key = cx.key(args.at(index));
        let mark = cx.reply.len();
        cx.reply.array(2);
        cx.reply.bulk(key.bytes);
        if let Some(count) = pop_several(cx, &key, several.end, several.count)? {
            log_pop(cx, &key, several.end, Some(count));
            return Ok(true);
        }
        cx.reply.truncate(mark);
    }
    Ok(false)
}
