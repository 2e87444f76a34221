//! The clients of a node: what CLIENT LIST shows of each, and the way to reach it.
//!
//! A connection owns its [`Client`](crate::client::Client); what others may read or change of it is in [`ClientShared`]: facts
//! as relaxed atomics that the connection refreshes after each batch, and an inbox for messages.

use crate::blocking::Ending;
use crate::client::Client;
use crate::commands::transaction::Transaction;
use crate::pubsub::Subscriptions;
use crate::push::Push;
use crate::tracking::TrackingMode;
use simurgh_kernel::net::PeerAddress;
use simurgh_storage::WatchFlag;
use simurgh_storage::blocking::Waiter;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// What is sent to a connection.
#[derive(Debug)]
pub enum ConnectionMessage {
    /// Its client comes back from a shard that was busy.
    Back(Box<Client>),
    /// Close. What is waiting to be sent is dropped.
    Kill,
    /// Something that it may wait for has changed: look again.
    Look,
    /// The reply of the command that it waited in; to be sent once the log is safe up to `position`.
    Served {
        /// The reply.
        reply: Vec<u8>,
        /// What it depends on.
        position: u64,
    },
    /// The command that it waits in may be served, but not by the one who saw that.
    Retry,
    /// Somebody else has ended its wait.
    Unblocked(Ending),
}

/// A connection's mailbox: bounded, since each sender has a limit of its own (one client, one kill, the output limit).
///
/// Pushes lie beside the messages until the client itself takes them, between two of its commands: wherever it is meanwhile,
/// they keep their order, and they are shared among all who are sent the same.
#[derive(Debug, Default)]
pub struct Inbox {
    state: Mutex<InboxState>,
    /// The connection has left its waker and nothing has come since: it need not look under the lock.
    is_quiet: AtomicBool,
}

#[derive(Debug, Default)]
struct InboxState {
    messages: Vec<ConnectionMessage>,
    pushes: Vec<Push>,
    /// Bytes of pushes not yet taken.
    pushed: usize,
    waker: Option<Waker>,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, InboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message and wakes the connection.
    pub fn send(&self, message: ConnectionMessage) {
        self.put(|state| state.messages.push(message));
    }

    /// Sends what the client did not ask for; how many bytes of that wait now.
    pub fn push(&self, push: Push) -> usize {
        self.put(|state| {
            state.pushed += push.len();
            state.pushes.push(push);
            state.pushed
        })
    }

    fn put<R>(&self, put: impl FnOnce(&mut InboxState) -> R) -> R {
        let (result, waker) = {
            let mut state = self.lock();
            let result = put(&mut state);
            self.is_quiet.store(false, Ordering::Release);
            (result, state.waker.take())
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        result
    }

    /// Bytes of pushes that the connection has not taken yet: what its output limit counts too.
    #[must_use]
    pub fn pushed(&self) -> usize {
        self.lock().pushed
    }

    /// Returns a client to its connection.
    pub fn give_back(&self, client: Box<Client>) {
        self.send(ConnectionMessage::Back(client));
    }

    /// Takes what has come, or leaves the waker for what will: nothing means that there is nothing to do. Pushes are left to
    /// the client, if it is here. Always called by the same task.
    #[inline]
    pub fn take(&self, waker: &Waker, is_client_here: bool) -> Option<Vec<ConnectionMessage>> {
        if self.is_quiet.load(Ordering::Acquire) {
            return None;
        }
        self.take_locked(waker, is_client_here)
    }

    fn take_locked(&self, waker: &Waker, is_client_here: bool) -> Option<Vec<ConnectionMessage>> {
        let mut state = self.lock();
        if state.messages.is_empty() && (state.pushes.is_empty() || !is_client_here) {
            match &mut state.waker {
                Some(known) => known.clone_from(waker),
                None => state.waker = Some(waker.clone()),
            }
            self.is_quiet.store(true, Ordering::Release);
            return None;
        }
        Some(std::mem::take(&mut state.messages))
    }

    /// Takes the pushes; `into` is empty, and its memory serves for the next ones.
    pub(crate) fn take_pushes(&self, into: &mut Vec<Push>) {
        let mut state = self.lock();
        state.pushed = 0;
        std::mem::swap(&mut state.pushes, into);
    }
}

/// Texts that a client has set.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the fields of CLIENT LIST")]
pub struct ClientTexts {
    pub name: Vec<u8>,
    pub lib_name: Vec<u8>,
    pub lib_ver: Vec<u8>,
}

impl ClientTexts {
    /// Memory that they hold, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.name.capacity() + self.lib_name.capacity() + self.lib_ver.capacity()
    }
}

/// What others may know of a client.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields of CLIENT LIST")]
pub struct ClientShared {
    pub id: u64,
    pub address: PeerAddress,
    pub core: usize,
    pub connected_ms: i64,
    pub inbox: Inbox,
    pub texts: Mutex<ClientTexts>,
    pub watched: Mutex<Option<WatchFlag>>,
    /// When the client last sent a command, in milliseconds of Unix time.
    pub last_interaction_ms: AtomicI64,
    /// `Command::index() + 1` of its last command; 0 before the first.
    pub last_command: AtomicU32,
    pub database: AtomicU32,
    pub resp: AtomicU32,
    /// Commands queued by MULTI; -1 outside.
    pub multi: AtomicI64,
    pub watch: AtomicU32,
    pub watched_memory: AtomicU64,
    pub query_buffer: AtomicU64,
    pub query_buffer_free: AtomicU64,
    pub multi_memory: AtomicU64,
    /// Output that waits to be sent, in bytes.
    pub output: AtomicU64,
    pub output_capacity: AtomicU64,
    /// The most that has waited.
    pub output_peak: AtomicU64,
    /// A request of its waits for the end of a pause.
    pub is_paused: AtomicBool,
    /// Its part of the memory of all clients.
    pub counted_memory: AtomicU64,
    /// Memory of its buffers when its memory was last looked at; not a size of any when more than buffers may have changed.
    pub measured_buffers: AtomicU64,
    /// Since when more output waits than the soft limit allows, in milliseconds of Unix time; 0 while it does not.
    pub over_soft_since_ms: AtomicI64,
    pub is_authenticated: AtomicBool,
    pub net_input: AtomicU64,
    pub net_output: AtomicU64,
    pub commands: AtomicU64,
    pub no_evict: AtomicBool,
    pub no_touch: AtomicBool,
    pub is_monitor: AtomicBool,
    /// It waits in a command.
    pub is_blocked: AtomicBool,
    /// The command that it waits in.
    pub waiter: Mutex<Option<Arc<Waiter>>>,
    pub close_asap: AtomicBool,
    /// What it is subscribed to.
    pub subscriptions: Subscriptions,
    /// How it tracks keys.
    pub tracking: TrackingMode,
}

impl ClientShared {
    /// A client that has just connected.
    #[must_use]
    pub fn new(id: u64, address: PeerAddress, core: usize, now_ms: i64) -> Self {
        Self {
            id,
            address,
            core,
            connected_ms: now_ms,
            inbox: Inbox::default(),
            texts: Mutex::default(),
            watched: Mutex::default(),
            last_interaction_ms: AtomicI64::new(now_ms),
            last_command: AtomicU32::new(0),
            database: AtomicU32::new(0),
            resp: AtomicU32::new(2),
            multi: AtomicI64::new(-1),
            watch: AtomicU32::new(0),
            watched_memory: AtomicU64::new(0),
            query_buffer: AtomicU64::new(0),
            query_buffer_free: AtomicU64::new(0),
            multi_memory: AtomicU64::new(0),
            output: AtomicU64::new(0),
            output_capacity: AtomicU64::new(0),
            output_peak: AtomicU64::new(0),
            is_paused: AtomicBool::new(false),
            counted_memory: AtomicU64::new(0),
            measured_buffers: AtomicU64::new(u64::MAX),
            over_soft_since_ms: AtomicI64::new(0),
            is_authenticated: AtomicBool::new(true),
            net_input: AtomicU64::new(0),
            net_output: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            no_evict: AtomicBool::new(false),
            no_touch: AtomicBool::new(false),
            is_monitor: AtomicBool::new(false),
            is_blocked: AtomicBool::new(false),
            waiter: Mutex::default(),
            close_asap: AtomicBool::new(false),
            subscriptions: Subscriptions::default(),
            tracking: TrackingMode::default(),
        }
    }

    /// Notes what becomes of the keys that the client watches; none if it watches none.
    pub(crate) fn note_watched(&self, flag: Option<WatchFlag>) {
        *self.watched.lock().unwrap_or_else(PoisonError::into_inner) = flag;
    }

    /// Whether a key that the client watches has changed.
    pub(crate) fn has_watched_in_vain(&self) -> bool {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(WatchFlag::is_set)
    }

    /// Whether it waits: in a command, or for the end of a pause.
    pub(crate) fn waits(&self) -> bool {
        self.is_paused.load(Ordering::Relaxed) || self.is_blocked.load(Ordering::Relaxed)
    }

    /// Memory of what is kept for it beside its buffers: names, subscriptions, prefixes, watched keys, messages not yet taken.
    pub(crate) fn memory_beside(&self) -> usize {
        let watched = self.watched_memory.load(Ordering::Relaxed) as usize;
        self.texts().memory() + self.subscriptions.memory() + self.tracking.memory() + watched
    }

    /// The texts that the client has set.
    pub fn texts(&self) -> MutexGuard<'_, ClientTexts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For how long it has been connected.
    pub(crate) fn age_seconds(&self, now_ms: i64) -> i64 {
        (now_ms - self.connected_ms).max(0) / 1000
    }

    /// For how long it has not sent anything.
    pub(crate) fn idle_seconds(&self, now_ms: i64) -> i64 {
        (now_ms - self.last_interaction_ms.load(Ordering::Relaxed)).max(0) / 1000
    }

    /// Tells the connection to close. If it waits in a command, nobody serves that any more: what it was given would be lost.
    pub fn kill(&self) {
        self.close_asap.store(true, Ordering::Relaxed);
        self.stop_wait();
        self.inbox.send(ConnectionMessage::Kill);
    }
}

impl Client {
    /// Brings what others may know up to date: after each batch, and before the client looks at itself.
    pub(crate) fn publish(&self) {
        let shared = &self.shared;
        let relaxed = Ordering::Relaxed;
        shared.database.store(self.database as u32, relaxed);
        let queued = self.executing.or(self.transaction.as_ref().map(Transaction::len));
        shared.multi.store(queued.map_or(-1, |count| count as i64), relaxed);
        shared.multi_memory.store(self.transaction.as_ref().map_or(0, Transaction::memory) as u64, relaxed);
        shared.watch.store(self.watch.len() as u32, relaxed);
        shared.watched_memory.store(self.watch.memory() as u64, relaxed);
        self.publish_output();
    }

    /// The same for what waits to be executed.
    pub(crate) fn publish_input(&self) {
        let (shared, buffer) = (&self.shared, &self.incoming.buffer);
        shared.query_buffer.store(buffer.len() as u64, Ordering::Relaxed);
        shared.query_buffer_free.store((buffer.capacity() - buffer.len()) as u64, Ordering::Relaxed);
    }

    /// The same for what waits to be sent.
    pub(crate) fn publish_output(&self) {
        let (shared, relaxed) = (&self.shared, Ordering::Relaxed);
        let output = self.output_waiting() as u64;
        shared.output.store(output, relaxed);
        shared.output_capacity.store(self.reply.capacity() as u64, relaxed);
        if output > shared.output_peak.load(relaxed) {
            shared.output_peak.store(output, relaxed);
        }
    }
}

/// Every client, in the order of connecting.
#[derive(Debug, Default)]
pub struct Clients {
    next_id: AtomicU64,
    by_id: Mutex<BTreeMap<u64, Arc<ClientShared>>>,
}

impl Clients {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<ClientShared>>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a client if fewer than `limit` are connected.
    pub fn add(&self, address: PeerAddress, core: usize, now_ms: i64, limit: usize) -> Option<Arc<ClientShared>> {
        let mut clients = self.lock();
        if clients.len() >= limit {
            return None;
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed) + 1;
        let client = Arc::new(ClientShared::new(id, address, core, now_ms));
        clients.insert(id, client.clone());
        Some(client)
    }

    /// Removes a client that has gone.
    pub fn remove(&self, id: u64) {
        self.lock().remove(&id);
    }

    /// How many are connected.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether nobody is connected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them, without those that have been told to close.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<ClientShared>> {
        let stays = |client: &&Arc<ClientShared>| !client.close_asap.load(Ordering::Relaxed);
        self.lock().values().filter(stays).cloned().collect()
    }

    /// One of them.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<Arc<ClientShared>> {
        self.lock().get(&id).cloned()
    }
}
