//! A database's part in a snapshot: what is still to be seen, how far the visit has come, and what was handed over.

use super::large::{begin, is_large, is_writing};
use super::{Piece, Plan, Step};
use crate::database::Database;
use crate::entry::{Entry, EntryRef};
use crate::key_hash::Key;
use crate::slot_table::Place;
use std::collections::VecDeque;
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
    /// Keys whose large collections are seen in steps, the one being written first; some may have gone elsewhere.
    open: VecDeque<Box<[u8]>>,
    /// What a detached database counts for.
    detached_bytes: usize,
}

impl Cut {
    fn new(plan: &Arc<Plan>, database: u32, left: usize, slot: usize) -> Self {
        Self {
            plan: plan.clone(),
            database,
            left,
            handed: Vec::new(),
            slot,
            position: 0,
            open: VecDeque::new(),
            detached_bytes: 0,
        }
    }

    /// A large entry is seen from here on in steps.
    fn begin_with(&mut self, key: &[u8]) {
        self.left -= 1;
        if !self.plan.is_cancelled() {
            self.open.push_back(key.into());
        }
    }

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
        self.cut = Some(Box::new(Cut::new(plan, database, self.len(), self.slots().start)));
    }

    /// The entry at a place is about to change.
    #[cold]
    pub(crate) fn hand_over(&mut self, slot: usize, place: Place) {
        let Some(cut) = &mut self.cut else { return };
        let entry = self.tables[slot].view(place);
        if entry.parity() == self.parity {
            return;
        }
        let parity = self.parity;
        if is_large(entry, &cut.plan) {
            cut.begin_with(entry.key());
            return self.tables[slot].change(place, |entry| {
                begin(entry, &cut.plan, cut.database);
                entry.set_parity(parity);
            });
        }
        let mut handed = std::mem::take(&mut cut.handed);
        let before = handed.len();
        cut.see(entry, &mut handed);
        cut.plan.hand_over(handed.len() - before);
        cut.handed = handed;
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
        if !self.step_in_open(&mut cut, step, piece) {
            self.walk(&mut cut, step, piece);
        }
        self.end_cut(cut)
    }

    /// Takes a step with a large collection that has been begun, if there is one here that may be written now. Whether there was.
    pub(super) fn visit_open(&mut self, step: Step, piece: &mut Piece) -> bool {
        let Some(mut cut) = self.cut.take() else { return false };
        let found = self.step_in_open(&mut cut, step, piece);
        self.end_cut(cut);
        found
    }

    /// Ends the cut if there is nothing left to see or to take; whether there is not.
    fn end_cut(&mut self, cut: Box<Cut>) -> bool {
        if cut.left > 0 || !cut.open.is_empty() || !cut.handed.is_empty() {
            self.cut = Some(cut);
            return false;
        }
        cut.plan.free(cut.detached_bytes);
        true
    }

    /// Goes on with the entries, until there is a large one among them.
    fn walk(&mut self, cut: &mut Cut, step: Step, piece: &mut Piece) {
        let (parity, mut looked, mut looked_bytes) = (self.parity, 0, 0);
        if cut.left > 0 && !cut.plan.is_cancelled() {
            piece.choose(cut.plan.format, cut.database);
        }
        while cut.left > 0
            && cut.open.is_empty()
            && looked < step.entries
            && piece.bytes.len().max(looked_bytes) < step.bytes
        {
            let slot =
                self.next_occupied(cut.slot).expect("what has not been seen is in a slot that has not been passed");
            if slot != cut.slot {
                (cut.slot, cut.position) = (slot, 0);
            }
            let index = slot - self.slots().start;
            let position = cut.position;
            cut.position = self.tables[index].scan_mut(position, |entry| {
                looked += 1;
                if entry.view().parity() == parity {
                    return;
                }
                if is_large(entry.view(), &cut.plan) {
                    cut.begin_with(entry.view().key());
                    begin(entry, &cut.plan, cut.database);
                } else {
                    looked_bytes += entry.view().memory();
                    cut.see(entry.view(), &mut piece.bytes);
                }
                entry.set_parity(parity);
            });
            if cut.position == 0 {
                cut.slot += 1;
            }
        }
    }

    fn step_in_open(&mut self, cut: &mut Cut, step: Step, piece: &mut Piece) -> bool {
        while let Some(bytes) = cut.open.pop_front() {
            let Some(mut entry) = self.occupied(&cut.plan.hasher.key(&bytes)) else { continue };
            let Some(mut collection) = entry.borrow_collection() else { continue };
            let mut stays = false;
            let visited = match collection.owing() {
                None => None,
                Some(large) if piece.is_open && !is_writing(large) => {
                    stays = true;
                    Some(false)
                }
                Some(large) => {
                    stays = !large.visit(step, piece);
                    Some(true)
                }
            };
            entry.put_collection(collection);
            if stays {
                cut.open.push_front(bytes);
            }
            if let Some(is_visited) = visited {
                return is_visited;
            }
        }
        false
    }

    /// Adds an entry from elsewhere whose key is not there. If a snapshot sees its collection in steps, it goes on here.
    pub(crate) fn receive(&mut self, key: &Key<'_>, mut entry: Entry) {
        let mut going_on = None;
        if let Some(mut collection) = entry.take_collection() {
            let record = collection.owing().and_then(|large| large.record());
            going_on = record.map(|record| (record.plan().clone(), record.is_writing()));
            entry.put_collection(collection);
        }
        self.insert_entry(key, entry);
        let Some((plan, is_writing)) = going_on else { return };
        plan.note_move();
        let first = self.slots().start;
        let open = &mut self.cut.get_or_insert_with(|| Box::new(Cut::new(&plan, 0, 0, first))).open;
        if is_writing {
            open.push_front(key.bytes.into());
        } else {
            open.push_back(key.bytes.into());
        }
    }
}
