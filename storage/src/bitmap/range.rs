//! Which bits a start, an end and a unit mean.
//!
//! Both ends are included, and negative ones count from the end of the string. BITCOUNT and BITPOS share this.

use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};

/// What the offsets of a request count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes, unless the request says otherwise.
    Byte,
    /// Single bits.
    Bit,
}

impl Unit {
    /// The argument at `index`, if there is one.
    pub fn parse(args: &Args<'_>, index: usize) -> Result<Self, CommandError> {
        match args.get(index) {
            None => Ok(Self::Byte),
            Some(_) if args.is(index, "BIT") => Ok(Self::Bit),
            Some(_) if args.is(index, "BYTE") => Ok(Self::Byte),
            Some(_) => Err(CommandError::Syntax),
        }
    }
}

/// An offset as the client gave it.
pub fn offset(word: &[u8]) -> Result<i64, CommandError> {
    parse_i64(word).ok_or(CommandError::NotAnInteger)
}

/// The first and the last bit of the range in a string of `length` bytes; `None` if it is empty.
pub fn bits(length: usize, start: i64, end: i64, unit: Unit) -> Option<(usize, usize)> {
    let total = match unit {
        Unit::Byte => length as i64,
        Unit::Bit => length as i64 * 8,
    };
    let from_start = |offset: i64| if offset < 0 { (total + offset).max(0) } else { offset };
    let (start, end) = (from_start(start), from_start(end).min(total - 1));
    if start > end {
        return None;
    }
    let (start, end) = (start as usize, end as usize);
    Some(match unit {
        Unit::Byte => (start * 8, end * 8 + 7),
        Unit::Bit => (start, end),
    })
}

/// Of the byte that holds the bit, that bit and those after it.
pub fn from(bit: usize) -> u8 {
    0xff >> (bit % 8)
}

/// Of the byte that holds the bit, that bit and those before it.
pub fn up_to(bit: usize) -> u8 {
    0xff << (7 - bit % 8)
}
