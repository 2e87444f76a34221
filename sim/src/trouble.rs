//! Trouble between the server and the world while it lives: cuts of the network, pauses of the process, clocks that are off.

#[cfg(madsim)]
use std::net::IpAddr;
#[cfg(madsim)]
use std::time::Duration;

#[cfg(madsim)]
use simurgh_kernel::time;

use crate::random::Random;
#[cfg(madsim)]
use crate::{tally, world::World};

/// The longest that a machine's clock is stepped, in microseconds.
const STEP_US_MAX: u64 = 3_600_000_000;

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing passes in either direction.
    Cut,
    /// Nothing reaches the server.
    CutIn,
    /// Nothing leaves the server.
    CutOut,
    /// Short cuts, one after another.
    Flap,
    /// The process is stopped, as by SIGSTOP.
    Pause,
    /// The wall clock jumps.
    Step,
}

impl Kind {
    const ALL: [Self; 6] = [Self::Cut, Self::CutIn, Self::CutOut, Self::Flap, Self::Pause, Self::Step];
}

/// What a timeline's trouble is.
#[derive(Debug, Clone, Default)]
pub struct Trouble {
    /// What happens.
    pub kinds: Vec<Kind>,
    /// The longest time between two.
    pub every_ms_max: u64,
    /// The longest that one lasts.
    pub longest_ms: u64,
    /// How far the server's wall clock is off in the beginning.
    pub offset_us: i64,
    /// How much it gains in a second.
    pub drift_ppm: i64,
}

impl Trouble {
    /// Draws the trouble of a timeline.
    pub fn draw(seed: u64) -> Self {
        let mut random = Random::of(seed, "trouble");
        let one_in = *random.pick(&[0, 3, 2]);
        let mut trouble = Self {
            kinds: Kind::ALL.into_iter().filter(|_| random.chance(one_in)).collect(),
            every_ms_max: *random.pick(&[300, 1500, 5000]),
            longest_ms: *random.pick(&[50, 500, 3000]),
            offset_us: 0,
            drift_ppm: *random.pick(&[0, 0, 200, -200, 20_000, -20_000]),
        };
        if random.chance(3) {
            trouble.offset_us = step(&mut random);
        }
        trouble
    }

    /// How long something may be held up.
    pub fn lasts_ms_max(&self) -> u64 {
        // A flap is several cuts, each followed by what was held up being sent again.
        let lasts = self.kinds.iter().any(|kind| *kind != Kind::Step);
        if lasts { 3 * self.longest_ms + 1000 } else { 0 }
    }

    /// Without what happens to the clock.
    pub fn calm_clock(&mut self) {
        self.kinds.retain(|kind| *kind != Kind::Step);
        (self.offset_us, self.drift_ppm) = (0, 0);
    }

    /// Without what happens to the network.
    pub fn calm_network(&mut self) {
        self.kinds.retain(|kind| matches!(kind, Kind::Step | Kind::Pause));
    }

    /// Without what happens to the process.
    pub fn calm_process(&mut self) {
        self.kinds.retain(|kind| *kind != Kind::Pause);
    }
}

/// A step of a clock, to either side.
fn step(random: &mut Random) -> i64 {
    let longest = *random.pick(&[5_000_000, STEP_US_MAX]);
    let step = i64::try_from(random.below(longest)).unwrap_or(0);
    if random.chance(2) { step } else { -step }
}

/// Makes trouble until it is time to heal.
#[cfg(madsim)]
pub async fn make(world: World, server: IpAddr, clients: IpAddr) {
    let trouble = world.options.trouble.clone();
    let mut random = Random::of(world.options.seed, "making trouble");
    if trouble.offset_us != 0 || trouble.drift_ppm != 0 {
        world.step_clock(trouble.offset_us);
    }
    while !trouble.kinds.is_empty() {
        time::sleep(Duration::from_millis(random.below(trouble.every_ms_max))).await;
        if world.is_healed() {
            return;
        }
        let lasts_ms = random.between(1, trouble.longest_ms);
        let kind = *random.pick(&trouble.kinds);
        world.trace.note("trouble", format_args!("{kind:?} for {lasts_ms} ms"));
        let until_ns = time::monotonic_ns() + lasts_ms * 1_000_000;
        match kind {
            Kind::Cut => {
                tally::fired("N5");
                cut_both(server, clients, until_ns);
            }
            Kind::CutIn | Kind::CutOut => {
                tally::fired("N6");
                let (from, to) = if kind == Kind::CutIn { (clients, server) } else { (server, clients) };
                simurgh_kernel::net::wires::cut(from, to, until_ns);
            }
            Kind::Flap => {
                tally::fired("N8");
                for _ in 0..random.between(2, 6) {
                    cut_both(server, clients, time::monotonic_ns() + lasts_ms * 1_000_000 / 4);
                    time::sleep(Duration::from_millis(lasts_ms / 2)).await;
                }
            }
            Kind::Pause => {
                tally::fired("P3");
                world.server.pause();
                time::sleep(Duration::from_millis(lasts_ms)).await;
                world.server.resume();
            }
            Kind::Step => {
                tally::fired("T3");
                world.step_clock(step(&mut random));
            }
        }
    }
}

#[cfg(madsim)]
fn cut_both(server: IpAddr, clients: IpAddr, until_ns: u64) {
    simurgh_kernel::net::wires::cut(clients, server, until_ns);
    simurgh_kernel::net::wires::cut(server, clients, until_ns);
}
