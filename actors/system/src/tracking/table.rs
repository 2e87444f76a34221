//! The invalidation table: which clients may have which key in their caches.
//!
//! It lies in parts by the hash of the key, each behind a lock of its own that is held for one key at a time. It holds no more keys
//! than `tracking-table-max-keys`: who has one that must go is told that it has changed, which costs a cache a read and no more.

use simurgh_storage::KeyHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

const PARTS: usize = 64;

/// A key, and the numbers of the clients that have it.
pub(super) type Tracked = (Box<[u8]>, BTreeSet<u64>);

type Part = BTreeMap<Box<[u8]>, BTreeSet<u64>>;

#[derive(Debug)]
pub(super) struct Table {
    parts: Box<[Mutex<Part>]>,
    keys: AtomicUsize,
    items: AtomicUsize,
    /// The part that gives up a key next.
    next: AtomicUsize,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            parts: (0..PARTS).map(|_| Mutex::default()).collect(),
            keys: AtomicUsize::new(0),
            items: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
        }
    }
}

impl Table {
    fn lock(&self, part: usize) -> MutexGuard<'_, Part> {
        self.parts[part % PARTS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn keys(&self) -> usize {
        self.keys.load(Relaxed)
    }

    /// Keys, counted once for each client that has one.
    pub fn items(&self) -> usize {
        self.items.load(Relaxed)
    }

    /// A client has read a key.
    pub fn add(&self, hasher: &KeyHasher, key: &[u8], client: u64) {
        let mut part = self.lock(hasher.key(key).hash as usize);
        let is_added = match part.get_mut(key) {
            Some(clients) => clients.insert(client),
            None => {
                self.keys.fetch_add(1, Relaxed);
                part.insert(key.into(), BTreeSet::from([client]));
                true
            }
        };
        if is_added {
            self.items.fetch_add(1, Relaxed);
        }
    }

    /// A key has changed: who had it.
    pub fn take(&self, hasher: &KeyHasher, key: &[u8]) -> Option<BTreeSet<u64>> {
        if self.keys() == 0 {
            return None;
        }
        let clients = self.lock(hasher.key(key).hash as usize).remove(key)?;
        self.count_removed(&clients);
        Some(clients)
    }

    fn count_removed(&self, clients: &BTreeSet<u64>) {
        self.keys.fetch_sub(1, Relaxed);
        self.items.fetch_sub(clients.len(), Relaxed);
    }

    /// Takes a key out to make room: one behind `near`, which may be the one added last, and not that one if there is another.
    pub fn evict(&self, near: &[u8]) -> Option<Tracked> {
        let first = self.next.fetch_add(1, Relaxed);
        for part in first..first + PARTS {
            let mut part = self.lock(part);
            let behind = (Bound::Excluded(near), Bound::Unbounded);
            let key = part.range::<[u8], _>(behind).next().or_else(|| part.iter().next()).map(|(key, _)| key.clone());
            if let Some(tracked) = key.and_then(|key| part.remove_entry(&key)) {
                self.count_removed(&tracked.1);
                return Some(tracked);
            }
        }
        None
    }

    /// Forgets everything.
    pub fn clear(&self) {
        for part in 0..PARTS {
            let taken = std::mem::take(&mut *self.lock(part));
            taken.values().for_each(|clients| self.count_removed(clients));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_once_and_is_counted() {
        let (table, hasher) = (Table::default(), KeyHasher::new(1));
        for (key, client) in [("a", 1), ("a", 2), ("a", 1), ("b", 1)] {
            table.add(&hasher, key.as_bytes(), client);
        }
        assert_eq!((table.keys(), table.items()), (2, 3));
        assert_eq!(table.take(&hasher, b"a"), Some(BTreeSet::from([1, 2])));
        assert_eq!(table.take(&hasher, b"a"), None);
        assert_eq!((table.keys(), table.items()), (1, 1));
        table.clear();
        assert_eq!((table.keys(), table.items()), (0, 0));
    }

    #[test]
    fn every_key_can_be_made_to_go() {
        let (table, hasher) = (Table::default(), KeyHasher::new(1));
        for number in 0..200 {
            table.add(&hasher, format!("k{number}").as_bytes(), 7);
        }
        let mut gone = BTreeSet::new();
        while let Some((key, clients)) = table.evict(b"k50") {
            assert_eq!(clients, BTreeSet::from([7]));
            gone.insert(key);
        }
        assert_eq!((gone.len(), table.keys(), table.items()), (200, 0, 0));
    }
}
