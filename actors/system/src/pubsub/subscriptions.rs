//! What one client is subscribed to. It lies beside what else others may know of a client, so that the registry can be cleaned
//! however a connection ends; only the client itself changes it, and the numbers are there without the lock.

use super::{Kind, Name};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The names of one kind.
#[derive(Debug, Default)]
struct Names {
    names: Mutex<BTreeSet<Name>>,
    count: AtomicUsize,
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

    /// Memory that they take, in bytes, about; the names themselves are shared.
    pub(crate) fn memory(&self) -> usize {
        let count: usize =
            [Kind::Channel, Kind::Pattern, Kind::ShardChannel].iter().map(|kind| self.count(*kind)).sum();
        count * 3 * size_of::<Name>()
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
        names.insert(name);
        self.of(kind).count.store(names.len(), Relaxed);
    }

    pub(super) fn remove(&self, kind: Kind, name: &[u8]) -> bool {
        let mut names = self.of(kind).lock();
        let is_removed = names.remove(name);
        self.of(kind).count.store(names.len(), Relaxed);
        is_removed
    }

    pub(super) fn take(&self, kind: Kind) -> BTreeSet<Name> {
        let mut names = self.of(kind).lock();
        self.of(kind).count.store(0, Relaxed);
        std::mem::take(&mut *names)
    }
}
