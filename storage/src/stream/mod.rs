//! Streams.

use crate::listpack::Listpack;

/// A value that holds streams.
#[derive(Clone, Debug, Default)]
pub struct Stream(Listpack);

impl Stream {
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
        "stream"
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
