//! XGROUP: groups and consumers are made, changed and removed. Commands: <https://redis.io/docs/latest/commands/xgroup-create/>.

use super::group::Group;
use super::id::StreamId;
use super::{Entries, Stream};
use crate::collection::Edit;
use crate::context::Context;
use crate::key_hash::Key;
use crate::notify::Class;
use simurgh_protocol::command::replies::help;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};

/// The options of XGROUP CREATE and SETID.
#[derive(Debug, Default)]
struct Options {
    creates_stream: bool,
    entries_read: Option<u64>,
}

const UNKNOWN_CREATE: CommandError =
    CommandError::Text("ERR unknown subcommand or wrong number of arguments for 'CREATE'. Try XGROUP HELP.");
const UNKNOWN_SETID: CommandError =
    CommandError::Text("ERR unknown subcommand or wrong number of arguments for 'SETID'. Try XGROUP HELP.");

impl Options {
    /// Reads the options of CREATE, which takes `MKSTREAM`, or else those of SETID.
    fn read(args: &Args<'_>, is_create: bool) -> Result<Self, CommandError> {
        let (mut options, mut at) = (Self::default(), 5);
        while at < args.len() {
            if is_create && args.is(at, "MKSTREAM") {
                options.creates_stream = true;
                at += 1;
            } else if args.is(at, "ENTRIESREAD") && at + 1 < args.len() {
                let number = parse_i64(args.at(at + 1)).ok_or(CommandError::NotAnInteger)?;
                if number < -1 {
                    return Err(CommandError::Text("ERR value for ENTRIESREAD must be positive or -1"));
                }
                options.entries_read = u64::try_from(number).ok();
                at += 2;
            } else {
                return Err(if is_create { UNKNOWN_CREATE } else { UNKNOWN_SETID });
            }
        }
        Ok(options)
    }

    /// How many entries the group counts as read: no more than there ever were, unless a replay says what really was (a group that
    /// reads entries again counts them again).
    fn entries_read(&self, entries: &Entries, replaying: bool) -> Option<u64> {
        self.entries_read.map(|read| if replaying { read } else { read.min(entries.added) })
    }
}

/// Records a command whose `ENTRIESREAD` was more than there ever were with the number that counts.
fn log_entries_read(cx: &mut Context<'_>, args: &Args<'_>, typed: Option<u64>, entries_read: Option<u64>) {
    let Some(number) = entries_read.filter(|_| typed != entries_read) else { return };
    let number = number.to_string();
    let mut words: Vec<&[u8]> = args.from(0).collect();
    for (at, word) in words.iter_mut().enumerate().skip(6) {
        if args.is(at - 1, "ENTRIESREAD") {
            *word = number.as_bytes();
        }
    }
    cx.log_instead(&words);
}

const NO_STREAM: CommandError = CommandError::Text(
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.",
);

/// The error of a group that is not there: what a client sent is repeated up to its first zero byte.
pub(super) fn no_group(parts: [&str; 3], words: [&[u8]; 2]) -> CommandError {
    let [first, second] = words.map(|word| word.split(|byte| *byte == 0).next().unwrap_or(word));
    let text = [parts[0].as_bytes(), first, parts[1].as_bytes(), second, parts[2].as_bytes()].concat();
    CommandError::Repeats(text.into())
}

/// NOGROUP, as XGROUP and XINFO tell it.
pub(super) fn no_group_of_key(group: &[u8], key: &[u8]) -> CommandError {
    no_group(["NOGROUP No such consumer group '", "' for key name '", "'"], [group, key])
}

/// The stream of XGROUP's argument 2, with the group of argument 3.
fn edit_with_group<'c>(cx: &'c mut Context<'_>, key: &Key<'_>, group: &[u8]) -> Result<Edit<'c, Stream>, CommandError> {
    let stream = cx.edit::<Stream>(key)?.ok_or(NO_STREAM)?;
    if stream.groups.get(group).is_none() {
        return Err(no_group_of_key(group, key.bytes));
    }
    Ok(stream)
}

/// `XGROUP CREATE key group id|$ [MKSTREAM] [ENTRIESREAD entries-read]`.
pub fn xgroup_create(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let options = Options::read(args, true)?;
    let (key, replaying) = (cx.key(args.at(2)), cx.replaying);
    let last = cx.edit::<Stream>(&key)?.map(|stream| stream.entries.last_id);
    if last.is_none() && !options.creates_stream {
        return Err(NO_STREAM);
    }
    // Options given twice are told late.
    if args.len() > 8 {
        return Err(UNKNOWN_CREATE);
    }
    let id = match args.at(4) {
        b"$" => last.unwrap_or_default(),
        text => StreamId::parse(text, 0)?,
    };
    let mut stream = cx.edit_or_create::<Stream>(&key)?;
    let entries_read = options.entries_read(&stream.entries, replaying);
    let is_new = stream.groups.insert(args.at(3), Group::new(id, entries_read));
    drop(stream);
    if !is_new {
        return Err(CommandError::Text("BUSYGROUP Consumer Group name already exists"));
    }
    cx.reply.ok();
    cx.notify(Class::STREAM, "xgroup-create", &key);
    log_entries_read(cx, args, options.entries_read, entries_read);
    cx.changed(&key);
    Ok(())
}

/// `XGROUP SETID key group id|$ [ENTRIESREAD entries-read]`.
pub fn xgroup_setid(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let options = Options::read(args, false)?;
    let (key, replaying) = (cx.key(args.at(2)), cx.replaying);
    let mut stream = edit_with_group(cx, &key, args.at(3))?;
    if args.len() > 7 {
        return Err(UNKNOWN_SETID);
    }
    let id = match args.at(4) {
        b"$" => stream.entries.last_id,
        text => StreamId::parse_open(text, 0)?,
    };
    let entries_read = options.entries_read(&stream.entries, replaying);
    stream.groups.edit(args.at(3), |group| {
        group.last_id = id;
        group.entries_read = entries_read;
    });
    drop(stream);
    cx.reply.ok();
    cx.notify(Class::STREAM, "xgroup-setid", &key);
    log_entries_read(cx, args, options.entries_read, entries_read);
    cx.effects.change();
    Ok(())
}

/// `XGROUP DESTROY key group`.
pub fn xgroup_destroy(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.key(args.at(2));
    let mut stream = cx.edit::<Stream>(&key)?.ok_or(NO_STREAM)?;
    let was_there = stream.groups.remove(args.at(3));
    drop(stream);
    cx.reply.integer(was_there.into());
    if was_there {
        cx.notify(Class::STREAM, "xgroup-destroy", &key);
        cx.changed(&key);
    }
    Ok(())
}

/// `XGROUP CREATECONSUMER key group consumer`.
pub fn xgroup_createconsumer(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (key, now_ms) = (cx.key(args.at(2)), cx.now_ms);
    let mut stream = edit_with_group(cx, &key, args.at(3))?;
    let created = stream.groups.edit(args.at(3), |group| group.create_consumer(args.at(4), now_ms)).flatten();
    drop(stream);
    cx.reply.integer(created.is_some().into());
    if created.is_some() {
        cx.notify(Class::STREAM, "xgroup-createconsumer", &key);
        cx.effects.change();
    }
    Ok(())
}

/// `XGROUP DELCONSUMER key group consumer`: how many entries the consumer held.
pub fn xgroup_delconsumer(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.key(args.at(2));
    let mut stream = edit_with_group(cx, &key, args.at(3))?;
    let held = stream.groups.edit(args.at(3), |group| group.remove_consumer(args.at(4))).flatten();
    drop(stream);
    cx.reply.count(held.unwrap_or(0));
    if held.is_some() {
        cx.notify(Class::STREAM, "xgroup-delconsumer", &key);
        cx.effects.change();
    }
    Ok(())
}

/// `XGROUP HELP`.
pub fn xgroup_help(cx: &mut Context<'_>, _: &Args<'_>) -> Result<(), CommandError> {
    let lines = [
        "CREATE <key> <groupname> <id|$> [option]",
        "    Create a new consumer group. Options are:",
        "    * MKSTREAM",
        "      Create the empty stream if it does not exist.",
        "    * ENTRIESREAD entries_read",
        "      Set the group's entries_read counter (internal use).",
        "CREATECONSUMER <key> <groupname> <consumer>",
        "    Create a new consumer in the specified group.",
        "DELCONSUMER <key> <groupname> <consumer>",
        "    Remove the specified consumer.",
        "DESTROY <key> <groupname>",
        "    Remove the specified group.",
        "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
        "    Set the current group ID and entries_read counter.",
    ];
    help("XGROUP", &lines, cx.reply);
    Ok(())
}
