//! Accounts that start empty and may be overdrawn. A transfer is a transaction of two commands, so the sum of all accounts
//! is zero for whoever reads them together, at every moment and after every crash.

use std::io;

use simurgh_protocol::resp::decode::Value;

use super::think;
use crate::client::{Client, number};
use crate::random::Random;
use crate::world::{Finding, World};

/// Between them.
pub const ACCOUNTS: [&str; 4] = ["account:a", "account:b", "account:c", "account:d"];

/// Runs one client until the world stops.
pub async fn run(world: World, index: u64) {
    let name = format!("bank-{index}");
    let mut random = Random::of(world.options.seed, &name);
    let mut client = Client::new(world.address);
    while !world.is_stopping() {
        let done = if !client.is_connected() {
            client.connect().await
        } else if random.chance(3) {
            audit(&world, &name, &mut client).await
        } else {
            transfer(&world, &name, &mut client, &mut random).await
        };
        if let Err(error) = done {
            world.connection_failed(&name, &error);
        }
        think(&mut random).await;
    }
}

async fn transfer(world: &World, name: &str, client: &mut Client, random: &mut Random) -> io::Result<()> {
    let from = random.index(ACCOUNTS.len());
    let to = (from + 1 + random.index(ACCOUNTS.len() - 1)) % ACCOUNTS.len();
    let amount = random.between(1, 100).to_string();
    let (from, to) = (ACCOUNTS[from].as_bytes(), ACCOUNTS[to].as_bytes());
    client
        .send(&[&[b"MULTI"], &[b"DECRBY", from, amount.as_bytes()], &[b"INCRBY", to, amount.as_bytes()], &[b"EXEC"]])
        .await?;
    let mut reply = Value::Null;
    for _ in 0..4 {
        reply = client.receive().await?;
    }
    world.trace.note(name, format_args!("{reply:?}"));
    match reply {
        Value::Array(replies) if replies.len() == 2 => {}
        Value::Error(_) => {}
        other => world.find(Finding::Broken, format!("{name} gets {other:?} from EXEC")),
    }
    Ok(())
}

/// Reads all accounts and judges their sum.
pub async fn audit(world: &World, name: &str, client: &mut Client) -> io::Result<()> {
    let mut words: Vec<&[u8]> = vec![b"MGET"];
    words.extend(ACCOUNTS.iter().map(|account| account.as_bytes()));
    let reply = client.call(&words).await?;
    world.trace.note(name, format_args!("{reply:?}"));
    let Value::Array(balances) = &reply else {
        world.find(Finding::Broken, format!("{name} gets {reply:?} from MGET"));
        return Ok(());
    };
    let sum: i64 = balances.iter().map(|balance| number(balance).unwrap_or(0)).sum();
    if sum != 0 {
        world.find(Finding::Broken, format!("{name} finds {sum} too much: {reply:?}"));
    }
    Ok(())
}
