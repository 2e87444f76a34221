//! Making room: removing keys when memory is short, by `maxmemory-policy`.
//!
//! The exact order of last use would cost every key two pointers. Instead, as Redis does
//! (<https://redis.io/docs/latest/develop/reference/eviction/>), a few keys are drawn at random and the worst of them goes, and
//! the best candidates met so far are kept in a small pool, so that a bad draw does not cost a key in use. What is kept is how
//! the key was when it was drawn: its rank is worked out anew each time, and a candidate that was used, changed or removed
//! since is dropped.
//!
//! Draws are uniform over all databases of a shard: of every key (`allkeys-*`) or of those with an expiry (`volatile-*`). Which
//! key expires soonest needs no draw: the index of expiries knows.

use crate::access::{AccessPolicy, idle_seconds};
use crate::database::Database;
use crate::effects::Effects;
use crate::entry::EntryRef;
use crate::key_hash::KeyHasher;
use crate::notify::Class;
use crate::random::Random;
use crate::shard::Shard;

/// Candidates kept from one eviction to the next.
const POOL: usize = 16;

/// `maxmemory-policy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EvictionPolicy {
    /// Nothing goes; commands that need memory are refused.
    #[default]
    NoEviction,
    /// Of all keys, the least recently used.
    AllkeysLru,
    /// Of all keys, the least frequently used.
    AllkeysLfu,
    /// Any key.
    AllkeysRandom,
    /// Of the keys with an expiry, the least recently used.
    VolatileLru,
    /// Of the keys with an expiry, the least frequently used.
    VolatileLfu,
    /// Any key with an expiry.
    VolatileRandom,
    /// The key that expires soonest.
    VolatileTtl,
}

impl EvictionPolicy {
    /// All of them, in the order in which Redis lists them.
    pub const ALL: [Self; 8] = [
        Self::VolatileLru,
        Self::VolatileLfu,
        Self::VolatileRandom,
        Self::VolatileTtl,
        Self::AllkeysLru,
        Self::AllkeysLfu,
        Self::AllkeysRandom,
        Self::NoEviction,
    ];

    /// The name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NoEviction => "noeviction",
            Self::AllkeysLru => "allkeys-lru",
            Self::AllkeysLfu => "allkeys-lfu",
            Self::AllkeysRandom => "allkeys-random",
            Self::VolatileLru => "volatile-lru",
            Self::VolatileLfu => "volatile-lfu",
            Self::VolatileRandom => "volatile-random",
            Self::VolatileTtl => "volatile-ttl",
        }
    }

    /// The policy of a name, letter case aside.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name().eq_ignore_ascii_case(name))
    }

    /// What the access field of entries holds under this policy.
    #[must_use]
    pub fn access(self, log_factor: u32, decay_minutes: u32) -> AccessPolicy {
        match self.order() {
            Order::Frequency => AccessPolicy::Lfu { log_factor, decay_minutes },
            Order::Idle | Order::Expiry | Order::None => AccessPolicy::Lru,
        }
    }

    /// Whether only keys with an expiry may go.
    #[must_use]
    pub fn is_volatile(self) -> bool {
        match self {
            Self::VolatileLru | Self::VolatileLfu | Self::VolatileRandom | Self::VolatileTtl => true,
            Self::NoEviction | Self::AllkeysLru | Self::AllkeysLfu | Self::AllkeysRandom => false,
        }
    }

    fn order(self) -> Order {
        match self {
            Self::AllkeysLru | Self::VolatileLru => Order::Idle,
            Self::AllkeysLfu | Self::VolatileLfu => Order::Frequency,
            Self::VolatileTtl => Order::Expiry,
            Self::AllkeysRandom | Self::VolatileRandom | Self::NoEviction => Order::None,
        }
    }
}

/// By what candidates are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Idle,
    Frequency,
    Expiry,
    None,
}

/// A key that may go, as it was when it was drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    database: usize,
    key: Vec<u8>,
    access: u32,
    expires_at: Option<i64>,
}

impl Candidate {
    fn new(database: usize, entry: EntryRef<'_>) -> Self {
        Self { database, key: entry.key().to_vec(), access: entry.access(), expires_at: entry.expires_at() }
    }
}

/// The best candidates met so far; each shard has its pool.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    policy: EvictionPolicy,
    candidates: Vec<Candidate>,
}

/// An eviction's terms.
#[derive(Debug)]
pub struct Eviction<'a> {
    /// `maxmemory-policy`.
    pub policy: EvictionPolicy,
    /// `maxmemory-samples`: keys drawn for each that goes.
    pub samples: usize,
    /// What the access field holds.
    pub access: AccessPolicy,
    /// The time, in milliseconds of Unix time.
    pub now_ms: i64,
    /// The hash of this process.
    pub hasher: &'a KeyHasher,
    /// `notify-keyspace-events`: the classes that somebody may hear of.
    pub events: Class,
}

impl Eviction<'_> {
    /// Removes one key of the shard, recording it and telling its watchers: the bytes it gave back, or `None` if no key may go.
    pub fn evict_one(&self, shard: &mut Shard, random: &mut Random, effects: &mut Effects) -> Option<usize> {
        let victim = match (self.policy, self.policy.order()) {
            (EvictionPolicy::NoEviction, _) => None,
            (_, Order::None) => self.draw(shard, random),
            (_, Order::Expiry) => soonest(shard),
            (_, Order::Idle | Order::Frequency) => self.choose(shard, random),
        }?;
        let key = self.hasher.key(&victim.key);
        let database = shard.database_mut(victim.database);
        let before = database.bytes();
        database.occupied(&key)?.remove();
        let freed = before.saturating_sub(database.bytes());
        shard.stats.evicted += 1;
        shard.key_changed(victim.database, &victim.key);
        effects.touch(&victim.key);
        effects.record(victim.database, &[b"DEL", &victim.key]);
        effects.tell(self.events, Class::EVICTED, "evicted", victim.database, &victim.key);
        Some(freed)
    }

    /// Draws some keys into the pool and takes its best one that is still as it was.
    fn choose(&self, shard: &mut Shard, random: &mut Random) -> Option<Candidate> {
        let mut pool = std::mem::take(&mut shard.eviction_pool);
        if pool.policy != self.policy {
            pool = Pool { policy: self.policy, candidates: Vec::new() };
        }
        self.fill(&mut pool, shard, random);
        let mut chosen = self.take_best(&mut pool, shard);
        if chosen.is_none() {
            // All were stale, and may have kept fresh ones out. What is drawn now is fresh.
            self.fill(&mut pool, shard, random);
            chosen = self.take_best(&mut pool, shard);
        }
        shard.eviction_pool = pool;
        chosen
    }

    /// Draws keys; each takes a free place in the pool, or that of the worst candidate if it is better.
    fn fill(&self, pool: &mut Pool, shard: &Shard, random: &mut Random) {
        for _ in 0..self.samples.max(1) {
            let Some(drawn) = self.draw(shard, random) else { return };
            pool.candidates.retain(|other| other.database != drawn.database || other.key != drawn.key);
            if pool.candidates.len() < POOL {
                pool.candidates.push(drawn);
            } else if let Some(worst) = pool.candidates.iter_mut().min_by_key(|candidate| self.rank(candidate))
                && self.rank(worst) < self.rank(&drawn)
            {
                *worst = drawn;
            }
        }
    }

    /// Takes candidates out of the pool, best first, until one is still as it was.
    fn take_best(&self, pool: &mut Pool, shard: &Shard) -> Option<Candidate> {
        while let Some((best, _)) = pool.candidates.iter().enumerate().max_by_key(|(_, candidate)| self.rank(candidate))
        {
            let candidate = pool.candidates.swap_remove(best);
            let entry = shard.database(candidate.database).get(&self.hasher.key(&candidate.key));
            if entry.is_some_and(|entry| Candidate::new(candidate.database, entry) == candidate) {
                return Some(candidate);
            }
        }
        None
    }

    /// How much a candidate deserves to go.
    fn rank(&self, candidate: &Candidate) -> u64 {
        match self.policy.order() {
            Order::Idle => u64::from(idle_seconds(candidate.access, self.now_ms)),
            Order::Frequency => u64::from(u32::MAX - self.access.frequency(candidate.access, self.now_ms)),
            Order::Expiry | Order::None => 0,
        }
    }

    /// A key drawn from all databases, each that may go as likely as any other.
    fn draw(&self, shard: &Shard, random: &mut Random) -> Option<Candidate> {
        let volatile = self.policy.is_volatile();
        let population = |database: &Database| if volatile { database.expiring() } else { database.len() };
        let total: usize = (0..shard.databases()).map(|database| population(shard.database(database))).sum();
        if total == 0 {
            return None;
        }
        let mut rank = random.below(total);
        for number in 0..shard.databases() {
            let database = shard.database(number);
            if rank < population(database) {
                let entry = if volatile { database.nth_expiring(rank) } else { database.nth(rank) };
                return entry.map(|entry| Candidate::new(number, entry));
            }
            rank -= population(database);
        }
        None
    }
}

/// The key of the shard that expires first.
fn soonest(shard: &Shard) -> Option<Candidate> {
    let first = |database: usize| shard.database(database).soonest_expiries(1).next().map(|at| (at, database));
    let (_, database) = (0..shard.databases()).filter_map(first).min()?;
    let (at, key) = shard.database(database).next_to_expire()?;
    Some(Candidate { database, key, access: 0, expires_at: Some(at) })
}

#[cfg(test)]
#[path = "eviction_tests.rs"]
mod tests;
