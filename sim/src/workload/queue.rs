//! Queues between clients: producers push numbered items to the end, consumers wait for one at the head and take it, or move it to
//! another list, and now and then leave while they wait. One queue is a sorted set, whose items are numbered by all producers together. `judge::queue` tells what must hold.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use simurgh_kernel::time;
use simurgh_protocol::resp::decode::Value;

use super::think;
use crate::client::{Client, number};
use crate::judge::queue::{End, History, Outcome, Pop, Push};
use crate::random::Random;
use crate::tally;
use crate::world::{Finding, World};

/// The first is waited for by itself alone, so that who comes first is served first. Each lies in a shard of its own, if there are some.
const QUEUES: [&str; 4] = ["queue:0", "queue:1", "queue:2", "queue:ranked"];

/// Which of them is a sorted set. The toy has none.
const RANKED: usize = 3;

/// Where the items of each queue are moved.
const MOVED: [&str; RANKED] = ["moved:0", "moved:1", "moved:2"];

/// What all clients did.
#[derive(Debug, Clone, Default)]
pub struct Book {
    history: Arc<Mutex<History>>,
    /// The last item for the sorted set.
    last_ranked: Arc<AtomicU64>,
}

impl Book {
    /// Everything so far.
    pub fn history(&self) -> History {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Pushes until the world stops.
pub async fn produce(world: World, book: Book, index: u64) {
    let name = format!("producer-{index}");
    let mut random = Random::of(world.options.seed, &name);
    let mut client = Client::new(world.address);
    let mut next_item = index * 1_000_000 + 1;
    // In some timelines nothing comes for so long that who was forgotten is not found again by what comes next.
    let is_slow = Random::of(world.options.seed, "pace of producers").chance(2);
    while !world.is_stopping() {
        let done = if client.is_connected() {
            push(&world, &book, &name, &mut client, &mut random, &mut next_item).await
        } else {
            client.connect().await
        };
        if let Err(error) = done {
            world.connection_failed(&name, &error);
        }
        think(&mut random).await;
        // Seldom enough that consumers wait.
        if is_slow {
            time::sleep(Duration::from_millis(random.below(2500))).await;
        } else if random.chance(4) {
            time::sleep(Duration::from_millis(random.below(300))).await;
        }
    }
}

async fn push(
    world: &World,
    book: &Book,
    name: &str,
    client: &mut Client,
    random: &mut Random,
    next_item: &mut u64,
) -> io::Result<()> {
    let queue = random.index(if world.options.scenario.is_node() { QUEUES.len() } else { RANKED });
    let count = random.between(1, 3);
    let first = if queue == RANKED {
        1_000_000_000 + book.last_ranked.fetch_add(count, Ordering::Relaxed)
    } else {
        std::mem::replace(next_item, *next_item + count)
    };
    let items: Vec<u64> = (first..first + count).collect();
    let texts: Vec<String> = items.iter().map(u64::to_string).collect();
    let name_of_command: &[u8] = if queue == RANKED { b"ZADD" } else { b"RPUSH" };
    let mut words: Vec<&[u8]> = vec![name_of_command, QUEUES[queue].as_bytes()];
    // A score and its member are the same.
    let times = if queue == RANKED { 2 } else { 1 };
    words.extend(texts.iter().flat_map(|text| std::iter::repeat_n(text.as_bytes(), times)));
    world.trace.note(name, format_args!("{} {items:?}", QUEUES[queue]));
    let index = {
        let mut history = book.lock();
        history.pushes.push(Push { queue, items, invoked_ns: time::monotonic_ns(), completed_ns: None });
        history.pushes.len() - 1
    };
    let reply = client.call(&words).await?;
    world.trace.note(name, format_args!("{reply:?}"));
    match reply {
        Value::Integer(_) => book.lock().pushes[index].completed_ns = Some(time::monotonic_ns()),
        Value::Error(_) => {}
        other => world.find(Finding::Broken, format!("{name} gets {other:?}")),
    }
    Ok(())
}

/// A client that takes items.
struct Consumer {
    world: World,
    book: Book,
    name: String,
    client: Client,
    random: Random,
}

/// Takes items until the world stops.
pub async fn consume(world: World, book: Book, index: u64) {
    let name = format!("consumer-{index}");
    let mut random = Random::of(world.options.seed, &name);
    // Some take from the first queue alone, some mostly from the others.
    let favours_first = random.chance(2);
    let client = Client::new(world.address);
    let mut consumer = Consumer { world, book, name, client, random };
    while !consumer.world.is_stopping() {
        let done = if consumer.client.is_connected() {
            consumer.take(favours_first).await
        } else {
            consumer.client.connect().await
        };
        if let Err(error) = done {
            consumer.world.connection_failed(&consumer.name, &error);
        }
        think(&mut consumer.random).await;
    }
}

impl Consumer {
    async fn take(&mut self, favours_first: bool) -> io::Result<()> {
        let only_first = if favours_first { !self.random.chance(4) } else { self.random.chance(4) };
        let timeout_ms = *self.random.pick(&[20, 1000, 2500]);
        let is_node = self.world.options.scenario.is_node();
        let (queues, is_move) = match (only_first, self.random.index(if is_node { 4 } else { 3 })) {
            (true, _) => (vec![0], false),
            (false, 0) => (vec![1, 2], false),
            (false, 1) => (vec![2, 1], false),
            (false, 3) => (vec![RANKED], false),
            (false, _) => (vec![1 + self.random.index(2)], true),
        };
        self.world.trace.note(&self.name, format_args!("wants {queues:?} in {timeout_ms} ms, moves {is_move}"));
        let invoked_ns = time::monotonic_ns();
        let mut pop = Pop {
            queues,
            is_move,
            invoked_ns,
            arrived_ns: None,
            timeout_ns: timeout_ms * 1_000_000,
            ended_ns: invoked_ns,
            outcome: Outcome::Unknown,
        };
        let done = self.wait(&mut pop, timeout_ms).await;
        pop.ended_ns = time::monotonic_ns();
        self.world.trace.note(&self.name, format_args!("{:?}", pop.outcome));
        self.book.lock().pops.push(pop);
        done
    }

    /// Sends the command, and waits for its reply or leaves.
    async fn wait(&mut self, pop: &mut Pop, timeout_ms: u64) -> io::Result<()> {
        let timeout = format!("{}.{:03}", timeout_ms / 1000, timeout_ms % 1000);
        let first = QUEUES[pop.queues[0]].as_bytes();
        let mut words: Vec<&[u8]> = Vec::new();
        if pop.is_move {
            words.extend([b"BLMOVE", first, MOVED[pop.queues[0]].as_bytes(), b"LEFT", b"RIGHT"]);
        } else {
            words.push(if pop.queues == [RANKED] { b"BZPOPMIN" } else { b"BLPOP" });
            words.extend(pop.queues.iter().map(|queue| QUEUES[*queue].as_bytes()));
        }
        words.push(timeout.as_bytes());
        self.client.send(&[&[b"PING"], &words]).await?;
        self.client.receive().await?;
        pop.arrived_ns = Some(time::monotonic_ns());
        let leaves_us = self.random.chance(8).then(|| self.random.below(timeout_ms * 1000));
        let reply = match leaves_us {
            None => self.client.receive().await?,
            Some(us) => match time::timeout(Duration::from_micros(us), self.client.receive()).await {
                Ok(reply) => reply?,
                Err(_) => {
                    self.client.disconnect();
                    return Ok(());
                }
            },
        };
        pop.outcome = match &reply {
            Value::Null => {
                tally::reach("a wait ended with nothing");
                Outcome::Nothing
            }
            Value::Error(_) => Outcome::Unknown,
            Value::Bulk(_) if pop.is_move => {
                item_of(&reply).map_or(Outcome::Unknown, |item| Outcome::Item(pop.queues[0], item))
            }
            Value::Array(pair) => outcome_of(pair).unwrap_or_else(|| self.unexpected(&reply)),
            _ => self.unexpected(&reply),
        };
        Ok(())
    }

    fn unexpected(&self, reply: &Value) -> Outcome {
        self.world.find(Finding::Broken, format!("{} gets {reply:?}", self.name));
        Outcome::Unknown
    }
}

fn item_of(value: &Value) -> Option<u64> {
    number(value).and_then(|number| u64::try_from(number).ok())
}

fn outcome_of(pair: &[Value]) -> Option<Outcome> {
    let (key, item) = match pair {
        [Value::Bulk(key), item] => (key, item),
        // Its score is the item once more.
        [Value::Bulk(key), item, score] if item == score => (key, item),
        _ => return None,
    };
    let queue = QUEUES.iter().position(|queue| queue.as_bytes() == key)?;
    Some(Outcome::Item(queue, item_of(item)?))
}

/// Reads what is there.
pub async fn read(client: &mut Client) -> io::Result<End> {
    let mut end = End::default();
    for (keys, lists) in [(&QUEUES[..RANKED], &mut end.queues), (&MOVED[..], &mut end.moved)] {
        for key in keys {
            let reply = client.call(&[b"LRANGE", key.as_bytes(), b"0", b"-1"]).await?;
            let Value::Array(items) = reply else { return Err(io::ErrorKind::InvalidData.into()) };
            lists.push(items.iter().filter_map(item_of).collect());
        }
    }
    if let Value::Array(items) = client.call(&[b"ZRANGE", QUEUES[RANKED].as_bytes(), b"0", b"-1"]).await? {
        end.queues.push(items.iter().filter_map(item_of).collect());
    }
    Ok(end)
}
