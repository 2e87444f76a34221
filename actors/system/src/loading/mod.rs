//! Loading: from files to the keyspace, on all cores.
//!
//! ```text
//! disk ─> reader: finds entries and records ─┬─> queue ─> worker 0: builds what belongs to shards 0, W, 2W, ...
//!          and the shard of each              └─> queue ─> worker 1: builds what belongs to shards 1, W+1, ...
//! ```
//!
//! | file | what |
//! | --- | --- |
//! | `files` | reads files, checks sums, hands out what is in them, tells how far it has come |
//! | `crew` | the workers as the reader sees them: batches, queues, and all shards in one hand when a record needs them |
//! | `worker` | builds entries, runs records |
//!
//! A shard has one worker and a worker one queue, so a key's changes come in the order of the file. Queues are short: what is read
//! ahead is bounded, and the disk waits for the slowest worker.

mod crew;
mod files;
mod worker;

pub(crate) use crew::Crew;
pub(crate) use files::{Functions, Loaded, Loader, PIECE};

use crate::configuration::Live;
use simurgh_storage::Layout;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// How far loading has come.
#[derive(Debug, Default)]
#[expect(missing_docs, reason = "fields of INFO persistence")]
pub struct Loading {
    pub is_loading: AtomicBool,
    pub started_ms: AtomicU64,
    pub read_bytes: AtomicU64,
    pub total_bytes: AtomicU64,
    pub keys_loaded: AtomicU64,
    pub keys_expired: AtomicU64,
}

/// What all who load need to know.
#[derive(Debug)]
pub(crate) struct Ground {
    /// Slots, shards, databases.
    pub layout: Layout,
    /// The configuration, as it was when loading began.
    pub live: Arc<Live>,
    /// Where random numbers begin.
    pub seed: u64,
}

impl Ground {
    /// Of a node.
    pub fn of(node: &crate::node::Node) -> Arc<Self> {
        Arc::new(Self { layout: node.layout.clone(), live: node.configuration.current(), seed: node.seed })
    }
}
