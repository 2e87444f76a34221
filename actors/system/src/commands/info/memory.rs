//! INFO memory: what is in use, what the allocator holds for it, and what the system has given to the process.

use super::server::about;
use super::{Lines, Source};
use crate::clients::ClientShared;
use crate::memory::AllocatorFigures;
use simurgh_kernel::process;
use std::sync::atomic::Ordering::Relaxed;

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
    let figures = node.allocator.map_or(AllocatorFigures::default(), |allocator| (allocator.figures)());
    lines.field("allocator_allocated", used);
    lines.field("allocator_active", figures.active);
    lines.field("allocator_resident", figures.resident);
    lines.field("allocator_muzzy", figures.muzzy);
    lines.bytes("total_system_memory", about().machine_memory);
    scripts(node, lines);
    lines.bytes("maxmemory", live.config.max_memory_bytes);
    lines.field("maxmemory_policy", live.config.max_memory_policy.name());
    let (allocated, active, mapped) = (figures.allocated as u64, figures.active as u64, figures.resident as u64);
    excess(lines, ["allocator_frag_ratio", "allocator_frag_bytes"], active, allocated);
    excess(lines, ["allocator_rss_ratio", "allocator_rss_bytes"], mapped, active);
    excess(lines, ["rss_overhead_ratio", "rss_overhead_bytes"], resident, mapped);
    excess(lines, ["mem_fragmentation_ratio", "mem_fragmentation_bytes"], resident, used);
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
    lines.zeros(&["mem_overhead_db_hashtable_rehashing", "active_defrag_running"]);
    lines.field("lazyfree_pending_objects", node.stats.lazyfree_pending.load(Relaxed));
    lines.field("lazyfreed_objects", node.stats.lazyfreed_objects.get());
}

/// By how much one figure exceeds another that it includes: as a ratio, and in bytes.
fn excess(lines: &mut Lines, [ratio_name, bytes_name]: [&str; 2], whole: u64, part: u64) {
    let ratio = if part == 0 { 0.0 } else { whole as f64 / part as f64 };
    lines.field(ratio_name, format_args!("{ratio:.2}"));
    lines.field(bytes_name, whole as i64 - part as i64);
}

pub(super) fn percent(part: u64, whole: u64) -> String {
    format!("{:.2}%", if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 })
}

/// Scripts and functions: the engines' memory, and that of their texts.
fn scripts(node: &crate::node::Node, lines: &mut Lines) {
    let figures = node.scripting.figures();
    lines.bytes("used_memory_lua", figures.script_engine);
    lines.field("used_memory_vm_eval", figures.script_engine);
    lines.field("used_memory_scripts_eval", figures.scripts);
    lines.field("number_of_cached_scripts", node.scripting.cache().len());
    lines.field("number_of_functions", figures.function_count);
    lines.field("number_of_libraries", figures.library_count);
    lines.field("used_memory_vm_functions", figures.function_engine);
    lines.bytes("used_memory_vm_total", figures.script_engine + figures.function_engine);
    lines.field("used_memory_functions", figures.libraries);
    lines.bytes("used_memory_scripts", figures.scripts + figures.libraries);
}
