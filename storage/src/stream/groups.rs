//! The consumer groups of a stream, by name.

use super::group::Group;
use super::id::StreamId;
use std::collections::BTreeMap;

/// The groups.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    by_name: BTreeMap<Box<[u8]>, Group>,
    /// What they take, kept up to date by all that changes one.
    bytes: usize,
    /// How many entries are pending in all of them.
    pending: usize,
}

impl Groups {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// What the allocator spends on them, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many entries are pending in all of them.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.pending
    }

    /// Each with its name, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &Group)> {
        self.by_name.iter().map(|(name, group)| (&**name, group))
    }

    /// The group of this name.
    #[must_use]
    pub fn get(&self, name: &[u8]) -> Option<&Group> {
        self.by_name.get(name)
    }

    /// Changes the group of this name, if it is there.
    pub fn edit<R>(&mut self, name: &[u8], change: impl FnOnce(&mut Group) -> R) -> Option<R> {
        let group = self.by_name.get_mut(name)?;
        let (bytes, pending) = (group.bytes(), group.pending().len());
        let result = change(group);
        self.bytes = self.bytes - bytes + group.bytes();
        self.pending = self.pending - pending + group.pending().len();
        Some(result)
    }

    /// Puts a group under a new name. Whether the name was free; if not, nothing has changed.
    pub fn insert(&mut self, name: &[u8], group: Group) -> bool {
        if self.by_name.contains_key(name) {
            return false;
        }
        self.bytes += group.bytes() + name.len();
        self.pending += group.pending().len();
        self.by_name.insert(name.into(), group);
        true
    }

    /// Removes a group. Whether it was there.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        let Some(group) = self.by_name.remove(name) else { return false };
        self.bytes -= group.bytes() + name.len();
        self.pending -= group.pending().len();
        true
    }

    /// Whether a group holds the entry or has yet to be given it.
    #[must_use]
    pub fn refer_to(&self, entry: StreamId) -> bool {
        self.by_name.values().any(|group| group.last_id < entry || group.pending().contains_key(&entry))
    }

    /// No group holds the entry any more. Whether one did.
    pub fn forget(&mut self, entry: StreamId) -> bool {
        let mut held = false;
        for group in self.by_name.values_mut() {
            let bytes = group.bytes();
            if group.forget(entry) {
                held = true;
                self.pending -= 1;
                self.bytes = self.bytes - bytes + group.bytes();
            }
        }
        held
    }
}
