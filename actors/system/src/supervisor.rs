//! The supervisor actor: starts the long-lived actors of a node and decides what a failure of one means.
//!
//! | child | when it fails |
//! | --- | --- |
//! | listener | it is started again on the same socket; one whose socket was stopped ends |
//! | cron | it is started again |
//! | log writer, snapshotter | the node stops: recovery goes by what is on the disk |
//!
//! Connections and shards are not its children: they have the kernel's lean mailboxes, and their rules stand in `connection.rs`
//! (a panic closes that connection) and `shard.rs` (a panic stops the node).

use crate::cron::Cron;
use crate::listener::ListenerActor;
use crate::node::Node;
use simurgh_kernel::actor::{Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use simurgh_kernel::core::{self, Core};
use simurgh_kernel::net::Listener;
use std::sync::Arc;

/// What a supervisor starts with.
pub(crate) struct Children {
    pub node: Arc<Node>,
    pub listeners: Vec<Arc<Listener>>,
    pub cores: Arc<Vec<Core>>,
}

/// A child that is started again when it fails.
#[derive(Clone)]
enum Child {
    Listener(Arc<Listener>),
    Cron,
}

/// The supervisor.
pub(crate) struct Supervisor;

/// Messages of the supervisor.
pub(crate) enum SupervisorMessage {
    /// Connections are to be accepted from this socket too.
    Listen(Arc<Listener>),
}

pub(crate) struct State {
    node: Arc<Node>,
    cores: Arc<Vec<Core>>,
    children: Vec<(ActorId, Child)>,
}

impl State {
    async fn start(&mut self, child: Child, supervisor: ActorCell) -> Result<(), ActorProcessingErr> {
        let node = self.node.clone();
        let (actor, _) = match &child {
            Child::Listener(listener) => {
                let arguments = (node, listener.clone(), self.cores.clone());
                let (actor, task) = Actor::spawn_linked(None, ListenerActor, arguments, supervisor).await?;
                (actor.get_cell(), task)
            }
            Child::Cron => {
                let (actor, task) = Actor::spawn_linked(None, Cron, node, supervisor).await?;
                (actor.get_cell(), task)
            }
        };
        self.children.push((actor.get_id(), child));
        Ok(())
    }
}

impl Actor for Supervisor {
    type Msg = SupervisorMessage;
    type State = State;
    type Arguments = Children;

    async fn pre_start(
        &self,
        myself: ActorRef<SupervisorMessage>,
        children: Children,
    ) -> Result<State, ActorProcessingErr> {
        let mut state = State { node: children.node, cores: children.cores, children: Vec::new() };
        for listener in children.listeners {
            state.start(Child::Listener(listener), myself.get_cell()).await?;
        }
        state.start(Child::Cron, myself.get_cell()).await?;
        Ok(state)
    }

    async fn handle(
        &self,
        myself: ActorRef<SupervisorMessage>,
        SupervisorMessage::Listen(listener): SupervisorMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        state.start(Child::Listener(listener), myself.get_cell()).await
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<SupervisorMessage>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        if let SupervisionEvent::ActorTerminated(actor, ..) = &event {
            state.children.retain(|(id, _)| *id != actor.get_id());
        }
        let SupervisionEvent::ActorFailed(actor, error) = event else { return Ok(()) };
        let failed = state.children.iter().position(|(id, _)| *id == actor.get_id());
        let Some(index) = failed else {
            tracing::error!(%error, "an actor that keeps the data failed; the server stops");
            core::abort_node();
        };
        let (_, child) = state.children.swap_remove(index);
        tracing::error!(%error, "an actor failed and is started again");
        state.start(child, myself.get_cell()).await
    }
}
