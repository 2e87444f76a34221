//! Pushes: what a client is sent that is no reply, and how it gets between its replies.
//!
//! Whoever has something to say encodes it once and leaves it in the client's inbox; the client takes it between two of its
//! commands, never inside of one. What a command causes for its own client follows right behind its reply, as in Redis,
//! so such a client looks into its inbox when the command (or the transaction) has ended. One queue for all keeps the order
//! of messages the same for everybody who hears them.
//!
//! A push is encoded for RESP3. In RESP2 a message of Pub/Sub is an array, which differs in its first byte only.

use crate::client::Client;
use crate::clients::ClientShared;
use crate::commands::client_list::line;
use crate::node::Node;
use simurgh_kernel::rehearsal::{Mistake, has};
use simurgh_protocol::config::{Config, OutputLimit};
use simurgh_protocol::resp::Protocol;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What is sent to a client that has not asked for it just now.
#[derive(Clone, Debug)]
pub enum Push {
    /// A line of MONITOR, the same in both protocols.
    Line(Arc<[u8]>),
    /// A message of Pub/Sub.
    Message(Arc<[u8]>),
    /// A key that was read has changed. RESP2 has it as a message for subscribers, where it was redirected.
    Invalidation {
        /// As a push.
        resp3: Arc<[u8]>,
        /// As a message.
        resp2: Option<Arc<[u8]>>,
    },
}

impl Push {
    /// Its length in bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "no push is empty")]
    pub fn len(&self) -> usize {
        match self {
            Self::Line(bytes) | Self::Message(bytes) | Self::Invalidation { resp3: bytes, .. } => bytes.len(),
        }
    }

    /// Appends it as the client's protocol has it.
    fn write(&self, out: &mut Vec<u8>, protocol: Protocol) {
        match (self, protocol) {
            (Self::Line(bytes), _)
            | (Self::Message(bytes) | Self::Invalidation { resp3: bytes, .. }, Protocol::Resp3)
            | (Self::Invalidation { resp2: Some(bytes), .. }, Protocol::Resp2) => out.extend_from_slice(bytes),
            (Self::Invalidation { resp2: None, .. }, Protocol::Resp2) => {}
            (Self::Message(bytes), Protocol::Resp2) => {
                out.push(b'*');
                out.extend_from_slice(bytes.get(1..).unwrap_or_default());
            }
        }
    }
}

/// A client's pushes on their way from the inbox to the replies.
#[derive(Debug, Default)]
pub(crate) struct Pushes {
    /// What is no reply and goes behind that of the request under way.
    aside: Vec<u8>,
    /// The request under way has left something in the client's own inbox.
    are_expected: bool,
    /// Taken from the inbox; empty but for a moment, kept for its memory.
    taken: Vec<Push>,
}

/// The output limit of somebody who is sent pushes.
fn limit_of(config: &Config, receiver: &ClientShared) -> OutputLimit {
    let is_monitor = receiver.is_monitor.load(Relaxed);
    crate::memory::output_limit(config, is_monitor, receiver.subscriptions.any(), true)
}

impl Node {
    /// Leaves a push to a client. One that does not read what it is sent is cut, and nobody waits for it.
    pub(crate) fn push(&self, config: &Config, receiver: &ClientShared, push: Push) {
        if receiver.close_asap.load(Relaxed) {
            return;
        }
        if has(Mistake::LostPush) && receiver.commands.load(Relaxed) % 8 == 7 {
            return;
        }
        let waiting = receiver.inbox.push(push) as u64 + receiver.output.load(Relaxed);
        let hard_bytes = limit_of(config, receiver).hard_bytes;
        if hard_bytes > 0 && waiting > hard_bytes {
            self.stats.client_output_buffer_limit_disconnections.add(1);
            tracing::warn!(
                "Client {} scheduled to be closed ASAP for overcoming of output buffer limits.",
                line(receiver)
            );
            receiver.kill();
        }
    }
}

impl Client {
    /// Where what is no reply goes: behind the replies, or aside while CLIENT REPLY drops those.
    pub(crate) fn out_of_band(&mut self, with: impl FnOnce(&mut simurgh_protocol::Reply)) {
        if !self.reply_mode.is_silent() {
            return with(&mut self.reply);
        }
        let mut aside = simurgh_protocol::Reply::new(self.reply.protocol());
        std::mem::swap(aside.buffer(), &mut self.pushes.aside);
        with(&mut aside);
        std::mem::swap(aside.buffer(), &mut self.pushes.aside);
    }

    /// Takes the pushes from the inbox and puts them behind the replies so far. Not within a command.
    pub(crate) fn take_pushes(&mut self) {
        let mut out = std::mem::take(self.reply.buffer());
        self.write_pushes(&mut out);
        *self.reply.buffer() = out;
    }

    /// The same within a command, before it goes on: what was sent before it comes before what it answers. Within EXEC
    /// there is no place for them but its end.
    pub(crate) fn take_pushes_first(&mut self) {
        if self.executing.is_some() {
            return self.expect_pushes();
        }
        let mut out = Vec::new();
        self.write_pushes(&mut out);
        self.out_of_band(|reply| reply.buffer().append(&mut out));
    }

    /// The same, before the reply that begins at `mark`.
    pub(crate) fn take_pushes_at(&mut self, mark: usize) {
        let mut out = Vec::new();
        self.write_pushes(&mut out);
        let reply = self.reply.buffer();
        let mark = mark.min(reply.len());
        reply.splice(mark..mark, out);
    }

    fn write_pushes(&mut self, out: &mut Vec<u8>) {
        self.shared.inbox.take_pushes(&mut self.pushes.taken);
        let (is_leaving, is_shown_lines) = (self.close.is_some(), self.is_monitor && !self.reply_mode.is_silent());
        let (protocol, is_subscriber) = (self.reply.protocol(), self.is_subscriber);
        for push in self.pushes.taken.drain(..) {
            let is_wanted = match &push {
                Push::Line(_) => is_shown_lines,
                Push::Message(_) => true,
                Push::Invalidation { .. } => protocol == Protocol::Resp3 || is_subscriber,
            };
            if is_wanted && !is_leaving {
                push.write(out, protocol);
            }
        }
    }

    /// A command of its own has left something in its inbox: it belongs right behind that command's reply.
    pub(crate) fn expect_pushes(&mut self) {
        self.pushes.are_expected = true;
    }

    /// The request has ended: what it caused besides its reply follows.
    #[inline]
    pub(crate) fn follow_up(&mut self) {
        if !self.pushes.aside.is_empty() {
            self.reply.buffer().append(&mut self.pushes.aside);
        }
        if self.pushes.are_expected {
            self.pushes.are_expected = false;
            self.take_pushes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_an_array_in_resp2() {
        let push = Push::Message(b">1\r\n$1\r\na\r\n"[..].into());
        for (protocol, expected) in [(Protocol::Resp2, "*1\r\n$1\r\na\r\n"), (Protocol::Resp3, ">1\r\n$1\r\na\r\n")] {
            let mut out = Vec::new();
            push.write(&mut out, protocol);
            assert_eq!(out, expected.as_bytes());
        }
        let mut out = Vec::new();
        Push::Line(b"+x\r\n"[..].into()).write(&mut out, Protocol::Resp2);
        assert_eq!(out, b"+x\r\n");
    }
}
