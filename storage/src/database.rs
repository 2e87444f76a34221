//! One shard's part of one numbered database: the tables of its slots, and which keys expire when.
//!
//! The expiry index holds `(when, hash)` of every key that has an expiry, in order of time, so that what is due is found by
//! time and not by sampling. Keys without an expiry have no part in it. The memory of entries, tables and index is counted
//! here, in the allocator's size classes, so that `maxmemory` and `MEMORY USAGE` need no allocator (and give the same figure
//! in the simulator).

use crate::collection::Collection;
use crate::entry::{Encoding, Entry, EntryRef};
use crate::key_hash::{Key, slot_of};
use crate::key_sizes::{Bin, KeySizes, bin_of};
use crate::occupied::Occupied;
use crate::prefetch::{CACHE_LINE, prefetch};
use crate::rdb::value::Loaded;
use crate::slot_table::{Place, SlotTable};
use crate::snapshot::Cut;
use crate::string_value::Value;
use std::collections::BTreeSet;
use std::ops::Range;

/// Slots are counted in groups, so that the n-th key of a database is found without walking every slot.
pub(crate) const GROUP: usize = 128;
/// What an expiry costs in the index: two words, and the share of a B-tree's slack.
const INDEX_BYTES: usize = 24;

/// The bytes that the allocator really spends on a request of `size`: four classes to each doubling.
#[must_use]
pub fn size_class(size: usize) -> usize {
    match size {
        0..=8 => 8,
        9..=128 => size.next_multiple_of(16),
        _ => size.next_multiple_of(size.next_power_of_two() / 8),
    }
}

/// Where an entry is, until something changes.
#[derive(Clone, Copy)]
pub(crate) struct Spot {
    slot: usize,
    place: Place,
}

/// One shard's part of a database.
#[derive(Default)]
pub struct Database {
    /// The slots of the shard; `tables` is empty until the first key comes.
    slots: Range<usize>,
    pub(crate) tables: Vec<SlotTable>,
    pub(crate) groups: Vec<usize>,
    pub(crate) len: usize,
    pub(crate) expiries: BTreeSet<(i64, u64)>,
    /// When the next field of a hash expires, and the hash of its key.
    pub(crate) field_expiries: BTreeSet<(i64, u64)>,
    /// Keys with an expiry by slot and by group of slots, so that one of them is picked at random; empty until the first comes.
    expiring: Vec<u32>,
    expiring_groups: Vec<usize>,
    /// How many values are how large; none until the first key comes.
    sizes: Option<Box<KeySizes>>,
    pub(crate) bytes: usize,
    /// The mark of entries that a snapshot does not want: all of them while there is none.
    pub(crate) parity: bool,
    /// The snapshot that is being made.
    pub(crate) cut: Option<Box<Cut>>,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Database({:?}, {} keys)", self.slots, self.len)
    }
}

impl Database {
    /// An empty database over `slots`.
    #[must_use]
    pub fn new(slots: Range<usize>) -> Self {
        Self { slots, ..Self::default() }
    }

    /// Number of keys, expired ones that are still there included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of keys that have an expiry.
    #[must_use]
    pub fn expiring(&self) -> usize {
        self.expiries.len()
    }

    /// How many values are how large.
    #[must_use]
    pub fn sizes(&self) -> Option<&KeySizes> {
        self.sizes.as_deref()
    }

    /// A value has changed its size, has come or has gone.
    #[inline]
    pub(crate) fn recount(&mut self, before: Option<Bin>, after: Option<Bin>) {
        if before != after {
            let sizes = self.sizes.get_or_insert_default();
            sizes.subtract(before);
            sizes.add(after);
        }
    }

    /// Bytes of entries, tables and index.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let slots = self.tables.len() * size_of::<SlotTable>() + self.expiring.len() * size_of::<u32>();
        let sizes = self.sizes.as_ref().map_or(0, |_| size_of::<KeySizes>());
        self.bytes + sizes + (self.expiries.len() + self.field_expiries.len()) * INDEX_BYTES + slots
    }

    /// The slots that the shard owns.
    #[must_use]
    pub fn slots(&self) -> Range<usize> {
        self.slots.clone()
    }

    fn table(&self, hash: u64) -> Option<&SlotTable> {
        self.tables.get(slot_of(hash).wrapping_sub(self.slots.start))
    }

    /// Where the key's entry is, expired or not. To be used before anything else changes.
    #[inline(always)]
    pub(crate) fn find(&self, key: &Key<'_>) -> Option<Spot> {
        let slot = slot_of(key.hash).wrapping_sub(self.slots.start);
        let place = self.tables.get(slot)?.find(key.hash, key.bytes)?;
        Some(Spot { slot, place })
    }

    /// The entry at a spot just found.
    #[inline]
    pub(crate) fn view_at(&self, spot: Spot) -> EntryRef<'_> {
        self.tables[spot.slot].view(spot.place)
    }

    /// The entry at a spot just found, to be changed.
    #[inline]
    pub(crate) fn occupied_at(&mut self, spot: Spot, hash: u64) -> Occupied<'_> {
        Occupied { database: self, slot: spot.slot, place: spot.place, hash }
    }

    /// The key's entry, expired or not.
    #[must_use]
    #[inline]
    pub fn get(&self, key: &Key<'_>) -> Option<EntryRef<'_>> {
        self.find(key).map(|spot| self.view_at(spot))
    }

    /// The key's entry, expired or not, to be changed.
    #[inline]
    pub fn occupied(&mut self, key: &Key<'_>) -> Option<Occupied<'_>> {
        self.find(key).map(|spot| self.occupied_at(spot, key.hash))
    }

    /// Adds a key that is not there.
    pub fn insert(
        &mut self,
        key: &Key<'_>,
        value: Value<'_>,
        encoding: Encoding,
        expires_at: Option<i64>,
        access: u32,
    ) {
        self.insert_entry(key, Entry::new(key.bytes, value, encoding, expires_at, access));
    }

    /// Adds a key that is not there, with a value from a file.
    pub fn insert_loaded(&mut self, key: &Key<'_>, value: Loaded<'_>, expires_at: Option<i64>, access: u32) {
        self.insert_entry(key, value.into_entry(key.bytes, expires_at, access));
    }

    /// Makes room for so many keys, if there are none yet: tables that are as large as they will be are not made anew as they fill.
    pub fn reserve(&mut self, keys: usize) {
        let each = keys / self.slots.len().max(1);
        if each == 0 || !self.tables.is_empty() {
            return;
        }
        self.tables.resize_with(self.slots.len(), || SlotTable::with_room(each));
        self.groups.resize(self.slots.len().div_ceil(GROUP), 0);
        self.bytes += self.tables.iter().map(SlotTable::bytes).sum::<usize>();
    }

    /// Adds an entry whose key is not there.
    pub(crate) fn insert_entry(&mut self, key: &Key<'_>, mut entry: Entry) {
        entry.set_parity(self.parity);
        if self.tables.is_empty() {
            self.tables.resize_with(self.slots.len(), SlotTable::default);
            self.groups.resize(self.slots.len().div_ceil(GROUP), 0);
        }
        let slot = key.slot() - self.slots.start;
        let expires_at = entry.view().expires_at();
        self.bytes += entry.view().memory();
        self.recount(None, bin_of(entry.view()));
        if let Some(at) = entry.view().collection().and_then(|collection| collection.next_field_expiry()) {
            self.field_expiries.insert((at, key.hash));
        }
        let table = &mut self.tables[slot];
        let before = table.bytes();
        table.insert(key.hash, entry);
        self.bytes = self.bytes + table.bytes() - before;
        self.len += 1;
        self.groups[slot / GROUP] += 1;
        if let Some(at) = expires_at {
            self.expiries.insert((at, key.hash));
            self.count_expiring(slot, true);
        }
    }

    /// Counts a key with an expiry more or less in a slot of the shard.
    pub(crate) fn count_expiring(&mut self, slot: usize, more: bool) {
        if self.expiring.is_empty() {
            self.expiring.resize(self.slots.len(), 0);
            self.expiring_groups.resize(self.slots.len().div_ceil(GROUP), 0);
        }
        let (count, group) = (&mut self.expiring[slot], &mut self.expiring_groups[slot / GROUP]);
        if more {
            *count += 1;
            *group += 1;
        } else {
            *count -= 1;
            *group -= 1;
        }
    }

    /// Removes every key whose expiry has passed, at most `limit` of them, calling `removed` for each. Returns whether more are
    /// due.
    pub fn expire_due(&mut self, now_ms: i64, limit: usize, mut removed: impl FnMut(&[u8])) -> bool {
        for _ in 0..limit {
            let Some((at, hash)) = self.expiries.first().copied() else { return false };
            if at > now_ms {
                return false;
            }
            let due = self.keys_due(at, hash);
            self.expiries.remove(&(at, hash));
            for key in due {
                if let Some(entry) = self.occupied(&Key { bytes: &key, hash }) {
                    entry.remove();
                    removed(&key);
                }
            }
        }
        self.expiries.first().is_some_and(|(at, _)| *at <= now_ms)
    }

    /// The keys behind one item of the index: one, unless two keys share hash and expiry.
    fn keys_due(&self, at: i64, hash: u64) -> Vec<Vec<u8>> {
        let mut keys = Vec::new();
        if let Some(table) = self.table(hash) {
            table.scan_hash(hash, |entry| {
                if entry.expires_at() == Some(at) {
                    keys.push(entry.key().to_vec());
                }
            });
        }
        keys
    }

    /// Whether any hash has a field whose time has come.
    #[must_use]
    #[inline]
    pub fn has_field_due(&self, now_ms: i64) -> bool {
        self.field_expiries.first().is_some_and(|(at, _)| *at <= now_ms)
    }

    /// The key of a hash with a field whose time has come.
    #[must_use]
    pub fn field_due(&self, now_ms: i64) -> Option<Vec<u8>> {
        let (at, hash) = *self.field_expiries.first()?;
        if at > now_ms {
            return None;
        }
        let mut found = None;
        self.table(hash)?.scan_hash(hash, |entry| {
            if entry.collection().and_then(|collection| collection.next_field_expiry()) == Some(at) {
                found = Some(entry.key().to_vec());
            }
        });
        found
    }

    /// Number of hashes that have expiring fields.
    #[must_use]
    pub fn hashes_expiring(&self) -> usize {
        self.field_expiries.len()
    }

    /// The key that expires first, and when.
    #[must_use]
    pub fn next_to_expire(&self) -> Option<(i64, Vec<u8>)> {
        self.expiries.iter().find_map(|(at, hash)| self.keys_due(*at, *hash).pop().map(|key| (*at, key)))
    }

    /// The expiries of at most `limit` keys, soonest first.
    pub fn soonest_expiries(&self, limit: usize) -> impl Iterator<Item = i64> + '_ {
        self.expiries.iter().take(limit).map(|(at, _)| *at)
    }

    /// The key that has `rank` others before it, in no particular order; every key has one rank below `len`.
    #[must_use]
    pub fn nth(&self, mut rank: usize) -> Option<EntryRef<'_>> {
        for (group, count) in self.groups.iter().enumerate() {
            if rank >= *count {
                rank -= count;
                continue;
            }
            for table in &self.tables[group * GROUP..((group + 1) * GROUP).min(self.tables.len())] {
                if rank < table.len() {
                    return table.nth(rank);
                }
                rank -= table.len();
            }
        }
        None
    }

    /// The key with an expiry that has `rank` others with one before it, in no particular order; every such key has one rank
    /// below [`Database::expiring`].
    #[must_use]
    pub fn nth_expiring(&self, mut rank: usize) -> Option<EntryRef<'_>> {
        for (group, count) in self.expiring_groups.iter().enumerate() {
            if rank >= *count {
                rank -= count;
                continue;
            }
            let slots = group * GROUP..((group + 1) * GROUP).min(self.tables.len());
            for (table, count) in self.tables[slots.clone()].iter().zip(&self.expiring[slots]) {
                let count = *count as usize;
                if rank < count {
                    return table.nth_where(rank, |entry| entry.expires_at().is_some());
                }
                rank -= count;
            }
        }
        None
    }

    /// Every entry.
    pub fn for_each(&self, mut with: impl FnMut(EntryRef<'_>)) {
        for table in self.tables.iter().filter(|table| table.len() > 0) {
            table.for_each(&mut with);
        }
    }

    /// Every entry of a slot that the shard owns.
    pub fn for_each_in(&self, slot: usize, with: impl FnMut(EntryRef<'_>)) {
        if let Some(table) = self.tables.get(slot - self.slots.start) {
            table.for_each(with);
        }
    }

    /// One step of a scan of `slot` (which the shard owns): the next position in it, 0 at its end.
    pub fn scan(&self, slot: usize, position: u64, with: impl FnMut(EntryRef<'_>)) -> u64 {
        self.tables.get(slot - self.slots.start).map_or(0, |table| table.scan(position, with))
    }

    /// The first slot from `slot` on that has a key.
    #[must_use]
    pub fn next_occupied(&self, slot: usize) -> Option<usize> {
        let mut index = slot.saturating_sub(self.slots.start);
        while index < self.tables.len() {
            if index.is_multiple_of(GROUP) && self.groups[index / GROUP] == 0 {
                index += GROUP;
            } else if self.tables[index].len() == 0 {
                index += 1;
            } else {
                return Some(index + self.slots.start);
            }
        }
        None
    }

    /// Begins to load the bucket that the key is in: the first pass over a batch.
    #[inline]
    pub fn prefetch_bucket(&self, hash: u64) {
        if let Some(table) = self.table(hash) {
            prefetch(table.bucket_address(hash));
        }
    }

    /// Begins to load the key's entry, by all that its bucket tells: the second pass.
    #[inline]
    pub fn prefetch_entry(&self, hash: u64) {
        if let Some(table) = self.table(hash) {
            let entry = table.likely_entry(hash);
            prefetch(entry);
            prefetch(entry.wrapping_add(CACHE_LINE));
        }
    }
}

/// What was taken out of a database and is freed off the path.
#[derive(Debug)]
pub enum Discarded {
    /// All of a database.
    Database(Database),
    /// A large collection.
    Collection(Collection),
}

impl Discarded {
    /// How many keys or collections it is.
    #[must_use]
    pub fn objects(&self) -> usize {
        match self {
            Self::Database(database) => database.len(),
            Self::Collection(_) => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_hash::{KeyHasher, SLOTS};

    #[test]
    fn size_classes_are_the_allocators() {
        for (size, class) in [(1, 8), (9, 16), (92, 96), (128, 128), (129, 160), (161, 192), (257, 320), (4097, 5120)] {
            assert_eq!(size_class(size), class, "{size}");
        }
    }

    #[test]
    fn what_is_due_goes_in_order_of_time_and_within_the_limit() {
        let hasher = KeyHasher::new(1);
        let mut database = Database::new(0..SLOTS);
        for at in 0..100i64 {
            let name = format!("k{at}");
            database.insert(&hasher.key(name.as_bytes()), Value::Int(at), Encoding::Int, Some(at), 0);
        }
        let mut gone = Vec::new();
        assert!(database.expire_due(49, 30, |key| gone.push(key.to_vec())));
        assert!(!database.expire_due(49, 30, |key| gone.push(key.to_vec())));
        let expected: Vec<Vec<u8>> = (0..50).map(|at| format!("k{at}").into_bytes()).collect();
        assert_eq!(gone, expected);
        assert_eq!((database.len(), database.expiring()), (50, 50));
    }

    /// C21: the memory counter returns to nothing, whatever was done in between.
    #[test]
    fn c21_memory_is_counted_exactly() {
        let hasher = KeyHasher::new(2);
        let mut database = Database::new(0..SLOTS);
        for round in 0..2000usize {
            let name = format!("k{}", round % 300);
            let key = hasher.key(name.as_bytes());
            if let Some(mut entry) = database.occupied(&key) {
                match round % 6 {
                    0 => entry.set_expiry(Some(round as i64)),
                    1 => entry.set_value(Value::Bytes(&vec![1; round % 700]), Encoding::Raw),
                    2 => entry.set_expiry(None),
                    3 => entry.replace(Value::Int(3), Encoding::Int, (round % 2 == 0).then_some(7)),
                    4 => assert!(entry.store(Value::Bytes(&[b'v'; 9]), Encoding::Embstr, None, 1).is_none()),
                    _ => entry.remove(),
                }
            } else {
                database.insert(&key, Value::Bytes(b"v"), Encoding::Embstr, None, 0);
            }
            let (mut entries, mut tables) = (0, 0);
            database.for_each(|entry| entries += size_class(entry.size()));
            for table in &database.tables {
                tables += table.bytes();
            }
            assert_eq!(database.bytes, entries + tables);
        }
        let mut keys = Vec::new();
        database.for_each(|entry| keys.push(entry.key().to_vec()));
        assert_eq!(keys.len(), database.len());
        for rank in 0..keys.len() {
            assert!(database.nth(rank).is_some());
        }
        for key in keys {
            database.occupied(&hasher.key(&key)).expect("it was listed").remove();
        }
        assert_eq!((database.bytes, database.expiring(), database.len()), (0, 0, 0));
    }
}
