//! The toy's commands: what the workloads use, and no more.

use simurgh_protocol::resp::{Protocol, Reply};

use super::{State, hashes, lists};
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
        if words.first().is_some_and(|name| name == b"RPUSH") {
            state.waiting.served_left = 1;
        }
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
        [b"RPUSH", key, items @ ..] => {
            let list = lookup(state, changes, key).unwrap_or_default();
            let mut all = lists::items(Some(&list));
            all.extend(items);
            changes.push((key.to_vec(), lists::join(&all)));
            reply.integer(all.len() as i64);
        }
        [b"LRANGE", key, ..] => {
            let list = lookup(state, changes, key).unwrap_or_default();
            let items = lists::items(Some(&list));
            reply.array(items.len());
            items.iter().for_each(|item| reply.bulk(item));
        }
        [
            b"LPUSH" | b"LPOP" | b"RPOP" | b"HSET" | b"HDEL" | b"HPEXPIREAT" | b"HGETALL" | b"HPEXPIRETIME",
            key,
            rest @ ..,
        ] => {
            let value = lookup(state, changes, key).unwrap_or_default();
            if let Some(changed) = of_types(words[0], rest, &value, reply) {
                changes.push((key.to_vec(), changed));
            }
        }
        // Types that the toy does not have, where they are looked for.
        [b"SMEMBERS" | b"ZRANGE" | b"XRANGE", ..] => reply.array(0),
        [b"INCR", key] => add(state, changes, key, 1, reply),
        [b"INCRBY", key, amount] => add(state, changes, key, integer(amount), reply),
        [b"DECRBY", key, amount] => add(state, changes, key, -integer(amount), reply),
        _ => reply.error("ERR the toy does not know this"),
    }
}

/// Commands of lists and hashes: the value after them, if they change it.
fn of_types(name: &[u8], rest: &[&[u8]], value: &[u8], reply: &mut Reply) -> Option<Vec<u8>> {
    let mut list = lists::items(Some(value));
    let mut fields = if name.starts_with(b"H") { hashes::fields(Some(value)) } else { Vec::new() };
    match (name, rest) {
        (b"LPUSH", [item]) => {
            list.insert(0, item);
            reply.integer(list.len() as i64);
            return Some(lists::join(&list));
        }
        (b"LPOP" | b"RPOP", _) => {
            let place = if name == b"LPOP" { 0 } else { list.len().saturating_sub(1) };
            if list.is_empty() {
                reply.null();
                return None;
            }
            reply.bulk(list.remove(place));
            return Some(lists::join(&list));
        }
        (b"HSET", [field, value]) => {
            fields.retain(|(other, _, _)| other != field);
            fields.push((field.to_vec(), value.to_vec(), -1));
            reply.integer(1);
        }
        (b"HDEL", [field]) => {
            fields.retain(|(other, _, _)| other != field);
            reply.integer(1);
        }
        (b"HPEXPIREAT", [at, _, _, field]) => {
            fields.iter_mut().filter(|(other, _, _)| other == field).for_each(|held| held.2 = integer(at));
            reply.integer(1);
        }
        (b"HGETALL", _) => {
            reply.array(fields.len() * 2);
            fields.iter().for_each(|(field, value, _)| {
                reply.bulk(field);
                reply.bulk(value);
            });
            return None;
        }
        (_, [_, _, names @ ..]) => {
            reply.array(names.len());
            for name in names {
                reply.integer(fields.iter().find(|(field, _, _)| field == name).map_or(-2, |(_, _, at)| *at));
            }
            return None;
        }
        _ => {
            reply.error("ERR the toy does not know this");
            return None;
        }
    }
    Some(hashes::value(&fields))
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
