//! A sketch as a whole: sixteen bytes of header, then its registers.
//!
//! | bytes | header |
//! | --- | --- |
//! | 0..4 | `HYLL` |
//! | 4 | 0: dense, 1: sparse |
//! | 5..8 | unused |
//! | 8..16 | the estimate when it was last computed; its highest bit says that registers have changed since |

use super::estimate::{VALUES, estimate};
use super::sparse::Raised;
use super::{NOT_A_SKETCH, Registers, dense, place, sparse};
use crate::string_value::Value;
use simurgh_protocol::CommandError;

/// The length of the header.
pub const HEADER: usize = 16;
const ENCODING: usize = 4;
const CACHE: std::ops::Range<usize> = 8..HEADER;
const STALE: u8 = 0x80;

/// How registers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Six bits each.
    Dense,
    /// As runs.
    Sparse,
}

/// A string that has the form of a sketch; its runs may still be wrong.
#[derive(Clone, Copy, Debug)]
pub struct Sketch<'a>(&'a [u8]);

impl<'a> Sketch<'a> {
    /// The string, if it has the form.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, CommandError> {
        let length = match bytes {
            [b'H', b'Y', b'L', b'L', 0, ..] => HEADER + dense::BYTES,
            [b'H', b'Y', b'L', b'L', 1, ..] => bytes.len().max(HEADER),
            _ => return Err(NOT_A_SKETCH),
        };
        if bytes.len() == length { Ok(Self(bytes)) } else { Err(NOT_A_SKETCH) }
    }

    /// The value of a key.
    pub fn of(value: Value<'a>) -> Result<Self, CommandError> {
        match value {
            Value::Bytes(bytes) => Self::parse(bytes),
            Value::Int(_) => Err(NOT_A_SKETCH),
        }
    }

    /// How its registers are stored.
    pub fn encoding(&self) -> Encoding {
        if self.0[ENCODING] == 0 { Encoding::Dense } else { Encoding::Sparse }
    }

    /// What comes behind the header.
    pub fn body(&self) -> &'a [u8] {
        &self.0[HEADER..]
    }

    /// The whole string.
    pub fn bytes(&self) -> &'a [u8] {
        self.0
    }

    /// All registers.
    pub fn registers(&self) -> Result<Box<Registers>, CommandError> {
        registers(self.encoding(), self.body())
    }

    /// The estimate that was computed last, if no register has changed since.
    pub fn cached(&self) -> Option<u64> {
        let cache = self.0[CACHE].try_into().expect("it is eight bytes");
        Some(u64::from_le_bytes(cache)).filter(|_| self.0[HEADER - 1] & STALE == 0)
    }

    /// Estimates anew.
    pub fn count(&self) -> Result<u64, CommandError> {
        Ok(count(&*self.registers()?))
    }
}

fn registers(encoding: Encoding, body: &[u8]) -> Result<Box<Registers>, CommandError> {
    match encoding {
        Encoding::Dense => Ok(dense::registers(body)),
        Encoding::Sparse => sparse::registers(body),
    }
}

/// The estimate for registers.
pub fn count(registers: &Registers) -> u64 {
    let mut histogram = [0; VALUES];
    for register in registers {
        histogram[usize::from(*register)] += 1;
    }
    estimate(&histogram)
}

/// Keeps an estimate in the header.
pub fn set_cache(bytes: &mut [u8], count: u64) {
    bytes[CACHE].copy_from_slice(&count.to_le_bytes());
}

/// Notes in the header that registers have changed.
pub fn forget_cache(bytes: &mut [u8]) {
    bytes[HEADER - 1] |= STALE;
}

/// Adds elements to a dense sketch where it lies; whether any register was raised.
pub fn add_dense<'e>(bytes: &mut [u8], elements: impl Iterator<Item = &'e [u8]>) -> bool {
    let mut raised = false;
    for element in elements {
        let (index, value) = place(element);
        raised |= dense::raise(&mut bytes[HEADER..], index, value);
    }
    if raised {
        forget_cache(bytes);
    }
    raised
}

/// A sketch of one's own, to be changed and stored.
#[derive(Debug)]
pub struct Draft {
    header: [u8; HEADER],
    encoding: Encoding,
    body: Vec<u8>,
    /// `hll-sparse-max-bytes`, less the header.
    longest: usize,
}

impl Draft {
    /// A copy; it turns dense when it is longer than `longest` in all.
    pub fn copy(sketch: Sketch<'_>, longest: usize) -> Self {
        let (header, body) = sketch.bytes().split_at(HEADER);
        Self {
            header: header.try_into().expect("it is as long"),
            encoding: sketch.encoding(),
            body: body.to_vec(),
            longest: longest.saturating_sub(HEADER),
        }
    }

    /// An empty one.
    pub fn empty(longest: usize) -> Self {
        Self::copy(Sketch(b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\0\x7f\xff"), longest)
    }

    /// Raises a register to `value`; whether it was lower. A sparse sketch that has no room for it turns dense.
    pub fn raise(&mut self, index: usize, value: u8) -> Result<bool, CommandError> {
        if self.encoding == Encoding::Sparse {
            match sparse::raise(&mut self.body, index, value, self.longest)? {
                Raised::No => return Ok(false),
                Raised::Yes => return Ok(true),
                Raised::TooLarge => self.make_dense()?,
            }
        }
        Ok(dense::raise(&mut self.body, index, value))
    }

    /// Stores the registers densely.
    pub fn make_dense(&mut self) -> Result<(), CommandError> {
        if self.encoding == Encoding::Sparse {
            self.body = dense::bytes(&*sparse::registers(&self.body)?);
            self.encoding = Encoding::Dense;
            self.header[ENCODING] = 0;
        }
        Ok(())
    }

    /// Estimates anew.
    pub fn count(&self) -> Result<u64, CommandError> {
        Ok(count(&*registers(self.encoding, &self.body)?))
    }

    /// The string to store, its count to be computed anew if `changed`.
    pub fn finish(mut self, changed: bool) -> Vec<u8> {
        if changed {
            forget_cache(&mut self.header);
        }
        [&self.header, &self.body[..]].concat()
    }
}
