//! Fields whose time has come: removed by whoever names them, and by the cron in bounded steps.

use super::Hash;
use crate::collection::Edit;
use crate::context::Context;
use crate::effects::Effects;
use crate::key_hash::{Key, KeyHasher};
use crate::notify::{Class, Event};
use crate::shard::Shard;

/// Fields that one command removes at most when it names none.
const FORGOTTEN_MAX: usize = 64;

/// Removes those of `fields` whose time has come, logs it and tells of it. A handler that is about to look at or change fields calls
/// this first; where nothing is due in the whole database, that costs one comparison.
pub(super) fn forget_expired<'f>(cx: &mut Context<'_>, key: &Key<'_>, fields: impl Iterator<Item = &'f [u8]>) {
    let now_ms = cx.now_ms;
    let Some(mut hash) = with_due(cx, key) else { return };
    let is_over = |hash: &Hash, field: &[u8]| hash.find(field).is_some_and(|row| !row.is_live(now_ms));
    let gone: Vec<&[u8]> = fields.filter(|field| is_over(&hash, field) && hash.remove(field)).collect();
    drop(hash);
    tell_gone(cx, key, &gone);
}

/// [`forget_expired`] of a command that only reads, which leaves things as they are while the keyspace stands still.
pub(super) fn forget_read<'f>(cx: &mut Context<'_>, key: &Key<'_>, fields: impl Iterator<Item = &'f [u8]>) {
    if !cx.effects.keeps_expired {
        forget_expired(cx, key, fields);
    }
}

/// As [`forget_read`], for a command that names no fields: of those whose time has come, the first.
pub(super) fn forget_some_expired(cx: &mut Context<'_>, key: &Key<'_>) {
    let now_ms = cx.now_ms;
    if cx.effects.keeps_expired {
        return;
    }
    let Some(mut hash) = with_due(cx, key) else { return };
    let gone: Vec<Vec<u8>> = std::iter::from_fn(|| hash.take_due(now_ms)).take(FORGOTTEN_MAX).collect();
    drop(hash);
    tell_gone(cx, key, &gone.iter().map(Vec::as_slice).collect::<Vec<_>>());
}

/// The hash to be changed, if some field's time may have come.
fn with_due<'c>(cx: &'c mut Context<'_>, key: &Key<'_>) -> Option<Edit<'c, Hash>> {
    let now_ms = cx.now_ms;
    if cx.replaying || !cx.database_of(key).has_field_due(now_ms) {
        return None;
    }
    cx.peek(key)?;
    cx.database_of(key).occupied(key).and_then(Edit::new)
}

fn tell_gone(cx: &mut Context<'_>, key: &Key<'_>, gone: &[&[u8]]) {
    if gone.is_empty() {
        return;
    }
    let database = cx.database;
    cx.shard_of(key).stats.expired_fields += gone.len() as u64;
    cx.effects.record(database, &[&[b"HDEL", key.bytes][..], gone].concat());
    cx.tell_watchers(key);
    cx.notify(Class::HASH, "hexpired", key);
    cx.notify_if_gone(key);
}

/// Removes at most `limit` fields that are due, recording them and telling of them; `events` are the classes that somebody wants to hear
/// of. Returns whether more are due.
pub fn expire_fields(
    shard: &mut Shard,
    hasher: &KeyHasher,
    now_ms: i64,
    limit: usize,
    events: Class,
    effects: &mut Effects,
) -> bool {
    let mut left = limit;
    for database in 0..shard.databases() {
        while let Some(bytes) = shard.database(database).field_due(now_ms) {
            if left == 0 {
                return true;
            }
            let key = hasher.key(&bytes);
            let Some(mut hash) = shard.database_mut(database).occupied(&key).and_then(Edit::<Hash>::new) else { break };
            let gone: Vec<Vec<u8>> = std::iter::from_fn(|| hash.take_due(now_ms)).take(left).collect();
            drop(hash);
            debug_assert!(!gone.is_empty(), "the index knows what is due");
            if gone.is_empty() {
                break;
            }
            left -= gone.len();
            shard.stats.expired_fields += gone.len() as u64;
            tell(shard, database, &key, &gone, events, effects);
        }
    }
    false
}

/// Records the removal of fields, and tells watchers and subscribers.
fn tell(shard: &mut Shard, database: usize, key: &Key<'_>, gone: &[Vec<u8>], events: Class, effects: &mut Effects) {
    let mut words: Vec<&[u8]> = vec![b"HDEL", key.bytes];
    words.extend(gone.iter().map(Vec::as_slice));
    effects.record(database, &words);
    shard.key_changed(database, key.bytes);
    effects.touch(key.bytes);
    let is_gone = shard.database(database).get(key).is_none();
    let told = [(Class::HASH, "hexpired", true), (Class::GENERIC, "del", is_gone)];
    for (class, name, happened) in told {
        if happened && events.meets(class) {
            effects.events.push(Event { class, name, database, key: key.bytes.into() });
        }
    }
}
