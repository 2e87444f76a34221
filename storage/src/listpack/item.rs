//! One element of a packed list, as it is read and as it is put in: the same as a string, an integer where it is one.

use super::wire;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::resp::Reply;

/// The longest decimal form of a 64-bit integer.
const INTEGER_TEXT_MAX: usize = 20;

/// An element. Made from bytes by `Item::from`, it is an integer when the bytes are one in its only spelling; a payload from elsewhere
/// may keep even an integer as bytes.
pub use crate::string_value::Value as Item;

impl<'a> From<&'a [u8]> for Item<'a> {
    fn from(text: &'a [u8]) -> Self {
        // The first byte tells most texts from numbers without a call.
        let may_be_integer = matches!(text.first(), Some(b'-' | b'0'..=b'9')) && text.len() <= INTEGER_TEXT_MAX;
        match may_be_integer.then(|| parse_i64(text)).flatten() {
            Some(number) => Self::Int(number),
            None => Self::Bytes(text),
        }
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Item<'a> {
    fn from(text: &'a [u8; N]) -> Self {
        Self::from(&text[..])
    }
}

impl<'a> From<&'a Vec<u8>> for Item<'a> {
    fn from(text: &'a Vec<u8>) -> Self {
        Self::from(&text[..])
    }
}

impl From<i64> for Item<'_> {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl Item<'_> {
    /// Whether the element's text is `text`. To ask it of many elements, make an `Item` of the text and use [`Item::same`].
    #[must_use]
    pub fn equals(&self, text: &[u8]) -> bool {
        match self {
            Self::Int(_) => self.same(&Item::from(text)),
            Self::Bytes(bytes) => *bytes == text,
        }
    }

    /// Whether both spell the same text, whichever way they are kept.
    #[must_use]
    #[inline]
    pub fn same(&self, other: &Item<'_>) -> bool {
        match (self, other) {
            (Self::Int(one), Item::Int(other)) => one == other,
            (Self::Bytes(one), Item::Bytes(other)) => one == other,
            (Self::Int(_), Item::Bytes(text)) => self.with_text(|own| own == *text),
            (Self::Bytes(text), Item::Int(_)) => {
                text.len() <= INTEGER_TEXT_MAX && other.with_text(|theirs| theirs == *text)
            }
        }
    }

    /// The integer that the text spells, if it does.
    #[must_use]
    pub fn to_i64(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            Self::Bytes(text) => parse_i64(text),
        }
    }

    /// Writes the text as a bulk string.
    pub fn write_to(&self, reply: &mut Reply) {
        match self {
            Self::Int(number) => reply.bulk_integer(*number),
            Self::Bytes(bytes) => reply.bulk(bytes),
        }
    }

    /// The bytes that the element takes in a listpack.
    #[must_use]
    pub fn packed_length(&self) -> usize {
        wire::packed_length(*self)
    }
}
