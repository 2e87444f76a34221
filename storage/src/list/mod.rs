//! Lists.

use crate::listpack::Listpack;

/// A value that holds lists.
#[derive(Clone, Debug, Default)]
pub struct List(Listpack);

impl List {
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

    /// Adds an element at the end.
    pub fn push_back(&mut self, element: &[u8]) {
        self.0.push_back(element);
    }

    /// Removes the first element; whether there was one.
    pub fn pop_front(&mut self) -> bool {
        let first = self.0.first();
        first.map(|at| self.0.remove(at)).is_some()
    }

    /// How many allocations there are, about.
    #[must_use]
    pub fn free_effort(&self) -> usize {
        1
    }
}
