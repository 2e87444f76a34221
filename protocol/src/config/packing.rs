//! Up to which size a collection is one packed block: Redis's `*-max-listpack-*` settings and their kin.

use super::Settings;
use super::table::Key;

/// The limits, by type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packing {
    /// `hash-max-listpack-entries`.
    pub hash_entries: u64,
    /// `hash-max-listpack-value`, in bytes.
    pub hash_value: u64,
    /// `list-max-listpack-size`: elements of a node, or from -1 to -5 its bytes.
    pub list_size: i32,
    /// From how many bytes on an element of a list is a node of its own, where DEBUG QUICKLIST-PACKED-THRESHOLD has said so.
    pub list_plain: Option<u64>,
    /// `set-max-intset-entries`.
    pub set_integers: u64,
    /// `set-max-listpack-entries`.
    pub set_entries: u64,
    /// `set-max-listpack-value`, in bytes.
    pub set_value: u64,
    /// `zset-max-listpack-entries`.
    pub sorted_set_entries: u64,
    /// `zset-max-listpack-value`, in bytes.
    pub sorted_set_value: u64,
    /// `stream-node-max-bytes`.
    pub stream_node_bytes: u64,
    /// `stream-node-max-entries`.
    pub stream_node_entries: u64,
    /// `hll-sparse-max-bytes`.
    pub hyperloglog_sparse_bytes: u64,
}

impl Settings {
    /// The limits as the settings have them.
    pub(super) fn packing(&self) -> Packing {
        Packing {
            hash_entries: self.number(Key::HashMaxListpackEntries),
            hash_value: self.number(Key::HashMaxListpackValue),
            list_size: self.number(Key::ListMaxListpackSize),
            list_plain: None,
            set_integers: self.number(Key::SetMaxIntsetEntries),
            set_entries: self.number(Key::SetMaxListpackEntries),
            set_value: self.number(Key::SetMaxListpackValue),
            sorted_set_entries: self.number(Key::ZsetMaxListpackEntries),
            sorted_set_value: self.number(Key::ZsetMaxListpackValue),
            stream_node_bytes: self.number(Key::StreamNodeMaxBytes),
            stream_node_entries: self.number(Key::StreamNodeMaxEntries),
            hyperloglog_sparse_bytes: self.number(Key::HllSparseMaxBytes),
        }
    }
}
