//! How a client comes back to its connection, and what a command leaves to that, since it takes waiting.

use crate::client::Client;
use crate::commands::durability::Acknowledged;
use crate::persistence::Reload;
use std::time::Duration;

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// Once everything written so far has been sent.
    AfterReply,
    /// At once.
    Now,
}

/// Where a client is after [`crate::client::run`].
pub(crate) enum Ran {
    /// Here, with nothing left to execute (or something to wait for first).
    Here(Box<Client>),
    /// In the queue of a busy shard: it will come back through its inbox.
    Away,
    /// Here, since the queue was full or it was others' turn: try again soon.
    Busy(Box<Client>),
}

/// Something that a command asks of the connection's asynchronous part before the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// DEBUG SLEEP: the whole core stands still, as Redis would.
    Sleep(Duration),
    /// DEBUG RELOAD, DEBUG LOADAOF: the keyspace is loaded from the disk.
    Reload(Reload),
    /// SAVE: the snapshot's end.
    Snapshot,
    /// WAIT, WAITAOF: the log, or replicas, get as far as is wanted.
    Acknowledged(Acknowledged),
    /// SHUTDOWN: the node stops.
    Shutdown {
        /// After a snapshot.
        saves: bool,
        /// Even if that fails.
        forced: bool,
    },
    /// DEBUG PANIC-CONNECTION: a mistake in a connection, on demand.
    Panic,
}
