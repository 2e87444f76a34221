//! Pipelines of every size on connections that live shortly: as many replies as requests, in their order, each client's own; and
//! when a client has said its last word, everything is still answered and nothing else.

use std::io;

use simurgh_protocol::resp::decode::Value;

use super::think;
use crate::client::Client;
use crate::random::Random;
use crate::world::{Finding, World};

/// The longest pipeline.
const PIPELINE_MAX: u64 = 60;

/// Runs one client until the world stops.
pub async fn run(world: World, index: u64) {
    let name = format!("echo-{index}");
    let mut random = Random::of(world.options.seed, &name);
    let mut client = Client::new(world.address);
    let mut next_word = 0;
    while !world.is_stopping() {
        if let Err(error) = live(&world, &name, &mut client, &mut random, &mut next_word).await {
            world.connection_failed(&name, &error);
        }
        client.disconnect();
        think(&mut random).await;
    }
}

/// The life of a connection.
async fn live(
    world: &World,
    name: &str,
    client: &mut Client,
    random: &mut Random,
    next_word: &mut u64,
) -> io::Result<()> {
    client.connect().await?;
    for _ in 0..random.between(1, 6) {
        let length = *random.pick(&[1, 1, 3, PIPELINE_MAX]);
        let padding = "x".repeat(random.index(200));
        let first = *next_word;
        *next_word += random.between(1, length);
        let words: Vec<String> = (first..*next_word).map(|number| format!("{name}:{number}:{padding}")).collect();
        let key = format!("{name}:{}", first % 3);
        let mut requests: Vec<Vec<&[u8]>> = Vec::new();
        let mut expected = Vec::new();
        for (place, word) in words.iter().enumerate() {
            let word = word.as_bytes();
            if place % 3 == 2 {
                // A write and a read of it, so that replies wait for the log between others that need not.
                requests.push(vec![b"SET", key.as_bytes(), word]);
                requests.push(vec![b"GET", key.as_bytes()]);
                expected.extend([None, None]);
            } else {
                requests.push(vec![b"ECHO", word]);
                expected.push(Some(word));
            }
        }
        world.trace.note(name, format_args!("sends {} from {first} on", requests.len()));
        let slices: Vec<&[&[u8]]> = requests.iter().map(Vec::as_slice).collect();
        client.send(&slices).await?;
        for (place, expected) in expected.iter().enumerate() {
            let reply = client.receive().await?;
            if let Some(wrong) = judge(name, &reply, *expected) {
                world.find(Finding::Broken, format!("{name} at {place} of {}: {wrong}", requests.len()));
                return Ok(());
            }
        }
        world.trace.note(name, "has all replies");
    }
    if random.chance(2) {
        let rest = client.finish().await?;
        if rest > 0 {
            world.find(Finding::Broken, format!("{name} got {rest} bytes more than it had asked for"));
        }
    }
    Ok(())
}

/// What is wrong with a reply. Of a SET or GET it is only known whose it must be.
fn judge(name: &str, reply: &Value, expected: Option<&[u8]>) -> Option<String> {
    let is_own = match (reply, expected) {
        (Value::Bulk(word), Some(expected)) => word == expected,
        (Value::Bulk(word), None) => word.starts_with(name.as_bytes()),
        (Value::Simple(_) | Value::Error(_) | Value::Null, None) => true,
        _ => false,
    };
    let expected = expected.map(String::from_utf8_lossy);
    (!is_own).then(|| format!("a reply of somebody else, or out of order: {reply:?}, not {expected:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_of_others_and_in_another_order_are_found() {
        let bulk = |word: &str| Value::Bulk(word.as_bytes().to_vec());
        assert_eq!(judge("echo-1", &bulk("echo-1:5:x"), Some(b"echo-1:5:x")), None);
        assert!(judge("echo-1", &bulk("echo-1:6:x"), Some(b"echo-1:5:x")).is_some(), "the next one's");
        assert!(judge("echo-1", &bulk("echo-2:5:x"), None).is_some(), "somebody else's");
        assert_eq!(judge("echo-1", &Value::Null, None), None);
        assert!(judge("echo-1", &Value::Integer(1), None).is_some());
    }
}
