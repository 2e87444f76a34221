//! What a hash table owes to a snapshot: its elements, in 64 groups of each part.
//!
//! The elements of a part whose hashes end with the same six bits are a group, some ten to twenty of them. One bit says whether a group
//! is as it was at the cut and not written; who changes an element of such a group, adds one to it or takes one from it, hands
//! the group over first. Growing, shrinking and splitting move no element from one group to another, since parts are split by the
//! highest bits of the hash.

use crate::dict::Dict;
use crate::slot_table::{GROUPS, SlotTable, group_of};
use crate::snapshot::{Form, Large, Owed, Piece, Record, Saved, Step, save_all};

/// A hash table's part in a snapshot.
#[derive(Debug)]
pub(crate) struct OwedElements {
    pub record: Record,
    /// For each part, the groups that are unseen.
    parts: Vec<u64>,
    /// Parts before this one have been seen.
    at: usize,
}

impl OwedElements {
    /// Whether an element with this hash, of this part, is as it was at the cut and was not handed over.
    pub fn is_unseen(&self, part: usize, hash: u64) -> bool {
        self.parts[part] >> group_of(hash) & 1 == 1
    }

    /// An element with this hash is about to come, go or change.
    pub fn hand_over<E: Saved>(&mut self, part: usize, table: &SlotTable<E>, hash: u64) {
        let group = group_of(hash);
        if self.parts[part] >> group & 1 == 1 {
            self.parts[part] &= !(1 << group);
            self.record.hand_over(|form, out| save(table, group, form, out));
        }
    }

    /// A part has been split; its second half is now the last part.
    pub fn split(&mut self, part: usize) {
        self.parts.push(self.parts[part]);
    }

    /// Of one part nothing is left, and it is the only one.
    pub fn clear(&mut self) {
        self.parts = vec![0];
        self.at = 0;
    }
}

/// Writes the elements of a group; how many.
fn save<E: Saved>(table: &SlotTable<E>, group: u32, form: &Form, out: &mut crate::rdb::string::Sink<'_>) -> u64 {
    let mut elements = Vec::new();
    table.for_group(group, |element| {
        if !E::is_passed(element, form) {
            elements.push(element);
        }
    });
    save_all::<E>(&elements, form, out)
}

impl<E: Saved> Dict<E> {
    /// A snapshot begins with it.
    pub(crate) fn owe(&mut self, record: Record) {
        let (parts, at) = (vec![u64::MAX; self.parts.len()], 0);
        self.owed = Owed::of(OwedElements { record, parts, at });
    }

    /// It, if a snapshot has begun with it and not come to its end.
    pub(crate) fn owing(&mut self) -> Option<&mut dyn Large>
    where
        E: 'static,
    {
        if self.owed.is_some() { Some(self) } else { None }
    }

    /// Takes everything out if a snapshot still owes it a visit, so that it can be kept for that.
    pub(crate) fn rescue(&mut self) -> Option<Self> {
        let emptied = self.owed.as_ref().filter(|owed| !owed.record.is_given_up()).map(|_| self.emptied())?;
        Some(std::mem::replace(self, emptied))
    }
}

impl<E: Saved + 'static> Large for Dict<E> {
    fn record(&self) -> Option<&Record> {
        self.owed.as_ref().map(|owed| &owed.record)
    }

    fn visit(&mut self, step: Step, piece: &mut Piece) -> bool {
        let Some(mut owed) = self.owed.take() else { return true };
        if owed.record.is_given_up() {
            return true;
        }
        owed.record.resume(piece);
        // An empty group or part counts as an element.
        let mut looked = 0;
        while owed.at < self.parts.len() {
            let (unseen, left) = (owed.parts[owed.at], owed.record.left);
            if unseen == 0 {
                owed.at += 1;
            } else {
                let (group, table) = (unseen.trailing_zeros(), &self.parts[owed.at].table);
                debug_assert!(group < GROUPS);
                owed.parts[owed.at] &= unseen - 1;
                owed.record.write(piece, |form, out| save(table, group, form, out));
            }
            looked += 1 + (left - owed.record.left) as usize;
            if looked >= step.entries || piece.bytes.len() >= step.bytes {
                self.owed.put_back(owed);
                return false;
            }
        }
        owed.record.end(piece);
        true
    }
}

/// A table that is freed before a snapshot has seen it is kept for that. (Nothing is left to be freed here but its directory.)
impl<E: Saved + 'static> Drop for Dict<E> {
    fn drop(&mut self) {
        if let Some(table) = self.rescue()
            && let Some(plan) = table.owed.as_ref().map(|owed| owed.record.plan().clone())
        {
            let bytes = table.bytes();
            plan.adopt(Box::new(table), bytes);
        }
    }
}
