//! How a snapshot writes a key: as in an RDB file, or as the command that makes it (`aof-use-rdb-preamble no`).

use super::Plan;
use crate::access::{AccessPolicy, idle_seconds};
use crate::entry::EntryRef;
use crate::rdb::dump::dump;
use crate::rdb::write::{Access, write_database, write_front, write_key};
use simurgh_protocol::resp::encode_command;

/// What a snapshot is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An RDB file.
    Rdb,
    /// Commands, as in an append-only file.
    Commands,
}

/// Appends the choice of a database.
pub(super) fn choose_database(out: &mut Vec<u8>, format: Format, database: u32) {
    match format {
        Format::Rdb => write_database(out, database),
        Format::Commands => {
            let number = database.to_string();
            let words: [&[u8]; 2] = [b"SELECT", number.as_bytes()];
            encode_command(out, words.into_iter());
        }
    }
}

/// Appends a key with its value.
pub(super) fn entry(out: &mut Vec<u8>, plan: &Plan, entry: EntryRef<'_>) {
    match plan.format {
        Format::Rdb => write_key(out, entry, access_of(plan, entry), plan.compresses),
        Format::Commands => command(out, entry),
    }
}

/// What stands before the elements of a collection that are written by themselves, the key with it, and what stands behind them.
pub(super) fn around(plan: &Plan, entry: EntryRef<'_>) -> (Vec<u8>, Vec<u8>) {
    let (mut front, mut tail) = (Vec::new(), Vec::new());
    match (plan.format, entry.expires_at()) {
        (Format::Rdb, _) => write_front(&mut front, entry, access_of(plan, entry)),
        (Format::Commands, None) => {}
        (Format::Commands, Some(at)) => {
            let at = at.to_string();
            encode_command(&mut tail, [&b"PEXPIREAT"[..], entry.key(), at.as_bytes()].into_iter());
        }
    }
    (front, tail)
}

/// Appends a command.
pub(crate) fn words(out: &mut Vec<u8>, words: &[Vec<u8>]) {
    encode_command(out, words.iter().map(Vec::as_slice));
}

/// Appends the command that gives a field its expiry.
pub(super) fn field_expiry(out: &mut Vec<u8>, key: &[u8], field: &[u8], at: i64) {
    let at = at.to_string();
    encode_command(out, [&b"HPEXPIREAT"[..], key, at.as_bytes(), b"FIELDS", b"1", field].into_iter());
}

fn access_of(plan: &Plan, entry: EntryRef<'_>) -> Access {
    match plan.access {
        None => Access::Unknown,
        Some((AccessPolicy::Lru, now_ms)) => Access::IdleSeconds(idle_seconds(entry.access(), now_ms).into()),
        Some((policy @ AccessPolicy::Lfu { .. }, now_ms)) => {
            Access::Frequency(u8::try_from(policy.frequency(entry.access(), now_ms)).unwrap_or(u8::MAX))
        }
    }
}

/// A string as SET, anything else as RESTORE: one command, which takes effect as a whole, whatever the value's size.
fn command(out: &mut Vec<u8>, entry: EntryRef<'_>) {
    let at = entry.expires_at().unwrap_or(0).to_string();
    let (key, at) = (entry.key(), at.as_bytes());
    match entry.string() {
        Ok(value) => value.with_text(|text| match entry.expires_at() {
            None => encode_command(out, [&b"SET"[..], key, text].into_iter()),
            Some(_) => encode_command(out, [&b"SET"[..], key, text, b"PXAT", at].into_iter()),
        }),
        Err(_) => {
            let mut payload = Vec::new();
            dump(&mut payload, entry);
            encode_command(out, [&b"RESTORE"[..], key, at, &payload, b"REPLACE", b"ABSTTL"].into_iter());
        }
    }
}
