//! One member looked for in several sets: read as an integer once, hashed once.

use super::{Set, Shape};
use crate::listpack::Item;

/// A member, and what is known of it.
pub(super) struct Probe<'a> {
    /// As it came: as an integer from a packed set, as text from a table.
    item: Item<'a>,
    number: Option<Option<i64>>,
    hash: Option<u64>,
}

impl<'a> Probe<'a> {
    pub fn new(item: Item<'a>) -> Self {
        Self { item, number: None, hash: None }
    }

    pub fn is_in(&mut self, set: &Set) -> bool {
        match set.shape() {
            Shape::Ints(ints) => {
                let number = *self.number.get_or_insert_with(|| self.item.to_i64());
                number.is_some_and(|number| ints.contains(number))
            }
            Shape::Packed(list) => self.item.with_text(|text| list.find(text, 1)).is_some(),
            // All tables of a process have one hasher.
            Shape::Table(table) => self.item.with_text(|text| {
                let hash = *self.hash.get_or_insert_with(|| table.hash(text));
                table.get_hashed(hash, text).is_some()
            }),
        }
    }
}
