//! Sets: members without order, each there once.
//!
//! Three representations: an intset while all members are integers and few, a listpack while they are few and short, a hash table
//! beyond. A set goes over to the next when it outgrows one (`insert`), and back only where a command builds a new set, as in
//! Redis. Members of the packed ones come in the order in which they lie.

mod combine;
mod loan;
mod members;
mod packed;
mod probe;
mod random;
mod read;
mod scan;
mod store;
mod write;

pub use combine::{sdiff, sdiffcard, sinter, sintercard, sunion, sunioncard};
pub use members::Members;
pub use random::{spop, srandmember};
pub use read::{scard, sismember, smembers, smismember};
pub use scan::sscan;
pub use store::{sdiffstore, sinterstore, sunionstore};
pub use write::{sadd, smove, srem};

use crate::context::Context;
use crate::dict::Dict;
use crate::intset::Intset;
use crate::key_hash::KeyHasher;
use crate::listpack::{Item, Listpack};
use crate::member::Member;
use crate::packed_or::{Form, PackedOr};
use crate::random::Random;
use crate::snapshot::{Large, Record};
use packed::{PackedSet, Which};
use simurgh_protocol::config::Packing;

/// A value that holds members.
#[derive(Clone, Debug, Default)]
#[repr(transparent)]
pub struct Set(PackedOr<PackedSet, Dict<Member>>);

/// A set's representation, to be read.
#[derive(Debug)]
pub enum Shape<'a> {
    /// `intset`.
    Ints(&'a Intset),
    /// `listpack`.
    Packed(&'a Listpack),
    /// `hashtable`.
    Table(&'a Dict<Member>),
}

/// A set's representation, to be changed.
enum ShapeMut<'a> {
    Ints(&'a mut Intset),
    Packed(&'a mut Listpack),
    Table(&'a mut Dict<Member>),
}

/// Up to which size a set is packed, and how its members are hashed when it is not.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// Integers of an intset.
    integers: u64,
    /// Members of a listpack.
    entries: u64,
    /// Bytes of one of them.
    value: u64,
    hasher: &'a KeyHasher,
}

/// More integers than this are never packed, as Redis has it.
const INTEGERS_MAX: u64 = 1 << 30;

impl<'a> Limits<'a> {
    /// Those of the configuration.
    #[must_use]
    pub fn of(cx: &Context<'a>) -> Self {
        Self::new(&cx.settings.packing, &cx.layout.hasher)
    }

    /// Those of `packing`.
    #[must_use]
    pub fn new(packing: &Packing, hasher: &'a KeyHasher) -> Self {
        let integers = packing.set_integers.min(INTEGERS_MAX);
        Self { integers, entries: packing.set_entries, value: packing.set_value, hasher }
    }
}

impl Set {
    /// A set of integers.
    #[must_use]
    pub fn of_ints(set: Intset) -> Self {
        Self(PackedOr::packed(set.into()))
    }

    /// A set of the elements of a listpack, which differ.
    #[must_use]
    pub fn of_listpack(list: Listpack) -> Self {
        Self(PackedOr::packed(list.into()))
    }

    /// A set of the elements of a table.
    #[must_use]
    pub fn of_table(table: Dict<Member>) -> Self {
        Self(PackedOr::large(Box::new(table)))
    }

    /// An empty set in the representation that suits `count` members of which `first` is one.
    #[must_use]
    pub fn for_members(first: &Item<'_>, count: usize, limits: &Limits<'_>) -> Self {
        if first.to_i64().is_some() && count as u64 <= limits.integers {
            Self::default()
        } else if count as u64 <= limits.entries {
            Self::of_listpack(Listpack::new())
        } else {
            Self::of_table(Dict::new(limits.hasher))
        }
    }

    /// How the members lie.
    #[must_use]
    #[inline]
    pub fn shape(&self) -> Shape<'_> {
        match self.0.get() {
            Form::Packed(packed) => match packed.get() {
                Which::Ints(set) => Shape::Ints(set),
                Which::List(list) => Shape::Packed(list),
            },
            Form::Large(table) => Shape::Table(table),
        }
    }

    fn shape_mut(&mut self) -> ShapeMut<'_> {
        match self.0.get_mut() {
            Form::Packed(packed) => match packed.get_mut() {
                Which::Ints(set) => ShapeMut::Ints(set),
                Which::List(list) => ShapeMut::Packed(list),
            },
            Form::Large(table) => ShapeMut::Table(table),
        }
    }

    /// Number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        match self.shape() {
            Shape::Ints(set) => set.len(),
            Shape::Packed(list) => list.len(),
            Shape::Table(table) => table.len(),
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
        match self.shape() {
            Shape::Ints(set) => set.bytes(),
            Shape::Packed(list) => list.bytes(),
            Shape::Table(table) => table.bytes(),
        }
    }

    /// The name of the representation.
    #[must_use]
    pub fn encoding_name(&self) -> &'static str {
        match self.shape() {
            Shape::Ints(_) => "intset",
            Shape::Packed(_) => "listpack",
            Shape::Table(_) => "hashtable",
        }
    }

    /// How many allocations there are, about.
    #[must_use]
    pub fn free_effort(&self) -> usize {
        match self.shape() {
            Shape::Ints(_) | Shape::Packed(_) => 1,
            Shape::Table(table) => table.len(),
        }
    }

    /// The members, as they lie.
    #[must_use]
    pub fn iter(&self) -> Members<'_> {
        Members::new(self.shape())
    }

    /// Calls `with` for each member.
    pub fn for_each(&self, with: &mut dyn FnMut(&[&[u8]])) {
        for item in self.iter() {
            item.with_text(|text| with(&[text]));
        }
    }

    /// Whether `item` is a member. To ask it of several sets, make a [`probe::Probe`].
    #[must_use]
    pub fn contains(&self, item: &Item<'_>) -> bool {
        match self.shape() {
            Shape::Ints(set) => item.to_i64().is_some_and(|number| set.contains(number)),
            Shape::Packed(list) => item.with_text(|text| list.find(text, 1)).is_some(),
            Shape::Table(table) => item.with_text(|text| table.contains(text)),
        }
    }

    /// Adds a member; whether it was none before. The set goes over to a representation that has room for it.
    pub fn insert(&mut self, item: Item<'_>, limits: &Limits<'_>) -> bool {
        match self.shape_mut() {
            ShapeMut::Ints(set) => {
                let Some(number) = item.to_i64() else { return self.insert_text_among_ints(item, limits) };
                let is_new = set.insert(number);
                if is_new && set.len() as u64 > limits.integers {
                    self.become_table(limits);
                }
                is_new
            }
            ShapeMut::Packed(list) => {
                if item.with_text(|text| list.find(text, 1)).is_some() {
                    return false;
                }
                // What comes from a table is text even if it spells an integer.
                let item = if let Item::Bytes(text) = item { Item::from(text) } else { item };
                let is_short = item.text_length() as u64 <= limits.value && list.fits(item.packed_length());
                if is_short && (list.len() as u64) < limits.entries {
                    list.push_back(item);
                    return true;
                }
                self.become_table(limits);
                self.insert(item, limits)
            }
            ShapeMut::Table(table) => item.with_text(|text| table.insert_with(text, || Member::new(text))),
        }
    }

    /// Adds the first member that is no integer.
    fn insert_text_among_ints(&mut self, item: Item<'_>, limits: &Limits<'_>) -> bool {
        let Shape::Ints(set) = self.shape() else { return false };
        let longest =
            [set.first(), set.last()].into_iter().flatten().map(|number| Item::Int(number).text_length()).max();
        let longest = longest.unwrap_or(0).max(item.text_length());
        let length = set.iter().map(|number| Item::Int(number).packed_length()).sum::<usize>() + item.packed_length();
        let is_packed = (set.len() as u64) < limits.entries && longest as u64 <= limits.value;
        if is_packed && Listpack::new().fits(length) {
            *self = Self::of_listpack(Listpack::of(&set.iter().map(Item::Int).collect::<Vec<_>>()));
        } else {
            self.become_table(limits);
        }
        self.insert(item, limits)
    }

    /// Removes a member; whether it was one.
    pub fn remove(&mut self, item: &Item<'_>) -> bool {
        match self.shape_mut() {
            ShapeMut::Ints(set) => item.to_i64().is_some_and(|number| set.remove(number)),
            ShapeMut::Packed(list) => {
                let Some(at) = item.with_text(|text| list.find(text, 1)) else { return false };
                list.remove(at);
                true
            }
            ShapeMut::Table(table) => item.with_text(|text| table.remove(text)).is_some(),
        }
    }

    /// A member picked at random, each as likely as any other.
    #[must_use]
    pub fn random(&self, random: &mut Random) -> Option<Item<'_>> {
        match self.shape() {
            Shape::Ints(set) => {
                (!set.is_empty()).then(|| random.below(set.len())).and_then(|at| set.get(at)).map(Item::Int)
            }
            Shape::Packed(list) => {
                let count = list.len();
                let index = (count > 0).then(|| random.below(count))?;
                list.seek(isize::try_from(index).ok()?).map(|at| list.get(at))
            }
            Shape::Table(table) => table.random(random).map(Item::Bytes),
        }
    }

    /// Makes it a hash table, if it is none, when `count` members are about to be added and would not fit what it is.
    pub fn make_room(&mut self, count: usize, limits: &Limits<'_>) {
        let max = match self.shape() {
            Shape::Ints(_) => limits.integers,
            Shape::Packed(_) => limits.entries,
            Shape::Table(_) => return,
        };
        if count as u64 > max {
            self.become_table(limits);
        }
    }

    /// Makes it an intset, if it is a listpack of integers and not of too many.
    fn make_ints(&mut self, limits: &Limits<'_>) {
        let Shape::Packed(list) = self.shape() else { return };
        if list.len() as u64 > limits.integers {
            return;
        }
        let mut ints = Intset::new();
        for item in list.iter() {
            let Some(number) = item.to_i64() else { return };
            ints.insert(number);
        }
        *self = Self::of_ints(ints);
    }

    /// A snapshot begins with it; it is a table.
    pub(crate) fn owe(&mut self, record: Record) {
        if let ShapeMut::Table(table) = self.shape_mut() {
            table.owe(record);
        }
    }

    /// Its table, if a snapshot has begun with it and not come to its end.
    pub(crate) fn owing(&mut self) -> Option<&mut dyn Large> {
        match self.shape_mut() {
            ShapeMut::Table(table) => table.owing(),
            ShapeMut::Ints(_) | ShapeMut::Packed(_) => None,
        }
    }

    fn become_table(&mut self, limits: &Limits<'_>) {
        let mut table = Dict::new(limits.hasher);
        for item in self.iter() {
            item.with_text(|text| table.insert_with(text, || Member::new(text)));
        }
        *self = Self::of_table(table);
    }
}

#[cfg(test)]
mod tests;
