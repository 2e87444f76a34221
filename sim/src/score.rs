//! The score: what a campaign did to the node and how much of it was seen, as the tables in `docs/simulation.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::Range;

use anyhow::Context;

use crate::campaign::{Enough, Plan, Progress, add, ending_of, tally_of};
use crate::runner::Ending;
use crate::tally::{CLASSES, Tally, all_points};

/// The page, and where in it the score stands.
const PAGE: &str = "docs/simulation.md";
const BEGIN: &str = "<!-- score: written by `cargo sim -- score A..B` -->\n";
const END: &str = "<!-- end of score -->\n";

/// Each timeline of a pair of classes counts once.
#[derive(Debug, Default)]
struct Score {
    timelines: u64,
    failed: u64,
    sum: Tally,
    /// In how many timelines each class struck, and each two together.
    classes: BTreeMap<String, u64>,
    pairs: BTreeMap<(String, String), u64>,
    points: BTreeMap<String, u64>,
}

impl Score {
    fn note(&mut self, tally: &Tally) {
        add(&mut self.sum, tally);
        let struck: BTreeSet<&String> = tally.fired.keys().collect();
        for class in &struck {
            *self.classes.entry((*class).clone()).or_default() += 1;
            for other in struck.range::<&String, _>((std::ops::Bound::Excluded(class), std::ops::Bound::Unbounded)) {
                *self.pairs.entry(((*class).clone(), (*other).clone())).or_default() += 1;
            }
        }
        for point in tally.reached.keys() {
            *self.points.entry(point.clone()).or_default() += 1;
        }
    }

    fn page(&self, plan: &Plan, seeds: &Range<u64>, per_minute: f64) -> String {
        let mut text = String::new();
        let per = |number: u64| number / self.timelines.max(1);
        let _ = writeln!(
            text,
            "{} timelines of `{}` (seeds {}..{}), {} failed; {per_minute:.0} a minute with {} at once, on a machine that did other \
             things besides. {} operations were answered, {} a timeline, {} of them judged for linearizability; a timeline lasted {} \
             simulated seconds.\n",
            self.timelines,
            plan.scenario,
            seeds.start,
            seeds.end,
            self.failed,
            plan.jobs,
            self.sum.operations,
            per(self.sum.operations),
            self.sum.linearized,
            per(self.sum.lasted_ms) / 1000
        );
        text += "| fault | what | timelines that it struck | strikes |\n| --- | --- | --- | --- |\n";
        for (class, what) in CLASSES {
            let timelines = self.classes.get(class).copied().unwrap_or(0);
            let strikes = self.sum.fired.get(class).copied().unwrap_or(0);
            let _ = writeln!(text, "| {class} | {what} | {timelines} | {strikes} |");
        }
        let all: Vec<(&str, &str)> = CLASSES
            .iter()
            .enumerate()
            .flat_map(|(place, (one, _))| CLASSES[place + 1..].iter().map(move |(other, _)| (*one, *other)))
            .collect();
        let count = |one: &str, other: &str| {
            let key = if one < other { (one, other) } else { (other, one) };
            self.pairs.get(&(key.0.to_owned(), key.1.to_owned())).copied().unwrap_or(0)
        };
        let rare: Vec<String> = all
            .iter()
            .filter(|(one, other)| count(one, other) == 0)
            .map(|(one, other)| format!("{one}+{other}"))
            .collect();
        let _ = writeln!(
            text,
            "\n{} of {} pairs of classes struck in one timeline. Not seen together: {}.\n",
            all.len() - rare.len(),
            all.len(),
            if rare.is_empty() { "none".into() } else { rare.join(", ") }
        );
        text += "| point | timelines that reached it |\n| --- | --- |\n";
        for point in all_points() {
            let _ = writeln!(text, "| {point} | {} |", self.points.get(point).copied().unwrap_or(0));
        }
        text
    }
}

/// Runs seeds and writes the score into the page.
#[allow(clippy::disallowed_methods, reason = "the page is outside of every simulation")]
pub fn write(seeds: Range<u64>, plan: &Plan) -> anyhow::Result<Ending> {
    let mut score = Score::default();
    let mut progress = Progress::new(seeds.end.saturating_sub(seeds.start));
    plan.each(seeds.clone(), |_, output| {
        let has_failed = ending_of(output) != Ending::Passed;
        progress.step(has_failed);
        score.timelines += 1;
        score.failed += u64::from(has_failed);
        if let Some(tally) = tally_of(output) {
            score.note(&tally);
        }
        Enough::No
    })?;
    let page = std::fs::read_to_string(PAGE).with_context(|| format!("read {PAGE}: run this from the repository"))?;
    let (before, rest) = page.split_once(BEGIN).with_context(|| format!("{PAGE} has no place for the score"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("the score in {PAGE} has no end"))?;
    let table = score.page(plan, &seeds, progress.per_minute());
    std::fs::write(PAGE, format!("{before}{BEGIN}{table}{END}{after}")).with_context(|| format!("write {PAGE}"))?;
    println!("{table}");
    Ok(if score.failed == 0 { Ending::Passed } else { Ending::Broken })
}
