//! `COMMAND`, `COMMAND INFO` and `COMMAND COUNT`: how clients learn arity, flags and keys.

use super::spec::{BeginSearch, CommandSpec, FindKeys, KeySpec};
use super::table::{lookup_full_name, top_level};
use crate::resp::{Args, Reply};

/// `COMMAND`: every command.
pub fn all(reply: &mut Reply) {
    reply.array(top_level().len());
    top_level().iter().for_each(|spec| command(spec, reply));
}

/// `COMMAND COUNT`.
pub fn count(reply: &mut Reply) {
    reply.count(top_level().len());
}

/// `COMMAND INFO [name ...]`: the named ones in the order asked for, null for an unknown name.
pub fn info(args: &Args<'_>, reply: &mut Reply) {
    if args.len() == 2 {
        return all(reply);
    }
    reply.array(args.len() - 2);
    for name in args.from(2) {
        match lookup_full_name(name) {
            Some(spec) => command(spec, reply),
            None => reply.null(),
        }
    }
}

fn command(spec: &CommandSpec, reply: &mut Reply) {
    reply.array(10);
    reply.bulk(spec.name.as_bytes());
    reply.integer(i64::from(spec.arity));
    names(spec.flags.names(), reply);
    reply.integer(i64::from(spec.key_range.first));
    reply.integer(i64::from(spec.key_range.last));
    reply.integer(i64::from(spec.key_range.step));
    names(spec.categories.names(), reply);
    reply.set(spec.tips.len());
    spec.tips.iter().for_each(|tip| reply.bulk(tip.as_bytes()));
    reply.set(spec.keys.len());
    spec.keys.iter().for_each(|key| key_spec(key, reply));
    if spec.subcommands.is_empty() {
        reply.set(0);
    } else {
        reply.array(spec.subcommands.len());
        spec.subcommands.iter().for_each(|spec| command(spec, reply));
    }
}

/// A set of flag names.
pub(super) fn names(names: impl Iterator<Item = &'static str> + Clone, reply: &mut Reply) {
    reply.set(names.clone().count());
    names.for_each(|name| reply.simple(name));
}

fn key_spec(spec: &KeySpec, reply: &mut Reply) {
    reply.map(3 + usize::from(spec.notes.is_some()));
    if let Some(notes) = spec.notes {
        reply.bulk(b"notes");
        reply.bulk(notes.as_bytes());
    }
    reply.bulk(b"flags");
    names(spec.flags.names(), reply);
    reply.bulk(b"begin_search");
    match spec.begin {
        BeginSearch::Index(index) => {
            search("index", 1, reply);
            number("index", index, reply);
        }
        BeginSearch::Keyword { keyword, from } => {
            search("keyword", 2, reply);
            reply.bulk(b"keyword");
            reply.bulk(keyword.as_bytes());
            number("startfrom", from, reply);
        }
        BeginSearch::Unknown => search("unknown", 0, reply),
    }
    reply.bulk(b"find_keys");
    let (kind, fields) = match spec.find {
        FindKeys::Range { last, step, limit } => ("range", [("lastkey", last), ("keystep", step), ("limit", limit)]),
        FindKeys::Counted { count, first, step } => {
            ("keynum", [("keynumidx", count), ("firstkey", first), ("keystep", step)])
        }
        FindKeys::Unknown => return search("unknown", 0, reply),
    };
    search(kind, fields.len(), reply);
    fields.into_iter().for_each(|(name, value)| number(name, value, reply));
}

/// `{type: kind, spec: {` with so many fields to follow.
fn search(kind: &str, fields: usize, reply: &mut Reply) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
    reply.map(fields);
}

fn number(name: &str, value: i32, reply: &mut Reply) {
    reply.bulk(name.as_bytes());
    reply.integer(i64::from(value));
}
