//! LATENCY: when the server was slow, by kind of event, and how the times of each command are distributed.

use crate::client::Client;
use crate::command_stats::write_histogram;
use crate::node::Node;
use simurgh_kernel::time;
use simurgh_protocol::command::replies::help as write_help;
use simurgh_protocol::command::{Command, CommandFlags, CommandSpec, lookup_full_name};
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::Shards;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::sync::{MutexGuard, PoisonError};

/// How many samples of an event are kept.
const SAMPLES_MAX: usize = 160;
/// How many columns LATENCY GRAPH has.
const COLUMNS: usize = 80;
/// How many rows a graph has; each tells three heights apart.
const ROWS: usize = 4;

/// The slowest of one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    time_s: i64,
    millis: u64,
}

/// The samples of one kind of event, oldest first.
#[derive(Debug, Default)]
struct Event {
    samples: VecDeque<Sample>,
    /// The slowest ever.
    millis_max: u64,
}

impl Event {
    fn add(&mut self, time_s: i64, millis: u64) {
        self.millis_max = self.millis_max.max(millis);
        match self.samples.back_mut().filter(|last| last.time_s == time_s) {
            Some(last) => last.millis = last.millis.max(millis),
            None => self.samples.push_back(Sample { time_s, millis }),
        }
        if self.samples.len() > SAMPLES_MAX {
            self.samples.pop_front();
        }
    }

    fn average(&self) -> u64 {
        let sum: u64 = self.samples.iter().map(|sample| sample.millis).sum();
        sum / self.samples.len().max(1) as u64
    }

    /// How far samples are from the average, on average.
    fn deviation(&self) -> u64 {
        let average = self.average();
        let sum: u64 = self.samples.iter().map(|sample| sample.millis.abs_diff(average)).sum();
        sum / self.samples.len().max(1) as u64
    }

    /// Seconds between two samples, on average.
    fn period(&self, now_s: i64) -> f64 {
        let since = self.samples.front().map_or(0, |first| now_s.saturating_sub(first.time_s));
        since as f64 / self.samples.len().max(1) as f64
    }
}

/// What LATENCY knows: its events by name.
#[derive(Debug, Default)]
pub struct LatencyMonitor {
    events: BTreeMap<&'static str, Event>,
}

fn lock(node: &Node) -> MutexGuard<'_, LatencyMonitor> {
    node.latency.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A command took so long that it is an event.
#[cold]
pub(crate) fn record(node: &Node, _client: &Client, command: Command, millis: u64) {
    let is_fast = command.spec().flags.contains(CommandFlags::FAST);
    record_event(node, if is_fast { "fast-command" } else { "command" }, millis);
}

/// Notes an event that took long.
pub(crate) fn record_event(node: &Node, name: &'static str, millis: u64) {
    lock(node).events.entry(name).or_default().add(time::wall_ms() / 1000, millis);
}

/// Notes an event if it took as long as `latency-monitor-threshold` says.
pub(crate) fn measured(node: &Node, name: &'static str, nanos: u64) {
    let millis = nanos / 1_000_000;
    if millis == 0 {
        return;
    }
    let least = node.configuration.current().config.latency_monitor_milliseconds_least;
    if least.is_some_and(|least| millis >= least.max(1)) {
        record_event(node, name, millis);
    }
}

fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// LATENCY LATEST.
pub fn latest(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let node = client.node.clone();
    let monitor = lock(&node);
    client.reply.array(monitor.events.len());
    for (name, event) in &monitor.events {
        let last = event.samples.back().copied().unwrap_or(Sample { time_s: 0, millis: 0 });
        client.reply.array(4);
        client.reply.bulk(name.as_bytes());
        client.reply.integer(last.time_s);
        client.reply.integer(integer(last.millis));
        client.reply.integer(integer(event.millis_max));
    }
    Ok(())
}

/// The event that an argument names.
fn named<'a>(monitor: &'a LatencyMonitor, name: &[u8]) -> Option<(&'static str, &'a Event)> {
    let found = monitor.events.iter().find(|(known, _)| known.as_bytes() == name);
    found.map(|(name, event)| (*name, event))
}

/// LATENCY HISTORY event.
pub fn history(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let node = client.node.clone();
    let monitor = lock(&node);
    let Some((_, event)) = named(&monitor, args.at(2)) else {
        client.reply.array(0);
        return Ok(());
    };
    client.reply.array(event.samples.len());
    for sample in &event.samples {
        client.reply.array(2);
        client.reply.integer(sample.time_s);
        client.reply.integer(integer(sample.millis));
    }
    Ok(())
}

/// LATENCY RESET \[event ...\].
pub fn reset(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let node = client.node.clone();
    let mut monitor = lock(&node);
    let before = monitor.events.len();
    if args.len() == 2 {
        monitor.events.clear();
    } else {
        monitor.events.retain(|name, _| !args.from(2).any(|other| other == name.as_bytes()));
    }
    client.reply.count(before - monitor.events.len());
    Ok(())
}

/// LATENCY GRAPH event.
pub fn graph(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let node = client.node.clone();
    let monitor = lock(&node);
    let Some((name, event)) = named(&monitor, args.at(2)) else {
        return Err(CommandError::repeats("ERR No samples available for event '", args.at(2), "'"));
    };
    client.reply.verbatim("txt", draw(name, event, time::wall_ms() / 1000).as_bytes());
    Ok(())
}

/// How long ago a sample was, in one unit.
fn age(seconds: i64) -> String {
    match seconds {
        ..60 => format!("{}s", seconds.max(0)),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// The samples as columns of characters, with the age of each below it.
fn draw(name: &str, event: &Event, now_s: i64) -> String {
    let from = event.samples.len().saturating_sub(COLUMNS);
    let samples: Vec<Sample> = event.samples.iter().skip(from).copied().collect();
    let low = samples.iter().map(|sample| sample.millis).min().unwrap_or(0);
    let high = samples.iter().map(|sample| sample.millis).max().unwrap_or(0);
    let mut out = format!("{name} - high {high} ms, low {low} ms (all time high {} ms)\n", event.millis_max);
    out.push_str(&"-".repeat(COLUMNS));
    out.push('\n');
    let top = ROWS as u64 * 3 - 1;
    let height = |sample: &Sample| (sample.millis - low).saturating_mul(top).checked_div(high - low).unwrap_or(0);
    for row in (0..ROWS as u64).rev() {
        for sample in &samples {
            let height = height(sample);
            out.push(if height / 3 == row {
                ['_', 'o', '#'][(height % 3) as usize]
            } else if height / 3 > row {
                '|'
            } else {
                ' '
            });
        }
        out.push('\n');
    }
    let ages: Vec<String> = samples.iter().map(|sample| age(now_s - sample.time_s)).collect();
    out.push('\n');
    for line in 0..ages.iter().map(String::len).max().unwrap_or(0) {
        out.extend(ages.iter().map(|age| age.chars().nth(line).unwrap_or(' ')));
        out.push('\n');
    }
    out
}

/// LATENCY DOCTOR.
pub fn doctor(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let is_on = client.live().config.latency_monitor_milliseconds_least.is_some();
    let text = explain(&lock(&client.node), is_on, time::wall_ms() / 1000);
    client.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

fn explain(monitor: &LatencyMonitor, is_on: bool, now_s: i64) -> String {
    if monitor.events.is_empty() {
        return if is_on {
            "No event took longer than the threshold since the server started or LATENCY RESET was called.\n".to_owned()
        } else {
            "Latency monitoring is off. CONFIG SET latency-monitor-threshold <milliseconds> turns it on.\n".to_owned()
        };
    }
    let mut out = "Some events took longer than the threshold:\n\n".to_owned();
    for (number, (name, event)) in monitor.events.iter().enumerate() {
        let _ = writeln!(
            out,
            "{}. {name}: {} latency spikes (average {}ms, mean deviation {}ms, period {:.2} sec). Worst all time event {}ms.",
            number + 1,
            event.samples.len(),
            event.average(),
            event.deviation(),
            event.period(now_s),
            event.millis_max
        );
    }
    out.push_str("\nWhat to look at:\n\n");
    if monitor.events.keys().any(|name| name.ends_with("command")) {
        out.push_str(
            "- SLOWLOG GET lists the commands that took long; those that look at every key are the usual cause.\n",
        );
    }
    if monitor.events.keys().any(|name| name.starts_with("aof")) {
        out.push_str("- The disk of the log is slow: see appendfsync, and what else writes to that disk.\n");
    }
    out
}

/// LATENCY HISTOGRAM \[command ...\].
pub fn histogram(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let mut wanted: Vec<&'static CommandSpec> = Vec::new();
    if args.len() == 2 {
        wanted.extend((0..Command::COUNT).map(crate::command_stats::spec_of));
    }
    for name in args.from(2) {
        let Some(spec) = lookup_full_name(name) else { continue };
        wanted.push(spec);
        wanted.extend(spec.subcommands);
    }
    let node = client.node.clone();
    let mut found = Vec::new();
    for spec in wanted {
        let Some(command) = spec.command else { continue };
        let (calls, histogram) = node.command_stats.histogram(command);
        if calls > 0 {
            found.push((spec.name, calls, histogram));
        }
    }
    client.reply.map(found.len());
    for (name, calls, histogram) in found {
        client.reply.bulk(name.as_bytes());
        client.reply.map(2);
        client.reply.bulk(b"calls");
        client.reply.integer(integer(calls));
        client.reply.bulk(b"histogram_usec");
        write_histogram(&histogram, &mut client.reply);
    }
    Ok(())
}

/// LATENCY HELP.
pub fn help(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let lines = [
        "DOCTOR",
        "    Explain the latency in words.",
        "GRAPH <event>",
        "    Draw the samples of an event.",
        "HISTORY <event>",
        "    List the samples of an event.",
        "LATEST",
        "    List the last sample of each event.",
        "RESET [<event> ...]",
        "    Forget the samples of the named events, or of all.",
        "HISTOGRAM [COMMAND ...]",
        "    Answer how the times of the named commands, or of all, are distributed.",
    ];
    write_help("LATENCY", &lines, &mut client.reply);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_one_sample_and_old_ones_go() {
        let mut event = Event::default();
        event.add(10, 5);
        event.add(10, 9);
        event.add(10, 7);
        assert_eq!(event.samples, [Sample { time_s: 10, millis: 9 }]);
        (11..400).for_each(|second| event.add(second, 1));
        assert_eq!(event.samples.len(), SAMPLES_MAX);
        assert_eq!(event.millis_max, 9);
    }

    #[test]
    fn a_graph_has_rows_and_ages() {
        let mut event = Event::default();
        event.add(100, 10);
        event.add(160, 40);
        let drawn = draw("command", &event, 170);
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines[0], "command - high 40 ms, low 10 ms (all time high 40 ms)");
        assert_eq!(lines[2..7], [" #", " |", " |", "_|", ""]);
        assert_eq!(lines[7..], ["11", "m0", " s"]);
    }

    #[test]
    fn words_for_people() {
        let mut monitor = LatencyMonitor::default();
        assert!(explain(&monitor, false, 0).contains("is off"));
        assert!(explain(&monitor, true, 0).starts_with("No event"));
        monitor.events.entry("command").or_default().add(10, 50);
        let text = explain(&monitor, true, 11);
        assert!(text.contains("1. command: 1 latency spikes (average 50ms, mean deviation 0ms, period 1.00 sec)."));
        assert!(text.contains("SLOWLOG GET") && !text.contains("appendfsync"));
    }
}
