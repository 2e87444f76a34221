//! Consumer groups: entries added to a stream, read by the consumers of one group, acknowledged or not. `judge::crew` tells what
//! must hold.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use simurgh_kernel::time;
use simurgh_protocol::resp::decode::Value;

use super::think;
use crate::client::{Client, number};
use crate::judge::crew::{Delivery, End, History};
use crate::random::Random;
use crate::world::{Finding, World};

const STREAM: &[u8] = b"work";
const GROUP: &[u8] = b"crew";

/// What all clients did.
#[derive(Debug, Clone, Default)]
pub struct Book(Arc<Mutex<History>>);

impl Book {
    /// Everything so far.
    pub fn history(&self) -> History {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, History> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn text(value: &Value) -> Option<String> {
    if let Value::Bulk(text) = value { String::from_utf8(text.clone()).ok() } else { None }
}

/// Adds until the world stops.
pub async fn add(world: World, book: Book, index: u64) {
    let name = format!("adder-{index}");
    let mut random = Random::of(world.options.seed, &name);
    let mut client = Client::new(world.address);
    while !world.is_stopping() {
        let done = if client.is_connected() {
            client.call(&[b"XADD", STREAM, b"*", b"by", name.as_bytes()]).await.map(|reply| {
                world.trace.note(&name, format_args!("{reply:?}"));
                book.lock().sent += 1;
                if let Some(id) = text(&reply) {
                    book.lock().added.push((id, time::monotonic_ns()));
                }
            })
        } else {
            client.connect().await
        };
        if let Err(error) = done {
            book.lock().sent += 1;
            world.connection_failed(&name, &error);
        }
        think(&mut random).await;
    }
}

/// Reads and acknowledges until the world stops.
pub async fn work(world: World, book: Book, index: u64) {
    let name = format!("worker-{index}");
    let mut random = Random::of(world.options.seed, &name);
    let mut client = Client::new(world.address);
    while !world.is_stopping() {
        let done = if client.is_connected() {
            read(&world, &book, &name, &mut client, &mut random).await
        } else {
            begin(&mut client).await
        };
        if let Err(error) = done {
            world.connection_failed(&name, &error);
        }
        think(&mut random).await;
    }
}

async fn begin(client: &mut Client) -> io::Result<()> {
    client.connect().await?;
    // It is there already, but for the first.
    client.call(&[b"XGROUP", b"CREATE", STREAM, GROUP, b"0", b"MKSTREAM"]).await?;
    Ok(())
}

async fn read(world: &World, book: &Book, name: &str, client: &mut Client, random: &mut Random) -> io::Result<()> {
    let count = random.between(1, 4).to_string();
    let invoked_ns = time::monotonic_ns();
    let block_ms = *random.pick(&["0", "50", "500"]);
    let mut words: Vec<&[u8]> = vec![b"XREADGROUP", b"GROUP", GROUP, name.as_bytes(), b"COUNT", count.as_bytes()];
    if block_ms != "0" {
        words.extend([b"BLOCK".as_slice(), block_ms.as_bytes()]);
    }
    words.extend([b"STREAMS".as_slice(), STREAM, b">"]);
    let place = book.lock().reads_under_way(invoked_ns);
    let reply = client.call(&words).await?;
    world.trace.note(name, format_args!("{reply:?}"));
    let ids = match &reply {
        // It may have been done all the same.
        Value::Error(_) => return Ok(()),
        Value::Null => Vec::new(),
        other => match delivered(other) {
            Some(ids) => ids,
            None => {
                world.find(Finding::Broken, format!("{name} gets {reply:?}"));
                return Ok(());
            }
        },
    };
    let ended_ns = time::monotonic_ns();
    book.lock().read_ended(place);
    for id in &ids {
        book.lock().delivered.push(Delivery { id: id.clone(), invoked_ns, ended_ns });
    }
    for id in ids {
        if random.chance(4) {
            continue;
        }
        book.lock().acknowledging.insert(id.clone());
        let reply = client.call(&[b"XACK", STREAM, GROUP, id.as_bytes()]).await?;
        world.trace.note(name, format_args!("acknowledges {id}: {reply:?}"));
        if let Value::Integer(count) = reply {
            book.lock().acknowledged.push((id, count));
        }
    }
    Ok(())
}

/// The ids of a reply to XREADGROUP of one stream.
fn delivered(reply: &Value) -> Option<Vec<String>> {
    let Value::Array(streams) = reply else { return None };
    let [Value::Array(pair)] = streams.as_slice() else { return None };
    let [Value::Bulk(stream), Value::Array(entries)] = pair.as_slice() else { return None };
    if stream != STREAM {
        return None;
    }
    entries.iter().map(|entry| if let Value::Array(entry) = entry { text(entry.first()?) } else { None }).collect()
}

/// Reads what is there.
pub async fn look(client: &mut Client) -> io::Result<End> {
    let ids = |reply: Value| match reply {
        Value::Array(rows) => {
            rows.iter().filter_map(|row| if let Value::Array(row) = row { text(row.first()?) } else { None }).collect()
        }
        _ => Vec::new(),
    };
    let entries = ids(client.call(&[b"XRANGE", STREAM, b"-", b"+"]).await?);
    let pending = ids(client.call(&[b"XPENDING", STREAM, GROUP, b"-", b"+", b"1000000"]).await?);
    let length = number(&client.call(&[b"XLEN", STREAM]).await?).unwrap_or(0);
    Ok(End { entries, pending, length })
}
