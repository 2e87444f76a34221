//! EVAL and its like (<https://redis.io/docs/latest/commands/eval/>): a script runs as a transaction does, with every shard
//! held, and what its commands changed stands between MULTI and EXEC in the log.

use crate::client::Client;
use crate::scripting::{Engines, Rules, execute, with_engine};
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};
use simurgh_scripting::{Callable, DIGEST_LENGTH, Script, ScriptEngine, ScriptFlags, sha1_hex};
use simurgh_storage::Shards;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// So many keys and arguments together need no memory.
const FEW_WORDS: usize = 8;

const NO_SCRIPT: CommandError = CommandError::Text("NOSCRIPT No matching script. Please use EVAL.");

/// EVAL script numkeys \[key ...\] \[arg ...\].
pub fn eval(client: &mut Client, args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    evaluate(client, args, shards, false)
}

/// EVAL_RO script numkeys \[key ...\] \[arg ...\].
pub fn eval_ro(client: &mut Client, args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    evaluate(client, args, shards, true)
}

/// EVALSHA sha1 numkeys \[key ...\] \[arg ...\].
pub fn evalsha(client: &mut Client, args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    evaluate_kept(client, args, shards, false)
}

/// EVALSHA_RO sha1 numkeys \[key ...\] \[arg ...\].
pub fn evalsha_ro(client: &mut Client, args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    evaluate_kept(client, args, shards, true)
}

/// How many of the words are keys.
fn key_count(args: &Args<'_>) -> Result<usize, CommandError> {
    let count = parse_i64(args.at(2)).ok_or(CommandError::NotAnInteger)?;
    if count > i64::try_from(args.len() - 3).unwrap_or(i64::MAX) {
        return Err(CommandError::Text("ERR Number of keys can't be greater than number of args"));
    }
    usize::try_from(count).map_err(|_| CommandError::Text("ERR Number of keys can't be negative"))
}

fn evaluate(client: &mut Client, args: &Args<'_>, shards: &mut dyn Shards, is_ro: bool) -> Result<(), CommandError> {
    show_monitors(client, args, is_ro, false);
    let keys = key_count(args)?;
    let digest = sha1_hex(args.at(1));
    let known = client.node.scripting.cache().find(&digest);
    let script = match known {
        Some(script) => script,
        None => {
            let script = read(client, &digest, args.at(1))?;
            client.node.scripting.cache().keep_for_now(&digest, script.clone());
            script
        }
    };
    run(client, args, shards, (&digest, &script, keys), is_ro)
}

fn evaluate_kept(
    client: &mut Client,
    args: &Args<'_>,
    shards: &mut dyn Shards,
    is_ro: bool,
) -> Result<(), CommandError> {
    show_monitors(client, args, is_ro, true);
    let digest = digest_of(args.at(1)).ok_or(NO_SCRIPT)?;
    let keys = key_count(args)?;
    let script = client.node.scripting.cache().find(&digest).ok_or(NO_SCRIPT)?;
    run(client, args, shards, (&digest, &script, keys), is_ro)
}

/// Monitors are shown the script before its commands.
fn show_monitors(client: &mut Client, args: &Args<'_>, is_ro: bool, is_kept: bool) {
    use simurgh_protocol::command::{Command, ConnectionCommand};
    if client.node.monitor_count.load(Relaxed) > 0 && !client.wants_all {
        let command = match (is_kept, is_ro) {
            (false, false) => ConnectionCommand::Eval,
            (false, true) => ConnectionCommand::EvalRo,
            (true, false) => ConnectionCommand::Evalsha,
            (true, true) => ConnectionCommand::EvalshaRo,
        };
        super::monitor::show(client, Command::Connection(command), args);
    }
}

/// A digest as it is kept: in small letters.
pub(crate) fn digest_of(word: &[u8]) -> Option<Cow<'_, str>> {
    let text = std::str::from_utf8(word).ok().filter(|text| text.len() == DIGEST_LENGTH)?;
    let is_small = !text.bytes().any(|byte| byte.is_ascii_uppercase());
    Some(if is_small { Cow::Borrowed(text) } else { Cow::Owned(text.to_ascii_lowercase()) })
}

/// Reads a script that is not kept yet.
pub(crate) fn read(client: &Client, digest: &str, source: &[u8]) -> Result<Arc<Script>, CommandError> {
    let script = Script::new(source).map_err(|error| CommandError::Owned(error.to_string()))?;
    with_engine(&client.node, Engines::Scripts, |engine| {
        engine.compile(digest, &script).map_err(|fault| {
            let text = [b"ERR Error compiling script (new function): ".as_slice(), &fault].concat();
            CommandError::Repeats(text.into())
        })
    })?;
    Ok(Arc::new(script))
}

/// What a script with these flags may do now.
pub(crate) fn rules(client: &Client, flags: ScriptFlags, is_ro: bool) -> Result<Rules, CommandError> {
    let has_no_room = client.is_without_room();
    if !flags.are_given {
        return Ok(Rules { reads_only: is_ro, has_no_room });
    }
    if is_ro && !flags.no_writes {
        return Err(CommandError::Text("ERR Can not execute a script with write flag using *_ro command."));
    }
    if !flags.no_writes && client.is_refused_by_log() {
        let why = client.node.log.refusal().unwrap_or_default();
        return Err(CommandError::Owned(format!("MISCONF Errors writing to the AOF file: {why}")));
    }
    if has_no_room && !flags.allow_oom && !flags.no_writes {
        return Err(CommandError::Text("OOM command not allowed when used memory > 'maxmemory'."));
    }
    Ok(Rules { reads_only: is_ro || flags.no_writes, has_no_room: has_no_room && !flags.allow_oom })
}

fn run(
    client: &mut Client,
    args: &Args<'_>,
    shards: &mut dyn Shards,
    (digest, script, key_count): (&str, &Script, usize),
    is_ro: bool,
) -> Result<(), CommandError> {
    let rules = rules(client, script.flags, is_ro)?;
    let callable = Callable::Script { digest, script };
    let mut few: [&[u8]; FEW_WORDS] = [&[]; FEW_WORDS];
    if let Some(words) = few.get_mut(..args.len() - 3) {
        words.iter_mut().zip(args.from(3)).for_each(|(to, word)| *to = word);
        return execute(client, shards, callable, words.split_at(key_count), rules);
    }
    let words: Vec<&[u8]> = args.from(3).collect();
    execute(client, shards, callable, words.split_at(key_count), rules)
}
