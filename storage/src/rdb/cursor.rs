//! A place in bytes that are read from front to back, which never reads past their end.

/// Why a value could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The bytes end within it.
    #[error("the data ends too early")]
    Short,
    /// A length of a kind that does not exist, or a number where an encoding must be.
    #[error("invalid length encoding")]
    Length,
    /// A string encoding that does not exist.
    #[error("unknown string encoding")]
    StringEncoding,
    /// Longer than the limit.
    #[error("a string longer than the limit")]
    TooLong,
    /// Compressed data that does not unpack to what it claims.
    #[error("invalid LZF compressed string")]
    Lzf,
    /// A packed block, a node or a group that no server writes.
    #[error("malformed packed data")]
    Packed,
    /// A score that is no number.
    #[error("a score that is not a number")]
    Score,
    /// An element, field or name that stands twice.
    #[error("an element that stands twice")]
    Repeated,
    /// A piece of a module's data that is of no known kind.
    #[error("malformed module data")]
    Module,
    /// A collection without elements.
    #[error("a collection without elements")]
    Empty,
}

/// Bytes and how far they were read.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    rest: &'a [u8],
    length: usize,
}

impl<'a> Cursor<'a> {
    /// At the front of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, length: bytes.len() }
    }

    /// Bytes read so far.
    pub fn consumed(&self) -> usize {
        self.length - self.rest.len()
    }

    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Fault::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next `N` bytes as an array.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(Fault::Short)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// The next byte.
    pub fn byte(&mut self) -> Result<u8, Fault> {
        Ok(u8::from_le_bytes(self.array()?))
    }
}
