//! A reader who asks for megabytes and takes his time. He gets all of it, and meanwhile the server holds no more of it than it
//! says: a client whose output waits is not executed any further.

use std::io;
use std::time::Duration;

use simurgh_kernel::time;
use simurgh_protocol::resp::decode::Value;

use super::think;
use crate::client::Client;
use crate::random::Random;
use crate::tally;
use crate::world::{Finding, World};

/// The length of the value that is read.
const VALUE: usize = 40_000;

/// How often it is asked for at once.
const TIMES: usize = 80;

/// What may wait for one client: the documented pause at a megabyte, one step of output behind it, and a reply.
const WAITING_MAX: i64 = (1 << 20) + (256 << 10) + VALUE as i64 + 10_000;

/// Runs one client until the world stops.
pub async fn run(world: World, index: u64) {
    let name = format!("slow-{index}");
    let mut random = Random::of(world.options.seed, &name);
    let mut client = Client::new(world.address);
    let mut observer = Client::new(world.address);
    while !world.is_stopping() {
        if let Err(error) = read(&world, &name, &mut client, &mut observer, &mut random).await {
            world.connection_failed(&name, &error);
        }
        client.disconnect();
        think(&mut random).await;
    }
}

async fn read(
    world: &World,
    name: &str,
    client: &mut Client,
    observer: &mut Client,
    random: &mut Random,
) -> io::Result<()> {
    client.connect().await?;
    if !observer.is_connected() {
        observer.connect().await?;
    }
    let value = vec![b'v'; VALUE];
    if let Value::Error(_) = client.call(&[b"SET", name.as_bytes(), &value]).await? {
        return Ok(());
    }
    let requests: Vec<[&[u8]; 2]> = vec![[b"GET", name.as_bytes()]; TIMES];
    let slices: Vec<&[&[u8]]> = requests.iter().map(|words| words.as_slice()).collect();
    client.send(&slices).await?;
    for got in 0..TIMES {
        if random.chance(8) {
            time::sleep(Duration::from_millis(random.below(300))).await;
            observe(world, name, observer).await?;
        }
        let reply = client.receive().await?;
        if reply != Value::Bulk(value.clone()) && reply != Value::Null && !matches!(reply, Value::Error(_)) {
            world.find(Finding::Broken, format!("{name} got something else as its reply {got}"));
        }
    }
    world.trace.note(name, "has read everything");
    Ok(())
}

/// Looks how much output waits for each client.
async fn observe(world: &World, name: &str, observer: &mut Client) -> io::Result<()> {
    let Value::Bulk(list) = observer.call(&[b"CLIENT", b"LIST"]).await? else { return Ok(()) };
    let list = String::from_utf8_lossy(&list).into_owned();
    let waiting = list.split_whitespace().filter_map(|word| word.strip_prefix("omem=")?.parse::<i64>().ok()).max();
    let waiting = waiting.unwrap_or(0);
    world.trace.note(name, format_args!("{waiting} bytes of output wait"));
    if waiting > 1 << 20 {
        tally::reach("a reader waited for output of over a megabyte");
    }
    if waiting > WAITING_MAX {
        world.find(Finding::Broken, format!("the server holds {waiting} bytes for a slow reader: {list}"));
    }
    Ok(())
}
