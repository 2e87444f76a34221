//! The listener actor: accepts connections on one address and deals them out to the cores in turn.
//!
//! An error of `accept` never stops the others (CVE-2025-48367): a connection that was gone before it was accepted is skipped,
//! and when the process is out of descriptors the listener waits a little and goes on.

use crate::connection::serve;
use crate::node::Node;
use simurgh_kernel::actor::{Actor, ActorProcessingErr, ActorRef};
use simurgh_kernel::core::Core;
use simurgh_kernel::net::{Incoming, Listener, PeerAddress, Stream, WriteExt};
use simurgh_kernel::time;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// How long to wait when no descriptor or memory is left.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// The listener; each message is one turn: accept a connection, deal it out.
pub(crate) struct ListenerActor;

pub(crate) struct State {
    node: Arc<Node>,
    listener: Arc<Listener>,
    cores: Arc<Vec<Core>>,
    next: usize,
}

/// Messages of the listener.
pub(crate) enum ListenerMessage {
    /// Accept the next connection.
    Accept,
}

impl Actor for ListenerActor {
    type Msg = ListenerMessage;
    type State = State;
    type Arguments = (Arc<Node>, Arc<Listener>, Arc<Vec<Core>>);

    async fn pre_start(
        &self,
        myself: ActorRef<ListenerMessage>,
        (node, listener, cores): Self::Arguments,
    ) -> Result<State, ActorProcessingErr> {
        myself.cast(ListenerMessage::Accept)?;
        Ok(State { node, listener, cores, next: 0 })
    }

    async fn handle(
        &self,
        myself: ActorRef<ListenerMessage>,
        ListenerMessage::Accept: ListenerMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        if state.accept().await.is_break() {
            myself.stop(None);
            return Ok(());
        }
        Ok(myself.cast(ListenerMessage::Accept)?)
    }
}

impl State {
    /// Deals the next connection out; breaks off where the socket has been stopped.
    async fn accept(&mut self) -> ControlFlow<()> {
        match self.listener.accept().await {
            Ok((incoming, address)) => {
                let index = self.next % self.cores.len();
                self.next = self.next.wrapping_add(1);
                let node = self.node.clone();
                self.cores[index].spawn(async move { welcome(node, incoming, address, index).await });
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return ControlFlow::Break(()),
            Err(error) if is_exhausted(&error) => {
                tracing::warn!(%error, "cannot accept connections for now");
                time::sleep(EXHAUSTED_PAUSE).await;
            }
            Err(error) => tracing::debug!(%error, "a connection was gone before it was accepted"),
        }
        ControlFlow::Continue(())
    }
}

/// EMFILE, ENFILE, ENOBUFS, ENOMEM: nothing about this connection.
fn is_exhausted(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(24 | 23 | 105 | 12))
}

/// Takes a connection up on its core, or turns it away with the reason.
async fn welcome(node: Arc<Node>, incoming: Incoming, address: PeerAddress, core: usize) {
    let Ok(mut stream) = incoming.open() else { return };
    let live = node.configuration.current();
    let _ = stream.set_nodelay(true);
    let _ = stream.set_keepalive(live.config.tcp_keepalive_seconds);
    let is_open = live.config.protected_mode && live.config.require_pass.is_none() && !address.remote.is_local();
    if is_open {
        return turn_away(&node, &mut stream, PROTECTED).await;
    }
    let limit = live.config.max_clients as usize;
    match node.clients.add(address, core, time::wall_ms(), limit) {
        // Looked at after the client can be seen: one that the shutdown did not see to kill sees the shutdown.
        Some(shared) if node.shutdown.is_asked() => node.clients.remove(shared.id),
        Some(shared) => {
            node.stats.total_connections_received.add(1);
            serve(node, shared, stream).await;
        }
        None => turn_away(&node, &mut stream, b"-ERR max number of clients reached\r\n").await,
    }
}

const PROTECTED: &[u8] = b"-DENIED This server is in protected mode: it has no password, so it answers clients of this \
machine alone. Set a password (requirepass), bind it to addresses that are safe and switch protected-mode off, or connect \
over the loopback interface.\r\n";

async fn turn_away(node: &Node, stream: &mut Stream, reason: &[u8]) {
    node.stats.rejected_connections.add(1);
    let _ = stream.write_all(reason).await;
    let _ = stream.flush().await;
}
