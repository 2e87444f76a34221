//! What the parts of a timeline share: its options, its trace, what was found wrong, when the server crashed, and when the
//! workloads shall end.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[cfg(madsim)]
use simurgh_kernel::simulation::Machine;
use simurgh_kernel::time;

use crate::options::{Crash, Mode, Options};
use crate::tally;
use crate::trace::Trace;

/// What kind of promise was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finding {
    /// A client saw what it must not, or missed what it must see.
    Broken,
    /// Nothing moved any more although no fault was left.
    Stuck,
}

/// A moment at which a life of the server ended.
#[derive(Debug, Clone, Copy)]
pub struct CrashAt {
    /// When.
    pub ns: u64,
    /// How.
    pub crash: Crash,
}

#[derive(Debug, Default)]
struct Shared {
    findings: Vec<(Finding, String)>,
    crashes: Vec<CrashAt>,
    stop: bool,
    is_healed: bool,
    is_serving: bool,
    clock: Clock,
}

/// What is known of the server's wall clock.
#[derive(Debug, Default, Clone, Copy)]
struct Clock {
    steps: u64,
    /// The latest that it showed before a step.
    latest_ms: i64,
}

/// A look at the server's wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// What it shows.
    pub ms: i64,
    /// The latest that it ever showed.
    pub latest_ms: i64,
    /// How often it had been stepped.
    pub steps: u64,
}

/// The timeline's shared state; clones share it.
#[derive(Debug, Clone)]
pub struct World {
    /// What the seed decided.
    pub options: Arc<Options>,
    /// What happened.
    pub trace: Trace,
    /// Where the server listens.
    pub address: SocketAddr,
    /// How many clients met a busy shard.
    pub queued: Arc<AtomicU64>,
    /// The machine that the server runs on.
    #[cfg(madsim)]
    pub server: Machine,
    shared: Arc<Mutex<Shared>>,
}

impl World {
    /// A world in which nothing has happened.
    #[cfg(madsim)]
    pub fn new(options: Options, trace: Trace, address: SocketAddr, server: Machine) -> Self {
        Self { options: Arc::new(options), trace, address, queued: Arc::default(), server, shared: Arc::default() }
    }

    /// What the server's wall clock shows.
    pub fn server_clock(&self) -> Moment {
        #[cfg(madsim)]
        let ms = self.server.wall_ms();
        #[cfg(not(madsim))]
        let ms = time::wall_ms();
        let Clock { steps, latest_ms } = self.shared().clock;
        Moment { ms, latest_ms: latest_ms.max(ms), steps }
    }

    /// Steps the server's wall clock.
    #[cfg(madsim)]
    pub fn step_clock(&self, step_us: i64) {
        let before = self.server_clock();
        self.server.step_clock(step_us, self.options.trouble.drift_ppm);
        self.trace.note("clock", format_args!("{before:?} stepped by {step_us} us"));
        self.shared().clock = Clock { steps: before.steps + 1, latest_ms: before.latest_ms };
    }

    /// Nothing goes wrong any more from here on.
    pub fn heal(&self) {
        self.shared().is_healed = true;
    }

    /// Whether nothing goes wrong any more.
    pub fn is_healed(&self) -> bool {
        self.shared().is_healed
    }

    /// Notes whether the server has started and serves.
    pub fn set_serving(&self, is_serving: bool) {
        self.shared().is_serving = is_serving;
    }

    /// Whether the server has started and serves.
    pub fn is_serving(&self) -> bool {
        self.shared().is_serving
    }

    /// Reports a finding. That everything stands still after another one is no news.
    pub fn find(&self, finding: Finding, what: String) {
        self.trace.note("judge", format_args!("{finding:?}: {what}"));
        let mut shared = self.shared();
        if finding == Finding::Broken || shared.findings.is_empty() {
            shared.findings.push((finding, what));
        }
    }

    /// Reports a client that waited in vain; any other failure of a connection is part of the game.
    pub fn connection_failed(&self, who: &str, error: &std::io::Error) {
        self.trace.note(who, format_args!("lost its connection: {}", error.kind()));
        match error.kind() {
            ErrorKind::TimedOut => self.find(Finding::Stuck, format!("{who} waited in vain")),
            ErrorKind::InvalidData => self.find(Finding::Broken, format!("{who} got no RESP: {error}")),
            _ => {}
        }
    }

    /// Everything found.
    pub fn findings(&self) -> Vec<(Finding, String)> {
        self.shared().findings.clone()
    }

    /// Notes that the server crashed just now.
    pub fn crashed(&self, crash: Crash) {
        self.trace.note("server", format_args!("{crash:?}"));
        self.shared().crashes.push(CrashAt { ns: time::monotonic_ns(), crash });
    }

    /// Every crash so far.
    pub fn crashes(&self) -> Vec<CrashAt> {
        self.shared().crashes.clone()
    }

    /// Tells the workloads to end.
    pub fn stop(&self) {
        self.shared().stop = true;
    }

    /// Whether the workloads shall end. A finding ends them, too.
    pub fn is_stopping(&self) -> bool {
        let shared = self.shared();
        shared.stop || !shared.findings.is_empty() || tally::operations() >= self.options.operations_max
    }

    /// Whether a write survives every crash since it was sent, by the promise of the mode. (A reply may still be on its way
    /// when the server crashes, so it is the sending that tells which crashes the write was before.)
    pub fn must_survive(&self, sent_ns: u64, acknowledged_ns: u64) -> bool {
        // Going on in a new file takes the log several steps on the disk, each of which may stall.
        let rewrites = self.options.clients.get("rewriter").is_some_and(|count| *count > 0);
        let steps = if rewrites { 15 } else { 3 };
        let stalls_ns = steps * 1_000_000 * self.options.faults.stall_ms_max;
        let at_risk_ns = 2_000_000_000 + stalls_ns + self.options.slack_ns();
        let shared = self.shared();
        let crashes = shared.crashes.iter().filter(|crash| crash.ns >= sent_ns);
        // Whatever was on the disk, it is not there any more.
        let lies = self.options.faults.sync_lies_one_in > 0;
        let is_gone = |crash: &CrashAt| crash.crash == Crash::Wipe || (lies && crash.crash == Crash::Power);
        if crashes.clone().any(is_gone) {
            return false;
        }
        // A node that ended in order has put everything on the disk, so what comes after is no danger.
        crashes.take_while(|crash| crash.crash != Crash::Shutdown).all(|crash| match (self.options.mode, crash.crash) {
            (_, Crash::Wipe) => false,
            (Mode::Always, _) | (Mode::Write, Crash::Kill | Crash::Rot) => true,
            // While the disk is full or fails nothing more gets there, and what is in memory stays at risk.
            (Mode::Write | Mode::EverySecond, _) if self.options.faults.may_hold_up() => false,
            (Mode::Write | Mode::EverySecond, _) => crash.ns.saturating_sub(acknowledged_ns) > at_risk_ns,
            (Mode::No, _) => false,
        })
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
