//! INFO server, clients, replication, cpu, cluster.

use super::{Lines, Source};
use simurgh_kernel::{process, time};
use simurgh_protocol::config::Supervised;
use std::sync::LazyLock;
use std::sync::atomic::Ordering::Relaxed;

static ABOUT: LazyLock<process::About> = LazyLock::new(process::about);

pub(super) fn about() -> &'static process::About {
    &ABOUT
}

pub(super) fn server(source: &mut Source<'_>, lines: &mut Lines) {
    let (node, live) = (source.node, source.node.configuration.current());
    let config = &live.config;
    let uptime_s = (source.now_ms - node.started_ms).max(0) / 1000;
    lines.field("redis_version", &config.advertised_version);
    lines.field("simurgh_version", env!("CARGO_PKG_VERSION"));
    lines.field("redis_mode", "standalone");
    lines.field("os", &about().os);
    lines.field("arch_bits", usize::BITS);
    lines.field("process_id", about().id);
    lines
        .field("process_supervised", if config.supervised == Supervised::No { "no" } else { config.supervised.name() });
    lines.field("run_id", &node.run_id);
    lines.field("tcp_port", config.port);
    lines.field("server_time_usec", time::wall_us());
    lines.field("uptime_in_seconds", uptime_s);
    lines.field("uptime_in_days", uptime_s / 86_400);
    lines.field("hz", config.hz);
    lines.field("configured_hz", config.hz);
    lines.field("lru_clock", (source.now_ms / 1000) & 0xff_ffff);
    lines.field("executable", &about().executable);
    lines.field("config_file", node.config_file.as_deref().unwrap_or(""));
    lines.field("threads", node.cores);
    lines.field("shards", node.layout.shards);
    lines.field("io_threads_active", 0);
    if config.port != 0 {
        let any = ["*".to_owned(), "-::*".to_owned()];
        let bound = if config.bind.is_empty() { &any[..] } else { &config.bind[..] };
        let bound: String = bound.iter().map(|address| format!("bind={address},")).collect();
        lines.field("listener0", format_args!("name=tcp,{bound}port={}", config.port));
    }
}

pub(super) fn clients(source: &mut Source<'_>, lines: &mut Lines) {
    let clients = source.node.clients.all();
    let largest = |of: &dyn Fn(&crate::clients::ClientShared) -> u64| clients.iter().map(|client| of(client)).max();
    lines.field("connected_clients", clients.len());
    lines.field("cluster_connections", 0);
    lines.field("maxclients", source.node.configuration.current().config.max_clients);
    lines.field("client_recent_max_input_buffer", largest(&|client| client.query_buffer.load(Relaxed)).unwrap_or(0));
    lines.field("client_recent_max_output_buffer", largest(&|client| client.output.load(Relaxed)).unwrap_or(0));
    lines.field("blocked_clients", clients.iter().filter(|client| client.waits()).count());
    lines.field("tracking_clients", source.node.tracking.counts().clients);
    lines.field("pubsub_clients", clients.iter().filter(|client| client.subscriptions.any()).count());
    lines.field("watching_clients", clients.iter().filter(|client| client.watch.load(Relaxed) > 0).count());
    lines.field("clients_in_timeout_table", 0);
    lines.field("total_watched_keys", source.sum(|shard| shard.watched_keys() as u64));
    lines.field("total_blocking_keys", source.sum(|shard| shard.awaited_keys().0 as u64));
    lines.field("total_blocking_keys_on_nokey", source.sum(|shard| shard.awaited_keys().1 as u64));
}

/// The cores, with the connections that each serves.
pub(super) fn threads(source: &mut Source<'_>, lines: &mut Lines) {
    let clients = source.node.clients.all();
    for core in 0..source.node.cores {
        let served = clients.iter().filter(|client| client.core == core).count();
        lines.field(&format!("io_thread_{core}"), format_args!("clients={served}"));
    }
}

pub(super) fn replication(source: &mut Source<'_>, lines: &mut Lines) {
    lines.field("role", "master");
    lines.field("connected_slaves", 0);
    lines.field("master_failover_state", "no-failover");
    lines.field("master_replid", &source.node.replication_id);
    lines.field("master_replid2", "0".repeat(40));
    lines.field("master_repl_offset", 0);
    lines.field("second_repl_offset", -1);
    lines.zeros(&[
        "repl_backlog_active",
        "repl_backlog_size",
        "repl_backlog_first_byte_offset",
        "repl_backlog_histlen",
    ]);
}

pub(super) fn cpu(_source: &mut Source<'_>, lines: &mut Lines) {
    let times = process::cpu_times();
    lines.field("used_cpu_sys", format_args!("{:.6}", times.system));
    lines.field("used_cpu_user", format_args!("{:.6}", times.user));
    lines.field("used_cpu_sys_children", format_args!("{:.6}", times.children_system));
    lines.field("used_cpu_user_children", format_args!("{:.6}", times.children_user));
    let main = process::main_thread_cpu_times();
    lines.field("used_cpu_sys_main_thread", format_args!("{:.6}", main.system));
    lines.field("used_cpu_user_main_thread", format_args!("{:.6}", main.user));
}

pub(super) fn cluster(_source: &mut Source<'_>, lines: &mut Lines) {
    lines.field("cluster_enabled", 0);
}
