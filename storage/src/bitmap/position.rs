//! BITPOS: the first bit that is set, or clear.

use super::range::{self, Unit};
use crate::context::Context;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};

/// What is sought, and where.
struct Request {
    bit: bool,
    start: i64,
    end: Option<i64>,
    unit: Unit,
}

impl Request {
    fn parse(args: &Args<'_>) -> Result<Self, CommandError> {
        let bit = match parse_i64(args.at(2)).ok_or(CommandError::NotAnInteger)? {
            0 => false,
            1 => true,
            _ => return Err(CommandError::Text("ERR The bit argument must be 1 or 0.")),
        };
        if args.len() > 6 {
            return Err(CommandError::Syntax);
        }
        let start = args.get(3).map_or(Ok(0), range::offset)?;
        let unit = Unit::parse(args, 5)?;
        let end = args.get(4).map(range::offset).transpose()?;
        Ok(Self { bit, start, end, unit })
    }

    /// Without an end the string goes on with zeros, so a clear bit is always found, the first one behind it at the latest.
    fn find(&self, bytes: &[u8]) -> Option<usize> {
        let (first, last) = range::bits(bytes.len(), self.start, self.end.unwrap_or(-1), self.unit)?;
        let behind = if self.bit || self.end.is_some() { None } else { Some(last + 1) };
        find(bytes, self.bit, first, last).or(behind)
    }
}

/// `BITPOS key bit [start [end [BYTE | BIT]]]`: the offset of the first such bit, or -1.
pub fn bitpos(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let request = Request::parse(args)?;
    let key = cx.first_key(args);
    let (entry, reply) = cx.lookup(&key);
    let found = match entry {
        Some(entry) => entry.string()?.with_text(|text| request.find(text)),
        // What is not there is all zeros.
        None => (!request.bit).then_some(0),
    };
    match found {
        Some(position) => reply.count(position),
        None => reply.integer(-1),
    }
    Ok(())
}

/// The first bit of that value from `first` to `last`, which both lie in the string. Eight bytes at a time are skipped.
fn find(bytes: &[u8], bit: bool, first: usize, last: usize) -> Option<usize> {
    let (skipped, flip) = if bit { (0, 0) } else { (u64::MAX, 0xff) };
    let (head, tail) = (first / 8, last / 8);
    // As if set bits were sought: flipped, and those outside of the range cleared.
    let sought = |index: usize| {
        let mut byte = bytes[index] ^ flip;
        if index == head {
            byte &= range::from(first);
        }
        if index == tail {
            byte &= range::up_to(last);
        }
        byte
    };
    let in_byte = |index: usize| match sought(index) {
        0 => None,
        byte => Some(index * 8 + byte.leading_zeros() as usize),
    };
    if let Some(found) = in_byte(head) {
        return Some(found);
    }
    let (words, _) = bytes[head + 1..(tail + 1).max(head + 1)].as_chunks::<8>();
    let words = words.iter().take_while(|word| u64::from_ne_bytes(**word) == skipped).count();
    (head + 1 + words * 8..=tail).find_map(in_byte)
}
