//! DELEX, DELIFEQ, DIGEST, and the conditions that SET and DELEX share.
//!
//! A digest is the 64-bit XXH3 of the value as 16 hexadecimal digits (<https://redis.io/docs/latest/commands/digest/>).

use crate::context::Context;
use crate::key_hash::Key;
use crate::notify::Class;
use crate::string_value::Value;
use simurgh_protocol::{Args, CommandError};
use xxhash_rust::xxh3::xxh3_64;

/// A condition on what is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Condition<'a> {
    /// None.
    #[default]
    Always,
    /// `NX`: there is no value.
    Absent,
    /// `XX`: there is a value.
    Present,
    /// `IFEQ`: the value equals this.
    Equals(&'a [u8]),
    /// `IFNE`: the value differs from this, or there is none.
    Differs(&'a [u8]),
    /// `IFDEQ`: the value's digest equals this.
    DigestEquals(&'a [u8]),
    /// `IFDNE`: the value's digest differs from this, or there is no value.
    DigestDiffers(&'a [u8]),
}

impl<'a> Condition<'a> {
    /// The comparison given by arguments `index` and `index + 1`, if they are one.
    pub fn comparison(args: &Args<'a>, index: usize) -> Option<Self> {
        let operand = args.get(index + 1)?;
        match () {
            () if args.is(index, "IFEQ") => Some(Self::Equals(operand)),
            () if args.is(index, "IFNE") => Some(Self::Differs(operand)),
            () if args.is(index, "IFDEQ") => Some(Self::DigestEquals(operand)),
            () if args.is(index, "IFDNE") => Some(Self::DigestDiffers(operand)),
            () => None,
        }
    }

    /// Whether it holds for the value that is stored, or for none.
    pub fn holds(&self, value: Option<Value<'_>>) -> Result<bool, CommandError> {
        Ok(match (*self, value) {
            (Self::Always, _)
            | (Self::Absent | Self::Differs(_) | Self::DigestDiffers(_), None)
            | (Self::Present, Some(_)) => true,
            (Self::Absent, Some(_)) | (Self::Present | Self::Equals(_) | Self::DigestEquals(_), None) => false,
            (Self::Equals(operand), Some(value)) => equals(value, operand),
            (Self::Differs(operand), Some(value)) => !equals(value, operand),
            (Self::DigestEquals(operand), Some(value)) => digest_equals(value, operand)?,
            (Self::DigestDiffers(operand), Some(value)) => !digest_equals(value, operand)?,
        })
    }
}

fn equals(value: Value<'_>, operand: &[u8]) -> bool {
    value.with_text(|text| text == operand)
}

fn digest_equals(value: Value<'_>, operand: &[u8]) -> Result<bool, CommandError> {
    if operand.len() != 16 {
        return Err(CommandError::Text("ERR must be exactly 16 hexadecimal characters"));
    }
    Ok(digest_of(value).as_bytes().eq_ignore_ascii_case(operand))
}

fn digest_of(value: Value<'_>) -> String {
    format!("{:016x}", value.with_text(xxh3_64))
}

/// `DIGEST key`: the value's digest, or null.
pub fn digest(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    match cx.lookup(&key) {
        (Some(entry), reply) => reply.bulk(digest_of(entry.string()?).as_bytes()),
        (None, reply) => reply.null(),
    }
    Ok(())
}

/// `DELEX key [IFEQ value | IFNE value | IFDEQ digest | IFDNE digest]`: 1 if the key was deleted.
pub fn delex(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    if !matches!(args.len(), 2 | 4) {
        return Err(CommandError::WrongArity("delex"));
    }
    let key = cx.first_key(args);
    let Some(entry) = cx.write(&key) else {
        cx.reply.integer(0);
        return Ok(());
    };
    let condition = match args.len() {
        2 => Condition::Always,
        _ => Condition::comparison(args, 2)
            .ok_or(CommandError::Text("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"))?,
    };
    let holds = match (condition, entry.view().string()) {
        (Condition::Always, _) => true,
        (_, Ok(value)) => condition.holds(Some(value))?,
        (_, Err(_)) => return Err(CommandError::Text("ERR Key should be of string type if conditions are specified")),
    };
    delete_if(cx, &key, holds);
    Ok(())
}

/// `DELIFEQ key value`: 1 if the key held that value and was deleted.
pub fn delifeq(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let holds = match cx.write(&key) {
        Some(entry) => equals(entry.view().string()?, args.at(2)),
        None => false,
    };
    delete_if(cx, &key, holds);
    Ok(())
}

fn delete_if(cx: &mut Context<'_>, key: &Key<'_>, holds: bool) {
    if holds {
        cx.remove(key);
        cx.log_instead(&[b"DEL", key.bytes]);
        cx.notify(Class::GENERIC, "del", key);
    }
    cx.reply.integer(i64::from(holds));
}
