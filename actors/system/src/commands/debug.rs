//! PLACEHOLDER.
use crate::client::Client;
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::Shards;
/// x
pub fn debug(_client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    Err(CommandError::Text("ERR PLACEHOLDER"))
}
