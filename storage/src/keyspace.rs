//! Commands on a whole database: KEYS, RANDOMKEY, DBSIZE, FLUSHDB, FLUSHALL, SWAPDB. They hold every shard while they run.
//!
//! A flush takes the tables away and leaves empty ones, which costs the same whatever was in them; freeing what was taken is
//! done at once (SYNC) or handed on to be done off the path (ASYNC).

use crate::context::Context;
use simurgh_protocol::glob;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};

/// `DBSIZE`: the number of keys, those included whose time has come and that nobody has met since.
pub fn dbsize(cx: &mut Context<'_>, _args: &Args<'_>) -> Result<(), CommandError> {
    let count = key_count(cx);
    cx.reply.integer(count as i64);
    Ok(())
}

/// Keys of the client's database, over all shards.
fn key_count(cx: &mut Context<'_>) -> usize {
    let (database, mut count) = (cx.database, 0);
    cx.each_shard(|shard| count += shard.database(database).len());
    count
}

/// `KEYS pattern`: every key that matches, those that have expired left out (and left alone).
pub fn keys(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let pattern = args.at(1);
    let mark = cx.reply.open_array();
    let mut count = 0;
    for index in 0..cx.layout.shards {
        cx.shards.shard(index).database(cx.database).for_each(|entry| {
            let is_live = entry.expires_at().is_none_or(|at| at > cx.now_ms);
            if is_live && glob::matches(pattern, entry.key()) {
                cx.reply.bulk(entry.key());
                count += 1;
            }
        });
    }
    cx.reply.close_array(mark, count);
    Ok(())
}

/// `RANDOMKEY`: a key, each as likely as any other, or null. Expired keys that it meets are removed, so it ends.
pub fn randomkey(cx: &mut Context<'_>, _args: &Args<'_>) -> Result<(), CommandError> {
    loop {
        let count = key_count(cx);
        if count == 0 {
            cx.reply.null();
            return Ok(());
        }
        let rank = cx.random.below(count);
        let Some(key) = key_at(cx, rank) else { continue };
        if cx.peek(&cx.key(&key)).is_some() {
            cx.reply.bulk(&key);
            return Ok(());
        }
    }
}

/// The key with this rank in the client's database, over all shards.
fn key_at(cx: &mut Context<'_>, mut rank: usize) -> Option<Vec<u8>> {
    for index in 0..cx.layout.shards {
        let database = cx.shards.shard(index).database(cx.database);
        if rank < database.len() {
            return database.nth(rank).map(|entry| entry.key().to_vec());
        }
        rank -= database.len();
    }
    None
}

/// `FLUSHALL [ASYNC|SYNC]`.
pub fn flushall(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let lazily = is_lazy(cx, args)?;
    for database in 0..cx.layout.databases {
        flush(cx, database, lazily);
    }
    cx.effects.force();
    cx.reply.ok();
    Ok(())
}

/// `FLUSHDB [ASYNC|SYNC]`.
pub fn flushdb(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let lazily = is_lazy(cx, args)?;
    flush(cx, cx.database, lazily);
    cx.effects.force();
    cx.reply.ok();
    Ok(())
}

/// Whether a flush frees off the path, by its option or else by the setting.
fn is_lazy(cx: &Context<'_>, args: &Args<'_>) -> Result<bool, CommandError> {
    match args.len() {
        1 => Ok(cx.settings.lazy_flush),
        2 if args.is(1, "ASYNC") => Ok(true),
        2 if args.is(1, "SYNC") => Ok(false),
        _ => Err(CommandError::Syntax),
    }
}

/// Empties a database in every shard.
fn flush(cx: &mut Context<'_>, database: usize, lazily: bool) {
    for index in 0..cx.layout.shards {
        let shard = cx.shards.shard(index);
        if shard.database(database).is_empty() {
            continue;
        }
        let taken = shard.take_database(database);
        cx.effects.change_many(taken.len() as u64);
        if lazily {
            cx.discarded.push(taken);
        }
    }
}

/// `SWAPDB index1 index2`: every client of the one sees the other's keys.
pub fn swapdb(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let first = database_index(args.at(1), "ERR invalid first DB index")?;
    let second = database_index(args.at(2), "ERR invalid second DB index")?;
    let in_range = |number: i32| match usize::try_from(number) {
        Ok(number) if number < cx.layout.databases => Ok(number),
        _ => Err(CommandError::DatabaseOutOfRange),
    };
    let (first, second) = (in_range(first)?, in_range(second)?);
    if first != second {
        cx.each_shard(|shard| shard.swap_databases(first, second));
    }
    cx.effects.change();
    cx.reply.ok();
    Ok(())
}

/// The number of a database as SWAPDB reads it, before its range is checked.
fn database_index(text: &[u8], error: &'static str) -> Result<i32, CommandError> {
    parse_i64(text).and_then(|number| i32::try_from(number).ok()).ok_or(CommandError::Text(error))
}
