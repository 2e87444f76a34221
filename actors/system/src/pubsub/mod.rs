//! Pub/Sub: who listens to which channels and patterns, and the way of a message
//! (<https://redis.io/docs/latest/develop/pubsub/>).
//!
//! ```text
//! PUBLISH ──> part of the channels ──┬──> inbox of each subscriber
//!             (locked meanwhile)     └──> patterns that fit ──> inbox of each subscriber
//! ```
//!
//! The registry is the node's: channels lie in [`PARTS`] maps by the hash of their names, each behind a lock of its own, and so
//! do shard channels; patterns, which every message must be compared with, lie behind one. A lock is held while the messages
//! of one PUBLISH go into inboxes, which costs a pointer for each subscriber and waits for nobody, so all subscribers hear the
//! messages of a channel in the same order. A node without subscribers pays two relaxed loads for a message.
//!
//! A message is encoded once, whoever receives it. It is kept by nobody: no log, no memory of what was said.

mod events;
mod subscriptions;

pub use subscriptions::Subscriptions;

use crate::clients::ClientShared;
use crate::node::Node;
use crate::push::Push;
use simurgh_protocol::Reply;
use simurgh_protocol::config::Config;
use simurgh_protocol::glob::Glob;
use simurgh_protocol::resp::Protocol;
use simurgh_storage::KeyHasher;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// In how many parts the channels are kept.
const PARTS: usize = 64;

/// A channel's or pattern's name, shared by the registry and everybody who is subscribed to it.
pub type Name = Arc<[u8]>;

/// Subscribers by their number: the order in which they are told.
type Subscribers = BTreeMap<u64, Arc<ClientShared>>;

/// What one can be subscribed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A channel (SUBSCRIBE).
    Channel,
    /// A pattern of channels' names (PSUBSCRIBE).
    Pattern,
    /// A shard channel (SSUBSCRIBE).
    ShardChannel,
}

/// Channels and their subscribers.
#[derive(Debug)]
struct Channels {
    parts: Box<[Mutex<BTreeMap<Name, Subscribers>>]>,
    /// How many there are.
    count: AtomicUsize,
}

impl Default for Channels {
    fn default() -> Self {
        Self { parts: (0..PARTS).map(|_| Mutex::default()).collect(), count: AtomicUsize::new(0) }
    }
}

impl Channels {
    fn part(&self, hasher: &KeyHasher, name: &[u8]) -> MutexGuard<'_, BTreeMap<Name, Subscribers>> {
        let part = hasher.key(name).hash as usize % PARTS;
        self.parts[part].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, hasher: &KeyHasher, name: &[u8], client: &Arc<ClientShared>) -> Name {
        let mut part = self.part(hasher, name);
        if let Some((name, _)) = part.get_key_value(name) {
            let name = name.clone();
            part.entry(name.clone()).or_default().insert(client.id, client.clone());
            return name;
        }
        let name: Name = name.into();
        part.insert(name.clone(), Subscribers::from([(client.id, client.clone())]));
        self.count.fetch_add(1, Relaxed);
        name
    }

    fn remove(&self, hasher: &KeyHasher, name: &[u8], id: u64) {
        let mut part = self.part(hasher, name);
        let Some(subscribers) = part.get_mut(name) else { return };
        subscribers.remove(&id);
        if subscribers.is_empty() {
            part.remove(name);
            self.count.fetch_sub(1, Relaxed);
        }
    }

    /// Names that match, in order.
    fn names(&self, pattern: Option<&Glob>) -> Vec<Name> {
        let mut names = Vec::new();
        for part in &self.parts {
            let part = part.lock().unwrap_or_else(PoisonError::into_inner);
            let is_wanted = |name: &&Name| pattern.is_none_or(|pattern| pattern.matches(name));
            names.extend(part.keys().filter(is_wanted).cloned());
        }
        names.sort_unstable();
        names
    }
}

#[derive(Debug)]
struct Pattern {
    glob: Glob,
    subscribers: Subscribers,
}

/// Who listens to what.
#[derive(Debug, Default)]
pub struct PubSub {
    channels: Channels,
    shard_channels: Channels,
    patterns: Mutex<BTreeMap<Name, Pattern>>,
    pattern_count: AtomicUsize,
}

impl PubSub {
    fn patterns(&self) -> MutexGuard<'_, BTreeMap<Name, Pattern>> {
        self.patterns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, kind: Kind) -> Option<&Channels> {
        match kind {
            Kind::Channel => Some(&self.channels),
            Kind::ShardChannel => Some(&self.shard_channels),
            Kind::Pattern => None,
        }
    }

    /// Whether nobody listens to any channel or pattern.
    #[inline]
    pub fn is_silent(&self) -> bool {
        self.channels.count.load(Relaxed) == 0 && self.pattern_count.load(Relaxed) == 0
    }

    /// How many channels (of this kind) or different patterns there are.
    pub fn count(&self, kind: Kind) -> usize {
        self.of(kind).map_or(&self.pattern_count, |channels| &channels.count).load(Relaxed)
    }

    /// The names in use that match, in order.
    pub fn names(&self, kind: Kind, pattern: Option<&Glob>) -> Vec<Name> {
        match self.of(kind) {
            Some(channels) => channels.names(pattern),
            None => self.patterns().keys().cloned().collect(),
        }
    }

    /// The number of a channel's subscribers.
    pub fn subscribers(&self, hasher: &KeyHasher, kind: Kind, name: &[u8]) -> usize {
        match self.of(kind) {
            Some(channels) => channels.part(hasher, name).get(name).map_or(0, BTreeMap::len),
            None => self.patterns().get(name).map_or(0, |pattern| pattern.subscribers.len()),
        }
    }

    /// Subscribes a client; whether it was not.
    pub(crate) fn subscribe(&self, hasher: &KeyHasher, kind: Kind, name: &[u8], client: &Arc<ClientShared>) -> bool {
        if client.subscriptions.contains(kind, name) {
            return false;
        }
        let name = match self.of(kind) {
            Some(channels) => channels.add(hasher, name, client),
            None => self.add_pattern(name, client),
        };
        client.subscriptions.insert(kind, name);
        true
    }

    fn add_pattern(&self, name: &[u8], client: &Arc<ClientShared>) -> Name {
        let mut patterns = self.patterns();
        let name = patterns.get_key_value(name).map_or_else(|| name.into(), |(name, _)| name.clone());
        let new = || Pattern { glob: Glob::new(&name), subscribers: Subscribers::new() };
        patterns.entry(name.clone()).or_insert_with(new).subscribers.insert(client.id, client.clone());
        self.pattern_count.store(patterns.len(), Relaxed);
        name
    }

    /// Ends a subscription; whether there was one.
    pub(crate) fn unsubscribe(&self, hasher: &KeyHasher, kind: Kind, name: &[u8], client: &ClientShared) -> bool {
        if !client.subscriptions.remove(kind, name) {
            return false;
        }
        self.forget(hasher, kind, name, client.id);
        true
    }

    fn forget(&self, hasher: &KeyHasher, kind: Kind, name: &[u8], id: u64) {
        if let Some(channels) = self.of(kind) {
            return channels.remove(hasher, name, id);
        }
        let mut patterns = self.patterns();
        if let Some(pattern) = patterns.get_mut(name) {
            pattern.subscribers.remove(&id);
            if pattern.subscribers.is_empty() {
                patterns.remove(name);
            }
        }
        self.pattern_count.store(patterns.len(), Relaxed);
    }

    /// Ends all subscriptions of a client.
    pub(crate) fn unsubscribe_all(&self, hasher: &KeyHasher, client: &ClientShared) {
        for kind in [Kind::Channel, Kind::Pattern, Kind::ShardChannel] {
            for name in client.subscriptions.take(kind) {
                self.forget(hasher, kind, &name, client.id);
            }
        }
    }
}

/// What came of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// How often it was given to somebody.
    pub receivers: usize,
    /// The client that sent it is one of them.
    pub to_sender: bool,
}

/// Encodes what is pushed, as RESP3.
fn encode(words: &[&[u8]]) -> Push {
    let mut reply = Reply::new(Protocol::Resp3);
    reply.push(words.len());
    words.iter().for_each(|word| reply.bulk(word));
    Push::Message(reply.bytes().into())
}

impl Node {
    /// Sends a message to all who listen to the channel. `sender` is the client that does, if one does.
    pub(crate) fn publish(&self, config: &Config, channel: &[u8], message: &[u8], sender: u64) -> Published {
        let (pubsub, mut published) = (&self.pubsub, Published::default());
        if pubsub.is_silent() {
            return published;
        }
        // Held until everybody has it, patterns included.
        let part = pubsub.channels.part(&self.layout.hasher, channel);
        if let Some(subscribers) = part.get(channel) {
            let push = encode(&[b"message", channel, message]);
            self.tell(config, subscribers, &push, sender, &mut published);
        }
        if pubsub.pattern_count.load(Relaxed) > 0 {
            for (name, pattern) in pubsub.patterns().iter().filter(|(_, pattern)| pattern.glob.matches(channel)) {
                let push = encode(&[b"pmessage", name, channel, message]);
                self.tell(config, &pattern.subscribers, &push, sender, &mut published);
            }
        }
        published
    }

    /// The same for a shard channel.
    pub(crate) fn shard_publish(&self, config: &Config, channel: &[u8], message: &[u8], sender: u64) -> Published {
        let mut published = Published::default();
        if self.pubsub.count(Kind::ShardChannel) == 0 {
            return published;
        }
        if let Some(subscribers) = self.pubsub.shard_channels.part(&self.layout.hasher, channel).get(channel) {
            let push = encode(&[b"smessage", channel, message]);
            self.tell(config, subscribers, &push, sender, &mut published);
        }
        published
    }

    fn tell(&self, config: &Config, receivers: &Subscribers, push: &Push, sender: u64, published: &mut Published) {
        for receiver in receivers.values() {
            published.receivers += 1;
            published.to_sender |= receiver.id == sender;
            self.push(config, receiver, push.clone());
        }
    }
}

#[cfg(test)]
mod tests;
