//! Commands that store what several sets make: SINTERSTORE, SUNIONSTORE, SDIFFSTORE.
//!
//! A new set is built, and its representation is that to which Redis's way of building leads: an integer at a time from an empty
//! intset, but an intersection from a listpack if the smallest set is one, which becomes an intset again if it can.

use super::combine::{by_size, intersect, is_asking_cheaper, subtract};
use super::loan::with_sets;
use super::{Limits, Set, Shape};
use crate::collection::Collection;
use crate::context::Context;
use crate::listpack::Listpack;
use crate::notify::Class;
use simurgh_protocol::{Args, CommandError};

type Build = fn(&[Option<&Set>], &Limits<'_>) -> Set;

/// Stores what `build` makes of the sets, and tells of it under `event`.
fn store(cx: &mut Context<'_>, args: &Args<'_>, build: Build, event: &'static str) -> Result<(), CommandError> {
    let (to, limits) = (cx.first_key(args), Limits::of(cx));
    let set = with_sets(cx, args.from(2), |_, sets| build(sets, &limits))?;
    let count = set.len();
    if cx.replace(&to, Collection::Set(set)) {
        cx.changed(&to);
        match count {
            0 => cx.notify(Class::GENERIC, "del", &to),
            _ => cx.notify(Class::SET, event, &to),
        }
    }
    cx.reply.count(count);
    Ok(())
}

fn intersection(sets: &[Option<&Set>], limits: &Limits<'_>) -> Set {
    let smallest = by_size(sets).and_then(|sets| sets.first().copied());
    let mut result = match smallest.map(Set::shape) {
        Some(Shape::Packed(_)) => Set::of_listpack(Listpack::new()),
        Some(Shape::Ints(_) | Shape::Table(_)) | None => Set::default(),
    };
    intersect(sets, limits.hasher, &mut |item| {
        result.insert(item, limits);
        true
    });
    result.make_ints(limits);
    result
}

fn union(sets: &[Option<&Set>], limits: &Limits<'_>) -> Set {
    let mut result = Set::default();
    for item in sets.iter().flatten().flat_map(|set| set.iter()) {
        result.insert(item, limits);
    }
    result
}

fn difference(sets: &[Option<&Set>], limits: &Limits<'_>) -> Set {
    let mut result = Set::default();
    if is_asking_cheaper(sets) {
        subtract(sets, limits.hasher, &mut |item| {
            result.insert(item, limits);
            true
        });
        return result;
    }
    let [Some(first), others @ ..] = sets else { return result };
    for item in first.iter() {
        result.insert(item, limits);
    }
    for item in others.iter().flatten().flat_map(|set| set.iter()) {
        result.remove(&item);
        if result.is_empty() {
            break;
        }
    }
    result
}

/// `SINTERSTORE destination key [key ...]`: how many members all have.
pub fn sinterstore(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    store(cx, args, intersection, "sinterstore")
}

/// `SUNIONSTORE destination key [key ...]`: how many members any has.
pub fn sunionstore(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    store(cx, args, union, "sunionstore")
}

/// `SDIFFSTORE destination key [key ...]`: how many members only the first has.
pub fn sdiffstore(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    store(cx, args, difference, "sdiffstore")
}
