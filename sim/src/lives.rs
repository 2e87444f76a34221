//! The server's lives on one machine and one disk, and how they end.

use std::io;
use std::time::Duration;

use simurgh_kernel::net::{faults, wires};
use simurgh_kernel::simulation::Task;
use simurgh_kernel::time;

use crate::disk::{Damage, Faults, INJECTED, Platter, SimDisk};
use crate::flawed::FlawedDisk;
use crate::options::{Crash, Flaw, Scenario};
use crate::random::Random;
use crate::tally;
use crate::timeline::{CLIENTS, PATIENCE, SERVER};
use crate::world::{Finding, World};

/// How long the clients go on after the last crash, and again once everything is healed.
const QUIET: Duration = Duration::from_millis(500);

/// A life that ends at its start, or soon after, in milliseconds.
const SHORT_MS: u64 = 50;

/// How long the server may take to end when asked.
const SHUTDOWN: Duration = Duration::from_secs(60);

/// How long a supervisor waits before it starts a server again that ended.
const RESTART: Duration = Duration::from_millis(100);

/// How long nothing reaches a server whose disk is then damaged: long enough for every mode to write, sync and say so.
const IDLE: Duration = Duration::from_millis(3500);

/// The server's machine and its lives.
pub struct Server {
    world: World,
    platter: Platter,
    task: Option<Task<io::Result<()>>>,
    /// How many injected failures an end was already excused with.
    excused: u64,
    /// How many crashes came before the server served again.
    crashes_in_a_row: u64,
}

impl Server {
    /// A server that has not started.
    pub fn new(world: &World) -> Self {
        let platter = Platter::new(world.options.seed, world.options.faults.clone());
        Self { world: world.clone(), platter, task: None, excused: 0, crashes_in_a_row: 0 }
    }

    /// Every life but the last ends in a crash; then the faults are healed.
    pub async fn live_and_die(mut self) {
        let mut random = Random::of(self.world.options.seed, "crashes");
        self.start();
        for crash in self.world.options.crashes.clone() {
            // Now and then it has hardly started.
            let life_ms_max = if random.chance(4) { SHORT_MS } else { self.world.options.life_ms_max };
            let life_us = random.below(life_ms_max * 1000);
            self.live(Duration::from_micros(life_us)).await;
            match crash {
                Crash::Shutdown => self.shut_down().await,
                Crash::Rot => self.rot(&mut random).await,
                Crash::Kill | Crash::Power | Crash::Wipe => self.crash(crash),
            }
            time::sleep(Duration::from_micros(random.below(50_000))).await;
            self.start();
        }
        self.live(QUIET).await;
        self.heal().await;
        self.live(QUIET).await;
        self.world.stop();
        // The last life goes on while the clients look at what is left.
        self.live(PATIENCE).await;
    }

    /// Nothing goes wrong any more.
    async fn heal(&mut self) {
        self.world.heal();
        self.platter.set_faults(Faults::default());
        wires::heal();
        wires::set_faults(faults::Faults::default());
        self.world.server.resume();
        // A clock that is behind is set forward, so that everything that was to expire does.
        let clock = self.world.server_clock();
        if clock.steps > 0 {
            self.world.step_clock((clock.latest_ms - clock.ms) * 1000);
        }
        if self.platter.injected() > self.excused {
            // A server may have chosen to refuse writes rather than to end: an operator starts it again.
            self.crash(Crash::Kill);
            self.start();
        }
    }

    fn start(&mut self) {
        let disk = self.platter.mount();
        let (mode, address) = (self.world.options.mode, self.world.address);
        self.world.trace.note("server", "starts");
        let machine = self.world.server;
        self.task = Some(match self.world.options.scenario {
            Scenario::Node | Scenario::Mutant(_) | Scenario::Leaking(_) => self.start_node(disk, None),
            Scenario::Flawed(flaw) => self.start_node(disk, Some(flaw)),
            Scenario::Toy => machine.spawn(crate::toy::run(disk, address, mode, None)),
            Scenario::Canary(mistake) => machine.spawn(crate::toy::run(disk, address, mode, Some(mistake))),
        });
    }

    fn start_node(&self, disk: SimDisk, flaw: Option<Flaw>) -> Task<io::Result<()>> {
        self.world.server.spawn(crate::server::run(FlawedDisk::over(disk, flaw), self.world.clone()))
    }

    /// Asks the server to end, and waits for it. One that was still starting may end at once, as without the request it
    /// would have been killed.
    async fn shut_down(&mut self) {
        self.world.server.terminate();
        let Some(task) = &mut self.task else { return };
        let mut ended = time::timeout(SHUTDOWN, task.output()).await;
        if ended.is_err() && self.world.options.faults.may_hold_up() {
            // It waits for room on a full disk: an operator makes some.
            self.platter.set_faults(Faults::default());
            ended = time::timeout(SHUTDOWN, task.output()).await;
        }
        match ended {
            Ok(Some(Ok(()))) => {
                self.platter.kill();
                self.world.server.kill();
                self.crashes_in_a_row = 0;
                self.world.set_serving(false);
                self.world.crashed(Crash::Shutdown);
            }
            // Ended before it caught signals, or because of a fault.
            Ok(_) => self.crash(Crash::Kill),
            Err(_) => self.world.find(Finding::Stuck, "the server did not end when asked".into()),
        }
    }

    /// Lets the server live for a while. One that ends itself may do so only for an injected fault, and is started again.
    async fn live(&mut self, span: Duration) {
        let deadline_ns = time::monotonic_ns() + u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        while let Some(task) = &mut self.task {
            let left = Duration::from_nanos(deadline_ns.saturating_sub(time::monotonic_ns()));
            let Ok(outcome) = time::timeout(left, task.output()).await else { return };
            if self.platter.is_betrayed() && matches!(outcome, Some(Err(_))) {
                // What the disk had said was synced is not there. The server has found out; an operator begins anew.
                self.world.trace.note("server", format_args!("found its disk lying: {outcome:?}"));
                tally::reach("a lying disk was found out");
                self.crash(Crash::Wipe);
            } else if self.platter.injected() == self.excused || !is_excusable(&outcome) {
                self.world.find(Finding::Broken, format!("the server ended by itself: {outcome:?}"));
                self.task = None;
                return;
            } else {
                self.world.trace.note("server", format_args!("ended by an injected fault: {outcome:?}"));
                if self.world.is_serving() {
                    tally::reach("a failed sync ended the server");
                }
                self.excused = self.platter.injected();
                self.crash(Crash::Kill);
            }
            time::sleep(RESTART).await;
            self.start();
        }
    }

    fn crash(&mut self, crash: Crash) {
        self.tell_crash(crash);
        match crash {
            Crash::Kill | Crash::Shutdown | Crash::Rot => self.platter.kill(),
            Crash::Power => self.platter.lose_power(),
            Crash::Wipe => self.platter.wipe(),
        }
        match crash {
            Crash::Power => self.world.server.lose_power(),
            Crash::Kill | Crash::Shutdown | Crash::Rot | Crash::Wipe => self.world.server.kill(),
        }
        self.world.set_serving(false);
        self.world.crashed(crash);
    }

    fn tell_crash(&mut self, crash: Crash) {
        if self.world.is_serving() {
            self.crashes_in_a_row = 0;
        } else {
            tally::fired("P2");
            self.crashes_in_a_row += 1;
            tally::reach(match self.crashes_in_a_row {
                1 => "a crash inside recovery",
                _ => "a crash inside recovery inside recovery",
            });
        }
        tally::fired(match crash {
            Crash::Power => "P4",
            Crash::Wipe => "S5",
            Crash::Kill | Crash::Shutdown | Crash::Rot => "P1",
        });
        if crash == Crash::Wipe {
            tally::reach("a wiped disk was started from");
        }
    }

    /// Lets the server come to rest, kills it, and damages what lies on its disk. It must refuse that, or serve what it should
    /// all the same. What it refuses is undone, as by an operator who has a copy.
    async fn rot(&mut self, random: &mut Random) {
        let span = IDLE + Duration::from_nanos(self.world.options.slack_ns());
        let until_ns = time::monotonic_ns() + u64::try_from(span.as_nanos()).unwrap_or(0);
        wires::cut(CLIENTS, SERVER, until_ns);
        self.live(span).await;
        let rests = self.world.is_serving();
        self.crash(Crash::Rot);
        let Some(damage) = self.platter.damage(random).filter(|_| rests) else { return };
        self.world.trace.note("disk", format_args!("{damage:?}"));
        tally::fired("S5");
        self.start();
        let refusal = self.refusal().await;
        self.world.trace.note("server", format_args!("refuses {refusal:?}"));
        tally::reach(if refusal.is_some() { "damage was refused and undone" } else { "damage was survived" });
        if refusal.is_some() {
            self.crash(Crash::Kill);
            self.undo(damage);
        } else {
            self.crash(Crash::Kill);
        }
    }

    fn undo(&self, damage: Damage) {
        self.platter.undo(damage);
    }

    /// Waits until the server serves, or refuses to, and why.
    async fn refusal(&mut self) -> Option<io::Error> {
        while !self.world.is_serving() {
            let Some(task) = &mut self.task else { return None };
            match time::timeout(Duration::from_millis(10), task.output()).await {
                Ok(Some(Err(error))) => return Some(error),
                Ok(other) => {
                    self.world.find(Finding::Broken, format!("the server ended by itself on damage: {other:?}"));
                    return None;
                }
                Err(_) => {}
            }
        }
        None
    }
}

/// A node may stop itself, and may fail to start, because of a disk that fails; not because of what it finds there.
fn is_excusable(outcome: &Option<io::Result<()>>) -> bool {
    match outcome {
        None => true,
        Some(Ok(())) => false,
        Some(Err(error)) => {
            let text = error.to_string();
            [INJECTED, "no storage space"].iter().any(|reason| text.contains(reason))
        }
    }
}
