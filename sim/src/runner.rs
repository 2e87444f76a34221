//! The seed runner: one fresh process for each seed, because what one simulation leaves in a process changes the next.

use std::collections::VecDeque;
use std::ops::Range;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use anyhow::Context;
use simurgh_kernel::core::NodeStopped;
use simurgh_kernel::simulation;

use crate::options::{FLAWS, MISTAKES, Options, Scenario};
use crate::timeline;
use crate::trace::Trace;
use crate::world::Finding;

/// How a seed's process says how many clients met a busy shard.
const QUEUED: &str = "clients queued at a shard: ";

/// How a seed's process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Nothing was found.
    Passed,
    /// A promise was broken.
    Broken,
    /// Progress stopped.
    Stuck,
    /// Something panicked.
    Crashed,
    /// The same seed did not give the same trace.
    Divergent,
}

impl Ending {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Ending::Passed => 0,
            Ending::Broken => 10,
            Ending::Stuck => 11,
            Ending::Crashed => 12,
            Ending::Divergent => 13,
        }
    }

    fn of_code(code: Option<i32>) -> Self {
        match code {
            Some(0) => Ending::Passed,
            Some(10) => Ending::Broken,
            Some(11) => Ending::Stuck,
            Some(_) | None => Ending::Crashed,
        }
    }
}

/// Runs one timeline in this process.
pub fn one(seed: u64, scenario: Scenario, print: bool) -> Ending {
    fail_on_panic();
    if print {
        // The server's own words, between the events.
        tracing_subscriber::fmt()
            .without_time()
            .with_ansi(false)
            .with_max_level(tracing_subscriber::filter::LevelFilter::INFO)
            .init();
    }
    let options = Options::draw(seed, scenario);
    println!("{options}");
    let trace = Trace::new(print);
    let latency = Duration::from_millis(1)..Duration::from_micros(options.latency_us_max);
    let noted = trace.clone();
    let (findings, queued) = simulation::run(seed, latency, || timeline::run(options, noted));
    for (finding, what) in &findings {
        println!("{finding:?}: {what}");
    }
    println!("{QUEUED}{queued}");
    println!("hash {:016x} of {} events", trace.hash(), trace.count());
    match findings.iter().map(|(finding, _)| *finding).min() {
        None => Ending::Passed,
        Some(Finding::Broken) => Ending::Broken,
        Some(Finding::Stuck) => Ending::Stuck,
    }
}

/// Actors catch panics, and a restarted actor hides them; in a simulation every panic is a finding.
#[allow(clippy::disallowed_methods, reason = "the run is over, and nothing of it may go on")]
fn fail_on_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload().is::<NodeStopped>() {
            return;
        }
        usual(panic);
        std::process::exit(i32::from(Ending::Crashed.code()));
    }));
}

struct Started {
    seed: u64,
    child: Child,
}

fn start(seed: u64, scenario: Scenario) -> anyhow::Result<Started> {
    let program = std::env::current_exe().context("find this program")?;
    let child = Command::new(program)
        .args(["replay", &seed.to_string(), "--scenario", &scenario.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("start a process for a seed")?;
    Ok(Started { seed, child })
}

/// Runs every seed, `jobs` at a time, and hands each one's output to `judge` in order.
fn each(
    seeds: impl Iterator<Item = u64>,
    scenario: Scenario,
    jobs: usize,
    mut judge: impl FnMut(u64, &Output),
) -> anyhow::Result<()> {
    let mut running = VecDeque::new();
    let mut seeds = seeds.fuse();
    loop {
        while running.len() < jobs.max(1)
            && let Some(seed) = seeds.next()
        {
            running.push_back(start(seed, scenario)?);
        }
        let Some(first) = running.pop_front() else { return Ok(()) };
        judge(first.seed, &first.child.wait_with_output().context("wait for a seed")?);
    }
}

/// Runs seeds and reports those that found something. Returns the gravest ending.
pub fn run(seeds: impl Iterator<Item = u64>, scenario: Scenario, jobs: usize) -> anyhow::Result<Ending> {
    let (mut worst, mut total, mut failed, mut queued) = (Ending::Passed, 0, 0, 0);
    each(seeds, scenario, jobs, |seed, output| {
        let ending = Ending::of_code(output.status.code());
        total += 1;
        queued += queued_of(&output.stdout);
        if ending != Ending::Passed {
            failed += 1;
            report(seed, scenario, ending, output);
            worst = if worst.code() > ending.code() { worst } else { ending };
        }
    })?;
    println!("queued path taken {queued} times");
    println!("{total} seeds of {scenario}, {failed} failed");
    Ok(worst)
}

/// The seeds that have found something before: the numbers at which lines of `sim/seeds.txt` begin.
pub fn regressions() -> impl Iterator<Item = u64> {
    let lines = include_str!("../seeds.txt").lines();
    lines.filter_map(|line| line.split(' ').next()?.parse().ok())
}

/// The count that a seed's process printed.
fn queued_of(stdout: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(stdout);
    text.lines().find_map(|line| line.strip_prefix(QUEUED)?.parse().ok()).unwrap_or(0)
}

fn report(seed: u64, scenario: Scenario, ending: Ending, output: &Output) {
    println!("{ending:?}: replay with `cargo sim -- replay {seed} --scenario {scenario} --trace`");
    for text in [&output.stdout, &output.stderr] {
        for line in String::from_utf8_lossy(text).lines() {
            println!("    {}", line.chars().take(300).collect::<String>());
        }
    }
}

/// Tests the simulator: every planted mistake must be found by at least one of the seeds.
pub fn canaries(seeds: &Range<u64>, jobs: usize) -> anyhow::Result<Ending> {
    let mut missed = 0;
    let mistakes = MISTAKES.iter().map(|(mistake, name)| (Scenario::Canary(*mistake), name));
    let flaws = FLAWS.iter().map(|(flaw, name)| (Scenario::Flawed(*flaw), name));
    for (scenario, name) in mistakes.chain(flaws) {
        let mut found = 0;
        each(seeds.clone(), scenario, jobs, |_, output| {
            found += u32::from(Ending::of_code(output.status.code()) == Ending::Broken);
        })?;
        println!("{name}: found by {found} of {} seeds", seeds.end.saturating_sub(seeds.start));
        missed += u32::from(found == 0);
    }
    Ok(if missed == 0 { Ending::Passed } else { Ending::Broken })
}

/// Runs every seed twice and compares: the same seed must give the same output, trace hash included.
pub fn check_replay(seeds: Range<u64>, scenario: Scenario, jobs: usize) -> anyhow::Result<Ending> {
    let (mut first, mut divergent) = (None, 0);
    let twice = seeds.clone().flat_map(|seed| [seed, seed]);
    each(twice, scenario, jobs, |seed, output| match first.take() {
        None => first = Some(output.stdout.clone()),
        Some(before) if before == output.stdout => {}
        Some(before) => {
            divergent += 1;
            println!("{:?}: seed {seed} of {scenario} gave two traces", Ending::Divergent);
            println!("    {}    {}", String::from_utf8_lossy(&before), String::from_utf8_lossy(&output.stdout));
        }
    })?;
    println!("{} seeds of {scenario} twice, {divergent} diverged", seeds.end.saturating_sub(seeds.start));
    Ok(if divergent == 0 { Ending::Passed } else { Ending::Divergent })
}
