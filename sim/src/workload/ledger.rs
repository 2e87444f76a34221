//! Private keys. A client numbers its writes and sends them in pipelines to keys of its own. It knows exactly what it
//! wrote and in which order, so whenever it connects anew it can tell whether what is there is a state that the server
//! was in (a prefix of its writes), whether everything promised is there, and that nothing is there that it never sent.

use std::io;

use simurgh_kernel::time;
use simurgh_protocol::resp::decode::Value;

use super::think;
use crate::client::{Client, number};
use crate::random::Random;
use crate::world::{Finding, World};

/// Few keys, so that most writes replace an earlier one.
const KEYS: usize = 3;

/// The longest pipeline.
const PIPELINE_MAX: u64 = 8;

struct Sent {
    number: i64,
    key: usize,
    sent_ns: u64,
    fate: Fate,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// No reply: done or not, but in order.
    Unknown,
    /// Answered with OK, then.
    Acknowledged(u64),
    /// Answered with an error: may be there or not, whatever comes after it.
    Refused,
}

struct Ledger {
    world: World,
    name: String,
    client: Client,
    random: Random,
    next_number: i64,
    /// In the order sent. What a crash undid is removed once that is known.
    sent: Vec<Sent>,
    /// Numbers up to here are certain to be there, because they were read when reading promised it.
    seen: i64,
}

/// Runs one client until the world stops.
pub async fn run(world: World, index: u64) {
    let name = format!("ledger-{index}");
    let mut ledger = Ledger {
        client: Client::new(world.address),
        random: Random::of(world.options.seed, &name),
        next_number: 1,
        sent: Vec::new(),
        seen: 0,
        world,
        name,
    };
    while !ledger.world.is_stopping() {
        ledger.turn().await;
        think(&mut ledger.random).await;
    }
    ledger.last_look().await;
}

impl Ledger {
    async fn turn(&mut self) {
        let done = if self.client.is_connected() { self.write().await } else { self.look().await };
        if let Err(error) = done {
            self.world.connection_failed(&self.name, &error);
        }
    }

    /// Reads once more, however often the server still crashes meanwhile.
    async fn last_look(&mut self) {
        while self.world.findings().is_empty() {
            match self.look().await {
                Ok(()) => return,
                Err(error) => self.world.connection_failed(&self.name, &error),
            }
        }
    }

    fn key(&self, key: usize) -> String {
        format!("{}:{key}", self.name)
    }

    async fn write(&mut self) -> io::Result<()> {
        let count = self.random.between(1, PIPELINE_MAX);
        let first = self.sent.len();
        let mut commands = Vec::new();
        for _ in 0..count {
            let key = self.random.index(KEYS);
            commands.push([b"SET".to_vec(), self.key(key).into_bytes(), self.next_number.to_string().into_bytes()]);
            self.sent.push(Sent { number: self.next_number, key, sent_ns: time::monotonic_ns(), fate: Fate::Unknown });
            self.next_number += 1;
        }
        self.world.trace.note(&self.name, format_args!("sends {count} up to {}", self.next_number - 1));
        let words: Vec<Vec<&[u8]>> =
            commands.iter().map(|command| command.iter().map(Vec::as_slice).collect()).collect();
        let requests: Vec<&[&[u8]]> = words.iter().map(Vec::as_slice).collect();
        self.client.send(&requests).await?;
        for sent in first..self.sent.len() {
            let reply = self.client.receive().await?;
            self.world.trace.note(&self.name, format_args!("{} {reply:?}", self.sent[sent].number));
            self.sent[sent].fate = match reply {
                Value::Simple(_) => Fate::Acknowledged(time::monotonic_ns()),
                _ => Fate::Refused,
            };
        }
        Ok(())
    }

    /// Connects and reads all keys, and judges what is there.
    async fn look(&mut self) -> io::Result<()> {
        self.client.connect().await?;
        let keys: Vec<String> = (0..KEYS).map(|key| self.key(key)).collect();
        let mut words: Vec<&[u8]> = vec![b"MGET"];
        words.extend(keys.iter().map(String::as_bytes));
        let reply = self.client.call(&words).await?;
        self.world.trace.note(&self.name, format_args!("finds {reply:?}"));
        match reply {
            Value::Array(values) if values.len() == KEYS => {
                let found: Vec<i64> = values.iter().map(|value| number(value).unwrap_or(0)).collect();
                self.judge(&found);
            }
            other => self.world.find(Finding::Broken, format!("{} reads {other:?}", self.name)),
        }
        Ok(())
    }

    fn judge(&mut self, found: &[i64]) {
        let last = found.iter().copied().max().unwrap_or(0);
        for (key, &there) in found.iter().enumerate() {
            if !self.may_hold(key, there, last) {
                let what = format!("{} holds {there}, which no state before {last} does", self.key(key));
                self.world.find(Finding::Broken, what);
            }
        }
        let promised = self.sent.iter().filter(|sent| match sent.fate {
            Fate::Acknowledged(ns) => self.world.must_survive(sent.sent_ns, ns),
            Fate::Unknown | Fate::Refused => false,
        });
        let floor = promised.map(|sent| sent.number).max().unwrap_or(0).max(self.seen);
        if last < floor {
            self.world.find(Finding::Broken, format!("{} lost {floor}: the last that is there is {last}", self.name));
        }
        if self.world.options.nothing_may_be_lost() {
            self.seen = last;
        }
        self.sent.retain(|sent| sent.number <= last);
    }

    /// Whether `there` can be in `key` when everything up to `last` was done in order.
    fn may_hold(&self, key: usize, there: i64, last: i64) -> bool {
        for sent in self.sent.iter().rev().filter(|sent| sent.key == key && sent.number <= last) {
            if sent.number == there {
                return true;
            }
            if sent.fate != Fate::Refused {
                return false;
            }
        }
        there == 0
    }
}
