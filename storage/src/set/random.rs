//! Members picked at random: SRANDMEMBER, SPOP.
//!
//! SPOP is logged as what it took: as SREM, or as DEL if it took all.

use super::read::write_all;
use super::{Limits, Set, Shape, ShapeMut};
use crate::collection::Collection;
use crate::context::Context;
use crate::key_hash::Key;
use crate::listpack::{Item, Listpack};
use crate::notify::Class;
use crate::pick::{Choice, REPEATED_MAX, parse_count};
use crate::random::Random;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError, Reply};
use std::collections::BTreeSet;

/// From one in so many on, picks are made while walking through all members; below, by drawing until enough differ.
const DRAWN_SHARE: usize = 3;
/// SPOP that leaves less than one in so many takes out what stays, and gives away the rest whole.
const LEFT_SHARE: usize = 5;
/// Members that one logged SREM names at most.
const LOGGED_AT_ONCE: usize = 1024;

/// `SRANDMEMBER key [count]`: a member, or `count` different ones; `-count` with repetitions.
pub fn srandmember(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let count = match (args.get(2), args.get(3)) {
        (None, _) => None,
        (Some(text), None) => Some(parse_count(text)?),
        (Some(_), Some(_)) => return Err(CommandError::Syntax),
    };
    let (key, mut random) = (cx.first_key(args), cx.random.clone());
    let (set, reply) = cx.look::<Set>(&key)?;
    if set.is_some() && count.is_some_and(|count| count < 0 && count.unsigned_abs() > REPEATED_MAX as u64) {
        return Err(CommandError::Text("ERR value is out of range"));
    }
    match (set, count) {
        (None, None) => reply.null(),
        (None, Some(_)) => reply.array(0),
        (Some(set), None) => match set.random(&mut random) {
            Some(item) => item.write_to(reply),
            None => reply.null(),
        },
        (Some(set), Some(count)) if count < 0 => draw(&set, count.unsigned_abs(), &mut random, reply),
        (Some(set), Some(count)) => pick(&set, usize::try_from(count).unwrap_or(usize::MAX), &mut random, reply),
    }
    *cx.random = random;
    Ok(())
}

/// Writes `count` members, drawn one by one from all.
fn draw(set: &Set, count: u64, random: &mut Random, reply: &mut Reply) {
    reply.array(usize::try_from(count).unwrap_or(usize::MAX));
    // A listpack is walked through for each; a few draws are worth no more.
    let positions = match set.shape() {
        Shape::Packed(list) if count > 2 => Some((list, list.iter().collect::<Vec<_>>())),
        Shape::Packed(_) | Shape::Ints(_) | Shape::Table(_) => None,
    };
    for _ in 0..count {
        match &positions {
            Some((_, items)) => items[random.below(items.len())].write_to(reply),
            None => set.random(random).expect("a set under a key has members").write_to(reply),
        }
    }
}

/// Writes `count` different members, or all.
fn pick(set: &Set, count: usize, random: &mut Random, reply: &mut Reply) {
    let length = set.len();
    let count = count.min(length);
    reply.array(count);
    if let Shape::Table(table) = set.shape()
        && count < length / DRAWN_SHARE
    {
        let mut drawn = BTreeSet::new();
        while drawn.len() < count {
            let member = table.random(random).expect("a set under a key has members");
            if drawn.insert(member) {
                reply.bulk(member);
            }
        }
        return;
    }
    let mut chosen = Choice { left: length, wanted: count };
    set.iter().filter(|_| chosen.takes(random)).for_each(|item| item.write_to(reply));
}

/// `SPOP key [count]`: removes a member, or `count` of them.
pub fn spop(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    match (args.get(2), args.get(3)) {
        (None, _) => pop_one(cx, args),
        (Some(text), None) => {
            let count = parse_i64(text).and_then(|count| usize::try_from(count).ok());
            let count = count.ok_or(CommandError::Text("ERR value is out of range, must be positive"))?;
            pop_several(cx, args, count)
        }
        (Some(_), Some(_)) => Err(CommandError::Syntax),
    }
}

fn pop_one(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (key, mut random) = (cx.first_key(args), cx.random.clone());
    let member = cx.edit::<Set>(&key)?.and_then(|mut set| set.take_random(&mut random));
    *cx.random = random;
    let Some(member) = member else {
        cx.reply.null();
        return Ok(());
    };
    cx.reply.bulk(&member);
    cx.log_instead(&[b"SREM", key.bytes, &member]);
    popped(cx, &key, 1);
    Ok(())
}

fn popped(cx: &mut Context<'_>, key: &Key<'_>, count: usize) {
    cx.changed(key);
    cx.effects.change_many(count as u64 - 1);
    cx.notify(Class::SET, "spop", key);
    cx.notify_if_gone(key);
}

fn pop_several(cx: &mut Context<'_>, args: &Args<'_>, count: usize) -> Result<(), CommandError> {
    let (key, limits, mut random) = (cx.first_key(args), Limits::of(cx), cx.random.clone());
    let taken = match cx.edit::<Set>(&key)? {
        None => Set::default(),
        Some(_) if count == 0 => Set::default(),
        Some(mut set) if count >= set.len() => std::mem::take(&mut *set),
        Some(mut set) => set.take_several(count, &limits, &mut random),
    };
    *cx.random = random;
    write_all(&taken, cx.reply);
    if taken.is_empty() {
        return Ok(());
    }
    if cx.peek(&key).is_none() {
        cx.log_instead(&[b"DEL", key.bytes]);
    } else if cx.effects.recording {
        log_removed(cx, &key, &taken);
    }
    popped(cx, &key, taken.len());
    cx.discard(Collection::Set(taken));
    Ok(())
}

fn log_removed(cx: &mut Context<'_>, key: &Key<'_>, taken: &Set) {
    let mut items = taken.iter().peekable();
    while items.peek().is_some() {
        let members: Vec<Vec<u8>> = items.by_ref().take(LOGGED_AT_ONCE).map(|item| item.to_vec()).collect();
        let mut words: Vec<&[u8]> = vec![b"SREM", key.bytes];
        words.extend(members.iter().map(Vec::as_slice));
        cx.log_instead(&words);
    }
}

impl Set {
    /// Removes a member picked at random.
    fn take_random(&mut self, random: &mut Random) -> Option<Vec<u8>> {
        let member = self.random(random)?.to_vec();
        self.remove(&Item::from(&member[..]));
        Some(member)
    }

    /// Removes `count` members picked at random, less than all, and returns them as a set. What stays of a table may be a packed set
    /// afterwards, as in Redis: where few stay, they are the ones that are taken out.
    fn take_several(&mut self, count: usize, limits: &Limits<'_>, random: &mut Random) -> Self {
        let left = self.len() - count;
        if let ShapeMut::Packed(list) = self.shape_mut() {
            return Self::of_listpack(take_of_list(list, count, random));
        }
        let few_stay = left.saturating_mul(LEFT_SHARE) <= count;
        let mut out = match self.shape() {
            Shape::Ints(_) => Self::default(),
            Shape::Packed(_) | Shape::Table(_) => Self::of_listpack(Listpack::new()),
        };
        for _ in 0..if few_stay { left } else { count } {
            let Some(member) = self.take_random(random) else { break };
            out.insert(Item::from(&member[..]), limits);
        }
        if few_stay { std::mem::replace(self, out) } else { out }
    }
}

/// Takes `count` elements out of a list, in one pass.
fn take_of_list(list: &mut Listpack, count: usize, random: &mut Random) -> Listpack {
    let mut chosen = Choice { left: list.len(), wanted: count };
    let (taken, left): (Vec<Item<'_>>, Vec<Item<'_>>) = list.iter().partition(|_| chosen.takes(random));
    let (taken, left) = (Listpack::of(&taken), Listpack::of(&left));
    *list = left;
    taken
}
