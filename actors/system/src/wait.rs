//! What a command leaves to its connection, since it takes waiting.

use crate::commands::durability::Acknowledged;
use crate::persistence::Reload;
use std::time::Duration;

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
