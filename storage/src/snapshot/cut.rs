//! A database's part in a snapshot: what is still to be seen, how far the visit has come, and what was handed over.

use super::{Piece, Plan, Step};
use crate::database::Database;
use crate::entry::EntryRef;
use crate::slot_table::Place;
use std::sync::Arc;

/// A database's part in a snapshot.
pub(crate) struct Cut {
    plan: Arc<Plan>,
    /// The number that the database had at the cut.
    database: u32,
    /// Entries that have not been seen.
    left: usize,
    /// What was handed over.
    handed: Vec<u8>,
    /// The slot that the visit is in, and its position there.
    slot: usize,
    position: u64,
    /// What a detached database counts for.
    detached_bytes: usize,
}

impl Cut {
    fn see(&mut self, entry: EntryRef<'_>, out: &mut Vec<u8>) {
        self.left -= 1;
        if !self.plan.is_cancelled() {
            super::encode::entry(out, &self.plan, entry);
            self.plan.count(1);
        }
    }
}

impl Database {
    /// Everything that is here now is part of a snapshot.
    pub(super) fn begin_cut(&mut self, plan: &Arc<Plan>, database: u32) {
        if self.is_empty() {
            return;
        }
        self.parity = !self.parity;
        self.cut = Some(Box::new(Cut {
            plan: plan.clone(),
            database,
            left: self.len(),
            handed: Vec::new(),
            slot: self.slots().start,
            position: 0,
            detached_bytes: 0,
        }));
    }

    /// The entry at a place is about to change.
    #[cold]
    pub(crate) fn hand_over(&mut self, slot: usize, place: Place) {
        let Some(cut) = &mut self.cut else { return };
        let entry = self.tables[slot].view(place);
        if entry.parity() == self.parity {
            return;
        }
        let mut handed = std::mem::take(&mut cut.handed);
        let before = handed.len();
        cut.see(entry, &mut handed);
        cut.plan.hand_over(handed.len() - before);
        cut.handed = handed;
        let parity = self.parity;
        self.tables[slot].change(place, |entry| entry.set_parity(parity));
    }

    /// The plan of a snapshot that still has something to see here.
    pub(super) fn unseen_plan(&mut self) -> Option<Arc<Plan>> {
        let bytes = self.bytes();
        self.cut.as_mut().map(|cut| {
            cut.detached_bytes = bytes;
            cut.plan.clone()
        })
    }

    pub(super) fn take_handed_over(&mut self, piece: &mut Piece) {
        let Some(cut) = &mut self.cut else { return };
        let handed = std::mem::take(&mut cut.handed);
        cut.plan.take(handed.len());
        if !handed.is_empty() && !cut.plan.is_cancelled() {
            piece.choose(cut.plan.format, cut.database);
            piece.bytes.extend_from_slice(&handed);
        }
    }

    /// Takes a step; whether everything has been seen.
    pub(super) fn visit(&mut self, step: Step, piece: &mut Piece) -> bool {
        self.take_handed_over(piece);
        let Some(mut cut) = self.cut.take() else { return true };
        let (parity, mut looked, mut looked_bytes) = (self.parity, 0, 0);
        if cut.left > 0 && !cut.plan.is_cancelled() {
            piece.choose(cut.plan.format, cut.database);
        }
        while cut.left > 0 && looked < step.entries && piece.bytes.len().max(looked_bytes) < step.bytes {
            let slot =
                self.next_occupied(cut.slot).expect("what has not been seen is in a slot that has not been passed");
            if slot != cut.slot {
                (cut.slot, cut.position) = (slot, 0);
            }
            let index = slot - self.slots().start;
            let position = cut.position;
            cut.position = self.tables[index].scan_mut(position, |entry| {
                looked += 1;
                if entry.view().parity() != parity {
                    looked_bytes += entry.view().memory();
                    cut.see(entry.view(), &mut piece.bytes);
                    entry.set_parity(parity);
                }
            });
            if cut.position == 0 {
                cut.slot += 1;
            }
        }
        if cut.left > 0 {
            self.cut = Some(cut);
            return false;
        }
        cut.plan.free(cut.detached_bytes);
        true
    }
}
