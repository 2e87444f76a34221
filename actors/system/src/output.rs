//! A client's replies on their way out: which of them may be sent, and what the others wait for.
//!
//! A reply waits for the position of the log that it depends on; those behind it wait with it, so that none overtakes another.

use crate::client::Client;

impl Client {
    /// The replies from byte `start` on wait until the log is safe up to `position`.
    pub(crate) fn hold_from(&mut self, start: usize, position: u64) {
        if position > self.node.log.safe() {
            self.holds.push_back((start, position));
        }
    }

    /// What has just been replied tells of something up to this position of the log.
    pub(crate) fn wait_for_position(&mut self, position: u64) {
        self.waits_for = position;
    }

    /// How many bytes of the replies may be sent, and the position that the rest waits for.
    pub(crate) fn sendable(&mut self) -> (usize, Option<u64>) {
        let safe = self.node.log.safe();
        while self.holds.front().is_some_and(|(_, position)| *position <= safe) {
            self.holds.pop_front();
        }
        match self.holds.front() {
            Some((start, position)) => (*start - self.sent, Some(*position)),
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
            hold.0 = hold.0.saturating_sub(self.sent);
        }
        self.sent = 0;
    }
}
