//! ZRANGE, the commands that it has replaced, and ZRANGESTORE: a part of a sorted set, in order.

use super::interval::{Interval, Measure, limited};
use super::{Limits, SortedSet, reply_members};
use crate::collection::Collection;
use crate::context::Context;
use crate::key_hash::Key;
use crate::notify::Class;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};
use std::ops::Range;

/// What a command's name leaves to be said.
#[derive(Clone, Copy)]
struct Form {
    /// What it measures by, unless an option says it.
    measure: Option<Measure>,
    /// Whether it begins with the highest score, unless an option says it.
    reverse: Option<bool>,
    /// The index of the source's key.
    source: usize,
    /// Whether the result is stored, and so has scores in any case.
    is_stored: bool,
}

const fn form(measure: Measure, reverse: bool) -> Form {
    Form { measure: Some(measure), reverse: Some(reverse), source: 1, is_stored: false }
}

/// What a command asks for.
struct Query<'a> {
    interval: Interval<'a>,
    reverse: bool,
    offset: i64,
    count: i64,
    with_scores: bool,
}

impl<'a> Query<'a> {
    fn parse(args: &Args<'a>, form: Form) -> Result<Self, CommandError> {
        let (mut measure, mut reverse) = (form.measure, form.reverse);
        let (mut offset, mut count, mut with_scores) = (0, -1, false);
        let mut index = form.source + 3;
        while index < args.len() {
            match () {
                () if !form.is_stored && args.is(index, "WITHSCORES") => with_scores = true,
                () if args.is(index, "LIMIT") && index + 2 < args.len() => {
                    let number = |at| parse_i64(args.at(at)).ok_or(CommandError::NotAnInteger);
                    (offset, count) = (number(index + 1)?, number(index + 2)?);
                    index += 2;
                }
                () if form.reverse.is_none() && args.is(index, "REV") => reverse = Some(true),
                () if measure.is_none() && args.is(index, "BYLEX") => measure = Some(Measure::Member),
                () if measure.is_none() && args.is(index, "BYSCORE") => measure = Some(Measure::Score),
                () => return Err(CommandError::Syntax),
            }
            index += 1;
        }
        let (measure, reverse) = (measure.unwrap_or(Measure::Rank), reverse.unwrap_or(false));
        if measure == Measure::Rank && count != -1 {
            return Err(CommandError::Text(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            ));
        }
        if with_scores && measure == Measure::Member {
            return Err(CommandError::Text("ERR syntax error, WITHSCORES not supported in combination with BYLEX"));
        }
        if measure == Measure::Rank {
            // LIMIT without a limit is let through, and its offset ignored.
            offset = 0;
        }
        let (first, second) = (args.at(form.source + 1), args.at(form.source + 2));
        Ok(Self { interval: Interval::parse(measure, first, second, reverse)?, reverse, offset, count, with_scores })
    }

    fn ranks(&self, set: &SortedSet) -> Range<usize> {
        limited(self.interval.ranks(set, self.reverse), self.offset, self.count, self.reverse)
    }
}

fn answer(cx: &mut Context<'_>, args: &Args<'_>, form: Form) -> Result<(), CommandError> {
    let query = Query::parse(args, form)?;
    let key = cx.first_key(args);
    let (set, reply) = cx.look::<SortedSet>(&key)?;
    let Some(set) = set else {
        reply.array(0);
        return Ok(());
    };
    let members = set.members(query.ranks(&set));
    if query.reverse {
        reply_members(reply, members.rev(), query.with_scores);
    } else {
        reply_members(reply, members, query.with_scores);
    }
    Ok(())
}

/// `ZRANGE key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]`: the members between two ranks, scores or members.
pub fn zrange(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    answer(cx, args, Form { measure: None, reverse: None, source: 1, is_stored: false })
}

/// `ZREVRANGE key start stop [WITHSCORES]`: the members between two ranks, from the highest score.
pub fn zrevrange(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    answer(cx, args, form(Measure::Rank, true))
}

/// `ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]`: the members between two scores.
pub fn zrangebyscore(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    answer(cx, args, form(Measure::Score, false))
}

/// `ZREVRANGEBYSCORE key max min [WITHSCORES] [LIMIT offset count]`: the members between two scores, from the highest.
pub fn zrevrangebyscore(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    answer(cx, args, form(Measure::Score, true))
}

/// `ZRANGEBYLEX key min max [LIMIT offset count]`: the members between two of them, where all scores are equal.
pub fn zrangebylex(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    answer(cx, args, form(Measure::Member, false))
}

/// `ZREVRANGEBYLEX key max min [LIMIT offset count]`: the members between two of them, from the last.
pub fn zrevrangebylex(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    answer(cx, args, form(Measure::Member, true))
}

/// `ZRANGESTORE destination source min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]`: stores what ZRANGE answers; how many there are.
pub fn zrangestore(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let query = Query::parse(args, Form { measure: None, reverse: None, source: 2, is_stored: true })?;
    let limits = Limits::of(cx);
    let source = cx.key(args.at(2));
    let (set, _) = cx.look::<SortedSet>(&source)?;
    let mut result = SortedSet::default();
    if let Some(set) = set {
        for (member, score) in set.members(query.ranks(&set)) {
            member.with_text(|member| result.insert(member, score, &limits));
        }
    }
    let key = cx.first_key(args);
    store(cx, &key, result, "zrangestore");
    Ok(())
}

/// Puts a command's result under its destination's key, and answers how many members it has.
pub(crate) fn store(cx: &mut Context<'_>, key: &Key<'_>, result: SortedSet, event: &'static str) {
    let count = result.len();
    if cx.replace(key, Collection::SortedSet(result)) {
        cx.changed(key);
        if count > 0 {
            cx.notify(Class::SORTED_SET, event, key);
        } else {
            cx.notify(Class::GENERIC, "del", key);
        }
    }
    cx.reply.count(count);
}
