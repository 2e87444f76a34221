//! BCAST: clients that hear of every changed key with one of their prefixes, whether they have read it or not.
//!
//! Nothing is remembered between a change and its message. The keys that a batch has changed are gathered and told together when it
//! ends, in order and each once: one message for each prefix, the same for all its clients.

use crate::clients::ClientShared;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Clients = BTreeMap<u64, Arc<ClientShared>>;

#[derive(Debug, Default)]
pub(super) struct Prefixes {
    prefixes: Mutex<BTreeMap<Box<[u8]>, Clients>>,
    count: AtomicUsize,
}

/// Keys with a prefix, and who is to hear of them.
pub(super) struct Told<'a> {
    pub keys: &'a [Box<[u8]>],
    pub clients: Vec<Arc<ClientShared>>,
}

impl Prefixes {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Box<[u8]>, Clients>> {
        self.prefixes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn count(&self) -> usize {
        self.count.load(Relaxed)
    }

    pub fn add(&self, prefix: &[u8], client: &Arc<ClientShared>) {
        let mut prefixes = self.lock();
        if prefixes.entry(prefix.into()).or_default().insert(client.id, client.clone()).is_none() {
            client.tracking.add_prefix(prefix);
        }
        self.count.store(prefixes.len(), Relaxed);
    }

    /// A client broadcasts no longer.
    pub fn remove(&self, client: u64) {
        let mut prefixes = self.lock();
        prefixes.retain(|_, clients| {
            if let Some(client) = clients.remove(&client) {
                client.tracking.forget_prefixes();
            }
            !clients.is_empty()
        });
        self.count.store(prefixes.len(), Relaxed);
    }

    /// A client's prefixes, in order.
    pub fn of(&self, client: u64) -> Vec<Box<[u8]>> {
        let prefixes = self.lock();
        prefixes.iter().filter(|(_, clients)| clients.contains_key(&client)).map(|(prefix, _)| prefix.clone()).collect()
    }

    /// What is to be told of these keys, which are in order: for each prefix that any of them has.
    pub fn told<'a>(&self, keys: &'a [Box<[u8]>]) -> Vec<Told<'a>> {
        let mut told = Vec::new();
        for (prefix, clients) in &*self.lock() {
            let start = keys.partition_point(|key| key[..] < prefix[..]);
            let count = keys[start..].iter().take_while(|key| key.starts_with(prefix)).count();
            if count > 0 {
                told.push(Told { keys: &keys[start..start + count], clients: clients.values().cloned().collect() });
            }
        }
        told
    }
}

/// The first two that overlap: one is the beginning of the other.
pub(super) fn overlap<'a>(one: &'a [u8], others: impl IntoIterator<Item = &'a [u8]>) -> Option<&'a [u8]> {
    others.into_iter().find(|other| one.starts_with(other) || other.starts_with(one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use simurgh_kernel::net::{Address, PeerAddress};

    fn client(id: u64) -> Arc<ClientShared> {
        let address = |text: &str| Address::Tcp(text.parse().expect("an address"));
        let address = PeerAddress { remote: address("127.0.0.1:50000"), local: address("127.0.0.1:6379") };
        Arc::new(ClientShared::new(id, address, 0, 0))
    }

    #[test]
    fn keys_are_told_by_prefix() {
        let prefixes = Prefixes::default();
        for (prefix, id) in [("b", 1), ("b", 2), ("", 3), ("zz", 1), ("d", 1)] {
            prefixes.add(prefix.as_bytes(), &client(id));
        }
        let keys: Vec<Box<[u8]>> = ["a", "b", "ba", "c", "zz1"].map(|key| key.as_bytes().into()).into();
        let told = prefixes.told(&keys);
        let lengths: Vec<(usize, usize)> = told.iter().map(|told| (told.keys.len(), told.clients.len())).collect();
        assert_eq!(lengths, [(5, 1), (2, 2), (1, 1)]);
        assert_eq!(prefixes.of(1).len(), 3);
        prefixes.remove(1);
        assert_eq!((prefixes.count(), prefixes.of(1).len()), (2, 0));
    }

    #[test]
    fn overlapping_prefixes() {
        assert_eq!(overlap(b"foo", [&b"bar"[..], b"foobar"]), Some(&b"foobar"[..]));
        assert_eq!(overlap(b"foo", [&b"f"[..]]), Some(&b"f"[..]));
        assert_eq!(overlap(b"foo", [&b"fo0"[..]]), None);
        assert_eq!(overlap(b"", [&b"a"[..]]), Some(&b"a"[..]));
    }
}
