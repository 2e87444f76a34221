//! Publishers that number their messages, and subscribers who come and go. A subscriber hears the messages of a publisher in the order
//! in which they were sent, each once, none that was not sent, and from the first that it hears on misses none that was acknowledged.
//!
//! The same must hold where the messages are keyspace events: then a publisher sets keys with numbered names.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use simurgh_protocol::resp::decode::Value;

use super::think;
use crate::client::Client;
use crate::random::Random;
use crate::world::{Finding, World};

/// What is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// Messages to a channel.
    News,
    /// Keys that are set.
    Events,
}

impl Topic {
    fn channel(self) -> &'static [u8] {
        match self {
            Topic::News => b"news:all",
            Topic::Events => b"__keyevent@0__:set",
        }
    }

    fn pattern(self) -> &'static [u8] {
        match self {
            Topic::News => b"news:*",
            Topic::Events => b"__keyevent@?__:set",
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Topic::News => "",
            Topic::Events => "event:",
        }
    }
}

/// What one publisher has said, and what was missed of it.
#[derive(Debug, Default)]
struct Said {
    /// The last number that was sent.
    last: u64,
    /// Numbers that were acknowledged.
    acknowledged: BTreeSet<u64>,
    /// Numbers that a subscriber did not hear, between others that it heard.
    missed: BTreeSet<u64>,
}

/// What all publishers have said.
#[derive(Debug, Clone, Default)]
pub struct Voices(Arc<Mutex<BTreeMap<u64, Said>>>);

impl Voices {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Said>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Judges that a subscriber hears `now` of a publisher, after `before`.
    fn hear(&self, publisher: u64, before: Option<u64>, now: u64) -> Option<&'static str> {
        let mut voices = self.lock();
        let Some(said) = voices.get_mut(&publisher).filter(|said| (1..=said.last).contains(&now)) else {
            return Some("which nobody sent");
        };
        match before {
            Some(before) if before >= now => return Some("again, or too late"),
            Some(before) => said.missed.extend(before + 1..now),
            None => {}
        }
        None
    }

    /// Judges in the end that nothing was missed that was published for certain.
    pub fn judge(&self) -> Option<String> {
        let voices = self.lock();
        let mut missed = voices.iter().flat_map(|(publisher, said)| {
            said.missed.intersection(&said.acknowledged).map(move |number| format!("message {publisher}:{number}"))
        });
        missed.next().map(|message| format!("a subscriber missed {message}, between others that it heard"))
    }
}

/// Publishes until the world stops.
pub async fn publish(world: World, voices: Voices, topic: Topic, index: u64) {
    let name = format!("publisher-{topic:?}-{index}");
    let mut random = Random::of(world.options.seed, &name);
    let mut client = Client::new(world.address);
    while !world.is_stopping() {
        let done = if client.is_connected() {
            say(&world, &voices, topic, index, &name, &mut client, &mut random).await
        } else {
            client.connect().await
        };
        if let Err(error) = done {
            world.connection_failed(&name, &error);
        }
        think(&mut random).await;
    }
}

async fn say(
    world: &World,
    voices: &Voices,
    topic: Topic,
    index: u64,
    name: &str,
    client: &mut Client,
    random: &mut Random,
) -> io::Result<()> {
    let count = random.between(1, 5);
    let first = voices.lock().get(&index).map_or(0, |said| said.last) + 1;
    let texts: Vec<String> =
        (first..first + count).map(|number| format!("{}{index}:{number}", topic.prefix())).collect();
    voices.lock().entry(index).or_default().last = first + count - 1;
    let words: Vec<Vec<&[u8]>> = texts
        .iter()
        .map(|text| match topic {
            Topic::News => vec![b"PUBLISH".as_slice(), topic.channel(), text.as_bytes()],
            Topic::Events => vec![b"SET".as_slice(), text.as_bytes(), b"v", b"PX", b"2000"],
        })
        .collect();
    let requests: Vec<&[&[u8]]> = words.iter().map(Vec::as_slice).collect();
    client.send(&requests).await?;
    for number in first..first + count {
        let reply = client.receive().await?;
        world.trace.note(name, format_args!("{number} {reply:?}"));
        match reply {
            Value::Integer(_) | Value::Simple(_) => {
                _ = voices.lock().entry(index).or_default().acknowledged.insert(number)
            }
            Value::Error(_) => {}
            other => world.find(Finding::Broken, format!("{name} gets {other:?}")),
        }
    }
    Ok(())
}

/// Listens until the world stops.
pub async fn listen(world: World, voices: Voices, topic: Topic, index: u64) {
    let name = format!("subscriber-{topic:?}-{index}");
    let mut random = Random::of(world.options.seed, &name);
    let mut client = Client::new(world.address);
    while !world.is_stopping() {
        if let Err(error) = hear(&world, &voices, topic, &name, &mut client, &mut random).await {
            world.connection_failed(&name, &error);
        }
        client.disconnect();
        think(&mut random).await;
    }
}

/// The life of a connection: it subscribes, hears for a while, and goes.
async fn hear(
    world: &World,
    voices: &Voices,
    topic: Topic,
    name: &str,
    client: &mut Client,
    random: &mut Random,
) -> io::Result<()> {
    client.connect().await?;
    if topic == Topic::Events {
        client.call(&[b"CONFIG", b"SET", b"notify-keyspace-events", b"E$"]).await?;
    }
    let is_exact = random.chance(2);
    let subscribe: [&[u8]; 2] =
        if is_exact { [b"SUBSCRIBE", topic.channel()] } else { [b"PSUBSCRIBE", topic.pattern()] };
    client.send(&[&subscribe]).await?;
    let mut heard: BTreeMap<u64, u64> = BTreeMap::new();
    for _ in 0..random.between(1, 40) {
        if world.is_stopping() {
            break;
        }
        think(random).await;
        // Its answer comes behind everything that was said before it.
        client.send(&[&[b"PING"]]).await?;
        loop {
            let value = client.receive().await?;
            world.trace.note(name, format_args!("{value:?}"));
            match event(topic, &value) {
                Some(Event::Pong) => break,
                Some(Event::Confirmation | Event::OfOthers) => {}
                Some(Event::Message(publisher, number)) => {
                    if let Some(wrong) = voices.hear(publisher, heard.insert(publisher, number), number) {
                        world.find(Finding::Broken, format!("{name} hears {publisher}:{number}, {wrong}"));
                    }
                }
                None => {
                    world.find(Finding::Broken, format!("{name} hears {value:?}"));
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// What a subscriber gets.
enum Event {
    Pong,
    Confirmation,
    /// A key of another workload was set.
    OfOthers,
    /// Publisher and number.
    Message(u64, u64),
}

fn event(topic: Topic, value: &Value) -> Option<Event> {
    let Value::Array(parts) = value else { return None };
    let texts: Vec<&[u8]> =
        parts.iter().map(|part| if let Value::Bulk(text) = part { text.as_slice() } else { b"" }).collect();
    let message = match texts.as_slice() {
        [b"pong", b""] => return Some(Event::Pong),
        [b"subscribe" | b"psubscribe", name, _] if [topic.channel(), topic.pattern()].contains(name) => {
            return Some(Event::Confirmation);
        }
        [b"message", channel, message] | [b"pmessage", _, channel, message] if *channel == topic.channel() => message,
        _ => return None,
    };
    let Some(message) = std::str::from_utf8(message).ok()?.strip_prefix(topic.prefix()) else {
        return Some(Event::OfOthers);
    };
    let (publisher, number) = message.split_once(':')?;
    Some(Event::Message(publisher.parse().ok()?, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_invented_doubled_or_missed_is_found() {
        let voices = Voices::default();
        voices.lock().insert(1, Said { last: 5, acknowledged: BTreeSet::from([1, 2, 4]), missed: BTreeSet::new() });
        assert_eq!(voices.hear(1, None, 2), None);
        assert_eq!(voices.hear(1, Some(2), 4), None, "nobody knows whether 3 was published");
        assert_eq!(voices.judge(), None);
        assert!(voices.hear(1, Some(4), 4).is_some(), "twice");
        assert!(voices.hear(1, Some(4), 2).is_some(), "backwards");
        assert!(voices.hear(1, Some(4), 6).is_some() && voices.hear(2, None, 1).is_some(), "invented");
        assert_eq!(voices.hear(1, Some(3), 5), None);
        assert!(voices.judge().is_some(), "4 was missed");
    }
}
