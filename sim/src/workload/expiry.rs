//! Keys that expire. A client gives each of its keys one time to live, in one of the ways to do so, and looks at them as
//! long as they live and after: none may be gone early, none may be there late, and the moment stays what it was, to the
//! millisecond, whatever crashes in between (RELIABILITY D17).

use std::collections::VecDeque;
use std::io;

use simurgh_kernel::time;
use simurgh_protocol::resp::decode::Value;

use super::think;
use crate::client::{Client, number};
use crate::random::Random;
use crate::tally;
use crate::world::{Finding, World};

/// How many keys a client remembers. Most have been dead for long when they are forgotten.
const KEYS_MAX: usize = 24;

/// The longest time to live, in milliseconds.
pub const LIFE_MS_MAX: u64 = 10_000;

/// A key whose write was acknowledged.
struct Mortal {
    key: String,
    /// The moment at which it dies, as the server said it, in milliseconds of Unix time.
    dies_ms: i64,
    sent_ns: u64,
    acknowledged_ns: u64,
    /// Key and time to live came in one command: where the key is, its time to live is.
    is_atomic: bool,
    /// Somebody has seen that it was dead, then.
    seen_dead_ns: Option<u64>,
}

struct Mortals {
    world: World,
    name: String,
    client: Client,
    random: Random,
    next_number: u64,
    keys: VecDeque<Mortal>,
}

/// Runs one client until the world stops.
pub async fn run(world: World, index: u64) {
    let name = format!("expiry-{index}");
    let mut mortals = Mortals {
        client: Client::new(world.address),
        random: Random::of(world.options.seed, &name),
        next_number: 0,
        keys: VecDeque::new(),
        world,
        name,
    };
    while !mortals.world.is_stopping() {
        if let Err(error) = mortals.turn().await {
            mortals.world.connection_failed(&mortals.name, &error);
        }
        think(&mut mortals.random).await;
    }
}

impl Mortals {
    async fn turn(&mut self) -> io::Result<()> {
        if !self.client.is_connected() {
            self.client.connect().await?;
            for index in 0..self.keys.len() {
                self.look(index).await?;
            }
        }
        if self.keys.is_empty() || self.random.chance(2) {
            self.write().await
        } else {
            let index = self.random.index(self.keys.len());
            self.look(index).await
        }
    }

    /// Writes a key that nobody wrote before, and asks when it will die.
    async fn write(&mut self) -> io::Result<()> {
        let key = format!("{}:{}", self.name, self.next_number);
        self.next_number += 1;
        let longest = *self.random.pick(&[20, 500, LIFE_MS_MAX]);
        let ttl_ms = i64::try_from(self.random.between(1, longest)).unwrap_or(1);
        let (sent_ns, sent) = (time::monotonic_ns(), self.world.server_clock());
        let sent_ms = sent.ms;
        let (ttl, at) = (ttl_ms.to_string(), (sent_ms + ttl_ms).to_string());
        let words = key.as_bytes();
        let way = self.random.index(3);
        let requests: &[&[&[u8]]] = match way {
            0 => &[&[b"SET", words, b"v", b"PX", ttl.as_bytes()]],
            1 => &[&[b"SET", words, b"v", b"PXAT", at.as_bytes()]],
            _ => &[&[b"SET", words, b"v"], &[b"PEXPIRE", words, ttl.as_bytes()]],
        };
        self.world.trace.note(&self.name, format_args!("{key} way {way} lives {ttl_ms} ms"));
        self.client.send(requests).await?;
        let mut is_done = true;
        for _ in requests {
            is_done &= !matches!(self.client.receive().await?, Value::Error(_));
        }
        let (acknowledged_ns, acknowledged_ms) = (time::monotonic_ns(), self.world.server_clock().ms);
        let dies = self.client.call(&[b"PEXPIRETIME", words]).await?;
        let told = self.world.server_clock();
        self.world.trace.note(&self.name, format_args!("{key} dies at {dies:?}"));
        let (Some(dies_ms), true) = (number(&dies), is_done) else { return Ok(()) };
        let earliest = sent_ms + ttl_ms;
        let latest = if way == 1 { earliest } else { acknowledged_ms + ttl_ms };
        match dies_ms {
            // It has died since; if it could not, it died early.
            -2 if told.latest_ms >= earliest => return Ok(()),
            _ if told.steps != sent.steps => {}
            _ if (earliest..=latest).contains(&dies_ms) => {}
            _ => self.broken(format_args!("{key} was to die within {earliest}..={latest}, not at {dies_ms}")),
        }
        if self.keys.len() == KEYS_MAX {
            self.keys.pop_front();
        }
        self.keys.push_back(Mortal { key, dies_ms, sent_ns, acknowledged_ns, is_atomic: way < 2, seen_dead_ns: None });
        Ok(())
    }

    /// Looks whether a key is there exactly as long as it should be.
    async fn look(&mut self, index: usize) -> io::Result<()> {
        let key = self.keys[index].key.clone();
        let before = self.world.server_clock();
        self.client.send(&[&[b"GET", key.as_bytes()], &[b"PEXPIRETIME", key.as_bytes()]]).await?;
        let (value, dies) = (self.client.receive().await?, self.client.receive().await?);
        let (looked_ns, after) = (time::monotonic_ns(), self.world.server_clock());
        self.world.trace.note(&self.name, format_args!("{key} is {value:?}, dies at {dies:?}"));
        if matches!(value, Value::Error(_)) {
            return Ok(());
        }
        let mortal = &self.keys[index];
        let survives = self.world.must_survive(mortal.sent_ns, mortal.acknowledged_ns);
        let is_there = matches!(value, Value::Bulk(_));
        let dies_ms = number(&dies).unwrap_or(0);
        let is_steady = before.steps == after.steps;
        if is_there && is_steady && before.ms >= mortal.dies_ms && (mortal.is_atomic || survives) {
            self.broken(format_args!("{key} is there at {before:?}, but died at {}", mortal.dies_ms));
        }
        if !is_there && after.latest_ms < mortal.dies_ms && survives {
            self.broken(format_args!("{key} is gone at {after:?}, but lives until {}", mortal.dies_ms));
        }
        if let Some(seen_ns) = mortal.seen_dead_ns {
            if after.ms < mortal.dies_ms {
                tally::reach("an expired key was looked at after the clock stepped back");
            }
            if is_there && self.world.must_survive(seen_ns, seen_ns) {
                self.broken(format_args!("{key} is there at {before:?} again, but was seen dead before"));
            }
        }
        let may_have_lost_it = !mortal.is_atomic && !survives && dies_ms == -1;
        if dies_ms != -2 && dies_ms != mortal.dies_ms && !may_have_lost_it {
            self.broken(format_args!("{key} dies at {dies_ms}, which was {}", mortal.dies_ms));
        }
        if !is_there {
            self.keys[index].seen_dead_ns.get_or_insert(looked_ns);
        }
        Ok(())
    }

    fn broken(&self, what: std::fmt::Arguments<'_>) {
        self.world.find(Finding::Broken, what.to_string());
    }
}
