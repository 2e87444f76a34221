//! MEMORY: what keys and the server take (<https://redis.io/docs/latest/commands/memory-usage/>).

use crate::client::Client;
use crate::memory::AllocatorFigures;
use simurgh_kernel::process;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::Shards;
use std::sync::atomic::Ordering::Relaxed;

const HELP: [&str; 14] = [
    "MEMORY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "DOCTOR",
    "    Return memory problems reports.",
    "MALLOC-STATS",
    "    Return internal statistics report from the memory allocator.",
    "PURGE",
    "    Attempt to purge dirty pages for reclamation by the allocator.",
    "STATS",
    "    Return information about the memory usage of the server.",
    "USAGE <key> [SAMPLES <count>]",
    "    Return memory in bytes used by <key> and its value. Nested values are",
    "    sampled up to <count> times (default: 5, 0 means sample all).",
    "HELP",
    "    Print this help.",
];
const NO_ALLOCATOR: &str = "Stats not supported for the current allocator";
/// Below this, ratios say nothing.
const LITTLE: usize = 5 << 20;
/// Bytes of a bucket of seven keys, shared by those it holds on the average.
const TABLE_BYTES_PER_KEY: usize = 12;

/// MEMORY HELP.
pub fn help(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    client.reply.array(HELP.len());
    HELP.iter().for_each(|line| client.reply.simple(line));
    Ok(())
}

/// MEMORY USAGE key \[SAMPLES count\]: the allocation of the entry, everything that belongs to it, and its share of
/// the table. All elements are counted at all times, so no sample is taken.
pub fn usage(client: &mut Client, args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    let mut index = 3;
    while index < args.len() {
        if !args.is(index, "SAMPLES") || index + 1 >= args.len() {
            return Err(CommandError::Syntax);
        }
        let samples = parse_i64(args.at(index + 1)).ok_or(CommandError::NotAnInteger)?;
        if samples < 0 {
            return Err(CommandError::Syntax);
        }
        index += 2;
    }
    client.with_context(shards, None, |cx| {
        let key = cx.key(args.at(2));
        match cx.inspect_untold(&key).map(|entry| entry.memory() + TABLE_BYTES_PER_KEY) {
            Some(bytes) => cx.reply.count(bytes),
            None => cx.reply.null(),
        }
    });
    Ok(())
}

/// MEMORY MALLOC-STATS.
pub fn malloc_stats(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    match client.node.allocator {
        Some(allocator) => client.reply.verbatim("txt", (allocator.report)().as_bytes()),
        None => client.reply.bulk(NO_ALLOCATOR.as_bytes()),
    }
    Ok(())
}

/// MEMORY PURGE.
pub fn purge(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    if let Some(allocator) = client.node.allocator {
        (allocator.purge)();
    }
    client.reply.ok();
    Ok(())
}

/// What MEMORY STATS and MEMORY DOCTOR speak of.
struct Picture {
    used: usize,
    peak: usize,
    startup: usize,
    clients: usize,
    client_count: usize,
    log: usize,
    tables: usize,
    keys: usize,
    databases: Vec<(usize, usize)>,
    allocator: AllocatorFigures,
}

impl Picture {
    fn overhead(&self) -> usize {
        self.startup + self.clients + self.log + self.tables
    }

    fn dataset(&self) -> usize {
        self.used.saturating_sub(self.overhead())
    }
}

fn look(client: &Client, shards: &mut dyn Shards) -> Picture {
    let node = &client.node;
    let mut databases = vec![0usize; node.layout.databases];
    let mut entries = 0;
    for index in 0..node.layout.shards {
        let shard = shards.shard(index);
        entries += shard.bytes();
        for (number, keys) in databases.iter_mut().enumerate() {
            *keys += shard.database(number).len();
        }
    }
    let keys: usize = databases.iter().sum();
    let used = node.allocated_bytes().unwrap_or(entries);
    let figures = node.allocator.map_or(AllocatorFigures::default(), |allocator| (allocator.figures)());
    Picture {
        used,
        peak: node.memory.peak(used),
        startup: node.memory.startup.load(Relaxed),
        clients: usize::try_from(node.memory.clients.load(Relaxed)).unwrap_or(0),
        client_count: node.clients.len(),
        log: node.log.memory(),
        tables: keys * TABLE_BYTES_PER_KEY,
        keys,
        databases: databases.into_iter().enumerate().filter(|(_, keys)| *keys > 0).collect(),
        allocator: figures,
    }
}

fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// MEMORY STATS.
pub fn stats(client: &mut Client, _args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    let picture = look(client, shards);
    let figures = picture.allocator;
    let scripts = client.node.scripting.figures();
    let bytes = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let numbers = [
        ("peak.allocated", picture.peak),
        ("total.allocated", picture.used),
        ("startup.allocated", picture.startup),
        ("replication.backlog", 0),
        ("replica.fullsync.buffer", 0),
        ("clients.slaves", 0),
        ("clients.normal", picture.clients),
        ("cluster.links", 0),
        ("aof.buffer", picture.log),
        ("lua.caches", bytes(scripts.scripts)),
        ("functions.caches", bytes(scripts.libraries)),
        ("script.VMs", bytes(scripts.script_engine + scripts.function_engine)),
    ];
    let more = [
        ("overhead.db.hashtable.lut", picture.tables),
        ("overhead.db.hashtable.rehashing", 0),
        ("overhead.total", picture.overhead()),
        ("db.dict.rehashing.count", 0),
        ("keys.count", picture.keys),
        ("keys.bytes-per-key", picture.used.saturating_sub(picture.startup).checked_div(picture.keys).unwrap_or(0)),
        ("dataset.bytes", picture.dataset()),
    ];
    let allocator = [
        ("allocator.allocated", figures.allocated),
        ("allocator.active", figures.active),
        ("allocator.resident", figures.resident),
        ("allocator.muzzy", figures.muzzy),
    ];
    let net = picture.used.saturating_sub(picture.startup);
    let reply = &mut client.reply;
    reply.map(numbers.len() + picture.databases.len() + more.len() + 2 + allocator.len() + 8);
    let number = |reply: &mut simurgh_protocol::Reply, (name, value): (&str, usize)| {
        reply.bulk(name.as_bytes());
        reply.count(value);
    };
    numbers.into_iter().for_each(|pair| number(reply, pair));
    for (database, keys) in &picture.databases {
        reply.bulk(format!("db.{database}").as_bytes());
        reply.map(2);
        number(reply, ("overhead.hashtable.main", keys * TABLE_BYTES_PER_KEY));
        number(reply, ("overhead.hashtable.expires", 0));
    }
    more.into_iter().for_each(|pair| number(reply, pair));
    reply.bulk(b"dataset.percentage");
    reply.double(100.0 * ratio(picture.dataset(), net));
    reply.bulk(b"peak.percentage");
    reply.double(100.0 * ratio(picture.used, picture.peak));
    allocator.into_iter().for_each(|pair| number(reply, pair));
    reply.bulk(b"allocator-fragmentation.ratio");
    reply.double(ratio(figures.active, figures.allocated));
    number(reply, ("allocator-fragmentation.bytes", figures.active.saturating_sub(figures.allocated)));
    reply.bulk(b"allocator-rss.ratio");
    reply.double(ratio(figures.resident, figures.active));
    number(reply, ("allocator-rss.bytes", figures.resident.saturating_sub(figures.active)));
    let resident = usize::try_from(process::resident_bytes()).unwrap_or(usize::MAX);
    reply.bulk(b"rss-overhead.ratio");
    reply.double(ratio(resident, figures.resident));
    number(reply, ("rss-overhead.bytes", resident.saturating_sub(figures.resident)));
    reply.bulk(b"fragmentation");
    reply.double(ratio(resident, picture.used));
    number(reply, ("fragmentation.bytes", resident.saturating_sub(picture.used)));
    Ok(())
}

/// MEMORY DOCTOR: what in these numbers deserves attention, in words.
pub fn doctor(client: &mut Client, _args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    let picture = look(client, shards);
    let text = diagnose(&picture);
    client.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

fn diagnose(picture: &Picture) -> String {
    if picture.used < LITTLE {
        return "Very little memory is in use: there is nothing to find in so little. Fill in some data and ask again."
            .to_owned();
    }
    let mut found = Vec::new();
    if ratio(picture.peak, picture.used) > 1.5 {
        found.push(
            "Peak memory: the server has used more than 1.5 times what it uses now. The allocator keeps what was freed for \
             later use; MEMORY PURGE gives it back to the system.",
        );
    }
    if ratio(picture.allocator.active, picture.allocator.allocated) > 1.4 {
        found.push(
            "Fragmentation: the pages in use hold more than 1.4 times what is allocated in them, as after many keys were \
             removed or have changed their size.",
        );
    }
    if picture.client_count > 0 && picture.clients / picture.client_count > 200 * 1024 {
        found.push(
            "Client buffers: the clients take more than 200 kB each on the average. CLIENT LIST shows which, by tot-mem; \
             client-output-buffer-limit and maxmemory-clients cut them.",
        );
    }
    if found.is_empty() {
        return "Nothing unusual was found in the use of memory.".to_owned();
    }
    found.join("\n\n")
}
