//! What ZUNION, ZINTER, ZDIFF and their kin are asked for: keys, then weights, how scores become one, what to answer.

use simurgh_protocol::number::{parse_f64, parse_i64};
use simurgh_protocol::{Args, CommandError};
use std::ops::Range;

/// How the scores of a member become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aggregate {
    /// Their sum.
    Sum,
    /// The lowest.
    Min,
    /// The highest.
    Max,
    /// The sum of the weights alone. Redis 8.8 has brought it.
    Count,
}

impl Aggregate {
    /// The score that a member brings from one source.
    pub fn weigh(self, score: f64, weight: f64) -> f64 {
        let weighted = self.weigh_further(score, weight);
        // An infinite score of no weight.
        if weighted.is_nan() { 0.0 } else { weighted }
    }

    /// The same from a further source of an intersection, where Redis lets an infinite score of no weight spoil a sum.
    pub fn weigh_further(self, score: f64, weight: f64) -> f64 {
        if self == Self::Count { weight } else { score * weight }
    }

    /// The score of two.
    pub fn join(self, score: f64, other: f64) -> f64 {
        match self {
            Self::Min => {
                if other < score {
                    other
                } else {
                    score
                }
            }
            Self::Max => {
                if other > score {
                    other
                } else {
                    score
                }
            }
            Self::Sum | Self::Count => {
                let sum = score + other;
                // Infinities that cancel each other.
                if sum.is_nan() { 0.0 } else { sum }
            }
        }
    }
}

/// The options that a command has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    /// `WEIGHTS` and `AGGREGATE`.
    pub weights: bool,
    /// `WITHSCORES`.
    pub scores: bool,
    /// `LIMIT`.
    pub limit: bool,
}

/// The options that were given.
#[derive(Debug)]
pub(super) struct Options {
    /// One for each key.
    pub weights: Vec<f64>,
    pub aggregate: Aggregate,
    pub with_scores: bool,
    /// ZINTERCARD counts no further.
    pub limit: usize,
}

/// `numkeys key [key ...]` from `index` on: where the keys are.
pub(super) fn keys(args: &Args<'_>, index: usize, name: &str) -> Result<Range<usize>, CommandError> {
    let count = parse_i64(args.at(index)).ok_or(CommandError::NotAnInteger)?;
    if count < 1 {
        return Err(CommandError::Owned(format!("ERR at least 1 input key is needed for '{name}' command")));
    }
    let count = usize::try_from(count).ok().filter(|count| *count < args.len() - index).ok_or(CommandError::Syntax)?;
    Ok(index + 1..index + 1 + count)
}

impl Options {
    /// What follows `count` keys, from `index` on.
    pub fn parse(args: &Args<'_>, mut index: usize, count: usize, allowed: Allowed) -> Result<Self, CommandError> {
        let mut options =
            Self { weights: vec![1.0; count], aggregate: Aggregate::Sum, with_scores: false, limit: usize::MAX };
        while index < args.len() {
            let left = args.len() - index;
            if allowed.weights && left > count && args.is(index, "WEIGHTS") {
                for (weight, text) in options.weights.iter_mut().zip(args.from(index + 1)) {
                    *weight = parse_f64(text).ok_or(CommandError::Text("ERR weight value is not a float"))?;
                }
                index += 1 + count;
            } else if allowed.weights && left >= 2 && args.is(index, "AGGREGATE") {
                options.aggregate = match () {
                    () if args.is(index + 1, "SUM") => Aggregate::Sum,
                    () if args.is(index + 1, "MIN") => Aggregate::Min,
                    () if args.is(index + 1, "MAX") => Aggregate::Max,
                    () if args.is(index + 1, "COUNT") => Aggregate::Count,
                    () => return Err(CommandError::Syntax),
                };
                index += 2;
            } else if allowed.scores && args.is(index, "WITHSCORES") {
                options.with_scores = true;
                index += 1;
            } else if allowed.limit && left >= 2 && args.is(index, "LIMIT") {
                let limit = parse_i64(args.at(index + 1)).and_then(|limit| usize::try_from(limit).ok());
                options.limit = match limit.ok_or(CommandError::Text("ERR LIMIT can't be negative"))? {
                    0 => usize::MAX,
                    limit => limit,
                };
                index += 2;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(options)
    }
}
