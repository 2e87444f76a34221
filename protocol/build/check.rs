//! Whether one row makes sense by itself. What needs the other rows is checked in `table.rs`.

use crate::row::{Argument, Key, Place, Row, Shards};

/// The flags that a row may carry, in the order in which `COMMAND INFO` shows them. `movablekeys` follows from
/// the key specs and so is not for rows to say.
pub const FLAGS: &[&str] = &[
    "write",
    "readonly",
    "denyoom",
    "admin",
    "pubsub",
    "noscript",
    "blocking",
    "loading",
    "stale",
    "skip_monitor",
    "skip_slowlog",
    "asking",
    "fast",
    "no_auth",
    "may_replicate",
    "no_mandatory_keys",
    "no_async_loading",
    "no_multi",
    "allow_busy",
];

/// The ACL categories.
pub const CATEGORIES: &[&str] = &[
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "array",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

/// What a command may do with a key.
pub const KEY_FLAGS: &[&str] =
    &["RO", "RW", "OW", "RM", "access", "update", "insert", "delete", "not_key", "incomplete", "variable_flags"];

const ARGUMENT_TYPES: &[&str] =
    &["string", "integer", "double", "key", "pattern", "unix-time", "pure-token", "oneof", "block"];

/// The first fault of the row.
pub fn check(row: &Row) -> Result<(), String> {
    name(&row.name)?;
    handler(row)?;
    if row.arity == 0 {
        return Err("arity 0 allows no request; it counts the name too".into());
    }
    known("flag", &row.flags, FLAGS)?;
    known("ACL category", &row.acl, CATEGORIES)?;
    known("doc flag", &row.doc_flags, &["deprecated", "syscmd"])?;
    if row.place == Some(Place::Data) && row.shards == Some(Shards::None) {
        return Err("a data command holds shards".into());
    }
    if has(&row.flags, "write") && has(&row.flags, "readonly") {
        return Err("write and readonly exclude each other".into());
    }
    if has(&row.doc_flags, "deprecated") != row.deprecated_since.is_some() {
        return Err("the doc flag `deprecated` and `deprecated_since` go together".into());
    }
    if row.summary.is_empty() {
        return Err("a row needs a summary".into());
    }
    row.keys.iter().try_for_each(key)?;
    row.arguments.iter().try_for_each(|part| argument(part, row.keys.len()))
}

fn name(name: &str) -> Result<(), String> {
    let words: Vec<&str> = name.split(' ').collect();
    let plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    if words.len() > 2 || words.iter().any(|word| word.is_empty() || !word.bytes().all(plain)) {
        return Err("a name is one word, or two for a subcommand, in capitals".into());
    }
    Ok(())
}

fn handler(row: &Row) -> Result<(), String> {
    let Some(path) = &row.handler else { return Ok(()) };
    let plain = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || b"_0123456789".contains(&byte))
    };
    match path.split_once("::") {
        Some((module, function)) if plain(module) && plain(function) => Ok(()),
        _ => Err(format!("handler `{path}` is not of the form module::function")),
    }
}

fn key(key: &Key) -> Result<(), String> {
    known("key flag", &key.flags, KEY_FLAGS)?;
    let access = ["RO", "RW", "OW", "RM"].iter().filter(|flag| has(&key.flags, flag)).count();
    if access != usize::from(!has(&key.flags, "not_key")) {
        return Err("a key spec has exactly one of RO, RW, OW, RM, and none for what is not a key".into());
    }
    match (key.unknown, key.index, &key.keyword, key.from) {
        (false, Some(1..), None, None) | (false, None, Some(_), Some(_)) => {}
        (true, None, None, None) if key.count.is_none() && key.last == 0 => {}
        _ => return Err("a key spec begins at `index`, at `keyword` with `from`, or is just `unknown`".into()),
    }
    if key.step < 1 {
        return Err("a key spec's step is at least 1".into());
    }
    match (key.count, key.first) {
        (None, None) => Ok(()),
        (Some(0..), Some(0..)) if key.last == 0 && key.limit == 0 => Ok(()),
        _ => Err("a counted key spec has `count` and `first`, and no `last` or `limit`".into()),
    }
}

fn argument(part: &Argument, keys: usize) -> Result<(), String> {
    let name = part.name().ok_or("an argument needs a name or a token")?;
    let kind = part.kind();
    if !ARGUMENT_TYPES.contains(&kind) {
        return Err(format!("argument {name}: unknown type `{kind}`"));
    }
    if matches!(kind, "oneof" | "block") == part.of.is_empty() {
        return Err(format!("argument {name}: `of` is for oneof and block, which need it"));
    }
    if kind == "pure-token" && part.token.is_none() {
        return Err(format!("argument {name}: a pure-token needs its token"));
    }
    if part.key_spec().is_some_and(|spec| usize::from(spec) >= keys) {
        return Err(format!("argument {name}: there is no such key spec"));
    }
    if part.spec.is_some() && !["key", "pattern"].contains(&kind) {
        return Err(format!("argument {name}: only keys, and patterns of keys, have a key spec"));
    }
    part.of.iter().try_for_each(|part| argument(part, keys))
}

fn known(what: &str, words: &[String], all: &[&str]) -> Result<(), String> {
    match words.iter().find(|word| !all.contains(&word.as_str())) {
        Some(word) => Err(format!("unknown {what} `{word}`; there are {}", all.join(", "))),
        None => Ok(()),
    }
}

/// Whether the list has the word.
pub fn has(words: &[String], word: &str) -> bool {
    words.iter().any(|each| each == word)
}
