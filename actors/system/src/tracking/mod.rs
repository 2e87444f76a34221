//! Client-side caching: who has read which key, and how they hear that it has changed
//! (<https://redis.io/docs/latest/develop/reference/client-side-caching/>).
//!
//! ```text
//! read  ──> table: key ──> clients that have it          (the read's shard is held)
//! change ─> table: taken out, each client is told once   (the change's shard is held)
//!       └─> prefixes that it begins with ──> their clients, once for a batch (BCAST)
//! ```
//!
//! Storage notes the names of changed keys in `Effects` while anybody tracks, and at no other time; a key has one entry for all
//! databases, as in Redis. Since a read enters the key while it holds its shard, no change can fall between the two. An entry holds
//! numbers of clients: who has gone or tracks no longer is left out when the key changes. What a client changes itself is told behind its
//! reply, a flush of its own before it, as Redis does.

mod broadcast;
mod invalidate;
mod mode;
mod table;

pub use mode::{Mode, TrackingMode};

use broadcast::Prefixes;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use table::Table;

/// What a node knows of those who track.
#[derive(Debug, Default)]
pub struct Tracking {
    /// How many clients track.
    clients: AtomicUsize,
    table: Table,
    prefixes: Prefixes,
}

/// For INFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "fields of INFO")]
pub struct TrackingCounts {
    pub clients: usize,
    pub keys: usize,
    pub items: usize,
    pub prefixes: usize,
}

impl Tracking {
    /// Whether anybody tracks.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.clients.load(Relaxed) > 0
    }

    /// How much there is of what.
    pub fn counts(&self) -> TrackingCounts {
        TrackingCounts {
            clients: self.clients.load(Relaxed),
            keys: self.table.keys(),
            items: self.table.items(),
            prefixes: self.prefixes.count(),
        }
    }
}
