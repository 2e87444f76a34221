//! INFO persistence, keyspace, keysizes.

use super::memory::percent;
use super::{Lines, Source};
use crate::persistence::Job;
use simurgh_storage::{Database, KeySizes};
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// Keys with an expiry that are looked at in each shard for `avg_ttl`.
const TTL_SAMPLES: usize = 16;

/// How long loading will take if it goes on as it did; 1 before that can be told.
fn eta_seconds(elapsed_s: u64, read: u64, total: u64) -> u64 {
    let left = total.saturating_sub(read);
    if elapsed_s == 0 || read == 0 { 1 } else { left.saturating_mul(elapsed_s) / read }
}

pub(super) fn persistence(source: &mut Source<'_>, lines: &mut Lines) {
    let (node, live) = (source.node, source.node.configuration.current());
    let is_loading = node.loading.is_loading.load(Acquire);
    lines.field("loading", u8::from(is_loading));
    lines.field("async_loading", 0);
    let state = node.persistence.state();
    let active = state.active.clone();
    let (held, peak) = active.as_ref().map_or((0, 0), |active| (active.plan.held_bytes(), active.plan.peak_bytes()));
    lines.field("current_cow_peak", peak);
    lines.field("current_cow_size", held);
    lines.field("current_cow_size_age", 0);
    let (keys, total) = active.as_ref().map_or((0, 0), |active| (active.plan.keys(), active.keys_total));
    lines.field("current_fork_perc", percent(keys, total).trim_end_matches('%'));
    lines.field("current_save_keys_processed", keys);
    lines.field("current_save_keys_total", total);
    let now_s = source.now_ms / 1000;
    let seconds_of = |job| match &active {
        Some(active) if active.job == job => (now_s - active.began_ms / 1000).max(0),
        Some(_) | None => -1,
    };
    let status = |is_ok| if is_ok { "ok" } else { "err" };
    lines.field("rdb_changes_since_last_save", node.stats.changes.get().saturating_sub(state.changes_saved));
    lines.field("rdb_bgsave_in_progress", u8::from(state.is_active(Job::Save)));
    lines.field("rdb_last_save_time", state.last_save_s);
    lines.field("rdb_last_bgsave_status", status(state.saves.is_ok));
    lines.field("rdb_last_bgsave_time_sec", state.saves.seconds);
    lines.field("rdb_current_bgsave_time_sec", seconds_of(Job::Save));
    lines.field("rdb_saves", state.saves.count);
    lines.field("rdb_last_cow_size", state.saves.held_bytes);
    lines.field("rdb_last_load_keys_expired", node.loading.keys_expired.load(Relaxed));
    lines.field("rdb_last_load_keys_loaded", node.loading.keys_loaded.load(Relaxed));
    lines.field("aof_enabled", u8::from(live.config.append_only));
    lines.field("aof_rewrite_in_progress", u8::from(state.is_rewriting()));
    lines.field("aof_rewrite_scheduled", u8::from(state.rewrite_scheduled));
    lines.field("aof_last_rewrite_time_sec", state.rewrites.seconds);
    lines.field("aof_current_rewrite_time_sec", seconds_of(Job::Rewrite));
    lines.field("aof_last_bgrewrite_status", status(state.rewrites.is_ok));
    lines.field("aof_rewrites", state.rewrites.count);
    lines.field("aof_rewrites_consecutive_failures", state.rewrites.failures);
    lines.field("aof_last_write_status", status(!node.log.refuses()));
    lines.field("aof_last_cow_size", state.rewrites.held_bytes);
    lines.zeros(&["module_fork_in_progress", "module_fork_last_cow_size"]);
    if live.config.append_only {
        let (size, backlog) = (node.aof_earlier_size.load(Relaxed) + node.aof_size.load(Relaxed), node.log.backlog());
        lines.field("aof_current_size", size);
        lines.field("aof_base_size", node.aof_base_size.load(Relaxed));
        lines.field("aof_pending_rewrite", u8::from(state.rewrite_scheduled));
        lines.field("aof_buffer_length", backlog);
        lines.field("aof_pending_bio_fsync", 0);
        lines.field("aof_delayed_fsync", 0);
        lines.field("aof_position", node.log.end());
        lines.field("aof_safe_position", node.log.safe());
        lines.field("aof_synced_position", node.log.synced());
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

pub(super) fn keysizes(source: &mut Source<'_>, lines: &mut Lines) {
    for database in 0..source.node.layout.databases {
        let mut sum = KeySizes::default();
        for index in 0..source.node.layout.shards {
            source.shards.shard(index).database(database).sizes().into_iter().for_each(|sizes| sum.merge(sizes));
        }
        for (name, text) in sum.lines() {
            lines.field(&format!("db{database}_distrib_{name}"), text);
        }
    }
}

/// The expiries of keys that are spread over those that have one.
fn sampled_expiries(database: &Database) -> impl Iterator<Item = i64> + '_ {
    let count = database.expiring();
    let step = count.div_ceil(TTL_SAMPLES).max(1);
    (0..count).step_by(step).filter_map(|rank| database.nth_expiring(rank)?.expires_at())
}
