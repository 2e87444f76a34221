//! BITOP: strings combined bit by bit.
//!
//! Keys are taken one after the other, since each lies in a shard of its own; what is known of the result so far is kept in one
//! or two buffers. The loops over bytes are such that the compiler makes them loops over vectors.

use crate::context::{Context, Expiry};
use crate::entry::Encoding;
use crate::notify::Class;
use crate::string_value::Value;
use simurgh_protocol::{Args, CommandError};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    And,
    Or,
    Xor,
    Not,
    /// In the first key and in no other.
    Diff,
    /// In some other key and not in the first.
    Diff1,
    /// In the first key and in some other.
    AndOr,
    /// In exactly one key.
    One,
}

impl Operation {
    const ALL: [(&'static str, Self); 8] = [
        ("AND", Self::And),
        ("OR", Self::Or),
        ("XOR", Self::Xor),
        ("NOT", Self::Not),
        ("DIFF", Self::Diff),
        ("DIFF1", Self::Diff1),
        ("ANDOR", Self::AndOr),
        ("ONE", Self::One),
    ];

    fn parse(args: &Args<'_>) -> Result<Self, CommandError> {
        let found = Self::ALL.iter().find(|(name, _)| args.is(1, name));
        let (name, operation) = found.ok_or(CommandError::Syntax)?;
        let keys = args.len() - 3;
        match operation {
            Self::Not if keys != 1 => Err(CommandError::Text("ERR BITOP NOT must be called with a single source key.")),
            Self::Diff | Self::Diff1 | Self::AndOr if keys < 2 => {
                Err(CommandError::Owned(format!("ERR BITOP {name} must be called with at least two source keys.")))
            }
            Self::And | Self::Or | Self::Xor | Self::Not | Self::Diff | Self::Diff1 | Self::AndOr | Self::One => {
                Ok(*operation)
            }
        }
    }
}

/// The keys seen so far.
struct Combined {
    operation: Operation,
    keys: usize,
    /// AND, OR, XOR of all; for DIFF, DIFF1 and ANDOR the first key, for ONE what is in exactly one.
    bits: Vec<u8>,
    /// DIFF, DIFF1, ANDOR: what is in any but the first key. ONE: what is in any key.
    others: Vec<u8>,
}

/// Applies `with` to each byte and the one at the same place; beyond the end of `key` there are zeros.
fn each(bits: &mut Vec<u8>, key: &[u8], with: impl Fn(u8, u8) -> u8) {
    if bits.len() < key.len() {
        bits.resize(key.len(), 0);
    }
    let (within, beyond) = bits.split_at_mut(key.len());
    within.iter_mut().zip(key).for_each(|(bit, other)| *bit = with(*bit, *other));
    beyond.iter_mut().for_each(|bit| *bit = with(*bit, 0));
}

impl Combined {
    fn add(&mut self, key: &[u8]) {
        let first = self.keys == 0;
        self.keys += 1;
        match self.operation {
            Operation::Not => self.bits = key.iter().map(|byte| !byte).collect(),
            Operation::And | Operation::Or | Operation::Xor | Operation::Diff | Operation::Diff1 | Operation::AndOr
                if first =>
            {
                self.bits = key.to_vec();
            }
            Operation::And => each(&mut self.bits, key, |bit, other| bit & other),
            Operation::Or => each(&mut self.bits, key, |bit, other| bit | other),
            Operation::Xor => each(&mut self.bits, key, |bit, other| bit ^ other),
            Operation::Diff | Operation::Diff1 | Operation::AndOr => {
                each(&mut self.others, key, |bit, other| bit | other);
            }
            Operation::One => {
                let mut fresh = key.to_vec();
                each(&mut fresh, &self.others, |bit, seen| bit & !seen);
                each(&mut self.bits, key, |bit, other| bit & !other);
                each(&mut self.bits, &fresh, |bit, fresh| bit | fresh);
                each(&mut self.others, key, |bit, other| bit | other);
            }
        }
    }

    /// The result, as long as the longest key.
    fn finish(mut self) -> Vec<u8> {
        match self.operation {
            Operation::And | Operation::Or | Operation::Xor | Operation::Not | Operation::One => {}
            Operation::Diff => each(&mut self.bits, &self.others, |first, others| first & !others),
            Operation::Diff1 => each(&mut self.bits, &self.others, |first, others| !first & others),
            Operation::AndOr => each(&mut self.bits, &self.others, |first, others| first & others),
        }
        self.bits
    }
}

/// `BITOP operation destkey key [key ...]`: the length of the result; an empty one deletes the key.
pub fn bitop(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let operation = Operation::parse(args)?;
    let mut combined = Combined { operation, keys: 0, bits: Vec::new(), others: Vec::new() };
    for bytes in args.from(3) {
        let key = cx.key(bytes);
        match cx.read(&key) {
            Some(entry) => entry.string()?.with_text(|text| combined.add(text)),
            None => combined.add(b""),
        }
    }
    let (result, target) = (combined.finish(), cx.key(args.at(2)));
    if result.is_empty() {
        if cx.remove(&target) {
            cx.notify(Class::GENERIC, "del", &target);
        }
    } else {
        cx.store_as(&target, Value::Bytes(&result), Encoding::Raw, Expiry::Clear);
        cx.notify(Class::STRING, "set", &target);
    }
    cx.reply.count(result.len());
    Ok(())
}
