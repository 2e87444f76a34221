//! What part of a sorted set a command asks for: by rank, by score or, where all scores are equal, by member.

use super::SortedSet;
use crate::listpack::Item;
use simurgh_protocol::CommandError;
use simurgh_protocol::number::parse_i64;
use std::ops::Range;

/// A part of a sorted set.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Interval<'a> {
    /// From the first to the last rank; negative ones are counted from the end.
    Ranks(i64, i64),
    /// From the lowest to the highest score.
    Scores(ScoreBound, ScoreBound),
    /// From the first to the last member.
    Members(MemberBound<'a>, MemberBound<'a>),
}

/// What an interval is measured by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Ranks.
    Rank,
    /// Scores.
    Score,
    /// Members.
    Member,
}

/// An end of an interval of scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ScoreBound {
    score: f64,
    is_open: bool,
}

/// An end of an interval of members.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum MemberBound<'a> {
    /// `-`: before all.
    First,
    /// `[member`.
    Closed(&'a [u8]),
    /// `(member`.
    Open(&'a [u8]),
    /// `+`: behind all.
    Last,
}

impl ScoreBound {
    /// `1.5`, `(1.5`, `-inf`. Redis asks its reader of numbers only what stopped it: so nothing is 0, a zero byte ends the text, and
    /// what is too large is infinite.
    pub fn parse(text: &[u8]) -> Result<Self, CommandError> {
        const ERROR: CommandError = CommandError::Text("ERR min or max is not a float");
        let text = text.split(|byte| *byte == 0).next().unwrap_or(text);
        let (is_open, text) = text.strip_prefix(b"(").map_or((false, text), |rest| (true, rest));
        if text.is_empty() {
            return Ok(Self { score: 0.0, is_open });
        }
        let score = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        score.filter(|score: &f64| !score.is_nan()).map(|score| Self { score, is_open }).ok_or(ERROR)
    }
}

impl<'a> MemberBound<'a> {
    /// `[a`, `(a`, `-`, `+`.
    pub fn parse(text: &'a [u8]) -> Result<Self, CommandError> {
        match text {
            [b'-'] | [b'-', 0, ..] => Ok(Self::First),
            [b'+'] | [b'+', 0, ..] => Ok(Self::Last),
            [b'[', member @ ..] => Ok(Self::Closed(member)),
            [b'(', member @ ..] => Ok(Self::Open(member)),
            _ => Err(CommandError::Text("ERR min or max not valid string range item")),
        }
    }

    /// As the lower end: whether it leaves a member in.
    fn admits_from(self, member: &[u8]) -> bool {
        match self {
            Self::First => true,
            Self::Closed(bound) => member >= bound,
            Self::Open(bound) => member > bound,
            Self::Last => false,
        }
    }

    /// As the upper end: whether it leaves a member in.
    fn admits_to(self, member: &[u8]) -> bool {
        match self {
            Self::First => false,
            Self::Closed(bound) => member <= bound,
            Self::Open(bound) => member < bound,
            Self::Last => true,
        }
    }
}

/// Whether no member can lie between these ends.
fn is_void(from: MemberBound<'_>, to: MemberBound<'_>) -> bool {
    use MemberBound::{Closed, First, Last, Open};
    match (from, to) {
        (Last, _) | (_, First) => true,
        (First, _) | (_, Last) => false,
        (Closed(from), Closed(to)) => from > to,
        (Closed(from) | Open(from), Closed(to) | Open(to)) => from >= to,
    }
}

impl<'a> Interval<'a> {
    /// The interval between two words; with `reverse`, the upper end of scores and members comes first.
    pub fn parse(measure: Measure, first: &'a [u8], second: &'a [u8], reverse: bool) -> Result<Self, CommandError> {
        let (low, high) = if reverse { (second, first) } else { (first, second) };
        match measure {
            Measure::Rank => {
                let rank = |text| parse_i64(text).ok_or(CommandError::NotAnInteger);
                Ok(Self::Ranks(rank(first)?, rank(second)?))
            }
            Measure::Score => Ok(Self::Scores(ScoreBound::parse(low)?, ScoreBound::parse(high)?)),
            Measure::Member => Ok(Self::Members(MemberBound::parse(low)?, MemberBound::parse(high)?)),
        }
    }

    /// The ranks of the members in it, from the lowest score. With `reverse`, its own ranks are counted from the highest.
    pub fn ranks(&self, set: &SortedSet, reverse: bool) -> Range<usize> {
        let range = match *self {
            Self::Ranks(first, last) => ranks_between(first, last, set.len(), reverse),
            Self::Scores(low, high) => {
                let start = if low.is_open { set.count_up_to(low.score) } else { set.count_below(low.score) };
                start..if high.is_open { set.count_below(high.score) } else { set.count_up_to(high.score) }
            }
            Self::Members(low, high) if is_void(low, high) => 0..0,
            Self::Members(low, high) => set.ranks_of_members(low, high, reverse),
        };
        if range.start < range.end { range } else { 0..0 }
    }
}

fn ranks_between(first: i64, last: i64, len: usize, reverse: bool) -> Range<usize> {
    let len = i64::try_from(len).expect("a length fits");
    let from_end = |rank: i64| if rank < 0 { rank.saturating_add(len) } else { rank };
    let (first, last) = (from_end(first).max(0), from_end(last).min(len - 1));
    if first > last {
        return 0..0;
    }
    let (start, end) = if reverse { (len - 1 - last, len - first) } else { (first, last + 1) };
    let rank = |rank| usize::try_from(rank).expect("a rank below the length");
    rank(start)..rank(end)
}

/// `LIMIT offset count` of an interval that is taken from the front, or from the back. A negative count is no limit; a negative
/// offset leaves nothing.
pub(super) fn limited(ranks: Range<usize>, offset: i64, count: i64, reverse: bool) -> Range<usize> {
    let Ok(offset) = usize::try_from(offset) else { return 0..0 };
    let left = ranks.len().saturating_sub(offset);
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(left);
    if reverse {
        let end = ranks.end - (ranks.len() - left);
        end - count..end
    } else {
        let start = ranks.end - left;
        start..start + count
    }
}

impl SortedSet {
    /// The ranks of the members between two ends. Where scores differ the question has no meaning, but Redis's answer for a
    /// listpack is that of its walk, from the front or from the back, and ours is too.
    fn ranks_of_members(&self, low: MemberBound<'_>, high: MemberBound<'_>, reverse: bool) -> Range<usize> {
        let Some(list) = self.as_listpack() else { return self.ranks_in_tree(low, high) };
        let len = list.len() / 2;
        let mut ends = (self.members(0..1), self.members(len.saturating_sub(1)..len));
        let admits_from = |(member, _): (Item<'_>, f64)| member.with_text(|member| low.admits_from(member));
        let admits_to = |(member, _): (Item<'_>, f64)| member.with_text(|member| high.admits_to(member));
        if !ends.0.next().is_some_and(admits_to) || !ends.1.next().is_some_and(admits_from) {
            return 0..0;
        }
        if reverse {
            let end = len - self.members(0..len).rev().take_while(|found| !admits_to(*found)).count();
            let count = self.members(0..end).rev().take_while(|found| admits_from(*found)).count();
            return end - count..end;
        }
        let start = self.members(0..len).take_while(|found| !admits_from(*found)).count();
        start..start + self.members(start..len).take_while(|found| admits_to(*found)).count()
    }

    fn ranks_in_tree(&self, low: MemberBound<'_>, high: MemberBound<'_>) -> Range<usize> {
        let start = self.partition_point(|member| !low.admits_from(member));
        start..self.partition_point(|member| high.admits_to(member))
    }
}
