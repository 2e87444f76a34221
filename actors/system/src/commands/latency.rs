//! PLACEHOLDER.
use crate::client::Client;
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::Shards;
/// x
pub fn doctor(_client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    Err(CommandError::Text("ERR PLACEHOLDER"))
}
/// x
pub fn graph(_client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    Err(CommandError::Text("ERR PLACEHOLDER"))
}
/// x
pub fn help(_client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    Err(CommandError::Text("ERR PLACEHOLDER"))
}
/// x
pub fn histogram(_client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    Err(CommandError::Text("ERR PLACEHOLDER"))
}
/// x
pub fn history(_client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    Err(CommandError::Text("ERR PLACEHOLDER"))
}
/// x
pub fn latest(_client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    Err(CommandError::Text("ERR PLACEHOLDER"))
}
/// x
pub fn reset(_client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    Err(CommandError::Text("ERR PLACEHOLDER"))
}

/// x
#[derive(Debug, Default)]
pub struct LatencyMonitor;
/// x
pub(crate) fn record(
    _node: &crate::node::Node,
    _client: &Client,
    _command: simurgh_protocol::command::Command,
    _millis: u64,
) {
}
