//! A small sorted set as a listpack: a member and its score in turn, in the order of scores.
//!
//! A score is written as Redis writes it: a whole number below 2^62 as an integer (so -0 becomes 0), all else as its shortest text.

use crate::block::Malformed;
use crate::listpack::{Item, Iter, Listpack};
use simurgh_protocol::number::{format_f64, parse_f64};
use std::collections::BTreeSet;
use std::ops::Range;

/// The score that an element is.
#[inline]
pub(super) fn score(item: Item<'_>) -> f64 {
    match item {
        Item::Int(number) => number as f64,
        Item::Bytes(text) => parse_f64(text).unwrap_or(0.0),
    }
}

/// Calls `with` with the element that a score is.
fn with_score<R>(score: f64, with: impl FnOnce(Item<'_>) -> R) -> R {
    const WHOLE_MAX: f64 = (i64::MAX / 2) as f64;
    if score.fract() == 0.0 && score.abs() <= WHOLE_MAX {
        with(Item::Int(score as i64))
    } else {
        with(Item::Bytes(format_f64(score).as_bytes()))
    }
}

/// The members of some ranks with their scores.
pub(super) struct Pairs<'a> {
    iter: Iter<'a>,
    left: usize,
    /// Pairs behind the last one wanted, passed over when the first is taken from the back.
    behind: usize,
}

impl<'a> Pairs<'a> {
    pub fn new(list: &'a Listpack, ranks: Range<usize>) -> Self {
        let len = list.len() / 2;
        let (start, end) = (ranks.start.min(len), ranks.end.min(len));
        let at = isize::try_from(2 * start).ok().and_then(|index| list.seek(index)).unwrap_or(list.end());
        Self { iter: list.iter_from(at), left: end.saturating_sub(start), behind: len - end }
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = (Item<'a>, f64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        Some((self.iter.next()?, score(self.iter.next()?)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl DoubleEndedIterator for Pairs<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        for _ in 0..2 * std::mem::take(&mut self.behind) {
            self.iter.next_back();
        }
        let score = score(self.iter.next_back()?);
        Some((self.iter.next_back()?, score))
    }
}

impl ExactSizeIterator for Pairs<'_> {}

/// All members with their scores.
fn all(list: &Listpack) -> Pairs<'_> {
    Pairs::new(list, 0..usize::MAX)
}

/// A member's position and score.
pub(super) fn find(list: &Listpack, member: &[u8]) -> Option<(usize, f64)> {
    let at = list.find(member, 2)?;
    Some((at, score(list.get(list.next(at)?))))
}

/// A member's rank and score.
pub(super) fn rank_of(list: &Listpack, member: &[u8]) -> Option<(usize, f64)> {
    let wanted = Item::from(member);
    all(list).enumerate().find(|(_, (member, _))| member.same(&wanted)).map(|(rank, (_, score))| (rank, score))
}

/// How many members come before the first whose score is not as asked for.
pub(super) fn count_while(list: &Listpack, mut is_before: impl FnMut(f64) -> bool) -> usize {
    all(list).take_while(|(_, score)| is_before(*score)).count()
}

/// Whether there is room for one more.
pub(super) fn fits(list: &Listpack, member: &[u8]) -> bool {
    const SCORE_MAX: usize = 32;
    list.fits(Item::from(member).packed_length() + SCORE_MAX)
}

/// Puts in a member that is not there.
pub(super) fn insert(list: &mut Listpack, member: &[u8], score: f64) {
    let at = place(list, member, score);
    with_score(score, |score| list.splice(at, 0, &[Item::from(member), score]));
}

/// Gives the member at `at` another score.
pub(super) fn move_to(list: &mut Listpack, at: usize, member: &[u8], score: f64) {
    list.remove_run(at, 2);
    insert(list, member, score);
}

/// Where a member of this score belongs.
fn place(list: &Listpack, member: &[u8], score: f64) -> usize {
    let is_before =
        |(found, other): (Item<'_>, f64)| other < score || (other == score && found.with_text(|found| found < member));
    // Where scores rise, as times do, one look at the last member saves the search.
    if all(list).next_back().is_none_or(is_before) {
        return list.end();
    }
    let mut pairs = all(list);
    loop {
        let at = pairs.iter.position();
        if !pairs.next().is_some_and(is_before) {
            return at;
        }
    }
}

pub(super) fn remove_ranks(list: &mut Listpack, ranks: Range<usize>) {
    if let Ok(index) = isize::try_from(2 * ranks.start) {
        list.remove_range(index, 2 * ranks.len());
    }
}

/// A list of members in order.
pub(super) fn of_members<'a>(members: impl Iterator<Item = (&'a [u8], f64)>) -> Listpack {
    let mut list = Listpack::new();
    for (member, score) in members {
        with_score(score, |score| list.splice(list.end(), 0, &[Item::from(member), score]));
    }
    list
}

/// Whether elements are members, each there once, and scores in turn.
pub(super) fn check(list: &Listpack) -> Result<(), Malformed> {
    let is_score = |item: Item<'_>| match item {
        Item::Int(_) => true,
        Item::Bytes(text) => parse_f64(text).is_some(),
    };
    let mut members = BTreeSet::new();
    let is_whole = list.len().is_multiple_of(2)
        && list.iter().skip(1).step_by(2).all(is_score)
        && list.iter().step_by(2).all(|member| members.insert(member.to_vec()));
    is_whole.then_some(()).ok_or(Malformed)
}

/// Whether members are in order.
pub(super) fn is_ordered(list: &Listpack) -> bool {
    all(list).zip(all(list).skip(1)).all(|((member, score), (next, next_score))| {
        score < next_score || (score == next_score && member.with_text(|member| next.with_text(|next| member < next)))
    })
}
