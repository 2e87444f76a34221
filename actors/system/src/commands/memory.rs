//! PLACEHOLDER.
use crate::client::Client;
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::Shards;
/// x
pub fn doctor(_client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    Err(CommandError::Text("ERR PLACEHOLDER"))
}
/// x
pub fn help(_client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    Err(CommandError::Text("ERR PLACEHOLDER"))
}
/// x
pub fn malloc_stats(_client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    Err(CommandError::Text("ERR PLACEHOLDER"))
}
/// x
pub fn purge(_client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    Err(CommandError::Text("ERR PLACEHOLDER"))
}
/// x
pub fn stats(_client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    Err(CommandError::Text("ERR PLACEHOLDER"))
}
/// x
pub fn usage(_client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    Err(CommandError::Text("ERR PLACEHOLDER"))
}
