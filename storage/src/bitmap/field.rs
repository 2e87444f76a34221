//! BITFIELD and BITFIELD_RO: integers of any width inside a string.
//!
//! All operations of a request are parsed before the first runs, so a request either runs whole or changes nothing.

use super::field_number::{FieldType, Overflow};
use super::{BAD_OFFSET, checked_offset};
use crate::context::Context;
use crate::entry::LENGTH_MAX;
use crate::string::edit_bytes;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};

#[derive(Clone, Copy)]
enum Action {
    Get,
    Set(i64),
    Increment(i64),
}

/// One operation of a request.
#[derive(Clone, Copy)]
struct Operation {
    action: Action,
    field: FieldType,
    offset: u64,
    overflow: Overflow,
}

/// The offset of a field: of a bit, or with `#` how many such fields lie before it.
fn offset(cx: &Context<'_>, word: &[u8], field: FieldType) -> Result<u64, CommandError> {
    let offset = match word.strip_prefix(b"#") {
        Some(number) => parse_i64(number).and_then(|number| number.checked_mul(i64::from(field.bits))),
        None => parse_i64(word),
    };
    checked_offset(cx, offset.ok_or(BAD_OFFSET)?)
}

fn overflow(args: &Args<'_>, index: usize) -> Result<Overflow, CommandError> {
    let known = [("WRAP", Overflow::Wrap), ("SAT", Overflow::Saturate), ("FAIL", Overflow::Fail)];
    let found = known.iter().find(|(name, _)| args.is(index, name));
    found.map(|(_, overflow)| *overflow).ok_or(CommandError::Text("ERR Invalid OVERFLOW type specified"))
}

fn parse(cx: &Context<'_>, args: &Args<'_>) -> Result<Vec<Operation>, CommandError> {
    let mut operations = Vec::new();
    let (mut index, mut mode) = (2, Overflow::Wrap);
    while index < args.len() {
        let left = args.len() - index - 1;
        let has = |name: &str, words: usize| args.is(index, name) && left >= words;
        if has("OVERFLOW", 1) {
            mode = overflow(args, index + 1)?;
            index += 2;
            continue;
        }
        let writes = has("SET", 3) || has("INCRBY", 3);
        if !writes && !has("GET", 2) {
            return Err(CommandError::Syntax);
        }
        let field = FieldType::parse(args.at(index + 1)).ok_or(CommandError::Text(
            "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
        ))?;
        let offset = offset(cx, args.at(index + 2), field)?;
        let action = if writes {
            let number = parse_i64(args.at(index + 3)).ok_or(CommandError::NotAnInteger)?;
            if args.is(index, "SET") { Action::Set(number) } else { Action::Increment(number) }
        } else {
            Action::Get
        };
        operations.push(Operation { action, field, offset, overflow: mode });
        index += if writes { 4 } else { 3 };
    }
    Ok(operations)
}

/// Runs one operation; the number to answer, or `None` where it does not fit, and whether the string was changed.
fn run(operation: &Operation, bytes: &mut [u8]) -> (Option<i64>, bool) {
    let Operation { action, field, offset, overflow } = *operation;
    let old = field.read(bytes, offset);
    let fitting = match action {
        Action::Get => return (Some(old), false),
        Action::Set(value) => field.fit(value, 0, overflow),
        Action::Increment(by) => field.fit(old, by, overflow),
    };
    let Some(new) = fitting else { return (None, false) };
    field.write(bytes, offset, new);
    (Some(if matches!(action, Action::Set(_)) { old } else { new }), field.read(bytes, offset) != old)
}

/// Answers operations that only read.
fn read(cx: &mut Context<'_>, args: &Args<'_>, operations: &[Operation]) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let (entry, reply) = cx.lookup(&key);
    let mut answer = |bytes: &[u8]| {
        reply.array(operations.len());
        operations.iter().for_each(|operation| reply.integer(operation.field.read(bytes, operation.offset)));
    };
    match entry {
        Some(entry) => entry.string()?.with_text(answer),
        None => answer(b""),
    }
    Ok(())
}

/// `BITFIELD key [GET type offset | [OVERFLOW WRAP|SAT|FAIL] SET type offset value | INCRBY type offset increment ...]`: for
/// each but OVERFLOW the number it read, replaced or made; null where it did not fit.
pub fn bitfield(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let operations = parse(cx, args)?;
    let writes = operations.iter().filter(|operation| !matches!(operation.action, Action::Get));
    let Some(length) = writes.map(|operation| operation.field.end(operation.offset)).max() else {
        return read(cx, args, &operations);
    };
    if length > LENGTH_MAX {
        return Err(CommandError::StringTooLong);
    }
    let key = cx.first_key(args);
    // A string that grows has changed, even if no number was written into it.
    let answers = edit_bytes(cx, &key, length, "setbit", |bytes| {
        let mut changed = false;
        let answers = operations.iter().map(|operation| {
            let (answer, has_changed) = run(operation, bytes);
            changed |= has_changed;
            answer
        });
        (answers.collect::<Vec<_>>(), changed)
    })?;
    cx.reply.array(answers.len());
    for answer in answers {
        match answer {
            Some(number) => cx.reply.integer(number),
            None => cx.reply.null(),
        }
    }
    Ok(())
}

/// `BITFIELD_RO key [GET type offset ...]`.
pub fn bitfield_ro(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let operations = parse(cx, args)?;
    if operations.iter().any(|operation| !matches!(operation.action, Action::Get)) {
        return Err(CommandError::Text("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    read(cx, args, &operations)
}
