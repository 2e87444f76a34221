//! ZPOPMIN, ZPOPMAX, ZMPOP and those that wait for a sorted set: members are taken from an end.
//!
//! The log says what was taken in commands that do not wait: `ZPOPMIN key`, or `ZPOPMIN key count`.

use super::remove::tell;
use super::{SortedSet, reply_members};
use crate::blocking::{Awaits, Block, Null, deadline_of_seconds};
use crate::context::Context;
use crate::key_hash::Key;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError, Reply};
use std::ops::Range;

/// An end of a sorted set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The lowest scores.
    Min,
    /// The highest scores.
    Max,
}

impl End {
    fn parse(args: &Args<'_>, index: usize) -> Result<Self, CommandError> {
        match () {
            () if args.is(index, "MIN") => Ok(Self::Min),
            () if args.is(index, "MAX") => Ok(Self::Max),
            () => Err(CommandError::Syntax),
        }
    }

    /// The command that takes from it.
    fn command(self) -> &'static [u8] {
        match self {
            Self::Min => b"ZPOPMIN",
            Self::Max => b"ZPOPMAX",
        }
    }

    fn event(self) -> &'static str {
        match self {
            Self::Min => "zpopmin",
            Self::Max => "zpopmax",
        }
    }

    /// The ranks of `count` members at this end.
    fn ranks(self, count: usize, len: usize) -> Range<usize> {
        let count = count.min(len);
        match self {
            Self::Min => 0..count,
            Self::Max => len - count..len,
        }
    }

    /// Writes members, this end's first.
    fn reply(self, reply: &mut Reply, set: &SortedSet, ranks: Range<usize>, shape: Shape) {
        let members = set.members(ranks);
        match self {
            Self::Min => shape.reply(reply, members),
            Self::Max => shape.reply(reply, members.rev()),
        }
    }
}

/// How an answer lies.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Member and score, in pairs where the protocol has doubles.
    Several,
    /// Member and score of one, by themselves.
    One,
    /// Behind the key, as one array with them.
    BehindKey,
    /// Behind the key, as an array of pairs.
    PairsBehindKey,
}

impl Shape {
    fn reply<'a>(self, reply: &mut Reply, members: impl ExactSizeIterator<Item = (crate::listpack::Item<'a>, f64)>) {
        match self {
            Self::Several => return reply_members(reply, members, true),
            Self::One => reply.array(2 * members.len()),
            Self::BehindKey => {}
            Self::PairsBehindKey => reply.array(members.len()),
        }
        for (member, score) in members {
            if matches!(self, Self::PairsBehindKey) {
                reply.array(2);
            }
            member.write_to(reply);
            reply.double(score);
        }
    }
}

/// Takes `count` members from the set at `key`, and answers with them; how many there were.
fn take(cx: &mut Context<'_>, key: &Key<'_>, end: End, count: usize, shape: Shape) -> Result<usize, CommandError> {
    let (set, reply) = cx.look::<SortedSet>(key)?;
    let Some(set) = set else { return Ok(0) };
    let ranks = end.ranks(count, set.len());
    match shape {
        Shape::Several | Shape::One => {}
        Shape::BehindKey => {
            reply.array(3);
            reply.bulk(key.bytes);
        }
        Shape::PairsBehindKey => {
            reply.array(2);
            reply.bulk(key.bytes);
        }
    }
    end.reply(reply, &set, ranks.clone(), shape);
    if let Some(mut set) = cx.edit::<SortedSet>(key)? {
        set.remove_ranks(ranks.clone());
    }
    tell(cx, key, ranks.len(), end.event());
    Ok(ranks.len())
}

/// `ZPOPMIN key [count]`: takes the members with the lowest scores.
pub fn zpopmin(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    pop(cx, args, End::Min)
}

/// `ZPOPMAX key [count]`: takes the members with the highest scores.
pub fn zpopmax(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    pop(cx, args, End::Max)
}

fn pop(cx: &mut Context<'_>, args: &Args<'_>, end: End) -> Result<(), CommandError> {
    if args.len() > 3 {
        return Err(CommandError::Syntax);
    }
    let count = args.get(2).map(|text| parse_i64(text).and_then(|count| usize::try_from(count).ok()));
    let count = match count {
        Some(None) => return Err(CommandError::Text("ERR value is out of range, must be positive")),
        Some(Some(count)) => Some(count),
        None => None,
    };
    let key = cx.first_key(args);
    let shape = if count.is_some() { Shape::Several } else { Shape::One };
    let mark = cx.reply.len();
    if take(cx, &key, end, count.unwrap_or(1), shape)? == 0 {
        cx.reply.truncate(mark);
        cx.reply.array(0);
    }
    Ok(())
}

/// What ZMPOP and BZMPOP have in common: `numkeys key [key ...] <MIN | MAX> [COUNT count]`.
struct Several {
    keys: Range<usize>,
    end: End,
    count: usize,
}

impl Several {
    fn parse(args: &Args<'_>, index: usize) -> Result<Self, CommandError> {
        let positive = |at: usize, text| {
            let number = parse_i64(args.at(at)).and_then(|number| usize::try_from(number).ok());
            number.filter(|number| *number > 0).ok_or(CommandError::Text(text))
        };
        let keys = positive(index, "ERR numkeys should be greater than 0")?;
        let where_index = (index + 1).checked_add(keys).filter(|at| *at < args.len()).ok_or(CommandError::Syntax)?;
        let end = End::parse(args, where_index)?;
        let mut count = None;
        let mut option = where_index + 1;
        while option < args.len() {
            if count.is_some() || !args.is(option, "COUNT") || option + 1 == args.len() {
                return Err(CommandError::Syntax);
            }
            count = Some(positive(option + 1, "ERR count should be greater than 0")?);
            option += 2;
        }
        Ok(Self { keys: index + 1..where_index, end, count: count.unwrap_or(1) })
    }

    /// Takes from the first set that is there; whether there was one.
    fn serve(&self, cx: &mut Context<'_>, args: &Args<'_>) -> Result<bool, CommandError> {
        for index in self.keys.clone() {
            let key = cx.key(args.at(index));
            let taken = take(cx, &key, self.end, self.count, Shape::PairsBehindKey)?;
            if taken > 0 {
                let text = itoa::Buffer::new().format(taken).to_owned();
                cx.log_instead(&[self.end.command(), key.bytes, text.as_bytes()]);
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// `ZMPOP numkeys key [key ...] <MIN | MAX> [COUNT count]`: takes members from the first sorted set that is there; its key and they.
pub fn zmpop(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    if !Several::parse(args, 1)?.serve(cx, args)? {
        cx.reply.null_array();
    }
    Ok(())
}

/// `BZMPOP timeout numkeys key [key ...] <MIN | MAX> [COUNT count]`: ZMPOP, waiting for a sorted set.
pub fn bzmpop(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let several = Several::parse(args, 2)?;
    let deadline_ms = deadline_of_seconds(args.at(1), cx.now_ms)?;
    if !several.serve(cx, args)? {
        wait(cx, args, several.keys, deadline_ms);
    }
    Ok(())
}

fn wait(cx: &mut Context<'_>, args: &Args<'_>, keys: Range<usize>, deadline_ms: Option<i64>) {
    let keys = keys.map(|index| args.at(index).into()).collect();
    cx.block(Block { keys, awaits: Awaits::SortedSet, deadline_ms, words: None }, Null::Array);
}

/// `BZPOPMIN key [key ...] timeout`: takes the member with the lowest score from the first sorted set that is there, waiting for one.
pub fn bzpopmin(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    pop_or_wait(cx, args, End::Min)
}

/// `BZPOPMAX key [key ...] timeout`: takes the member with the highest score from the first sorted set that is there, waiting for one.
pub fn bzpopmax(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    pop_or_wait(cx, args, End::Max)
}

fn pop_or_wait(cx: &mut Context<'_>, args: &Args<'_>, end: End) -> Result<(), CommandError> {
    let last = args.len() - 1;
    let deadline_ms = deadline_of_seconds(args.at(last), cx.now_ms)?;
    for index in 1..last {
        let key = cx.key(args.at(index));
        if take(cx, &key, end, 1, Shape::BehindKey)? > 0 {
            cx.log_instead(&[end.command(), key.bytes]);
            return Ok(());
        }
    }
    wait(cx, args, 1..last, deadline_ms);
    Ok(())
}
