//! Memory: how much is in use, and what happens when it is too much.
//!
//! `maxmemory` is looked at before every command, so the answer must cost next to nothing. Asking the allocator takes
//! microseconds; its answer is therefore kept for [`READING_KEPT_NS`], and what the keyspace has gained or given back since is
//! added, from the exact count that every shard keeps and publishes when it has been written:
//!
//! ```text
//! used  =  (allocated - keyspace - buffers of the log) at the last reading  +  keyspace now
//! ```
//!
//! So a write is counted at once and to the byte, and all the rest (buffers of clients, queues) within milliseconds. What waits for
//! the log is left out, as in Redis: evicting makes it longer. Where there is no allocator to ask (the simulator), the
//! keyspace's count is all there is, and the same seed evicts the same keys.

mod eviction;
mod limits;

pub(crate) use eviction::{Room, keep_room, make_room};
pub(crate) use limits::{check_all, check_buffers, check_output, counts_all, forget, output_limit};

use crate::node::Node;
use simurgh_kernel::time;
use simurgh_storage::Shard;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};

/// For how long a reading of the allocator serves.
const READING_KEPT_NS: u64 = 2_000_000;

/// What the allocator says of itself.
#[derive(Clone, Copy, Debug, Default)]
#[expect(missing_docs, reason = "the names that INFO and MEMORY STATS give")]
pub struct AllocatorFigures {
    pub allocated: usize,
    pub active: usize,
    pub resident: usize,
    pub muzzy: usize,
}

/// The allocator of the process.
#[derive(Clone, Copy, Debug)]
pub struct Allocator {
    /// Bytes that the process has allocated and not freed.
    pub allocated: fn() -> usize,
    /// Its figures.
    pub figures: fn() -> AllocatorFigures,
    /// Everything it can say, for a person.
    pub report: fn() -> String,
    /// Gives unused memory back to the system.
    pub purge: fn(),
}

impl Node {
    /// Bytes in use: by the allocator's count where there is one, else by the keyspace's.
    #[must_use]
    pub fn used_memory(&self) -> usize {
        self.allocated_bytes().unwrap_or_else(|| self.keyspace_bytes())
    }

    /// Bytes that the keyspace counts.
    #[must_use]
    pub fn keyspace_bytes(&self) -> usize {
        let mut bytes = 0;
        for index in 0..self.layout.shards {
            if let Some(mut held) = self.shards.try_hold(1 << index) {
                bytes += held.get(index).bytes();
            }
        }
        bytes
    }
}

/// The estimate of the memory in use, and the state of eviction.
#[derive(Debug)]
pub struct Gauge {
    /// Bytes of each shard as it last published them.
    published: Box<[AtomicUsize]>,
    /// Their sum.
    keyspace: AtomicUsize,
    /// What is not keyspace, at the last reading.
    rest: AtomicI64,
    /// When that was.
    read_at_ns: AtomicU64,
    /// Every shard has published since there is a limit.
    is_primed: AtomicBool,
    /// The shard that gives up a key next.
    next_shard: AtomicUsize,
    /// Passes of eviction so far: each draws from a generator of its own.
    passes: AtomicU64,
    /// Memory of all clients.
    pub(crate) clients: AtomicI64,
    /// The most memory that was seen in use.
    peak: AtomicUsize,
    /// In use when the node began.
    pub startup: AtomicUsize,
}

impl Gauge {
    /// For so many shards.
    #[must_use]
    pub fn new(shards: usize) -> Self {
        Self {
            published: (0..shards).map(|_| AtomicUsize::new(0)).collect(),
            keyspace: AtomicUsize::new(0),
            rest: AtomicI64::new(0),
            read_at_ns: AtomicU64::new(0),
            is_primed: AtomicBool::new(false),
            next_shard: AtomicUsize::new(0),
            passes: AtomicU64::new(0),
            clients: AtomicI64::new(0),
            peak: AtomicUsize::new(0),
            startup: AtomicUsize::new(0),
        }
    }

    /// A shard that is held says how large it is.
    #[inline]
    pub(crate) fn publish(&self, shard: &Shard) {
        let bytes = shard.bytes();
        // Only its holder writes here.
        let published = &self.published[shard.index()];
        let before = published.load(Ordering::Relaxed);
        if bytes != before {
            published.store(bytes, Ordering::Relaxed);
            // The sum may wrap on its way, never at rest.
            self.keyspace.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
        }
    }

    /// The estimate.
    #[inline]
    pub(crate) fn used(&self) -> usize {
        let keyspace = self.keyspace.load(Ordering::Relaxed) as i64;
        usize::try_from(self.rest.load(Ordering::Relaxed) + keyspace).unwrap_or(0)
    }

    /// The most memory that was seen in use.
    #[must_use]
    pub fn peak(&self, used: usize) -> usize {
        self.peak.fetch_max(used, Ordering::Relaxed).max(used)
    }

    /// There is no limit any more: shards need not publish.
    pub(crate) fn rest(&self) {
        self.is_primed.store(false, Ordering::Relaxed);
    }

    /// Whether more than `max` is in use, as far as can be told within `READING_KEPT_NS`.
    #[inline]
    pub(crate) fn is_over(&self, node: &Node, max: usize) -> bool {
        let now = time::monotonic_ns();
        if now.wrapping_sub(self.read_at_ns.load(Ordering::Relaxed)) > READING_KEPT_NS || !self.is_primed() {
            self.read(node, now);
        }
        self.used() > max
    }

    fn is_primed(&self) -> bool {
        self.is_primed.load(Ordering::Relaxed)
    }

    /// Asks the allocator; first of all every shard, where it is the first time.
    #[cold]
    fn read(&self, node: &Node, now: u64) {
        if !self.is_primed() {
            let mut all = true;
            for index in 0..node.layout.shards {
                match node.shards.try_hold(1 << index) {
                    Some(mut held) => self.publish(held.get(index)),
                    None => all = false,
                }
            }
            self.is_primed.store(all, Ordering::Relaxed);
        }
        self.read_at_ns.store(now, Ordering::Relaxed);
        if let Some(allocated) = node.allocated_bytes() {
            let counted = self.keyspace.load(Ordering::Relaxed) + node.log.memory();
            self.rest.store(allocated as i64 - counted as i64, Ordering::Relaxed);
            self.peak.fetch_max(allocated, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simurgh_storage::{Encoding, KeyHasher, Layout, Value};

    /// C21: the sum is that of its parts, whatever is published in whatever order.
    #[test]
    fn c21_the_keyspace_is_the_sum_of_what_shards_publish() {
        let layout = Layout { shards: 4, databases: 2, hasher: KeyHasher::new(1) };
        let mut shards = Shard::all(&layout);
        let gauge = Gauge::new(4);
        for round in 0..400usize {
            let name = format!("k{}", round % 50);
            let key = layout.hasher.key(name.as_bytes());
            let shard = &mut shards[layout.shard_of(&key)];
            let database = shard.database_mut(round % 2);
            match database.occupied(&key) {
                Some(entry) => entry.remove(),
                None => {
                    let value = vec![7; round * 13 % 5000];
                    database.insert(&key, Value::Bytes(&value), Encoding::Raw, None, 0);
                }
            }
            gauge.publish(shard);
            if round > 200 {
                let total: usize = shards.iter().map(Shard::bytes).sum();
                assert!(gauge.used() <= total, "round {round}: an empty shard need not have published");
            }
        }
        shards.iter().for_each(|shard| gauge.publish(shard));
        assert_eq!(gauge.used(), shards.iter().map(Shard::bytes).sum::<usize>());
    }
}
