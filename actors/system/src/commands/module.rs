//! MODULE: there are no modules, and none can be loaded. The refusal is that of a server whose configuration does not allow it, which
//! clients know.

use crate::client::Client;
use simurgh_protocol::command::replies;
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::Shards;

const HELP: &[&str] = &[
    "LIST",
    "    List the modules that are loaded: none.",
    "LOAD <path> [<arg> ...]",
    "    Load a module. This is refused.",
    "LOADEX <path> [[CONFIG NAME VALUE] [CONFIG NAME VALUE]] [ARGS ...]",
    "    Load a module with settings. This is refused.",
    "UNLOAD <name>",
    "    Unload a module. This is refused.",
];

const REFUSED: CommandError = CommandError::Text(
    "ERR MODULE command not allowed. If the enable-module-command option is set to \"local\", you can run it from a local \
     connection, otherwise you need to set this option in the configuration file, and then restart the server.",
);

/// MODULE HELP.
pub fn help(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    replies::help("MODULE", HELP, &mut client.reply);
    Ok(())
}

/// MODULE LIST.
pub fn list(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    client.reply.array(0);
    Ok(())
}

/// MODULE LOAD, LOADEX and UNLOAD.
pub fn refused(_client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    Err(REFUSED)
}
