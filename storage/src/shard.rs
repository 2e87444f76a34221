//! A shard: the part of the keyspace that one actor owns, over all databases.
//!
//! A shard owns a contiguous range of slots. Whoever holds some shards lends them to a command as [`Shards`]; a command that
//! names keys of several shards finds them all held, so it is atomic without a coordinator.

use crate::blocking::Waiter;
use crate::database::Database;
use crate::eviction::Pool;
use crate::key_hash::{Key, KeyHasher, SLOTS};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How slots are dealt out to shards.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Number of shards.
    pub shards: usize,
    /// Number of databases.
    pub databases: usize,
    /// The keyed hash of this process.
    pub hasher: KeyHasher,
}

impl Layout {
    /// The shard that owns a slot.
    #[must_use]
    #[inline]
    pub fn shard_of_slot(&self, slot: usize) -> usize {
        slot * self.shards / SLOTS
    }

    /// The shard that owns a key.
    #[must_use]
    #[inline]
    pub fn shard_of(&self, key: &Key<'_>) -> usize {
        self.shard_of_slot(key.slot())
    }

    /// The slots of a shard.
    #[must_use]
    pub fn slots_of(&self, shard: usize) -> Range<usize> {
        (shard * SLOTS).div_ceil(self.shards)..((shard + 1) * SLOTS).div_ceil(self.shards)
    }
}

/// Set when a key that a client watches has changed.
#[derive(Clone, Debug, Default)]
pub struct WatchFlag(Arc<AtomicBool>);

impl WatchFlag {
    /// Whether a watched key has changed.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Counters that `INFO` adds up over the shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardStats {
    /// Reads that found their key.
    pub hits: u64,
    /// Reads that did not.
    pub misses: u64,
    /// Keys removed because their time had come.
    pub expired: u64,
    /// Fields of hashes removed because their time had come.
    pub expired_fields: u64,
    /// Keys removed to make room.
    pub evicted: u64,
}

/// A watched key: its hash, and those who watch it.
#[derive(Debug)]
struct Watched {
    hash: u64,
    flags: Vec<WatchFlag>,
}

impl Watched {
    fn tell(&self) {
        self.flags.iter().for_each(WatchFlag::set);
    }
}

/// One shard.
#[derive(Debug)]
pub struct Shard {
    index: usize,
    databases: Vec<Database>,
    /// What was flushed before a snapshot had seen it.
    pub(crate) detached: Vec<Database>,
    watched: BTreeMap<(usize, Vec<u8>), Watched>,
    /// Commands that wait for a key, in the order in which they came.
    pub(crate) waiting: BTreeMap<(usize, Vec<u8>), VecDeque<Arc<Waiter>>>,
    /// The keys that are the first to go when memory is short.
    pub(crate) eviction_pool: Pool,
    /// What `INFO` reads.
    pub stats: ShardStats,
    /// Position in the log of the last record that changed this shard: what a read that saw it must wait for.
    pub log_position: u64,
}

impl Shard {
    /// An empty shard.
    #[must_use]
    pub fn new(index: usize, layout: &Layout) -> Self {
        let databases = (0..layout.databases).map(|_| Database::new(layout.slots_of(index))).collect();
        Self {
            index,
            databases,
            detached: Vec::new(),
            watched: BTreeMap::new(),
            waiting: BTreeMap::new(),
            eviction_pool: Pool::default(),
            stats: ShardStats::default(),
            log_position: 0,
        }
    }

    /// All shards of a layout.
    #[must_use]
    pub fn all(layout: &Layout) -> Vec<Self> {
        (0..layout.shards).map(|index| Self::new(index, layout)).collect()
    }

    /// The shard's number.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Number of databases.
    #[must_use]
    pub fn databases(&self) -> usize {
        self.databases.len()
    }

    /// Its part of a database.
    #[must_use]
    #[inline]
    pub fn database(&self, database: usize) -> &Database {
        &self.databases[database]
    }

    /// Its part of a database, to be changed.
    #[inline]
    pub fn database_mut(&mut self, database: usize) -> &mut Database {
        &mut self.databases[database]
    }

    /// Bytes of all its databases.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.databases.iter().map(Database::bytes).sum()
    }

    /// Number of keys in all its databases.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.databases.iter().map(Database::len).sum()
    }

    /// Exchanges two databases.
    pub fn swap_databases(&mut self, one: usize, other: usize) {
        self.tell_watchers_of(one, Some(other));
        self.tell_watchers_of(other, Some(one));
        self.databases.swap(one, other);
    }

    /// Takes a database's content away, leaving it empty. Dropping what comes back is the caller's, off the path if it is large;
    /// what a snapshot has not seen stays with the shard until then.
    pub fn flush_database(&mut self, database: usize) -> Option<Database> {
        let taken = self.take_database(database);
        self.detach(taken)
    }

    /// Puts another content in place of a database's, which comes back as from a flush.
    pub fn replace_database(&mut self, database: usize, content: Database) -> Option<Database> {
        let taken = self.take_database(database);
        self.databases[database] = content;
        self.detach(taken)
    }

    /// Takes a database out of a shard that nobody else sees.
    pub fn take_database(&mut self, database: usize) -> Database {
        self.tell_watchers_of(database, None);
        let slots = self.databases[database].slots();
        std::mem::replace(&mut self.databases[database], Database::new(slots))
    }

    /// A database's content is about to be replaced: whoever watches a key that is there before or afterwards sees a change.
    fn tell_watchers_of(&self, database: usize, replacement: Option<usize>) {
        let from = (database, Vec::new());
        for ((_, bytes), watched) in self.watched.range(from..).take_while(|((at, _), _)| *at == database) {
            let key = Key { bytes, hash: watched.hash };
            let is_in = |database: usize| self.databases[database].get(&key).is_some();
            if is_in(database) || replacement.is_some_and(is_in) {
                watched.tell();
            }
        }
    }

    /// The keys watched in a database.
    #[must_use]
    pub fn watched_in(&self, database: usize) -> Vec<Vec<u8>> {
        let from = (database, Vec::new());
        self.watched.range(from..).take_while(|((at, _), _)| *at == database).map(|((_, key), _)| key.clone()).collect()
    }

    /// Watches a key for a client.
    pub fn watch(&mut self, database: usize, key: &Key<'_>, flag: &WatchFlag) {
        let place = (database, key.bytes.to_vec());
        let watched = self.watched.entry(place).or_insert(Watched { hash: key.hash, flags: Vec::new() });
        watched.flags.push(flag.clone());
    }

    /// Ends a client's watch of a key.
    pub fn unwatch(&mut self, database: usize, key: &[u8], flag: &WatchFlag) {
        let place = (database, key.to_vec());
        if let Some(watched) = self.watched.get_mut(&place) {
            watched.flags.retain(|other| !other.is_same(flag));
            if watched.flags.is_empty() {
                self.watched.remove(&place);
            }
        }
    }

    /// Whether anybody watches a key or waits for one.
    #[inline]
    pub(crate) fn is_observed(&self) -> bool {
        !self.watched.is_empty() || !self.waiting.is_empty()
    }

    /// Tells those who watch a key that it has changed.
    pub fn key_changed(&mut self, database: usize, key: &[u8]) {
        if !self.watched.is_empty()
            && let Some(watched) = self.watched.get(&(database, key.to_vec()))
        {
            watched.tell();
        }
    }

    /// Number of watched keys.
    #[must_use]
    pub fn watched_keys(&self) -> usize {
        self.watched.len()
    }
}

/// The shards that a command may use: those whose keys it names, or all.
pub trait Shards {
    /// Shard `index`, which must be among those held.
    fn shard(&mut self, index: usize) -> &mut Shard;

    /// Those that are held, one bit each.
    fn held(&self) -> u64 {
        u64::MAX
    }

    /// Those of them that belong to jobs which wait.
    fn borrowed(&self) -> u64 {
        0
    }

    /// Takes further ones, if nobody who could move holds them; whether they are held now. `may_borrow`: also those of jobs that wait
    /// for what is held already.
    fn try_take(&mut self, _wanted: u64, _may_borrow: bool) -> bool {
        false
    }
}

impl Shards for Vec<Shard> {
    fn shard(&mut self, index: usize) -> &mut Shard {
        &mut self[index]
    }
}
