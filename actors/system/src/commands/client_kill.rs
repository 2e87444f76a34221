//! CLIENT KILL: closes the connections that all filters apply to.
//!
//! Others are told through their inbox; what they were about to be sent is dropped, and for everybody else they have gone at once.
//! A client that names itself is answered first.

use crate::client::{Client, Close};
use crate::clients::ClientShared;
use crate::commands::client_filter::Filter;
use crate::node::Node;
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::Shards;
use std::sync::Arc;

/// CLIENT KILL address, or CLIENT KILL option value \[option value ...\].
pub fn kill(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let filter = if args.len() == 3 {
        Filter::at_address(args.at(2))
    } else {
        Filter::of_kill(args, client.node.layout.databases)?
    };
    client.publish();
    let (mut killed, mut kills_itself) = (0, false);
    for other in client.node.clients.all() {
        if !filter.applies_to(&other, client.shared.id, client.now_ms) {
            continue;
        }
        killed += 1;
        if other.id == client.shared.id {
            kills_itself = true;
        } else {
            client.node.kill_client(&other);
        }
    }
    if args.len() > 3 {
        client.reply.count(killed);
    } else if killed == 0 {
        return Err(CommandError::Text("ERR No such client"));
    } else {
        client.reply.ok();
    }
    if kills_itself {
        client.close = Some(Close::AfterReply);
        // Within EXEC, what follows is not answered any more.
        client.reply_mode.off(&client.reply);
    }
    Ok(())
}

impl Node {
    /// Closes a client's connection. It is not listed, counted or sent anything from here on, though its end is still to come.
    pub(crate) fn kill_client(&self, shared: &Arc<ClientShared>) {
        shared.kill();
        self.clients.remove(shared.id);
        self.pubsub.unsubscribe_all(&self.layout.hasher, shared);
    }
}
