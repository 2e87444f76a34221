//! The toy's commands: what the workloads use, and no more.

use simurgh_protocol::resp::{Protocol, Reply};

use super::State;
use crate::options::Mistake;

type Changes = Vec<(Vec<u8>, Vec<u8>)>;

/// A connection's state: the transaction it has open.
#[derive(Debug, Default)]
pub struct Session {
    queued: Option<Vec<Vec<Vec<u8>>>>,
}

impl Session {
    /// Handles one request and appends its reply.
    pub fn handle(&mut self, state: &mut State, words: Vec<Vec<u8>>, out: &mut Vec<u8>, mistake: Option<Mistake>) {
        let mut reply = Reply::new(Protocol::Resp2);
        let name = words.first().cloned().unwrap_or_default();
        match (name.as_slice(), &mut self.queued) {
            (b"MULTI", None) => {
                self.queued = Some(Vec::new());
                reply.ok();
            }
            (b"EXEC", queued) => {
                let queued = queued.take().unwrap_or_default();
                reply.array(queued.len());
                transaction(state, &queued, &mut reply, mistake == Some(Mistake::SplitTransaction));
            }
            (_, Some(queued)) => {
                queued.push(words);
                reply.simple("QUEUED");
            }
            (_, None) => transaction(state, &[words], &mut reply, false),
        }
        out.extend_from_slice(reply.bytes());
    }
}

/// Runs commands as one record of the log, unless split.
fn transaction(state: &mut State, commands: &[Vec<Vec<u8>>], reply: &mut Reply, split: bool) {
    let mut changes = Changes::new();
    for words in commands {
        let before = changes.len();
        command(state, &mut changes, words, reply);
        if split && changes.len() > before {
            state.set(std::mem::take(&mut changes));
        }
    }
    if !changes.is_empty() {
        state.set(changes);
    }
}

fn command(state: &State, changes: &mut Changes, words: &[Vec<u8>], reply: &mut Reply) {
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    match words.as_slice() {
        [b"PING"] => reply.simple("PONG"),
        [b"GET", key] => match lookup(state, changes, key) {
            Some(value) => reply.bulk(&value),
            None => reply.null(),
        },
        [b"MGET", keys @ ..] => {
            reply.array(keys.len());
            for key in keys {
                match lookup(state, changes, key) {
                    Some(value) => reply.bulk(&value),
                    None => reply.null(),
                }
            }
        }
        [b"SET", key, value] => {
            changes.push((key.to_vec(), value.to_vec()));
            reply.ok();
        }
        [b"INCR", key] => add(state, changes, key, 1, reply),
        [b"INCRBY", key, amount] => add(state, changes, key, integer(amount), reply),
        [b"DECRBY", key, amount] => add(state, changes, key, -integer(amount), reply),
        _ => reply.error("ERR the toy does not know this"),
    }
}

fn add(state: &State, changes: &mut Changes, key: &[u8], amount: i64, reply: &mut Reply) {
    let sum = lookup(state, changes, key).map_or(0, |value| integer(&value)) + amount;
    changes.push((key.to_vec(), sum.to_string().into_bytes()));
    reply.integer(sum);
}

/// A key's value as the transaction sees it.
fn lookup(state: &State, changes: &Changes, key: &[u8]) -> Option<Vec<u8>> {
    let changed = changes.iter().rev().find(|(changed, _)| changed == key);
    changed.map(|(_, value)| value.clone()).or_else(|| state.get(key).cloned())
}

fn integer(text: &[u8]) -> i64 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}
