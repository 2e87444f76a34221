//! Campaigns: one fresh process for each seed, because what one simulation leaves in a process changes the next.

use std::collections::VecDeque;
use std::io::{IsTerminal, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

use anyhow::Context;

use crate::coverage::Coverage;
use crate::options::Scenario;
use crate::runner::{Ending, TALLY};
use crate::tally::{Tally, all_points};

/// Where each campaign leaves a line.
const LEDGER: &str = "target/sim/ledger.txt";

/// What is run, and how.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The server under test.
    pub scenario: Scenario,
    /// How many processes run at once.
    pub jobs: usize,
    /// What the timelines do without.
    pub without: Vec<String>,
    /// Where the processes run, if not here.
    pub directory: Option<PathBuf>,
}

impl Plan {
    /// The line that replays a seed.
    pub fn replay_line(&self, seed: u64) -> String {
        let mut line = format!("cargo sim -- replay {seed} --scenario {}", self.scenario);
        if !self.without.is_empty() {
            line += &format!(" --without {}", self.without.join(","));
        }
        line
    }

    /// Starts a process for a seed.
    fn start(&self, seed: u64) -> anyhow::Result<Started> {
        let program = std::env::current_exe().context("find this program")?;
        let mut command = Command::new(program);
        command.args(["replay", &seed.to_string(), "--scenario", &self.scenario.to_string()]);
        if !self.without.is_empty() {
            command.args(["--without", &self.without.join(",")]);
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Ok(Started { seed, child: child.context("start a process for a seed")? })
    }

    /// Runs one seed to its end.
    pub fn one(&self, seed: u64) -> anyhow::Result<Output> {
        self.start(seed)?.child.wait_with_output().context("wait for a seed")
    }

    /// Runs every seed, `jobs` at a time, and hands each one's output to `judge` in order, until it says that this is enough.
    pub fn each(
        &self,
        seeds: impl Iterator<Item = u64>,
        mut judge: impl FnMut(u64, &Output) -> Enough,
    ) -> anyhow::Result<()> {
        let mut running = VecDeque::new();
        let mut seeds = seeds.fuse();
        loop {
            while running.len() < self.jobs.max(1)
                && let Some(seed) = seeds.next()
            {
                running.push_back(self.start(seed)?);
            }
            let Some(first) = running.pop_front() else { return Ok(()) };
            let output = first.child.wait_with_output().context("wait for a seed")?;
            if judge(first.seed, &output) == Enough::Yes {
                for mut rest in running {
                    // It may have ended by itself.
                    let _ = rest.child.kill();
                    rest.child.wait().context("wait for a seed")?;
                }
                return Ok(());
            }
        }
    }
}

/// Whether a campaign has seen enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enough {
    /// It goes on.
    No,
    /// It ends.
    Yes,
}

struct Started {
    seed: u64,
    child: Child,
}

/// The ending of a seed's process.
pub fn ending_of(output: &Output) -> Ending {
    Ending::of_code(output.status.code())
}

/// What a seed's process has counted, if it lived to tell.
pub fn tally_of(output: &Output) -> Option<Tally> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().find_map(|line| line.strip_prefix(TALLY)?.parse().ok())
}

/// A bar on the terminal, and nothing elsewhere.
pub struct Progress {
    began: Instant,
    total: u64,
    done: u64,
    failed: u64,
}

impl Progress {
    /// Begins with so many seeds to come.
    #[allow(clippy::disallowed_methods, reason = "the campaign runs in real time, outside of every simulation")]
    pub fn new(total: u64) -> Self {
        Self { began: Instant::now(), total, done: 0, failed: 0 }
    }

    /// One seed more.
    pub fn step(&mut self, has_failed: bool) {
        self.done += 1;
        self.failed += u64::from(has_failed);
        let mut stderr = std::io::stderr();
        if stderr.is_terminal() {
            let filled = usize::try_from(self.done * 30 / self.total.max(1)).unwrap_or(0).min(30);
            let bar = "#".repeat(filled) + &".".repeat(30 - filled);
            let _ = write!(
                stderr,
                "\r[{bar}] {}/{} seeds, {} failed, {:.0} a minute ",
                self.done,
                self.total,
                self.failed,
                self.per_minute()
            );
            if self.done == self.total {
                let _ = writeln!(stderr);
            }
        }
    }

    /// Timelines a minute so far.
    pub fn per_minute(&self) -> f64 {
        self.done as f64 * 60.0 / self.began.elapsed().as_secs_f64().max(0.001)
    }
}

/// Runs seeds, reports those that found something and what no seed reached. Returns the gravest ending.
pub fn run(seeds: impl Iterator<Item = u64>, plan: &Plan) -> anyhow::Result<Ending> {
    let seeds: Vec<u64> = seeds.collect();
    let mut progress = Progress::new(seeds.len() as u64);
    let (mut worst, mut coverage) = (Ending::Passed, Coverage::default());
    plan.each(seeds.iter().copied(), |seed, output| {
        let ending = ending_of(output);
        progress.step(ending != Ending::Passed);
        coverage.note(tally_of(output).as_ref());
        if ending != Ending::Passed {
            report(seed, plan, ending, output);
            worst = if worst.code() > ending.code() { worst } else { ending };
        }
        Enough::No
    })?;
    let sum = &coverage.sum;
    let counts: Vec<String> = sum.fired.iter().map(|(class, times)| format!("{class} {times}")).collect();
    println!("faults while an operation was under way: {}", counts.join(", "));
    println!("timelines that each class struck: {}", coverage.classes());
    if plan.scenario == Scenario::Node {
        println!("{}", coverage.missed());
        let unreached: Vec<&str> = all_points().filter(|point| !sum.reached.contains_key(*point)).collect();
        println!("reached by no seed: {}", if unreached.is_empty() { "nothing".into() } else { unreached.join("; ") });
    }
    let Tally { operations, linearized, undecided, serialized, .. } = sum;
    println!(
        "{operations} operations answered, {linearized} judged for linearizability, {undecided} undecided, {serialized} steps of \
         transactions judged for serializability"
    );
    let summary = format!(
        "{} seeds of {}, {} failed, {:.0} a minute",
        progress.done,
        plan.scenario,
        progress.failed,
        progress.per_minute()
    );
    println!("{summary}");
    note_in_ledger(&format!("{}: {summary}; {sum}; timelines: {}", seeds_line(&seeds), coverage.classes()));
    Ok(worst)
}

fn seeds_line(seeds: &[u64]) -> String {
    match seeds {
        [first, .., last] => format!("{first}..{}", last + 1),
        [one] => format!("{one}"),
        [] => "none".into(),
    }
}

/// Leaves a line about a campaign, with the commit that it ran on. Where there is no such place, nothing is lost but the line.
#[allow(clippy::disallowed_methods, reason = "a file of the campaign's, outside of every simulation")]
pub fn note_in_ledger(what: &str) {
    let commit = Command::new("git").args(["rev-parse", "--short", "HEAD"]).output();
    let commit = commit.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    let opened = std::fs::OpenOptions::new().create(true).append(true).open(LEDGER);
    if let Ok(mut ledger) = opened {
        let _ = writeln!(ledger, "{commit} {what}");
    }
}

/// The seeds that have found something before: the numbers at which lines of `sim/seeds.txt` begin.
pub fn regressions() -> impl Iterator<Item = u64> {
    let lines = include_str!("../seeds.txt").lines();
    lines.filter_map(|line| line.split(' ').next()?.parse().ok())
}

fn report(seed: u64, plan: &Plan, ending: Ending, output: &Output) {
    println!("{ending:?}: replay with `{} --trace`", plan.replay_line(seed));
    for text in [&output.stdout, &output.stderr] {
        for line in String::from_utf8_lossy(text).lines() {
            println!("    {}", line.chars().take(300).collect::<String>());
        }
    }
}

/// Tests the simulator: how many seeds it takes to find each planted mistake. All must be found.
pub fn mutants(seeds: &Range<u64>, scenarios: impl Iterator<Item = Scenario>, plan: &Plan) -> anyhow::Result<Ending> {
    let (mut counts, mut missed) = (Vec::new(), 0);
    for scenario in scenarios {
        let plan = Plan { scenario, ..plan.clone() };
        let (mut found, mut run) = (None, 0_u64);
        plan.each(seeds.clone(), |_, output| {
            run += 1;
            let ending = ending_of(output);
            if ending != Ending::Passed {
                found = Some(ending);
                return Enough::Yes;
            }
            Enough::No
        })?;
        match found {
            Some(ending) => println!("{scenario}: found by timeline {run} ({ending:?})"),
            None => println!("{scenario}: not found by {run} timelines"),
        }
        missed += u32::from(found.is_none());
        counts.push(if found.is_some() { run } else { u64::MAX });
    }
    counts.sort_unstable();
    let median = counts.get(counts.len() / 2).copied().unwrap_or(0);
    let summary = format!("{} planted mistakes, {missed} not found, median {median} timelines", counts.len());
    println!("{summary}");
    note_in_ledger(&format!("mutants {}..{}: {summary}", seeds.start, seeds.end));
    Ok(if missed == 0 { Ending::Passed } else { Ending::Broken })
}
