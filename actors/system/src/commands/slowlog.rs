//! SLOWLOG: the commands that took longest, kept in memory, newest first.

use crate::client::Client;
use crate::clients::ClientShared;
use crate::commands::redaction::shown;
use crate::node::Node;
use simurgh_kernel::time;
use simurgh_protocol::command::{Command, replies::help as write_help};
use simurgh_protocol::config::Config;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError, Reply};
use simurgh_storage::Shards;
use std::collections::VecDeque;
use std::sync::{MutexGuard, PoisonError};

/// How many words of a command are kept.
const WORDS_MAX: usize = 32;
/// How many bytes of a word are kept.
const WORD_BYTES_MAX: usize = 128;
/// How many entries SLOWLOG GET answers when nobody says.
const ANSWERED: usize = 10;

/// One slow command.
#[derive(Debug)]
struct Entry {
    id: i64,
    time_s: i64,
    micros: u64,
    words: Vec<Vec<u8>>,
    address: String,
    name: Vec<u8>,
}

/// The slow commands of a node, newest first.
#[derive(Debug, Default)]
pub struct SlowLog {
    next_id: i64,
    entries: VecDeque<Entry>,
}

impl SlowLog {
    fn add(&mut self, mut entry: Entry, len_max: u64) {
        entry.id = self.next_id;
        self.next_id += 1;
        self.entries.push_front(entry);
        self.entries.truncate(usize::try_from(len_max).unwrap_or(usize::MAX));
    }
}

fn lock(node: &Node) -> MutexGuard<'_, SlowLog> {
    node.slow_log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The words of a command as they are kept: long ones and many of them cut, with a note of what is missing.
fn kept_words(command: Command, args: &Args<'_>) -> Vec<Vec<u8>> {
    let count = args.len();
    let kept = if count > WORDS_MAX { WORDS_MAX - 1 } else { count };
    let mut words: Vec<Vec<u8>> = (0..kept).map(|index| kept_word(shown(command, args, index))).collect();
    if kept < count {
        words.push(format!("... ({} more arguments)", count - kept).into_bytes());
    }
    words
}

fn kept_word(word: &[u8]) -> Vec<u8> {
    if word.len() <= WORD_BYTES_MAX {
        return word.to_vec();
    }
    let mut kept = word[..WORD_BYTES_MAX].to_vec();
    kept.extend_from_slice(format!("... ({} more bytes)", word.len() - WORD_BYTES_MAX).as_bytes());
    kept
}

/// A command took long enough to be kept. EXEC is not: the commands of its transaction are.
#[cold]
pub(crate) fn record(
    node: &Node,
    client: &ClientShared,
    config: &Config,
    command: Command,
    args: &Args<'_>,
    micros: u64,
) {
    if command == crate::commands::EXEC {
        return;
    }
    let entry = Entry {
        id: 0,
        time_s: time::wall_ms() / 1000,
        micros,
        words: kept_words(command, args),
        address: client.address.remote.to_string(),
        name: client.texts().name.clone(),
    };
    lock(node).add(entry, config.slowlog_len_max);
}

fn write_entry(entry: &Entry, reply: &mut Reply) {
    reply.array(6);
    reply.integer(entry.id);
    reply.integer(entry.time_s);
    reply.integer(i64::try_from(entry.micros).unwrap_or(i64::MAX));
    reply.array(entry.words.len());
    entry.words.iter().for_each(|word| reply.bulk(word));
    reply.bulk(entry.address.as_bytes());
    reply.bulk(&entry.name);
}

/// SLOWLOG GET \[count\].
pub fn get(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    if args.len() > 3 {
        return Err(super::wrong_subcommand(args, "SLOWLOG"));
    }
    let wanted = match args.get(2).map(parse_i64) {
        None => ANSWERED,
        Some(Some(-1)) => usize::MAX,
        Some(count) => count
            .and_then(|count| usize::try_from(count).ok())
            .ok_or(CommandError::Text("ERR count should be greater than or equal to -1"))?,
    };
    let node = client.node.clone();
    let log = lock(&node);
    client.reply.array(wanted.min(log.entries.len()));
    log.entries.iter().take(wanted).for_each(|entry| write_entry(entry, &mut client.reply));
    Ok(())
}

/// SLOWLOG LEN.
pub fn len(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let count = lock(&client.node).entries.len();
    client.reply.count(count);
    Ok(())
}

/// SLOWLOG RESET.
pub fn reset(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    lock(&client.node).entries.clear();
    client.reply.ok();
    Ok(())
}

/// SLOWLOG HELP.
pub fn help(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let lines = [
        "GET [<count>]",
        "    List the newest <count> slow commands (10 unless given, all for -1).",
        "    Each has its id, its time, its microseconds, its arguments, the client's",
        "    address and the client's name.",
        "LEN",
        "    Count the slow commands that are kept.",
        "RESET",
        "    Forget them.",
    ];
    write_help("SLOWLOG", &lines, &mut client.reply);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(micros: u64) -> Entry {
        Entry { id: 0, time_s: 0, micros, words: Vec::new(), address: String::new(), name: Vec::new() }
    }

    #[test]
    fn the_newest_stay_and_ids_go_on() {
        let mut log = SlowLog::default();
        (0..5).for_each(|micros| log.add(entry(micros), 2));
        let kept: Vec<(i64, u64)> = log.entries.iter().map(|entry| (entry.id, entry.micros)).collect();
        assert_eq!(kept, [(4, 4), (3, 3)]);
        log.add(entry(9), 0);
        assert!(log.entries.is_empty());
        log.add(entry(9), 1);
        assert_eq!(log.entries[0].id, 6);
    }

    #[test]
    fn long_words_are_cut() {
        assert_eq!(kept_word(&[b'x'; 128]).len(), 128);
        let cut = kept_word(&[b'x'; 200]);
        assert_eq!(&cut[127..], b"x... (72 more bytes)");
    }
}
