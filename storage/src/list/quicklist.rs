//! A large list: a sequence of packed nodes, each of about 8 KiB, in a ring of their pointers and counts.
//!
//! ```text
//! [ listpack, 120 ][ listpack, 90 ][ one large element ][ listpack, 3 ]
//! ```
//!
//! An end is a step away, an index is found by adding up counts that lie side by side, from the nearer end, and a change in
//! the middle moves one node's bytes and perhaps some pointers. How nodes come to be, split and merge is Redis's way, since
//! `OBJECT ENCODING` shows whether there is one node or more.

use super::End;
use super::limit::Limit;
use super::node::{Node, NodeIter, NodeRef, position};
use super::owed::OwedNodes;
use crate::database::size_class;
use crate::listpack::{Item, Listpack};
use crate::snapshot::Owed;
use std::collections::VecDeque;

/// Before or behind an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Before.
    Before,
    /// Behind.
    After,
}

/// A sequence of nodes, none of them empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Quicklist {
    pub nodes: VecDeque<Node>,
    /// Elements.
    count: usize,
    /// Bytes of the nodes' own allocations.
    bytes: usize,
    /// No packed node has, or has had, more bytes than this.
    pub packed_max: usize,
    /// What a snapshot has not seen.
    pub owed: Owed<OwedNodes>,
}

/// Where an element is: the number of its node, and its number in the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub node: usize,
    pub offset: usize,
}

impl Quicklist {
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// What the allocator spends on everything.
    pub fn bytes(&self) -> usize {
        let ring = self.nodes.capacity() * size_of::<Node>();
        self.bytes + size_class(size_of::<Self>()) + if ring == 0 { 0 } else { size_class(ring) }
    }

    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = NodeRef<'_>> + ExactSizeIterator {
        self.nodes.iter().map(Node::as_ref)
    }

    /// The only node, if it is a packed one.
    pub fn only_node(&self) -> Option<&Node> {
        if self.nodes.len() == 1 { self.nodes.front().filter(|node| node.list().is_some()) } else { None }
    }

    pub fn into_only_list(mut self) -> Option<Listpack> {
        self.hand_over(0);
        self.nodes.pop_front().and_then(Node::into_list)
    }

    /// Where the element with this number is.
    pub fn locate(&self, index: usize) -> Option<Place> {
        (index < self.count).then_some(())?;
        if index < self.count / 2 {
            let mut offset = index;
            for (node, body) in self.nodes.iter().enumerate() {
                if offset < body.len() {
                    return Some(Place { node, offset });
                }
                offset -= body.len();
            }
        } else {
            let mut from_back = self.count - index;
            for (node, body) in self.nodes.iter().enumerate().rev() {
                if from_back <= body.len() {
                    return Some(Place { node, offset: body.len() - from_back });
                }
                from_back -= body.len();
            }
        }
        unreachable!("the count is the sum of the nodes' counts")
    }

    pub fn get(&self, index: usize) -> Option<Item<'_>> {
        let place = self.locate(index)?;
        Some(self.nodes[place.node].get(place.offset))
    }

    /// The elements from the one with the number `index` on, towards one end.
    pub fn iter_from(&self, index: usize, is_forward: bool) -> Iter<'_> {
        let Some(place) = self.locate(index) else {
            return Iter { nodes: Nodes::Forward(self.nodes.range(..0)), current: NodeIter::Plain(None) };
        };
        let current = NodeIter::from(self.nodes[place.node].as_ref(), place.offset, is_forward);
        let nodes = if is_forward {
            Nodes::Forward(self.nodes.range(place.node + 1..))
        } else {
            Nodes::Backward(self.nodes.range(..place.node).rev())
        };
        Iter { nodes, current }
    }

    fn insert_node(&mut self, index: usize, node: Node) {
        self.count += node.len();
        self.bytes += node.bytes();
        self.packed_max = self.packed_max.max(node.packed_bytes());
        self.nodes.insert(index, node);
        if let Some(owed) = &mut *self.owed {
            owed.inserted(index);
        }
    }

    fn remove_node(&mut self, index: usize) -> Option<Node> {
        self.hand_over(index);
        self.take_node(index)
    }

    /// Removes a node that nobody wants but a snapshot.
    fn drop_node(&mut self, index: usize) {
        let node = self.take_node(index);
        if let (Some(owed), Some(node)) = (&mut *self.owed, node) {
            owed.keep(node);
        }
    }

    fn take_node(&mut self, index: usize) -> Option<Node> {
        let node = self.nodes.remove(index)?;
        self.count -= node.len();
        self.bytes -= node.bytes();
        if let Some(owed) = &mut *self.owed {
            owed.removed(index..index + 1);
        }
        self.give_back();
        Some(node)
    }

    /// Gives memory back that a longer list needed.
    fn give_back(&mut self) {
        if self.nodes.capacity() > 16 && self.nodes.len() < self.nodes.capacity() / 4 {
            self.nodes.shrink_to(self.nodes.len() * 2);
        }
    }

    /// Changes a node and brings counts up to date; an emptied one goes.
    fn change<R>(&mut self, index: usize, with: impl FnOnce(&mut Node) -> R) -> R {
        self.hand_over(index);
        let node = &mut self.nodes[index];
        self.count -= node.len();
        self.bytes -= node.bytes();
        let result = with(node);
        self.count += node.len();
        self.bytes += node.bytes();
        self.packed_max = self.packed_max.max(node.packed_bytes());
        if node.len() == 0 {
            self.drop_node(index);
        }
        result
    }

    /// Puts a packed list behind the last node.
    pub fn append(&mut self, list: Listpack) {
        if !list.is_empty() {
            self.insert_node(self.nodes.len(), Node::packed(list));
        }
    }

    /// Puts an element behind the last node, as a node of its own.
    pub fn append_plain(&mut self, text: Vec<u8>) {
        self.insert_node(self.nodes.len(), Node::plain(text));
    }

    fn end_node(&self, end: End) -> Option<usize> {
        let last = self.nodes.len().checked_sub(1)?;
        Some(if end == End::Front { 0 } else { last })
    }

    pub fn push(&mut self, end: End, item: Item<'_>, limit: Limit) {
        match self.end_node(end).filter(|index| self.nodes[*index].has_room(item.text_length(), limit)) {
            Some(index) => self.change(index, |node| node.change(1, |list| push(list, end, item))),
            None => {
                let index = if end == End::Front { 0 } else { self.nodes.len() };
                self.insert_node(index, Node::of(item, limit));
            }
        }
    }

    /// Removes the element at one end, after `with` has looked at it.
    pub fn pop<R>(&mut self, end: End, with: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        let index = self.end_node(end)?;
        let node = &self.nodes[index];
        if let NodeRef::Plain(text) = node.as_ref() {
            let result = with(Item::Bytes(text));
            self.drop_node(index);
            return Some(result);
        }
        self.change(index, |node| node.change(-1, |list| pop(list, end, with)))
    }

    /// Puts an element beside the one at `place`.
    pub fn insert(&mut self, place: Place, side: Side, item: Item<'_>, limit: Limit) {
        let length = item.text_length();
        let (index, node) = (place.node, &self.nodes[place.node]);
        let (is_at_edge, beside) = match side {
            Side::After => (place.offset + 1 == node.len(), Some(index + 1)),
            Side::Before => (place.offset == 0, index.checked_sub(1)),
        };
        if node.has_room(length, limit) {
            let offset = place.offset + usize::from(side == Side::After);
            self.change(index, |node| node.change(1, |list| insert(list, offset, item)));
            return;
        }
        let neighbour =
            beside.filter(|beside| self.nodes.get(*beside).is_some_and(|node| node.has_room(length, limit)));
        match neighbour {
            Some(neighbour) if is_at_edge => {
                let end = if side == Side::After { End::Front } else { End::Back };
                self.change(neighbour, |node| node.change(1, |list| push(list, end, item)));
            }
            Some(_) | None if is_at_edge => {
                self.insert_node(index + usize::from(side == Side::After), Node::of(item, limit));
            }
            Some(_) | None => self.insert_by_split(place, side, item, limit),
        }
    }

    /// Puts an element into a full node, which is split for it.
    fn insert_by_split(&mut self, place: Place, side: Side, item: Item<'_>, limit: Limit) {
        let at = place.offset + usize::from(side == Side::After);
        let tail = self.change(place.node, |node| node.split_off(at));
        self.insert_node(place.node + 1, tail);
        if limit.is_large(item.text_length()) {
            self.insert_node(place.node + 1, Node::of(item, limit));
            return;
        }
        // The element joins the half that the pivot is not in.
        let (half, end) = if side == Side::After { (place.node + 1, End::Front) } else { (place.node, End::Back) };
        self.change(half, |node| node.change(1, |list| push(list, end, item)));
        let pivot = if side == Side::After { place.node } else { place.node + 1 };
        self.merge_around(pivot, limit);
    }

    /// Puts an element in the place of the one at `place`.
    pub fn replace(&mut self, place: Place, item: Item<'_>, limit: Limit) {
        let is_large = limit.is_large(item.text_length());
        let (index, node) = (place.node, &self.nodes[place.node]);
        match node.as_ref() {
            NodeRef::Packed(list) if !is_large && list.fits(item.packed_length()) => self.change(index, |node| {
                node.change(0, |list| {
                    let at = position(list, place.offset);
                    list.replace(at, item);
                });
            }),
            NodeRef::Plain(_) => {
                if !is_large {
                    self.insert(place, Side::After, item, limit);
                }
                self.drop_node(index);
                if is_large {
                    self.insert_node(index, Node::of(item, limit));
                }
            }
            NodeRef::Packed(_) => self.replace_by_split(place, item, limit),
        }
    }

    /// Puts an element that its node cannot take in the place of another one: a node of its own, between the parts of that node.
    fn replace_by_split(&mut self, place: Place, item: Item<'_>, limit: Limit) {
        let Place { node: index, offset } = place;
        let tail = self.change(index, |node| node.split_off(offset + 1));
        if tail.len() > 0 {
            self.insert_node(index + 1, tail);
        }
        self.insert_node(index + 1, Node::of(item, limit));
        let is_alone = self.nodes[index].len() == 1;
        self.change(index, |node| node.remove_run(offset, 1));
        if !is_alone {
            self.merge_around(index + 1, limit);
        }
    }

    /// Removes the node behind `index` after it was appended to the one at `index`, if both together are small enough.
    fn merge_with_next(&mut self, index: usize, limit: Limit) -> bool {
        let size = |index: usize| self.nodes.get(index).and_then(Node::size);
        let (Some(one), Some(other)) = (size(index), size(index + 1)) else { return false };
        if !limit.may_merge(one, other) {
            return false;
        }
        let next = self.remove_node(index + 1).and_then(Node::into_list).unwrap_or_default();
        self.change(index, |node| node.change(other.1 as isize, |list| list.append(&next)));
        true
    }

    /// Merges the node at `centre` and its neighbours where they have become small: those two before it, those two behind it, and then
    /// it with each side.
    fn merge_around(&mut self, centre: usize, limit: Limit) {
        let mut centre = centre;
        if centre >= 2 && self.merge_with_next(centre - 2, limit) {
            centre -= 1;
        }
        self.merge_with_next(centre + 1, limit);
        if centre >= 1 && self.merge_with_next(centre - 1, limit) {
            centre -= 1;
        }
        self.merge_with_next(centre, limit);
    }

    /// Removes `count` elements from the one with the number `start` on (fewer if the list ends).
    pub fn remove_run(&mut self, start: usize, count: usize) {
        let Some(Place { node: mut index, offset }) = self.locate(start) else { return };
        let mut left = count.min(self.count - start);
        if offset > 0 {
            left -= self.change(index, |node| node.remove_run(offset, left));
            index += 1;
        }
        let mut end = index;
        while let Some(node) = self.nodes.get(end).filter(|node| node.len() <= left) {
            left -= node.len();
            end += 1;
        }
        for node in self.nodes.drain(index..end) {
            self.count -= node.len();
            self.bytes -= node.bytes();
            if let Some(owed) = &mut *self.owed {
                owed.keep(node);
            }
        }
        if let Some(owed) = &mut *self.owed {
            owed.removed(index..end);
        }
        if left > 0 {
            self.change(index, |node| node.remove_run(0, left));
        }
        self.give_back();
    }

    /// Removes elements equal to `wanted`, up to `count`, from one end on; how many.
    pub fn remove_equal(&mut self, wanted: Item<'_>, end: End, count: usize) -> usize {
        let (mut removed, mut seen, nodes) = (0, 0, self.nodes.len());
        while seen < nodes && removed < count {
            // Nodes that go lie before the index from the front, behind it from the back.
            let index = if end == End::Front { seen - (nodes - self.nodes.len()) } else { nodes - 1 - seen };
            removed += self.remove_equal_in(index, wanted, end, count - removed);
            seen += 1;
        }
        removed
    }

    fn remove_equal_in(&mut self, index: usize, wanted: Item<'_>, end: End, count: usize) -> usize {
        if let NodeRef::Plain(text) = self.nodes[index].as_ref() {
            let is_wanted = wanted.equals(text);
            if is_wanted {
                self.drop_node(index);
            }
            return usize::from(is_wanted);
        }
        self.change(index, |node| {
            let removed = node.change(0, |list| remove_equal(list, wanted, end, count));
            node.change(-(removed as isize), |_| removed)
        })
    }
}

/// Puts an element at one end of a packed list.
pub(super) fn push(list: &mut Listpack, end: End, item: Item<'_>) {
    match end {
        End::Front => list.push_front(item),
        End::Back => list.push_back(item),
    }
}

/// Removes the element at one end of a packed list, after `with` has looked at it.
pub(super) fn pop<R>(list: &mut Listpack, end: End, with: impl FnOnce(Item<'_>) -> R) -> Option<R> {
    let at = if end == End::Front { list.first()? } else { list.last()? };
    let result = with(list.get(at));
    list.remove(at);
    Some(result)
}

/// Puts an element before the one with the number `offset`, or behind the last.
pub(super) fn insert(list: &mut Listpack, offset: usize, item: Item<'_>) {
    let at = isize::try_from(offset).ok().and_then(|offset| list.seek(offset)).unwrap_or(list.end());
    list.insert_before(at, item);
}

/// Removes elements equal to `wanted` from a packed list, up to `count`, from one end on; how many.
pub(super) fn remove_equal(list: &mut Listpack, wanted: Item<'_>, end: End, count: usize) -> usize {
    let mut removed = 0;
    let mut next = if end == End::Front { list.first() } else { list.last() };
    while let Some(at) = next.filter(|_| removed < count) {
        let is_wanted = list.get(at).same(&wanted);
        let before = if end == End::Back { list.prev(at) } else { None };
        let after = if is_wanted { list.remove(at) } else { list.next(at) };
        next = if end == End::Front { after } else { before };
        removed += usize::from(is_wanted);
    }
    removed
}

enum Nodes<'a> {
    Forward(std::collections::vec_deque::Iter<'a, Node>),
    Backward(std::iter::Rev<std::collections::vec_deque::Iter<'a, Node>>),
}

/// The elements of a large list, from some one on towards one end.
pub(super) struct Iter<'a> {
    nodes: Nodes<'a>,
    current: NodeIter<'a>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<Item<'a>> {
        loop {
            if let Some(item) = self.current.next() {
                return Some(item);
            }
            self.current = match &mut self.nodes {
                Nodes::Forward(nodes) => NodeIter::forward(nodes.next()?.as_ref()),
                Nodes::Backward(nodes) => NodeIter::backward(nodes.next()?.as_ref()),
            };
        }
    }
}
