//! The elements of large sorted sets, found by member and by rank.
//!
//! ```text
//! scored member:  [ score f64 ][ length ][ member ]
//! ```
//!
//! Each is one block that two structures point to: a [`Dict`] by member, which owns it, and a [`Ranked`] by score and member.
//! Redis shares its skip list's nodes with a hash table in the same way.
//!
//! The invariant behind the unsafe code: a [`Handle`] exists only in the tree of a [`ScoredDict`] (or on the stack of its methods),
//! and the block it points to is owned by the table beside it. Blocks do not move, whatever the table does, since it moves only
//! pointers to them; a handle leaves the tree before its block leaves the table or gets another score.
#![allow(unsafe_code)]

use crate::dict::Dict;
use crate::dict_owed::OwedElements;
use crate::entry::LENGTH_MAX;
use crate::key_hash::KeyHasher;
use crate::random::Random;
use crate::ranked::{Ranked, Ranking};
use crate::snapshot::{Large, Piece, Record, Step, save_all};
use crate::tagged_block::{BlockElement, TaggedBlock, length_width};
use std::marker::PhantomData;
use std::ops::Range;

/// Members that a snapshot writes together.
const TOGETHER: usize = 64;
const SCORE: usize = size_of::<f64>();

/// A member with its score.
#[derive(Debug)]
pub struct Scored(TaggedBlock);

/// A borrowed member with its score.
#[derive(Clone, Copy, Debug)]
pub struct ScoredRef<'a> {
    block: TaggedBlock,
    owner: PhantomData<&'a Scored>,
}

impl<'a> ScoredRef<'a> {
    /// The score.
    #[must_use]
    #[inline]
    pub fn score(&self) -> f64 {
        // SAFETY: every block begins with its score.
        let bytes = unsafe { self.block.bytes(0, SCORE) };
        f64::from_ne_bytes(bytes.try_into().expect("a score takes eight bytes"))
    }

    /// The member.
    #[must_use]
    #[inline]
    pub fn member(&self) -> &'a [u8] {
        // SAFETY: the length is behind the score, and as many bytes behind it; the block is borrowed for `'a`.
        unsafe {
            let (length, offset) = self.block.length(SCORE);
            self.block.bytes(offset, length)
        }
    }

    fn size(&self) -> usize {
        let length = self.member().len();
        SCORE + length_width(length) + length
    }
}

impl Scored {
    /// A member of at most [`LENGTH_MAX`] bytes, with its score.
    #[must_use]
    pub fn new(member: &[u8], score: f64) -> Self {
        assert!(member.len() <= LENGTH_MAX, "a member is below 2 GiB");
        let block = TaggedBlock::allocate(SCORE + length_width(member.len()) + member.len(), 0);
        // SAFETY: a new block with room for all of it.
        unsafe {
            let offset = block.write(0, &score.to_ne_bytes());
            let offset = block.write_length(offset, member.len());
            block.write(offset, member);
        }
        Self(block)
    }

    /// A view of the member.
    #[must_use]
    pub fn view(&self) -> ScoredRef<'_> {
        ScoredRef { block: self.0, owner: PhantomData }
    }

    /// Replaces the score.
    fn set_score(&mut self, score: f64) {
        // SAFETY: where the score is, and `&mut self` is exclusive.
        unsafe { self.0.write(0, &score.to_ne_bytes()) };
    }
}

impl Drop for Scored {
    fn drop(&mut self) {
        // SAFETY: the element owned the block, which was allocated for this size.
        unsafe { self.0.free(self.view().size()) }
    }
}

// SAFETY: the raw pointer is the block's; only the score is written again.
unsafe impl BlockElement for Scored {
    type View<'a> = ScoredRef<'a>;

    fn block(&self) -> TaggedBlock {
        self.0
    }

    fn of_block(block: TaggedBlock) -> Self {
        Self(block)
    }

    #[inline]
    unsafe fn view_block<'a>(block: TaggedBlock) -> ScoredRef<'a> {
        ScoredRef { block, owner: PhantomData }
    }

    #[inline]
    fn key_of(view: Self::View<'_>) -> &[u8] {
        view.member()
    }

    fn size_of(view: Self::View<'_>) -> usize {
        view.size()
    }
}

/// The tree's pointer to a block that the table owns.
#[derive(Clone, Copy)]
struct Handle(TaggedBlock);

impl Handle {
    /// A view for as long as the caller says, which the set has to be borrowed for.
    #[inline]
    fn view<'a>(self) -> ScoredRef<'a> {
        ScoredRef { block: self.0, owner: PhantomData }
    }
}

impl Ranking for Handle {
    #[inline]
    fn score(self) -> f64 {
        self.view().score()
    }
}

/// Members with scores, found by member and by rank. Members of equal score are in the order of their bytes.
#[derive(Debug)]
pub struct ScoredDict {
    dict: Dict<Scored>,
    ranked: Ranked<Handle>,
}

impl ScoredDict {
    /// An empty set, for members hashed by `hasher`.
    #[must_use]
    pub fn new(hasher: &KeyHasher) -> Self {
        Self { dict: Dict::new(hasher), ranked: Ranked::default() }
    }

    /// Number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.dict.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.dict.is_empty()
    }

    /// Bytes of members, table and tree.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.dict.bytes() + self.ranked.bytes()
    }

    /// The score of a member.
    #[must_use]
    pub fn score_of(&self, member: &[u8]) -> Option<f64> {
        self.dict.get(member).map(|found| found.score())
    }

    /// How many members are before this one, or would be if it had this score.
    fn place(&self, score: f64, member: &[u8]) -> usize {
        // Where scores rise, as times do, one look at the last member saves the search.
        let is_before = |other: f64, found: Handle| other < score || (other == score && found.view().member() < member);
        match self.ranked.last() {
            Some(last) if is_before(last.score(), last) => self.ranked.len(),
            Some(_) | None => self.ranked.partition_point(is_before),
        }
    }

    /// Adds a member, or gives it another score. Returns the score that it had. The score is not NaN.
    pub fn insert(&mut self, member: &[u8], score: f64) -> Option<f64> {
        assert!(!score.is_nan(), "NaN has no place in an order");
        let mut handle = None;
        let is_new = self.dict.insert_with(member, || {
            let element = Scored::new(member, score);
            handle = Some(Handle(element.0));
            element
        });
        if let Some(handle) = handle.filter(|_| is_new) {
            self.ranked.insert(self.place(score, member), handle);
            return None;
        }
        let old = self.score_of(member)?;
        if old != score {
            let handle = self.ranked.remove(self.place(old, member));
            debug_assert!(handle.view().member() == member);
            self.dict.change(member, |element| element.set_score(score));
            self.ranked.insert(self.place(score, member), handle);
        }
        Some(old)
    }

    /// Removes a member. Returns the score that it had.
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let score = self.score_of(member)?;
        let handle = self.ranked.remove(self.place(score, member));
        debug_assert!(handle.view().member() == member);
        self.dict.remove(member);
        Some(score)
    }

    /// Removes at most `count` members from rank `start` on, giving each to `removed` first. Returns how many there were.
    pub fn remove_range(&mut self, start: usize, count: usize, mut removed: impl FnMut(ScoredRef<'_>)) -> usize {
        let count = count.min(self.len().saturating_sub(start));
        for _ in 0..count {
            let found = self.ranked.remove(start).view();
            removed(found);
            // The element is freed here, when the table has found it by its own member.
            drop(self.dict.remove(found.member()));
        }
        count
    }

    /// The rank of a member, by rising score.
    #[must_use]
    pub fn rank_of(&self, member: &[u8]) -> Option<usize> {
        self.score_of(member).map(|score| self.place(score, member))
    }

    /// The member that has `rank` others before it.
    #[must_use]
    pub fn by_rank(&self, rank: usize) -> Option<ScoredRef<'_>> {
        self.ranked.nth(rank).map(Handle::view)
    }

    /// The members of these ranks, by rising score, or by falling score with `rev()`. Ranks beyond the last are left out.
    #[must_use]
    pub fn range(
        &self,
        ranks: Range<usize>,
    ) -> impl DoubleEndedIterator<Item = ScoredRef<'_>> + ExactSizeIterator + use<'_> {
        self.ranked.range(ranks).map(Handle::view)
    }

    /// How many members have a score below this one: the rank of the first that has not.
    #[must_use]
    pub fn count_below(&self, score: f64) -> usize {
        self.ranked.partition_point(|other, _| other < score)
    }

    /// How many members have at most this score: the rank of the first that has more.
    #[must_use]
    pub fn count_up_to(&self, score: f64) -> usize {
        self.ranked.partition_point(|other, _| other <= score)
    }

    /// How many members `is_before` holds for. It must hold for all up to some rank, and for none from there on.
    pub fn partition_point(&self, mut is_before: impl FnMut(f64, &[u8]) -> bool) -> usize {
        self.ranked.partition_point(|score, found| is_before(score, found.view().member()))
    }

    /// One step of a scan, as [`Dict::scan`].
    pub fn scan(&self, cursor: u64, with: impl FnMut(ScoredRef<'_>)) -> u64 {
        self.dict.scan(cursor, with)
    }

    /// A member picked at random, each as likely as any other.
    #[must_use]
    pub fn random(&self, random: &mut Random) -> Option<ScoredRef<'_>> {
        self.dict.random(random)
    }

    /// Frees the set in steps of a few thousand members.
    #[must_use]
    pub fn dismantle(self) -> Dismantled {
        Dismantled(self)
    }
}

impl Clone for ScoredDict {
    fn clone(&self) -> Self {
        let mut copy = Self { dict: self.dict.emptied(), ranked: Ranked::default() };
        for found in self.range(0..self.len()) {
            copy.insert(found.member(), found.score());
        }
        copy
    }
}

impl ScoredDict {
    /// A snapshot begins with it.
    pub(crate) fn owe(&mut self, record: Record) {
        self.dict.owe(record);
    }

    /// Writes unseen members from where the visit was to where it comes to, if that is not the end.
    fn write_some(&self, owed: &mut OwedElements, step: Step, piece: &mut Piece) {
        let passed = owed.record.form.passed.take();
        let end = passed.map_or(self.len(), |(score, member)| self.place(score, &member));
        let (mut looked, mut unseen) = (0, Vec::with_capacity(TOGETHER));
        let mut found = self.range(0..end).rev().peekable();
        while let Some(last) = found.next() {
            let hash = self.dict.hash(last.member());
            if owed.is_unseen(self.dict.index(hash), hash) {
                unseen.push(last);
            }
            looked += 1;
            if unseen.len() == TOGETHER || looked == step.entries || found.peek().is_none() {
                owed.record.write(piece, |form, out| save_all::<Scored>(&unseen, form, out));
                unseen.clear();
            }
            if (looked == step.entries || piece.bytes.len() >= step.bytes) && unseen.is_empty() {
                owed.record.form.passed = Some((last.score(), last.member().into()));
                break;
            }
        }
    }

    /// It, if a snapshot has begun with it and not come to its end.
    pub(crate) fn owing(&mut self) -> Option<&mut dyn Large> {
        if self.dict.owed.is_some() { Some(self) } else { None }
    }
}

/// The visit goes from the greatest member on: whoever loads the file has the least to do so.
impl Large for ScoredDict {
    fn record(&self) -> Option<&Record> {
        self.dict.record()
    }

    fn visit(&mut self, step: Step, piece: &mut Piece) -> bool {
        let Some(mut owed) = self.dict.owed.take() else { return true };
        if owed.record.is_given_up() {
            return true;
        }
        owed.record.resume(piece);
        self.write_some(&mut owed, step, piece);
        if owed.record.form.passed.is_some() {
            self.dict.owed.put_back(owed);
            return false;
        }
        owed.record.end(piece);
        true
    }
}

/// One that is freed before a snapshot has seen it is kept for that.
impl Drop for ScoredDict {
    fn drop(&mut self) {
        let Some(plan) = self.dict.owed.as_ref().map(|owed| owed.record.plan().clone()) else { return };
        if let Some(dict) = self.dict.rescue() {
            let kept = Self { dict, ranked: std::mem::take(&mut self.ranked) };
            let bytes = kept.bytes();
            plan.adopt(Box::new(kept), bytes);
        }
    }
}

/// A set that is being freed. The tree goes first, so that none of its handles outlives what it points to.
#[derive(Debug)]
pub struct Dismantled(ScoredDict);

impl Dismantled {
    /// Frees some more. Returns whether there is more to free.
    pub fn shed(&mut self) -> bool {
        self.0.ranked.shed() > 0 || self.0.dict.shed() > 0
    }
}

#[cfg(test)]
#[path = "scored_tests.rs"]
mod tests;
