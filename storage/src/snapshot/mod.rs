//! Snapshots without fork: the keyspace as it was at one instant, written while it goes on changing.
//!
//! ```text
//! cut        every shard is held for an instant: each database turns its mark over, and so no entry has it any more
//! visit      an entry without the mark is written and gets it, a bounded number of entries at a time
//! hand over  whoever is about to change or remove an entry without the mark writes it first, into the database's buffer
//! end        no entry is without the mark, and every buffer has been taken
//! ```
//!
//! An entry that comes to be after the cut is born with the mark, so it is not part of the snapshot; one that is visited or handed
//! over twice cannot be. The mark is one bit (`entry.rs`), and nothing has to be reset between two snapshots. A snapshot that
//! is given up is visited to its end all the same, without writing anything.
//!
//! What is handed over lies in memory until the next visit: that, and what a flush would have freed, is all that a snapshot costs.
//! [`Plan::held_bytes`] counts it.

mod cut;
mod encode;
mod file;
#[cfg(test)]
mod tests;

pub(crate) use cut::Cut;
pub use encode::Format;
pub use file::{Front, Hint, SnapshotFile};

use crate::access::AccessPolicy;
use crate::database::Database;
use crate::shard::Shard;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What one snapshot is made by, shared by all shards.
#[derive(Debug)]
pub struct Plan {
    /// What is written.
    pub format: Format,
    /// How uses of keys are written, if they are: with the time of the cut.
    pub access: Option<(AccessPolicy, i64)>,
    /// Strings are compressed.
    pub compresses: bool,
    is_cancelled: AtomicBool,
    handed: AtomicU64,
    detached: AtomicU64,
    peak: AtomicU64,
    keys: AtomicU64,
}

impl Plan {
    /// A plan for a snapshot that is about to begin.
    #[must_use]
    pub fn new(format: Format, access: Option<(AccessPolicy, i64)>, compresses: bool) -> Self {
        Self {
            format,
            access,
            compresses,
            is_cancelled: AtomicBool::new(false),
            handed: AtomicU64::new(0),
            detached: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            keys: AtomicU64::new(0),
        }
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
        self.handed.load(Ordering::Relaxed)
    }

    /// Bytes that the snapshot holds besides the keyspace now: what was handed over, and what was flushed.
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

    fn hand_over(&self, bytes: usize) {
        self.handed.fetch_add(bytes as u64, Ordering::Relaxed);
        self.note_peak();
    }

    fn take(&self, bytes: usize) {
        self.handed.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    fn detach(&self, bytes: usize) {
        self.detached.fetch_add(bytes as u64, Ordering::Relaxed);
        self.note_peak();
    }

    fn free(&self, bytes: usize) {
        self.detached.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    fn note_peak(&self) {
        self.peak.fetch_max(self.held_bytes(), Ordering::Relaxed);
    }

    fn count(&self, keys: u64) {
        self.keys.fetch_add(keys, Ordering::Relaxed);
    }
}

/// What a visit writes to: the bytes, and the database that they have left chosen.
#[derive(Debug, Default)]
pub struct Piece {
    /// Bytes of the file, to be taken away when they have been written.
    pub bytes: Vec<u8>,
    database: Option<u32>,
}

impl Piece {
    fn choose(&mut self, format: Format, database: u32) {
        if self.database != Some(database) {
            encode::choose_database(&mut self.bytes, format, database);
            self.database = Some(database);
        }
    }
}

/// How much a visit does at most.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Bytes of entries, and bytes in the piece, from which it ends.
    pub bytes: usize,
    /// Entries that it looks at, about.
    pub entries: usize,
}

/// What a visit has left.
#[derive(Debug)]
pub enum Visited {
    /// There is more in this shard.
    Paused,
    /// A database that was flushed meanwhile has been seen to its end: it is to be freed. There may be more.
    Freed(Database),
    /// Everything that the shard had at the cut has been seen.
    Done,
}

impl Shard {
    /// The cut: what the shard holds now is part of the snapshot. All shards are held for this.
    ///
    /// # Panics
    /// While another is being made.
    pub fn begin_snapshot(&mut self, plan: &Arc<Plan>) {
        assert!(!self.is_in_snapshot(), "one snapshot at a time");
        for number in 0..self.databases() {
            self.database_mut(number).begin_cut(plan, number as u32);
        }
    }

    /// Whether a snapshot has not seen all of the shard.
    #[must_use]
    pub fn is_in_snapshot(&self) -> bool {
        !self.detached.is_empty() || (0..self.databases()).any(|number| self.database(number).cut.is_some())
    }

    /// Takes a step of the snapshot in this shard.
    pub fn visit(&mut self, step: Step, piece: &mut Piece) -> Visited {
        if let Some(detached) = self.detached.last_mut() {
            if !detached.visit(step, piece) {
                return Visited::Paused;
            }
            let database = self.detached.pop().expect("it was looked at just now");
            return Visited::Freed(database);
        }
        for number in 0..self.databases() {
            if !self.database_mut(number).visit(step, piece) {
                return Visited::Paused;
            }
        }
        Visited::Done
    }

    /// Takes what was handed over, and nothing else.
    pub fn take_handed_over(&mut self, piece: &mut Piece) {
        for number in 0..self.databases() {
            self.database_mut(number).take_handed_over(piece);
        }
        self.detached.iter_mut().for_each(|database| database.take_handed_over(piece));
    }

    /// What a flush took away: to be freed by the caller, unless a snapshot still has to see it.
    pub(crate) fn detach(&mut self, mut database: Database) -> Option<Database> {
        match database.unseen_plan() {
            Some(plan) => {
                plan.detach(database.bytes());
                self.detached.push(database);
                None
            }
            None => Some(database),
        }
    }
}
