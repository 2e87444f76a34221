//! A consumer group: up to where it was given entries, which of them it has yet to acknowledge, and who holds those.
//!
//! What is pending is kept twice, by id for the group and by id for each consumer, as clients ask for both; a consumer is known
//! there by a number, so that a long name costs once.

use super::id::StreamId;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// A consumer's number in its group. It is never given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConsumerId(u32);

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Who holds it.
    pub consumer: ConsumerId,
    /// When it was last delivered, in milliseconds of Unix time.
    pub delivered_ms: i64,
    /// How often it was delivered.
    pub deliveries: u64,
}

/// One who reads for a group.
#[derive(Clone, Debug)]
pub struct Consumer {
    /// The name.
    pub name: Box<[u8]>,
    /// When it last tried to do something.
    pub seen_ms: i64,
    /// When it last was given an entry.
    pub active_ms: Option<i64>,
    pending: BTreeSet<StreamId>,
}

impl Consumer {
    /// The entries that it holds.
    #[must_use]
    pub fn pending(&self) -> &BTreeSet<StreamId> {
        &self.pending
    }
}

/// What an entry costs that is pending: places in two B-trees.
const PENDING_BYTES: usize = (2 * size_of::<StreamId>() + size_of::<Pending>()) * 3 / 2;
/// What a consumer costs beside its name.
const CONSUMER_BYTES: usize = (size_of::<Consumer>() + 2 * size_of::<ConsumerId>() + size_of::<Box<[u8]>>()) * 3 / 2;

/// A consumer group.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The last entry that it was given.
    pub last_id: StreamId,
    /// How many entries it was given, those deleted counted too; not always known.
    pub entries_read: Option<u64>,
    pending: BTreeMap<StreamId, Pending>,
    consumers: BTreeMap<ConsumerId, Consumer>,
    names: BTreeMap<Box<[u8]>, ConsumerId>,
    names_length: usize,
    next: u32,
}

impl Group {
    /// A group that was given the entries up to `last_id`.
    #[must_use]
    pub fn new(last_id: StreamId, entries_read: Option<u64>) -> Self {
        Self { last_id, entries_read, ..Self::default() }
    }

    /// What the allocator spends on it, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.pending.len() * PENDING_BYTES
            + self.consumers.len() * CONSUMER_BYTES
            + self.names_length * 2
    }

    /// The entries that are pending, by id.
    #[must_use]
    pub fn pending(&self) -> &BTreeMap<StreamId, Pending> {
        &self.pending
    }

    /// The consumers, by name.
    pub fn consumers(&self) -> impl ExactSizeIterator<Item = &Consumer> {
        self.names.values().map(|id| self.consumer(*id))
    }

    /// The number of the consumer of this name.
    #[must_use]
    pub fn consumer_named(&self, name: &[u8]) -> Option<ConsumerId> {
        self.names.get(name).copied()
    }

    /// The consumer with this number, which must be one of the group's.
    #[must_use]
    pub fn consumer(&self, id: ConsumerId) -> &Consumer {
        self.consumers.get(&id).expect("a number is its consumer's for as long as that is there")
    }

    /// As [`Group::consumer`], to be changed.
    pub fn consumer_mut(&mut self, id: ConsumerId) -> &mut Consumer {
        self.consumers.get_mut(&id).expect("a number is its consumer's for as long as that is there")
    }

    /// Makes a consumer. `None` if there is one of this name.
    pub fn create_consumer(&mut self, name: &[u8], now_ms: i64) -> Option<ConsumerId> {
        if self.names.contains_key(name) {
            return None;
        }
        let id = ConsumerId(self.next);
        self.next = self.next.checked_add(1).expect("no group lives to see four billion consumers");
        let name: Box<[u8]> = name.into();
        self.names_length += name.len();
        self.names.insert(name.clone(), id);
        let consumer = Consumer { name, seen_ms: now_ms, active_ms: None, pending: BTreeSet::new() };
        self.consumers.insert(id, consumer);
        Some(id)
    }

    /// Removes a consumer with all that it holds. How many entries that was, if the consumer was there.
    pub fn remove_consumer(&mut self, name: &[u8]) -> Option<usize> {
        let id = self.names.remove(name)?;
        self.names_length -= name.len();
        let consumer = self.consumers.remove(&id)?;
        for entry in &consumer.pending {
            self.pending.remove(entry);
        }
        Some(consumer.pending.len())
    }

    /// Gives an entry to a consumer, whoever held it before.
    pub fn assign(&mut self, entry: StreamId, pending: Pending) {
        let before = self.pending.insert(entry, pending);
        if let Some(before) = before
            && before.consumer != pending.consumer
        {
            self.consumer_mut(before.consumer).pending.remove(&entry);
        }
        if before.is_none_or(|before| before.consumer != pending.consumer) {
            self.consumer_mut(pending.consumer).pending.insert(entry);
        }
    }

    /// The entry is pending no more. Whether it was.
    pub fn forget(&mut self, entry: StreamId) -> bool {
        let Some(pending) = self.pending.remove(&entry) else { return false };
        self.consumer_mut(pending.consumer).pending.remove(&entry);
        true
    }

    /// The entries in an interval that are pending, with who holds them.
    pub fn pending_in(&self, interval: RangeInclusive<StreamId>) -> impl Iterator<Item = (StreamId, Pending)> {
        // An interval that ends before it starts is no range to a B-tree.
        let interval = (!interval.is_empty()).then_some(interval);
        interval.into_iter().flat_map(|interval| self.pending.range(interval)).map(|(id, pending)| (*id, *pending))
    }

    /// The entries in an interval that one consumer holds.
    pub fn held_in(
        &self,
        consumer: ConsumerId,
        interval: RangeInclusive<StreamId>,
    ) -> impl Iterator<Item = (StreamId, Pending)> {
        let interval = (!interval.is_empty()).then_some(interval);
        let held = &self.consumer(consumer).pending;
        interval
            .into_iter()
            .flat_map(|interval| held.range(interval))
            .filter_map(|id| Some((*id, *self.pending.get(id)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(ms: u64) -> StreamId {
        StreamId::new(ms, 0)
    }

    #[test]
    fn what_is_pending_is_held_by_one_consumer() {
        let mut group = Group::new(StreamId::MIN, Some(0));
        let one = group.create_consumer(b"one", 5).unwrap();
        let other = group.create_consumer(b"other", 6).unwrap();
        assert_eq!(group.create_consumer(b"one", 7), None);
        for (entry, consumer) in [(1, one), (2, one), (3, other), (2, other)] {
            group.assign(id(entry), Pending { consumer, delivered_ms: 1, deliveries: 1 });
        }
        assert_eq!(group.consumer(one).pending().len(), 1);
        assert_eq!(group.held_in(other, id(0)..=id(9)).map(|(id, _)| id.ms).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(group.pending_in(id(9)..=id(0)).count(), 0);
        assert!(group.forget(id(3)) && !group.forget(id(3)));
        assert_eq!(group.remove_consumer(b"other"), Some(1));
        assert_eq!(group.remove_consumer(b"other"), None);
        assert_eq!(group.pending().keys().copied().collect::<Vec<_>>(), [id(1)]);
    }

    #[test]
    fn bytes_come_and_go() {
        let mut group = Group::default();
        let before = group.bytes();
        let consumer = group.create_consumer(b"name", 0).unwrap();
        group.assign(id(1), Pending { consumer, delivered_ms: 1, deliveries: 1 });
        assert!(group.bytes() > before + PENDING_BYTES);
        group.remove_consumer(b"name");
        assert_eq!(group.bytes(), before);
    }
}
