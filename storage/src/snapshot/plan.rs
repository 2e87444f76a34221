//! What one snapshot is made by: what is written and how, how much memory it holds, and the large collections that the keyspace has
//! let go of before they were written.

use super::large::{Large, is_writing};
use super::{Format, Piece, Step};
use crate::access::AccessPolicy;
use crate::key_hash::KeyHasher;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A collection of at least so many bytes is seen in steps.
const LARGE_BYTES: usize = 64 << 10;

/// What one snapshot is made by, shared by all shards.
pub struct Plan {
    /// What is written.
    pub format: Format,
    /// How uses of keys are written, if they are: with the time of the cut.
    pub access: Option<(AccessPolicy, i64)>,
    /// Strings are compressed.
    pub compresses: bool,
    /// How keys are hashed.
    pub(super) hasher: KeyHasher,
    /// A collection of at least so many bytes is seen in steps.
    large_bytes: usize,
    is_cancelled: AtomicBool,
    handed: AtomicU64,
    early: AtomicU64,
    detached: AtomicU64,
    peak: AtomicU64,
    keys: AtomicU64,
    open: AtomicU64,
    moves: AtomicU64,
    orphans: Mutex<Vec<Orphan>>,
}

/// A large collection that belongs to nobody else any more.
struct Orphan {
    collection: Box<dyn Large>,
    /// What it counts for.
    bytes: usize,
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Plan").field("format", &self.format).field("open", &self.open()).finish_non_exhaustive()
    }
}

impl Plan {
    /// A plan for a snapshot that is about to begin.
    #[must_use]
    pub fn new(format: Format, access: Option<(AccessPolicy, i64)>, compresses: bool, hasher: &KeyHasher) -> Self {
        Self {
            format,
            access,
            compresses,
            hasher: hasher.clone(),
            large_bytes: LARGE_BYTES,
            is_cancelled: AtomicBool::new(false),
            handed: AtomicU64::new(0),
            early: AtomicU64::new(0),
            detached: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            keys: AtomicU64::new(0),
            open: AtomicU64::new(0),
            moves: AtomicU64::new(0),
            orphans: Mutex::default(),
        }
    }

    /// The same, with another size from which on a collection is seen in steps.
    #[must_use]
    pub fn with_large_bytes(self, large_bytes: usize) -> Self {
        Self { large_bytes, ..self }
    }

    /// The size from which on a collection is seen in steps.
    pub(super) fn large_bytes(&self) -> usize {
        self.large_bytes
    }

    /// Gives the snapshot up: nothing more is written, but entries are marked to the end.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Release);
    }

    /// Whether it was given up.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }

    /// Bytes that were handed over and not taken yet.
    #[must_use]
    pub fn handed_bytes(&self) -> u64 {
        self.whole_bytes() + self.early_bytes()
    }

    /// Of those, what whole keys take: it can be taken from any shard while no collection is being written.
    #[must_use]
    pub fn whole_bytes(&self) -> u64 {
        self.handed.load(Ordering::Relaxed)
    }

    /// Of those, what elements of large collections take: each can be taken only when its collection is written.
    #[must_use]
    pub fn early_bytes(&self) -> u64 {
        self.early.load(Ordering::Relaxed)
    }

    /// Bytes that the snapshot holds besides the keyspace now: what was handed over, and what was flushed or removed.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.handed_bytes() + self.detached.load(Ordering::Relaxed)
    }

    /// The most that it has held.
    #[must_use]
    pub fn peak_bytes(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Keys written so far.
    #[must_use]
    pub fn keys(&self) -> u64 {
        self.keys.load(Ordering::Relaxed)
    }

    /// Large collections that are begun and not seen to their end.
    #[must_use]
    pub fn open(&self) -> u64 {
        self.open.load(Ordering::Acquire)
    }

    pub(super) fn hand_over(&self, bytes: usize) {
        self.handed.fetch_add(bytes as u64, Ordering::Relaxed);
        self.note_peak();
    }

    pub(super) fn take(&self, bytes: usize) {
        self.handed.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn hand_over_early(&self, bytes: usize) {
        self.early.fetch_add(bytes as u64, Ordering::Relaxed);
        self.note_peak();
    }

    pub(super) fn take_early(&self, bytes: usize) {
        self.early.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn detach(&self, bytes: usize) {
        self.detached.fetch_add(bytes as u64, Ordering::Relaxed);
        self.note_peak();
    }

    pub(super) fn free(&self, bytes: usize) {
        self.detached.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    fn note_peak(&self) {
        self.peak.fetch_max(self.held_bytes(), Ordering::Relaxed);
    }

    pub(super) fn count(&self, keys: u64) {
        self.keys.fetch_add(keys, Ordering::Relaxed);
    }

    pub(super) fn begin_large(&self) {
        self.open.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn end_large(&self) {
        self.open.fetch_sub(1, Ordering::AcqRel);
    }

    /// How often a large collection that had been begun went to another key.
    pub(super) fn moves(&self) -> u64 {
        self.moves.load(Ordering::Acquire)
    }

    pub(super) fn note_move(&self) {
        self.moves.fetch_add(1, Ordering::AcqRel);
    }

    fn orphans(&self) -> MutexGuard<'_, Vec<Orphan>> {
        self.orphans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A large collection that is not written yet is about to be freed: it is kept until it is.
    pub(crate) fn adopt(&self, collection: Box<dyn Large>, bytes: usize) {
        self.detach(bytes);
        self.orphans().push(Orphan { collection, bytes });
    }

    /// Takes a step with what was removed from the keyspace, for which no shard is needed. Whether there was something to do.
    pub fn visit_orphans(&self, step: Step, piece: &mut Piece) -> bool {
        let found = {
            let mut orphans = self.orphans();
            let chosen = match piece.is_open() {
                true => orphans.iter().position(|orphan| is_writing(&*orphan.collection)),
                false => orphans.len().checked_sub(1),
            };
            chosen.map(|index| orphans.swap_remove(index))
        };
        let Some(mut orphan) = found else { return false };
        if orphan.collection.visit(step, piece) {
            self.free(orphan.bytes);
        } else {
            self.orphans().push(orphan);
        }
        true
    }
}
