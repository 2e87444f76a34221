//! A string as it is stored: an integer where it is one in its only spelling, its bytes otherwise.

use crate::entry::{EXPIRY, Encoding};

/// A stored value, as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A string kept as an integer.
    Int(i64),
    /// A string kept as bytes.
    Bytes(&'a [u8]),
}

/// The longest string that Redis keeps beside its object header.
const EMBSTR_MAX: usize = 44;
/// Bytes of key and value that Redis 8 keeps beside its object header, which is what `embstr` means; an expiry takes eight of them.
const EMBEDDED_MAX: usize = 41;

/// The encoding that a value gets beside such a key. Here every string lies beside its key; Redis keeps only short ones there, and
/// says `raw` of one that an expiry has once driven out, until the value is replaced.
pub(crate) fn encoding_beside(key_length: usize, value: Value<'_>, encoding: Encoding, expires: bool) -> Encoding {
    match encoding {
        Encoding::Embstr if key_length + value.text_length() + usize::from(expires) * EXPIRY > EMBEDDED_MAX => {
            Encoding::Raw
        }
        Encoding::Embstr | Encoding::Raw | Encoding::Int | Encoding::Collection => encoding,
    }
}

impl<'a> Value<'a> {
    /// The value a client's bytes are stored as: an integer when they are one in its only spelling.
    #[must_use]
    pub fn from_bytes(bytes: &'a [u8]) -> Self {
        Self::from(bytes)
    }

    /// The encoding that a fresh value gets.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        match self {
            Self::Int(_) => Encoding::Int,
            Self::Bytes(bytes) if bytes.len() <= EMBSTR_MAX => Encoding::Embstr,
            Self::Bytes(_) => Encoding::Raw,
        }
    }

    /// Calls `with` with the value's text.
    pub fn with_text<R>(&self, with: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Self::Int(number) => with(itoa::Buffer::new().format(*number).as_bytes()),
            Self::Bytes(bytes) => with(bytes),
        }
    }

    /// The value's text, copied.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.with_text(<[u8]>::to_vec)
    }

    /// The length of the value's text, in bytes.
    #[must_use]
    pub fn text_length(&self) -> usize {
        match self {
            Self::Int(number) => {
                let digits = number.unsigned_abs().checked_ilog10().map_or(1, |power| power as usize + 1);
                digits + usize::from(*number < 0)
            }
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    pub(crate) fn stored_length(&self) -> usize {
        match self {
            Self::Int(_) => 8,
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_integers_only_in_their_only_spelling() {
        assert_eq!(Value::from_bytes(b"-12"), Value::Int(-12));
        for text in ["012", "+1", "1 ", "", "-0", "9223372036854775808"] {
            assert_eq!(Value::from_bytes(text.as_bytes()), Value::Bytes(text.as_bytes()));
        }
    }
}
