//! PLACEHOLDER.
use crate::client::Client;
use crate::node::Node;
use simurgh_protocol::CommandError;
use simurgh_protocol::command::CommandFlags;
pub(crate) fn admit(_node: &Node, _client: &Client, _flags: CommandFlags) -> Result<(), CommandError> {
    Ok(())
}
pub(crate) fn check_buffers(_node: &Node, _client: &mut Client) {}
pub(crate) fn check_all(_node: &Node) {}
