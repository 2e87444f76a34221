//! FUNCTION: the node's libraries, and FCALL, which runs their functions as EVAL runs a script
//! (<https://redis.io/docs/latest/develop/programmability/functions-intro/>).
//!
//! What changes libraries holds every shard and is logged as it was sent.

use super::scripting::rules;
use crate::client::Client;
use crate::node::Node;
use crate::scripting::{Collision, Kind, Libraries, LibraryError, NotKilled, Patience, Policy, execute, register};
use simurgh_kernel::rehearsal::{Mistake, has};
use simurgh_protocol::command::replies::help as write_help;
use simurgh_protocol::command::{Command, ConnectionCommand, check_arity};
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError, Reply};
use simurgh_scripting::{Callable, Function, Library};
use simurgh_storage::Shards;
use std::sync::atomic::Ordering::Relaxed;

const HELP: [&str; 36] = [
    "LOAD [REPLACE] <FUNCTION CODE>",
    "    Create a new library with the given library name and code.",
    "DELETE <LIBRARY NAME>",
    "    Delete the given library.",
    "LIST [LIBRARYNAME PATTERN] [WITHCODE]",
    "    Return general information on all the libraries:",
    "    * Library name",
    "    * The engine used to run the Library",
    "    * Functions list",
    "    * Library code (if WITHCODE is given)",
    "    It also possible to get only function that matches a pattern using LIBRARYNAME argument.",
    "STATS",
    "    Return information about the current function running:",
    "    * Function name",
    "    * Command used to run the function",
    "    * Duration in MS that the function is running",
    "    If no function is running, return nil",
    "    In addition, returns a list of available engines.",
    "KILL",
    "    Kill the current running function.",
    "FLUSH [ASYNC|SYNC]",
    "    Delete all the libraries.",
    "    When called without the optional mode argument, the behavior is determined by the",
    "    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
    "    * ASYNC: Asynchronously flush the libraries.",
    "    * SYNC: Synchronously flush the libraries.",
    "DUMP",
    "    Return a serialized payload representing the current libraries, can be restored using FUNCTION RESTORE command",
    "RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]",
    "    Restore the libraries represented by the given payload, it is possible to give a restore policy to",
    "    control how to handle existing libraries (default APPEND):",
    "    * FLUSH: delete all existing libraries.",
    "    * APPEND: appends the restored libraries to the existing libraries. On collision, abort.",
    "    * REPLACE: appends the restored libraries to the existing libraries, On collision, replace the old",
    "      libraries with the new libraries (notice that even on this option there is a chance of failure",
    "      in case of functions name collision with another library).",
];

/// FUNCTION HELP.
pub fn help(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    write_help("FUNCTION", &HELP, &mut client.reply);
    Ok(())
}

/// FCALL function numkeys \[key ...\] \[arg ...\].
pub fn fcall(client: &mut Client, args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    call(client, args, shards, false)
}

/// FCALL_RO function numkeys \[key ...\] \[arg ...\].
pub fn fcall_ro(client: &mut Client, args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    call(client, args, shards, true)
}

/// How many of the words are keys.
fn key_count(args: &Args<'_>) -> Result<usize, CommandError> {
    let count = parse_i64(args.at(2)).ok_or(CommandError::Text("ERR Bad number of keys provided"))?;
    if count > i64::try_from(args.len() - 3).unwrap_or(i64::MAX) {
        return Err(CommandError::Text("ERR Number of keys can't be greater than number of args"));
    }
    usize::try_from(count).map_err(|_| CommandError::Text("ERR Number of keys can't be negative"))
}

fn call(client: &mut Client, args: &Args<'_>, shards: &mut dyn Shards, is_ro: bool) -> Result<(), CommandError> {
    // Monitors are shown the call before the commands that it causes.
    if client.node.monitor_count.load(Relaxed) > 0 {
        let command = if is_ro { ConnectionCommand::FcallRo } else { ConnectionCommand::Fcall };
        super::monitor::show(client, Command::Connection(command), args);
    }
    let found = client.node.scripting.libraries().function(args.at(1));
    let (library, index) = found.ok_or(CommandError::Text("ERR Function not found"))?;
    let function = library.functions.get(index).ok_or(CommandError::Text("ERR Function not found"))?;
    let keys = key_count(args)?;
    let rules = rules(client, function.flags, is_ro)?;
    let request: Vec<&[u8]> = args.from(0).collect();
    let callable = Callable::Function { library: &library, name: &function.name, request: &request };
    execute(client, shards, callable, request[3..].split_at(keys), rules)
}

/// Notes a change of the libraries, which is logged as it was sent.
fn changed(client: &mut Client, args: &Args<'_>) {
    if has(Mistake::UnloggedLibrary) {
        return;
    }
    let database = client.database;
    let effects = client.effects();
    effects.begin();
    effects.change();
    effects.finish(database, None, args.from(0));
}

/// FUNCTION LOAD \[REPLACE\] code.
pub fn load(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let collision = collision(args)?;
    let node = client.node.clone();
    let library = node.scripting.libraries().read(&node, args.at(args.len() - 1), collision);
    let mut library = library.map_err(|error| error.reply())?;
    library.functions = register(&node, &library, Patience::Usual).map_err(|error| error.reply())?;
    let name = library.name.clone();
    node.scripting.libraries().add(library, collision).map_err(|error| error.reply())?;
    changed(client, args);
    client.reply.bulk(name.as_bytes());
    Ok(())
}

fn collision(args: &Args<'_>) -> Result<Collision, CommandError> {
    let mut collision = Collision::Refuse;
    for index in 2..args.len() - 1 {
        if !args.is(index, "REPLACE") {
            return Err(CommandError::repeats("ERR Unknown option given: ", args.at(index), ""));
        }
        collision = Collision::Replace;
    }
    Ok(collision)
}

/// FUNCTION DELETE library.
pub fn delete(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    client.node.scripting.libraries().delete(args.at(2)).map_err(|error| error.reply())?;
    changed(client, args);
    client.reply.ok();
    Ok(())
}

/// FUNCTION FLUSH \[ASYNC | SYNC\]: the libraries are gone at once, what engines have of them when they are used next.
pub fn flush(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    if args.len() > 3 {
        return Err(super::wrong_subcommand(args, "FUNCTION"));
    }
    if args.len() == 3 && !args.is(2, "ASYNC") && !args.is(2, "SYNC") {
        return Err(CommandError::Text("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
    }
    client.node.scripting.libraries().flush();
    client.node.scripting.function_engine_bytes.store(0, Relaxed);
    changed(client, args);
    client.reply.ok();
    Ok(())
}

/// FUNCTION DUMP.
pub fn dump(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let libraries = client.node.scripting.libraries().clone();
    let payload = simurgh_storage::rdb::functions::dump(libraries.all().map(|library| &*library.source));
    client.reply.bulk(&payload);
    Ok(())
}

/// FUNCTION RESTORE payload \[FLUSH | APPEND | REPLACE\].
pub fn restore(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    if args.len() > 4 {
        return Err(super::wrong_subcommand(args, "FUNCTION"));
    }
    let policy = policy(args)?;
    let node = client.node.clone();
    let libraries = node.scripting.libraries().clone();
    let restored = libraries.restored(&node, args.at(2), policy, Patience::Usual);
    *node.scripting.libraries() = restored.map_err(|error| error.reply())?;
    changed(client, args);
    client.reply.ok();
    Ok(())
}

fn policy(args: &Args<'_>) -> Result<Policy, CommandError> {
    let policies = [("FLUSH", Policy::Flush), ("APPEND", Policy::Append), ("REPLACE", Policy::Replace)];
    if args.len() < 4 {
        return Ok(Policy::Append);
    }
    let found = policies.into_iter().find(|(name, _)| args.is(3, name));
    found
        .map(|(_, policy)| policy)
        .ok_or(CommandError::Text("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE."))
}

/// FUNCTION LIST \[LIBRARYNAME pattern\] \[WITHCODE\].
pub fn list(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let (mut pattern, mut with_code) = (None, false);
    let mut index = 2;
    while index < args.len() {
        if !with_code && args.is(index, "WITHCODE") {
            with_code = true;
        } else if pattern.is_none() && args.is(index, "LIBRARYNAME") {
            index += 1;
            pattern = Some(args.get(index).ok_or(CommandError::Text("ERR library name argument was not given"))?);
        } else {
            return Err(CommandError::repeats("ERR Unknown argument ", args.at(index), ""));
        }
        index += 1;
    }
    let libraries = client.node.scripting.libraries().clone();
    let is_wanted = |library: &&std::sync::Arc<Library>| {
        pattern.is_none_or(|pattern| simurgh_protocol::glob::matches_ignoring_case(pattern, library.name.as_bytes()))
    };
    client.reply.array(libraries.all().filter(is_wanted).count());
    for library in libraries.all().filter(is_wanted) {
        write_library(library, with_code, &mut client.reply);
    }
    Ok(())
}

fn write_library(library: &Library, with_code: bool, reply: &mut Reply) {
    reply.map(3 + usize::from(with_code));
    reply.bulk(b"library_name");
    reply.bulk(library.name.as_bytes());
    reply.bulk(b"engine");
    reply.bulk(b"LUA");
    reply.bulk(b"functions");
    reply.array(library.functions.len());
    library.functions.iter().for_each(|function| write_function(function, reply));
    if with_code {
        reply.bulk(b"library_code");
        reply.bulk(&library.source);
    }
}

fn write_function(function: &Function, reply: &mut Reply) {
    reply.map(3);
    reply.bulk(b"name");
    reply.bulk(function.name.as_bytes());
    reply.bulk(b"description");
    match &function.description {
        Some(text) => reply.bulk(text),
        None => reply.null(),
    }
    reply.bulk(b"flags");
    reply.set(function.flags.names().count());
    function.flags.names().for_each(|name| reply.simple(name));
}

/// FUNCTION STATS.
pub fn stats(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let libraries = client.node.scripting.libraries().clone();
    let call = client.node.scripting.running.function_call()?;
    let reply = &mut client.reply;
    reply.map(2);
    reply.bulk(b"running_script");
    match call {
        None => reply.null(),
        Some((call, duration_ms)) => {
            reply.map(3);
            reply.bulk(b"name");
            reply.bulk(call.name.as_bytes());
            reply.bulk(b"command");
            reply.array(call.words.len());
            call.words.iter().for_each(|word| reply.bulk(word));
            reply.bulk(b"duration_ms");
            reply.integer(i64::try_from(duration_ms).unwrap_or(i64::MAX));
        }
    }
    reply.bulk(b"engines");
    reply.map(1);
    reply.bulk(b"LUA");
    reply.map(2);
    reply.bulk(b"libraries_count");
    reply.count(libraries.all().len());
    reply.bulk(b"functions_count");
    reply.count(libraries.function_count());
    Ok(())
}

/// FUNCTION KILL.
pub fn kill(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    client.node.scripting.running.kill(Kind::Function).map_err(NotKilled::error)?;
    client.reply.ok();
    Ok(())
}

/// Does again what the log says was done to the libraries; nothing if the command is not about them.
pub(crate) fn replay(
    node: &Node,
    command: Command,
    args: &Args<'_>,
    libraries: &mut Libraries,
) -> Option<Result<(), CommandError>> {
    use ConnectionCommand::{FunctionDelete, FunctionFlush, FunctionLoad, FunctionRestore};
    let is = |other: ConnectionCommand| command == Command::Connection(other);
    if ![FunctionDelete, FunctionFlush, FunctionLoad, FunctionRestore].into_iter().any(is) {
        return None;
    }
    if check_arity(command.spec(), args.len()).is_err() {
        return Some(Err(CommandError::Syntax));
    }
    let done: Result<(), LibraryError> = if is(FunctionFlush) {
        libraries.flush();
        Ok(())
    } else if is(FunctionDelete) {
        libraries.delete(args.at(2))
    } else if is(FunctionLoad) {
        match collision(args) {
            Ok(collision) => libraries.load(node, args.at(args.len() - 1), collision, Patience::Endless),
            Err(error) => return Some(Err(error)),
        }
    } else {
        match policy(args) {
            Ok(policy) => libraries.restored(node, args.at(2), policy, Patience::Endless).map(|all| *libraries = all),
            Err(error) => return Some(Err(error)),
        }
    };
    Some(done.map_err(|error| error.reply()))
}
