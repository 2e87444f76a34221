//! Lists: a packed list while it is small, a sequence of packed nodes (`quicklist.rs`) when it has outgrown one.
//!
//! Commands: <https://redis.io/docs/latest/commands/?group=list>. They are in files by what they do: `push.rs`, `pop.rs`, `transfer.rs`
//! (LMOVE and its like), `read.rs`, `edit.rs`, `search.rs`, `wait.rs`. What takes one element or several from an end, and what moves
//! elements, are functions of a key, so that the commands that wait for elements do the same things when they have some.

mod edit;
mod limit;
mod node;
mod owed;
mod pop;
mod push;
mod quicklist;
mod read;
mod search;
#[cfg(test)]
mod tests;
mod transfer;
mod transfer_several;
mod wait;

pub use edit::{linsert, lrem, lset, ltrim};
pub use limit::Limit;
pub use node::NodeRef;
pub use pop::{Several, lmpop, log_pop, lpop, pop_first_of, pop_one, pop_several, rpop};
pub use push::{lpush, lpushx, rpush, rpushx};
pub use quicklist::Side;
pub use read::{lindex, llen, lrange};
pub use search::lpos;
pub use transfer::{lmove, move_one, rpoplpush};
pub use transfer_several::{HowMany, lmovem, move_several};
pub use wait::{blmove, blmovem, blmpop, blpop, brpop, brpoplpush};

use crate::listpack::{Item, Listpack};
use crate::packed_or::{Form, PackedOr};
use crate::rdb::value::list::count_in_file;
use crate::snapshot::{Large, Record};
use node::{NodeIter, position};
use quicklist::{Place, Quicklist};
use simurgh_protocol::{Args, CommandError};

/// One end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where the first element is: LEFT.
    Front,
    /// Where the last one is: RIGHT.
    Back,
}

impl End {
    /// The end that argument `index` names.
    pub fn parse(args: &Args<'_>, index: usize) -> Result<Self, CommandError> {
        match () {
            () if args.is(index, "LEFT") => Ok(Self::Front),
            () if args.is(index, "RIGHT") => Ok(Self::Back),
            () => Err(CommandError::Syntax),
        }
    }

    /// The event when an element comes there.
    fn push_event(self) -> &'static str {
        match self {
            Self::Front => "lpush",
            Self::Back => "rpush",
        }
    }

    /// The event when an element goes from there.
    fn pop_event(self) -> &'static str {
        match self {
            Self::Front => "lpop",
            Self::Back => "rpop",
        }
    }
}

/// A value that holds lists.
#[derive(Clone, Debug, Default)]
#[repr(transparent)]
pub struct List(PackedOr<Listpack, Quicklist>);

impl List {
    /// A list of packed nodes and large elements as a file has them, in order; empty nodes are left out.
    pub fn of_nodes(nodes: impl IntoIterator<Item = OwnedNode>, limit: Limit) -> Self {
        let mut quick = Quicklist::default();
        for node in nodes {
            match node {
                OwnedNode::Packed(list) => quick.append(list),
                OwnedNode::Plain(text) => quick.append_plain(text),
            }
        }
        let mut list = Self(PackedOr::large(Box::new(quick)));
        list.pack(limit, false);
        list
    }

    /// A list of these elements.
    pub fn of_items<'a>(items: impl IntoIterator<Item = Item<'a>>, limit: Limit) -> Self {
        let mut quick = Quicklist::default();
        items.into_iter().for_each(|item| quick.push(End::Back, item, limit));
        let mut list = Self(PackedOr::large(Box::new(quick)));
        list.pack(limit, false);
        list
    }

    /// A list of a packed list.
    #[must_use]
    pub fn of_listpack(list: Listpack, limit: Limit) -> Self {
        let mut list = Self(PackedOr::packed(list));
        list.make_room(0, 0, limit);
        list
    }

    /// The nodes, of which a small list is one.
    pub fn nodes(&self) -> impl Iterator<Item = NodeRef<'_>> {
        let (packed, large) = match self.0.get() {
            Form::Packed(list) => (Some(NodeRef::Packed(list)), None),
            Form::Large(list) => (None, Some(list.nodes())),
        };
        packed.into_iter().chain(large.into_iter().flatten())
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        match self.0.get() {
            Form::Packed(list) => list.len(),
            Form::Large(list) => list.len(),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self.0.get() {
            Form::Packed(list) => list.is_empty(),
            Form::Large(list) => list.len() == 0,
        }
    }

    /// Bytes of its blocks, in the allocator's size classes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self.0.get() {
            Form::Packed(list) => list.bytes(),
            Form::Large(list) => list.bytes(),
        }
    }

    /// The name of the representation.
    #[must_use]
    pub fn encoding_name(&self) -> &'static str {
        match self.0.get() {
            Form::Packed(_) => "listpack",
            Form::Large(_) => "quicklist",
        }
    }

    /// How many allocations there are, about.
    #[must_use]
    pub fn free_effort(&self) -> usize {
        match self.0.get() {
            Form::Packed(_) => 1,
            Form::Large(list) => list.node_count() + 2,
        }
    }

    /// Calls `with` for each element.
    pub fn for_each(&self, with: &mut dyn FnMut(&[&[u8]])) {
        for item in self.iter() {
            item.with_text(|text| with(&[text]));
        }
    }

    /// All elements in order.
    pub fn iter(&self) -> impl Iterator<Item = Item<'_>> {
        self.iter_from(0, End::Back)
    }

    /// The elements from the one with this number on, towards `end`; none if there is no such element.
    fn iter_from(&self, index: usize, end: End) -> Iter<'_> {
        let is_forward = end == End::Back;
        match self.0.get() {
            Form::Packed(list) if index < list.len() => {
                Iter::Packed(NodeIter::from(NodeRef::Packed(list), index, is_forward))
            }
            Form::Packed(_) => Iter::Packed(NodeIter::Plain(None)),
            Form::Large(list) => Iter::Large(list.iter_from(index, is_forward)),
        }
    }

    /// The number of the element that an index means, negative ones counting from the back.
    fn number(&self, index: i64) -> Option<usize> {
        let length = self.len();
        let number = match usize::try_from(index) {
            Ok(number) => number,
            Err(_) => length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?)?,
        };
        (number < length).then_some(number)
    }

    /// The element at an index, negative ones counting from the back.
    #[must_use]
    pub fn get(&self, index: i64) -> Option<Item<'_>> {
        let number = self.number(index)?;
        match self.0.get() {
            Form::Packed(list) => Some(list.get(position(list, number))),
            Form::Large(list) => list.get(number),
        }
    }

    /// Prepares for `count` more elements of `bytes` in all: a packed list that would grow beyond the limit becomes a large one.
    pub fn make_room(&mut self, bytes: usize, count: usize, limit: Limit) {
        let Form::Packed(list) = self.0.get_mut() else { return };
        if limit.is_exceeded(list.as_bytes().len().saturating_add(bytes), list.len() + count) {
            let mut quick = Quicklist::default();
            quick.append(std::mem::take(list));
            self.0 = PackedOr::large(Box::new(quick));
        }
    }

    /// Packs a large list that has become small, after elements went.
    pub fn shrink(&mut self, limit: Limit) {
        self.pack(limit, true);
    }

    fn pack(&mut self, limit: Limit, is_shrinking: bool) {
        let Form::Large(list) = self.0.get() else { return };
        let packs = match list.only_node().and_then(node::Node::size) {
            Some(size) => limit.packs(size, is_shrinking),
            None => list.len() == 0,
        };
        if packs && let Form::Large(list) = std::mem::take(&mut self.0).into_form() {
            self.0 = PackedOr::packed(list.into_only_list().unwrap_or_default());
        }
    }

    /// Adds an element at one end. Call [`List::make_room`] before.
    pub fn push(&mut self, end: End, item: Item<'_>, limit: Limit) {
        match self.0.get_mut() {
            Form::Packed(list) => quicklist::push(list, end, item),
            Form::Large(list) => list.push(end, item, limit),
        }
    }

    /// Removes the element at one end, if there is one, after `with` has looked at it. Call [`List::shrink`] after the last.
    pub fn pop<R>(&mut self, end: End, with: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        match self.0.get_mut() {
            Form::Packed(list) => quicklist::pop(list, end, with),
            Form::Large(list) => list.pop(end, with),
        }
    }

    /// Puts an element beside the first that is `pivot`, seen from the front; whether there is one. Call [`List::make_room`] before.
    pub fn insert(&mut self, pivot: Item<'_>, side: Side, item: Item<'_>, limit: Limit) -> bool {
        let Some(number) = self.iter().position(|element| element.same(&pivot)) else { return false };
        match self.0.get_mut() {
            Form::Packed(list) => quicklist::insert(list, number + usize::from(side == Side::After), item),
            Form::Large(list) => {
                if let Some(place) = list.locate(number) {
                    list.insert(place, side, item, limit);
                }
            }
        }
        true
    }

    /// Puts an element in the place of the one at an index; whether there is one. Call [`List::make_room`] before.
    pub fn set(&mut self, index: i64, item: Item<'_>, limit: Limit) -> bool {
        let Some(number) = self.number(index) else { return false };
        match self.0.get_mut() {
            Form::Packed(list) => {
                let at = position(list, number);
                list.replace(at, item);
            }
            Form::Large(list) => {
                let place: Option<Place> = list.locate(number);
                list.replace(place.expect("there is an element with this number"), item, limit);
            }
        }
        true
    }

    /// Removes `count` elements from the one with the number `start` on. Call [`List::shrink`] after.
    pub fn remove_run(&mut self, start: usize, count: usize) {
        match self.0.get_mut() {
            Form::Packed(list) => {
                if let Ok(start) = isize::try_from(start) {
                    list.remove_range(start, count);
                }
            }
            Form::Large(list) => list.remove_run(start, count),
        }
    }

    /// Whether it is a sequence of nodes.
    pub(crate) fn is_large(&self) -> bool {
        matches!(self.0.get(), Form::Large(_))
    }

    /// How many nodes it has in a file.
    pub(crate) fn nodes_in_file(&self) -> usize {
        match self.0.get() {
            Form::Packed(list) => count_in_file(NodeRef::Packed(list)),
            Form::Large(list) => list.nodes_in_file(),
        }
    }

    /// A snapshot begins with it; it is large.
    pub(crate) fn owe(&mut self, record: Record) {
        if let Form::Large(list) = self.0.get_mut() {
            list.owe(record);
        }
    }

    /// What is seen in steps, if a snapshot has begun with it and not come to its end.
    pub(crate) fn owing(&mut self) -> Option<&mut dyn Large> {
        match self.0.get_mut() {
            Form::Large(list) => list.owing(),
            Form::Packed(_) => None,
        }
    }

    /// Removes up to `count` elements equal to `wanted` from one end on; how many. Call [`List::shrink`] after.
    pub fn remove_equal(&mut self, wanted: Item<'_>, end: End, count: usize) -> usize {
        match self.0.get_mut() {
            Form::Packed(list) => quicklist::remove_equal(list, wanted, end, count),
            Form::Large(list) => list.remove_equal(wanted, end, count),
        }
    }
}

/// A node that a list is made of.
#[derive(Debug)]
pub enum OwnedNode {
    /// Elements, packed.
    Packed(Listpack),
    /// One large element.
    Plain(Vec<u8>),
}

/// The elements of a list, towards one end.
enum Iter<'a> {
    /// Of a packed one.
    Packed(NodeIter<'a>),
    /// Of a large one.
    Large(quicklist::Iter<'a>),
}

impl<'a> Iterator for Iter<'a> {
    type Item = Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<Item<'a>> {
        match self {
            Self::Packed(items) => items.next(),
            Self::Large(items) => items.next(),
        }
    }
}
