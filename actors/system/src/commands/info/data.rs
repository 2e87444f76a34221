//! INFO memory, persistence, keyspace.

use super::server::about;
use super::{Lines, Source};
use crate::clients::ClientShared;
use simurgh_kernel::process;
use simurgh_storage::Database;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// Keys with an expiry that are looked at in each shard for `avg_ttl`.
const TTL_SAMPLES: usize = 16;

pub(super) fn memory(source: &mut Source<'_>, lines: &mut Lines) {
    let (node, live) = (source.node, source.node.configuration.current());
    let used = source.used_memory();
    let startup = node.memory.startup.load(Relaxed) as u64;
    let dataset = source.sum(|shard| shard.bytes() as u64).min(used);
    let resident = process::resident_bytes();
    let peak = node.samples.note_memory(used as usize, source.now_ms / 1000);
    lines.bytes("used_memory", used);
    lines.bytes("used_memory_rss", resident);
    lines.bytes("used_memory_peak", peak.bytes as u64);
    lines.field("used_memory_peak_time", peak.time_s);
    lines.field("used_memory_peak_perc", percent(used, peak.bytes as u64));
    lines.field("used_memory_overhead", used - dataset);
    lines.field("used_memory_startup", startup);
    lines.field("used_memory_dataset", dataset);
    lines.field("used_memory_dataset_perc", percent(dataset, used.saturating_sub(startup)));
    lines.field("allocator_allocated", used);
    lines.bytes("total_system_memory", about().machine_memory);
    lines.zeros(&["used_memory_lua", "used_memory_vm_eval", "used_memory_scripts_eval", "number_of_cached_scripts"]);
    lines.zeros(&["number_of_functions", "number_of_libraries", "used_memory_vm_functions", "used_memory_vm_total"]);
    lines.zeros(&["used_memory_functions", "used_memory_scripts"]);
    lines.bytes("maxmemory", live.config.max_memory_bytes);
    lines.field("maxmemory_policy", live.config.max_memory_policy.name());
    let ratio = if used == 0 { 0.0 } else { resident as f64 / used as f64 };
    lines.field("mem_fragmentation_ratio", format_args!("{ratio:.2}"));
    lines.field("mem_fragmentation_bytes", resident as i64 - used as i64);
    lines.zeros(&["mem_not_counted_for_evict", "mem_replication_backlog", "mem_total_replication_buffers"]);
    lines.zeros(&["mem_replica_full_sync_buffer", "mem_clients_slaves"]);
    let clients = node.clients.all();
    let of_client = |client: &ClientShared| {
        [&client.query_buffer, &client.query_buffer_free, &client.multi_memory, &client.output_capacity]
            .map(|part| part.load(Relaxed))
            .iter()
            .sum::<u64>()
    };
    let of_clients: u64 = clients.iter().map(|client| of_client(client)).sum();
    lines.field("mem_clients_normal", of_clients);
    lines.field("mem_cluster_links", 0);
    lines.field("mem_aof_buffer", node.log.backlog());
    lines.field("mem_allocator", node.allocator_name());
    lines.field("active_defrag_running", 0);
    lines.field("lazyfree_pending_objects", node.stats.lazyfree_pending.load(Relaxed));
    lines.field("lazyfreed_objects", node.stats.lazyfreed_objects.get());
}

/// How long loading will take if it goes on as it did; 1 before that can be told.
fn eta_seconds(elapsed_s: u64, read: u64, total: u64) -> u64 {
    let left = total.saturating_sub(read);
    if elapsed_s == 0 || read == 0 { 1 } else { left.saturating_mul(elapsed_s) / read }
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.2}%", if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 })
}

pub(super) fn persistence(source: &mut Source<'_>, lines: &mut Lines) {
    let (node, live) = (source.node, source.node.configuration.current());
    let is_loading = node.loading.is_loading.load(Acquire);
    lines.field("loading", u8::from(is_loading));
    lines.zeros(&["async_loading", "current_cow_peak", "current_cow_size", "current_fork_perc"]);
    lines.field("rdb_changes_since_last_save", node.stats.changes.get());
    lines.field("rdb_bgsave_in_progress", 0);
    lines.field("rdb_last_save_time", node.started_ms / 1000);
    lines.field("rdb_last_bgsave_status", "ok");
    lines.field("rdb_last_bgsave_time_sec", -1);
    lines.field("rdb_current_bgsave_time_sec", -1);
    lines.zeros(&["rdb_saves", "rdb_last_cow_size"]);
    lines.field("aof_enabled", u8::from(live.config.append_only));
    lines.zeros(&["aof_rewrite_in_progress", "aof_rewrite_scheduled"]);
    lines.field("aof_last_rewrite_time_sec", -1);
    lines.field("aof_current_rewrite_time_sec", -1);
    lines.field("aof_last_bgrewrite_status", "ok");
    lines.zeros(&["aof_rewrites", "aof_rewrites_consecutive_failures"]);
    lines.field("aof_last_write_status", if node.log.refuses() { "err" } else { "ok" });
    lines.zeros(&["aof_last_cow_size", "module_fork_in_progress", "module_fork_last_cow_size"]);
    if live.config.append_only {
        let (size, backlog) = (node.aof_earlier_size.load(Relaxed) + node.aof_size.load(Relaxed), node.log.backlog());
        lines.field("aof_current_size", size);
        lines.field("aof_base_size", node.aof_base_size.load(Relaxed));
        lines.field("aof_pending_rewrite", 0);
        lines.field("aof_buffer_length", backlog);
        lines.field("aof_pending_bio_fsync", 0);
        lines.field("aof_delayed_fsync", 0);
        lines.field("aof_position", node.log.end());
        lines.field("aof_safe_position", node.log.safe());
    }
    if is_loading {
        let (read, total) = (node.loading.read_bytes.load(Relaxed), node.loading.total_bytes.load(Relaxed));
        lines.field("loading_start_time", node.loading.started_ms.load(Relaxed) / 1000);
        lines.field("loading_total_bytes", total);
        lines.field("loading_loaded_bytes", read);
        lines.field("loading_loaded_perc", percent(read, total));
        let elapsed_s = (source.now_ms - node.loading.started_ms.load(Relaxed) as i64).max(0) as u64 / 1000;
        lines.field("loading_eta_seconds", eta_seconds(elapsed_s, read, total));
    }
}

pub(super) fn keyspace(source: &mut Source<'_>, lines: &mut Lines) {
    for database in 0..source.node.layout.databases {
        let keys = source.sum(|shard| shard.database(database).len() as u64);
        if keys == 0 {
            continue;
        }
        let expires = source.sum(|shard| shard.database(database).expiring() as u64);
        let (mut total_ms, mut samples) = (0i64, 0i64);
        for index in 0..source.node.layout.shards {
            for at_ms in sampled_expiries(source.shards.shard(index).database(database)) {
                total_ms = total_ms.saturating_add((at_ms - source.now_ms).max(0));
                samples += 1;
            }
        }
        let average = total_ms.checked_div(samples).unwrap_or(0);
        let hashes = source.sum(|shard| shard.database(database).hashes_expiring() as u64);
        lines.field(
            &format!("db{database}"),
            format_args!("keys={keys},expires={expires},avg_ttl={average},subexpiry={hashes}"),
        );
    }
}

/// The expiries of keys that are spread over those that have one.
fn sampled_expiries(database: &Database) -> impl Iterator<Item = i64> + '_ {
    let count = database.expiring();
    let step = count.div_ceil(TTL_SAMPLES).max(1);
    (0..count).step_by(step).filter_map(|rank| database.nth_expiring(rank)?.expires_at())
}
