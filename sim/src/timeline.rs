//! One timeline: a machine whose server lives, crashes and recovers, clients on another machine, and the judgement in the
//! end. Faults come first; then they are healed, and the server must serve again (safety, then liveness).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use simurgh_kernel::core;
use simurgh_kernel::net::wires;
use simurgh_kernel::simulation::{Machine, Task};
use simurgh_kernel::time;
use simurgh_protocol::resp::decode::Value;

use crate::client::Client;
use crate::judge::linear::{Content, Operation, Verdict};
use crate::judge::queue::{End, Part};
use crate::judge::{self, counting, crew, linear};
use crate::lives::Server;
use crate::options::Options;
use crate::trace::Trace;
use crate::workload::{self, Histories, append, bank, counter, expiry, groups, kinds, mirror, queue, swap};
use crate::world::{Finding, World};
use crate::{tally, trouble};

/// How long anything may take once nothing goes wrong any more.
pub const PATIENCE: Duration = Duration::from_secs(400);

/// How long it may take until the server serves, once nothing goes wrong any more: liveness.
const RECOVERY: Duration = Duration::from_secs(60);

/// The server's address.
pub const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
/// The clients' address.
pub const CLIENTS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const PORT: u16 = 6379;

/// Runs the timeline to its end and returns what was found.
pub async fn run(options: Options, trace: Trace) -> Vec<(Finding, String)> {
    let server = Machine::new("server", SERVER);
    let world = World::new(options, trace, SocketAddr::new(SERVER, PORT), server);
    let mut clients = Clients::start(&world);
    core::spawn(Server::new(&world).live_and_die());
    core::spawn(trouble::make(world.clone(), SERVER, CLIENTS));
    if time::timeout(PATIENCE, clients.finish(&world)).await.is_err() {
        world.find(Finding::Stuck, "the clients did not end".into());
    }
    if world.findings().is_empty() {
        clients.judge(&world);
    }
    count(&world);
    world.findings()
}

/// Counts what went wrong in the network, and how the clock was.
fn count(world: &World) {
    let counts = wires::counts();
    // Each of these strikes a request or a reply on its way.
    tally::sent(1);
    tally::fired_times("N9-reset", counts.resets);
    tally::fired_times("N9-silence", counts.silences);
    tally::fired_times("N9-hang", counts.hangs);
    tally::fired_times("N10", counts.full_pipes);
    let slow = world.options.network.latency_ns.end > 5_000_000 || world.options.network.bandwidth > 0;
    tally::fired_times("N2", u64::from(slow));
    tally::fired_times("T1", u64::from(world.options.trouble.offset_us != 0));
    tally::fired_times("T2", u64::from(world.options.trouble.drift_ppm != 0));
    tally::given_up(1);
}

/// The clients' machine, what runs on it, and what they saw.
struct Clients {
    machine: Machine,
    tasks: Vec<Task<()>>,
    histories: Histories,
    end: Option<LastLook>,
}

/// What was there in the end.
struct LastLook {
    counter: i64,
    swapped: i64,
    queues: End,
    crew: crew::End,
}

impl Clients {
    fn start(world: &World) -> Self {
        let machine = Machine::new("clients", CLIENTS);
        let histories = Histories::default();
        let mut tasks = Vec::new();
        for workload in workload::ALL {
            let count = world.options.clients.get(workload.name).copied().unwrap_or(0);
            tasks.extend((0..count).map(|index| machine.spawn((workload.run)(world.clone(), &histories, index))));
        }
        tasks.push(machine.spawn(see_recovery(world.clone())));
        Self { machine, tasks, histories, end: None }
    }

    /// Waits for all of them, then takes a last look, which also shows that the server serves again.
    async fn finish(&mut self, world: &World) {
        for task in &mut self.tasks {
            task.output().await;
        }
        let mut last_look = self.machine.spawn(last_look(world.clone(), self.histories.appends.clone()));
        self.end = last_look.output().await.flatten();
    }

    fn judge(&self, world: &World) {
        let history = self.histories.queues.history();
        let crashes_ns: Vec<u64> = world.crashes().iter().map(|crash| crash.ns).collect();
        let slack_ns = world.options.slack_ns();
        for span in spans(world) {
            let part = Part { from_ns: span.from_ns, to_ns: span.to_ns, crashes_ns: &crashes_ns, slack_ns };
            if let Some(what) = judge::queue::judge(&history, &part) {
                world.find(Finding::Broken, format!("queues: {what}"));
            }
            self.judge_span(world, &span);
            self.judge_appends(world, &span);
        }
        if let Some(end) = self.end.as_ref().filter(|_| world.options.nothing_may_be_lost()) {
            self.judge_end(world, end);
        }
        for voices in [&self.histories.voices, &self.histories.events] {
            if let Some(what) = voices.judge() {
                world.find(Finding::Broken, what);
            }
        }
        self.judge_origins(world);
    }

    fn judge_span(&self, world: &World, span: &Span) {
        let inside = |ns: u64| span.from_ns <= ns && ns < span.to_ns;
        for (what, history) in [("counter", &self.histories.increments), ("swapped counter", &self.histories.swaps)] {
            let increments: Vec<_> = history.increments().into_iter().filter(|one| inside(one.invoked_ns)).collect();
            tally::linearized(increments.len());
            if let Some(wrong) = counting::judge(&increments) {
                world.find(Finding::Broken, format!("the {what}: {wrong}"));
            }
        }
        for (key, operations) in self.histories.registers.keys().into_iter().enumerate() {
            let operations: Vec<_> = operations.into_iter().filter(|operation| inside(operation.invoked_ns)).collect();
            tally::linearized(operations.len());
            judge_register(world, key, &operations, span.before);
        }
    }

    /// What began in the part of the timeline; what others have appended may be there.
    fn judge_appends(&self, world: &World, span: &Span) {
        let inside = |ns: u64| span.from_ns <= ns && ns < span.to_ns;
        let history = self.histories.appends.history();
        let (inside, others): (Vec<_>, Vec<_>) = history.into_iter().partition(|one| inside(one.invoked_ns));
        if let Some(what) = judge::append::judge(&inside, &others) {
            world.find(Finding::Broken, format!("appends: {what}"));
        }
    }

    fn judge_end(&self, world: &World, end: &LastLook) {
        let counters = [(&self.histories.increments, end.counter), (&self.histories.swaps, end.swapped)];
        for (history, end) in counters {
            if let Some(what) = counting::judge_end(&history.increments(), end) {
                world.find(Finding::Broken, format!("a counter {what}"));
            }
        }
        if let Some(what) = crew::judge(&self.histories.crew.history(), &end.crew) {
            world.find(Finding::Broken, format!("the consumer group: {what}"));
        }
        let history = self.histories.queues.history();
        if let Some(what) = judge::queue::judge_end(&history, &end.queues, world.options.slack_ns()) {
            world.find(Finding::Broken, format!("queues in the end: {what}"));
        }
    }

    /// No register ever held what nobody wrote, whatever was lost.
    fn judge_origins(&self, world: &World) {
        for (key, operations) in self.histories.registers.keys().into_iter().enumerate() {
            for read in operations.iter().filter(|operation| operation.completed_ns.is_some()) {
                let Some(value) = read.kind.read() else { continue };
                if !operations.iter().any(|other| other.kind.written() == Some(value)) {
                    world.find(Finding::Broken, format!("register {key} held {value}, which nobody wrote"));
                }
            }
        }
    }
}

/// Sees that the server serves a new client soon after everything has healed.
async fn see_recovery(world: World) {
    while !world.is_healed() {
        time::sleep(Duration::from_millis(100)).await;
    }
    let mut client = Client::new(world.address);
    let served = time::timeout(RECOVERY, async {
        while client.connect().await.is_err() || client.call(&[b"SET", b"served", b"again"]).await.is_err() {}
    });
    if served.await.is_err() {
        world.find(Finding::Stuck, format!("nobody is served {RECOVERY:?} after everything has healed"));
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
        Verdict::Undecided => {
            tally::undecided(operations.len());
            world.find(Finding::Broken, format!("register {key} could not be judged"));
        }
    }
}

/// What must agree and what is there in the end, read from a server without faults.
async fn last_look(world: World, appends: append::Book) -> Option<LastLook> {
    let mut client = Client::new(world.address);
    loop {
        let looked = async {
            client.connect().await?;
            bank::audit(&world, "last look", &mut client).await?;
            client.call(&[b"SET", b"alive", b"1"]).await?;
            if world.options.scenario.is_node() {
                mirror::look(&world, "last look", &mut client).await?;
                append::look(&world, &appends, &mut client).await?;
                replay(&world, &mut client).await?;
            }
            let counter = counter::read(&mut client).await?;
            let is_node = world.options.scenario.is_node();
            let swapped = if is_node { swap::read(&mut client).await? } else { 0 };
            let crew = if is_node { groups::look(&mut client).await? } else { crew::End::default() };
            Ok(LastLook { counter, swapped, crew, queues: queue::read(&mut client).await? })
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
