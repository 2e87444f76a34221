//! Client-side caching: readers keep what they have read until they are told that it has changed. Once a write was answered, whoever
//! still keeps the value before it has not been told, which must not be.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use simurgh_kernel::time;
use simurgh_protocol::resp::decode::Value;

use super::think;
use crate::client::{Client, number};
use crate::random::Random;
use crate::world::{Finding, World};

/// How many keys each writer has.
const KEYS: u64 = 3;

/// What was written last to each key and answered, and when it was sent.
#[derive(Debug, Clone, Default)]
pub struct Written(Arc<Mutex<BTreeMap<String, (i64, u64)>>>);

impl Written {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, (i64, u64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(writer: u64, key: u64) -> String {
    format!("tracked:{writer}:{key}")
}

/// Writes rising numbers to keys of its own until the world stops.
pub async fn write(world: World, written: Written, index: u64) {
    let name = format!("written-{index}");
    let mut random = Random::of(world.options.seed, &name);
    let mut client = Client::new(world.address);
    let mut next = 1;
    while !world.is_stopping() {
        let done = if client.is_connected() {
            let key = key(index, random.below(KEYS));
            let text = next.to_string();
            next += 1;
            let sent_ns = time::monotonic_ns();
            world.trace.note(&name, format_args!("{key} = {text}"));
            client.call(&[b"SET", key.as_bytes(), text.as_bytes()]).await.map(|reply| {
                if matches!(reply, Value::Simple(_)) {
                    written.lock().insert(key, (next - 1, sent_ns));
                }
            })
        } else {
            client.connect().await
        };
        if let Err(error) = done {
            world.connection_failed(&name, &error);
        }
        think(&mut random).await;
    }
}

/// Reads and keeps until the world stops.
pub async fn read(world: World, written: Written, index: u64) {
    let name = format!("tracking-{index}");
    let mut reader = Reader {
        random: Random::of(world.options.seed, &name),
        client: Client::new(world.address),
        kept: BTreeMap::new(),
        world,
        written,
        name,
    };
    while !reader.world.is_stopping() {
        if let Err(error) = reader.live().await {
            reader.world.connection_failed(&reader.name, &error);
        }
        reader.client.disconnect();
        think(&mut reader.random).await;
    }
}

struct Reader {
    world: World,
    written: Written,
    name: String,
    client: Client,
    random: Random,
    kept: BTreeMap<String, i64>,
}

impl Reader {
    /// The life of a connection, with which everything kept ends.
    async fn live(&mut self) -> io::Result<()> {
        self.kept.clear();
        self.client.connect().await?;
        self.call(&[b"HELLO", b"3"]).await?;
        let tracked = self.call(&[b"CLIENT", b"TRACKING", b"ON"]).await?;
        if tracked != Value::Simple(b"OK".to_vec()) {
            return Ok(());
        }
        for _ in 0..self.random.between(1, 60) {
            if self.world.is_stopping() {
                break;
            }
            if self.random.chance(3) {
                self.check().await?;
            } else {
                self.look().await?;
            }
            think(&mut self.random).await;
        }
        Ok(())
    }

    async fn look(&mut self) -> io::Result<()> {
        let key = key(self.random.below(2), self.random.below(KEYS));
        let reply = self.call(&[b"GET", key.as_bytes()]).await?;
        self.world.trace.note(&self.name, format_args!("keeps {key} {reply:?}"));
        match reply {
            Value::Bulk(_) => _ = self.kept.insert(key, number(&reply).unwrap_or(0)),
            _ => _ = self.kept.remove(&key),
        }
        Ok(())
    }

    /// What was answered before this is asked has been told before this is answered.
    async fn check(&mut self) -> io::Result<()> {
        let before = self.written.lock().clone();
        self.call(&[b"PING"]).await?;
        // What was written before a crash may have been lost with it.
        let crashed_ns = self.world.crashes().last().map_or(0, |crash| crash.ns);
        for (key, value) in &self.kept {
            let newer = before.get(key).filter(|(newer, sent_ns)| newer > value && *sent_ns > crashed_ns);
            if let Some((newer, _)) = newer {
                let what = format!("{} still keeps {value} of {key}, where {newer} had been written", self.name);
                self.world.find(Finding::Broken, what);
            }
        }
        Ok(())
    }

    /// Calls, and takes what is told meanwhile.
    async fn call(&mut self, words: &[&[u8]]) -> io::Result<Value> {
        self.client.send(&[words]).await?;
        loop {
            match self.client.receive().await? {
                Value::Push(parts) => self.told(&parts),
                reply => return Ok(reply),
            }
        }
    }

    fn told(&mut self, parts: &[Value]) {
        self.world.trace.note(&self.name, format_args!("is told {parts:?}"));
        match parts {
            [Value::Bulk(kind), Value::Array(keys)] if kind == b"invalidate" => {
                for key in keys {
                    if let Value::Bulk(key) = key {
                        self.kept.remove(String::from_utf8_lossy(key).as_ref());
                    }
                }
            }
            [Value::Bulk(kind), Value::Null] if kind == b"invalidate" => self.kept.clear(),
            other => self.world.find(Finding::Broken, format!("{} is told {other:?}", self.name)),
        }
    }
}
