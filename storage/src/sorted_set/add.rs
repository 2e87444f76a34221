//! ZADD and ZINCRBY: members come, or get other scores.

use super::{Limits, SortedSet};
use crate::context::Context;
use crate::notify::Class;
use simurgh_protocol::number::parse_f64;
use simurgh_protocol::{Args, CommandError};

const NOT_A_NUMBER: CommandError = CommandError::Text("ERR resulting score is not a number (NaN)");

/// Which members are touched, and how.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    /// `NX`: only members that are not there.
    pub absent: bool,
    /// `XX`: only members that are.
    pub present: bool,
    /// `GT`: only to a higher score.
    pub greater: bool,
    /// `LT`: only to a lower score.
    pub lower: bool,
    /// `CH`: changed scores are counted too.
    pub count_changed: bool,
    /// `INCR`: the score is an increment.
    pub increment: bool,
}

impl Options {
    /// The options from `index` on, and the index behind them.
    fn parse(args: &Args<'_>, mut index: usize) -> (Self, usize) {
        let mut options = Self::default();
        loop {
            match () {
                () if args.is(index, "NX") => options.absent = true,
                () if args.is(index, "XX") => options.present = true,
                () if args.is(index, "GT") => options.greater = true,
                () if args.is(index, "LT") => options.lower = true,
                () if args.is(index, "CH") => options.count_changed = true,
                () if args.is(index, "INCR") => options.increment = true,
                () => return (options, index),
            }
            index += 1;
        }
    }

    fn check(&self, pairs: usize) -> Result<(), CommandError> {
        if self.absent && self.present {
            return Err(CommandError::Text("ERR XX and NX options at the same time are not compatible"));
        }
        if (self.greater && (self.absent || self.lower)) || (self.lower && self.absent) {
            return Err(CommandError::Text("ERR GT, LT, and/or NX options at the same time are not compatible"));
        }
        if self.increment && pairs > 1 {
            return Err(CommandError::Text("ERR INCR option supports a single increment-element pair"));
        }
        Ok(())
    }
}

/// What became of a member.
enum Outcome {
    /// It was left as it was, or out.
    Untouched,
    /// It came to be with this score.
    Added(f64),
    /// It has this score now.
    Changed(f64),
    /// It had this score already.
    Same(f64),
}

impl SortedSet {
    fn add(
        &mut self,
        member: &[u8],
        score: f64,
        options: Options,
        limits: &Limits<'_>,
    ) -> Result<Outcome, CommandError> {
        let Options { absent, present, greater, lower, count_changed: _, increment } = options;
        let mut new = score;
        if absent || present || greater || lower || increment {
            match self.score_of(member) {
                Some(_) if absent => return Ok(Outcome::Untouched),
                Some(old) => {
                    new = if increment { old + score } else { score };
                    if new.is_nan() {
                        return Err(NOT_A_NUMBER);
                    }
                    if (lower && new >= old) || (greater && new <= old) {
                        return Ok(Outcome::Untouched);
                    }
                }
                None if present => return Ok(Outcome::Untouched),
                None => {}
            }
        }
        Ok(match self.insert(member, new, limits) {
            None => Outcome::Added(new),
            Some(old) if old == new => Outcome::Same(new),
            Some(_) => Outcome::Changed(new),
        })
    }
}

/// `ZADD key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]`: how many were added (with CH: or changed), or with INCR
/// the new score.
pub fn zadd(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (options, first) = Options::parse(args, 2);
    let words = args.len() - first;
    if words == 0 || !words.is_multiple_of(2) {
        return Err(CommandError::Syntax);
    }
    options.check(words / 2)?;
    let pair = |index| match parse_f64(args.at(index)) {
        Some(score) => Ok((score, args.at(index + 1))),
        None => Err(CommandError::NotAFloat),
    };
    // All scores are read before the first member is touched.
    let pairs = (first..args.len()).step_by(2).map(pair).collect::<Result<Vec<_>, _>>()?;
    add_all(cx, args, &pairs, options).map(drop)
}

/// `ZINCRBY key increment member`: the new score.
pub fn zincrby(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let score = parse_f64(args.at(2)).ok_or(CommandError::NotAFloat)?;
    add_all(cx, args, &[(score, args.at(3))], Options { increment: true, ..Options::default() }).map(drop)
}

/// Adds scores and members to the set at argument 1, and answers as ZADD does; how many came or changed.
pub(crate) fn add_all(
    cx: &mut Context<'_>,
    args: &Args<'_>,
    pairs: &[(f64, &[u8])],
    options: Options,
) -> Result<usize, CommandError> {
    let key = cx.first_key(args);
    let limits = Limits::of(cx);
    if options.present && cx.edit::<SortedSet>(&key)?.is_none() {
        if options.increment {
            cx.reply.null();
        } else {
            cx.reply.integer(0);
        }
        return Ok(0);
    }
    let mut set = cx.edit_or_create::<SortedSet>(&key)?;
    // As Redis does it: a new set's representation is chosen by the number of words and the first member.
    let first = if set.is_empty() { pairs.first().map_or(0, |(_, member)| member.len()) } else { 0 };
    set.make_room(pairs.len(), first, &limits);
    let (mut added, mut changed, mut last) = (0, 0, None);
    for (score, member) in pairs {
        last = match set.add(member, *score, options, &limits)? {
            Outcome::Untouched => None,
            Outcome::Same(score) => Some(score),
            Outcome::Added(score) => {
                added += 1;
                Some(score)
            }
            Outcome::Changed(score) => {
                changed += 1;
                Some(score)
            }
        };
    }
    drop(set);
    if added + changed > 0 {
        cx.changed(&key);
        cx.notify(Class::SORTED_SET, if options.increment { "zincr" } else { "zadd" }, &key);
    }
    match last {
        _ if !options.increment => cx.reply.count(if options.count_changed { added + changed } else { added }),
        Some(score) => cx.reply.double(score),
        None => cx.reply.null(),
    }
    Ok(added + changed)
}
