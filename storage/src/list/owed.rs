//! What a large list owes to a snapshot: its nodes at the cut, in order.
//!
//! At the beginning the nodes are numbered. A node that has a number is as it was at the cut and not written yet; whoever changes it or
//! takes it out keeps a copy, or the node itself, under its number. Nodes do not change places, so those with numbers stand in the
//! order of these, and the visit goes through the list once, with what was kept in between.

use super::node::{Node, NodeIter, NodeRef};
use super::quicklist::Quicklist;
use crate::rdb::value::list::{count_in_file, write_node};
use crate::snapshot::{Large, Owed, Piece, Record, Step, write_command};
use std::collections::BTreeMap;
use std::ops::Range;

/// A list's part in a snapshot.
#[derive(Debug)]
pub(super) struct OwedNodes {
    record: Record,
    /// Nodes that have changed or gone since, by number.
    kept: BTreeMap<u32, Node>,
    /// The number of the node to be written next.
    next: u32,
    /// Where those nodes of the list begin that the visit has not come to.
    at: usize,
}

impl OwedNodes {
    /// A node has been put at this place.
    pub fn inserted(&mut self, index: usize) {
        if index < self.at {
            self.at += 1;
        }
    }

    /// The nodes at these places have gone.
    pub fn removed(&mut self, places: Range<usize>) {
        self.at -= self.at.min(places.end) - self.at.min(places.start);
    }

    /// A node is no more in the list.
    pub fn keep(&mut self, node: Node) {
        if node.number != 0 && !self.record.is_given_up() {
            self.record.keep(node.bytes());
            self.kept.insert(node.number, node);
        }
    }
}

impl Quicklist {
    /// The node at this place is about to change, or to go.
    #[inline]
    pub fn hand_over(&mut self, index: usize) {
        if let Some(owed) = &mut *self.owed
            && let Some(node) = self.nodes.get_mut(index).filter(|node| node.number != 0)
        {
            owed.keep(node.clone());
            node.number = 0;
        }
    }

    /// A snapshot begins with it.
    pub fn owe(&mut self, mut record: Record) {
        for (node, number) in self.nodes.iter_mut().zip(1..) {
            node.number = number;
        }
        record.left = self.nodes.len() as u64;
        self.owed = Owed::of(OwedNodes { record, kept: BTreeMap::new(), next: 1, at: 0 });
    }

    /// It, if a snapshot has begun with it and not come to its end.
    pub fn owing(&mut self) -> Option<&mut dyn Large> {
        if self.owed.is_some() { Some(self) } else { None }
    }

    /// How many nodes it has in a file. Only a packed node beyond a certain size may have to be written as several.
    pub fn nodes_in_file(&self) -> usize {
        /// What the allocator spends on the longest list of which nothing is in dispute.
        const SURE_MAX: usize = 16 << 10;
        if self.packed_max <= SURE_MAX { self.nodes.len() } else { self.nodes().map(count_in_file).sum() }
    }
}

impl Large for Quicklist {
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
            if let Some(node) = owed.kept.remove(&owed.next) {
                owed.record.release(node.bytes());
                looked_bytes += owed.write(node.as_ref(), piece);
            } else {
                let Some(node) = self.nodes.get_mut(owed.at) else { break };
                owed.at += 1;
                if std::mem::take(&mut node.number) == owed.next {
                    looked_bytes += owed.write(node.as_ref(), piece);
                }
            }
            looked += 1;
            if looked >= step.entries || piece.bytes.len().max(looked_bytes) >= step.bytes {
                self.owed.put_back(owed);
                return false;
            }
        }
        owed.record.end(piece);
        true
    }
}

impl OwedNodes {
    /// Writes the next node; its bytes in memory.
    fn write(&mut self, node: NodeRef<'_>, piece: &mut Piece) -> usize {
        self.next += 1;
        self.record.write(piece, |form, out| {
            match &form.key {
                None => write_node(out, node),
                Some(key) => {
                    let mut words = vec![b"RPUSH".to_vec(), key.to_vec()];
                    words.extend(NodeIter::forward(node).map(|item| item.to_vec()));
                    write_command(out, &words);
                }
            }
            1
        });
        match node {
            NodeRef::Packed(list) => list.as_bytes().len(),
            NodeRef::Plain(text) => text.len(),
        }
    }
}

/// One that is freed before a snapshot has seen it is kept for that.
impl Drop for Quicklist {
    fn drop(&mut self) {
        let Some(plan) = self.wanted_by() else { return };
        let kept = std::mem::take(self);
        let bytes = kept.bytes();
        plan.adopt(Box::new(kept), bytes);
    }
}
