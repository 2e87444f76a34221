//! What the node counts, for INFO. Relaxed atomics: each is a fact by itself.

use crate::command_stats::thread_number;
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

/// Lanes of a [`BusyCounter`]; the last is shared by all threads that came late.
const LANES: usize = 16;

/// A place where one thread counts, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Lane(AtomicU64);

/// A counter of what every batch adds to: each thread counts in a lane of its own, so that it costs a load and a store and no other
/// core's cache is disturbed. Whoever reads adds up.
#[derive(Debug, Default)]
pub struct BusyCounter {
    lanes: [Lane; LANES],
    /// What is not counted any more since the last reset.
    before: AtomicU64,
}

impl BusyCounter {
    /// Adds to it.
    #[inline]
    pub fn add(&self, amount: u64) {
        let number = thread_number();
        if number < LANES - 1 {
            let lane = &self.lanes[number].0;
            lane.store(lane.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
        } else {
            self.lanes[LANES - 1].0.fetch_add(amount, Ordering::Relaxed);
        }
    }

    fn sum(&self) -> u64 {
        self.lanes.iter().fold(0, |sum, lane| sum.wrapping_add(lane.0.load(Ordering::Relaxed)))
    }

    /// Its value.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.sum().wrapping_sub(self.before.load(Ordering::Relaxed))
    }

    /// Counts from nothing again.
    fn reset(&self) {
        self.before.store(self.sum(), Ordering::Relaxed);
    }
}

/// Counters of a node since its start, or since CONFIG RESETSTAT.
#[derive(Debug, Default)]
#[expect(missing_docs, reason = "each has the name of its INFO field")]
pub struct Stats {
    pub total_connections_received: Counter,
    pub rejected_connections: Counter,
    pub total_commands_processed: BusyCounter,
    pub total_net_input_bytes: BusyCounter,
    pub total_net_output_bytes: BusyCounter,
    pub total_reads_processed: BusyCounter,
    pub total_writes_processed: BusyCounter,
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
    pub changes: BusyCounter,
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
        for counter in [
            &self.total_commands_processed,
            &self.total_net_input_bytes,
            &self.total_net_output_bytes,
            &self.total_reads_processed,
            &self.total_writes_processed,
        ] {
            counter.reset();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_counter_has_what_all_threads_added_since_its_reset() {
        let counter = BusyCounter::default();
        counter.add(7);
        counter.reset();
        let add = || (0..100).for_each(|_| counter.add(1));
        std::thread::scope(|scope| (0..2 * LANES).for_each(|_| drop(scope.spawn(add))));
        assert_eq!(counter.get(), 200 * LANES as u64);
        counter.reset();
        assert_eq!(counter.get(), 0);
    }
}
