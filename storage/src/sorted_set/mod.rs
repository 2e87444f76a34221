//! Sorted sets: members that differ, each with a score, in the order of their scores (and of their bytes, where scores are equal).
//!
//! Two representations: a listpack while members are few and short, and beyond that a hash table and a counted tree over the same
//! elements (`scored.rs`). A set that has outgrown the first keeps the second; only where a command builds a new set does it choose
//! again, as in Redis.
//!
//! ```text
//! listpack:  [ member | score | member | score ... ]     ordered; a score is an integer if it is whole, else its shortest text
//! ```
//!
//! | file | commands |
//! | --- | --- |
//! | `add` | ZADD ZINCRBY |
//! | `read` | ZCARD ZSCORE ZMSCORE ZRANK ZREVRANK ZCOUNT ZLEXCOUNT |
//! | `range` | ZRANGE and those that it has replaced, ZRANGESTORE |
//! | `remove` | ZREM ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREMRANGEBYLEX |
//! | `pop` | ZPOPMIN ZPOPMAX ZMPOP BZPOPMIN BZPOPMAX BZMPOP |
//! | `random`, `scan` | ZRANDMEMBER, ZSCAN |
//! | `combine`, `query` | ZUNION ZINTER ZDIFF, each with STORE, ZINTERCARD |
//!
//! Ranks are counted from the lowest score here; `interval` turns what a command asks for into such ranks.
//!
//! Commands: <https://redis.io/docs/latest/commands/?group=sorted-set>.

mod add;
mod combine;
mod interval;
mod packed;
mod pop;
mod query;
mod random;
mod range;
mod read;
mod remove;
mod scan;
#[cfg(test)]
mod tests;

pub(crate) use add::{Options as AddOptions, add_all};
pub use add::{zadd, zincrby};
pub(crate) use combine::log_result;
pub use combine::{zdiff, zdiffstore, zinter, zintercard, zinterstore, zunion, zunionstore};
pub use pop::{bzmpop, bzpopmax, bzpopmin, zmpop, zpopmax, zpopmin};
pub use random::zrandmember;
pub(crate) use range::store;
pub use range::{zrange, zrangebylex, zrangebyscore, zrangestore, zrevrange, zrevrangebylex, zrevrangebyscore};
pub use read::{zcard, zcount, zlexcount, zmscore, zrank, zrevrank, zscore};
pub use remove::{zrem, zremrangebylex, zremrangebyrank, zremrangebyscore};
pub use scan::zscan;

use crate::block::Malformed;
use crate::context::Context;
use crate::key_hash::KeyHasher;
use crate::listpack::{Item, Listpack};
use crate::packed_or::{Form, PackedOr};
use crate::scored::ScoredDict;
use crate::snapshot::{Large, Record};
use packed::Pairs;
use simurgh_protocol::Reply;
use simurgh_protocol::config::Packing;
use simurgh_protocol::number::format_f64;
use std::ops::Range;

/// A value that holds members with scores.
#[derive(Clone, Debug, Default)]
#[repr(transparent)]
pub struct SortedSet(PackedOr<Listpack, ScoredDict>);

/// Up to which size a sorted set is packed, and how its members are hashed when it is not.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// `zset-max-listpack-entries`.
    entries: u64,
    /// `zset-max-listpack-value`.
    value: u64,
    hasher: &'a KeyHasher,
}

impl<'a> Limits<'a> {
    /// Those of the configuration.
    #[must_use]
    pub fn of(cx: &Context<'a>) -> Self {
        Self::new(&cx.settings.packing, &cx.layout.hasher)
    }

    /// Those of `packing`.
    #[must_use]
    pub fn new(packing: &Packing, hasher: &'a KeyHasher) -> Self {
        Self { entries: packing.sorted_set_entries, value: packing.sorted_set_value, hasher }
    }

    /// Whether a set of so many members, the longest of this length, is packed.
    pub(crate) fn allow(&self, count: usize, longest: usize) -> bool {
        count as u64 <= self.entries && longest as u64 <= self.value
    }
}

/// An iterator over either representation.
enum Either<P, R> {
    Packed(P),
    Ranked(R),
}

impl<T, P: Iterator<Item = T>, R: Iterator<Item = T>> Iterator for Either<P, R> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        match self {
            Self::Packed(iter) => iter.next(),
            Self::Ranked(iter) => iter.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Self::Packed(iter) => iter.size_hint(),
            Self::Ranked(iter) => iter.size_hint(),
        }
    }
}

impl<T, P: DoubleEndedIterator<Item = T>, R: DoubleEndedIterator<Item = T>> DoubleEndedIterator for Either<P, R> {
    #[inline]
    fn next_back(&mut self) -> Option<T> {
        match self {
            Self::Packed(iter) => iter.next_back(),
            Self::Ranked(iter) => iter.next_back(),
        }
    }
}

impl<T, P: ExactSizeIterator<Item = T>, R: ExactSizeIterator<Item = T>> ExactSizeIterator for Either<P, R> {}

impl SortedSet {
    /// A set of a listpack from elsewhere: pairs of a member and a score. One that is out of order is put into it; one with a member
    /// twice, or with a score that is none, is refused.
    pub fn from_listpack(list: Listpack, limits: &Limits<'_>) -> Result<Self, Malformed> {
        packed::check(&list)?;
        if packed::is_ordered(&list) {
            return Ok(Self(PackedOr::packed(list)));
        }
        let mut ordered = Self::default();
        let no_limits = Limits { entries: u64::MAX, value: u64::MAX, ..*limits };
        for (member, score) in Pairs::new(&list, 0..list.len() / 2) {
            member.with_text(|member| ordered.insert(member, score, &no_limits));
        }
        Ok(ordered)
    }

    /// A set of members that differ and are in order, in the representation that suits them.
    fn of_ordered(members: &[(impl AsRef<[u8]>, f64)], limits: &Limits<'_>) -> Self {
        let longest = members.iter().map(|(member, _)| member.as_ref().len()).max().unwrap_or(0);
        let members = members.iter().map(|(member, score)| (member.as_ref(), *score));
        if limits.allow(members.len(), longest) {
            return Self(PackedOr::packed(packed::of_members(members)));
        }
        let mut ranked = ScoredDict::new(limits.hasher);
        for (member, score) in members {
            ranked.insert(member, score);
        }
        Self::of_ranked(ranked)
    }

    fn of_ranked(ranked: ScoredDict) -> Self {
        Self(PackedOr::large(Box::new(ranked)))
    }

    /// The listpack, of a set that is one.
    #[must_use]
    pub fn as_listpack(&self) -> Option<&Listpack> {
        match self.0.get() {
            Form::Packed(list) => Some(list),
            Form::Large(_) => None,
        }
    }

    /// Number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        match self.0.get() {
            Form::Packed(list) => list.len() / 2,
            Form::Large(ranked) => ranked.len(),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of its blocks, in the allocator's size classes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self.0.get() {
            Form::Packed(list) => list.bytes(),
            Form::Large(ranked) => ranked.bytes(),
        }
    }

    /// The name of the representation.
    #[must_use]
    pub fn encoding_name(&self) -> &'static str {
        match self.0.get() {
            Form::Packed(_) => "listpack",
            Form::Large(_) => "skiplist",
        }
    }

    /// How many allocations there are, about.
    #[must_use]
    pub fn free_effort(&self) -> usize {
        match self.0.get() {
            Form::Packed(_) => 1,
            Form::Large(ranked) => ranked.len(),
        }
    }

    /// Calls `with` for each member and the text of its score, by rising score.
    pub fn for_each(&self, with: &mut dyn FnMut(&[&[u8]])) {
        for (member, score) in self.members(0..self.len()) {
            member.with_text(|member| with(&[member, format_f64(score).as_bytes()]));
        }
    }

    /// The members of these ranks with their scores, by rising score; from the highest with `rev()`. Ranks beyond the last are left out.
    #[must_use]
    pub fn members(
        &self,
        ranks: Range<usize>,
    ) -> impl DoubleEndedIterator<Item = (Item<'_>, f64)> + ExactSizeIterator + use<'_> {
        match self.0.get() {
            Form::Packed(list) => Either::Packed(Pairs::new(list, ranks)),
            Form::Large(ranked) => {
                Either::Ranked(ranked.range(ranks).map(|found| (Item::Bytes(found.member()), found.score())))
            }
        }
    }

    /// The score of a member.
    #[must_use]
    pub fn score_of(&self, member: &[u8]) -> Option<f64> {
        match self.0.get() {
            Form::Packed(list) => packed::find(list, member).map(|(_, score)| score),
            Form::Large(ranked) => ranked.score_of(member),
        }
    }

    /// How many members are before this one, and its score.
    #[must_use]
    pub fn rank_of(&self, member: &[u8]) -> Option<(usize, f64)> {
        match self.0.get() {
            Form::Packed(list) => packed::rank_of(list, member),
            Form::Large(ranked) => ranked.rank_of(member).zip(ranked.score_of(member)),
        }
    }

    /// How many members have a score below this one.
    pub(crate) fn count_below(&self, score: f64) -> usize {
        match self.0.get() {
            Form::Packed(list) => packed::count_while(list, |other| other < score),
            Form::Large(ranked) => ranked.count_below(score),
        }
    }

    /// How many members have at most this score.
    fn count_up_to(&self, score: f64) -> usize {
        match self.0.get() {
            Form::Packed(list) => packed::count_while(list, |other| other <= score),
            Form::Large(ranked) => ranked.count_up_to(score),
        }
    }

    /// How many members `is_before` holds for. It must hold for all up to some rank, and for none from there on.
    fn partition_point(&self, mut is_before: impl FnMut(&[u8]) -> bool) -> usize {
        match self.0.get() {
            Form::Packed(list) => {
                let is_before = |(member, _): &(Item<'_>, f64)| member.with_text(&mut is_before);
                Pairs::new(list, 0..usize::MAX).take_while(is_before).count()
            }
            Form::Large(ranked) => ranked.partition_point(|_, member| is_before(member)),
        }
    }

    /// Adds a member, or gives it another score; the score that it had. The set goes over to a representation that has room for it.
    pub fn insert(&mut self, member: &[u8], score: f64, limits: &Limits<'_>) -> Option<f64> {
        if let Form::Packed(list) = self.0.get_mut() {
            match packed::find(list, member) {
                Some((at, old)) => {
                    if old != score {
                        packed::move_to(list, at, member, score);
                    }
                    return Some(old);
                }
                None if limits.allow(list.len() / 2 + 1, member.len()) && packed::fits(list, member) => {
                    packed::insert(list, member, score);
                    return None;
                }
                None => self.become_ranked(limits),
            }
        }
        match self.0.get_mut() {
            Form::Packed(_) => unreachable!("it has just become large"),
            Form::Large(ranked) => ranked.insert(member, score),
        }
    }

    /// Removes a member; the score that it had.
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        match self.0.get_mut() {
            Form::Packed(list) => {
                let (at, score) = packed::find(list, member)?;
                list.remove_run(at, 2);
                Some(score)
            }
            Form::Large(ranked) => ranked.remove(member),
        }
    }

    /// Removes the members of these ranks, which there are.
    pub fn remove_ranks(&mut self, ranks: Range<usize>) {
        match self.0.get_mut() {
            Form::Packed(list) => packed::remove_ranks(list, ranks),
            Form::Large(ranked) => {
                ranked.remove_range(ranks.start, ranks.len(), |_| {});
            }
        }
    }

    /// Makes it large, if it is not, when `count` members, one of `longest` bytes, are about to be added and would not fit by themselves
    /// (whoever names one twice has it so, in Redis too).
    fn make_room(&mut self, count: usize, longest: usize, limits: &Limits<'_>) {
        if self.as_listpack().is_some() && !limits.allow(count, longest) {
            self.become_ranked(limits);
        }
    }

    /// A snapshot begins with it; it is large.
    pub(crate) fn owe(&mut self, record: Record) {
        if let Form::Large(ranked) = self.0.get_mut() {
            ranked.owe(record);
        }
    }

    /// What is seen in steps, if a snapshot has begun with it and not come to its end.
    pub(crate) fn owing(&mut self) -> Option<&mut dyn Large> {
        match self.0.get_mut() {
            Form::Large(ranked) => ranked.owing(),
            Form::Packed(_) => None,
        }
    }

    fn become_ranked(&mut self, limits: &Limits<'_>) {
        let mut ranked = ScoredDict::new(limits.hasher);
        for (member, score) in self.members(0..self.len()) {
            member.with_text(|member| ranked.insert(member, score));
        }
        *self = Self::of_ranked(ranked);
    }
}

/// Writes members, with their scores or without: in RESP3 in pairs, in RESP2 one after the other.
fn reply_members<'a>(reply: &mut Reply, members: impl ExactSizeIterator<Item = (Item<'a>, f64)>, with_scores: bool) {
    if !with_scores {
        reply.array(members.len());
        members.for_each(|(member, _)| member.write_to(reply));
        return;
    }
    let in_pairs = reply.protocol() == simurgh_protocol::resp::Protocol::Resp3;
    reply.array(if in_pairs { members.len() } else { 2 * members.len() });
    for (member, score) in members {
        if in_pairs {
            reply.array(2);
        }
        member.write_to(reply);
        reply.double(score);
    }
}
