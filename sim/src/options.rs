//! What a seed decides before its timeline begins. Every seed draws another mix (a *swarm*): few faults or many, few
//! clients or many, so that no combination is always hidden by another.

use std::fmt;
use std::str::FromStr;

use crate::disk::Faults;
use crate::random::Random;

/// When the server must have an effect on the disk before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Synced: survives power loss.
    Always,
    /// Handed to the kernel: survives a killed process.
    Write,
    /// Synced every second, not waited for.
    EverySecond,
    /// Never synced.
    No,
}

impl Mode {
    /// The word of `appendfsync`.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Always => "always",
            Mode::Write => "write",
            Mode::EverySecond => "everysec",
            Mode::No => "no",
        }
    }
}

/// How a life of the server ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// kill -9.
    Kill,
    /// The machine's power goes.
    Power,
    /// It is asked to end, and ends in order.
    Shutdown,
}

impl Crash {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Kill, Self::Power, Self::Shutdown];
}

/// What the server under test is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    /// A whole node.
    Node,
    /// A small server inside the simulator, without mistakes: the judges must pass it.
    Toy,
    /// The toy, with one planted mistake that the judges must find.
    Canary(Mistake),
    /// A whole node that makes a mistake with its files, which the judges must find.
    Flawed(Flaw),
}

/// A mistake that a node makes with its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// The manifest gets its name before what it says is on the disk.
    UnsyncedManifest,
    /// The same of a rewrite's base.
    UnsyncedBase,
    /// Directories are never synced.
    ForgottenRename,
    /// What a rewrite replaces is deleted before the manifest says so.
    EarlyTidying,
}

/// Every flaw, with the word that names it.
pub const FLAWS: [(Flaw, &str); 4] = [
    (Flaw::UnsyncedManifest, "unsynced-manifest"),
    (Flaw::UnsyncedBase, "unsynced-base"),
    (Flaw::ForgottenRename, "forgotten-rename"),
    (Flaw::EarlyTidying, "early-tidying"),
];

impl Scenario {
    /// Whether the server is a whole node.
    pub fn is_node(self) -> bool {
        matches!(self, Self::Node | Self::Flawed(_))
    }
}

/// A mistake planted in the toy server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// Answers before the sync.
    EarlyReply,
    /// Never syncs the directory of a new log.
    ForgottenDirectory,
    /// Writes each command of a transaction as a record of its own.
    SplitTransaction,
    /// Replays what lies behind a damaged record.
    TrustingReplay,
    /// Answers reads with what is not yet safe.
    PhantomRead,
    /// Goes on after a failed sync.
    RetriedSync,
    /// Answers who waited for an item before it is safe that the item was taken.
    HastyServing,
    /// Does not log that who waited took an item.
    UnloggedServing,
    /// Serves who came last first.
    Overtaking,
    /// Forgets at a restart when fields expire.
    ImmortalFields,
    /// Serves no more than one of those who wait when several items come.
    ForgottenWaiter,
}

/// Every mistake, with the word that names it.
pub const MISTAKES: [(Mistake, &str); 11] = [
    (Mistake::EarlyReply, "early-reply"),
    (Mistake::ForgottenDirectory, "forgotten-directory"),
    (Mistake::SplitTransaction, "split-transaction"),
    (Mistake::TrustingReplay, "trusting-replay"),
    (Mistake::PhantomRead, "phantom-read"),
    (Mistake::RetriedSync, "retried-sync"),
    (Mistake::HastyServing, "hasty-serving"),
    (Mistake::UnloggedServing, "unlogged-serving"),
    (Mistake::Overtaking, "overtaking"),
    (Mistake::ImmortalFields, "immortal-fields"),
    (Mistake::ForgottenWaiter, "forgotten-waiter"),
];

impl FromStr for Scenario {
    type Err = anyhow::Error;

    fn from_str(word: &str) -> anyhow::Result<Self> {
        match word {
            "node" => return Ok(Scenario::Node),
            "toy" => return Ok(Scenario::Toy),
            _ => {}
        }
        if let Some((flaw, _)) =
            word.strip_prefix("flawed-").and_then(|name| FLAWS.iter().find(|(_, known)| *known == name))
        {
            return Ok(Scenario::Flawed(*flaw));
        }
        let mistake = word.strip_prefix("canary-").and_then(|name| MISTAKES.iter().find(|(_, known)| *known == name));
        mistake.map(|(mistake, _)| Scenario::Canary(*mistake)).ok_or_else(|| anyhow::anyhow!("no scenario {word:?}"))
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scenario::Node => f.write_str("node"),
            Scenario::Toy => f.write_str("toy"),
            Scenario::Canary(mistake) => {
                let named = MISTAKES.iter().find(|(known, _)| known == mistake);
                write!(f, "canary-{}", named.map_or("", |(_, name)| name))
            }
            Scenario::Flawed(flaw) => {
                let named = FLAWS.iter().find(|(known, _)| known == flaw);
                write!(f, "flawed-{}", named.map_or("", |(_, name)| name))
            }
        }
    }
}

/// Everything that was drawn.
#[derive(Debug, Clone)]
pub struct Options {
    /// The seed it was drawn from.
    pub seed: u64,
    /// The server under test.
    pub scenario: Scenario,
    /// The durability mode.
    pub mode: Mode,
    /// The clients of each workload.
    pub clients: Clients,
    /// How each life but the last ends.
    pub crashes: Vec<Crash>,
    /// The longest life, in milliseconds.
    pub life_ms_max: u64,
    /// How many cores serve connections.
    pub threads: u64,
    /// How many shards there are; 0 lets the node choose.
    pub shards: u64,
    /// The disk's other faults, until they are healed.
    pub faults: Faults,
    /// The longest time a message takes, in microseconds.
    pub latency_us_max: u64,
    /// Shards that are busy.
    pub busy: Busy,
}

/// How busy shards are beyond what clients do.
#[derive(Debug, Clone, Copy)]
pub struct Busy {
    /// The longest time that shards are held, in microseconds; 0 for never.
    pub hold_us_max: u64,
    /// The longest time between two such holds, in microseconds.
    pub pause_us_max: u64,
}

/// How many clients run each workload.
#[derive(Debug, Clone, Copy)]
pub struct Clients {
    /// Private keys, pipelined.
    pub ledger: u64,
    /// Shared registers.
    pub register: u64,
    /// One shared counter.
    pub counter: u64,
    /// Transfers between accounts.
    pub bank: u64,
    /// Keys with a time to live.
    pub expiry: u64,
    /// Queues: who pushes.
    pub producers: u64,
    /// Queues: who takes.
    pub consumers: u64,
    /// Private keys of every type.
    pub kinds: u64,
    /// The same in several types.
    pub mirror: u64,
    /// Who asks for snapshots and rewrites.
    pub rewriters: u64,
    /// Who publishes.
    pub publishers: u64,
    /// Who listens.
    pub subscribers: u64,
}

impl Options {
    /// Draws a timeline's options.
    pub fn draw(seed: u64, scenario: Scenario) -> Self {
        let mut random = Random::of(seed, "options");
        let mode = *random.pick(&[Mode::Always, Mode::Always, Mode::Write, Mode::EverySecond, Mode::No]);
        let is_node = scenario.is_node();
        // The toy knows no order to end.
        let kinds: &[&[Crash]] = &[&[Crash::Kill], &[Crash::Power], &[Crash::Kill, Crash::Power], &Crash::ALL];
        let crash_kinds = kinds[random.index(if is_node { 4 } else { 3 })];
        let mut crashes: Vec<Crash> = (0..random.between(0, 4)).map(|_| *random.pick(crash_kinds)).collect();
        let mut clients = Clients {
            ledger: random.between(0, 3),
            register: *random.pick(&[0, 2, 4]),
            counter: random.between(0, 3),
            bank: random.between(0, 3),
            expiry: 0,
            producers: 0,
            consumers: 0,
            kinds: 0,
            mirror: 0,
            rewriters: 0,
            publishers: 0,
            subscribers: 0,
        };
        // Drawn from generators of their own, so that what came before them keeps its seeds.
        let mut queues = Random::of(seed, "queues");
        if queues.chance(2) {
            (clients.producers, clients.consumers) = (queues.between(1, 2), queues.between(2, 5));
        }
        clients.kinds = Random::of(seed, "kinds").between(0, 2);
        if is_node {
            clients.expiry = Random::of(seed, "expiry").between(0, 2);
            clients.mirror = *Random::of(seed, "mirror").pick(&[0, 0, 2, 3]);
            clients.rewriters = *Random::of(seed, "rewriters").pick(&[0, 1, 1, 2]);
            let mut voices = Random::of(seed, "pubsub");
            if voices.chance(3) {
                (clients.publishers, clients.subscribers) = (voices.between(1, 2), voices.between(1, 3));
            }
        }
        if matches!(scenario, Scenario::Flawed(_)) {
            // The window in which a flaw does harm is short: many look for it.
            clients.rewriters = 3;
            crashes = vec![Crash::Power; 4];
        }
        Self {
            seed,
            scenario,
            mode,
            clients,
            crashes,
            life_ms_max: *random.pick(&[20, 200, 3000]),
            faults: draw_faults(&mut random, is_node),
            threads: *random.pick(&[1, 1, 2, 3]),
            shards: *random.pick(&[0, 1, 5]),
            latency_us_max: *random.pick(&[1100, 2000, 10_000]),
            busy: Busy { hold_us_max: *random.pick(&[0, 100, 5000]), pause_us_max: *random.pick(&[200, 20_000]) },
        }
    }

    /// Whether the mode's promise covers every crash of this timeline, so that nothing that was acknowledged may be lost. A
    /// disk that fails may end the server like a kill.
    pub fn nothing_may_be_lost(&self) -> bool {
        match self.mode {
            Mode::Always => true,
            Mode::Write => !self.crashes.contains(&Crash::Power),
            Mode::EverySecond | Mode::No => {
                let only_shutdowns = self.crashes.iter().all(|crash| *crash == Crash::Shutdown);
                only_shutdowns && self.faults.sync_fails_one_in == 0 && self.faults.capacity == usize::MAX
            }
        }
    }
}

/// The toy ends when the disk is full, so only a node meets one that fills up.
fn draw_faults(random: &mut Random, may_fill: bool) -> Faults {
    let full = if may_fill { 20_000 + random.index(200_000) } else { usize::MAX };
    Faults {
        sync_fails_one_in: *random.pick(&[0, 0, 60, 300]),
        stall_one_in: *random.pick(&[0, 0, 50]),
        stall_ms_max: *random.pick(&[5, 100, 700]),
        capacity: *random.pick(&[usize::MAX, usize::MAX, usize::MAX, full]),
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed {} scenario {} appendfsync {} {:?} crashes {:?} life_ms_max {} threads {} shards {} \
             {:?} latency_us_max {} {:?}",
            self.seed,
            self.scenario,
            self.mode.word(),
            self.clients,
            self.crashes,
            self.life_ms_max,
            self.threads,
            self.shards,
            self.faults,
            self.latency_us_max,
            self.busy
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_read_back_as_written() {
        for (mistake, _) in MISTAKES {
            let scenario = Scenario::Canary(mistake);
            assert_eq!(scenario.to_string().parse::<Scenario>().unwrap(), scenario);
        }
        for (flaw, _) in FLAWS {
            let scenario = Scenario::Flawed(flaw);
            assert_eq!(scenario.to_string().parse::<Scenario>().unwrap(), scenario);
        }
        for scenario in [Scenario::Node, Scenario::Toy] {
            assert_eq!(scenario.to_string().parse::<Scenario>().unwrap(), scenario);
        }
        assert!("canary-none".parse::<Scenario>().is_err());
    }

    #[test]
    fn the_swarm_covers_every_mode_with_every_promise() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..300 {
            let options = Options::draw(seed, Scenario::Toy);
            seen.insert((options.mode.word(), options.nothing_may_be_lost()));
        }
        let expected = [
            ("always", true),
            ("everysec", false),
            ("everysec", true),
            ("no", false),
            ("no", true),
            ("write", false),
            ("write", true),
        ];
        assert!(seen.iter().eq(&expected), "{seen:?}");
    }
}
