//! What a stream owes to a snapshot: its nodes at the cut, in the order of their ids, and its groups.
//!
//! Nodes behind the last one at the cut are no part of it. A node before that which the visit has not come to is as it was at the cut,
//! unless it was kept: who changes one keeps a copy first, who removes one keeps the node itself. The groups, with all that is pending
//! in them, are written down when the snapshot begins with the stream.

use super::{Entries, Stream, StreamId};
use crate::listpack::Listpack;
use crate::rdb::value::stream::{write_node, write_tail};
use crate::snapshot::{Large, Owed, Piece, Record, Step};
use std::collections::BTreeMap;
use std::ops::Bound;

/// A stream's part in a snapshot.
#[derive(Debug)]
pub(super) struct OwedNodes {
    record: Record,
    /// Nodes that have changed or gone since.
    kept: BTreeMap<StreamId, Listpack>,
    /// The node that was written last.
    passed: Option<StreamId>,
    /// The last node at the cut.
    last: StreamId,
}

impl OwedNodes {
    /// A node is about to change, or has been removed; keeps what `node` gives if it is unseen.
    pub fn keep(&mut self, master: StreamId, node: impl FnOnce() -> Listpack) {
        let is_unseen = Some(master) > self.passed && master <= self.last && !self.kept.contains_key(&master);
        if is_unseen && !self.record.is_given_up() {
            let node = node();
            self.record.keep(node.bytes());
            self.kept.insert(master, node);
        }
    }
}

impl Entries {
    /// A node is about to change.
    pub(super) fn hand_over(&mut self, master: StreamId) {
        if let Some(owed) = &mut *self.owed
            && let Some(node) = self.nodes.get(&master)
        {
            owed.keep(master, || node.clone());
        }
    }

    /// The last node is about to change.
    pub(super) fn hand_over_last(&mut self) {
        if self.owed.is_some()
            && let Some((last, _)) = self.nodes.last_key_value()
        {
            self.hand_over(*last);
        }
    }

    /// They, if a snapshot has begun with them and not come to their end.
    pub(crate) fn owing(&mut self) -> Option<&mut dyn Large> {
        if self.owed.is_some() { Some(self) } else { None }
    }
}

impl Stream {
    /// A snapshot begins with it.
    pub(crate) fn owe(&mut self, mut record: Record) {
        record.end_with(|out| write_tail(out, self));
        record.left = self.entries.nodes.len() as u64;
        let last = self.entries.nodes.last_key_value().map_or(StreamId::MIN, |(id, _)| *id);
        self.entries.owed = Owed::of(OwedNodes { record, kept: BTreeMap::new(), passed: None, last });
    }
}

impl Large for Entries {
    fn record(&self) -> Option<&Record> {
        self.owed.as_ref().map(|owed| &owed.record)
    }

    fn visit(&mut self, step: Step, piece: &mut Piece) -> bool {
        let Some(mut owed) = self.owed.take() else { return true };
        if owed.record.is_given_up() {
            return true;
        }
        owed.record.resume(piece);
        let (mut looked, mut looked_bytes) = (0, 0);
        while owed.record.left > 0 {
            let from = owed.passed.map_or(Bound::Unbounded, Bound::Excluded);
            let here = self.nodes.range((from, Bound::Included(owed.last))).next();
            let kept = owed.kept.first_key_value().map(|(id, _)| *id);
            let written = match here {
                Some((id, node)) if kept.is_none_or(|kept| *id < kept) => {
                    owed.record.write(piece, |_, out| save(*id, node, out));
                    Some((*id, node.bytes()))
                }
                Some(_) | None => owed.kept.pop_first().map(|(id, node)| {
                    owed.record.release(node.bytes());
                    owed.record.write(piece, |_, out| save(id, &node, out));
                    (id, node.bytes())
                }),
            };
            let Some((id, bytes)) = written else { break };
            owed.passed = Some(id);
            looked += 1;
            looked_bytes += bytes;
            if looked >= step.entries || piece.bytes.len().max(looked_bytes) >= step.bytes {
                self.owed.put_back(owed);
                return false;
            }
        }
        owed.record.end(piece);
        true
    }
}

fn save(id: StreamId, node: &Listpack, out: &mut crate::rdb::string::Sink<'_>) -> u64 {
    write_node(out, id, node);
    1
}

/// Those that are freed before a snapshot has seen them are kept for that.
impl Drop for Entries {
    fn drop(&mut self) {
        let Some(plan) = self.wanted_by() else { return };
        let kept = std::mem::take(self);
        let bytes = kept.bytes();
        plan.adopt(Box::new(kept), bytes);
    }
}
