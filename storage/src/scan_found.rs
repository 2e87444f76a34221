//! What a call of HSCAN, SSCAN or ZSCAN has come upon, and how far it goes on.

use crate::listpack::Item;
use crate::scan_options::ScanOptions;
use simurgh_protocol::Reply;
use simurgh_protocol::resp::Protocol;

/// Steps through a table that a call takes at most for each element it is asked for: many may find none.
const STEPS_PER_ELEMENT: u64 = 10;

/// What has been found so far. The next cursor stands before it in the answer and is known after it.
pub(crate) struct Found {
    reply: Reply,
    items: usize,
    seen: u64,
}

impl Found {
    /// Nothing yet.
    pub fn new(protocol: Protocol) -> Self {
        Self { reply: Reply::new(protocol), items: 0, seen: 0 }
    }

    /// An element of this name has come up. If it is asked for, `write` answers it, and says in how many items.
    pub fn meet(&mut self, name: &Item<'_>, options: &ScanOptions, write: impl FnOnce(&mut Reply) -> usize) {
        self.seen += 1;
        if name.with_text(|text| options.wants(text)) {
            self.items += write(&mut self.reply);
        }
    }

    /// Walks on from `cursor` by `step`, which gives the next one, until enough elements were seen; the cursor there, 0 at the end.
    pub fn walk(&mut self, mut cursor: u64, options: &ScanOptions, mut step: impl FnMut(&mut Self, u64) -> u64) -> u64 {
        let steps_max = options.count.saturating_mul(STEPS_PER_ELEMENT);
        for _ in 0..steps_max {
            cursor = step(self, cursor);
            if cursor == 0 || self.seen >= options.count {
                break;
            }
        }
        cursor
    }

    /// Answers with the next cursor and what was found.
    pub fn answer(&self, cursor: u64, reply: &mut Reply) {
        reply.array(2);
        reply.bulk(itoa::Buffer::new().format(cursor).as_bytes());
        reply.array(self.items);
        reply.buffer().extend_from_slice(self.reply.bytes());
    }
}
