//! Commands on keys whatever their values: DEL, EXISTS, TYPE, RENAME, COPY, MOVE and their like.
//!
//! Commands: <https://redis.io/docs/latest/commands/?group=generic>. A rename takes the entry out of the table and
//! puts it back under the other key; a string moves with it, of a collection only its word does.

use crate::context::Context;
use crate::entry::Entry;
use crate::key_hash::Key;
use crate::notify::Class;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};

/// How many of the keys in `args` the closure says yes to; a key that is named twice is asked twice.
fn count_keys(cx: &mut Context<'_>, args: &Args<'_>, says_yes: impl Fn(&mut Context<'_>, &Key<'_>) -> bool) {
    let first = cx.first_key(args);
    let mut count = i64::from(says_yes(cx, &first));
    for bytes in args.from(2) {
        let key = cx.key(bytes);
        count += i64::from(says_yes(cx, &key));
    }
    cx.reply.integer(count);
}

/// `DEL key [key ...]`: how many were removed.
pub fn del(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    count_keys(cx, args, |cx, key| {
        let is_removed = cx.remove(key);
        if is_removed {
            cx.notify(Class::GENERIC, "del", key);
        }
        is_removed
    });
    Ok(())
}

/// `UNLINK key [key ...]`: as DEL, since large values are freed in the background in any case.
pub fn unlink(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    del(cx, args)
}

/// `EXISTS key [key ...]`: how many are there.
pub fn exists(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    count_keys(cx, args, |cx, key| cx.inspect(key).is_some());
    Ok(())
}

/// `TOUCH key [key ...]`: how many are there; each was used just now, even by a client that asked for `CLIENT NO-TOUCH`.
pub fn touch(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let no_touch = std::mem::replace(&mut cx.no_touch, false);
    count_keys(cx, args, |cx, key| cx.read(key).is_some());
    cx.no_touch = no_touch;
    Ok(())
}

/// `TYPE key`: the name of the value's type, or `none`.
pub fn type_of(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let name = cx.inspect(&key).map_or("none", |entry| entry.type_name());
    cx.reply.simple(name);
    Ok(())
}

/// `RENAME key newkey`.
pub fn rename(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    rename_to(cx, args, true)?;
    cx.reply.ok();
    Ok(())
}

/// `RENAMENX key newkey`: 1, or 0 if the new key is there.
pub fn renamenx(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let renamed = rename_to(cx, args, false)?;
    cx.reply.integer(i64::from(renamed));
    Ok(())
}

/// Renames a key; whether it has a new name.
fn rename_to(cx: &mut Context<'_>, args: &Args<'_>, replace: bool) -> Result<bool, CommandError> {
    let (from, to) = (cx.first_key(args), cx.key(args.at(2)));
    // The source is looked up even if nothing will come of it: its absence is the first error.
    if !cx.touch(&from) {
        return Err(CommandError::NoSuchKey);
    }
    if from.bytes == to.bytes || !replace && cx.touch(&to) {
        return Ok(false);
    }
    let entry = cx.take(&from).ok_or(CommandError::NoSuchKey)?;
    cx.changed(&from);
    let new_type = entry.view().type_name();
    let old_type = cx.put(&to, entry.under(to.bytes));
    cx.notify(Class::GENERIC, "rename_from", &from);
    cx.notify(Class::GENERIC, "rename_to", &to);
    cx.notify_overwritten(&to, old_type, new_type);
    Ok(true)
}

/// The number of a database as MOVE and COPY read it.
fn database_number(cx: &Context<'_>, text: &[u8]) -> Result<usize, CommandError> {
    let number = parse_i64(text).ok_or(CommandError::NotAnInteger)?;
    let number = i32::try_from(number)
        .map_err(|_| CommandError::Text("ERR value is out of range, value must between -2147483648 and 2147483647"))?;
    let number = usize::try_from(number).map_err(|_| CommandError::DatabaseOutOfRange)?;
    if number < cx.layout.databases { Ok(number) } else { Err(CommandError::DatabaseOutOfRange) }
}

/// `MOVE key db`: 1, or 0 if the key is not here or already there. Its expiry moves with it.
pub fn move_key(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let target = database_number(cx, args.at(2))?;
    if target == cx.database {
        return Err(CommandError::SameObject);
    }
    let key = cx.first_key(args);
    let is_possible = cx.touch(&key) && !cx.in_database(target, |cx| cx.touch(&key));
    if is_possible && let Some(entry) = cx.take(&key) {
        cx.changed(&key);
        cx.in_database(target, |cx| cx.put(&key, entry));
        cx.notify(Class::GENERIC, "move_from", &key);
        cx.in_database(target, |cx| cx.notify(Class::GENERIC, "move_to", &key));
    }
    cx.reply.integer(i64::from(is_possible));
    Ok(())
}

/// `COPY source destination [DB destination-db] [REPLACE]`: 1, or 0 if there is nothing to copy or something in the way.
pub fn copy(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (mut target, mut replace) = (cx.database, false);
    let mut index = 3;
    while index < args.len() {
        if args.is(index, "REPLACE") {
            replace = true;
        } else if args.is(index, "DB") && index + 1 < args.len() {
            index += 1;
            target = database_number(cx, args.at(index))?;
        } else {
            return Err(CommandError::Syntax);
        }
        index += 1;
    }
    let (from, to) = (cx.first_key(args), cx.key(args.at(2)));
    if target == cx.database && from.bytes == to.bytes {
        return Err(CommandError::SameObject);
    }
    let access = cx.settings.access.fresh(cx.now_ms);
    let is_copied = cx.read(&from).is_some() && (!cx.in_database(target, |cx| cx.touch(&to)) || replace);
    if is_copied && let Some(source) = cx.peek(&from) {
        let (entry, new_type) = (Entry::copy_of(source, to.bytes, access), source.type_name());
        cx.in_database(target, |cx| {
            let old_type = cx.put(&to, entry);
            cx.notify(Class::GENERIC, "copy_to", &to);
            cx.notify_overwritten(&to, old_type, new_type);
        });
        cx.effects.change();
    }
    cx.reply.integer(i64::from(is_copied));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::lru_of_idle;
    use crate::fixture::Fixture;
    use crate::shard::WatchFlag;
    use crate::{expire, object, string};

    /// A fixture with `k` = `v`.
    fn with_k() -> Fixture {
        let mut fixture = Fixture::new();
        fixture.reply(string::setnx, &["SETNX", "k", "v"]);
        fixture
    }

    fn check(fixture: &mut Fixture, handler: crate::fixture::Handler, line: &str, reply: &str, log: &[&str]) {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(
            fixture.run(handler, &words),
            (format!("{reply} "), log.iter().map(ToString::to_string).collect()),
            "{line}"
        );
    }

    #[test]
    fn keys_are_counted_as_often_as_they_are_named() {
        let mut fixture = with_k();
        check(&mut fixture, exists, "EXISTS k k nokey", ":2", &[]);
        check(&mut fixture, touch, "TOUCH k k nokey", ":2", &[]);
        check(&mut fixture, type_of, "TYPE k", "+string", &[]);
        check(&mut fixture, type_of, "TYPE nokey", "+none", &[]);
        check(&mut fixture, del, "DEL nokey", ":0", &[]);
        check(&mut fixture, del, "DEL k k", ":1", &["DEL k k"]);
        check(&mut fixture, unlink, "UNLINK k", ":0", &[]);
    }

    /// Redis 8.2.3 answered so, and logged so.
    #[test]
    fn rename() {
        let mut fixture = with_k();
        check(&mut fixture, super::rename, "RENAME nokey nokey", "-ERR no such key", &[]);
        check(&mut fixture, super::rename, "RENAME nokey k", "-ERR no such key", &[]);
        check(&mut fixture, super::rename, "RENAME k k", "+OK", &[]);
        check(&mut fixture, renamenx, "RENAMENX k k", ":0", &[]);
        check(&mut fixture, renamenx, "RENAMENX nokey nokey", "-ERR no such key", &[]);
        check(&mut fixture, string::setnx, "SETNX other w", ":1", &["SETNX other w"]);
        check(&mut fixture, renamenx, "RENAMENX k other", ":0", &[]);
        fixture.reply(expire::pexpireat, &["PEXPIREAT", "k", "2000000"]);
        check(&mut fixture, super::rename, "RENAME k other", "+OK", &["RENAME k other"]);
        check(&mut fixture, string::get, "GET other", "$1 v", &[]);
        check(&mut fixture, expire::pexpiretime, "PEXPIRETIME other", ":2000000", &[]);
        check(&mut fixture, exists, "EXISTS k", ":0", &[]);
    }

    #[test]
    fn an_expired_source_or_target_is_removed_first_and_that_is_recorded() {
        let mut fixture = with_k();
        fixture.reply(string::setnx, &["SETNX", "old", "1"]);
        fixture.reply(expire::pexpire, &["PEXPIRE", "old", "5"]);
        fixture.now_ms += 5;
        check(&mut fixture, renamenx, "RENAMENX k old", ":1", &["DEL old", "RENAMENX k old"]);
        fixture.reply(expire::pexpire, &["PEXPIRE", "old", "5"]);
        fixture.now_ms += 5;
        check(&mut fixture, super::rename, "RENAME old k", "-ERR no such key", &["DEL old"]);
        check(&mut fixture, copy, "COPY old k", ":0", &[]);
    }

    /// Redis 8.2.3 answered so.
    #[test]
    fn move_between_databases() {
        let out_of_range = "-ERR value is out of range, value must between -2147483648 and 2147483647";
        let mut fixture = with_k();
        check(&mut fixture, move_key, "MOVE nokey 0", "-ERR source and destination objects are the same", &[]);
        check(&mut fixture, move_key, "MOVE k 16", "-ERR DB index is out of range", &[]);
        check(&mut fixture, move_key, "MOVE k -1", "-ERR DB index is out of range", &[]);
        check(&mut fixture, move_key, "MOVE k abc", "-ERR value is not an integer or out of range", &[]);
        check(&mut fixture, move_key, "MOVE k 9999999999", out_of_range, &[]);
        check(&mut fixture, move_key, "MOVE nokey 1", ":0", &[]);
        fixture.reply(expire::pexpireat, &["PEXPIREAT", "k", "2000000"]);
        check(&mut fixture, move_key, "MOVE k 1", ":1", &["MOVE k 1"]);
        check(&mut fixture, string::setnx, "SETNX k w", ":1", &["SETNX k w"]);
        check(&mut fixture, move_key, "MOVE k 1", ":0", &[]);
        fixture.database = 1;
        check(&mut fixture, string::get, "GET k", "$1 v", &[]);
        check(&mut fixture, expire::pexpiretime, "PEXPIRETIME k", ":2000000", &[]);
    }

    /// Redis 8.2.3 answered so.
    #[test]
    fn copy_within_and_between_databases() {
        let mut fixture = with_k();
        for line in ["COPY k k", "COPY k k DB 0", "COPY nokey nokey"] {
            check(&mut fixture, copy, line, "-ERR source and destination objects are the same", &[]);
        }
        check(&mut fixture, copy, "COPY k j DB", "-ERR syntax error", &[]);
        check(&mut fixture, copy, "COPY k j FOO DB 99", "-ERR syntax error", &[]);
        check(&mut fixture, copy, "COPY k k DB 99", "-ERR DB index is out of range", &[]);
        check(&mut fixture, copy, "COPY k k DB abc", "-ERR value is not an integer or out of range", &[]);
        check(&mut fixture, copy, "COPY nokey k", ":0", &[]);
        check(&mut fixture, copy, "COPY k j REPLACE REPLACE", ":1", &["COPY k j REPLACE REPLACE"]);
        check(&mut fixture, copy, "COPY k j", ":0", &[]);
        fixture.reply(expire::pexpireat, &["PEXPIREAT", "k", "2000000"]);
        check(&mut fixture, copy, "COPY k k db 1", ":1", &["COPY k k db 1"]);
        check(&mut fixture, copy, "COPY k k DB 1", ":0", &[]);
        check(&mut fixture, copy, "COPY k k DB 1 REPLACE", ":1", &["COPY k k DB 1 REPLACE"]);
        check(&mut fixture, expire::pexpiretime, "PEXPIRETIME j", ":-1", &[]);
        fixture.database = 1;
        check(&mut fixture, expire::pexpiretime, "PEXPIRETIME k", ":2000000", &[]);
    }

    #[test]
    fn a_move_keeps_the_access_field_and_a_copy_is_fresh() {
        let mut fixture = with_k();
        let key = fixture.layout.hasher.key(b"k");
        let shard = fixture.layout.shard_of(&key);
        let idle = lru_of_idle(50, fixture.now_ms);
        fixture.shards[shard].database_mut(0).occupied(&key).unwrap().set_access(idle);
        check(&mut fixture, object::idletime, "OBJECT IDLETIME k", ":50", &[]);
        check(&mut fixture, copy, "COPY k j", ":1", &["COPY k j"]);
        check(&mut fixture, object::idletime, "OBJECT IDLETIME j", ":0", &[]);
    }

    #[test]
    fn watchers_of_both_keys_are_told() {
        let mut fixture = with_k();
        let flags = [b"k", b"j"].map(|name| {
            let (key, flag) = (fixture.layout.hasher.key(name), WatchFlag::default());
            let shard = fixture.layout.shard_of(&key);
            fixture.shards[shard].watch(0, &key, &flag);
            flag
        });
        check(&mut fixture, super::rename, "RENAME nokey j", "-ERR no such key", &[]);
        assert!(flags.iter().all(|flag| !flag.is_set()));
        check(&mut fixture, super::rename, "RENAME k j", "+OK", &["RENAME k j"]);
        assert!(flags.iter().all(WatchFlag::is_set));
    }
}
