//! The proof that a seed fixes its timeline: every seed runs twice in fresh processes, in two directories, first on a machine
//! as it is and then on one kept busy, and must print the same, with the same 128-bit hash of all events. A check that sees
//! nothing would pass, too, so it first shows that it sees the real world when that gets in.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

use crate::campaign::{Enough, Plan, note_in_ledger};
use crate::runner::Ending;
use crate::scenario::Scenario;

/// A planted leak must show within so many seeds.
const LEAK_SEEDS: u64 = 10;

/// Checks the seeds, and that a leak would be seen.
pub fn check(seeds: &Range<u64>, plan: &Plan) -> anyhow::Result<Ending> {
    let mut ending = Ending::Passed;
    if plan.scenario == Scenario::Node {
        for scenario in Scenario::leaking() {
            let leaking = Plan { scenario, ..plan.clone() };
            let seen = (0..LEAK_SEEDS).try_fold(None, |seen, seed| match seen {
                Some(seed) => Ok(Some(seed)),
                None => Ok::<_, anyhow::Error>(divergent(&(seed..seed + 1), &leaking, false)?.first().map(|_| seed)),
            })?;
            match seen {
                Some(seed) => println!("{scenario}: seen at seed {seed}"),
                None => {
                    println!("{scenario}: not seen in {LEAK_SEEDS} seeds, so this check is worth nothing");
                    ending = Ending::Broken;
                }
            }
        }
    }
    let divergent = divergent(seeds, plan, true)?;
    let count = seeds.end.saturating_sub(seeds.start);
    let summary = format!("{count} seeds of {} twice, {} diverged", plan.scenario, divergent.len());
    println!("{summary}");
    note_in_ledger(&format!("check-replay {}..{}: {summary}", seeds.start, seeds.end));
    Ok(if divergent.is_empty() { ending } else { Ending::Divergent })
}

/// The seeds whose two runs differ.
fn divergent(seeds: &Range<u64>, plan: &Plan, tell: bool) -> anyhow::Result<Vec<u64>> {
    let directories = Directories::create()?;
    let mut first = BTreeMap::new();
    let quiet = Plan { directory: Some(directories.0[0].clone()), ..plan.clone() };
    quiet.each(seeds.clone(), |seed, output| {
        first.insert(seed, output.stdout.clone());
        Enough::No
    })?;
    let busy = Plan { directory: Some(directories.0[1].clone()), ..plan.clone() };
    let mut divergent = Vec::new();
    with_load(plan.jobs, || {
        busy.each(seeds.clone(), |seed, output| {
            let before = first.remove(&seed).unwrap_or_default();
            if before != output.stdout {
                divergent.push(seed);
                if tell {
                    println!("{:?}: seed {seed} of {} gave two traces", Ending::Divergent, plan.scenario);
                    println!("    {}", String::from_utf8_lossy(&before));
                    println!("    {}", String::from_utf8_lossy(&output.stdout));
                }
            }
            Enough::No
        })
    })?;
    Ok(divergent)
}

/// Keeps as many processors busy as there are jobs while `act` runs.
fn with_load<T>(threads: usize, act: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let output = act();
        is_over.store(true, Ordering::Relaxed);
        output
    })
}

/// Two directories, which go when dropped.
struct Directories([PathBuf; 2]);

impl Directories {
    fn create() -> anyhow::Result<Self> {
        let of_process = |name: &str| std::env::temp_dir().join(format!("simurgh-{name}-{}", std::process::id()));
        let both = [of_process("first-run"), of_process("the-same-seed-once-more")];
        for directory in &both {
            std::fs::create_dir_all(directory).with_context(|| format!("create {}", directory.display()))?;
        }
        Ok(Self(both))
    }
}

impl Drop for Directories {
    fn drop(&mut self) {
        for directory in &self.0 {
            // What is left of them is no matter.
            let _ = std::fs::remove_dir_all(directory);
        }
    }
}
