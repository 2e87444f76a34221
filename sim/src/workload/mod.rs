//! What clients do. Each workload is a story whose truth is easy to judge:
//!
//! | workload | what it does | what must hold |
//! | --- | --- | --- |
//! | [`ledger`] | pipelined writes of a client to its own keys, numbered | after a crash a prefix is there, at least what was promised |
//! | [`register`] | SET, GET, GETSET, SETNX and DEL of shared keys | one order explains all that was seen |
//! | [`counter`] | INCR of one key | no number twice, none lost |
//! | [`swap`] | the same by WATCH, GET and a SET in MULTI | no number twice, none lost |
//! | [`bank`] | transfers in MULTI/EXEC | the sum never changes |
//! | [`scripts`] | the same by scripts and functions, some of them long, and killed | the sum never changes, promised libraries are there |
//! | [`expiry`] | keys with a time to live | none gone early, none there late, the moment never moves, what died stays dead |
//! | [`queue`] | items pushed to lists, waited for and taken or moved | each taken once, in order, by who came first; none lost |
//! | [`kinds`] | changes of a client's own keys of every type, in and out of MULTI | a prefix of the changes is there |
//! | [`append`] | transactions and scripts that append to lists and read them | one order of all of them explains every reply |
//! | [`mirror`] | one change of several types at once, by all clients | whoever looks finds them equal |
//! | [`rewriter`] | snapshots and rewrites of the log | what the others find |
//! | [`groups`] | entries of a stream, shared out among the consumers of a group | each delivered and acknowledged once, none lost, ids rise |
//! | [`tracking`] | what readers keep of keys that others write | who keeps an old value is told |
//! | [`pubsub`] | numbered messages, and keyspace events | heard in order, once, none invented, none missed between others |
//! | [`echo`] | pipelines of every size, on connections that live shortly | as many replies as requests, in order, everybody's own |
//! | [`doomed`] | connections whose task panics | they end, and nothing behind the panic happens |
//! | [`slow`] | replies of megabytes to a reader who takes his time | all of it, and the server holds no more than its limit |
//!
//! To add one: a file here, a row in [`ALL`], and its history in [`Histories`] if it is judged in the end.

pub mod append;
pub mod bank;
pub mod counter;
pub mod doomed;
pub mod echo;
pub mod expiry;
pub mod groups;
pub mod kinds;
pub mod ledger;
pub mod mirror;
pub mod pubsub;
pub mod queue;
pub mod register;
pub mod rewriter;
pub mod scripts;
pub mod slow;
pub mod swap;
pub mod tracking;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;

use simurgh_kernel::time;

use crate::random::Random;
use crate::workload::pubsub::Topic;
use crate::world::World;

/// What the clients of a timeline did, where the judges need all of it together.
#[derive(Debug, Default)]
pub struct Histories {
    /// Of [`register`].
    pub registers: register::History,
    /// Of [`counter`].
    pub increments: counter::History,
    /// Of [`swap`].
    pub swaps: counter::History,
    /// Of [`queue`].
    pub queues: queue::Book,
    /// Of [`pubsub`].
    pub voices: pubsub::Voices,
    /// Of [`pubsub`] where keyspace events are the messages.
    pub events: pubsub::Voices,
    /// Of [`groups`].
    pub crew: groups::Book,
    /// Of [`append`].
    pub appends: append::Book,
    /// Of [`tracking`].
    pub written: tracking::Written,
}

/// A client's whole life.
pub type Run = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A workload.
pub struct Workload {
    /// What it is called on the command line.
    pub name: &'static str,
    /// Workloads of one group are there together or not at all: they draw from the same generator.
    pub group: &'static str,
    /// How many clients it has in a timeline.
    pub draw: fn(&mut Random) -> u64,
    /// The toy server can serve it.
    pub is_for_toy: bool,
    /// Runs client number so and so.
    pub run: fn(World, &Histories, u64) -> Run,
}

/// Every workload.
pub const ALL: &[Workload] = &[
    Workload {
        name: "ledger",
        group: "ledger",
        draw: |random| random.between(0, 3),
        is_for_toy: true,
        run: |world, _, index| Box::pin(ledger::run(world, index)),
    },
    Workload {
        name: "register",
        group: "register",
        draw: |random| *random.pick(&[0, 2, 4]),
        is_for_toy: true,
        run: |world, histories, index| Box::pin(register::run(world, histories.registers.clone(), index)),
    },
    Workload {
        name: "counter",
        group: "counter",
        draw: |random| random.between(0, 3),
        is_for_toy: true,
        run: |world, histories, index| Box::pin(counter::run(world, histories.increments.clone(), index)),
    },
    Workload {
        name: "swap",
        group: "swap",
        draw: |random| *random.pick(&[0, 0, 2, 4]),
        is_for_toy: false,
        run: |world, histories, index| Box::pin(swap::run(world, histories.swaps.clone(), index)),
    },
    Workload {
        name: "bank",
        group: "bank",
        draw: |random| random.between(0, 3),
        is_for_toy: true,
        run: |world, _, index| Box::pin(bank::run(world, index)),
    },
    Workload {
        name: "teller",
        group: "scripts",
        draw: |random| *random.pick(&[0, 0, 1, 2, 3]),
        is_for_toy: false,
        run: |world, _, index| Box::pin(scripts::run(world, index)),
    },
    Workload {
        name: "expiry",
        group: "expiry",
        draw: |random| random.between(0, 2),
        is_for_toy: false,
        run: |world, _, index| Box::pin(expiry::run(world, index)),
    },
    Workload {
        name: "producer",
        group: "queue",
        draw: |random| if random.chance(3) { 0 } else { random.between(1, 2) },
        is_for_toy: true,
        run: |world, histories, index| Box::pin(queue::produce(world, histories.queues.clone(), index)),
    },
    Workload {
        name: "consumer",
        group: "queue",
        draw: |random| if random.chance(3) { 0 } else { random.between(2, 5) },
        is_for_toy: true,
        run: |world, histories, index| Box::pin(queue::consume(world, histories.queues.clone(), index)),
    },
    Workload {
        name: "kinds",
        group: "kinds",
        draw: |random| random.between(0, 2),
        is_for_toy: true,
        run: |world, _, index| Box::pin(kinds::run(world, index)),
    },
    Workload {
        name: "append",
        group: "append",
        draw: |random| *random.pick(&[0, 0, 2, 4]),
        is_for_toy: false,
        run: |world, histories, index| Box::pin(append::run(world, histories.appends.clone(), index)),
    },
    Workload {
        name: "mirror",
        group: "mirror",
        draw: |random| *random.pick(&[0, 0, 2, 3]),
        is_for_toy: false,
        run: |world, _, index| Box::pin(mirror::run(world, index)),
    },
    Workload {
        name: "rewriter",
        group: "rewriter",
        draw: |random| *random.pick(&[0, 1, 1, 2]),
        is_for_toy: false,
        run: |world, _, index| Box::pin(rewriter::run(world, index)),
    },
    Workload {
        name: "publisher",
        group: "pubsub",
        draw: |random| if random.chance(3) { random.between(1, 2) } else { 0 },
        is_for_toy: false,
        run: |world, histories, index| Box::pin(pubsub::publish(world, histories.voices.clone(), Topic::News, index)),
    },
    Workload {
        name: "subscriber",
        group: "pubsub",
        draw: |random| if random.chance(3) { random.between(1, 3) } else { 0 },
        is_for_toy: false,
        run: |world, histories, index| Box::pin(pubsub::listen(world, histories.voices.clone(), Topic::News, index)),
    },
    Workload {
        name: "event-source",
        group: "events",
        draw: |random| if random.chance(4) { random.between(1, 2) } else { 0 },
        is_for_toy: false,
        run: |world, histories, index| Box::pin(pubsub::publish(world, histories.events.clone(), Topic::Events, index)),
    },
    Workload {
        name: "event-listener",
        group: "events",
        draw: |random| if random.chance(4) { random.between(1, 2) } else { 0 },
        is_for_toy: false,
        run: |world, histories, index| Box::pin(pubsub::listen(world, histories.events.clone(), Topic::Events, index)),
    },
    Workload {
        name: "adder",
        group: "groups",
        draw: |random| if random.chance(3) { random.between(1, 2) } else { 0 },
        is_for_toy: false,
        run: |world, histories, index| Box::pin(groups::add(world, histories.crew.clone(), index)),
    },
    Workload {
        name: "worker",
        group: "groups",
        draw: |random| if random.chance(3) { random.between(1, 3) } else { 0 },
        is_for_toy: false,
        run: |world, histories, index| Box::pin(groups::work(world, histories.crew.clone(), index)),
    },
    Workload {
        name: "tracked",
        group: "tracking",
        draw: |random| if random.chance(3) { random.between(1, 2) } else { 0 },
        is_for_toy: false,
        run: |world, histories, index| Box::pin(tracking::write(world, histories.written.clone(), index)),
    },
    Workload {
        name: "tracker",
        group: "tracking",
        draw: |random| if random.chance(3) { random.between(1, 3) } else { 0 },
        is_for_toy: false,
        run: |world, histories, index| Box::pin(tracking::read(world, histories.written.clone(), index)),
    },
    Workload {
        name: "echo",
        group: "echo",
        draw: |random| *random.pick(&[0, 1, 4]),
        is_for_toy: false,
        run: |world, _, index| Box::pin(echo::run(world, index)),
    },
    Workload {
        name: "doomed",
        group: "doomed",
        draw: |random| u64::from(random.chance(4)),
        is_for_toy: false,
        run: |world, _, index| Box::pin(doomed::run(world, index)),
    },
    Workload {
        name: "slow",
        group: "slow",
        draw: |random| u64::from(random.chance(6)),
        is_for_toy: false,
        run: |world, _, index| Box::pin(slow::run(world, index)),
    },
];

/// How many clients of each workload a timeline has.
pub fn draw(seed: u64, is_node: bool) -> BTreeMap<&'static str, u64> {
    let fitting = ALL.iter().filter(|workload| is_node || workload.is_for_toy);
    fitting.map(|workload| (workload.name, (workload.draw)(&mut Random::of(seed, workload.group)))).collect()
}

/// Lets some virtual time pass, so that clients meet in ever other ways.
pub async fn think(random: &mut Random) {
    let us_max = *random.pick(&[0, 2000, 20_000]);
    if us_max > 0 {
        time::sleep(Duration::from_micros(random.below(us_max))).await;
    }
}
