//! What a seed decides before its timeline begins. Every seed draws another mix (a *swarm*): few faults or many, few
//! clients or many, so that no combination is always hidden by another. [`Options::without`] takes parts of it away again, to
//! find out which of them a failure needs.

use std::collections::BTreeMap;
use std::fmt;

use simurgh_kernel::net::faults::Faults as NetworkFaults;

use crate::disk::Faults;
use crate::random::Random;
pub use crate::scenario::{Flaw, MISTAKES, Mistake, Scenario};
use crate::trouble::Trouble;
use crate::workload;

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
    /// It is killed when it has been idle for a while, and what lies on its disk is damaged.
    Rot,
    /// It is killed, and its disk is empty.
    Wipe,
}

impl Crash {
    /// Those that every node must survive.
    pub const USUAL: [Self; 3] = [Self::Kill, Self::Power, Self::Shutdown];
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
    /// How many clients run each workload, by its name.
    pub clients: BTreeMap<&'static str, u64>,
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
    /// The network's faults, until they are healed.
    pub network: NetworkFaults,
    /// Cuts, pauses and clocks.
    pub trouble: Trouble,
    /// Shards that are busy.
    pub busy: Busy,
    /// After how many operations all clients together stop.
    pub operations_max: u64,
}

/// How busy shards are beyond what clients do.
#[derive(Debug, Clone, Copy)]
pub struct Busy {
    /// The longest time that shards are held, in microseconds; 0 for never.
    pub hold_us_max: u64,
    /// The longest time between two such holds, in microseconds.
    pub pause_us_max: u64,
}

impl Options {
    /// Draws a timeline's options.
    pub fn draw(seed: u64, scenario: Scenario) -> Self {
        let mut random = Random::of(seed, "options");
        let mode = *random.pick(&[Mode::Always, Mode::Always, Mode::Write, Mode::EverySecond, Mode::No]);
        let is_node = scenario.is_node();
        let life_ms_max = *random.pick(&[200, 1000, 3000, 10_000]);
        let faults = draw_faults(&mut random, seed, is_node);
        let mut options = Self {
            seed,
            scenario,
            mode,
            clients: workload::draw(seed, is_node),
            crashes: Vec::new(),
            life_ms_max,
            faults,
            network: draw_network(seed, is_node),
            trouble: if is_node { Trouble::draw(seed) } else { Trouble::default() },
            threads: *random.pick(&[1, 1, 2, 3]),
            shards: *random.pick(&[0, 1, 5, 5]),
            busy: Busy { hold_us_max: *random.pick(&[0, 100, 5000]), pause_us_max: *random.pick(&[200, 20_000]) },
            operations_max: u64::MAX,
        };
        options.crashes = options.draw_crashes();
        if matches!(scenario, Scenario::Flawed(_)) {
            // The window in which a flaw does harm is short: many look for it.
            options.clients.insert("rewriter", 3);
            options.crashes = vec![Crash::Power; 4];
        }
        options
    }

    fn draw_crashes(&self) -> Vec<Crash> {
        let mut random = Random::of(self.seed, "ends of lives");
        // The toy knows no order to end.
        let kinds: &[&[Crash]] =
            &[&[Crash::Kill], &[Crash::Power], &[Crash::Kill, Crash::Power], &[Crash::Shutdown], &Crash::USUAL];
        let kinds = kinds[random.index(if self.scenario.is_node() { 5 } else { 3 })];
        let count = *random.pick(&[0, 1, 1, 2, 2, 3, 4]);
        let mut crashes: Vec<Crash> = (0..count).map(|_| *random.pick(kinds)).collect();
        if self.scenario.is_node() && random.chance(40) {
            crashes.insert(random.index(crashes.len() + 1), Crash::Wipe);
        }
        // Damage is told from a torn write only where the disk has let the node say what was synced.
        let may_rot = self.mode != Mode::No
            && self.faults
                == Faults {
                    stall_ms_max: self.faults.stall_ms_max,
                    short_one_in: self.faults.short_one_in,
                    ..Faults::default()
                };
        if self.scenario.is_node() && may_rot && random.chance(3) {
            crashes.insert(random.index(crashes.len() + 1), Crash::Rot);
        }
        crashes
    }

    /// Whether the mode's promise covers every crash of this timeline, so that nothing that was acknowledged may be lost. A
    /// disk that fails may end the server like a kill.
    pub fn nothing_may_be_lost(&self) -> bool {
        let has = |crash| self.crashes.contains(&crash);
        !has(Crash::Wipe)
            && match self.mode {
                Mode::Always => !(has(Crash::Power) && self.faults.sync_lies_one_in > 0),
                Mode::Write => !has(Crash::Power),
                Mode::EverySecond | Mode::No => {
                    let only_shutdowns = self.crashes.iter().all(|crash| *crash == Crash::Shutdown);
                    only_shutdowns && !self.faults.may_end_the_server() && self.faults.capacity == usize::MAX
                }
            }
    }

    /// How late something may be that the server would do at once if nothing went wrong, in nanoseconds.
    pub fn slack_ns(&self) -> u64 {
        let stalls_ms = if self.faults.stall_one_in > 0 { 3 * self.faults.stall_ms_max } else { 0 };
        let slow_ns = if self.network.bandwidth > 0 { 1_000_000_000 } else { 0 };
        1_000_000 * (stalls_ms + self.trouble.lasts_ms_max()) + slow_ns
    }

    /// The same without a part: a workload's name, or one of the words that [`Options::parts`] gives.
    pub fn without(&mut self, part: &str) -> anyhow::Result<()> {
        let calm = NetworkFaults::default();
        let numbered = |prefix: &str| part.strip_prefix(prefix).and_then(|number| number.parse::<u64>().ok());
        if let Some(count) = numbered("crashes-beyond-") {
            self.crashes.truncate(usize::try_from(count).unwrap_or(usize::MAX));
            return Ok(());
        }
        if let Some(count) = numbered("operations-beyond-") {
            self.operations_max = count;
            return Ok(());
        }
        match part {
            "company" => self.clients.values_mut().for_each(|count| *count = 1.min(*count)),
            "failed-syncs" => self.faults.sync_fails_one_in = 0,
            "lying-syncs" => self.faults.sync_lies_one_in = 0,
            "failed-transfers" => (self.faults.read_fails_one_in, self.faults.write_fails_one_in) = (0, 0),
            "stalls" => self.faults.stall_one_in = 0,
            "short-calls" => self.faults.short_one_in = 0,
            "full-disk" => self.faults.capacity = usize::MAX,
            "busy-shards" => self.busy.hold_us_max = 0,
            "cores" => self.threads = 1,
            "shards" => self.shards = 1,
            "resets" => self.network.reset_one_in = 0,
            "silences" => self.network.silence_one_in = 0,
            "hangs" => self.network.hang_one_in = 0,
            "short-transfers" => self.network.short_one_in = 0,
            "small-windows" => self.network.window_bytes = calm.window_bytes,
            "bandwidth" => self.network.bandwidth = 0,
            "clock" => self.trouble.calm_clock(),
            "cuts" => self.trouble.calm_network(),
            "pauses" => self.trouble.calm_process(),
            name => {
                let found = self.clients.get_mut(name).ok_or_else(|| anyhow::anyhow!("nothing is called {part:?}"))?;
                *found = 0;
            }
        }
        Ok(())
    }

    /// Words for the parts that this timeline may be tried without, the largest first.
    pub fn parts(&self) -> Vec<String> {
        let workloads = self.clients.iter().filter(|(_, count)| **count > 0).map(|(name, _)| (*name).to_owned());
        let faults = [
            "cuts",
            "pauses",
            "clock",
            "resets",
            "silences",
            "hangs",
            "bandwidth",
            "small-windows",
            "short-transfers",
            "failed-syncs",
            "lying-syncs",
            "failed-transfers",
            "stalls",
            "short-calls",
            "full-disk",
            "busy-shards",
            "cores",
            "shards",
            "company",
        ];
        let crashes = (0..self.crashes.len()).map(|count| format!("crashes-beyond-{count}"));
        let operations = [100, 300, 1000, 3000].map(|count| format!("operations-beyond-{count}"));
        workloads.chain(faults.map(str::to_owned)).chain(crashes).chain(operations).collect()
    }
}

/// A disk that is slow rather than stuck, so that much is under way whenever something happens.
const SLOW: u64 = 6;

/// The toy ends when the disk is full, so only a node meets one that fills up.
fn draw_faults(random: &mut Random, seed: u64, is_node: bool) -> Faults {
    let full = if is_node { 20_000 + random.index(200_000) } else { usize::MAX };
    let (stall_one_in, stall_ms_max) = (*random.pick(&[0, 0, 50, SLOW]), *random.pick(&[5, 100, 700, 4000]));
    let faults = Faults {
        sync_fails_one_in: *random.pick(&[0, 0, 60, 300]),
        stall_one_in,
        stall_ms_max: stall_ms_max.min(if stall_one_in == SLOW { 100 } else { u64::MAX }),
        capacity: *random.pick(&[usize::MAX, usize::MAX, full]),
        ..Faults::default()
    };
    if !is_node {
        return faults;
    }
    // Drawn apart, so that it changes nothing else.
    let mut apart = Random::of(seed, "short transfers");
    Faults {
        short_one_in: *apart.pick(&[0, 0, 2, 10]),
        sync_lies_one_in: *random.pick(&[0, 0, 0, 0, 0, 20]),
        read_fails_one_in: *random.pick(&[0, 0, 0, 10]),
        write_fails_one_in: *random.pick(&[0, 0, 0, 100]),
        ..faults
    }
}

fn draw_network(seed: u64, is_node: bool) -> NetworkFaults {
    let mut random = Random::of(seed, "network");
    let latency_us_max = *random.pick(&[1100, 2000, 10_000]);
    let calm = NetworkFaults { latency_ns: 1_000_000..latency_us_max * 1000, ..NetworkFaults::default() };
    if !is_node || random.chance(3) {
        return calm;
    }
    let window = *random.pick(&[65_536, 65_536, 4096, 1000]);
    NetworkFaults {
        window_bytes: window / 2..window + 1,
        bandwidth: *random.pick(&[0, 0, 0, 2_000_000]),
        short_one_in: *random.pick(&[0, 8, 8, 2]),
        reset_one_in: *random.pick(&[0, 0, 2000, 200]),
        silence_one_in: *random.pick(&[0, 0, 1000]),
        hang_one_in: *random.pick(&[0, 0, 20]),
        ..calm
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed {} scenario {} appendfsync {} clients {:?} crashes {:?} life_ms_max {} threads {} shards {} {:?} {:?} {:?} {:?}",
            self.seed,
            self.scenario,
            self.mode.word(),
            self.clients,
            self.crashes,
            self.life_ms_max,
            self.threads,
            self.shards,
            self.faults,
            self.network,
            self.trouble,
            self.busy
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn every_part_can_be_taken_away() {
        for seed in 0..50 {
            let mut options = Options::draw(seed, Scenario::Node);
            for part in options.parts() {
                options.without(&part).unwrap();
            }
            assert!(options.crashes.is_empty() && options.clients.values().all(|count| *count == 0));
            assert_eq!(options.slack_ns(), 0);
            assert!(options.without("nothing").is_err());
        }
    }
}
