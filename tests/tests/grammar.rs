//! Every command and subcommand of the table is made by the grammar of the differential run, or is on the list of those left out,
//! with why.

use simurgh_protocol::command::top_level;
use simurgh_tests::grammar::{Dialect, Operation, Words, stream};
use std::collections::BTreeSet;

const OWN_PROCESS: &str =
    "tells of the process, its memory, its clock or its connections, which two servers cannot have alike";
const FILES: &str = "writes files; the exchange of files and the tests of snapshots have it";
const ENDS: &str = "ends or holds the connection or the server, and with it the stream";
const PROSE: &str = "answers prose, which is ours";
const MODULES: &str = "is refused, here after it was queued";
const USERS: &str = "users are not built yet";

/// What no stream has, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    ("bgrewriteaof", FILES),
    ("bgsave", FILES),
    ("save", FILES),
    ("lastsave", OWN_PROCESS),
    ("info", OWN_PROCESS),
    ("lolwut", "paints a picture of its own"),
    ("monitor", ENDS),
    ("quit", ENDS),
    ("debug", "looks into the server's own layout; cases have what is common"),
    ("pfselftest", "takes a second"),
    ("acl|load", USERS),
    ("acl|save", USERS),
    ("acl|setuser", USERS),
    ("client|durability", "is ours alone"),
    ("client|id", OWN_PROCESS),
    ("client|info", OWN_PROCESS),
    ("command|count", "counts what each server has"),
    ("config|rewrite", FILES),
    ("function|dump", "has a payload of the server's own version"),
    ("latency|doctor", PROSE),
    ("latency|histogram", OWN_PROCESS),
    ("memory|doctor", PROSE),
    ("memory|malloc-stats", OWN_PROCESS),
    ("memory|stats", OWN_PROCESS),
    ("module|load", MODULES),
    ("module|loadex", MODULES),
    ("module|unload", MODULES),
    ("object|refcount", "counts what each server shares"),
    ("script|show", "Valkey's server that is compared has it; a case has it too"),
];

/// Streams of each dialect that are looked at: what comes rarely has to come in these.
const STREAMS: u64 = 300;

fn note(names: &mut BTreeSet<String>, words: &Words) {
    let lower = |word: &Vec<u8>| String::from_utf8_lossy(word).to_ascii_lowercase();
    names.insert(lower(&words[0]));
    if let Some(second) = words.get(1) {
        names.insert(format!("{}|{}", lower(&words[0]), lower(second)));
    }
}

fn made() -> BTreeSet<String> {
    let mut names = BTreeSet::from(["dump".to_owned(), "scan".to_owned()]);
    for dialect in [Dialect::Redis82, Dialect::Redis810, Dialect::Valkey91] {
        for operation in (0..STREAMS).flat_map(|seed| stream(seed, 500, dialect)) {
            match operation {
                Operation::Command { arguments, .. } => note(&mut names, &arguments),
                Operation::Wake { waiting: first, actions, .. }
                | Operation::Listen { listener: first, actions, .. } => {
                    first.iter().chain(&actions).for_each(|words| note(&mut names, words));
                }
                Operation::ScanAll { .. } | Operation::Exchange { .. } => {}
            }
        }
    }
    names
}

#[test]
fn every_command_is_made_or_left_out_with_a_reason() {
    let made = made();
    let left_out: BTreeSet<&str> = LEFT_OUT.iter().map(|(name, _)| *name).collect();
    let all = top_level()
        .iter()
        .flat_map(|spec| spec.subcommands.iter().chain((spec.subcommands.is_empty()).then_some(spec)));
    // What HELP says is prose too.
    let is_left_out = |name: &str| {
        left_out.contains(name) || left_out.contains(name.split('|').next().unwrap_or(name)) || name.ends_with("|help")
    };
    let missing: Vec<&str> =
        all.map(|spec| spec.name).filter(|name| !made.contains(*name) && !is_left_out(name)).collect();
    assert!(missing.is_empty(), "the grammar never makes {missing:?}");
    let both: Vec<&&str> = left_out.iter().filter(|name| made.contains(**name)).collect();
    assert!(both.is_empty(), "{both:?} are made, and said to be left out");
}
