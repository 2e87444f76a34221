//! A sequence of items in order of score that knows every item's rank: a B+ tree in which each branch counts what is below it.
//!
//! ```text
//! inner, at most 31 branches:  [ score, first item, count | node ] ..
//! leaf, at most 64 items:      [ item ] ..
//! ```
//!
//! Redis keeps a skip list here, with a node of its own and spans for each member. Leaves of 64 pointers take a quarter of that
//! and a range is read along them, without a step from node to node.
//!
//! The tree is changed by rank and searched by predicate, as a sorted `Vec` would be, so it need not know what the order within
//! equal scores is. Branches carry the score of their first item: a search reads items themselves (each a load from elsewhere in
//! memory) only where scores are equal, and in the last leaf. A full leaf first gives to a neighbour that has room; only then is
//! it split, at its end when that is where the item goes, so that rising and falling scores leave full leaves behind.

use std::ops::Range;

/// Items of a leaf: 512 bytes of pointers.
const LEAF: usize = 64;
/// An inner node is split when it has this many branches.
const FAN: usize = 32;
/// A neighbour takes over items when it has room for this many; less would be asked for again at once.
const ROOM_MIN: usize = LEAF / 8;

/// An item of the tree.
pub trait Ranking: Copy {
    /// What it is ordered by first; never NaN, and the same as long as it is in the tree.
    fn score(self) -> f64;
}

enum Node<T> {
    /// As many items as the branch counts; the rest of the array is of no meaning.
    Leaf(Box<[T; LEAF]>),
    Inner(Box<Inner<T>>),
}

struct Branch<T> {
    score: f64,
    first: T,
    count: usize,
    node: Node<T>,
}

/// Branches, of which all are leaves or none is.
struct Inner<T>(Vec<Branch<T>>);

/// How many nodes there are, for the memory they take.
#[derive(Default)]
struct Tally {
    leaves: usize,
    inners: usize,
}

/// Items in order, found by rank or by a predicate on the order.
pub struct Ranked<T> {
    root: Inner<T>,
    len: usize,
    tally: Tally,
}

impl<T> std::fmt::Debug for Ranked<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Ranked").field("len", &self.len).finish_non_exhaustive()
    }
}

impl<T: Ranking> Default for Ranked<T> {
    fn default() -> Self {
        Self { root: Inner(Vec::new()), len: 0, tally: Tally::default() }
    }
}

impl<T: Ranking> Ranked<T> {
    /// Number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of the nodes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let inner = FAN * size_of::<Branch<T>>() + size_of::<Inner<T>>();
        size_of::<Self>() + self.tally.leaves * LEAF * size_of::<T>() + (self.tally.inners + 1) * inner
    }

    /// Adds an item that is to have `rank` others before it: at most as many as there are.
    pub fn insert(&mut self, rank: usize, item: T) {
        assert!(rank <= self.len, "an item goes between others");
        debug_assert!(!item.score().is_nan(), "NaN has no place in an order");
        self.root.insert(rank, item, &mut self.tally);
        self.len += 1;
        if self.root.0.len() == FAN {
            let right = self.root.split(FAN / 2);
            let left = Inner(std::mem::replace(&mut self.root.0, Vec::with_capacity(FAN)));
            self.root.0.extend([Branch::of(left), Branch::of(right)]);
            self.tally.inners += 2;
        }
    }

    /// Takes out the item of this rank.
    pub fn remove(&mut self, rank: usize) -> T {
        assert!(rank < self.len, "a rank is below the length");
        let item = self.root.remove(rank, &mut self.tally);
        self.len -= 1;
        while let [Branch { node: Node::Inner(_), .. }] = self.root.0[..] {
            if let Some(Branch { node: Node::Inner(only), .. }) = self.root.0.pop() {
                self.root = *only;
                self.tally.inners -= 1;
            }
        }
        item
    }

    /// Removes some items from the end, two thousand at most, and returns how many: none when none is left.
    pub fn shed(&mut self) -> usize {
        let count = self.root.shed(&mut self.tally);
        self.len -= count;
        count
    }

    /// The leaf that the item of this rank is in, and its place there.
    fn leaf(&self, mut rank: usize) -> (&[T], usize) {
        let mut inner = &self.root;
        loop {
            let (at, below) = inner.holding(rank);
            rank -= below;
            match &inner.0[at].node {
                Node::Leaf(items) => return (&items[..inner.0[at].count], rank),
                Node::Inner(next) => inner = next,
            }
        }
    }

    /// The item of this rank.
    #[must_use]
    pub fn nth(&self, rank: usize) -> Option<T> {
        (rank < self.len).then(|| {
            let (leaf, at) = self.leaf(rank);
            leaf[at]
        })
    }

    /// The last item.
    #[must_use]
    pub fn last(&self) -> Option<T> {
        self.nth(self.len.wrapping_sub(1))
    }

    /// How many items `is_before` holds for. It must hold for all items up to some rank, and for none from there on.
    pub fn partition_point(&self, mut is_before: impl FnMut(f64, T) -> bool) -> usize {
        let (mut inner, mut rank) = (&self.root, 0);
        loop {
            let after = inner.0.partition_point(|branch| is_before(branch.score, branch.first));
            let Some((last, skipped)) = inner.0[..after].split_last() else { return rank };
            rank += skipped.iter().map(|branch| branch.count).sum::<usize>();
            match &last.node {
                // The first is known to be before.
                Node::Leaf(items) => {
                    return rank + 1 + items[1..last.count].partition_point(|item| is_before(item.score(), *item));
                }
                Node::Inner(next) => inner = next,
            }
        }
    }

    /// The items of these ranks, in order; may be taken from both ends.
    #[must_use]
    pub fn range(&self, ranks: Range<usize>) -> Run<'_, T> {
        let to = ranks.end.min(self.len);
        Run { tree: self, ranks: ranks.start.min(to)..to, front: [].iter(), back: [].iter() }
    }
}

/// Items of a range of ranks.
pub struct Run<'a, T: Ranking> {
    tree: &'a Ranked<T>,
    /// The ranks that are still to come.
    ranks: Range<usize>,
    front: std::slice::Iter<'a, T>,
    back: std::slice::Iter<'a, T>,
}

impl<T: Ranking> Iterator for Run<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let rank = self.ranks.next()?;
        if self.front.as_slice().is_empty() {
            let (leaf, at) = self.tree.leaf(rank);
            self.front = leaf[at..].iter();
        }
        self.front.next().copied()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.ranks.size_hint()
    }
}

impl<T: Ranking> DoubleEndedIterator for Run<'_, T> {
    fn next_back(&mut self) -> Option<T> {
        let rank = self.ranks.next_back()?;
        if self.back.as_slice().is_empty() {
            let (leaf, at) = self.tree.leaf(rank);
            self.back = leaf[..=at].iter();
        }
        self.back.next_back().copied()
    }
}

impl<T: Ranking> ExactSizeIterator for Run<'_, T> {}

impl<T: Ranking> Branch<T> {
    fn of(inner: Inner<T>) -> Self {
        let (score, first) = (inner.0[0].score, inner.0[0].first);
        let count = inner.0.iter().map(|branch| branch.count).sum();
        Self { score, first, count, node: Node::Inner(Box::new(inner)) }
    }

    /// A leaf for `item` to go into.
    fn empty_leaf(item: T) -> Self {
        Self { score: item.score(), first: item, count: 0, node: Node::Leaf(Box::new([item; LEAF])) }
    }

    fn is_leaf(&self) -> bool {
        matches!(self.node, Node::Leaf(_))
    }

    /// The items of a leaf, the places without meaning included.
    fn items(&mut self) -> &mut [T; LEAF] {
        match &mut self.node {
            Node::Leaf(items) => items,
            Node::Inner(_) => unreachable!("callers have a leaf"),
        }
    }

    fn set_first(&mut self, score: f64, first: T) {
        (self.score, self.first) = (score, first);
    }

    /// Notes the first item of a leaf that is not empty.
    fn refresh(&mut self) {
        let first = self.items()[0];
        self.set_first(first.score(), first);
    }

    /// Moves the first `count` items of the leaf behind to the end of this one.
    fn take_front(&mut self, next: &mut Self, count: usize) {
        let at = self.count;
        self.items()[at..at + count].copy_from_slice(&next.items()[..count]);
        let left = next.count;
        next.items().copy_within(count..left, 0);
        self.count += count;
        next.count -= count;
        if next.count > 0 {
            next.refresh();
        }
    }

    /// Moves the last `count` items of this leaf to the front of the one behind.
    fn give_back(&mut self, next: &mut Self, count: usize) {
        let (at, length) = (self.count - count, next.count);
        next.items().copy_within(..length, count);
        next.items()[..count].copy_from_slice(&self.items()[at..at + count]);
        self.count -= count;
        next.count += count;
        next.refresh();
    }
}

impl<T: Ranking> Inner<T> {
    /// The branch that the item of this rank is in, and how many items are before it.
    fn holding(&self, rank: usize) -> (usize, usize) {
        let (mut at, mut below) = (0, 0);
        while rank - below >= self.0[at].count {
            below += self.0[at].count;
            at += 1;
        }
        (at, below)
    }

    fn split(&mut self, at: usize) -> Self {
        let mut right = Vec::with_capacity(FAN);
        right.extend(self.0.drain(at..));
        Self(right)
    }

    /// Adds an item below; may leave the node with `FAN` branches, for its owner to split.
    fn insert(&mut self, mut rank: usize, item: T, tally: &mut Tally) {
        if self.0.is_empty() {
            self.0.reserve_exact(FAN);
            self.0.push(Branch::empty_leaf(item));
            tally.leaves += 1;
        }
        let mut at = 0;
        while rank > self.0[at].count {
            rank -= self.0[at].count;
            at += 1;
        }
        if self.0[at].is_leaf() && self.0[at].count == LEAF {
            (at, rank) = self.make_room(at, rank, item, tally);
        }
        let branch = &mut self.0[at];
        match &mut branch.node {
            Node::Leaf(items) => {
                items.copy_within(rank..branch.count, rank + 1);
                items[rank] = item;
                branch.count += 1;
                if rank == 0 {
                    branch.set_first(item.score(), item);
                }
            }
            Node::Inner(inner) => {
                inner.insert(rank, item, tally);
                let (score, first) = (inner.0[0].score, inner.0[0].first);
                // Rising scores fill nodes from the left.
                let is_last = rank == branch.count;
                let right = (inner.0.len() == FAN).then(|| inner.split(if is_last { FAN - 1 } else { FAN / 2 }));
                branch.set_first(score, first);
                branch.count += 1;
                if let Some(right) = right {
                    let right = Branch::of(right);
                    branch.count -= right.count;
                    self.0.insert(at + 1, right);
                    tally.inners += 1;
                }
            }
        }
    }

    /// Makes room for `item` at `rank` of the full leaf at `at`; returns where it is to go instead.
    fn make_room(&mut self, at: usize, rank: usize, item: T, tally: &mut Tally) -> (usize, usize) {
        let room = |index: Option<usize>| index.and_then(|index| self.0.get(index)).map_or(0, |leaf| LEAF - leaf.count);
        let (before, behind) = (room(at.checked_sub(1)), room(Some(at + 1)));
        if rank == LEAF && behind > 0 {
            return (at + 1, 0);
        }
        if behind >= ROOM_MIN {
            let (left, right) = self.0.split_at_mut(at + 1);
            left[at].give_back(&mut right[0], behind.div_ceil(2));
            let kept = left[at].count;
            return if rank > kept { (at + 1, rank - kept) } else { (at, rank) };
        }
        if before >= ROOM_MIN {
            let (left, right) = self.0.split_at_mut(at);
            let (moved, length) = (before.div_ceil(2), left[at - 1].count);
            left[at - 1].take_front(&mut right[0], moved);
            return if rank < moved { (at - 1, length + rank) } else { (at, rank - moved) };
        }
        tally.leaves += 1;
        let new = if rank == 0 { at } else { at + 1 };
        self.0.insert(new, Branch::empty_leaf(item));
        if rank == 0 || rank == LEAF {
            return (new, 0);
        }
        let (left, right) = self.0.split_at_mut(new);
        left[at].give_back(&mut right[0], LEAF / 2);
        if rank > LEAF / 2 { (new, rank - LEAF / 2) } else { (at, rank) }
    }

    /// Takes out the item of this rank; may leave the node without branches, for its owner to drop.
    fn remove(&mut self, rank: usize, tally: &mut Tally) -> T {
        let (at, below) = self.holding(rank);
        let rank = rank - below;
        let branch = &mut self.0[at];
        branch.count -= 1;
        let (item, first) = match &mut branch.node {
            Node::Leaf(items) => {
                let item = items[rank];
                items.copy_within(rank + 1..=branch.count, rank);
                let first = (rank == 0 && branch.count > 0).then(|| (items[0].score(), items[0]));
                (item, first)
            }
            Node::Inner(inner) => {
                let item = inner.remove(rank, tally);
                (item, inner.0.first().map(|branch| (branch.score, branch.first)))
            }
        };
        if let Some((score, first)) = first {
            branch.set_first(score, first);
        }
        if branch.count == 0 {
            self.drop_branch(at, tally);
        } else {
            self.merge_around(at, tally);
        }
        item
    }

    fn drop_branch(&mut self, at: usize, tally: &mut Tally) {
        match self.0.remove(at).node {
            Node::Leaf(_) => tally.leaves -= 1,
            Node::Inner(_) => tally.inners -= 1,
        }
    }

    /// Joins a node that has become small with a neighbour, when the two leave a quarter of one free.
    fn merge_around(&mut self, at: usize, tally: &mut Tally) {
        let size = |branch: &Branch<T>| match &branch.node {
            Node::Leaf(_) => (branch.count, LEAF),
            Node::Inner(inner) => (inner.0.len(), FAN),
        };
        let (own, full) = size(&self.0[at]);
        if own > full / 4 {
            return;
        }
        let fits = |index: usize| self.0.get(index).is_some_and(|other| size(other).0 + own <= full * 3 / 4);
        let left = match at.checked_sub(1) {
            Some(before) if fits(before) => before,
            Some(_) | None if fits(at + 1) => at,
            Some(_) | None => return,
        };
        let (head, tail) = self.0.split_at_mut(left + 1);
        let (into, from) = (&mut head[left], &mut tail[0]);
        match (&mut into.node, &mut from.node) {
            (Node::Inner(into), Node::Inner(from)) => into.0.append(&mut from.0),
            (Node::Leaf(items), Node::Leaf(more)) => {
                items[into.count..into.count + from.count].copy_from_slice(&more[..from.count]);
            }
            (Node::Inner(_), Node::Leaf(_)) | (Node::Leaf(_), Node::Inner(_)) => {
                unreachable!("the branches of a node are of one kind")
            }
        }
        into.count += from.count;
        self.drop_branch(left + 1, tally);
    }

    /// Drops the last node whose branches are leaves, and nodes that this leaves empty. Returns how many items went.
    fn shed(&mut self, tally: &mut Tally) -> usize {
        let Some(last) = self.0.last_mut() else { return 0 };
        if let Node::Inner(inner) = &mut last.node {
            let count = inner.shed(tally);
            last.count -= count;
            if last.count == 0 {
                self.0.pop();
                tally.inners -= 1;
            }
            return count;
        }
        tally.leaves -= self.0.len();
        self.0.drain(..).map(|leaf| leaf.count).sum()
    }
}

#[cfg(test)]
#[path = "ranked_tests.rs"]
mod tests;
