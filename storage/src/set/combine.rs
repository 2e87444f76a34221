//! What several sets have in common, hold together or hold alone: SINTER, SUNION, SDIFF and the commands that count it.
//!
//! Each member is given away as soon as it is found, straight into the reply or a count; no result is built on the way.

use super::loan::with_sets;
use super::probe::Probe;
use super::{Set, Shape};
use crate::context::Context;
use crate::dict::Dict;
use crate::key_hash::KeyHasher;
use crate::listpack::Item;
use crate::member::Member;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};
use std::cmp::Reverse;

/// A union of at most this many sets asks each member of the sets before it; of more, the members seen are gathered.
const ASKED_MAX: usize = 8;

/// Takes a member; whether it wants another.
type With<'w> = dyn FnMut(Item<'_>) -> bool + 'w;

/// One of the three, for all members that it finds.
type Combine = fn(&[Option<&Set>], &KeyHasher, &mut With<'_>);

/// The sets that are there, each once, in order.
fn distinct<'s>(sets: &[Option<&'s Set>]) -> Vec<&'s Set> {
    let mut distinct: Vec<&Set> = Vec::with_capacity(sets.len());
    for set in sets.iter().flatten() {
        // Only a few are worth the search; naming one often is only slow.
        if distinct.len() > ASKED_MAX || !distinct.iter().any(|other| std::ptr::eq(*other, *set)) {
            distinct.push(set);
        }
    }
    distinct
}

/// The sets, the smallest first; none if one is missing.
pub(super) fn by_size<'s>(sets: &[Option<&'s Set>]) -> Option<Vec<&'s Set>> {
    let mut sets: Vec<&Set> = sets.iter().copied().collect::<Option<_>>()?;
    sets.sort_by_cached_key(|set| set.len());
    Some(sets)
}

/// The members of all sets, in the order of the smallest.
pub(super) fn intersect(sets: &[Option<&Set>], _: &KeyHasher, with: &mut With<'_>) {
    let Some(sets) = by_size(sets) else { return };
    let [smallest, others @ ..] = &sets[..] else { return };
    for item in smallest.iter() {
        let mut probe = Probe::new(item);
        if others.iter().all(|set| probe.is_in(set)) && !with(item) {
            return;
        }
    }
}

/// The members of any set.
fn unite(sets: &[Option<&Set>], hasher: &KeyHasher, with: &mut With<'_>) {
    let mut sets = distinct(sets);
    let integers = sets.iter().map(|set| if let Shape::Ints(ints) = set.shape() { Some(ints) } else { None });
    if let Some(integers) = integers.collect::<Option<Vec<_>>>() {
        let mut all: Vec<i64> = integers.iter().flat_map(|ints| ints.iter()).collect();
        all.sort_unstable();
        all.dedup();
        all.into_iter().all(|number| with(Item::Int(number)));
        return;
    }
    // The largest first: its members are asked of no other.
    sets.sort_by_cached_key(|set| Reverse(set.len()));
    let mut seen = (sets.len() > ASKED_MAX).then(|| Dict::<Member>::new(hasher));
    for (index, set) in sets.iter().enumerate() {
        for item in set.iter() {
            let is_new = match &mut seen {
                Some(seen) => item.with_text(|text| seen.insert_with(text, || Member::new(text))),
                None => {
                    let mut probe = Probe::new(item);
                    !sets[..index].iter().any(|before| probe.is_in(before))
                }
            };
            if is_new && !with(item) {
                return;
            }
        }
    }
}

/// Whether the first set's members are best asked of each other set, as Redis weighs it; else the others' members are gathered.
pub(super) fn is_asking_cheaper(sets: &[Option<&Set>]) -> bool {
    let lengths: Vec<usize> = sets.iter().flatten().map(|set| set.len()).collect();
    let asking = lengths.first().copied().unwrap_or(0).saturating_mul(lengths.len()) / 2;
    asking <= lengths.iter().fold(0, |sum, length| sum.saturating_add(*length))
}

/// The members of the first set that no other has, in its order.
pub(super) fn subtract(sets: &[Option<&Set>], hasher: &KeyHasher, with: &mut With<'_>) {
    let [Some(first), others @ ..] = sets else { return };
    if others.iter().flatten().any(|other| std::ptr::eq(*other, *first)) {
        return;
    }
    let is_asking = is_asking_cheaper(sets);
    let mut others = distinct(others);
    let gathered;
    if is_asking {
        // A member that is in another set is likelier to be in a large one.
        others.sort_by_cached_key(|set| Reverse(set.len()));
    } else {
        let mut table = Dict::new(hasher);
        for item in others.iter().flat_map(|set| set.iter()) {
            item.with_text(|text| table.insert_with(text, || Member::new(text)));
        }
        gathered = Set::of_table(table);
        others = vec![&gathered];
    }
    for item in first.iter() {
        let mut probe = Probe::new(item);
        if !others.iter().any(|set| probe.is_in(set)) && !with(item) {
            return;
        }
    }
}

/// Replies with all members that `combine` finds.
fn reply_members(cx: &mut Context<'_>, args: &Args<'_>, combine: Combine) -> Result<(), CommandError> {
    with_sets(cx, args.from(1), |cx, sets| {
        let (mark, mut count) = (cx.reply.open_array(), 0);
        combine(sets, &cx.layout.hasher, &mut |item| {
            item.write_to(cx.reply);
            count += 1;
            true
        });
        cx.reply.close_set(mark, count);
    })
}

/// `SINTER key [key ...]`: the members that all have.
pub fn sinter(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    reply_members(cx, args, intersect)
}

/// `SUNION key [key ...]`: the members that any has.
pub fn sunion(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    reply_members(cx, args, unite)
}

/// `SDIFF key [key ...]`: the members that only the first has.
pub fn sdiff(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    reply_members(cx, args, subtract)
}

/// Where the options of a counting command begin, behind a number of keys and the keys.
fn options_at(args: &Args<'_>) -> Result<usize, CommandError> {
    let count = parse_i64(args.at(1)).filter(|count| *count > 0);
    let count = count.ok_or(CommandError::Text("ERR numkeys should be greater than 0"))?;
    let end = usize::try_from(count).ok().and_then(|count| count.checked_add(2)).filter(|end| *end <= args.len());
    end.ok_or(CommandError::Text("ERR Number of keys can't be greater than number of args"))
}

/// Replies with the number of members that `combine` finds, up to the limit.
fn reply_count(cx: &mut Context<'_>, args: &Args<'_>, has_approx: bool, combine: Combine) -> Result<(), CommandError> {
    let end = options_at(args)?;
    let (mut limit, mut index) = (0, end);
    while index < args.len() {
        if args.is(index, "LIMIT") && index + 1 < args.len() {
            let number = parse_i64(args.at(index + 1)).and_then(|number| usize::try_from(number).ok());
            limit = number.ok_or(CommandError::Text("ERR LIMIT can't be negative"))?;
            index += 2;
        } else if has_approx && args.is(index, "APPROX") {
            index += 1;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    let count = with_sets(cx, args.from(2).take(end - 2), |cx, sets| {
        let mut count = 0;
        combine(sets, &cx.layout.hasher, &mut |_| {
            count += 1;
            count != limit
        });
        count
    })?;
    cx.reply.count(count);
    Ok(())
}

/// `SINTERCARD numkeys key [key ...] [LIMIT limit]`: how many members all have.
pub fn sintercard(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    reply_count(cx, args, false, intersect)
}

/// `SUNIONCARD numkeys key [key ...] [APPROX] [LIMIT limit]`: how many members any has. What may be approximate is exact here.
pub fn sunioncard(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    reply_count(cx, args, true, unite)
}

/// `SDIFFCARD numkeys key [key ...] [LIMIT limit]`: how many members only the first has.
pub fn sdiffcard(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    reply_count(cx, args, false, subtract)
}
