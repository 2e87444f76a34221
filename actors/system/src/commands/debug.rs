//! DEBUG: the part of it that tests of clients and servers call. Whatever would only pretend to work is an error.

mod digest;
mod inspect;

use crate::client::{Client, Wait};
use crate::persistence::Reload;
use simurgh_kernel::time;
use simurgh_protocol::command::replies::help as write_help;
use simurgh_protocol::config::memory_of;
use simurgh_protocol::number::{parse_f64, parse_i64};
use simurgh_protocol::resp::Protocol;
use simurgh_protocol::{Args, CommandError, Reply};
use simurgh_storage::Shards;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const NOT_ALLOWED: CommandError = CommandError::Text(
    "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a local \
     connection, otherwise you need to set this option in the configuration file, and then restart the server.",
);

/// DEBUG subcommand \[argument ...\].
pub fn debug(client: &mut Client, args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    let is_local = client.shared.address.remote.is_local();
    if !client.live().config.enable_debug_command.allows(is_local) {
        return Err(NOT_ALLOWED);
    }
    let name = args.at(1).to_ascii_uppercase();
    match (name.as_slice(), args.len()) {
        (b"SLEEP", 3) => sleep(client, args.at(2)),
        (b"SET-ACTIVE-EXPIRE", 3) => {
            let is_on = flag(args.at(2));
            client.node.expires_actively.store(is_on, Relaxed);
            client.reply.ok();
            Ok(())
        }
        (b"PAUSE-CRON", 3) => {
            let is_paused = flag(args.at(2));
            client.node.cron_paused.store(is_paused, Relaxed);
            client.reply.ok();
            Ok(())
        }
        (b"ERROR", 3) => Err(CommandError::Repeats(args.at(2).into())),
        (b"LOG", 3) => {
            tracing::warn!("DEBUG LOG: {}", String::from_utf8_lossy(args.at(2)));
            client.reply.ok();
            Ok(())
        }
        (b"PROTOCOL", 3) => protocol(args.at(2), &mut client.reply),
        (b"OBJECT", 3) => inspect::object(client, args, shards),
        (b"HTSTATS-KEY", 3 | 4) => inspect::table_of_key(client, args, shards),
        (b"LISTPACK", 3) => inspect::listpack(client, args, shards),
        (b"HTSTATS", 3 | 4) => inspect::tables(client, args, shards),
        (b"POPULATE", 3..=5) => inspect::populate(client, args, shards),
        (b"DIGEST", 2) => digest::all(client, shards),
        (b"DIGEST-VALUE", 2..) => digest::values(client, args, shards),
        (b"LOADAOF", 2) => load_anew(client, Reload::Log),
        (b"RELOAD", 2..) => reload(client, args),
        (b"PANIC" | b"SEGFAULT" | b"ASSERT", 2) => simurgh_kernel::core::abort_node(),
        (b"PANIC-CONNECTION", 2) => {
            client.wait = Some(Wait::Panic);
            Ok(())
        }
        (b"QUICKLIST-PACKED-THRESHOLD", 3) => {
            let bytes = memory_of(args.at(2)).filter(|bytes| *bytes < u64::from(u32::MAX));
            client.node.configuration.set_list_plain(bytes.ok_or(LIST_PLAIN_RANGE)?);
            client.refresh();
            client.reply.ok();
            Ok(())
        }
        (b"SET-DISABLE-DENY-SCRIPTS", 3) => {
            client.node.scripting.looks_at_server.store(flag(args.at(2)), Relaxed);
            client.reply.ok();
            Ok(())
        }
        (b"DICT-RESIZING", 3) => Err(CommandError::Text("ERR tables are always resized")),
        (b"REPLYBUFFER", 4) => Err(CommandError::Text("ERR reply buffers are not resized by a timer")),
        (b"HELP", 2) => {
            write_help("DEBUG", HELP, &mut client.reply);
            Ok(())
        }
        _ => Err(super::wrong_subcommand(args, "DEBUG")),
    }
}

const LIST_PLAIN_RANGE: CommandError =
    CommandError::Text("ERR argument must be a memory value bigger than 1 and smaller than 4gb");

const HELP: &[&str] = &[
    "DIGEST",
    "    Answer forty hexadecimal digits that depend on the content of all databases.",
    "DIGEST-VALUE <key> [<key> ...]",
    "    Answer the same for the value of each key.",
    "ERROR <string>",
    "    Answer this text as an error.",
    "HTSTATS <dbid>",
    "    Describe the tables of a database.",
    "HTSTATS-KEY <key>",
    "    Describe the table of a key's value.",
    "LISTPACK <key>",
    "    Write the elements of a packed value to the server's log.",
    "LOADAOF",
    "    Write the log, forget the keys and load them from the log.",
    "LOG <message>",
    "    Write a message to the server's log.",
    "OBJECT <key>",
    "    Describe how the value of a key is stored.",
    "PANIC",
    "    Stop the process at once.",
    "PANIC-CONNECTION",
    "    Panic in this connection's task, which must cost nobody else anything.",
    "PAUSE-CRON <0|1>",
    "    Stop what is done now and then, or go on with it.",
    "POPULATE <count> [<prefix>] [<size>]",
    "    Make <count> keys named key:<number>, or <prefix>:<number>.",
    "PROTOCOL <type>",
    "    Answer a value of a type: string, integer, double, bignum, null, array, set, map, attrib, push, verbatim, true,",
    "    false.",
    "QUICKLIST-PACKED-THRESHOLD <size>",
    "    From how many bytes on an element of a list is a node of its own; 0 for what list-max-listpack-size means.",
    "RELOAD [NOSAVE]",
    "    Save a snapshot, unless told not to, forget the keys and load them from it.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Whether keys expire without being asked for.",
    "SET-DISABLE-DENY-SCRIPTS <0|1>",
    "    Whether scripts may call ACL, CLIENT, CONFIG, DEBUG, LATENCY and ROLE.",
    "SLEEP <seconds>",
    "    Stop for so long, with everything that needs keys. Decimals allowed.",
];

/// Numbers as C reads them: what is none is 0.
fn flag(word: &[u8]) -> bool {
    parse_i64(word).unwrap_or(0) != 0
}

/// The thread stands still, and all shards with it, as the whole server does in Redis.
fn sleep(client: &mut Client, seconds: &[u8]) -> Result<(), CommandError> {
    let seconds = parse_f64(seconds).unwrap_or(0.0).max(0.0);
    let duration = Duration::try_from_secs_f64(seconds).map_err(|_| CommandError::NotAFloat)?;
    if !time::stand_still(duration) {
        client.wait = Some(Wait::Sleep(duration));
    }
    client.reply.ok();
    Ok(())
}

/// The keys are written to a snapshot, forgotten and loaded from it.
fn reload(client: &mut Client, args: &Args<'_>) -> Result<(), CommandError> {
    let mut saves = true;
    for index in 2..args.len() {
        if args.is(index, "NOSAVE") {
            saves = false;
        } else if args.is(index, "MERGE") || args.is(index, "NOFLUSH") {
            return Err(CommandError::Text(
                "ERR DEBUG RELOAD always begins with nothing: MERGE and NOFLUSH are not supported",
            ));
        } else {
            return Err(CommandError::Text("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options."));
        }
    }
    load_anew(client, Reload::Snapshot { saves })
}

/// The keys are forgotten and loaded from the disk, by the connection: it takes reading files. Without a log, a rewrite may have left
/// one that holds what there was then.
fn load_anew(client: &mut Client, source: Reload) -> Result<(), CommandError> {
    if client.transaction.is_some() || client.executing.is_some() {
        return Err(CommandError::Text("ERR DEBUG RELOAD is not allowed between MULTI and EXEC"));
    }
    client.wait = Some(Wait::Reload(source));
    Ok(())
}

const TYPES: CommandError = CommandError::Text(
    "ERR Wrong protocol type name. Please use one of the following: \
     string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
);

/// DEBUG PROTOCOL: a value of each type of the protocol.
#[expect(clippy::approx_constant, reason = "the number is Redis's, not a circle's")]
fn protocol(kind: &[u8], reply: &mut Reply) -> Result<(), CommandError> {
    let is_resp3 = reply.protocol() == Protocol::Resp3;
    let number: &[u8] = b"1234567999999999999999999999999999999";
    match kind.to_ascii_lowercase().as_slice() {
        b"string" => reply.bulk(b"Hello World"),
        b"integer" => reply.integer(12345),
        b"double" => reply.double(3.141),
        b"null" => reply.null(),
        b"array" => {
            reply.array(3);
            (0..3).for_each(|item| reply.integer(item));
        }
        b"set" => {
            reply.set(3);
            (0..3).for_each(|item| reply.integer(item));
        }
        b"map" => {
            reply.map(3);
            for item in 0..3 {
                reply.integer(item);
                reply.boolean(item == 1);
            }
        }
        b"attrib" => {
            if is_resp3 {
                reply.buffer().extend_from_slice(b"|1\r\n");
                reply.bulk(b"key-popularity");
                reply.array(2);
                reply.bulk(b"key:123");
                reply.integer(90);
            }
            reply.bulk(b"Some real reply following the attribute");
        }
        b"push" if is_resp3 => {
            reply.bulk(b"Some real reply following the push reply");
            reply.push(2);
            reply.bulk(b"server-cpu-usage");
            reply.integer(42);
        }
        b"push" => return Err(CommandError::Text("ERR RESP2 is not supported by this command")),
        b"verbatim" => reply.verbatim("txt", b"This is a verbatim\nstring"),
        b"true" => reply.boolean(true),
        b"false" => reply.boolean(false),
        b"bignum" if is_resp3 => {
            reply.buffer().push(b'(');
            reply.buffer().extend_from_slice(number);
            reply.buffer().extend_from_slice(b"\r\n");
        }
        b"bignum" => reply.bulk(number),
        _ => return Err(TYPES),
    }
    Ok(())
}
