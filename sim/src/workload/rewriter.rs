//! Snapshots and rewrites of the log, asked for at random moments. What they must not lose is what the other workloads look for after
//! the next crash; here only the answers are judged.

use std::io;

use simurgh_protocol::resp::decode::Value;

use super::think;
use crate::client::Client;
use crate::random::Random;
use crate::world::{Finding, World};

/// What is asked for; a rewrite most often, as only that touches the log.
const REQUESTS: [&[&[u8]]; 10] = [
    &[b"BGREWRITEAOF"],
    &[b"BGREWRITEAOF"],
    &[b"BGREWRITEAOF"],
    &[b"BGREWRITEAOF"],
    &[b"BGSAVE"],
    &[b"BGSAVE", b"SCHEDULE"],
    &[b"BGSAVE", b"CANCEL"],
    &[b"SAVE"],
    &[b"CONFIG", b"SET", b"aof-use-rdb-preamble", b"no"],
    &[b"CONFIG", b"SET", b"aof-use-rdb-preamble", b"yes"],
];

/// Makes all but the smallest collections structures, which a snapshot sees in steps.
const UNPACK: &[&[u8]] = &[
    b"CONFIG",
    b"SET",
    b"hash-max-listpack-entries",
    b"2",
    b"set-max-listpack-entries",
    b"2",
    b"set-max-intset-entries",
    b"2",
    b"zset-max-listpack-entries",
    b"2",
    b"list-max-listpack-size",
    b"2",
    b"stream-node-max-entries",
    b"2",
];

/// Runs one client until the world stops.
pub async fn run(world: World, index: u64) {
    let name = format!("rewriter-{index}");
    let mut random = Random::of(world.options.seed, &name);
    let mut client = Client::new(world.address);
    while !world.is_stopping() {
        let done = if client.is_connected() {
            ask(&world, &name, &mut client, &mut random).await
        } else {
            unpack(&mut client).await
        };
        if let Err(error) = done {
            world.connection_failed(&name, &error);
        }
        for _ in 0..random.below(8) {
            think(&mut random).await;
        }
    }
}

async fn unpack(client: &mut Client) -> io::Result<()> {
    client.connect().await?;
    client.call(UNPACK).await.map(drop)
}

async fn ask(world: &World, name: &str, client: &mut Client, random: &mut Random) -> io::Result<()> {
    let request = *random.pick(&REQUESTS);
    let reply = client.call(request).await?;
    world.trace.note(name, format_args!("{} {reply:?}", request[0].escape_ascii()));
    match reply {
        Value::Simple(_) | Value::Error(_) => {}
        other => world.find(Finding::Broken, format!("{name} gets {other:?}")),
    }
    Ok(())
}
