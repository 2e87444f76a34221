//! One timeline: a machine whose server lives, crashes and recovers, clients on another machine, and the judgement in the
//! end. Faults come first; then they are healed, and the server must serve again (safety, then liveness).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering;
use std::time::Duration;

use simurgh_kernel::core;
use simurgh_kernel::simulation::{Machine, Task};
use simurgh_kernel::time;
use simurgh_protocol::resp::decode::Value;

use crate::client::Client;
use crate::disk::{Faults, INJECTED, Platter, SimDisk};
use crate::flawed::FlawedDisk;
use crate::judge::linear::{Content, Kind, Operation, Verdict};
use crate::judge::queue::End;
use crate::judge::{self, counting, linear};
use crate::options::{Crash, Flaw, Options, Scenario};
use crate::random::Random;
use crate::trace::Trace;
use crate::workload::{bank, counter, expiry, kinds, ledger, mirror, pubsub, queue, register, rewriter};
use crate::world::{Finding, World};

/// How long the clients go on after the last crash.
const QUIET: Duration = Duration::from_millis(500);

/// How long anything may take once nothing goes wrong any more.
const PATIENCE: Duration = Duration::from_secs(300);

/// How long the server may take to end when asked.
const SHUTDOWN: Duration = Duration::from_secs(60);

/// How long a supervisor waits before it starts a server again that ended.
const RESTART: Duration = Duration::from_millis(100);

const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const CLIENTS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const PORT: u16 = 6379;

/// Runs the timeline to its end and returns what was found, and how many clients met a busy shard.
pub async fn run(options: Options, trace: Trace) -> (Vec<(Finding, String)>, u64) {
    let world = World::new(options, trace, SocketAddr::new(SERVER, PORT));
    let mut clients = Clients::start(&world);
    core::spawn(Server::new(&world).live_and_die());
    if time::timeout(PATIENCE, clients.finish(&world)).await.is_err() {
        world.find(Finding::Stuck, "the clients did not end".into());
    }
    if world.findings().is_empty() {
        clients.judge(&world);
    }
    (world.findings(), world.queued.load(Ordering::Relaxed))
}

/// The clients' machine, what runs on it, and what they saw.
struct Clients {
    machine: Machine,
    tasks: Vec<Task<()>>,
    registers: register::History,
    increments: counter::History,
    queues: queue::Book,
    voices: pubsub::Voices,
    end: Option<LastLook>,
}

/// What was there in the end.
struct LastLook {
    counter: i64,
    queues: End,
}

impl Clients {
    fn start(world: &World) -> Self {
        let machine = Machine::new("clients", CLIENTS);
        let (registers, increments) = (register::History::default(), counter::History::default());
        let (queues, voices) = (queue::Book::default(), pubsub::Voices::default());
        let mut tasks = Vec::new();
        let drawn = world.options.clients;
        tasks.extend((0..drawn.ledger).map(|index| machine.spawn(ledger::run(world.clone(), index))));
        tasks.extend((0..drawn.bank).map(|index| machine.spawn(bank::run(world.clone(), index))));
        tasks.extend((0..drawn.expiry).map(|index| machine.spawn(expiry::run(world.clone(), index))));
        for index in 0..drawn.register {
            tasks.push(machine.spawn(register::run(world.clone(), registers.clone(), index)));
        }
        for index in 0..drawn.counter {
            tasks.push(machine.spawn(counter::run(world.clone(), increments.clone(), index)));
        }
        tasks.extend((0..drawn.producers).map(|i| machine.spawn(queue::produce(world.clone(), queues.clone(), i))));
        tasks.extend((0..drawn.consumers).map(|i| machine.spawn(queue::consume(world.clone(), queues.clone(), i))));
        tasks.extend((0..drawn.kinds).map(|index| machine.spawn(kinds::run(world.clone(), index))));
        tasks.extend((0..drawn.mirror).map(|index| machine.spawn(mirror::run(world.clone(), index))));
        tasks.extend((0..drawn.rewriters).map(|index| machine.spawn(rewriter::run(world.clone(), index))));
        tasks.extend((0..drawn.publishers).map(|i| machine.spawn(pubsub::publish(world.clone(), voices.clone(), i))));
        tasks.extend((0..drawn.subscribers).map(|i| machine.spawn(pubsub::listen(world.clone(), voices.clone(), i))));
        Self { machine, tasks, registers, increments, queues, voices, end: None }
    }

    /// Waits for all of them, then takes a last look, which also shows that the server serves again.
    async fn finish(&mut self, world: &World) {
        for task in &mut self.tasks {
            task.output().await;
        }
        let mut last_look = self.machine.spawn(last_look(world.clone()));
        self.end = last_look.output().await.flatten();
    }

    fn judge(&self, world: &World) {
        let history = self.queues.history();
        let crashes_ns: Vec<u64> = world.crashes().iter().map(|crash| crash.ns).collect();
        for span in spans(world) {
            if let Some(what) = judge::queue::judge(&history, span.from_ns, span.to_ns, &crashes_ns) {
                world.find(Finding::Broken, format!("queues: {what}"));
            }
            let inside = |ns: u64| span.from_ns <= ns && ns < span.to_ns;
            let increments: Vec<_> =
                self.increments.increments().into_iter().filter(|one| inside(one.invoked_ns)).collect();
            if let Some(what) = counting::judge(&increments) {
                world.find(Finding::Broken, format!("the counter: {what}"));
            }
            for (key, operations) in self.registers.keys().into_iter().enumerate() {
                let operations: Vec<_> =
                    operations.into_iter().filter(|operation| inside(operation.invoked_ns)).collect();
                judge_register(world, key, &operations, span.before);
            }
        }
        if let Some(end) = self.end.as_ref().filter(|_| world.options.nothing_may_be_lost()) {
            if let Some(what) = counting::judge_end(&self.increments.increments(), end.counter) {
                world.find(Finding::Broken, format!("the counter {what}"));
            }
            if let Some(what) = judge::queue::judge_end(&history, &end.queues) {
                world.find(Finding::Broken, format!("queues in the end: {what}"));
            }
        }
        if let Some(what) = self.voices.judge() {
            world.find(Finding::Broken, what);
        }
        self.judge_origins(world);
    }

    /// No register ever held what nobody wrote, whatever was lost.
    fn judge_origins(&self, world: &World) {
        for (key, operations) in self.registers.keys().into_iter().enumerate() {
            for operation in &operations {
                if let Kind::Read(Some(value)) = operation.kind
                    && !operations.iter().any(|other| other.kind == Kind::Write(value))
                {
                    world.find(Finding::Broken, format!("register {key} held {value}, which nobody wrote"));
                }
            }
        }
    }
}

/// A part of the timeline in which nothing may be lost.
struct Span {
    from_ns: u64,
    to_ns: u64,
    before: Content,
}

/// The whole timeline when the mode covers every crash, otherwise each life for itself.
fn spans(world: &World) -> Vec<Span> {
    if world.options.nothing_may_be_lost() {
        return vec![Span { from_ns: 0, to_ns: u64::MAX, before: Content::Known(None) }];
    }
    let mut starts = vec![0];
    starts.extend(world.crashes().iter().map(|crash| crash.ns));
    let ends = starts.iter().skip(1).copied().chain([u64::MAX]);
    starts.iter().zip(ends).map(|(&from_ns, to_ns)| Span { from_ns, to_ns, before: Content::Unknown }).collect()
}

fn judge_register(world: &World, key: usize, operations: &[Operation], before: Content) {
    match linear::judge(operations, before) {
        Verdict::Linearizable => {}
        Verdict::Impossible => {
            world.find(Finding::Broken, format!("register {key} has no order: {operations:?}"));
        }
        Verdict::Undecided => world.find(Finding::Broken, format!("register {key} could not be judged")),
    }
}

/// What must agree and what is there in the end, read from a server without faults.
async fn last_look(world: World) -> Option<LastLook> {
    let mut client = Client::new(world.address);
    loop {
        let looked = async {
            client.connect().await?;
            bank::audit(&world, "last look", &mut client).await?;
            client.call(&[b"SET", b"alive", b"1"]).await?;
            if world.options.scenario.is_node() {
                mirror::look(&world, "last look", &mut client).await?;
                replay(&world, &mut client).await?;
            }
            Ok(LastLook { counter: counter::read(&mut client).await?, queues: queue::read(&mut client).await? })
        };
        match looked.await {
            Ok(end) => return Some(end),
            Err(error) => world.connection_failed("last look", &error),
        }
        if !world.findings().is_empty() {
            return None;
        }
    }
}

/// A server that forgets its keys and reads its log, or a snapshot that it has made, has the same keys as before.
async fn replay(world: &World, client: &mut Client) -> std::io::Result<()> {
    // Nothing that expires is left then, so that no moment between the two looks matters.
    time::sleep(Duration::from_millis(expiry::LIFE_MS_MAX.max(kinds::FIELD_LIFE_MS_MAX) + 1000)).await;
    let before = client.call(&[b"DEBUG", b"DIGEST"]).await?;
    for (what, request) in [("log", b"LOADAOF" as &[u8]), ("snapshot", b"RELOAD")] {
        let loaded = client.call(&[b"DEBUG", request]).await?;
        let after = client.call(&[b"DEBUG", b"DIGEST"]).await?;
        world.trace.note("last look", format_args!("digest {before:?}, {loaded:?}, digest {after:?}"));
        if before != after || matches!(before, Value::Error(_)) || matches!(loaded, Value::Error(_)) {
            world.find(Finding::Broken, format!("the {what} gives other keys: {before:?}, {loaded:?}, {after:?}"));
        }
    }
    Ok(())
}

/// The server's machine and its lives.
struct Server {
    world: World,
    machine: Machine,
    platter: Platter,
    task: Option<Task<std::io::Result<()>>>,
    /// How many injected failures an end was already excused with.
    excused: u64,
}

impl Server {
    fn new(world: &World) -> Self {
        let platter = Platter::new(world.options.seed, world.options.faults.clone());
        Self { world: world.clone(), machine: Machine::new("server", SERVER), platter, task: None, excused: 0 }
    }

    /// Every life but the last ends in a crash; then the faults are healed.
    async fn live_and_die(mut self) {
        let mut random = Random::of(self.world.options.seed, "crashes");
        self.start();
        for crash in self.world.options.crashes.clone() {
            let life_us = random.below(self.world.options.life_ms_max * 1000);
            self.live(Duration::from_micros(life_us)).await;
            if crash == Crash::Shutdown {
                self.shut_down().await;
            } else {
                self.crash(crash);
            }
            time::sleep(Duration::from_micros(random.below(50_000))).await;
            self.start();
        }
        self.live(QUIET).await;
        self.platter.set_faults(Faults::default());
        if self.platter.injected() > self.excused {
            // A server may have chosen to refuse writes rather than to end: an operator starts it again.
            self.crash(Crash::Kill);
            self.start();
        }
        self.live(QUIET).await;
        self.world.stop();
        // The last life goes on while the clients look at what is left.
        self.live(PATIENCE).await;
    }

    fn start(&mut self) {
        let disk = self.platter.mount();
        let (mode, address) = (self.world.options.mode, self.world.address);
        self.world.trace.note("server", "starts");
        self.task = Some(match self.world.options.scenario {
            Scenario::Node => self.start_node(disk, None),
            Scenario::Flawed(flaw) => self.start_node(disk, Some(flaw)),
            Scenario::Toy => self.machine.spawn(crate::toy::run(disk, address, mode, None)),
            Scenario::Canary(mistake) => self.machine.spawn(crate::toy::run(disk, address, mode, Some(mistake))),
        });
    }

    fn start_node(&self, disk: SimDisk, flaw: Option<Flaw>) -> Task<std::io::Result<()>> {
        let (options, queued) = (self.world.options.clone(), self.world.queued.clone());
        self.machine.spawn(crate::server::run(FlawedDisk::over(disk, flaw), options, queued))
    }

    /// Asks the server to end, and waits for it. One that was still starting may end at once, as without the request it
    /// would have been killed.
    async fn shut_down(&mut self) {
        self.machine.terminate();
        let Some(task) = &mut self.task else { return };
        let mut ended = time::timeout(SHUTDOWN, task.output()).await;
        if ended.is_err() && self.world.options.faults.capacity < usize::MAX {
            // It waits for room on a full disk: an operator makes some.
            self.platter.set_faults(Faults::default());
            ended = time::timeout(SHUTDOWN, task.output()).await;
        }
        match ended {
            Ok(Some(Ok(()))) => {
                self.platter.kill();
                self.machine.kill();
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
            if self.platter.injected() == self.excused || !is_excusable(&outcome) {
                self.world.find(Finding::Broken, format!("the server ended by itself: {outcome:?}"));
                self.task = None;
                return;
            }
            self.world.trace.note("server", format_args!("ended by an injected fault: {outcome:?}"));
            self.excused = self.platter.injected();
            self.crash(Crash::Kill);
            time::sleep(RESTART).await;
            self.start();
        }
    }

    fn crash(&self, crash: Crash) {
        match crash {
            Crash::Kill | Crash::Shutdown => self.platter.kill(),
            Crash::Power => self.platter.lose_power(),
        }
        self.machine.kill();
        self.world.crashed(crash);
    }
}

/// A node may stop itself, and may fail to start, because of a disk that fails; not because of what it finds there.
fn is_excusable(outcome: &Option<std::io::Result<()>>) -> bool {
    match outcome {
        None => true,
        Some(Ok(())) => false,
        Some(Err(error)) => {
            let text = error.to_string();
            [INJECTED, "no storage space"].iter().any(|reason| text.contains(reason))
        }
    }
}
