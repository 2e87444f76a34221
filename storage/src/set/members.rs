//! The members of a set, one after the other, whatever its representation.

use super::Shape;
use crate::dict;
use crate::intset::Intset;
use crate::listpack::{self, Item};
use crate::member::Member;

/// The members of a [`super::Set`], as they lie.
pub struct Members<'a>(Walk<'a>);

enum Walk<'a> {
    Ints { set: &'a Intset, index: usize },
    Packed(listpack::Iter<'a>),
    Table(dict::Iter<'a, Member>),
}

impl<'a> Members<'a> {
    pub(super) fn new(shape: Shape<'a>) -> Self {
        Self(match shape {
            Shape::Ints(set) => Walk::Ints { set, index: 0 },
            Shape::Packed(list) => Walk::Packed(list.iter()),
            Shape::Table(table) => Walk::Table(table.iter()),
        })
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<Item<'a>> {
        match &mut self.0 {
            Walk::Ints { set, index } => {
                *index += 1;
                set.get(*index - 1).map(Item::Int)
            }
            Walk::Packed(items) => items.next(),
            Walk::Table(members) => members.next().map(Item::Bytes),
        }
    }
}
