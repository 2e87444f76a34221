//! Shared registers: clients read and write the same keys in five ways, each value written once in the whole timeline. Keys are replaced
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
            let is_node = world.options.scenario.is_node();
            let kind = match random.below(if is_node { 25 } else { 20 }) {
                0..10 => Kind::Write(next_value),
                10..20 => Kind::Read(None),
                20..22 => Kind::Swap(next_value, None),
                22..24 => Kind::WriteIfAbsent(next_value, false),
                _ => Kind::Delete(false),
            };
            next_value += i64::from(kind.written().is_some());
            operate(&world, &history, &name, &mut client, kind).await
        } else {
            client.connect().await
        };
        if let Err(error) = done {
            world.connection_failed(&name, &error);
        }
        think(&mut random).await;
    }
}

async fn operate(world: &World, history: &History, name: &str, client: &mut Client, kind: Kind) -> io::Result<()> {
    let place = history.begin(kind);
    let key = format!("register:{}", place.key);
    let (key, value) = (key.as_bytes(), kind.written().unwrap_or(0).to_string());
    let value = value.as_bytes();
    world.trace.note(name, format_args!("register:{} {kind:?}", place.key));
    let reply = match kind {
        Kind::Write(_) => client.call(&[b"SET", key, value]).await?,
        Kind::Read(_) => client.call(&[b"GET", key]).await?,
        Kind::Swap(..) => client.call(&[b"GETSET", key, value]).await?,
        Kind::WriteIfAbsent(..) => client.call(&[b"SETNX", key, value]).await?,
        Kind::Delete(_) => client.call(&[b"DEL", key]).await?,
    };
    world.trace.note(name, format_args!("register:{} {reply:?}", place.key));
    match (kind, &reply) {
        // An error leaves a write unknown and tells nothing about a read.
        (_, Value::Error(_)) => {}
        (Kind::Write(_), Value::Simple(_)) => history.end(&place, kind),
        (Kind::Read(_), Value::Null | Value::Bulk(_)) => history.end(&place, Kind::Read(number(&reply))),
        (Kind::Swap(value, _), Value::Null | Value::Bulk(_)) => history.end(&place, Kind::Swap(value, number(&reply))),
        (Kind::WriteIfAbsent(value, _), Value::Integer(wrote)) => {
            history.end(&place, Kind::WriteIfAbsent(value, *wrote == 1));
        }
        (Kind::Delete(_), Value::Integer(existed)) => history.end(&place, Kind::Delete(*existed == 1)),
        _ => world.find(Finding::Broken, format!("{name} gets {reply:?} for {kind:?}")),
    }
    Ok(())
}
