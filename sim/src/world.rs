//! What the parts of a timeline share: its options, its trace, what was found wrong, when the server crashed, and when the
//! workloads shall end.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use simurgh_kernel::time;

use crate::options::{Crash, Mode, Options};
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
    shared: Arc<Mutex<Shared>>,
}

impl World {
    /// A world in which nothing has happened.
    pub fn new(options: Options, trace: Trace, address: SocketAddr) -> Self {
        Self { options: Arc::new(options), trace, address, queued: Arc::default(), shared: Arc::default() }
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
        shared.stop || !shared.findings.is_empty()
    }

    /// Whether a write survives every crash since it was sent, by the promise of the mode. (A reply may still be on its way
    /// when the server crashes, so it is the sending that tells which crashes the write was before.)
    pub fn must_survive(&self, sent_ns: u64, acknowledged_ns: u64) -> bool {
        // Going on in a new file takes the log several steps on the disk, each of which may stall.
        let steps = if self.options.clients.rewriters > 0 { 15 } else { 3 };
        let at_risk_ns = 2_000_000_000 + steps * 1_000_000 * self.options.faults.stall_ms_max;
        let shared = self.shared();
        let crashes = shared.crashes.iter().filter(|crash| crash.ns >= sent_ns);
        // A node that ended in order has put everything on the disk, so what comes after is no danger.
        crashes.take_while(|crash| crash.crash != Crash::Shutdown).all(|crash| match (self.options.mode, crash.crash) {
            (Mode::Always, _) | (Mode::Write, Crash::Kill) => true,
            // While the disk is full nothing more gets there, and what is in memory stays at risk.
            (Mode::Write | Mode::EverySecond, _) if self.options.faults.capacity < usize::MAX => false,
            (Mode::Write | Mode::EverySecond, _) => crash.ns.saturating_sub(acknowledged_ns) > at_risk_ns,
            (Mode::No, _) => false,
        })
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
