//! The buffers of connections that have something to do: lent by their core for as long as there are requests to execute or replies to
//! send, so that ten thousand idle connections take none.

use crate::client::Client;
use crate::request::LentIncoming;
use simurgh_kernel::rehearsal::{Mistake, has};
use std::cell::RefCell;

/// Room that a read should find, in bytes.
const READ_ROOM: usize = 16 * 1024;
const READ_ROOM_UNAUTHENTICATED: usize = 1024;
/// Buffers of requests and replies up to this size are kept for the core's next connection.
const POOLED_BYTES_MAX: usize = 256 * 1024;
/// How many of each a core keeps.
const POOLED: usize = 16;

/// What a connection needs while it has requests to execute or replies to send, and at no other time.
struct Buffers {
    incoming: LentIncoming,
    replies: Vec<u8>,
}

thread_local! {
    /// The buffers of connections that are at rest: ten thousand idle ones take none.
    static POOL: RefCell<Vec<Buffers>> = const { RefCell::new(Vec::new()) };
}

/// How much a read may bring at least. Who has not authenticated gets little, as one of many who may not be welcome.
pub(crate) fn read_room(client: &Client) -> usize {
    if client.authenticated { READ_ROOM } else { READ_ROOM_UNAUTHENTICATED }
}

/// Gives an idle client buffers to read into.
pub(crate) fn lend_buffers(client: &mut Client) {
    let pooled = if client.authenticated { POOL.with_borrow_mut(Vec::pop) } else { None };
    match pooled {
        Some(buffers) => {
            client.incoming = buffers.incoming;
            if client.reply.capacity() == 0 {
                *client.reply.buffer() = buffers.replies;
            }
        }
        None => client.incoming.buffer = Vec::with_capacity(read_room(client)),
    }
}

/// Takes the buffers back from a client that has nothing to execute, and the replies' too if they have been sent.
pub(crate) fn take_buffers_back(client: &mut Client) {
    if !client.incoming.is_lent() || !client.incoming.is_at_rest() {
        return;
    }
    let are_free = client.reply.is_empty() || has(Mistake::MixedReplies);
    let replies = if are_free { std::mem::take(client.reply.buffer()) } else { Vec::new() };
    let buffers = Buffers { incoming: std::mem::take(&mut client.incoming), replies };
    let bytes = buffers.incoming.memory() + buffers.replies.capacity();
    if buffers.incoming.buffer.capacity() >= READ_ROOM && bytes <= POOLED_BYTES_MAX {
        POOL.with_borrow_mut(|pool| {
            if pool.len() < POOLED {
                pool.push(buffers);
            }
        });
    }
}
