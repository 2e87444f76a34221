//! COMMAND and its subcommands: the command table answers by itself.

use crate::client::Client;
use simurgh_protocol::command::replies;
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::Shards;

/// COMMAND.
pub fn all(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    replies::all(&mut client.reply);
    Ok(())
}

/// COMMAND COUNT.
pub fn count(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    replies::count(&mut client.reply);
    Ok(())
}

/// COMMAND INFO \[name ...\].
pub fn info(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    replies::info(args, &mut client.reply);
    Ok(())
}

/// COMMAND DOCS \[name ...\].
pub fn docs(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    replies::docs(args, &mut client.reply);
    Ok(())
}

/// COMMAND LIST \[FILTERBY ...\].
pub fn list(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    replies::list(args, &mut client.reply)
}

/// COMMAND GETKEYS.
pub fn getkeys(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    replies::getkeys(args, &mut client.reply)
}

/// COMMAND GETKEYSANDFLAGS.
pub fn getkeysandflags(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    replies::getkeysandflags(args, &mut client.reply)
}

/// COMMAND HELP.
pub fn help(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    replies::command_help(&mut client.reply);
    Ok(())
}
