//! Sorted sets.

use crate::listpack::Listpack;

/// A value that holds sorted sets.
#[derive(Clone, Debug, Default)]
pub struct SortedSet(Listpack);

impl SortedSet {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of its blocks, in the allocator's size classes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// The name of the representation.
    #[must_use]
    pub fn encoding_name(&self) -> &'static str {
        "listpack"
    }

    /// Calls `with` for each element.
    pub fn for_each(&self, with: &mut dyn FnMut(&[&[u8]])) {
        for item in self.0.iter() {
            item.with_text(|text| with(&[text]));
        }
    }

    /// How many allocations there are, about.
    #[must_use]
    pub fn free_effort(&self) -> usize {
        1
    }
}
