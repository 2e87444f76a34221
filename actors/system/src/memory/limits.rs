//! What a client's buffers may take.
//!
//! - **Query buffer**: what has come of an unfinished request, and what MULTI has queued, up to `client-query-buffer-limit`.
//! - **Output**: what the peer does not read, up to `client-output-buffer-limit`. It is measured after an attempt to send, so a
//!   peer that keeps up is never cut for asking much. One reply may be larger than the limit: the client is cut right behind it.
//! - **Before authentication**: 1 KiB of output, so that nobody without a password can make the node remember anything
//!   (CVE-2025-21605).
//! - **All clients together**: `maxmemory-clients`; the largest goes first, by powers of two as in Redis.
//!
//! Redis goes on executing for a client that does not read, up to its limit, which is infinite unless configured. Here such a client
//! is not executed any further once [`OUTPUT_PAUSE`] waits for it: its requests stay in the read buffer, as far as that goes, and in the
//! socket, TCP tells the sender, and nothing is lost when it reads again. A configured limit is a wish to see the client cut, not stalled: then execution goes
//! on until the limit is exceeded, wherever it lies. What is pushed has no request to hold back: subscribers have a limit of
//! their own, and monitors get it too where normal clients have none.

use crate::client::Client;
use crate::clients::ClientShared;
use crate::commands::client_list::line;
use crate::commands::transaction::Transaction;
use crate::configuration::Live;
use crate::node::Node;
use simurgh_kernel::rehearsal::{Mistake, Point, has, reached};
use simurgh_kernel::time;
use simurgh_protocol::config::{Config, OutputLimit, Share};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Output that may wait before a client without limits is not executed any further.
const OUTPUT_PAUSE: usize = 1 << 20;
/// Output that may wait for a client that has not authenticated.
const OUTPUT_UNAUTHENTICATED: u64 = 1024;
/// What a client's memory must have changed by to be counted anew, where there is no limit.
const COUNTED_STEP: u64 = 64 * 1024;
/// How much of the buffer a log line shows.
const SHOWN: usize = 64;

/// The output limit of a client.
pub(crate) fn output_limit(
    config: &Config,
    is_monitor: bool,
    is_subscriber: bool,
    is_authenticated: bool,
) -> OutputLimit {
    let limits = &config.client_output_buffer_limits;
    let normal = limits.normal;
    if !is_authenticated {
        return OutputLimit { hard_bytes: OUTPUT_UNAUTHENTICATED, ..normal };
    }
    let is_unlimited = normal.hard_bytes == 0 && normal.soft_bytes == 0;
    if is_subscriber || (is_monitor && is_unlimited) { limits.pubsub } else { normal }
}

/// How much output may wait before the client is not executed any further.
fn output_pause(client: &Client) -> usize {
    let config = &client.live().config;
    let (limit, clients) = (&config.client_output_buffer_limits.normal, clients_max(config));
    OUTPUT_PAUSE.max(limit.hard_bytes as usize).max(limit.soft_bytes as usize).max(clients as usize)
}

impl Client {
    /// Whether replies are to be sent before more are made.
    pub(crate) fn is_output_due(&self) -> bool {
        self.reply.len() >= self.output_end
    }

    /// Whether so much output waits that nothing more may be executed until some of it is sent.
    #[inline]
    pub(crate) fn must_pause(&self) -> bool {
        let waiting = self.reply.len() - self.sent;
        let is_too_much = waiting > OUTPUT_PAUSE && waiting > output_pause(self);
        if is_too_much {
            reached(Point::OutputPause);
        }
        is_too_much && !has(Mistake::UnboundedOutput)
    }

    /// Bytes of replies that have not been sent.
    pub(crate) fn output_waiting(&self) -> usize {
        self.reply.len() - self.sent
    }

    /// Bytes of what MULTI has queued.
    pub(crate) fn transaction_memory(&self) -> usize {
        self.transaction.as_ref().map_or(0, Transaction::memory)
    }
}

/// Whether so much output has waited for so long; `since` is when it exceeded the soft limit, 0 if it does not.
fn is_exceeded(limit: &OutputLimit, waiting: u64, since: &mut i64, now_ms: i64) -> bool {
    if limit.hard_bytes > 0 && waiting > limit.hard_bytes {
        return true;
    }
    if limit.soft_bytes == 0 || waiting <= limit.soft_bytes {
        *since = 0;
        return false;
    }
    if *since == 0 {
        *since = now_ms.max(1);
    }
    let seconds = i64::try_from(limit.soft_seconds).unwrap_or(i64::MAX);
    (now_ms - *since) / 1000 > seconds
}

/// After an attempt to send: whether the client may stay.
#[inline]
pub(crate) fn check_output(node: &Node, client: &Client) -> bool {
    let waiting = client.output_waiting() as u64;
    if waiting == 0 && client.shared.output.load(Relaxed) == 0 {
        return true;
    }
    client.publish_output();
    client.shared.is_authenticated.store(client.authenticated, Relaxed);
    measure(node, client);
    may_stay(node, client.live(), &client.shared)
}

fn may_stay(node: &Node, live: &Live, shared: &ClientShared) -> bool {
    let (is_monitor, is_authenticated) = (shared.is_monitor.load(Relaxed), shared.is_authenticated.load(Relaxed));
    let limit = output_limit(&live.config, is_monitor, shared.subscriptions.any(), is_authenticated);
    let waiting = shared.output.load(Relaxed) + shared.inbox.pushed() as u64;
    let mut since = shared.over_soft_since_ms.load(Relaxed);
    let exceeded = is_exceeded(&limit, waiting, &mut since, time::wall_ms());
    shared.over_soft_since_ms.store(since, Relaxed);
    if exceeded {
        reached(Point::OutputLimit);
        node.stats.client_output_buffer_limit_disconnections.add(1);
        tracing::warn!("Client {} scheduled to be closed ASAP for overcoming of output buffer limits.", line(shared));
    }
    !exceeded
}

/// Memory of a client's buffers.
fn buffers_of(client: &Client) -> u64 {
    (client.incoming.memory() + client.reply.capacity() + client.transaction_memory()) as u64
}

/// Memory of a client: itself, its buffers and what belongs to it.
fn memory_of(client: &Client, buffers: u64) -> u64 {
    let fixed = size_of::<Client>() + size_of::<ClientShared>() + client.shared.memory_beside();
    (fixed + client.shared.inbox.pushed()) as u64 + buffers
}

/// The client's memory joins the sum of all.
fn measure(node: &Node, client: &Client) {
    let shared = &client.shared;
    if shared.close_asap.load(Relaxed) {
        return;
    }
    let max = clients_max(&client.live().config);
    // Data commands change nothing but the buffers, and those seldom.
    let buffers = buffers_of(client);
    if max == 0 && buffers.abs_diff(shared.measured_buffers.load(Relaxed)) < COUNTED_STEP / 2 {
        return;
    }
    shared.measured_buffers.store(buffers, Relaxed);
    let memory = memory_of(client, buffers);
    let step = if max > 0 { 1 } else { COUNTED_STEP };
    if memory.abs_diff(shared.counted_memory.load(Relaxed)) < step {
        return;
    }
    let before = shared.counted_memory.swap(memory, Relaxed);
    let sum = node.memory.clients.fetch_add(memory as i64 - before as i64, Relaxed) + memory as i64 - before as i64;
    if max > 0 && sum > max {
        evict_clients(node, max);
    }
}

/// The client has gone: so has its memory.
pub(crate) fn forget(node: &Node, shared: &ClientShared) {
    let memory = shared.counted_memory.swap(0, Relaxed);
    node.memory.clients.fetch_sub(memory as i64, Relaxed);
}

/// The limit of all clients together, in bytes; 0 where there is none.
fn clients_max(config: &Config) -> i64 {
    let bytes = match config.max_memory_clients {
        Share::Bytes(bytes) => bytes,
        Share::Percent(0) => 0,
        Share::Percent(percent) => (u128::from(config.max_memory_bytes) * u128::from(percent) / 100) as u64,
    };
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Whether the memory of all clients together has a limit, and so every byte of a client's counts.
pub(crate) fn counts_all(client: &Client) -> bool {
    clients_max(&client.live().config) > 0
}

/// Closes the largest clients until all together are within the limit.
#[cold]
fn evict_clients(node: &Node, max: i64) {
    let mut candidates = node.clients.all();
    candidates.retain(|shared| !shared.no_evict.load(Relaxed) && !shared.close_asap.load(Relaxed));
    // By powers of two, so that two of about the same size go in the order of their coming.
    candidates.sort_by_key(|shared| std::cmp::Reverse(shared.counted_memory.load(Relaxed).max(1).ilog2()));
    for shared in candidates {
        if node.memory.clients.load(Relaxed) <= max {
            return;
        }
        tracing::info!("Evicting client: {}", line(&shared));
        node.stats.evicted_clients.add(1);
        shared.kill();
        forget(node, &shared);
    }
}

/// A client has nothing left to execute: its numbers for CLIENT LIST, and whether its query buffer is within the limit.
pub(crate) fn check_buffers(node: &Node, client: &mut Client) -> bool {
    let (pending, queued) = (client.incoming.pending_bytes(), client.transaction_memory());
    let shared = &client.shared;
    measure(node, client);
    let max = client.live().config.client_query_buffer_bytes_max;
    if (pending + queued) as u64 <= max {
        return true;
    }
    node.stats.client_query_buffer_limit_disconnections.add(1);
    let buffer = &client.incoming.buffer;
    let shown = buffer[buffer.len() - pending..][..pending.min(SHOWN)].escape_ascii().to_string();
    let line = line(shared);
    tracing::warn!("Closing client that reached max query buffer length: {line} (qbuf initial bytes: \"{shown}\")");
    false
}

/// The timer's part: soft limits run out without anything happening, and limits may have been lowered.
pub(crate) fn check_all(node: &Arc<Node>) {
    let live = node.configuration.current();
    let max = clients_max(&live.config);
    if max > 0 && node.memory.clients.load(Relaxed) > max {
        evict_clients(node, max);
    }
    for shared in node.clients.all() {
        let is_waiting = shared.output.load(Relaxed) > 0 || shared.inbox.pushed() > 0;
        if is_waiting && !shared.close_asap.load(Relaxed) && !may_stay(node, &live, &shared) {
            shared.kill();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simurgh_protocol::config::Settings;

    const LIMIT: OutputLimit = OutputLimit { hard_bytes: 1000, soft_bytes: 100, soft_seconds: 2 };

    #[test]
    fn the_hard_limit_cuts_at_once_and_the_soft_one_after_its_seconds() {
        let mut since = 0;
        assert!(!is_exceeded(&LIMIT, 1000, &mut since, 5_000));
        assert_eq!(since, 5_000);
        assert!(is_exceeded(&LIMIT, 1001, &mut since, 5_000));
        assert!(!is_exceeded(&LIMIT, 101, &mut since, 7_999));
        assert!(is_exceeded(&LIMIT, 101, &mut since, 8_000));
        assert!(!is_exceeded(&LIMIT, 100, &mut since, 8_000));
        assert_eq!(since, 0, "below the soft limit its time begins anew");
    }

    #[test]
    fn c2_without_a_password_nobody_has_more_than_a_kibibyte() {
        let config = Settings::default().config();
        let limit = output_limit(&config, false, false, false);
        assert!(!is_exceeded(&limit, 1024, &mut 0, 1));
        assert!(is_exceeded(&limit, 1025, &mut 0, 1));
        assert!(!is_exceeded(&output_limit(&config, false, false, true), u64::MAX, &mut 0, 1));
    }

    #[test]
    fn monitors_and_subscribers_have_a_limit_even_where_clients_have_none() {
        let config = Settings::default().config();
        for (is_monitor, is_subscriber) in [(true, false), (false, true)] {
            let limit = output_limit(&config, is_monitor, is_subscriber, true);
            assert!(is_exceeded(&limit, (32 << 20) + 1, &mut 0, 1));
        }
    }
}
