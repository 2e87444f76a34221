//! The entries of a stream: nodes in the order of their ids, and the counters that Redis keeps beside them.
//!
//! A node lies under the id that its first entry had. Entries only join at the end, and so the last node alone grows; nodes before
//! it lose entries to XDEL and XTRIM and go when the last is lost.

use super::id::StreamId;
use super::node::{self, Counts, Entry, NodeEntries};
use super::owed::OwedNodes;
use crate::block::Malformed;
use crate::listpack::{Item, Listpack};
use crate::snapshot::Owed;
use simurgh_protocol::config::Packing;
use std::collections::{BTreeMap, btree_map};

/// The most bytes that an entry or a node may have, whatever the settings say.
const NODE_BYTES_MAX: usize = 1 << 30;
/// What a node costs beside its listpack: a place in a B-tree that is filled in ascending order.
const NODE_OVERHEAD: usize = (size_of::<StreamId>() + size_of::<Listpack>()) * 2;

/// The most bytes that an entry takes beside its names and values, and the node's counts more than before.
const HEADS_MAX: usize = 64;

/// Up to which size a node takes further entries; 0 means any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeLimits {
    /// `stream-node-max-bytes`.
    pub bytes: u64,
    /// `stream-node-max-entries`.
    pub entries: u64,
}

impl NodeLimits {
    /// The limits of the settings.
    #[must_use]
    pub fn of(packing: &Packing) -> Self {
        Self { bytes: packing.stream_node_bytes, entries: packing.stream_node_entries }
    }

    /// Whether a node of so many bytes and entries takes another entry whose texts have so many bytes.
    fn has_room(self, node: &Listpack, text: usize) -> bool {
        let bytes_max = match usize::try_from(self.bytes) {
            Ok(bytes) if (1..=NODE_BYTES_MAX).contains(&bytes) => bytes,
            _ => NODE_BYTES_MAX,
        };
        let Counts { valid, deleted } = node::counts(node);
        let is_short = self.entries == 0 || valid + deleted < self.entries;
        is_short && node.as_bytes().len().saturating_add(text) < bytes_max
    }
}

/// The bytes that texts take in a node.
fn packed_length<'a>(texts: impl Iterator<Item = &'a [u8]>) -> usize {
    texts.map(|text| Item::from(text).packed_length()).fold(0, usize::saturating_add)
}

/// The entries of a stream, and what is known of those that are gone.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    pub(super) nodes: BTreeMap<StreamId, Listpack>,
    length: u64,
    first_id: StreamId,
    /// The greatest id that was ever given.
    pub last_id: StreamId,
    /// The greatest id that was deleted by name.
    pub max_deleted_id: StreamId,
    /// How many entries there ever were.
    pub added: u64,
    /// What the allocator spends on the nodes.
    bytes: usize,
    /// What a snapshot has not seen.
    pub(super) owed: Owed<OwedNodes>,
}

impl Entries {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The first entry's id; 0-0 without one.
    #[must_use]
    pub fn first_id(&self) -> StreamId {
        self.first_id
    }

    /// What the allocator spends on the entries, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes + self.nodes.len() * NODE_OVERHEAD
    }

    /// The nodes, as DUMP and RDB have them: each under its id.
    #[must_use]
    pub fn nodes(&self) -> &BTreeMap<StreamId, Listpack> {
        &self.nodes
    }

    /// Takes a node from elsewhere, of which every byte is checked; it must lie behind those that are there.
    pub fn push_node(&mut self, id: StreamId, node: Listpack) -> Result<(), Malformed> {
        let Counts { valid, .. } = node::check(id, &node)?;
        let last = self.nodes.last_key_value().and_then(|(id, node)| NodeEntries::new(*id, node).last_ever());
        if last.is_some_and(|last| id <= last) {
            return Err(Malformed);
        }
        // Redis may keep nodes all of whose entries are deleted.
        if valid == 0 {
            return Ok(());
        }
        self.length += valid;
        self.bytes += node.bytes();
        self.nodes.insert(id, node);
        if self.first_id.is_zero() {
            self.find_first();
        }
        Ok(())
    }

    /// Whether there is a node that could take an entry of these names and values.
    #[must_use]
    pub fn may_hold<'a>(pairs: impl Iterator<Item = &'a [u8]>) -> bool {
        packed_length(pairs) < NODE_BYTES_MAX / 2
    }

    /// Puts an entry behind the last. `pairs` are names and values in turn, which [`Entries::may_hold`]; `id` must be greater than
    /// any before.
    pub fn append<'a>(
        &mut self,
        id: StreamId,
        pairs: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
        limits: NodeLimits,
    ) {
        let text = pairs.clone().map(<[u8]>::len).fold(0_usize, usize::saturating_add);
        let packed = packed_length(pairs.clone());
        self.hand_over_last();
        match self.nodes.last_entry() {
            Some(mut last) if limits.has_room(last.get(), text) && last.get().fits(packed + HEADS_MAX) => {
                let (master, node) = (*last.key(), last.get_mut());
                let before = node.bytes();
                node::append(node, master, id, pairs);
                self.bytes = self.bytes - before + node.bytes();
            }
            _ => {
                let mut node = node::new(pairs.clone());
                node::append(&mut node, id, id, pairs);
                self.bytes += node.bytes();
                self.nodes.insert(id, node);
            }
        }
        self.length += 1;
        self.added = self.added.wrapping_add(1);
        self.last_id = id;
        if self.length == 1 {
            self.first_id = id;
        }
    }

    /// The entries between two ids, both of them included.
    #[must_use]
    pub fn range(&self, from: StreamId, to: StreamId) -> Range<'_> {
        if from > to {
            return Range { nodes: self.nodes.range(StreamId::MAX..StreamId::MAX), front: None, back: None, from, to };
        }
        let start = self.nodes.range(..=from).next_back().map_or(from, |(id, _)| *id);
        Range { nodes: self.nodes.range(start..=to), front: None, back: None, from, to }
    }

    /// All entries.
    #[must_use]
    pub fn iter(&self) -> Range<'_> {
        self.range(StreamId::MIN, StreamId::MAX)
    }

    /// The entry with this id.
    #[must_use]
    pub fn get(&self, id: StreamId) -> Option<Entry<'_>> {
        self.range(id, id).next()
    }

    /// The greatest id of an entry that is there; 0-0 without one.
    #[must_use]
    pub fn greatest_id(&self) -> StreamId {
        self.iter().next_back().map_or(StreamId::MIN, |entry| entry.id)
    }

    /// Removes an entry. Whether it was there.
    pub fn remove(&mut self, id: StreamId) -> bool {
        let Some(at) = self.get(id).map(|entry| entry.at) else { return false };
        let (master, _) = self.nodes.range(..=id).next_back().expect("the entry was found in this node");
        self.remove_from_node(*master, &[at]);
        true
    }

    /// Removes entries of one node.
    fn remove_from_node(&mut self, master: StreamId, places: &[usize]) {
        self.hand_over(master);
        let node = self.nodes.get_mut(&master).expect("its entries were found");
        let before = node.bytes();
        let is_left = node::delete(node, places);
        self.bytes = self.bytes - before + node.bytes();
        self.length -= places.len() as u64;
        if !is_left {
            self.drop_node(master);
        }
        self.find_first();
    }

    /// Removes entries of the first node from the front on for as long as `wanted` says so. How many those were.
    pub(super) fn remove_from_first_node(&mut self, mut wanted: impl FnMut(StreamId) -> bool) -> u64 {
        let Some((master, node)) = self.nodes.first_key_value() else { return 0 };
        let entries = NodeEntries::new(*master, node);
        let places: Vec<usize> = entries.take_while(|entry| wanted(entry.id)).map(|entry| entry.at).collect();
        if !places.is_empty() {
            self.remove_from_node(*master, &places);
        }
        places.len() as u64
    }

    /// Removes an entry by name: later ids are told from those that never were. Whether it was there.
    pub fn delete(&mut self, id: StreamId) -> bool {
        let was_there = self.remove(id);
        if was_there {
            self.max_deleted_id = self.max_deleted_id.max(id);
        }
        was_there
    }

    /// The first node: how many entries it has, and the last id that ever was in it.
    pub(super) fn first_node(&self) -> Option<(u64, StreamId)> {
        let (master, node) = self.nodes.first_key_value()?;
        let last = NodeEntries::new(*master, node).last_ever().unwrap_or(*master);
        Some((node::counts(node).valid, last))
    }

    /// Removes the first node with all its entries. How many those were.
    pub(super) fn remove_first_node(&mut self) -> u64 {
        let Some((master, node)) = self.nodes.first_key_value() else { return 0 };
        let (master, valid) = (*master, node::counts(node).valid);
        self.length -= valid;
        self.drop_node(master);
        self.find_first();
        valid
    }

    fn drop_node(&mut self, master: StreamId) {
        if let Some(node) = self.nodes.remove(&master) {
            self.bytes -= node.bytes();
            if let Some(owed) = &mut *self.owed {
                owed.keep(master, || node);
            }
        }
    }

    fn find_first(&mut self) {
        self.first_id = self.iter().next().map_or(StreamId::MIN, |entry| entry.id);
    }
}

/// The entries between two ids, from either end.
#[derive(Clone)]
pub struct Range<'a> {
    nodes: btree_map::Range<'a, StreamId, Listpack>,
    front: Option<NodeEntries<'a>>,
    back: Option<NodeEntries<'a>>,
    from: StreamId,
    to: StreamId,
}

impl<'a> Iterator for Range<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        loop {
            if self.front.is_none() {
                self.front = self.nodes.next().map(|(master, node)| NodeEntries::new(*master, node));
            }
            // Once the nodes are used up, the walker from the other end has the rest.
            let node = self.front.as_mut().or(self.back.as_mut())?;
            match node.find(|entry| entry.id >= self.from) {
                Some(entry) if entry.id <= self.to => return Some(entry),
                Some(_) => return None,
                None if self.front.take().is_some() => {}
                None => return None,
            }
        }
    }
}

impl<'a> DoubleEndedIterator for Range<'a> {
    fn next_back(&mut self) -> Option<Entry<'a>> {
        loop {
            if self.back.is_none() {
                self.back = self.nodes.next_back().map(|(master, node)| NodeEntries::new(*master, node));
            }
            let node = self.back.as_mut().or(self.front.as_mut())?;
            match node.rfind(|entry| entry.id <= self.to) {
                Some(entry) if entry.id >= self.from => return Some(entry),
                Some(_) => return None,
                None if self.back.take().is_some() => {}
                None => return None,
            }
        }
    }
}
