//! Commands on keys whatever their values: DEL, EXISTS, TYPE, RENAME, COPY, MOVE and their like.
//!
//! Commands: <https://redis.io/docs/latest/commands/?group=generic>. A key lies in one allocation with its value, so a rename,
//! a move and a copy all build the new entry from a view of the old one: one allocation, one copy, whatever the size.

use crate::context::Context;
use crate::entry::{Entry, EntryRef};
use crate::hash::Key;
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
    count_keys(cx, args, |cx, key| cx.remove(key));
    Ok(())
}

/// `UNLINK key [key ...]`: as DEL. A value is one allocation, so there is nothing to free in the background.
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

/// The same entry under another key.
fn under(key: &Key<'_>, entry: EntryRef<'_>) -> Entry {
    Entry::new(key.bytes, entry.value(), entry.encoding(), entry.expires_at(), entry.access())
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
    let entry = cx.peek(&from).map(|entry| under(&to, entry)).ok_or(CommandError::NoSuchKey)?;
    cx.remove(&from);
    cx.put(&to, entry);
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
    if is_possible && let Some(entry) = cx.peek(&key).map(|entry| under(&key, entry)) {
        cx.remove(&key);
        cx.in_database(target, |cx| cx.put(&key, entry));
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
        let entry = Entry::new(to.bytes, source.value(), source.encoding(), source.expires_at(), access);
        cx.in_database(target, |cx| cx.put(&to, entry));
        cx.effects.change();
    }
    cx.reply.integer(i64::from(is_copied));
    Ok(())
}
