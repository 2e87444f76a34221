//! Scripts in turns with the rest of their core.
//!
//! A hold whose next request is a script, or a transaction with one, runs in a fiber. Most end within their first slice: then
//! nothing else has happened. Otherwise the whole client stays in the fiber with the shards that it holds, a task of this core goes on with
//! it slice by slice, and the client returns to its connection by its inbox, as from a busy shard. So a script runs on the
//! core where it began, whichever connection it came by, and no connection but its own waits for it longer than a slice, unless it needs
//! the script's shards.

use super::running::LongScript;
use crate::client::Client;
use crate::clients::ClientShared;
use crate::node::Node;
use simurgh_kernel::core::{self, AbortOnUnwind};
use simurgh_kernel::fiber::{self, Fiber, Turn};
use simurgh_kernel::mailbox::{Detached, Held};
use simurgh_kernel::rehearsal::{Mistake, has};
use simurgh_storage::Shard;
use std::sync::Arc;
use std::time::Duration;

/// About how long a slice takes.
const SLICE: Duration = Duration::from_millis(1);

type Ended = (Box<Client>, Detached);

/// Runs a client with the shards that it needs. Nothing: it is away, and holds them.
pub(crate) fn run_in_turns(client: Box<Client>, held: &mut Held<'_, Shard, Client>) -> Option<Box<Client>> {
    let (node, shared) = (client.node.clone(), client.shared.clone());
    let detached = held.detach();
    let turn = fiber::start(move || {
        let mut client = client;
        let node = client.node.clone();
        let mut held = node.shards.attach(detached);
        let _guard = AbortOnUnwind::new();
        client.in_turns = true;
        client.run_held(&mut held);
        client.in_turns = false;
        let detached = held.detach();
        drop(held);
        (client, detached)
    });
    match turn {
        Turn::Ended((client, detached)) => {
            held.absorb(detached);
            Some(client)
        }
        Turn::Suspended(fiber) => {
            core::spawn(go_on(node, shared, fiber));
            None
        }
    }
}

/// Goes on with a script, and gives its client back in the end.
async fn go_on(node: Arc<Node>, shared: Arc<ClientShared>, mut fiber: Fiber<Ended>) {
    loop {
        core::rest_after(SLICE).await;
        if let Some(script) = node.scripting.running.of(shared.id) {
            if node.scripting.running.look(&script) {
                turn_away(&node, &script);
            }
            if node.shutdown.is_asked() && script.has_written() && !has(Mistake::HalfAtShutdown) {
                // Half of what it does must not be seen or logged: it stays as it is until the node has ended.
                turn_away(&node, &script);
                return node.forget_client(&shared);
            }
        }
        match fiber.resume() {
            Turn::Suspended(next) => fiber = next,
            Turn::Ended((client, detached)) => {
                drop(node.shards.attach(detached));
                return shared.inbox.give_back(client);
            }
        }
    }
}

/// Those that have queued for a slow script's shards are told what those are told who come now.
fn turn_away(node: &Node, script: &LongScript) {
    let held = script.held();
    let refused = node.shards.turn_away(held, script.borrowed(), |client| client.can_be_turned_away());
    for mut client in refused {
        if let Some(next) = client.incoming.peek().copied() {
            client.refuse_as_busy(&next, held);
        }
        let shared = client.shared.clone();
        shared.inbox.give_back(client);
    }
}
