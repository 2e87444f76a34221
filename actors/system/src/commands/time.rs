//! TIME: the wall clock of the machine, as the client asks for it. In a transaction or a script it stands still.

use crate::client::Client;
use simurgh_kernel::time;
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::Shards;

/// TIME: seconds of Unix time and the microseconds of the second.
pub fn time(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let now_us = if client.executing.is_some() { client.now_us } else { time::wall_us() };
    client.reply.array(2);
    client.reply.bulk_integer(now_us.div_euclid(1_000_000));
    client.reply.bulk_integer(now_us.rem_euclid(1_000_000));
    Ok(())
}
