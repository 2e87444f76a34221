//! What one client is subscribed to. It lies beside what else others may know of a client, so that the registry can be cleaned
//! however a connection ends; only the client itself changes it, and the numbers are there without the lock.

use super::{Kind, Name};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a subscription costs beside its name, here and in the registry, about.
const SUBSCRIPTION_BYTES: usize = 3 * size_of::<Name>();

/// The names of one kind.
#[derive(Debug, Default)]
struct Names {
    names: Mutex<BTreeSet<Name>>,
    count: AtomicUsize,
    /// Bytes of the names.
    bytes: AtomicUsize,
}

impl Names {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<Name>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client's subscriptions.
#[derive(Debug, Default)]
pub struct Subscriptions {
    channels: Names,
    patterns: Names,
    shard_channels: Names,
}

impl Subscriptions {
    fn of(&self, kind: Kind) -> &Names {
        match kind {
            Kind::Channel => &self.channels,
            Kind::Pattern => &self.patterns,
            Kind::ShardChannel => &self.shard_channels,
        }
    }

    /// How many there are of a kind.
    #[must_use]
    pub fn count(&self, kind: Kind) -> usize {
        self.of(kind).count.load(Relaxed)
    }

    /// Whether there are any.
    #[must_use]
    pub fn any(&self) -> bool {
        [Kind::Channel, Kind::Pattern, Kind::ShardChannel].iter().any(|kind| self.count(*kind) > 0)
    }

    /// The number that confirmations tell: that of channels and patterns together, or that of shard channels.
    #[must_use]
    pub fn told(&self, kind: Kind) -> usize {
        match kind {
            Kind::Channel | Kind::Pattern => self.count(Kind::Channel) + self.count(Kind::Pattern),
            Kind::ShardChannel => self.count(Kind::ShardChannel),
        }
    }

    /// Memory that they take, in bytes, about. Subscribers of a channel share its name; each of them counts it.
    pub(crate) fn memory(&self) -> usize {
        let kinds = [&self.channels, &self.patterns, &self.shard_channels];
        kinds.iter().map(|kind| kind.count.load(Relaxed) * SUBSCRIPTION_BYTES + kind.bytes.load(Relaxed)).sum()
    }

    /// Whether the client is subscribed to it.
    pub(crate) fn contains(&self, kind: Kind, name: &[u8]) -> bool {
        self.of(kind).lock().contains(name)
    }

    /// The names, in order.
    pub(crate) fn names(&self, kind: Kind) -> Vec<Name> {
        self.of(kind).lock().iter().cloned().collect()
    }

    pub(super) fn insert(&self, kind: Kind, name: Name) {
        let mut names = self.of(kind).lock();
        let length = name.len();
        if names.insert(name) {
            self.of(kind).bytes.fetch_add(length, Relaxed);
        }
        self.of(kind).count.store(names.len(), Relaxed);
    }

    pub(super) fn remove(&self, kind: Kind, name: &[u8]) -> bool {
        let mut names = self.of(kind).lock();
        let is_removed = names.remove(name);
        if is_removed {
            self.of(kind).bytes.fetch_sub(name.len(), Relaxed);
        }
        self.of(kind).count.store(names.len(), Relaxed);
        is_removed
    }

    pub(super) fn take(&self, kind: Kind) -> BTreeSet<Name> {
        let mut names = self.of(kind).lock();
        self.of(kind).count.store(0, Relaxed);
        self.of(kind).bytes.store(0, Relaxed);
        std::mem::take(&mut *names)
    }
}
