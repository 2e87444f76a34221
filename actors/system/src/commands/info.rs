//! INFO: what the server is and does, as lines for people and tools. Only fields that mean something here are given; one that
//! counts what does not exist yet is 0 where Redis's clients expect it.

mod counts;
mod data;
mod memory;
mod server;

use crate::client::Client;
use crate::node::Node;
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::{Shard, Shards};
use std::fmt::{Display, Write as _};

/// What a section is written from.
pub(super) struct Source<'a> {
    pub node: &'a Node,
    /// All shards, held.
    pub shards: &'a mut dyn Shards,
    pub now_ms: i64,
}

impl Source<'_> {
    /// A sum over all shards.
    fn sum(&mut self, mut of: impl FnMut(&Shard) -> u64) -> u64 {
        (0..self.node.layout.shards).map(|index| of(self.shards.shard(index))).sum()
    }

    /// Bytes that are in use.
    fn used_memory(&mut self) -> u64 {
        match self.node.allocated_bytes() {
            Some(bytes) => bytes as u64,
            None => self.sum(|shard| shard.bytes() as u64),
        }
    }
}

/// The lines of a section.
#[derive(Default)]
pub(super) struct Lines(String);

impl Lines {
    /// A field.
    fn field(&mut self, name: &str, value: impl Display) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{name}:{value}\r\n");
    }

    /// Fields that count what does not exist here.
    fn zeros(&mut self, names: &[&str]) {
        names.iter().for_each(|name| self.field(name, 0));
    }

    /// A number of bytes, and the same for people.
    fn bytes(&mut self, name: &str, bytes: u64) {
        self.field(name, bytes);
        self.field(&format!("{name}_human"), human(bytes));
    }
}

/// A number of bytes as people read it.
fn human(bytes: u64) -> String {
    let units = [("P", 50), ("T", 40), ("G", 30), ("M", 20), ("K", 10)];
    match units.iter().find(|(_, shift)| bytes >= 1 << shift) {
        Some((unit, shift)) => format!("{:.2}{unit}", bytes as f64 / (1u64 << shift) as f64),
        None => format!("{bytes}B"),
    }
}

/// A section.
struct Section {
    name: &'static str,
    is_default: bool,
    write: fn(&mut Source<'_>, &mut Lines),
}

const fn section(name: &'static str, is_default: bool, write: fn(&mut Source<'_>, &mut Lines)) -> Section {
    Section { name, is_default, write }
}

/// All sections, in the order in which they are answered.
const SECTIONS: &[Section] = &[
    section("Server", true, server::server),
    section("Clients", true, server::clients),
    section("Memory", true, memory::memory),
    section("Persistence", true, data::persistence),
    section("Threads", true, server::threads),
    section("Stats", true, counts::stats),
    section("Replication", true, server::replication),
    section("CPU", true, server::cpu),
    section("Modules", true, |_, _| {}),
    section("Commandstats", false, counts::commandstats),
    section("Errorstats", true, counts::errorstats),
    section("Latencystats", false, counts::latencystats),
    section("Cluster", true, server::cluster),
    section("Keyspace", true, data::keyspace),
    section("Keysizes", true, data::keysizes),
];

/// Whether the request asks for a section.
fn is_wanted(section: &Section, args: &Args<'_>) -> bool {
    let is_named = |word: &[u8]| {
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        is(section.name)
            || is("everything")
            || (is("all") && section.name != "Modules")
            || (is("default") && section.is_default)
    };
    if args.len() == 1 { section.is_default } else { args.from(1).any(is_named) }
}

/// INFO \[section ...\].
pub fn info(client: &mut Client, args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    let (node, begin) = (client.node.clone(), client.reply.len());
    let mut source = Source { node: &node, shards, now_ms: client.now_ms };
    let mut lines = Lines::default();
    for section in SECTIONS.iter().filter(|section| is_wanted(section, args)) {
        if !lines.0.is_empty() {
            lines.0.push_str("\r\n");
        }
        let _ = write!(lines.0, "# {}\r\n", section.name);
        (section.write)(&mut source, &mut lines);
    }
    client.reply.verbatim("txt", lines.0.as_bytes());
    client.note_keyless(begin);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::with_words;

    #[test]
    fn sizes_for_people() {
        let cases = [(0, "0B"), (1023, "1023B"), (1024, "1.00K"), (820_048, "800.83K"), (25_276_510_208, "23.54G")];
        for (bytes, text) in cases {
            assert_eq!(human(bytes), text);
        }
    }

    fn wanted(line: &str) -> Vec<&'static str> {
        with_words(line, |args| {
            SECTIONS.iter().filter(|section| is_wanted(section, args)).map(|section| section.name).collect()
        })
    }

    #[test]
    fn sections_by_name_and_by_group() {
        assert_eq!(wanted("INFO"), wanted("INFO default"));
        assert!(!wanted("INFO").contains(&"Commandstats") && wanted("INFO").contains(&"Keyspace"));
        assert_eq!(wanted("INFO everything").len(), SECTIONS.len());
        assert_eq!(wanted("INFO ALL").len(), SECTIONS.len() - 1);
        assert_eq!(wanted("INFO keyspace CLIENTS nosuch"), ["Clients", "Keyspace"]);
        assert!(wanted("INFO nosuch").is_empty());
    }
}
