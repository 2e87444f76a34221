//! ROLE: a node without replication is a primary that nobody follows.

use crate::client::Client;
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::Shards;

/// ROLE.
pub fn role(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    client.reply.array(3);
    client.reply.bulk(b"master");
    client.reply.integer(0);
    client.reply.array(0);
    Ok(())
}
