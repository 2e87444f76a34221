//! `COMMAND GETKEYS` and `COMMAND GETKEYSANDFLAGS`: the keys of a request that is shown, not run.

use super::error::check_arity;
use super::flags::CommandFlags;
use super::keys::{KeyPosition, keys};
use super::table::{Lookup, lookup};
use crate::errors::CommandError;
use crate::resp::{Args, Reply};

/// `COMMAND GETKEYS request...`
pub fn getkeys(args: &Args<'_>, reply: &mut Reply) -> Result<(), CommandError> {
    let request = args.skip(2);
    let keys = keys_of(&request)?;
    reply.array(keys.len());
    keys.iter().for_each(|key| reply.bulk(request.at(key.index)));
    Ok(())
}

/// `COMMAND GETKEYSANDFLAGS request...`
pub fn getkeysandflags(args: &Args<'_>, reply: &mut Reply) -> Result<(), CommandError> {
    let request = args.skip(2);
    let keys = keys_of(&request)?;
    reply.array(keys.len());
    for key in keys {
        reply.array(2);
        reply.bulk(request.at(key.index));
        super::info::names(key.flags.names(), reply);
    }
    Ok(())
}

fn keys_of(request: &Args<'_>) -> Result<Vec<KeyPosition>, CommandError> {
    let spec = match lookup(request.at(0), request.get(1)) {
        Lookup::Found(command) => command.spec(),
        Lookup::MissingSubcommand(container) => container,
        Lookup::UnknownCommand | Lookup::UnknownSubcommand(_) => {
            return Err(CommandError::Text("ERR Invalid command specified"));
        }
    };
    if !spec.has_keys() {
        return Err(CommandError::Text("ERR The command has no key arguments"));
    }
    if check_arity(spec, request.len()).is_err() {
        return Err(CommandError::Text("ERR Invalid number of arguments specified for command"));
    }
    match keys(spec, request) {
        Err(_) if spec.flags.contains(CommandFlags::NO_MANDATORY_KEYS) => Ok(Vec::new()),
        Err(_) => Err(CommandError::Text("ERR Invalid arguments specified for command")),
        Ok(keys) => Ok(keys),
    }
}
