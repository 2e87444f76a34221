//! Hashing of keys: one keyed 64-bit hash per key, and what each of its bits is for.
//!
//! ```text
//! 63        50 49      42 41            16 15             0
//! [ slot (14) ][ tag (8) ][    unused     ][ bucket (16)   ]
//! ```
//!
//! The seed is drawn from the operating system at start (from the run's seed in the simulator), so that nobody outside can
//! choose keys that collide (C22). Outside cluster mode the slot comes from the hash too: one hash tag cannot make a hot slot.

use foldhash::SharedSeed;
use foldhash::quality::SeedableRandomState;
use std::hash::BuildHasher;

/// How many slots the keyspace has, as in Redis Cluster.
pub const SLOTS: usize = 16384;

/// Bits of the slot number.
const SLOT_BITS: u32 = 14;

/// A key with its hash, computed once per request.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// The key's bytes.
    pub bytes: &'a [u8],
    /// Its keyed hash.
    pub hash: u64,
}

impl Key<'_> {
    /// The slot that the key belongs to.
    #[must_use]
    pub fn slot(&self) -> usize {
        slot_of(self.hash)
    }
}

/// The slot that a hash picks.
#[must_use]
pub fn slot_of(hash: u64) -> usize {
    (hash >> (64 - SLOT_BITS)) as usize
}

/// The eight bits that a bucket keeps to tell its entries apart without touching them.
#[must_use]
pub(crate) fn tag_of(hash: u64) -> u8 {
    (hash >> 42) as u8
}

/// The process's keyed hash function.
#[derive(Clone)]
pub struct KeyHasher(SeedableRandomState);

impl std::fmt::Debug for KeyHasher {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("KeyHasher(..)")
    }
}

impl KeyHasher {
    /// A hash function that only those who know `seed` can predict.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // The shared part lives as long as the process; one small allocation for each node that is started.
        let shared: &'static SharedSeed = Box::leak(Box::new(SharedSeed::from_u64(seed.rotate_left(32) ^ 0x9e37_79b9)));
        Self(SeedableRandomState::with_seed(seed, shared))
    }

    /// The hash of a key's bytes.
    #[must_use]
    #[inline]
    pub fn hash(&self, bytes: &[u8]) -> u64 {
        use std::hash::Hasher as _;
        let mut hasher = self.0.build_hasher();
        hasher.write(bytes);
        hasher.finish()
    }

    /// A key with its hash.
    #[must_use]
    #[inline]
    pub fn key<'a>(&self, bytes: &'a [u8]) -> Key<'a> {
        Key { bytes, hash: self.hash(bytes) }
    }
}
