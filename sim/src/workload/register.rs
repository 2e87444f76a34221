//! Shared registers: clients SET and GET the same keys, each value written once in the whole timeline. Keys are replaced
//! often, because judging takes long for long histories.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use simurgh_kernel::time;
use simurgh_protocol::resp::decode::Value;

use super::think;
use crate::client::{Client, number};
use crate::judge::linear::{Kind, Operation};
use crate::random::Random;
use crate::world::{Finding, World};

/// After this many operations a key is left alone.
const OPERATIONS_PER_KEY: usize = 80;

/// What all clients did, by key.
#[derive(Debug, Clone, Default)]
pub struct History(Arc<Mutex<Vec<Vec<Operation>>>>);

impl History {
    /// The operations of each key.
    pub fn keys(&self) -> Vec<Vec<Operation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes that an operation begins, on the key whose turn it is.
    fn begin(&self, kind: Kind) -> Place {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if keys.last().is_none_or(|operations| operations.len() >= OPERATIONS_PER_KEY) {
            keys.push(Vec::new());
        }
        let key = keys.len() - 1;
        keys[key].push(Operation { kind, invoked_ns: time::monotonic_ns(), completed_ns: None });
        Place { key, index: keys[key].len() - 1 }
    }

    fn end(&self, place: &Place, kind: Kind) {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let operation = &mut keys[place.key][place.index];
        operation.kind = kind;
        operation.completed_ns = Some(time::monotonic_ns());
    }
}

struct Place {
    key: usize,
    index: usize,
}

/// Runs one client until the world stops.
pub async fn run(world: World, history: History, index: u64) {
    let name = format!("register-{index}");
    let mut random = Random::of(world.options.seed, &name);
    let mut client = Client::new(world.address);
    let mut next_value = i64::try_from(index).unwrap_or(0) * 1_000_000 + 1;
    while !world.is_stopping() {
        let done = if client.is_connected() {
            let write = random.chance(2).then_some(next_value);
            next_value += i64::from(write.is_some());
            operate(&world, &history, &name, &mut client, write).await
        } else {
            client.connect().await
        };
        if let Err(error) = done {
            world.connection_failed(&name, &error);
        }
        think(&mut random).await;
    }
}

async fn operate(
    world: &World,
    history: &History,
    name: &str,
    client: &mut Client,
    write: Option<i64>,
) -> io::Result<()> {
    let place = history.begin(write.map_or(Kind::Read(None), Kind::Write));
    let key = format!("register:{}", place.key);
    let value = write.map(|value| value.to_string()).unwrap_or_default();
    world.trace.note(name, format_args!("{key} {write:?}"));
    let reply = match write {
        Some(_) => client.call(&[b"SET", key.as_bytes(), value.as_bytes()]).await?,
        None => client.call(&[b"GET", key.as_bytes()]).await?,
    };
    world.trace.note(name, format_args!("{key} {reply:?}"));
    match (write, &reply) {
        // An error leaves a write unknown and tells nothing about a read.
        (_, Value::Error(_)) => {}
        (Some(value), Value::Simple(_)) => history.end(&place, Kind::Write(value)),
        (None, Value::Null | Value::Bulk(_)) => history.end(&place, Kind::Read(number(&reply))),
        _ => world.find(Finding::Broken, format!("{name} gets {reply:?}")),
    }
    Ok(())
}
