//! Commands on a whole database: KEYS, RANDOMKEY, DBSIZE, FLUSHDB, FLUSHALL, SWAPDB. They hold every shard while they
//! run, but for a KEYS over many keys (see `walk.rs`).
//!
//! A flush takes the tables away and leaves empty ones, which costs the same whatever was in them; freeing what was taken is
//! done at once (SYNC) or handed on to be done off the path (ASYNC).

use crate::context::Context;
use crate::database::Discarded;
use simurgh_protocol::glob::Glob;
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
    let pattern = Glob::new(args.at(1));
    let mark = cx.reply.open_array();
    let mut count = 0;
    for index in 0..cx.layout.shards {
        cx.shards.shard(index).database(cx.database).for_each(|entry| {
            let is_live = entry.expires_at().is_none_or(|at| at > cx.now_ms);
            if is_live && pattern.matches(entry.key()) {
                cx.reply.bulk(entry.key());
                count += 1;
            }
        });
    }
    cx.reply.close_array(mark, count);
    Ok(())
}

/// How often RANDOMKEY draws while expired keys stay; then it answers one of them, as Redis does.
const DRAWS_MAX: u32 = 100;

/// `RANDOMKEY`: a key, each as likely as any other, or null. Expired keys that it meets are removed, so it ends.
pub fn randomkey(cx: &mut Context<'_>, _args: &Args<'_>) -> Result<(), CommandError> {
    for draw in 1.. {
        let count = key_count(cx);
        if count == 0 {
            cx.reply.null();
            return Ok(());
        }
        let rank = cx.random.below(count);
        let Some(key) = key_at(cx, rank) else { continue };
        if cx.peek(&cx.key(&key)).is_some() || (cx.effects.keeps_expired && draw >= DRAWS_MAX) {
            cx.reply.bulk(&key);
            return Ok(());
        }
    }
    Ok(())
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
    cx.effects.touch_all();
    cx.effects.flush_all();
    cx.reply.ok();
    Ok(())
}

/// `FLUSHDB [ASYNC|SYNC]`.
pub fn flushdb(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let lazily = is_lazy(cx, args)?;
    flush(cx, cx.database, lazily);
    cx.effects.force();
    cx.effects.touch_all();
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
        cx.effects.ready.extend(shard.awaited_now(database));
        cx.effects.change_many(shard.database(database).len() as u64);
        if let Some(taken) = shard.flush_database(database).filter(|_| lazily) {
            cx.discarded.push(Discarded::Database(taken));
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
        drop_expired_watched(cx, first, second);
        drop_expired_watched(cx, second, first);
        for index in 0..cx.layout.shards {
            let shard = cx.shards.shard(index);
            shard.swap_databases(first, second);
            cx.effects.ready.extend(shard.awaited_now(first));
            cx.effects.ready.extend(shard.awaited_now(second));
        }
    }
    cx.effects.change();
    cx.reply.ok();
    Ok(())
}

/// Removes from `arriving` what has expired of the keys that are watched in `database`: to their watchers those keys are
/// not there, so bringing them is no change, and neither is their removal later on.
fn drop_expired_watched(cx: &mut Context<'_>, database: usize, arriving: usize) {
    let mut watched = Vec::new();
    cx.each_shard(|shard| watched.append(&mut shard.watched_in(database)));
    cx.in_database(arriving, |cx| {
        for bytes in &watched {
            let key = cx.key(bytes);
            cx.peek(&key);
        }
    });
}

/// The number of a database as SWAPDB reads it, before its range is checked.
fn database_index(text: &[u8], error: &'static str) -> Result<i32, CommandError> {
    parse_i64(text).and_then(|number| i32::try_from(number).ok()).ok_or(CommandError::Text(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;
    use crate::shard::WatchFlag;
    use crate::{expire, generic, string};

    /// A fixture with keys `a0` to `a9` in database 0, `b0` to `b4` in database 1.
    fn filled() -> Fixture {
        let mut fixture = Fixture::new();
        for (database, letter, count) in [(1, 'b', 5), (0, 'a', 10)] {
            fixture.database = database;
            for index in 0..count {
                fixture.reply(string::setnx, &["SETNX", &format!("{letter}{index}"), "v"]);
            }
        }
        fixture
    }

    fn watch(fixture: &mut Fixture, database: usize, name: &str) -> WatchFlag {
        let (key, flag) = (fixture.layout.hasher.key(name.as_bytes()), WatchFlag::default());
        let shard = fixture.layout.shard_of(&key);
        fixture.shards[shard].watch(database, &key, &flag);
        flag
    }

    fn discarded_keys(fixture: &Fixture) -> usize {
        let keys = |discarded: &Discarded| match discarded {
            Discarded::Database(database) => database.len(),
            Discarded::Collection(_) => 0,
        };
        fixture.discarded.iter().map(keys).sum()
    }

    #[test]
    fn keys_lists_what_matches_and_has_not_expired() {
        let mut fixture = filled();
        fixture.reply(expire::pexpire, &["PEXPIRE", "a3", "5"]);
        fixture.now_ms += 5;
        let mut found: Vec<_> = fixture.reply(keys, &["KEYS", "a[2-4]"]).split(' ').map(str::to_owned).collect();
        found.sort();
        assert_eq!(found, ["", "$2", "$2", "*2", "a2", "a4"]);
        assert_eq!(fixture.reply(keys, &["KEYS", "x*"]), "*0 ");
        // It looked, and left no trace.
        assert_eq!(fixture.run(dbsize, &["DBSIZE"]), (":10 ".into(), vec![]));
    }

    #[test]
    fn randomkey_finds_every_key_and_removes_expired_ones() {
        let mut fixture = filled();
        let mut counts = [0; 10];
        for _ in 0..1000 {
            let reply = fixture.reply(randomkey, &["RANDOMKEY"]);
            counts[reply.trim_end().strip_prefix("$2 a").unwrap().parse::<usize>().unwrap()] += 1;
        }
        assert!(counts.iter().all(|count| (50..200).contains(count)), "{counts:?}");
        for index in 0..9 {
            fixture.reply(expire::pexpire, &["PEXPIRE", &format!("a{index}"), "5"]);
        }
        fixture.now_ms += 5;
        for _ in 0..50 {
            assert_eq!(fixture.reply(randomkey, &["RANDOMKEY"]), "$2 a9 ");
        }
        assert_eq!(fixture.reply(dbsize, &["DBSIZE"]), ":1 ");
        fixture.reply(expire::pexpire, &["PEXPIRE", "a9", "5"]);
        fixture.now_ms += 5;
        assert_eq!(fixture.run(randomkey, &["RANDOMKEY"]), ("$-1 ".into(), vec!["DEL a9".into()]));
    }

    /// Redis 8.2.3 logs a flush of what is empty, too.
    #[test]
    fn flushes_empty_and_are_always_recorded() {
        let mut fixture = filled();
        let (here, absent) = (watch(&mut fixture, 0, "a1"), watch(&mut fixture, 0, "zz"));
        assert_eq!(fixture.run(flushdb, &["FLUSHDB", "foo"]), ("-ERR syntax error ".into(), vec![]));
        assert_eq!(fixture.run(flushall, &["FLUSHALL", "ASYNC", "SYNC"]), ("-ERR syntax error ".into(), vec![]));
        assert_eq!(fixture.run(flushdb, &["FLUSHDB"]), ("+OK ".into(), vec!["FLUSHDB".into()]));
        assert!(here.is_set() && !absent.is_set());
        assert_eq!(fixture.run(flushdb, &["FLUSHDB"]), ("+OK ".into(), vec!["FLUSHDB".into()]));
        fixture.database = 1;
        assert_eq!(fixture.reply(dbsize, &["DBSIZE"]), ":5 ");
        fixture.database = 0;
        assert_eq!(fixture.run(flushall, &["FLUSHALL", "async"]), ("+OK ".into(), vec!["FLUSHALL async".into()]));
        assert_eq!(discarded_keys(&fixture), 5);
        fixture.database = 1;
        assert_eq!(fixture.reply(dbsize, &["DBSIZE"]), ":0 ");
        assert_eq!(fixture.shards.iter().map(crate::Shard::bytes).sum::<usize>(), 0);
    }

    #[test]
    fn a_flush_is_lazy_by_option_or_else_by_setting() {
        for (lazy, option, is_lazy) in
            [(false, "", false), (true, "", true), (true, "SYNC", false), (false, "ASYNC", true)]
        {
            let mut fixture = filled();
            fixture.settings.lazy_flush = lazy;
            let words = ["FLUSHALL", option];
            fixture.reply(flushall, &words[..1 + usize::from(!option.is_empty())]);
            assert_eq!(fixture.discarded.is_empty(), !is_lazy, "{lazy} {option}");
        }
    }

    /// Redis 8.2.3 answered so.
    #[test]
    fn swapdb_exchanges_and_checks_both_numbers_first() {
        let mut fixture = filled();
        for (one, other, error) in [
            ("0", "99", "-ERR DB index is out of range "),
            ("-1", "0", "-ERR DB index is out of range "),
            ("a", "1", "-ERR invalid first DB index "),
            ("99999999999", "0", "-ERR invalid first DB index "),
            ("99", "a", "-ERR invalid second DB index "),
        ] {
            assert_eq!(fixture.run(swapdb, &["SWAPDB", one, other]), (error.into(), vec![]));
        }
        let flags = [watch(&mut fixture, 0, "a1"), watch(&mut fixture, 0, "b1"), watch(&mut fixture, 0, "c1")];
        assert_eq!(fixture.run(swapdb, &["SWAPDB", "0", "0"]), ("+OK ".into(), vec!["SWAPDB 0 0".into()]));
        assert!(flags.iter().all(|flag| !flag.is_set()));
        assert_eq!(fixture.run(swapdb, &["SWAPDB", "0", "1"]), ("+OK ".into(), vec!["SWAPDB 0 1".into()]));
        assert_eq!(flags.map(|flag| flag.is_set()), [true, true, false]);
        assert_eq!(fixture.reply(dbsize, &["DBSIZE"]), ":5 ");
        assert_eq!(fixture.reply(generic::exists, &["EXISTS", "b1", "a1"]), ":1 ");
    }

    #[test]
    fn a_swap_that_brings_an_expired_key_is_no_change_to_who_watches_its_name() {
        let mut fixture = filled();
        fixture.reply(expire::pexpire, &["PEXPIRE", "a1", "5"]);
        let flags = [watch(&mut fixture, 1, "a1"), watch(&mut fixture, 1, "a2")];
        fixture.now_ms += 5;
        assert_eq!(fixture.run(swapdb, &["SWAPDB", "0", "1"]).1, ["DEL a1", "SWAPDB 0 1"]);
        fixture.database = 1;
        assert_eq!(fixture.reply(generic::exists, &["EXISTS", "a1", "a2"]), ":1 ");
        assert_eq!(flags.map(|flag| flag.is_set()), [false, true]);
    }
}
