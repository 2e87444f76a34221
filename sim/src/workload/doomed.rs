//! Connections whose task panics, in the middle of a pipeline: nothing behind the panic happens, the connection ends, and nobody
//! else notices. (What others notice is for the judges of the other workloads.)

use std::io::{self, ErrorKind};
use std::time::Duration;

use simurgh_kernel::time;
use simurgh_protocol::resp::decode::Value;

use super::think;
use crate::client::Client;
use crate::random::Random;
use crate::tally;
use crate::world::{Finding, World};

/// The longest time between two panics.
const PAUSE_MS_MAX: u64 = 400;

/// Runs one client until the world stops.
pub async fn run(world: World, index: u64) {
    let name = format!("doomed-{index}");
    let mut random = Random::of(world.options.seed, &name);
    let mut client = Client::new(world.address);
    while !world.is_stopping() {
        if let Err(error) = live(&world, &name, &mut client).await {
            world.connection_failed(&name, &error);
        }
        client.disconnect();
        time::sleep(Duration::from_millis(random.below(PAUSE_MS_MAX))).await;
        think(&mut random).await;
    }
}

async fn live(world: &World, name: &str, client: &mut Client) -> io::Result<()> {
    let (before, behind) = (format!("{name}:before"), format!("{name}:behind"));
    client.connect().await?;
    let found = client.call(&[b"GET", behind.as_bytes()]).await?;
    world.trace.note(name, format_args!("finds {found:?}"));
    if !matches!(found, Value::Null | Value::Error(_)) {
        world.find(Finding::Broken, format!("{name}: what came behind a panic has happened: {found:?}"));
    }
    let requests: [&[&[u8]]; 4] = [
        &[b"WATCH", before.as_bytes()],
        &[b"SET", before.as_bytes(), b"1"],
        &[b"DEBUG", b"PANIC-CONNECTION"],
        &[b"SET", behind.as_bytes(), b"1"],
    ];
    client.send(&requests).await?;
    // What came before the panic may be answered, or go down with it.
    for answered in 0.. {
        // The two behind are under way when the panic comes.
        tally::sent(1);
        let received = client.receive().await;
        if received.as_ref().is_err_and(|error| error.kind() == ErrorKind::UnexpectedEof) {
            tally::fired("P5");
        }
        tally::given_up(1);
        let reply = received?;
        world.trace.note(name, format_args!("{reply:?}"));
        if answered >= 2 {
            world.find(Finding::Broken, format!("{name}: a connection that panicked answers {reply:?}"));
        }
    }
    Ok(())
}
