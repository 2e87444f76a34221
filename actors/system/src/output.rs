//! A client's replies on their way out: which of them may be sent, and what the others wait for.
//!
//! A reply waits for the position of the log that it depends on; those behind it wait with it, so that none overtakes another.

use crate::client::Client;
use crate::log::Promise;

/// Replies that wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hold {
    /// Where they begin.
    start: usize,
    /// The position of the log that they wait for.
    position: u64,
    /// What must have become of the log up to there.
    promise: Promise,
}

impl Client {
    /// The replies from byte `start` on wait until a promise is kept up to `position` of the log.
    pub(crate) fn hold_from(&mut self, start: usize, position: u64, promise: Promise) {
        if position > self.node.log.kept(promise) {
            self.holds.push_back(Hold { start, position, promise });
            if promise == Promise::Synced {
                self.node.log.want_synced(self.shared.core, position);
            }
        }
    }

    /// The replies from byte `start` on are promised what was found before they were made; `change` is the position behind what they changed.
    pub(crate) fn promise_from(&mut self, start: usize, needed: u64, promise: Option<Promise>, change: Option<u64>) {
        if let Some(promise) = promise.filter(|_| self.reply.len() > start) {
            self.hold_from(start, needed, promise);
        }
        if let Some(position) = change {
            self.durability.changed(position, self.transaction.is_some());
        }
    }

    /// What its replies wait for, by the mode in force and by its own choice.
    pub(crate) fn promise(&self) -> Option<Promise> {
        Promise::of(self.node.log.mode(), self.durability.in_force())
    }

    /// What has just been replied tells of something up to this position of the log.
    pub(crate) fn wait_for_position(&mut self, position: u64) {
        self.waits_for = position;
    }

    /// How many bytes of the replies may be sent, and the position that the rest waits for.
    pub(crate) fn sendable(&mut self) -> (usize, Option<(u64, Promise)>) {
        let log = &self.node.log;
        while self.holds.front().is_some_and(|hold| hold.position <= log.kept(hold.promise)) {
            self.holds.pop_front();
        }
        match self.holds.front() {
            Some(hold) => (hold.start - self.sent, Some((hold.position, hold.promise))),
            None => (self.reply.len() - self.sent, None),
        }
    }

    /// The first `count` bytes that have not been sent.
    pub(crate) fn unsent(&self, count: usize) -> &[u8] {
        &self.reply.bytes()[self.sent..self.sent + count]
    }

    /// `count` more bytes of the replies have been sent. What was sent is given up once it is the larger half, so that a large
    /// reply to a slow reader is not moved for every piece of it.
    pub(crate) fn sent(&mut self, count: usize) {
        self.sent += count;
        let buffer = self.reply.buffer();
        if self.sent == buffer.len() {
            buffer.clear();
        } else if self.sent > buffer.len() / 2 {
            buffer.drain(..self.sent);
        } else {
            return;
        }
        for hold in &mut self.holds {
            hold.start = hold.start.saturating_sub(self.sent);
        }
        self.sent = 0;
    }
}
