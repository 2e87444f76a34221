//! The way of a snapshot's visitor through the shards.
//!
//! One shard after the other is seen to its end. But once a large collection is being written, everything else has to wait for its
//! end, wherever the collection is by then: it may have been renamed into another shard, or be on its way to being freed.

use super::{Piece, Plan, Step, Visited};
use crate::database::Database;
use crate::shard::Shard;

/// So many bytes of elements that were handed over early make the visitor see to the collections that they belong to first.
const EARLY_BYTES_MAX: u64 = 1 << 20;

/// Where the next step is to be taken.
#[derive(Debug, PartialEq, Eq)]
pub enum Stop {
    /// In this shard.
    Shard(usize),
    /// Nowhere yet: what is to be seen next is on its way from one place to another.
    Wait,
    /// Everything has been seen.
    Done,
}

/// How far a visitor has come.
#[derive(Debug)]
pub struct Tour {
    shards: usize,
    /// Shards below this one have been seen to their end, or have been again in this round.
    at: usize,
    /// The shard to look for a collection in that has been begun.
    open_at: usize,
    /// In how many shards it was not.
    missed: usize,
    is_looking: bool,
    /// What was said of moves when the round began.
    moves: u64,
}

impl Tour {
    /// The way through so many shards.
    #[must_use]
    pub fn new(shards: usize) -> Self {
        Self { shards, at: 0, open_at: 0, missed: 0, is_looking: false, moves: 0 }
    }

    /// Shards below this one have nothing left, but for what has come to them since.
    #[must_use]
    pub fn seen(&self) -> usize {
        self.at
    }

    /// Where the next step is to be taken, when nothing is to be done without a shard ([`Plan::visit_orphans`]).
    pub fn next(&mut self, plan: &Plan, piece: &Piece) -> Stop {
        self.is_looking = piece.is_open || (plan.early_bytes() > EARLY_BYTES_MAX && self.missed < self.shards);
        if self.is_looking {
            if self.missed == self.shards {
                self.missed = 0;
                return Stop::Wait;
            }
            return Stop::Shard(self.open_at);
        }
        self.missed = 0;
        if self.at < self.shards {
            return Stop::Shard(self.at);
        }
        let moves = plan.moves();
        if plan.open() == 0 && moves == self.moves {
            return Stop::Done;
        }
        (self.at, self.moves) = (0, moves);
        Stop::Wait
    }

    /// Takes a step in the shard that was named. What comes back is to be freed.
    pub fn step(&mut self, shard: &mut Shard, step: Step, piece: &mut Piece) -> Option<Database> {
        if self.is_looking {
            if shard.visit_open(step, piece) {
                self.missed = 0;
            } else {
                self.missed += 1;
                self.open_at = (self.open_at + 1) % self.shards;
            }
            return None;
        }
        match shard.visit(step, piece) {
            Visited::Paused => {}
            Visited::Done => self.at += 1,
            Visited::Freed(database) => return Some(database),
        }
        if piece.is_open {
            self.open_at = self.at;
        }
        None
    }
}
