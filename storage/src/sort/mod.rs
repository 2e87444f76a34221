//! SORT and SORT_RO: the elements of a list, a set or a sorted set, in order.
//!
//! Commands: <https://redis.io/docs/latest/commands/sort/>. The keys that BY and GET name follow from the elements, so all shards are
//! held. Elements that compare equal are in the order of their texts, so that a replay stores the same list; where fields of
//! hashes had a say, which may expire by themselves, the outcome is recorded instead.

mod options;
mod order;
mod pattern;
#[cfg(test)]
mod tests;

use crate::collection::Collection;
use crate::context::Context;
use crate::key_hash::Key;
use crate::list::{Limit, List};
use crate::listpack::Item;
use crate::notify::Class;
use options::Options;
use pattern::Pattern;
use simurgh_protocol::{Args, CommandError};

/// `SORT key [BY pattern] [LIMIT offset count] [GET pattern ...] [ASC | DESC] [ALPHA] [STORE destination]`: the elements, or how many
/// were stored.
pub fn sort(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let options = Options::parse(args, true)?;
    run(cx, args, &options)
}

/// `SORT_RO key [...]`: as SORT, without STORE.
pub fn sort_ro(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let options = Options::parse(args, false)?;
    run(cx, args, &options)
}

fn run(cx: &mut Context<'_>, args: &Args<'_>, options: &Options<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let (kind, elements) = elements(cx, &key)?;
    // What comes in no order would be another with every run of a script, or with a replay.
    let needs_order = kind == Kind::Set && (options.store.is_some() || cx.in_script);
    let sorted = if options.is_unsorted() && !needs_order {
        // A set has no order to be reversed.
        if options.is_descending && kind == Kind::Ordered { elements.into_iter().rev().collect() } else { elements }
    } else if options.is_unsorted() {
        order::by_text(elements, options.is_descending)
    } else {
        order::sort(cx, elements, options)?
    };
    let picked = &sorted[options.range(sorted.len())];
    match options.store {
        Some(destination) => store(cx, &cx.key(destination), picked, options),
        None => answer(cx, picked, options),
    }
    Ok(())
}

/// What is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A list or a sorted set.
    Ordered,
    /// A set.
    Set,
}

/// The elements of a key, in the order in which it has them.
fn elements(cx: &mut Context<'_>, key: &Key<'_>) -> Result<(Kind, Vec<Vec<u8>>), CommandError> {
    let Some(entry) = cx.read(key) else { return Ok((Kind::Ordered, Vec::new())) };
    let collection = entry.collection().ok_or(CommandError::WrongType)?;
    let kind = match &*collection {
        Collection::List(_) | Collection::SortedSet(_) => Kind::Ordered,
        Collection::Set(_) => Kind::Set,
        Collection::Hash(_) | Collection::Stream(_) => return Err(CommandError::WrongType),
    };
    let mut elements = Vec::with_capacity(collection.len());
    collection.for_each(&mut |parts| elements.push(parts[0].to_vec()));
    Ok((kind, elements))
}

/// Answers with the elements, or with what GET finds for each.
fn answer(cx: &mut Context<'_>, elements: &[Vec<u8>], options: &Options<'_>) {
    cx.reply.array(elements.len() * options.get.len().max(1));
    for element in elements {
        if options.get.is_empty() {
            cx.reply.bulk(element);
        }
        for pattern in &options.get {
            match pattern.look_up(cx, element) {
                Some(value) => cx.reply.bulk(&value),
                None => cx.reply.null(),
            }
        }
    }
}

/// Stores what [`answer`] would answer, empty texts in the place of nulls, and answers how many there are.
fn store(cx: &mut Context<'_>, destination: &Key<'_>, elements: &[Vec<u8>], options: &Options<'_>) {
    let found: Vec<Vec<u8>> = elements
        .iter()
        .flat_map(|element| options.get.iter().map(move |pattern| (pattern, element)))
        .map(|(pattern, element)| pattern.look_up(cx, element).unwrap_or_default().into_owned())
        .collect();
    let stored = if options.get.is_empty() { elements } else { &found };
    let limit = Limit::new(&cx.settings.packing);
    let list = List::of_items(stored.iter().map(Item::from), limit);
    let was_there = cx.peek(destination).is_some();
    let is_changed = cx.replace(destination, Collection::List(list));
    if is_changed {
        cx.effects.change_many((stored.len() as u64).saturating_sub(1));
        cx.changed(destination);
    }
    if stored.is_empty() {
        if was_there {
            cx.notify(Class::GENERIC, "del", destination);
        }
    } else {
        if !was_there {
            cx.notify(Class::NEW, "new", destination);
        }
        cx.notify(Class::LIST, "sortstore", destination);
    }
    if is_changed && options.patterns().any(Pattern::is_of_field) {
        log_outcome(cx, destination, stored);
    }
    cx.reply.count(stored.len());
}

fn log_outcome(cx: &mut Context<'_>, destination: &Key<'_>, stored: &[Vec<u8>]) {
    cx.log_instead(&[b"DEL", destination.bytes]);
    if !stored.is_empty() {
        let words: Vec<&[u8]> =
            [b"RPUSH", destination.bytes].into_iter().chain(stored.iter().map(Vec::as_slice)).collect();
        cx.log_instead(&words);
    }
}
