//! CLIENT: what a connection is called, how it is answered, and its switches
//! (<https://redis.io/docs/latest/commands/?group=connection>). LIST and KILL have files of their own.

use crate::blocking::Ending;
use crate::client::Client;
use crate::commands::pause::Paused;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::Shards;
use std::sync::atomic::Ordering::Relaxed;

pub use super::client_kill::kill;
pub use super::client_list::{info, list};
pub use super::client_tracking::{caching, getredir, tracking, trackinginfo};

/// Whether a name is one word of printable characters.
fn is_word(text: &[u8]) -> bool {
    text.iter().all(|byte| (b'!'..=b'~').contains(byte))
}

/// The name that ends up with this client; an empty one takes it away.
pub(crate) fn set_name(client: &Client, name: &[u8]) -> Result<(), CommandError> {
    if !is_word(name) {
        return Err(CommandError::Text("ERR Client names cannot contain spaces, newlines or special characters."));
    }
    client.shared.texts().name = name.to_vec();
    Ok(())
}

/// CLIENT ID.
pub fn id(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    client.reply.integer(i64::try_from(client.shared.id).unwrap_or(i64::MAX));
    Ok(())
}

/// CLIENT UNBLOCK client-id [TIMEOUT | ERROR]: 1 if the client waited in a command.
pub fn unblock(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let ending = match args.len() {
        3 => Ending::Timeout,
        4 if args.is(3, "TIMEOUT") => Ending::Timeout,
        4 if args.is(3, "ERROR") => Ending::Error,
        4 => return Err(CommandError::Text("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")),
        _ => return Err(super::wrong_subcommand(args, "CLIENT")),
    };
    let id = parse_i64(args.at(2)).ok_or(CommandError::NotAnInteger)?;
    let other = u64::try_from(id).ok().and_then(|id| client.node.clients.get(id));
    client.reply.integer(i64::from(other.is_some_and(|other| other.unblock(ending))));
    Ok(())
}

/// CLIENT GETNAME.
pub fn getname(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let texts = client.shared.texts();
    if texts.name.is_empty() {
        client.reply.null();
    } else {
        client.reply.bulk(&texts.name);
    }
    Ok(())
}

/// CLIENT SETNAME name.
pub fn setname(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    set_name(client, args.at(2))?;
    client.reply.ok();
    Ok(())
}

/// CLIENT SETINFO (LIB-NAME | LIB-VER) value.
pub fn setinfo(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let (is_name, is_version) = (args.is(2, "LIB-NAME"), args.is(2, "LIB-VER"));
    if !is_name && !is_version {
        return Err(CommandError::repeats("ERR Unrecognized option '", args.at(2), "'"));
    }
    if !is_word(args.at(3)) {
        let after = " cannot contain spaces, newlines or special characters.";
        return Err(CommandError::repeats("ERR ", args.at(2), after));
    }
    let mut texts = client.shared.texts();
    let text = if is_name { &mut texts.lib_name } else { &mut texts.lib_ver };
    *text = args.at(3).to_vec();
    drop(texts);
    client.reply.ok();
    Ok(())
}

/// CLIENT REPLY (ON | OFF | SKIP). OFF and SKIP are not answered themselves.
pub fn reply(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    if args.is(2, "ON") {
        client.reply_mode.on(&mut client.reply);
        client.reply.ok();
    } else if args.is(2, "OFF") {
        client.reply_mode.off(&client.reply);
    } else if args.is(2, "SKIP") {
        client.reply_mode.skip();
    } else {
        return Err(CommandError::Syntax);
    }
    Ok(())
}

fn switch(args: &Args<'_>) -> Result<bool, CommandError> {
    match (args.is(2, "ON"), args.is(2, "OFF")) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        (false, false) => Err(CommandError::Syntax),
    }
}

/// CLIENT NO-EVICT (ON | OFF).
pub fn no_evict(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    client.shared.no_evict.store(switch(args)?, Relaxed);
    client.reply.ok();
    Ok(())
}

/// CLIENT NO-TOUCH (ON | OFF).
pub fn no_touch(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    client.no_touch = switch(args)?;
    client.shared.no_touch.store(client.no_touch, Relaxed);
    client.reply.ok();
    Ok(())
}

/// CLIENT PAUSE timeout \[WRITE | ALL\]. All shards are held, so no write is under way when it is answered.
pub fn pause(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    if args.len() > 4 {
        return Err(super::wrong_subcommand(args, "CLIENT"));
    }
    let wanted = match (args.len(), args.is(3, "WRITE"), args.is(3, "ALL")) {
        (3, ..) | (_, _, true) => Paused::All,
        (_, true, _) => Paused::Writes,
        (_, false, false) => return Err(CommandError::Text("ERR CLIENT PAUSE mode must be WRITE or ALL")),
    };
    let timeout_ms = parse_i64(args.at(2)).ok_or(CommandError::ArgumentNotAnInteger("timeout"))?;
    if timeout_ms < 0 {
        return Err(CommandError::Text("ERR timeout is negative"));
    }
    let ends_ms = timeout_ms.checked_add(client.now_ms);
    let ends_ms = ends_ms.ok_or(CommandError::Text("ERR timeout is out of range"))?;
    client.node.pause.begin(wanted, ends_ms, client.now_ms);
    client.reply.ok();
    Ok(())
}

/// CLIENT UNPAUSE.
pub fn unpause(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    client.node.pause.end();
    client.reply.ok();
    Ok(())
}

/// CLIENT HELP.
pub fn help(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    client.reply.array(HELP.len());
    for line in HELP {
        client.reply.simple(line);
    }
    Ok(())
}

const HELP: &[&str] = &[
    "CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "GETNAME",
    "    Tell the name of this connection.",
    "ID",
    "    Tell the number of this connection.",
    "INFO",
    "    Describe this connection.",
    "KILL <ip:port>",
    "    Close the connection made from <ip:port>.",
    "KILL <option> <value> [<option> <value> [...]]",
    "    Close every connection that all options apply to. Options are:",
    "    * ADDR (<ip:port>|<unixsocket>:0)",
    "      Made from this address.",
    "    * LADDR (<ip:port>|<unixsocket>:0)",
    "      Made to this address.",
    "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    "      Of this type.",
    "    * USER <username>",
    "      Of this user.",
    "    * SKIPME (YES|NO)",
    "      Whether this connection is left out (default: yes).",
    "    * ID <client-id>",
    "      With this number.",
    "    * MAXAGE <maxage>",
    "      Older than so many seconds.",
    "LIST [options ...]",
    "    Describe connections. Options are:",
    "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    "      Those of this type.",
    "    * ID <client-id> [<client-id> ...]",
    "      Those with these numbers.",
    "CACHING (YES|NO)",
    "    Choose whether the keys of the next command are tracked, in the modes OPTIN and OPTOUT.",
    "GETREDIR",
    "    Tell the number of the connection that hears of changes in place of this one.",
    "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]] [OPTIN] [OPTOUT] [NOLOOP]",
    "    Choose whether this connection hears of changes to the keys that it has read.",
    "TRACKINGINFO",
    "    Tell how this connection hears of changes.",
    "UNPAUSE",
    "    End a pause.",
    "PAUSE <timeout> [WRITE|ALL]",
    "    Hold back all commands, or those that write, for <timeout> milliseconds.",
    "REPLY (ON|OFF|SKIP)",
    "    Choose whether this connection is answered.",
    "SETNAME <name>",
    "    Name this connection.",
    "SETINFO <option> <value>",
    "    Say which library uses this connection. Options are:",
    "    * LIB-NAME: its name.",
    "    * LIB-VER: its version.",
    "NO-EVICT (ON|OFF)",
    "    Choose whether this connection is spared when the memory of clients is short.",
    "NO-TOUCH (ON|OFF)",
    "    Choose whether this connection's commands count as no use of a key.",
    "HELP",
    "    Print this help.",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_of_printable_characters() {
        assert!(is_word(b""));
        assert!(is_word(b"a~!"));
        assert!(!is_word(b"a b"));
        assert!(!is_word(b"a\n"));
        assert!(!is_word(b"a\x7f"));
        assert!(!is_word(b"\xff"));
    }
}
