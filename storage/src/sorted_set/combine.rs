//! ZUNION, ZINTER, ZDIFF, their STORE forms and ZINTERCARD. A plain set is a source too: its members have the score 1.
//!
//! An intersection walks through the smallest source and asks the others. Scores are added from the smallest source on, so that sums
//! are rounded as Redis rounds them.

use super::query::{self, Aggregate, Allowed, Options};
use super::range::store;
use super::{Limits, SortedSet, reply_members};
use crate::collection::Collection;
use crate::context::Context;
use crate::listpack::Item;
use crate::loan;
use crate::set::Set;
use simurgh_protocol::number::format_f64;
use simurgh_protocol::{Args, CommandError};
use std::borrow::Cow;
use std::cmp::Ordering;

/// Members and scores that one ZADD of the log holds at most.
const LOGGED_AT_ONCE: usize = 1024;

/// A member of a result with its score. The text is borrowed, unless it is an integer of a packed source.
type Combined<'a> = (Cow<'a, [u8]>, f64);

/// Where members come from.
#[derive(Clone, Copy)]
enum Source<'a> {
    Absent,
    Sorted(&'a SortedSet),
    Plain(&'a Set),
}

impl<'a> Source<'a> {
    fn new(collection: Option<&'a Collection>) -> Self {
        match collection {
            Some(Collection::SortedSet(set)) => Self::Sorted(set),
            Some(Collection::Set(set)) => Self::Plain(set),
            None | Some(Collection::List(_) | Collection::Hash(_) | Collection::Stream(_)) => Self::Absent,
        }
    }

    fn len(self) -> usize {
        match self {
            Self::Absent => 0,
            Self::Sorted(set) => set.len(),
            Self::Plain(set) => set.len(),
        }
    }

    fn members(self) -> Box<dyn Iterator<Item = (Item<'a>, f64)> + 'a> {
        match self {
            Self::Absent => Box::new(std::iter::empty()),
            Self::Sorted(set) => Box::new(set.members(0..set.len())),
            Self::Plain(set) => Box::new(set.iter().map(|member| (member, 1.0))),
        }
    }

    fn score_of(self, member: &Item<'_>) -> Option<f64> {
        match self {
            Self::Absent => None,
            Self::Sorted(set) => member.with_text(|text| set.score_of(text)),
            Self::Plain(set) => set.contains(member).then_some(1.0),
        }
    }
}

fn text<'a>(member: Item<'a>) -> Cow<'a, [u8]> {
    match member {
        Item::Int(_) => Cow::Owned(member.to_vec()),
        Item::Bytes(bytes) => Cow::Borrowed(bytes),
    }
}

/// What is made of the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

impl Operation {
    /// The members of the result, in order.
    fn combine<'a>(self, sources: &[Source<'a>], options: &Options) -> Vec<Combined<'a>> {
        let mut weighted: Vec<_> = sources.iter().copied().zip(options.weights.iter().copied()).collect();
        let mut result = match self {
            Self::Union => {
                weighted.sort_by_key(|(source, _)| source.len());
                union(&weighted, options.aggregate)
            }
            Self::Intersection => {
                weighted.sort_by_key(|(source, _)| source.len());
                let member = |(member, score)| (text(member), score);
                intersection(&weighted, options.aggregate).map(member).collect()
            }
            Self::Difference => difference(sources),
        };
        // Not `total_cmp`: a zero below zero is equal to the other. No score is NaN.
        result.sort_by(|(member, score), (other, other_score)| {
            score.partial_cmp(other_score).unwrap_or(Ordering::Equal).then_with(|| member.cmp(other))
        });
        result
    }
}

fn union<'a>(sources: &[(Source<'a>, f64)], aggregate: Aggregate) -> Vec<Combined<'a>> {
    let weigh = |(source, weight): (Source<'a>, f64)| {
        source.members().map(move |(member, score)| (text(member), aggregate.weigh(score, weight)))
    };
    let mut all: Vec<Combined<'a>> = sources.iter().copied().flat_map(weigh).collect();
    // The sort is stable: the scores of a member stay in the order of the sources.
    all.sort_by(|(member, _), (other, _)| member.cmp(other));
    all.dedup_by(|later, kept| {
        let is_same = later.0 == kept.0;
        if is_same {
            kept.1 = aggregate.join(kept.1, later.1);
        }
        is_same
    });
    all
}

fn intersection<'a, 's>(
    sources: &'s [(Source<'a>, f64)],
    aggregate: Aggregate,
) -> impl Iterator<Item = (Item<'a>, f64)> + use<'a, 's> {
    let (smallest, others) = sources.split_first().expect("a command has a key");
    smallest.0.members().filter_map(move |(member, score)| {
        let mut joined = aggregate.weigh(score, smallest.1);
        for (source, weight) in others {
            joined = aggregate.join(joined, aggregate.weigh_further(source.score_of(&member)?, *weight));
        }
        Some((member, joined))
    })
}

fn difference<'a>(sources: &[Source<'a>]) -> Vec<Combined<'a>> {
    let (first, others) = sources.split_first().expect("a command has a key");
    let is_left = |(member, _): &(Item<'_>, f64)| !others.iter().any(|other| other.score_of(member).is_some());
    first.members().filter(is_left).map(|(member, score)| (text(member), score)).collect()
}

/// Reads keys and options and calls `with` with the sources.
fn with_sources<R>(
    cx: &mut Context<'_>,
    args: &Args<'_>,
    (name, index): (&str, usize),
    allowed: Allowed,
    with: impl FnOnce(&mut Context<'_>, &[Source<'_>], &Options) -> R,
) -> Result<R, CommandError> {
    let range = query::keys(args, index, name)?;
    let keys = args.from(range.start).take(range.len());
    loan::inspect(cx, keys.clone(), |found| matches!(found, Collection::SortedSet(_) | Collection::Set(_)))?;
    let options = Options::parse(args, range.end, range.len(), allowed)?;
    Ok(loan::lend(cx, keys, |cx, collections| {
        let sources: Vec<_> = collections.iter().copied().map(Source::new).collect();
        with(cx, &sources, &options)
    }))
}

fn answer(cx: &mut Context<'_>, args: &Args<'_>, operation: Operation, name: &str) -> Result<(), CommandError> {
    let allowed = Allowed { weights: operation != Operation::Difference, scores: true, limit: false };
    with_sources(cx, args, (name, 1), allowed, |cx, sources, options| {
        let result = operation.combine(sources, options);
        let members = result.iter().map(|(member, score)| (Item::Bytes(member), *score));
        reply_members(cx.reply, members, options.with_scores);
    })
}

fn combine_and_store(
    cx: &mut Context<'_>,
    args: &Args<'_>,
    operation: Operation,
    name: &'static str,
) -> Result<(), CommandError> {
    let allowed = Allowed { weights: operation != Operation::Difference, scores: false, limit: false };
    let limits = Limits::of(cx);
    let (result, aggregate) = with_sources(cx, args, (name, 2), allowed, |_, sources, options| {
        (SortedSet::of_ordered(&operation.combine(sources, options), &limits), options.aggregate)
    })?;
    let key = cx.first_key(args);
    if aggregate == Aggregate::Count {
        log_result(cx, key.bytes, &result);
    }
    store(cx, &key, result, name);
    Ok(())
}

/// Records a result as what it is: older servers do not know how it was made.
pub(crate) fn log_result(cx: &mut Context<'_>, key: &[u8], result: &SortedSet) {
    cx.log_instead(&[b"DEL", key]);
    let mut members = result.members(0..result.len());
    while members.len() > 0 {
        let some = members.by_ref().take(LOGGED_AT_ONCE);
        let pairs: Vec<_> = some.map(|(member, score)| (format_f64(score), member.to_vec())).collect();
        let mut words: Vec<&[u8]> = vec![b"ZADD", key];
        pairs.iter().for_each(|(score, member)| words.extend([score.as_bytes(), member]));
        cx.log_instead(&words);
    }
}

/// `ZUNION numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | MIN | MAX | COUNT] [WITHSCORES]`: the members of any.
pub fn zunion(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    answer(cx, args, Operation::Union, "zunion")
}

/// `ZINTER numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | MIN | MAX | COUNT] [WITHSCORES]`: the members of all.
pub fn zinter(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    answer(cx, args, Operation::Intersection, "zinter")
}

/// `ZDIFF numkeys key [key ...] [WITHSCORES]`: the members of the first that are in no other.
pub fn zdiff(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    answer(cx, args, Operation::Difference, "zdiff")
}

/// `ZUNIONSTORE destination numkeys key [key ...] ...`: stores what ZUNION answers; how many there are.
pub fn zunionstore(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    combine_and_store(cx, args, Operation::Union, "zunionstore")
}

/// `ZINTERSTORE destination numkeys key [key ...] ...`: stores what ZINTER answers; how many there are.
pub fn zinterstore(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    combine_and_store(cx, args, Operation::Intersection, "zinterstore")
}

/// `ZDIFFSTORE destination numkeys key [key ...]`: stores what ZDIFF answers; how many there are.
pub fn zdiffstore(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    combine_and_store(cx, args, Operation::Difference, "zdiffstore")
}

/// `ZINTERCARD numkeys key [key ...] [LIMIT limit]`: the number of members of all, counted up to a limit.
pub fn zintercard(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let allowed = Allowed { weights: false, scores: false, limit: true };
    with_sources(cx, args, ("zintercard", 1), allowed, |cx, sources, options| {
        let mut weighted: Vec<_> = sources.iter().map(|source| (*source, 1.0)).collect();
        weighted.sort_by_key(|(source, _)| source.len());
        cx.reply.count(intersection(&weighted, Aggregate::Sum).take(options.limit).count());
    })
}
