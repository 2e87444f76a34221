//! The runner's command line.

use std::ops::Range;

use anyhow::{Context, bail};

use crate::options::Scenario;

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// `run --seeds A..B`.
    Run(Range<u64>),
    /// `replay SEED`.
    Replay(u64),
    /// `shrink SEED`.
    Shrink(u64),
    /// `check-replay A..B`.
    CheckReplay(Range<u64>),
    /// `mutants A..B`.
    Mutants(Range<u64>),
    /// `canaries A..B`: the toy's mistakes alone.
    Canaries(Range<u64>),
    /// `score A..B`.
    Score(Range<u64>),
    /// `regressions`: the seeds of `sim/seeds.txt`.
    Regressions,
}

/// Everything that was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments {
    /// What to do.
    pub task: Task,
    /// `--scenario NAME`.
    pub scenario: Scenario,
    /// `--jobs N`.
    pub jobs: usize,
    /// `--trace`.
    pub trace: bool,
    /// `--without PART,PART`: what the timelines do without.
    pub without: Vec<String>,
    /// `--except SCENARIO,SCENARIO`: planted mistakes that are not looked for.
    pub except: Vec<String>,
}

/// How to call it.
pub const USAGE: &str = "cargo sim -- run --seeds A..B | replay SEED [--trace] | shrink SEED | check-replay A..B | mutants A..B | canaries A..B
    | score A..B | regressions
    [--scenario node | toy | mutant-NAME | flawed-NAME | canary-NAME] [--jobs N] [--without PART,PART] [--except SCENARIO,SCENARIO]";

/// Reads the words after the program's name.
pub fn parse(mut words: impl Iterator<Item = String>) -> anyhow::Result<Arguments> {
    let (mut positional, mut seeds, mut without, mut except) = (Vec::new(), None, Vec::new(), Vec::new());
    let (mut scenario, mut jobs, mut trace) = (Scenario::Node, 2, false);
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value"));
        match word.as_str() {
            "--seeds" => seeds = Some(range(&value()?)?),
            "--scenario" => scenario = value()?.parse()?,
            "--jobs" => jobs = value()?.parse().context("--jobs needs a number")?,
            "--without" => without.extend(value()?.split(',').map(str::to_owned)),
            "--except" => except.extend(value()?.split(',').map(str::to_owned)),
            "--trace" => trace = true,
            // The alias in .cargo/config.toml already ends cargo's own options, and people end them again.
            "--" => {}
            _ => positional.push(word),
        }
    }
    let task = match positional.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["run"] => Task::Run(seeds.context("run needs --seeds A..B")?),
        ["replay", seed] => Task::Replay(seed.parse().context("replay needs a seed")?),
        ["shrink", seed] => Task::Shrink(seed.parse().context("shrink needs a seed")?),
        ["check-replay", seeds] => Task::CheckReplay(range(seeds)?),
        ["regressions"] => Task::Regressions,
        ["mutants", seeds] => Task::Mutants(range(seeds)?),
        ["canaries", seeds] => Task::Canaries(range(seeds)?),
        ["score", seeds] => Task::Score(range(seeds)?),
        _ => bail!("{USAGE}"),
    };
    Ok(Arguments { task, scenario, jobs, trace, without, except })
}

fn range(text: &str) -> anyhow::Result<Range<u64>> {
    let (start, end) = text.split_once("..").context("seeds are given as A..B")?;
    Ok(start.parse().context("A of A..B is a number")?..end.parse().context("B of A..B is a number")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> anyhow::Result<Arguments> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn tasks_and_options_in_any_order() {
        let arguments = read("run --jobs 3 --seeds 5..9").unwrap();
        assert_eq!(arguments.task, Task::Run(5..9));
        assert_eq!(arguments.jobs, 3);
        assert_eq!(read("-- --trace replay 7").unwrap().task, Task::Replay(7));
        assert_eq!(read("replay 7 --without cuts,bank").unwrap().without, ["cuts", "bank"]);
        assert_eq!(read("shrink 7").unwrap().task, Task::Shrink(7));
        assert_eq!(read("check-replay 0..2").unwrap().task, Task::CheckReplay(0..2));
        assert_eq!(read("mutants 0..2").unwrap().task, Task::Mutants(0..2));
        assert_eq!(read("score 0..2").unwrap().task, Task::Score(0..2));
        assert_eq!(read("regressions").unwrap().task, Task::Regressions);
        for wrong in ["", "run", "run --seeds 5", "replay", "replay x", "run --seeds 1..2 --scenario no"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
