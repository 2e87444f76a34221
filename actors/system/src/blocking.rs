//! Clients that wait for a key: how they come to wait, how they are served, and how else their wait ends.
//!
//! A waiting command lies with the shards of its keys (see `simurgh_storage::blocking`); its client is at its connection, which goes on
//! reading and sending. Whoever changes such a key runs the waiting commands before letting go of the shards, so nobody gets in
//! between: their effects follow the change in the log, and their replies go to their connections with the position of the log that
//! they depend on. A command that needs further shards gets them if they are idle at that moment; otherwise its own client tries again by
//! the ordinary way, and somebody else may come first.
//!
//! A wait ends once: whoever moves the waiter on from `Waiting` decides how.

use crate::client::Client;
use crate::clients::{ClientShared, ConnectionMessage};
use crate::node::Node;
use crate::shard::HeldShards;
use simurgh_kernel::mailbox::Held;
use simurgh_kernel::rehearsal::{Mistake, Point, has, reached};
use simurgh_kernel::time;
use simurgh_protocol::command::{Command, DataCommand};
use simurgh_protocol::{Args, Reply};
use simurgh_storage::blocking::{Block, ReadyKey, Terms, Waiter, WaiterState};
use simurgh_storage::{Shard, Shards, execute};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};

const UNBLOCKED: &str = "UNBLOCKED client unblocked via CLIENT UNBLOCK";

/// The wait of a client.
#[derive(Debug)]
pub(crate) struct Wait {
    waiter: Arc<Waiter>,
    /// Its answer is not wanted (CLIENT REPLY).
    is_silent: bool,
    /// It is to try again by itself.
    pub(crate) retries: bool,
}

/// How a wait ended when nobody could serve it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its time was over, or CLIENT UNBLOCK said so.
    Timeout,
    /// CLIENT UNBLOCK with ERROR.
    Error,
}

/// A reply for a client that waited, on its way once the log's position is known.
#[derive(Debug)]
pub(crate) struct Served {
    client: u64,
    reply: Vec<u8>,
}

impl ClientShared {
    fn set_waiter(&self, waiter: Option<Arc<Waiter>>) {
        self.is_blocked.store(waiter.is_some(), Relaxed);
        *self.waiter.lock().unwrap_or_else(PoisonError::into_inner) = waiter;
    }

    /// Ends the client's wait; whether it waited.
    pub(crate) fn stop_wait(&self) -> bool {
        let waiter = self.waiter.lock().unwrap_or_else(PoisonError::into_inner).clone();
        waiter.is_some_and(|waiter| waiter.end())
    }

    /// Ends the client's wait for others; whether it waited.
    pub(crate) fn unblock(&self, ending: Ending) -> bool {
        let ended = self.stop_wait();
        if ended {
            self.inbox.send(ConnectionMessage::Unblocked(ending));
        }
        ended
    }
}

/// The shards of the keys that are waited for.
fn shards_of_keys(node: &Node, waiter: &Waiter) -> u64 {
    let shard_of = |key: &[u8]| 1 << node.layout.shard_of(&node.layout.hasher.key(key));
    waiter.keys.iter().fold(0, |set, key| set | shard_of(key))
}

/// A waiter waits for none of its keys any more; their shards are held.
fn leave_queues(node: &Node, waiter: &Waiter, shards: &mut dyn Shards) {
    for key in &waiter.keys {
        let index = node.layout.shard_of(&node.layout.hasher.key(key));
        shards.shard(index).stop_waiting(key, waiter);
    }
}

impl Client {
    /// When the client gives up waiting, if it waits and does not wait forever.
    pub(crate) fn wait_deadline(&self) -> Option<i64> {
        self.blocked.as_ref().and_then(|wait| wait.waiter.deadline_ms)
    }

    /// The command that has just run waits; its shards are held.
    pub(crate) fn begin_wait(&mut self, command: DataCommand, args: &Args<'_>, block: Block, shards: &mut dyn Shards) {
        let terms = Terms {
            client: self.shared.id,
            database: self.database,
            protocol: self.reply.protocol(),
            no_touch: self.no_touch,
            shards: self.wanted,
        };
        let waiter = Arc::new(Waiter::new(terms, command, args, block));
        for key in &waiter.keys {
            let key = self.node.layout.hasher.key(key);
            shards.shard(self.node.layout.shard_of(&key)).wait(&key, &waiter);
        }
        self.shared.set_waiter(Some(waiter.clone()));
        if self.shared.close_asap.load(Relaxed) {
            // It was killed before there was a wait to end.
            self.shared.stop_wait();
        }
        self.blocked = Some(Wait { waiter, is_silent: self.reply_mode.is_silent(), retries: false });
    }

    /// The shards that the client wants for another try.
    pub(crate) fn shards_to_retry(&self) -> Option<u64> {
        self.blocked.as_ref().filter(|wait| wait.retries).map(|wait| wait.waiter.terms.shards)
    }

    /// Tries the waiting command again where its client stands, and serves those behind it; its shards are held.
    pub(crate) fn retry(&mut self, held: &mut Held<'_, Shard, Self>) {
        self.retry_own(held);
        self.serve_ready(held);
    }

    fn retry_own(&mut self, held: &mut Held<'_, Shard, Self>) {
        let Some(wait) = &mut self.blocked else { return };
        wait.retries = false;
        let (waiter, is_silent) = (wait.waiter.clone(), wait.is_silent);
        let reply = self.run_waiting(&waiter, held);
        // Others stayed behind it when it was told to come: whatever came of it, it is their turn now.
        let database = waiter.terms.database;
        self.effects().ready.extend(waiter.keys.iter().map(|key| ReadyKey { database, key: key.clone() }));
        let Some(reply) = reply else { return };
        self.shared.set_waiter(None);
        self.blocked = None;
        if !is_silent {
            self.reply.buffer().extend_from_slice(&reply);
        }
    }

    /// Runs the commands that wait for keys which have changed, until no such key is left.
    #[cold]
    pub(crate) fn serve_ready(&mut self, held: &mut Held<'_, Shard, Self>) {
        while let Some(ready) = self.effects().ready.pop_front() {
            let key = self.node.layout.hasher.key(&ready.key);
            let index = self.node.layout.shard_of(&key);
            let mut waiters = held.get(index).waiters(ready.database, &ready.key);
            if has(Mistake::Overtaking) {
                waiters.make_contiguous().reverse();
            }
            for waiter in waiters {
                let found = held.get(index).database(ready.database).get(&key);
                if !waiter.awaits.may_be_served_by(found.map(|entry| entry.type_name())) {
                    continue;
                }
                if !held.try_extend(waiter.terms.shards) {
                    reached(Point::RetryOfWaiter);
                    if !has(Mistake::ForgottenRetry) {
                        self.tell(&waiter, ConnectionMessage::Retry);
                    }
                    // Whoever waits behind it stays behind it.
                    break;
                }
                if let Some(reply) = self.run_waiting(&waiter, held) {
                    self.served.push(Served { client: waiter.terms.client, reply });
                }
            }
        }
    }

    fn tell(&self, waiter: &Waiter, message: ConnectionMessage) {
        if let Some(shared) = self.node.clients.get(waiter.terms.client) {
            shared.inbox.send(message);
        }
    }

    /// Runs a waiting command; its reply, unless it has to wait on or has ended.
    fn run_waiting(&mut self, waiter: &Arc<Waiter>, held: &mut Held<'_, Shard, Self>) -> Option<Vec<u8>> {
        if !waiter.turn(WaiterState::Waiting, WaiterState::Served) {
            return None;
        }
        let own = std::mem::replace(&mut self.reply, Reply::new(waiter.terms.protocol));
        let database = std::mem::replace(&mut self.database, waiter.terms.database);
        let no_touch = std::mem::replace(&mut self.no_touch, waiter.terms.no_touch);
        let mut shards = HeldShards(held);
        let started = time::ticks();
        let succeeded = self.with_context(&mut shards, None, |cx| execute(waiter.command, cx, &waiter.args(), None));
        let micros = time::ticks_to_ns(started, time::ticks()) / 1000;
        let mut reply = std::mem::replace(&mut self.reply, own);
        (self.database, self.no_touch) = (database, no_touch);
        if self.effects().block.take().is_some() {
            waiter.turn(WaiterState::Served, WaiterState::Waiting);
            // Its time may have come meanwhile.
            self.tell(waiter, ConnectionMessage::Look);
            return None;
        }
        waiter.turn(WaiterState::Served, WaiterState::Ended);
        leave_queues(&self.node, waiter, &mut shards);
        self.note_if_slow(waiter, micros);
        if !succeeded {
            self.node.failed_after_wait(waiter.command, reply.bytes());
        }
        Some(std::mem::take(reply.buffer()))
    }

    /// A waiting command has run for so long: SLOWLOG.
    fn note_if_slow(&self, waiter: &Waiter, micros: u64) {
        let config = &self.live().config;
        if config.slowlog_microseconds_least.is_some_and(|least| micros >= least)
            && let Some(client) = self.node.clients.get(waiter.terms.client)
        {
            let command = Command::Data(waiter.command);
            crate::commands::slowlog::record(&self.node, &client, config, command, &waiter.args(), micros);
        }
    }

    /// Whether it waits in a command.
    pub(crate) fn is_waiting(&self) -> bool {
        self.blocked.is_some()
    }

    /// Sends the replies of those who were served; they wait for `position` of the log.
    pub(crate) fn deliver_served(&mut self, position: u64) {
        for Served { client, reply } in self.served.drain(..) {
            if let Some(shared) = self.node.clients.get(client) {
                shared.inbox.send(ConnectionMessage::Served { reply, position });
            }
        }
    }

    /// Takes the reply of the command that waited.
    pub(crate) fn accept_served(&mut self, reply: &[u8], position: u64) {
        let Some(wait) = self.blocked.take() else { return };
        self.shared.set_waiter(None);
        if wait.is_silent {
            return;
        }
        if let Some(promise) = self.promise() {
            self.hold_from(self.reply.len(), position, promise);
        }
        self.reply.buffer().extend_from_slice(reply);
    }

    /// Its time is over. What is left of the wait is to be taken out of the shards, unless somebody serves it at this moment.
    pub(crate) fn give_up_wait(&mut self) -> Option<Arc<Waiter>> {
        let is_over = self.blocked.as_ref()?.waiter.turn(WaiterState::Waiting, WaiterState::Ended);
        if is_over { self.end_wait(Ending::Timeout) } else { None }
    }

    /// The wait has ended without a reply of its own.
    pub(crate) fn end_wait(&mut self, ending: Ending) -> Option<Arc<Waiter>> {
        let wait = self.blocked.take()?;
        self.shared.set_waiter(None);
        self.note_if_slow(&wait.waiter, 0);
        if ending == Ending::Error {
            self.node.failed_after_wait(wait.waiter.command, format!("-{UNBLOCKED}").as_bytes());
        }
        if !wait.is_silent {
            match ending {
                Ending::Timeout => self.reply.null_array(),
                Ending::Error => self.reply.error(UNBLOCKED),
            }
        }
        Some(wait.waiter)
    }

    /// The connection ends: what is left of a wait.
    pub(crate) fn abandon_wait(&mut self) -> Option<Arc<Waiter>> {
        let wait = self.blocked.take()?;
        self.shared.set_waiter(None);
        wait.waiter.turn(WaiterState::Waiting, WaiterState::Ended);
        Some(wait.waiter)
    }
}

impl Node {
    /// Takes a waiter whose wait has ended out of the queues of its keys. It may have been told to try again, and others stay behind
    /// it until it has: the next of them is told instead.
    pub(crate) async fn forget_waiter(&self, waiter: &Waiter) {
        let (shards, mut tries) = (shards_of_keys(self, waiter), 0);
        loop {
            if let Some(mut held) = self.shards.try_hold(shards) {
                leave_queues(self, waiter, &mut HeldShards(&mut held));
                return self.tell_next(waiter, &mut HeldShards(&mut held));
            }
            crate::shard::wait(&mut tries).await;
        }
    }

    /// Tells who waits first for a key of this waiter, and could be served.
    fn tell_next(&self, waiter: &Waiter, shards: &mut dyn Shards) {
        let database = waiter.terms.database;
        for key in &waiter.keys {
            let place = self.layout.hasher.key(key);
            let shard = shards.shard(self.layout.shard_of(&place));
            let Some(next) = shard.waiters(database, key).pop_front() else { continue };
            let found = shard.database(database).get(&place);
            if next.awaits.may_be_served_by(found.map(|entry| entry.type_name()))
                && let Some(shared) = self.clients.get(next.terms.client)
            {
                shared.inbox.send(ConnectionMessage::Retry);
            }
        }
    }
}
