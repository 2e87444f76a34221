//! SCRIPT: the scripts that the node keeps, and the one that runs (<https://redis.io/docs/latest/commands/script-load/>).

use super::scripting::{digest_of, read};
use crate::client::Client;
use crate::scripting::{Kind, NotKilled};
use simurgh_protocol::command::replies::help as write_help;
use simurgh_protocol::{Args, CommandError};
use simurgh_scripting::sha1_hex;
use simurgh_storage::Shards;

const HELP: [&str; 14] = [
    "DEBUG (YES|SYNC|NO)",
    "    Set the debug mode for subsequent scripts executed.",
    "EXISTS <sha1> [<sha1> ...]",
    "    Return information about the existence of the scripts in the script cache.",
    "FLUSH [ASYNC|SYNC]",
    "    Flush the Lua scripts cache. Very dangerous on replicas.",
    "    When called without the optional mode argument, the behavior is determined by the",
    "    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
    "    * ASYNC: Asynchronously flush the scripts cache.",
    "    * SYNC: Synchronously flush the scripts cache.",
    "KILL",
    "    Kill the currently executing Lua script.",
    "LOAD <script>",
    "    Load a script into the scripts cache without executing it.",
];

/// SCRIPT HELP.
pub fn help(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    write_help("SCRIPT", &HELP, &mut client.reply);
    Ok(())
}

/// SCRIPT LOAD script.
pub fn load(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let digest = sha1_hex(args.at(2));
    let known = client.node.scripting.cache().find(&digest);
    let script = match known {
        Some(script) => script,
        None => read(client, &digest, args.at(2))?,
    };
    client.node.scripting.cache().keep(&digest, script);
    client.reply.bulk(digest.as_bytes());
    Ok(())
}

/// SCRIPT EXISTS sha1 \[sha1 ...\].
pub fn exists(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    client.reply.array(args.len() - 2);
    for word in args.from(2) {
        let is_kept = digest_of(word).is_some_and(|digest| client.node.scripting.cache().has(&digest));
        client.reply.integer(i64::from(is_kept));
    }
    Ok(())
}

/// SCRIPT SHOW sha1, as in Valkey: the script's text.
pub fn show(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let digest = digest_of(args.at(2));
    let script = digest.and_then(|digest| client.node.scripting.cache().find(&digest));
    let script = script.ok_or(CommandError::Text("NOSCRIPT No matching script. Please use EVAL."))?;
    client.reply.bulk(&script.source);
    Ok(())
}

/// SCRIPT FLUSH \[ASYNC | SYNC\]: the texts are gone at once, an engine's compiled scripts when it is used next.
pub fn flush(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let is_known = args.len() == 2 || (args.len() == 3 && (args.is(2, "ASYNC") || args.is(2, "SYNC")));
    if !is_known {
        return Err(CommandError::Text("ERR SCRIPT FLUSH only support SYNC|ASYNC option"));
    }
    client.node.scripting.cache().flush();
    client.reply.ok();
    Ok(())
}

/// SCRIPT KILL.
pub fn kill(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    client.node.scripting.running.kill(Kind::Eval).map_err(NotKilled::error)?;
    client.reply.ok();
    Ok(())
}

/// SCRIPT DEBUG YES | SYNC | NO: there is no debugger to switch on.
pub fn debug(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    if args.is(2, "NO") {
        client.reply.ok();
        return Ok(());
    }
    if args.is(2, "YES") || args.is(2, "SYNC") {
        return Err(CommandError::Text("ERR this server has no debugger for scripts"));
    }
    Err(CommandError::Text("ERR Use SCRIPT DEBUG YES/SYNC/NO"))
}
