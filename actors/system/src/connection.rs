//! The connection actor: the asynchronous shell around a [`Client`].
//!
//! It reads what the socket has, lets the client parse and execute the batch, and writes every reply with one write. In
//! between it waits for whichever comes first: bytes, room to write, a message, or the log reaching the position that its
//! oldest reply waits for. A panic here closes this connection and no other.

use crate::buffers::{lend_buffers, read_room, take_buffers_back};
use crate::client::{Client, Close, Ran, Wait, run};
use crate::clients::{ClientShared, ConnectionMessage};
use crate::log::Promise;
use crate::memory;
use crate::node::Node;
use crate::persistence::Reload;
use simurgh_kernel::net::Stream;
use simurgh_kernel::rehearsal::{Point, reached};
use simurgh_kernel::{core, time};
use simurgh_storage::blocking::Waiter;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// The most room that is made at once for an argument still being received: memory follows what has arrived.
const READ_ROOM_MAX: usize = 1 << 20;
/// Input that is taken from a client while it waits for a key: enough to see the end of its connection.
const BLOCKED_INPUT_MAX: usize = 64 * 1024;
/// How long a connection reads nothing when the disk has fallen behind.
const CONGESTED: Duration = Duration::from_millis(5);
/// Input that is taken from a client whose output waits. Many clients send all of a pipeline before they read the first reply: if
/// nothing were read meanwhile, both would wait for each other.
const PAUSED_INPUT_MAX: usize = 32 << 20;
/// Reply buffers above this are given back once they are empty.
const REPLY_KEPT: usize = 64 * 1024;
/// Larger ones are not kept from one request to the next.
const BUFFERS_KEPT: usize = 64 * 1024;

/// Removes the client from the node's registry however its connection ends.
struct Registered {
    node: Arc<Node>,
    shared: Arc<ClientShared>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.node.forget_client(&self.shared);
    }
}

/// Serves one connection until it ends.
pub(crate) async fn serve(node: Arc<Node>, shared: Arc<ClientShared>, stream: Stream) {
    let client = Some(Box::new(Client::new(node.clone(), shared.clone())));
    let mut connection = Connection {
        node,
        shared,
        stream,
        client,
        at_end: false,
        out_total: 0,
        asked_for: None,
        is_killed: false,
        has_more: false,
        pause: None,
        timeout: None,
        rest: None,
        ended_wait: None,
    };
    // Gone before its socket is, so that whoever sees the end finds no trace of it.
    let registered = Registered { node: connection.node.clone(), shared: connection.shared.clone() };
    connection.run().await;
    if let Some(mut client) = connection.client.take() {
        if client.sendable().1.is_some() {
            reached(Point::UnsentReply);
        }
        registered.node.leave(client).await;
    }
}

/// Something that is ready later.
type Timer = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Connection {
    node: Arc<Node>,
    shared: Arc<ClientShared>,
    stream: Stream,
    /// Away while it is in the queue of a shard.
    client: Option<Box<Client>>,
    /// The peer has sent everything it will.
    at_end: bool,
    out_total: u64,
    /// The position of the log that the core's relay has been asked to wake this connection for.
    asked_for: Option<(u64, Promise)>,
    /// To be closed as soon as the client is here.
    is_killed: bool,
    /// Execution has stopped until what waits has been sent.
    has_more: bool,
    /// The end of the pause that the next request waits for.
    pause: Option<Timer>,
    /// The time at which the client gives up waiting for a key, and the timer for it.
    timeout: Option<(i64, Timer)>,
    /// The end of a rest from reading, which the disk needs.
    rest: Option<Timer>,
    /// A wait that has ended and lies with its shards still.
    ended_wait: Option<Arc<Waiter>>,
}

/// What a connection has waited for.
enum Event {
    /// Bytes were read.
    Read,
    /// Messages.
    Messages(Vec<ConnectionMessage>),
    /// The connection is broken.
    Broken,
    /// Everything has been sent and the connection is to close.
    Finished,
    /// What execution had stopped for is over.
    Resume,
    /// The client has waited for a key for as long as it wanted to.
    Timeout,
}

impl Connection {
    async fn run(&mut self) {
        loop {
            match poll_fn(|cx| self.poll_event(cx)).await {
                Event::Broken | Event::Finished => return,
                Event::Read | Event::Resume => {}
                Event::Timeout => self.ended_wait = self.client.as_mut().and_then(|client| client.give_up_wait()),
                Event::Messages(messages) => {
                    messages.into_iter().for_each(|message| self.accept(message));
                    if let Some(client) = &mut self.client {
                        client.take_pushes();
                        client.publish_output();
                    }
                }
            }
            if let Some(waiter) = self.ended_wait.take() {
                self.node.forget_waiter(&waiter).await;
            }
            // A client that is away is waited for: its watches are to be ended.
            if self.is_killed && self.client.is_some() {
                return;
            }
            if !self.execute().await {
                return;
            }
        }
    }

    /// Takes a message.
    fn accept(&mut self, message: ConnectionMessage) {
        match message {
            ConnectionMessage::Back(client) => {
                self.has_more = client.is_output_due();
                self.client = Some(client);
            }
            ConnectionMessage::Kill => self.is_killed = true,
            ConnectionMessage::Look => self.timeout = None,
            ConnectionMessage::Served { reply, position } => {
                if let Some(client) = &mut self.client {
                    client.accept_served(&reply, position);
                }
            }
            ConnectionMessage::Retry => {
                if let Some(wait) = self.client.as_mut().and_then(|client| client.blocked.as_mut()) {
                    wait.retries = true;
                }
            }
            ConnectionMessage::Unblocked(ending) => {
                self.ended_wait = self.client.as_mut().and_then(|client| client.end_wait(ending));
            }
        }
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        if let Some(messages) = self.shared.inbox.take(cx.waker(), self.client.is_some()) {
            return Poll::Ready(Event::Messages(messages));
        }
        if self.client.is_none() {
            return Poll::Pending;
        }
        match self.poll_write(cx) {
            Poll::Ready(Err(())) => return Poll::Ready(Event::Broken),
            Poll::Ready(Ok(true)) => return Poll::Ready(Event::Finished),
            Poll::Ready(Ok(false)) | Poll::Pending => {}
        }
        if self.has_more && self.client.as_ref().is_some_and(|client| !client.must_pause()) {
            self.has_more = false;
            return Poll::Ready(Event::Resume);
        }
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
            self.shared.is_paused.store(false, Relaxed);
            return Poll::Ready(Event::Resume);
        }
        if self.poll_timeout(cx).is_ready() {
            return Poll::Ready(Event::Timeout);
        }
        self.poll_read(cx)
    }

    /// Ready when the client has waited for a key for as long as it wanted to.
    fn poll_timeout(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline_ms) = self.client.as_ref().and_then(|client| client.wait_deadline()) else {
            self.timeout = None;
            return Poll::Pending;
        };
        if self.timeout.as_ref().is_none_or(|(at, _)| *at != deadline_ms) {
            let left = u64::try_from(deadline_ms - time::wall_ms()).unwrap_or(0);
            self.timeout = Some((deadline_ms, Box::pin(time::sleep(Duration::from_millis(left)))));
        }
        let (_, timer) = self.timeout.as_mut().expect("made just now");
        ready!(timer.as_mut().poll(cx));
        self.timeout = None;
        Poll::Ready(())
    }

    /// Sends what may be sent. Ready with `true` when everything has gone and the connection is to close.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, ()>> {
        loop {
            let client = self.client.as_mut().expect("the caller has looked");
            let (sendable, waits_for) = client.sendable();
            if sendable == 0 {
                let Some((position, promise)) = waits_for else {
                    memory::check_output(&self.node, client);
                    return Poll::Ready(Ok(client.close.is_some()));
                };
                if self.asked_for != Some((position, promise)) {
                    self.asked_for = Some((position, promise));
                    self.node.log.wake_when_kept(self.shared.core, promise, position, cx.waker());
                }
                // It may have become safe between the two looks.
                if self.node.log.kept(promise) < position {
                    return Poll::Pending;
                }
                continue;
            }
            match self.stream.poll_write_some(cx, client.unsent(sendable)) {
                Poll::Pending if !memory::check_output(&self.node, client) => return Poll::Ready(Err(())),
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(count)) if count > 0 => {
                    client.sent(count);
                    self.out_total += count as u64;
                    self.shared.net_output.store(self.out_total, Relaxed);
                    self.node.stats.total_net_output_bytes.add(count as u64);
                    self.node.stats.total_writes_processed.add(1);
                    if client.reply.is_empty() && client.reply.buffer().capacity() > REPLY_KEPT {
                        *client.reply.buffer() = Vec::new();
                    }
                    client.publish_output();
                }
                Poll::Ready(_) => return Poll::Ready(Err(())),
            }
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        let client = self.client.as_mut().expect("the caller has looked");
        if client.close.is_some() || self.at_end {
            return Poll::Pending;
        }
        if self.node.is_congested() {
            // Nobody tells when that is over: it is looked at again after a moment.
            let rest = self.rest.get_or_insert_with(|| Box::pin(time::sleep(CONGESTED)));
            if rest.as_mut().poll(cx).is_ready() {
                self.rest = None;
                cx.waker().wake_by_ref();
            }
            return Poll::Pending;
        }
        if client.must_pause() && client.incoming.buffer.len() >= PAUSED_INPUT_MAX {
            return Poll::Pending;
        }
        if client.blocked.is_some() && client.incoming.buffer.len() >= BLOCKED_INPUT_MAX {
            return Poll::Pending;
        }
        if client.incoming.buffer.capacity() == 0 {
            lend_buffers(client);
        }
        let least = read_room(client);
        let incoming = &mut *client.incoming;
        let room = incoming.wanted_room().clamp(least, READ_ROOM_MAX);
        if incoming.buffer.capacity() - incoming.buffer.len() < room / 4 {
            incoming.buffer.reserve(room);
        }
        match self.stream.poll_read_into(cx, &mut incoming.buffer) {
            Poll::Pending => {
                take_buffers_back(client);
                client.publish_input();
                Poll::Pending
            }
            Poll::Ready(Ok(0)) | Poll::Ready(Err(_)) => Poll::Ready(Event::Broken),
            Poll::Ready(Ok(count)) => {
                self.node.stats.total_net_input_bytes.add(count as u64);
                self.node.stats.total_reads_processed.add(1);
                // Nobody else counts here.
                let total = self.shared.net_input.load(Relaxed) + count as u64;
                self.shared.net_input.store(total, Relaxed);
                Poll::Ready(Event::Read)
            }
        }
    }

    /// Executes everything that can be executed; whether the connection lives on.
    async fn execute(&mut self) -> bool {
        loop {
            if self.has_more {
                return true;
            }
            let Some(mut client) = self.client.take() else { return true };
            if client.close == Some(Close::Now) || self.shared.close_asap.load(Relaxed) {
                self.client = Some(client);
                return false;
            }
            // A command that queued at a busy shard has left what is to be waited for.
            if let Some(wait) = client.wait.take() {
                self.client = Some(client);
                Box::pin(self.perform(wait)).await;
                continue;
            }
            let retries = client.shards_to_retry().is_some();
            if client.blocked.is_some() && !retries {
                self.client = Some(client);
                return true;
            }
            if client.must_pause() && !retries {
                self.has_more = true;
                self.client = Some(client);
                return true;
            }
            if !retries && client.incoming.is_lent() && client.incoming.peek().is_none() {
                client.incoming.release();
                client.parse();
            }
            if !retries && client.incoming.peek().is_none() {
                return self.rest(client);
            }
            if client.incoming.peek().is_some_and(|next| client.is_held_back(&client.incoming, next)) {
                self.client = Some(client);
                self.wait_for_end_of_pause();
                return true;
            }
            match run(&self.node, client) {
                Ran::Away => return true,
                Ran::Busy(client) => {
                    self.client = Some(client);
                    core::yield_now().await;
                }
                Ran::Here(mut client) => {
                    let wait = client.wait.take();
                    if client.close == Some(Close::Now) {
                        self.client = Some(client);
                        return false;
                    }
                    let is_closing = client.close.is_some();
                    if is_closing {
                        client.incoming.discard();
                    }
                    self.has_more = client.is_output_due();
                    self.client = Some(client);
                    if let Some(wait) = wait {
                        Box::pin(self.perform(wait)).await;
                    }
                    if is_closing {
                        return true;
                    }
                }
            }
        }
    }

    /// Nothing to execute: reports a protocol error, if that is what ended the stream, and gives the buffer back. Whether the
    /// connection lives on: its buffers may be too large.
    fn rest(&mut self, mut client: Box<Client>) -> bool {
        if client.incoming.error.is_some()
            && let Some(error) = client.incoming.error.take()
        {
            if !client.reply_mode.is_silent() {
                client.reply.error(error);
            }
            client.close = Some(Close::AfterReply);
            client.incoming.discard();
        }
        // Where all of them is counted, it is counted at rest. Otherwise they stay until it turns out that nothing more has come.
        if memory::counts_all(&client) || client.incoming.memory() > BUFFERS_KEPT {
            take_buffers_back(&mut client);
        }
        client.publish_input();
        let may_stay = memory::check_buffers(&self.node, &mut client);
        self.client = Some(client);
        may_stay
    }

    /// The next request is held back: the connection stays where it is reached by messages and can send.
    fn wait_for_end_of_pause(&mut self) {
        if self.pause.is_none() {
            let node = self.node.clone();
            self.shared.is_paused.store(true, Relaxed);
            self.pause = Some(Box::pin(async move { node.pause.over().await }));
        }
    }

    async fn perform(&mut self, wait: Wait) {
        match wait {
            Wait::Sleep(duration) => time::sleep(duration).await,
            Wait::Reload(source) => {
                let reloaded = crate::persistence::reload::reload(&self.node, source).await;
                if let Some(client) = &mut self.client {
                    match reloaded {
                        Ok(()) => client.reply.ok(),
                        Err(error) => {
                            let what = if source == Reload::Log { "AOF files" } else { "RDB dump" };
                            client.reply.error(format_args!("ERR Error trying to load the {what}: {error}"));
                        }
                    }
                }
            }
            Wait::Snapshot => {
                let Some(ended) = self.client.as_mut().and_then(|client| client.snapshot.take()) else { return };
                let saved = matches!(ended.await, Ok(Ok(())));
                if let Some(client) = &mut self.client {
                    if saved { client.reply.ok() } else { client.reply.error("ERR") }
                }
            }
            Wait::Acknowledged(wanted) => {
                wanted.reached(&self.node, &self.shared).await;
                if let Some(client) = &mut self.client {
                    wanted.reply(&self.node, &mut client.reply);
                }
            }
            Wait::Panic => simurgh_kernel::core::panic_as_asked(),
            Wait::Shutdown { saves, forced } => {
                if saves && !self.node.save_before_stop().await && !forced {
                    if let Some(client) = &mut self.client {
                        client.reply.error("ERR Errors trying to SHUTDOWN. Check logs.");
                    }
                    return;
                }
                self.node.shutdown.ask();
                // The one who asked hears of the end by the connection's end; nothing of it is waited for.
                self.node.forget_client(&self.shared);
                self.node.shutdown.finished().await;
            }
        }
    }
}
