//! The score: what a campaign did to the node and how much of it was seen, as the tables in `docs/simulation.md`.

use std::fmt::Write;
use std::ops::Range;

use anyhow::Context;

use crate::campaign::{Enough, Plan, Progress, ending_of, tally_of};
use crate::coverage::Coverage;
use crate::runner::Ending;
use crate::tally::{CLASSES, all_points};

/// The page, and where in it the score stands.
const PAGE: &str = "docs/simulation.md";
const BEGIN: &str = "<!-- score: written by `cargo sim -- score A..B` -->\n";
const END: &str = "<!-- end of score -->\n";

/// What the page says.
#[derive(Debug, Default)]
struct Score {
    failed: u64,
    coverage: Coverage,
}

impl Score {
    fn page(&self, plan: &Plan, seeds: &Range<u64>, per_minute: f64) -> String {
        let mut text = String::new();
        let (sum, timelines) = (&self.coverage.sum, self.coverage.timelines);
        let per = |number: u64| number / timelines.max(1);
        let _ = writeln!(
            text,
            "{} timelines of `{}` (seeds {}..{}), {} failed; {per_minute:.0} a minute with {} at once, on a machine that did other \
             things besides. {} operations were answered, {} a timeline, {} of them judged for linearizability and {} left undecided, {} steps of transactions for strict serializability; a timeline lasted {} \
             simulated seconds.\n",
            timelines,
            plan.scenario,
            seeds.start,
            seeds.end,
            self.failed,
            plan.jobs,
            sum.operations,
            per(sum.operations),
            sum.linearized,
            sum.undecided,
            sum.serialized,
            per(sum.lasted_ms) / 1000
        );
        text += "| fault | what | timelines that it struck | strikes |\n| --- | --- | --- | --- |\n";
        for (class, what) in CLASSES {
            let timelines = self.coverage.class(class);
            let strikes = sum.fired.get(class).copied().unwrap_or(0);
            let _ = writeln!(text, "| {class} | {what} | {timelines} | {strikes} |");
        }
        let _ = writeln!(text, "\n{}\n", self.coverage.missed());
        text += "| point | timelines that reached it |\n| --- | --- |\n";
        for point in all_points() {
            let _ = writeln!(text, "| {point} | {} |", self.coverage.point(point));
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
        score.failed += u64::from(has_failed);
        score.coverage.note(tally_of(output).as_ref());
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
