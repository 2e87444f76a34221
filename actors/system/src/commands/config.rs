//! PLACEHOLDER.
use crate::client::Client;
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::Shards;
/// x
pub fn get(_client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    Err(CommandError::Text("ERR PLACEHOLDER"))
}
/// x
pub fn help(_client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    Err(CommandError::Text("ERR PLACEHOLDER"))
}
/// x
pub fn resetstat(_client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    Err(CommandError::Text("ERR PLACEHOLDER"))
}
/// x
pub fn rewrite(_client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    Err(CommandError::Text("ERR PLACEHOLDER"))
}
/// x
pub fn set(_client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    Err(CommandError::Text("ERR PLACEHOLDER"))
}
