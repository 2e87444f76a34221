//! PLACEHOLDER.
use crate::client::Client;
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::Shards;
/// x
pub fn monitor(_client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    Err(CommandError::Text("ERR PLACEHOLDER"))
}

/// x
pub(crate) fn tell(
    _node: &crate::node::Node,
    _client: &Client,
    _command: simurgh_protocol::command::Command,
    _args: &Args<'_>,
) {
}
/// x
pub(crate) fn forget(_node: &crate::node::Node, _shared: &std::sync::Arc<crate::clients::ClientShared>) {}
