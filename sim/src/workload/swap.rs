//! Compare and set: a client watches a counter, reads it, and sets the next number in a transaction, which must fail if anybody
//! was faster. So, as with INCR, no number is given twice and none is lost.

use std::io;

use simurgh_protocol::resp::decode::Value;

use super::counter::History;
use super::think;
use crate::client::{Client, number};
use crate::random::Random;
use crate::tally;
use crate::world::{Finding, World};

const KEY: &[u8] = b"swapped";

/// Runs one client until the world stops.
pub async fn run(world: World, history: History, index: u64) {
    let name = format!("swap-{index}");
    let mut random = Random::of(world.options.seed, &name);
    let mut client = Client::new(world.address);
    while !world.is_stopping() {
        let done = if client.is_connected() {
            swap(&world, &history, &name, &mut client, &mut random).await
        } else {
            client.connect().await
        };
        if let Err(error) = done {
            world.connection_failed(&name, &error);
        }
        think(&mut random).await;
    }
}

async fn swap(
    world: &World,
    history: &History,
    name: &str,
    client: &mut Client,
    random: &mut Random,
) -> io::Result<()> {
    client.send(&[&[b"WATCH", KEY], &[b"GET", KEY]]).await?;
    client.receive().await?;
    let before = client.receive().await?;
    if matches!(before, Value::Error(_)) {
        return Ok(());
    }
    let next = number(&before).unwrap_or(0) + 1;
    if random.chance(2) {
        think(random).await;
    }
    let index = history.begin();
    let text = next.to_string();
    client.send(&[&[b"MULTI"], &[b"SET", KEY, text.as_bytes()], &[b"EXEC"]]).await?;
    let mut reply = Value::Null;
    for _ in 0..3 {
        reply = client.receive().await?;
    }
    world.trace.note(name, format_args!("to {next}: {reply:?}"));
    match reply {
        Value::Array(replies) if replies.iter().all(|reply| !matches!(reply, Value::Error(_))) => {
            history.end(index, next);
        }
        Value::Null => {
            tally::reach("a transaction met a changed watch");
            history.undo(index);
        }
        Value::Array(_) | Value::Error(_) => {}
        other => world.find(Finding::Broken, format!("{name} gets {other:?}")),
    }
    Ok(())
}

/// Reads the counter.
pub async fn read(client: &mut Client) -> io::Result<i64> {
    Ok(number(&client.call(&[b"GET", KEY]).await?).unwrap_or(0))
}
