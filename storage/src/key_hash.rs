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

#[cfg(test)]
mod tests {
    use super::*;

    /// C22: a million keys that collide in the hash most used without a key (times 31 plus the next byte) spread over slots and
    /// buckets like any others, and elsewhere under another seed.
    #[test]
    fn c22_keys_that_collide_for_an_unkeyed_hash_spread_like_others() {
        const KEYS: usize = 1 << 20;
        let (hasher, other) = (KeyHasher::new(1), KeyHasher::new(2));
        let (mut slots, mut buckets, mut same) = (vec![0u32; SLOTS], vec![0u32; SLOTS], 0);
        let mut unkeyed = std::collections::BTreeSet::new();
        for number in 0..KEYS {
            let key: Vec<u8> = (0..20).flat_map(|bit| if number >> bit & 1 == 0 { *b"Aa" } else { *b"BB" }).collect();
            if number < 1000 {
                unkeyed.insert(key.iter().fold(0u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(*byte))));
            }
            let key = hasher.key(&key);
            slots[key.slot()] += 1;
            buckets[key.hash as usize % SLOTS] += 1;
            same += usize::from(slot_of(other.hash(key.bytes)) == key.slot());
        }
        assert_eq!(unkeyed.len(), 1, "they do collide");
        // 64 a place on average, deviating by 8: twice as many is out of reach, and so is none.
        for counts in [&slots, &buckets] {
            assert!(counts.iter().all(|count| (16..128).contains(count)), "{:?}", counts.iter().max());
        }
        assert!((16..128).contains(&same), "{same} keys keep their slot under another seed");
    }
}
