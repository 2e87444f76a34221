//! The same elements in a list, a hash, a set and a sorted set, which all clients share. A transaction adds an element to all four, or
//! takes one out of all, so whoever looks at them together finds them equal, at every moment and after every crash.

use std::io;

use simurgh_protocol::resp::decode::Value;

use super::think;
use crate::client::Client;
use crate::random::Random;
use crate::world::{Finding, World};

const LIST: &[u8] = b"mirror:list";
const HASH: &[u8] = b"mirror:hash";
const SET: &[u8] = b"mirror:set";
const SORTED_SET: &[u8] = b"mirror:zset";

/// Few, so that the keys themselves come and go.
const ELEMENTS: u64 = 6;

/// Runs one client until the world stops.
pub async fn run(world: World, index: u64) {
    let name = format!("mirror-{index}");
    let mut random = Random::of(world.options.seed, &name);
    let mut client = Client::new(world.address);
    while !world.is_stopping() {
        let done = if !client.is_connected() {
            client.connect().await
        } else if random.chance(3) {
            look(&world, &name, &mut client).await
        } else {
            change(&world, &name, &mut client, &mut random).await
        };
        if let Err(error) = done {
            world.connection_failed(&name, &error);
        }
        think(&mut random).await;
    }
}

/// Adds an element to all, or removes it from all. It goes out first, so that the list has it once.
async fn change(world: &World, name: &str, client: &mut Client, random: &mut Random) -> io::Result<()> {
    let element = random.below(ELEMENTS).to_string();
    let element = element.as_bytes();
    let adds = random.chance(2);
    let mut requests: Vec<&[&[u8]]> = vec![&[b"MULTI"]];
    let removal: [[&[u8]; 4]; 1] = [[b"LREM", LIST, b"0", element]];
    let addition: [[&[u8]; 4]; 2] = [[b"HSET", HASH, element, b"v"], [b"ZADD", SORTED_SET, b"1", element]];
    let [remove_field, remove_member, remove_ranked]: [[&[u8]; 3]; 3] =
        [[b"HDEL", HASH, element], [b"SREM", SET, element], [b"ZREM", SORTED_SET, element]];
    let [append, add_member]: [[&[u8]; 3]; 2] = [[b"RPUSH", LIST, element], [b"SADD", SET, element]];
    requests.push(&removal[0]);
    if adds {
        requests.extend([&append as &[&[u8]], &addition[0], &add_member, &addition[1]]);
    } else {
        requests.extend([&remove_field as &[&[u8]], &remove_member, &remove_ranked]);
    }
    requests.push(&[b"EXEC"]);
    world.trace.note(name, format_args!("adds {adds} {}", String::from_utf8_lossy(element)));
    client.send(&requests).await?;
    let mut reply = Value::Null;
    for _ in 0..requests.len() {
        reply = client.receive().await?;
    }
    world.trace.note(name, format_args!("{reply:?}"));
    match reply {
        Value::Array(replies) if replies.iter().all(|reply| matches!(reply, Value::Integer(_))) => {}
        Value::Error(_) => {}
        other => world.find(Finding::Broken, format!("{name} gets {other:?} from EXEC")),
    }
    Ok(())
}

/// Reads all four and judges that they are equal.
pub async fn look(world: &World, name: &str, client: &mut Client) -> io::Result<()> {
    client
        .send(&[
            &[b"MULTI"],
            &[b"LRANGE", LIST, b"0", b"-1"],
            &[b"HKEYS", HASH],
            &[b"SMEMBERS", SET],
            &[b"ZRANGE", SORTED_SET, b"0", b"-1"],
            &[b"EXEC"],
        ])
        .await?;
    let mut reply = Value::Null;
    for _ in 0..6 {
        reply = client.receive().await?;
    }
    world.trace.note(name, format_args!("{reply:?}"));
    if !are_equal(&reply) {
        world.find(Finding::Broken, format!("{name} finds what is not equal: {reply:?}"));
    }
    Ok(())
}

fn are_equal(reply: &Value) -> bool {
    let Value::Array(views) = reply else { return false };
    let sorted = |view: &Value| {
        let Value::Array(elements) = view else { return None };
        let mut texts: Vec<_> =
            elements.iter().map(|one| if let Value::Bulk(text) = one { text.clone() } else { Vec::new() }).collect();
        texts.sort_unstable();
        Some(texts)
    };
    let views: Vec<_> = views.iter().map(sorted).collect();
    views.len() == 4 && views[0].is_some() && views.iter().all(|view| *view == views[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(elements: &[&str]) -> Value {
        Value::Array(elements.iter().map(|text| Value::Bulk(text.as_bytes().to_vec())).collect())
    }

    #[test]
    fn views_are_equal_whatever_their_order() {
        let (one, other) = (view(&["1", "2"]), view(&["2", "1"]));
        assert!(are_equal(&Value::Array(vec![one.clone(), other.clone(), one.clone(), other.clone()])));
        assert!(!are_equal(&Value::Array(vec![one.clone(), other.clone(), one.clone(), view(&["1"])])));
        assert!(!are_equal(&Value::Array(vec![one.clone(), view(&["1", "1", "2"]), one.clone(), other])));
        assert!(!are_equal(&Value::Error(b"ERR".to_vec())));
    }
}
