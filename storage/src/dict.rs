//! A hash table for large collections, which never stalls while it grows.
//!
//! Extendible hashing (Fagin, Nievergelt, Pippenger and Strong, TODS 1979): the top bits of an element's hash lead through a
//! directory to one of many small tables. A table that has grown too large is split in two by the next bit of the hash, and no
//! other element moves; when a table is split that only one place of the directory leads to, the directory is doubled, which
//! copies four bytes for some thousand elements.
//!
//! ```text
//! directory, by the top 2 bits of the hash:   [ 00 ][ 01 ][ 10 ][ 11 ]
//!                                                \   /      |     |
//! tables:                                       depth 1  depth 2  depth 2
//! ```
//!
//! A scan's cursor is the top 32 bits of the hash at which it stands, and below them a cursor into the table there: tables are
//! visited in the order of the hash, so one that is split is either behind the cursor in whole, ahead of it in whole, or is the
//! one it stands in; then the first half is resumed where it was (both halves keep the low bits of the hash, by which the inner
//! cursor counts) and the second is visited from its beginning. Tables are not merged again but when nothing is left at all, and
//! then there is nothing that a scan could miss.

use crate::dict_owed::OwedElements;
use crate::key_hash::KeyHasher;
use crate::random::Random;
use crate::slot_table::{Elements, SlotTable};
use crate::snapshot::{Owed, Saved};

/// A table with more elements than this (as many as 128 buckets hold) is split, in one or two hundred microseconds: each element's
/// key is read again for its hash.
const TABLE_MAX: usize = 1280;
/// Bits of the hash that a directory may use at most: those that a cursor keeps.
const DEPTH_MAX: u32 = 32;
/// The directory stays below this many places for each table. Hashes that agree in so many bits that this matters could only be
/// chosen by somebody who knows the seed; their table grows instead.
const PLACES_PER_TABLE: usize = 32;
/// Bits of a cursor that belong to the table.
const POSITION_BITS: u32 = 16;
/// How many empty tables one step of a scan passes over at most.
const EMPTY_MAX: usize = 1024;
/// A random pick among at most this many elements counts them.
const COUNTED_MAX: usize = 128;
/// How often a pick among more tries a bucket before it counts too.
const TRIES: usize = 64;

pub(crate) struct Part<E: Saved> {
    pub table: SlotTable<E>,
    /// How many bits of the hash all its elements share.
    depth: u32,
}

impl<E: Saved> Default for Part<E> {
    fn default() -> Self {
        Self { table: SlotTable::default(), depth: 0 }
    }
}

/// A hash table of elements found by their keys.
pub struct Dict<E: Saved + 'static> {
    hasher: KeyHasher,
    pub(crate) parts: Vec<Part<E>>,
    /// Which part the top `depth` bits of a hash lead to.
    directory: Vec<u32>,
    depth: u32,
    len: usize,
    /// Bytes of elements and buckets.
    bytes: usize,
    /// What a snapshot has not seen.
    pub(crate) owed: Owed<OwedElements>,
}

impl<E: Saved> std::fmt::Debug for Dict<E> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Dict").field("len", &self.len).field("parts", &self.parts.len()).finish_non_exhaustive()
    }
}

impl<E: Saved> Dict<E> {
    /// An empty table, for keys hashed by `hasher`.
    #[must_use]
    pub fn new(hasher: &KeyHasher) -> Self {
        let (parts, directory) = (vec![Part::default()], vec![0]);
        Self { hasher: hasher.clone(), parts, directory, depth: 0, len: 0, bytes: 0, owed: Owed::default() }
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of elements, tables and directory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.bytes
            + self.parts.capacity() * size_of::<Part<E>>()
            + self.directory.capacity() * size_of::<u32>()
    }

    /// The hash of a key, for [`Dict::get_hashed`] of several tables.
    #[must_use]
    pub fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash(key)
    }

    /// The part that a hash leads to.
    #[inline]
    pub(crate) fn index(&self, hash: u64) -> usize {
        // Two shifts, because one by all 64 bits is not defined.
        self.directory[(hash >> 1 >> (63 - self.depth)) as usize] as usize
    }

    /// An element with this hash, of this part, is about to come, go or change.
    #[inline]
    fn hand_over(&mut self, index: usize, hash: u64) {
        if let Some(owed) = &mut *self.owed {
            owed.hand_over(index, &self.parts[index].table, hash);
        }
    }

    /// The element with this key.
    #[must_use]
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<E::View<'_>> {
        self.get_hashed(self.hash(key), key)
    }

    /// The element with this key, whose [`Dict::hash`] the caller knows.
    #[must_use]
    #[inline]
    pub fn get_hashed(&self, hash: u64, key: &[u8]) -> Option<E::View<'_>> {
        let table = &self.parts[self.index(hash)].table;
        table.find(hash, key).map(|place| table.view(place))
    }

    /// Calls `with` for each element whose key may have this hash: for all that do, and now and then for another.
    pub fn with_hash(&self, hash: u64, with: impl FnMut(E::View<'_>)) {
        self.parts[self.index(hash)].table.scan_hash(hash, with);
    }

    /// Whether an element has this key.
    #[must_use]
    #[inline]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.get(key).is_some()
    }

    /// Changes the element with this key, if there is one. Its key has to stay.
    pub fn change<R>(&mut self, key: &[u8], with: impl FnOnce(&mut E) -> R) -> Option<R> {
        let hash = self.hash(key);
        let index = self.index(hash);
        let place = self.parts[index].table.find(hash, key)?;
        self.hand_over(index, hash);
        let table = &mut self.parts[index].table;
        let before = E::bytes(table.view(place));
        let result = table.change(place, with);
        self.bytes = self.bytes + E::bytes(table.view(place)) - before;
        Some(result)
    }

    /// Adds an element, or puts it in the place of the one with its key, which is returned.
    pub fn insert(&mut self, element: E) -> Option<E> {
        let key = E::key(element.view_of());
        let hash = self.hash(key);
        let index = self.index(hash);
        self.hand_over(index, hash);
        let table = &mut self.parts[index].table;
        self.bytes += E::bytes(element.view_of());
        if let Some(place) = table.find(hash, key) {
            let old = table.change(place, |old| std::mem::replace(old, element));
            self.bytes -= E::bytes(old.view_of());
            return Some(old);
        }
        self.add(index, hash, element);
        None
    }

    /// Adds an element that `make` makes, if there is none with its key. Returns whether there was none.
    pub fn insert_with(&mut self, key: &[u8], make: impl FnOnce() -> E) -> bool {
        let hash = self.hash(key);
        let index = self.index(hash);
        if self.parts[index].table.find(hash, key).is_some() {
            return false;
        }
        self.hand_over(index, hash);
        let element = make();
        debug_assert!(E::key(element.view_of()) == key);
        self.bytes += E::bytes(element.view_of());
        self.add(index, hash, element);
        true
    }

    /// Adds an element whose bytes are counted already.
    fn add(&mut self, index: usize, hash: u64, element: E) {
        let part = &mut self.parts[index];
        let before = part.table.bytes();
        part.table.insert(hash, element);
        self.bytes = self.bytes + part.table.bytes() - before;
        self.len += 1;
        if part.table.len() > TABLE_MAX {
            self.split(index, hash);
        }
    }

    /// Splits the part at `index`, which `hash` leads to, by the next bit of the hash.
    fn split(&mut self, index: usize, hash: u64) {
        let depth = self.parts[index].depth;
        if depth == self.depth {
            let places = self.directory.len() * 2;
            if depth == DEPTH_MAX || places > self.parts.len() * PLACES_PER_TABLE {
                return;
            }
            self.directory = self.directory.iter().flat_map(|index| [*index, *index]).collect();
            self.depth += 1;
        }
        let mut old = std::mem::take(&mut self.parts[index].table);
        self.bytes -= old.bytes();
        let room = old.len() / 2;
        let (mut low, mut high) = (SlotTable::with_room(room), SlotTable::with_room(room));
        old.drain(|element| {
            let hash = self.hasher.hash(E::key(element.view_of()));
            let half = if hash << depth >> 63 == 0 { &mut low } else { &mut high };
            half.insert(hash, element);
        });
        self.bytes += low.bytes() + high.bytes();
        // The places of the old part, by the bits that all its elements share; the second half of them leads to the new part.
        let places = 1 << (self.depth - depth);
        let first = ((hash >> 1 >> (63 - self.depth)) as usize) & !(places - 1);
        let added = u32::try_from(self.parts.len()).expect("fewer tables than places");
        self.directory[first + places / 2..first + places].fill(added);
        self.parts[index] = Part { table: low, depth: depth + 1 };
        self.parts.push(Part { table: high, depth: depth + 1 });
        if let Some(owed) = &mut *self.owed {
            owed.split(index);
        }
    }

    /// Takes out the element with this key.
    pub fn remove(&mut self, key: &[u8]) -> Option<E> {
        let hash = self.hash(key);
        let index = self.index(hash);
        let place = self.parts[index].table.find(hash, key)?;
        self.hand_over(index, hash);
        let table = &mut self.parts[index].table;
        let before = table.bytes();
        let element = table.remove(place);
        self.bytes = self.bytes + table.bytes() - before - E::bytes(element.view_of());
        self.len -= 1;
        if self.len == 0 {
            self.clear();
        }
        Some(element)
    }

    /// Gives tables and directory back when every element has gone.
    fn clear(&mut self) {
        let mut owed = std::mem::take(&mut self.owed);
        if let Some(owed) = &mut *owed {
            owed.clear();
        }
        *self = self.emptied();
        self.owed = owed;
    }

    /// An empty table for keys hashed in the same way.
    #[must_use]
    pub fn emptied(&self) -> Self {
        Self::new(&self.hasher)
    }

    /// Removes some elements, a few thousand at most, and returns how many: none when none is left. This is for freeing a large
    /// collection in steps.
    pub fn shed(&mut self) -> usize {
        drop(self.rescue());
        let Some(part) = self.parts.iter_mut().rev().find(|part| part.table.len() > 0) else { return 0 };
        let table = std::mem::take(&mut part.table);
        self.bytes -= table.bytes() + table.iter().map(E::bytes).sum::<usize>();
        self.len -= table.len();
        if self.len == 0 {
            self.clear();
        }
        table.len()
    }

    /// The elements, in no particular order (but the same for the same seed and history).
    pub fn iter(&self) -> Iter<'_, E> {
        Iter { parts: self.parts.iter(), elements: None, left: self.len }
    }

    /// One step of a scan: calls `with` for some elements and returns the next cursor, 0 at the end; the first is 0 too. What is
    /// there from the first call to the last is returned at least once. Any cursor will do, and all are below 2^48.
    pub fn scan(&self, cursor: u64, mut with: impl FnMut(E::View<'_>)) -> u64 {
        // Bits above the forty-eight are none of ours.
        let mut prefix = (cursor >> POSITION_BITS) as u32;
        let mut position = cursor & ((1 << POSITION_BITS) - 1);
        for _ in 0..EMPTY_MAX {
            let part = &self.parts[self.index(u64::from(prefix) << 32)];
            let next = part.table.scan(position, &mut with);
            if next != 0 {
                return u64::from(prefix) << POSITION_BITS | next;
            }
            let Some(following) = part.following(prefix) else { return 0 };
            (prefix, position) = (following, 0);
            if part.table.len() > 0 {
                break;
            }
        }
        u64::from(prefix) << POSITION_BITS
    }

    /// An element picked at random, each as likely as any other.
    ///
    /// A random hash leads to a bucket, and the more elements are there the more often one of them is taken, up to a bucket of
    /// four times the average; a table that is mostly empty is counted through instead.
    #[must_use]
    pub fn random(&self, random: &mut Random) -> Option<E::View<'_>> {
        for _ in 0..if self.len > COUNTED_MAX { TRIES } else { 0 } {
            let hash = random.next_u64();
            let part = &self.parts[self.index(hash)];
            let count = part.table.count_at(hash as usize);
            // How many such buckets would make up the whole space of hashes.
            let buckets = part.table.bucket_count() << part.depth;
            let drawn = random.below(4 * self.len.max(1)) / buckets.max(1);
            if drawn < count {
                return part.table.nth_at(hash as usize, random.below(count));
            }
        }
        (self.len > 0).then(|| random.below(self.len)).and_then(|rank| self.nth(rank))
    }

    /// The element that has `rank` others before it in the order of [`Dict::iter`].
    #[must_use]
    pub fn nth(&self, mut rank: usize) -> Option<E::View<'_>> {
        for part in &self.parts {
            if rank < part.table.len() {
                return part.table.nth(rank);
            }
            rank -= part.table.len();
        }
        None
    }
}

impl<E: Saved + Clone> Clone for Dict<E> {
    /// Copies elements and directory; buckets are filled anew.
    fn clone(&self) -> Self {
        let mut bytes = 0;
        let mut copied = |part: &Part<E>| {
            let mut table = SlotTable::with_room(part.table.len());
            part.table.for_each_owned(|element| {
                bytes += E::bytes(element.view_of());
                table.insert(self.hasher.hash(E::key(element.view_of())), element.clone());
            });
            bytes += table.bytes();
            Part { table, depth: part.depth }
        };
        let parts = self.parts.iter().map(&mut copied).collect();
        let (hasher, directory) = (self.hasher.clone(), self.directory.clone());
        Self { hasher, parts, directory, depth: self.depth, len: self.len, bytes, owed: Owed::default() }
    }
}

impl<E: Saved> Part<E> {
    /// Where the part behind this one begins, which `prefix` lies in: the top 32 bits of the hash.
    fn following(&self, prefix: u32) -> Option<u32> {
        let width = 1u64 << (32 - self.depth);
        u32::try_from((u64::from(prefix) & !(width - 1)) + width).ok()
    }
}

/// The elements of a [`Dict`].
pub struct Iter<'a, E: Saved> {
    parts: std::slice::Iter<'a, Part<E>>,
    elements: Option<Elements<'a, E>>,
    left: usize,
}

impl<'a, E: Saved> Iterator for Iter<'a, E> {
    type Item = E::View<'a>;

    fn next(&mut self) -> Option<E::View<'a>> {
        loop {
            if let Some(element) = self.elements.as_mut().and_then(Iterator::next) {
                self.left -= 1;
                return Some(element);
            }
            self.elements = Some(self.parts.next()?.table.iter());
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<E: Saved> ExactSizeIterator for Iter<'_, E> {}

#[cfg(test)]
#[path = "dict_tests.rs"]
mod tests;
