//! What the node counts, for INFO. Relaxed atomics: each is a fact by itself.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to it.
    #[inline]
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Its value.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets it.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// Counters of a node since its start, or since CONFIG RESETSTAT.
#[derive(Debug, Default)]
#[expect(missing_docs, reason = "each has the name of its INFO field")]
pub struct Stats {
    pub total_connections_received: Counter,
    pub rejected_connections: Counter,
    pub total_commands_processed: Counter,
    pub total_net_input_bytes: Counter,
    pub total_net_output_bytes: Counter,
    pub total_reads_processed: Counter,
    pub total_writes_processed: Counter,
    pub total_error_replies: Counter,
    pub expired_keys: Counter,
    pub evicted_keys: Counter,
    pub evicted_clients: Counter,
    pub keyspace_hits: Counter,
    pub keyspace_misses: Counter,
    pub acl_access_denied_auth: Counter,
    pub client_query_buffer_limit_disconnections: Counter,
    pub client_output_buffer_limit_disconnections: Counter,
    pub unexpected_error_replies: Counter,
    /// Changes of the keyspace since the start: `rdb_changes_since_last_save`.
    pub changes: Counter,
    pub lazyfreed_objects: Counter,
    /// Objects that are being freed off the path.
    pub lazyfree_pending: AtomicU64,
    /// Clients that met a busy shard and queued there. No field of INFO: the simulator looks whether that way was taken.
    pub queued_at_shard: Counter,
}

impl Stats {
    /// CONFIG RESETSTAT.
    pub fn reset(&self) {
        for counter in [
            &self.total_connections_received,
            &self.rejected_connections,
            &self.total_commands_processed,
            &self.total_net_input_bytes,
            &self.total_net_output_bytes,
            &self.total_reads_processed,
            &self.total_writes_processed,
            &self.total_error_replies,
            &self.expired_keys,
            &self.evicted_keys,
            &self.evicted_clients,
            &self.keyspace_hits,
            &self.keyspace_misses,
            &self.acl_access_denied_auth,
            &self.client_query_buffer_limit_disconnections,
            &self.client_output_buffer_limit_disconnections,
            &self.unexpected_error_replies,
            &self.lazyfreed_objects,
        ] {
            counter.set(0);
        }
    }
}
