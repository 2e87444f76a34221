//! Reads go into the table, changes come out of it as messages, and clients begin and end to track.

use super::broadcast::overlap;
use super::{Mode, Tracking};
use crate::client::Client;
use crate::clients::ClientShared;
use crate::commands::runs_script;
use crate::node::Node;
use crate::push::Push;
use simurgh_protocol::command::{Command, CommandFlags, KeyFlags, Lookup, keys};
use simurgh_protocol::config::Config;
use simurgh_protocol::resp::Protocol;
use simurgh_protocol::{Args, CommandError, Reply};
use simurgh_storage::{Effects, Touched};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The channel on which clients of RESP2 hear what is redirected to them.
const CHANNEL: &[u8] = b"__redis__:invalidate";
/// Keys that leave the table at once because it has become too large.
const EVICTED_MAX: usize = 1000;

/// A message that keys (or all of them) are to be forgotten.
struct Invalidation {
    resp3: Arc<[u8]>,
    resp2: Arc<[u8]>,
}

impl Invalidation {
    fn new(keys: Option<&[Box<[u8]>]>) -> Self {
        let encode = |protocol: Protocol, words: &[&[u8]]| {
            let mut reply = Reply::new(protocol);
            reply.push(words.len() + 1);
            words.iter().for_each(|word| reply.bulk(word));
            match keys {
                Some(keys) => {
                    reply.array(keys.len());
                    keys.iter().for_each(|key| reply.bulk(key));
                }
                None => reply.null(),
            }
            reply.bytes().into()
        };
        Self {
            resp3: encode(Protocol::Resp3, &[b"invalidate"]),
            resp2: encode(Protocol::Resp2, &[b"message", CHANNEL]),
        }
    }
}

/// Prefixes of one client must not overlap.
fn collision(prefix: &[u8], kind: &str, other: &[u8]) -> CommandError {
    let text = [
        b"ERR Prefix '",
        prefix,
        b"' overlaps with ",
        kind.as_bytes(),
        b" prefix '",
        other,
        b"'. Prefixes for a single client must not overlap.",
    ];
    CommandError::Repeats(text.concat().into())
}

impl Tracking {
    /// Whether the client may have these prefixes beside those that it has.
    pub(crate) fn check_prefixes(&self, client: &ClientShared, prefixes: &[&[u8]]) -> Result<(), CommandError> {
        let known = self.prefixes.of(client.id);
        for (index, prefix) in prefixes.iter().enumerate() {
            if let Some(other) = overlap(prefix, known.iter().map(|known| &known[..])) {
                return Err(collision(prefix, "an existing", other));
            }
            if let Some(other) = overlap(prefix, prefixes[index + 1..].iter().copied()) {
                return Err(collision(prefix, "another provided", other));
            }
        }
        Ok(())
    }

    /// A client begins to track, or tracks in another way from now on.
    pub(crate) fn begin(&self, client: &Arc<ClientShared>, mode: Mode, redirect: u64, prefixes: &[&[u8]]) {
        if !client.tracking.get().has(Mode::ON) {
            self.clients.fetch_add(1, Relaxed);
        }
        client.tracking.set(mode, redirect);
        if mode.has(Mode::BCAST) {
            let all: [&[u8]; 1] = [b""];
            let prefixes = if prefixes.is_empty() { &all[..] } else { prefixes };
            prefixes.iter().for_each(|prefix| self.prefixes.add(prefix, client));
        }
    }

    /// A client tracks no longer.
    pub(crate) fn end(&self, client: &ClientShared) {
        let mode = client.tracking.get();
        if !mode.has(Mode::ON) {
            return;
        }
        client.tracking.set(Mode::default(), 0);
        if mode.has(Mode::BCAST) {
            self.prefixes.remove(client.id);
        }
        if self.clients.fetch_sub(1, Relaxed) == 1 {
            // Nobody is left to be told.
            self.table.clear();
        }
    }

    /// A client's prefixes.
    pub(crate) fn prefixes_of(&self, client: &ClientShared) -> Vec<Box<[u8]>> {
        self.prefixes.of(client.id)
    }
}

impl Node {
    /// Sends an invalidation to a client, or to whom it is redirected.
    fn invalidate(&self, config: &Config, client: &ClientShared, message: &Invalidation) {
        let redirect = client.tracking.redirect();
        if redirect == 0 {
            return self.push(config, client, Push::Invalidation { resp3: message.resp3.clone(), resp2: None });
        }
        let push = Push::Invalidation { resp3: message.resp3.clone(), resp2: Some(message.resp2.clone()) };
        match self.clients.get(redirect) {
            Some(receiver) => self.push(config, &receiver, push),
            None => {
                client.tracking.set_broken();
                let mut reply = Reply::new(Protocol::Resp3);
                reply.push(2);
                reply.bulk(b"tracking-redir-broken");
                reply.integer(i64::try_from(redirect).unwrap_or(i64::MAX));
                self.push(config, client, Push::Invalidation { resp3: reply.bytes().into(), resp2: None });
            }
        }
    }

    /// Tells who has read a key that it has changed; whether `sender` is one of them.
    fn invalidate_key(&self, config: &Config, key: &[u8], clients: impl IntoIterator<Item = u64>, sender: u64) -> bool {
        let (mut message, mut to_sender) = (None, false);
        for id in clients {
            let Some(client) = self.clients.get(id) else { continue };
            let mode = client.tracking.get();
            let is_own = id == sender && mode.has(Mode::NOLOOP);
            if !mode.has(Mode::ON) || mode.has(Mode::BCAST) || is_own {
                continue;
            }
            to_sender |= id == sender;
            let message = message.get_or_insert_with(|| Invalidation::new(Some(&[key.into()])));
            self.invalidate(config, &client, message);
        }
        to_sender
    }

    /// Tells all who track that everything is gone; whether `sender` is one of them.
    fn invalidate_all(&self, config: &Config, sender: u64) -> bool {
        self.tracking.table.clear();
        let (message, mut to_sender) = (Invalidation::new(None), false);
        for client in self.clients.all() {
            if client.tracking.get().has(Mode::ON) {
                to_sender |= client.id == sender;
                self.invalidate(config, &client, &message);
            }
        }
        to_sender
    }

    /// Tells of changed keys by their prefixes; whether `sender`, who changed them, hears any of it.
    fn broadcast(&self, config: &Config, keys: &mut Vec<Box<[u8]>>, sender: u64) -> bool {
        keys.sort_unstable();
        keys.dedup();
        let mut to_sender = false;
        for told in self.tracking.prefixes.told(keys) {
            let message = Invalidation::new(Some(told.keys));
            for client in told.clients {
                if client.id == sender && client.tracking.get().has(Mode::NOLOOP) {
                    continue;
                }
                to_sender |= client.id == sender;
                self.invalidate(config, &client, &message);
            }
        }
        keys.clear();
        to_sender
    }

    /// Takes keys out of the table until it is within its limit, or nearer to it; whether `sender` hears of any.
    pub(crate) fn shrink_table(&self, config: &Config, near: &[u8], sender: u64) -> bool {
        let (table, max, mut to_sender) = (&self.tracking.table, config.tracking_table_keys_max, false);
        for _ in 0..EVICTED_MAX {
            if max == 0 || table.keys() as u64 <= max {
                break;
            }
            let Some((key, clients)) = table.evict(near) else { break };
            to_sender |= self.invalidate_key(config, &key, clients, sender);
        }
        to_sender
    }

    /// Tells of what changed where no client did it: expiry and eviction.
    #[cold]
    pub(crate) fn tell_touched(&self, config: &Config, effects: &mut Effects) {
        let mut keys = Vec::new();
        for touched in effects.touched.drain(..) {
            if let Touched::Key(key) = touched {
                let clients = self.tracking.table.take(&self.layout.hasher, &key).unwrap_or_default();
                self.invalidate_key(config, &key, clients, 0);
                keys.push(key);
            }
        }
        self.broadcast(config, &mut keys, 0);
    }
}

impl Client {
    /// A command has read: its keys are tracked, if the client wants that.
    #[cold]
    pub(crate) fn remember_keys(&mut self, command: Command, args: &Args<'_>) {
        let (mode, spec) = (self.shared.tracking.get(), command.spec());
        // What a script reads is tracked as its commands read it, not by the keys that it names.
        if !spec.flags.contains(CommandFlags::READONLY)
            || runs_script(command)
            || (mode.has(Mode::OPTIN) && !self.caching)
            || (mode.has(Mode::OPTOUT) && self.caching)
        {
            return;
        }
        let table = &self.node.tracking.table;
        let Ok(keys) = keys(spec, args) else { return };
        for key in keys.iter().filter(|key| !key.flags.contains(KeyFlags::NOT_KEY)) {
            table.add(&self.node.layout.hasher, args.at(key.index), self.shared.id);
        }
        if let Some(last) = keys.last() {
            let (node, live) = (self.node.clone(), self.live().clone());
            if node.shrink_table(&live.config, args.at(last.index), self.shared.id) {
                self.expect_pushes();
            }
        }
    }

    /// A request has ended: CLIENT CACHING held for it, or for the transaction that it ended.
    #[inline]
    pub(crate) fn forget_caching(&mut self, found: Lookup) {
        if !self.caching || self.transaction.is_some() {
            return;
        }
        let is_client_command = matches!(found, Lookup::Found(command) if command.spec().name.starts_with("client|"));
        self.caching = is_client_command;
    }

    /// Before a command: what the node has done meanwhile (eviction, a table that was too large) is told before its reply.
    #[cold]
    pub(crate) fn tell_before(&mut self) {
        let (node, live) = (self.node.clone(), self.live().clone());
        node.shrink_table(&live.config, b"", self.shared.id);
        if self.shared.tracking.get().has(Mode::ON) {
            self.take_pushes();
        }
    }

    /// Tells of the keys that the command has changed. Its reply begins at `mark`, which is where the client hears of its own flush.
    #[cold]
    pub(crate) fn tell_touched(&mut self, mark: usize) {
        let (node, live, id) = (self.node.clone(), self.live().clone(), self.shared.id);
        let touched = std::mem::take(&mut self.effects().touched);
        for touched in touched {
            let to_sender = match touched {
                Touched::Key(key) => {
                    let clients = node.tracking.table.take(&node.layout.hasher, &key).unwrap_or_default();
                    let to_sender = node.invalidate_key(&live.config, &key, clients, id);
                    if node.tracking.prefixes.count() > 0 {
                        self.changed_keys.push(key);
                    }
                    to_sender
                }
                Touched::All => {
                    let to_sender = node.invalidate_all(&live.config, id);
                    if to_sender && self.executing.is_none() && !self.reply_mode.is_silent() {
                        self.take_pushes_at(mark);
                        continue;
                    }
                    to_sender
                }
            };
            if to_sender {
                self.expect_pushes();
            }
        }
    }

    /// Shards are about to be let go: what is left to be told is told. `goes_on` says that the batch does, with other shards.
    pub(crate) fn tell_rest(&mut self, goes_on: bool) {
        if self.effects().has_news() {
            self.tell_news(self.reply.len());
        }
        if !self.changed_keys.is_empty() && !goes_on {
            let (node, live, mut keys) =
                (self.node.clone(), self.live().clone(), std::mem::take(&mut self.changed_keys));
            if node.broadcast(&live.config, &mut keys, self.shared.id) {
                self.expect_pushes();
            }
            self.changed_keys = keys;
        }
        self.follow_up();
    }

    /// Tells of what the command has done, by keyspace events and to those who have read its keys.
    #[cold]
    pub(crate) fn tell_news(&mut self, mark: usize) {
        if !self.effects().touched.is_empty() {
            self.tell_touched(mark);
        }
        if !self.effects().events.is_empty() {
            self.tell_events();
        }
    }
}
