//! The commands that run in a connection or on the node, one file for each subject. Data commands are in `simurgh_storage`.
//!
//! A handler is `fn(client, args, shards) -> Result<(), CommandError>`; `shards` are those that the command's row asks for.

pub mod acl;
pub mod client;
mod client_filter;
mod client_kill;
pub(crate) mod client_list;
pub(crate) mod client_tracking;
pub mod command;
pub mod config;
pub mod connection;
pub mod debug;
pub mod durability;
pub mod function;
pub mod info;
pub mod latency;
pub mod lolwut;
pub mod memory;
pub mod module;
pub mod monitor;
pub mod pause;
pub mod persistence;
pub mod pubsub;
pub(crate) mod redaction;
pub mod role;
pub mod script;
pub mod scripting;
pub mod shutdown;
pub mod slowlog;
pub mod time;
pub mod transaction;

use simurgh_protocol::command::{Command, ConnectionCommand, Lookup, TableError, check_arity};
use simurgh_protocol::{Args, CommandError};

/// EXEC, which the execution loop treats apart.
pub(crate) const EXEC: Command = Command::Connection(ConnectionCommand::Exec);

/// The command that a request names, if there is one that takes so many arguments.
pub(crate) fn resolve(found: Lookup, args: &Args<'_>) -> Result<Command, TableError> {
    match found {
        Lookup::Found(command) => check_arity(command.spec(), args.len()).map(|()| command),
        Lookup::UnknownCommand | Lookup::UnknownSubcommand(_) | Lookup::MissingSubcommand(_) => {
            simurgh_protocol::command::resolve(args)
        }
    }
}

/// A subcommand that there is not, or not with so many arguments.
pub(crate) fn wrong_subcommand(args: &Args<'_>, container: &str) -> CommandError {
    let before = "ERR unknown subcommand or wrong number of arguments for '";
    CommandError::repeats(before, args.at(1), &format!("'. Try {container} HELP."))
}

/// Whether a command runs at once between MULTI and EXEC.
pub(crate) fn runs_inside_multi(command: Command) -> bool {
    use ConnectionCommand::{Discard, Exec, Multi, Quit, Reset, Watch};
    [Discard, Exec, Multi, Quit, Reset, Watch].iter().any(|other| command == Command::Connection(*other))
}

/// Whether a command runs a script.
pub(crate) fn runs_script(command: Command) -> bool {
    use ConnectionCommand::{Eval, EvalRo, Evalsha, EvalshaRo, Fcall, FcallRo};
    [Eval, EvalRo, Evalsha, EvalshaRo, Fcall, FcallRo].iter().any(|other| command == Command::Connection(*other))
}

/// Whether a command ends the client's watches, and so needs the shards of what it watches.
pub(crate) fn ends_watch(command: Command) -> bool {
    use ConnectionCommand::{Discard, Exec, Reset, Unwatch};
    [Discard, Exec, Reset, Unwatch].iter().any(|other| command == Command::Connection(*other))
}
