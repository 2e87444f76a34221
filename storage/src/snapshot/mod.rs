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
mod large;
#[cfg(test)]
mod large_tests;
mod plan;
#[cfg(test)]
mod tests;
mod tour;

pub(crate) use cut::Cut;
pub use encode::Format;
pub(crate) use encode::words as write_command;
pub use file::{Front, Hint, SnapshotFile};
pub use large::{Form, Saved};
pub(crate) use large::{Large, Owed, Record, save_all};
pub use plan::Plan;
pub use tour::{Stop, Tour};

use crate::database::Database;
use crate::shard::Shard;
use std::sync::Arc;

/// What a visit writes to: the bytes, and the database that they have left chosen.
#[derive(Debug, Default)]
pub struct Piece {
    /// Bytes of the file, to be taken away when they have been written.
    pub bytes: Vec<u8>,
    database: Option<u32>,
    /// The file stands in the midst of a large collection, and nothing else can be written.
    is_open: bool,
}

impl Piece {
    /// Whether the file stands in the midst of a large collection, so that nothing else can be written.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.is_open
    }

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

    /// Takes a step of the snapshot in this shard, while no large collection is being written.
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

    /// Takes a step with a large collection that has been begun, if there is one here that may be written now; while one is being
    /// written, that is this one alone. Whether there was.
    pub fn visit_open(&mut self, step: Step, piece: &mut Piece) -> bool {
        (0..self.databases()).any(|number| self.database_mut(number).visit_open(step, piece))
            || self.detached.iter_mut().any(|database| database.visit_open(step, piece))
    }

    /// Takes whole keys that were handed over, and nothing else, while no large collection is being written.
    pub fn take_handed_over(&mut self, piece: &mut Piece) {
        debug_assert!(!piece.is_open);
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
