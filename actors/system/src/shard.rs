//! The shard actor: a part of the keyspace, and the jobs that come to it.
//!
//! State is [`simurgh_storage::Shard`]; the one message is a client with requests to execute, so a busy shard's queue holds
//! whole connections' batches. Whoever holds a shard runs what has queued before letting go (see the kernel's mailbox). A panic
//! while a shard is held stops the node: a shard that lost half a change must not be read again.

use crate::client::Client;
use crate::commands::{EXEC, ends_watch};
use crate::node::Node;
use crate::request::Prepared;
use crate::scripting::run_in_turns;
use simurgh_kernel::core::{AbortOnUnwind, yield_now};
use simurgh_kernel::mailbox::{GATE, Held, Job};
use simurgh_kernel::rehearsal::{Mistake, has};
use simurgh_kernel::time;
use simurgh_protocol::command::Lookup;
use simurgh_storage::{Shard, Shards};
use std::time::Duration;

/// Shards held for a job, as commands see them.
pub(crate) struct HeldShards<'a, 'b>(pub &'a mut Held<'b, Shard, Client>);

impl Shards for HeldShards<'_, '_> {
    #[inline]
    fn shard(&mut self, index: usize) -> &mut Shard {
        self.0.get(index)
    }

    fn held(&self) -> u64 {
        self.0.set_with_gate()
    }

    fn borrowed(&self) -> u64 {
        self.0.borrowed()
    }

    fn try_take(&mut self, wanted: u64, may_borrow: bool) -> bool {
        self.0.try_extend(wanted) || (may_borrow && self.0.try_borrow(wanted))
    }
}

/// How often a busy shard is tried in turns with others before a moment's sleep: a script may hold it for long.
const TURNS: u32 = 64;
const REST: Duration = Duration::from_micros(100);

/// Takes one shard for somebody who is no client, as soon as it is idle.
pub(crate) async fn hold(node: &Node, index: usize) -> Held<'_, Shard, Client> {
    hold_set(node, 1 << index).await
}

async fn hold_set(node: &Node, set: u64) -> Held<'_, Shard, Client> {
    let mut tries = 0;
    loop {
        match node.shards.try_hold(set) {
            Some(held) => return held,
            None => wait(&mut tries).await,
        }
    }
}

/// Takes all shards, one after the other in ascending order, as everybody does who takes several: what is held makes others wait, so
/// the end is near even under load. The gate comes first: a script that runs may want a shard which it has not named while it keeps its
/// own, and whoever waits with some in hand must not stand in its way.
pub(crate) async fn hold_all(node: &Node) -> Held<'_, Shard, Client> {
    let mut held = hold_set(node, GATE).await;
    for index in 0..node.shards.count() {
        let mut tries = 0;
        while !held.try_extend(1 << index) {
            wait(&mut tries).await;
        }
    }
    held
}

/// Until the next of these tries, which are few at once: a script may hold a shard for long.
pub(crate) async fn wait(tries: &mut u32) {
    *tries += 1;
    if *tries < TURNS { yield_now().await } else { time::sleep(REST).await }
}

/// For commands that run without any shard.
pub(crate) struct NoShards;

impl Shards for NoShards {
    fn shard(&mut self, index: usize) -> &mut Shard {
        panic!("shard {index} is used by a command whose row says that it needs none")
    }
}

impl Job<Shard> for Client {
    fn run(self: Box<Self>, held: &mut Held<'_, Shard, Self>) {
        self.node.stats.queued_at_shard.add(1);
        if has(Mistake::LostWakeUp) && self.node.stats.queued_at_shard.get().is_multiple_of(16) {
            return;
        }
        let shared = self.shared.clone();
        if let Some(client) = run_with(self, held) {
            shared.inbox.give_back(client);
        }
    }
}

impl Client {
    /// The shards that the next request needs.
    #[inline]
    pub(crate) fn shards_wanted(&self, next: &Prepared) -> u64 {
        let is_ordinary = self.walking.is_none() && self.transaction.is_none() && self.watch.is_empty();
        if is_ordinary { next.shards } else { self.shards_wanted_by_state(next) }
    }

    /// The same in the middle of a walk or a transaction, or with watched keys.
    fn shards_wanted_by_state(&self, next: &Prepared) -> u64 {
        let Lookup::Found(command) = next.found else { return 0 };
        if let Some(shard) = self.walk_shard() {
            return shard;
        }
        let watched = if ends_watch(command) { self.watch.shards() } else { 0 };
        match &self.transaction {
            Some(transaction) if command == EXEC => transaction.shards() | watched,
            // Between MULTI and EXEC nothing runs but what ends it.
            Some(_) => watched,
            None => next.shards | watched,
        }
    }
}

/// Runs a client with the shards that it needs. Nothing: it has taken them with it, and will come back through its inbox.
#[inline]
pub(crate) fn run_with(mut client: Box<Client>, held: &mut Held<'_, Shard, Client>) -> Option<Box<Client>> {
    if client.blocked.is_none() && client.incoming.peek().is_some_and(|next| client.runs_script(next)) {
        return run_in_turns(client, held);
    }
    let _guard = AbortOnUnwind::new();
    client.run_held(held);
    Some(client)
}
