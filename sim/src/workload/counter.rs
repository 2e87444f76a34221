//! One counter that all clients increment. Its replies number the increments, so losing or doubling one shows.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use simurgh_kernel::time;
use simurgh_protocol::resp::decode::Value;

use super::think;
use crate::client::{Client, number};
use crate::random::Random;
use crate::world::{Finding, World};

const KEY: &[u8] = b"counter";

/// One increment that was sent.
#[derive(Debug, Clone, Copy)]
pub struct Increment {
    /// When it was sent.
    pub invoked_ns: u64,
    /// When it was answered, and with what.
    pub answer: Option<(u64, i64)>,
    /// It did not happen.
    pub is_undone: bool,
}

/// What all clients did.
#[derive(Debug, Clone, Default)]
pub struct History(Arc<Mutex<Vec<Increment>>>);

impl History {
    /// Every increment that may have happened, in the order sent.
    pub fn increments(&self) -> Vec<Increment> {
        let increments = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        increments.iter().filter(|increment| !increment.is_undone).copied().collect()
    }

    /// An increment is about to be sent.
    pub fn begin(&self) -> usize {
        let mut increments = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        increments.push(Increment { invoked_ns: time::monotonic_ns(), answer: None, is_undone: false });
        increments.len() - 1
    }

    /// It was answered.
    pub fn end(&self, index: usize, value: i64) {
        let mut increments = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        increments[index].answer = Some((time::monotonic_ns(), value));
    }
}

impl History {
    /// It is certain that it did not happen.
    pub fn undo(&self, index: usize) {
        let mut increments = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        increments[index].is_undone = true;
    }
}

/// Runs one client until the world stops.
pub async fn run(world: World, history: History, index: u64) {
    let name = format!("counter-{index}");
    let mut random = Random::of(world.options.seed, &name);
    let mut client = Client::new(world.address);
    while !world.is_stopping() {
        let done = if client.is_connected() {
            increment(&world, &history, &name, &mut client).await
        } else {
            client.connect().await
        };
        if let Err(error) = done {
            world.connection_failed(&name, &error);
        }
        think(&mut random).await;
    }
}

async fn increment(world: &World, history: &History, name: &str, client: &mut Client) -> io::Result<()> {
    let index = history.begin();
    let reply = client.call(&[b"INCR", KEY]).await?;
    world.trace.note(name, format_args!("{reply:?}"));
    match reply {
        Value::Integer(value) => history.end(index, value),
        Value::Error(_) => {}
        other => world.find(Finding::Broken, format!("{name} gets {other:?}")),
    }
    Ok(())
}

/// Reads the counter.
pub async fn read(client: &mut Client) -> io::Result<i64> {
    Ok(number(&client.call(&[b"GET", KEY]).await?).unwrap_or(0))
}
