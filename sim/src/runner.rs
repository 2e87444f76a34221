//! One timeline in this process, from its seed to its ending.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use simurgh_kernel::core::{NodeStopped, PanicAsked};
use simurgh_kernel::{rehearsal, simulation, time};

use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::options::{Options, Scenario};
use crate::tally::{self, Tally};
use crate::timeline;
use crate::trace::Trace;
use crate::world::Finding;

/// How a seed's process says what it has counted.
pub const TALLY: &str = "tally ";

/// How a timeline ends.
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

    /// What a process that ended with this code says.
    pub fn of_code(code: Option<i32>) -> Self {
        match code {
            Some(0) => Ending::Passed,
            Some(10) => Ending::Broken,
            Some(11) => Ending::Stuck,
            Some(_) | None => Ending::Crashed,
        }
    }
}

/// Runs one timeline.
pub fn one(seed: u64, scenario: Scenario, without: &[String], print: bool) -> anyhow::Result<Ending> {
    fail_on_panic();
    let errors = Errors::default();
    errors.catch(print);
    let mut options = Options::draw(seed, scenario);
    for part in without {
        options.without(part)?;
    }
    println!("{options}");
    match scenario {
        Scenario::Mutant(mistake) => rehearsal::plant(Some(mistake)),
        Scenario::Leaking(leak) => rehearsal::leak(leak),
        Scenario::Node | Scenario::Flawed(_) | Scenario::Toy | Scenario::Canary(_) => {}
    }
    let trace = Trace::new(print);
    let (noted, network) = (trace.clone(), options.network.clone());
    let (mut findings, lasted_ms) = simulation::run(seed, network, || async move {
        let findings = timeline::run(options, noted).await;
        (findings, time::monotonic_ns() / 1_000_000)
    });
    findings.extend(errors.unexplained().map(|line| (Finding::Broken, format!("an error was logged: {line}"))));
    for (finding, what) in &findings {
        println!("{finding:?}: {what}");
    }
    println!("{TALLY}{}", tally_of(lasted_ms));
    println!("hash {:032x} of {} events", trace.hash(), trace.count());
    Ok(match findings.iter().map(|(finding, _)| *finding).min() {
        None => Ending::Passed,
        Some(Finding::Broken) => Ending::Broken,
        Some(Finding::Stuck) => Ending::Stuck,
    })
}

/// What the simulator and the node have counted.
fn tally_of(lasted_ms: u64) -> Tally {
    let mut tally = Tally { lasted_ms, ..tally::tally() };
    for (point, count) in rehearsal::points() {
        let name = rehearsal::Point::ALL.iter().find(|(known, _)| *known == point).map_or("", |(_, name)| name);
        tally.reached.insert(name.into(), count);
    }
    tally
}

/// Actors catch panics, and a restarted actor hides them; in a simulation every panic is a finding.
#[allow(clippy::disallowed_methods, reason = "the run is over, and nothing of it may go on")]
fn fail_on_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload().is::<NodeStopped>() || panic.payload().is::<PanicAsked>() {
            return;
        }
        usual(panic);
        std::process::exit(i32::from(Ending::Crashed.code()));
    }));
}

/// Errors that the server logs. None may be there that no injected fault explains.
#[derive(Debug, Clone, Default)]
struct Errors(Arc<Mutex<Vec<String>>>);

/// What the server says when an injected fault stops it.
const EXPLAINED: [&str; 4] = ["the log could not be synced", "injected", "no storage space", "stopp"];

impl Errors {
    /// Listens to the server; `print` shows all its words, between the events.
    fn catch(&self, print: bool) {
        let level = if print {
            tracing_subscriber::filter::LevelFilter::INFO
        } else {
            tracing_subscriber::filter::LevelFilter::ERROR
        };
        let errors = self.clone();
        let lines = tracing_subscriber::fmt()
            .without_time()
            .with_ansi(false)
            .with_max_level(level)
            .with_writer(move || Line { errors: errors.clone(), print })
            .finish();
        // The simulator enters a span for every step of every task: a fifth of a timeline's time, and only a reader wants them.
        lines.with(filter_fn(move |seen| print || seen.is_event())).init();
    }

    fn unexplained(&self) -> impl Iterator<Item = String> {
        let lines = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        lines.into_iter().filter(|line| !EXPLAINED.iter().any(|known| line.contains(known)))
    }
}

/// One line of the log.
struct Line {
    errors: Errors,
    print: bool,
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let line = String::from_utf8_lossy(bytes);
        if self.print {
            print!("{line}");
        }
        if line.trim_start().starts_with("ERROR") {
            self.errors.0.lock().unwrap_or_else(PoisonError::into_inner).push(line.trim().to_owned());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
