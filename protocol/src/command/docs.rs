//! `COMMAND DOCS`: what people and tools read about commands.

use super::spec::{Argument, CommandSpec};
use super::table::{lookup_full_name, top_level};
use crate::resp::{Args, Reply};

/// `COMMAND DOCS [name ...]`: all commands, or those of the names that exist.
pub fn docs(args: &Args<'_>, reply: &mut Reply) {
    if args.len() == 2 {
        return commands(top_level().iter().copied(), reply);
    }
    commands(args.from(2).filter_map(lookup_full_name), reply);
}

fn commands(specs: impl Iterator<Item = &'static CommandSpec> + Clone, reply: &mut Reply) {
    reply.map(specs.clone().count());
    for spec in specs {
        reply.bulk(spec.name.as_bytes());
        command(spec, reply);
    }
}

/// Name and text of the fields that are plain text; an absent one is left out.
type Texts<const N: usize> = [(&'static str, Option<&'static str>); N];

fn command(spec: &CommandSpec, reply: &mut Reply) {
    let docs = spec.docs;
    let first: Texts<4> = [
        ("summary", Some(docs.summary)),
        ("since", Some(docs.since)),
        ("group", Some(docs.group)),
        ("complexity", docs.complexity),
    ];
    let second: Texts<2> = [("deprecated_since", docs.deprecated_since), ("replaced_by", docs.replaced_by)];
    let lists =
        [docs.flags.is_empty(), docs.history.is_empty(), docs.arguments.is_empty(), spec.subcommands.is_empty()];
    reply.map(given(&first) + given(&second) + lists.iter().filter(|empty| !**empty).count());
    texts(&first, reply);
    if !docs.flags.is_empty() {
        reply.bulk(b"doc_flags");
        super::info::names(docs.flags.iter().copied(), reply);
    }
    texts(&second, reply);
    if !docs.history.is_empty() {
        reply.bulk(b"history");
        history(docs.history, reply);
    }
    if !docs.arguments.is_empty() {
        reply.bulk(b"arguments");
        arguments(docs.arguments, reply);
    }
    if !spec.subcommands.is_empty() {
        reply.bulk(b"subcommands");
        commands(spec.subcommands.iter().copied(), reply);
    }
}

fn given(texts: &[(&str, Option<&str>)]) -> usize {
    texts.iter().filter(|(_, text)| text.is_some()).count()
}

fn texts(texts: &[(&str, Option<&str>)], reply: &mut Reply) {
    for (name, text) in texts {
        if let Some(text) = text {
            reply.bulk(name.as_bytes());
            reply.bulk(text.as_bytes());
        }
    }
}

fn history(history: &[(&str, &str)], reply: &mut Reply) {
    reply.set(history.len());
    for (version, change) in history {
        reply.array(2);
        reply.bulk(version.as_bytes());
        reply.bulk(change.as_bytes());
    }
}

fn arguments(arguments: &'static [Argument], reply: &mut Reply) {
    reply.array(arguments.len());
    arguments.iter().for_each(|part| argument(part, reply));
}

fn argument(part: &'static Argument, reply: &mut Reply) {
    // What has parts shows the parts, so only what has none is displayed.
    let display = part.of.is_empty().then(|| part.display.unwrap_or(part.name));
    let first: Texts<3> = [("name", Some(part.name)), ("type", Some(part.kind)), ("display_text", display)];
    let second: Texts<4> = [
        ("token", part.token),
        ("summary", part.summary),
        ("since", part.since),
        ("deprecated_since", part.deprecated_since),
    ];
    let flags = flags(part);
    let others = [part.key_spec.is_some(), flags.clone().next().is_some(), !part.of.is_empty()];
    reply.map(given(&first) + given(&second) + others.iter().filter(|there| **there).count());
    texts(&first, reply);
    if let Some(key_spec) = part.key_spec {
        reply.bulk(b"key_spec_index");
        reply.integer(i64::from(key_spec));
    }
    texts(&second, reply);
    if flags.clone().next().is_some() {
        reply.bulk(b"flags");
        super::info::names(flags, reply);
    }
    if !part.of.is_empty() {
        reply.bulk(b"arguments");
        arguments(part.of, reply);
    }
}

fn flags(part: &Argument) -> impl Iterator<Item = &'static str> + Clone {
    let flags = [(part.optional, "optional"), (part.multiple, "multiple"), (part.multiple_token, "multiple_token")];
    flags.into_iter().filter(|(given, _)| *given).map(|(_, name)| name)
}
