//! INFO stats, commandstats, errorstats, latencystats.

use super::{Lines, Source};
use crate::pubsub::Kind;

pub(super) fn stats(source: &mut Source<'_>, lines: &mut Lines) {
    let (node, rates) = (source.node, source.node.samples.rates());
    let stats = &node.stats;
    lines.field("total_connections_received", stats.total_connections_received.get());
    lines.field("total_commands_processed", stats.total_commands_processed.get());
    lines.field("instantaneous_ops_per_sec", rates.commands);
    lines.field("total_net_input_bytes", stats.total_net_input_bytes.get());
    lines.field("total_net_output_bytes", stats.total_net_output_bytes.get());
    lines.zeros(&["total_net_repl_input_bytes", "total_net_repl_output_bytes"]);
    lines.field("instantaneous_input_kbps", format_args!("{:.2}", rates.input_kib));
    lines.field("instantaneous_output_kbps", format_args!("{:.2}", rates.output_kib));
    lines.field("instantaneous_input_repl_kbps", "0.00");
    lines.field("instantaneous_output_repl_kbps", "0.00");
    lines.field("rejected_connections", stats.rejected_connections.get());
    lines.zeros(&["sync_full", "sync_partial_ok", "sync_partial_err"]);
    lines.field("expired_subkeys", source.sum(|shard| shard.stats.expired_fields));
    lines.field("expired_keys", stats.expired_keys.get() + source.sum(|shard| shard.stats.expired));
    lines.field("expired_stale_perc", "0.00");
    lines.zeros(&["expired_time_cap_reached_count", "expire_cycle_cpu_milliseconds"]);
    lines.field("evicted_keys", stats.evicted_keys.get() + source.sum(|shard| shard.stats.evicted));
    lines.field("evicted_clients", stats.evicted_clients.get());
    lines.field("evicted_scripts", node.scripting.cache().evicted());
    lines.zeros(&["total_eviction_exceeded_time", "current_eviction_exceeded_time"]);
    lines.field("keyspace_hits", stats.keyspace_hits.get() + source.sum(|shard| shard.stats.hits));
    lines.field("keyspace_misses", stats.keyspace_misses.get() + source.sum(|shard| shard.stats.misses));
    lines.field("pubsub_channels", node.pubsub.count(Kind::Channel));
    lines.field("pubsub_patterns", node.pubsub.count(Kind::Pattern));
    lines.field("pubsubshard_channels", node.pubsub.count(Kind::ShardChannel));
    lines.zeros(&["latest_fork_usec", "total_forks"]);
    lines.zeros(&["migrate_cached_sockets", "slave_expires_tracked_keys"]);
    lines.zeros(&["active_defrag_hits", "active_defrag_misses", "active_defrag_key_hits", "active_defrag_key_misses"]);
    lines.zeros(&["total_active_defrag_time", "current_active_defrag_time"]);
    let tracking = node.tracking.counts();
    lines.field("tracking_total_keys", tracking.keys);
    lines.field("tracking_total_items", tracking.items);
    lines.field("tracking_total_prefixes", tracking.prefixes);
    lines.field("unexpected_error_replies", stats.unexpected_error_replies.get());
    lines.field("total_error_replies", stats.total_error_replies.get());
    lines.field("dump_payload_sanitizations", 0);
    lines.field("total_reads_processed", stats.total_reads_processed.get());
    lines.field("total_writes_processed", stats.total_writes_processed.get());
    lines.zeros(&["io_threaded_reads_processed", "io_threaded_writes_processed"]);
    lines.zeros(&["io_threaded_total_prefetch_batches", "io_threaded_total_prefetch_entries"]);
    let (by_query, by_output) =
        (&stats.client_query_buffer_limit_disconnections, &stats.client_output_buffer_limit_disconnections);
    lines.field("client_query_buffer_limit_disconnections", by_query.get());
    lines.field("client_output_buffer_limit_disconnections", by_output.get());
    lines.zeros(&["reply_buffer_shrinks", "reply_buffer_expands"]);
    lines.field("acl_access_denied_auth", stats.acl_access_denied_auth.get());
    lines.zeros(&["acl_access_denied_cmd", "acl_access_denied_key", "acl_access_denied_channel"]);
}

pub(super) fn commandstats(source: &mut Source<'_>, lines: &mut Lines) {
    for (spec, count) in source.node.command_stats.commands() {
        let usec = count.nanos / 1000;
        let per_call = if count.calls == 0 { 0.0 } else { count.nanos as f64 / 1000.0 / count.calls as f64 };
        lines.field(
            &format!("cmdstat_{}", spec.name),
            format_args!(
                "calls={},usec={usec},usec_per_call={per_call:.2},rejected_calls={},failed_calls={}",
                count.calls, count.rejected, count.failed
            ),
        );
    }
}

pub(super) fn errorstats(source: &mut Source<'_>, lines: &mut Lines) {
    for (code, count) in source.node.command_stats.errors() {
        lines.field(&format!("errorstat_{code}"), format_args!("count={count}"));
    }
}

pub(super) fn latencystats(source: &mut Source<'_>, lines: &mut Lines) {
    let live = source.node.configuration.current();
    if !live.config.latency_tracking {
        return;
    }
    for (spec, _) in source.node.command_stats.commands() {
        let Some(command) = spec.command else { continue };
        let (calls, histogram) = source.node.command_stats.histogram(command);
        if calls == 0 {
            continue;
        }
        let percentiles = live.config.latency_percentiles.iter().map(|percent| {
            let nanos = histogram.percentile(*percent);
            format!("p{percent}={}.{:03}", nanos / 1000, nanos % 1000)
        });
        let percentiles: Vec<String> = percentiles.collect();
        lines.field(&format!("latency_percentiles_usec_{}", spec.name), percentiles.join(","));
    }
}
