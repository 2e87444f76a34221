//! One element of a listpack as bytes.
//!
//! ```text
//! element: head, text if it is one, backlen
//! head: 0nnnnnnn                      an integer of 0 to 127
//!       10llllll                      a text of up to 63 bytes follows
//!       110nnnnn nnnnnnnn             an integer of 13 bits, signed, high byte first
//!       1110llll llllllll             a text of up to 4095 bytes follows, high byte first
//!       F0 llllllll (4 bytes)         a longer text follows
//!       F1 | F2 | F3 | F4             an integer of 16, 24, 32 or 64 bits, signed, low byte first
//!       FF                            no element: the end
//! backlen: the length of head and text, 7 bits a byte, to be read from its last byte backwards; all bytes but the first have
//!          bit 7 set, which tells the backward reader to go on
//! ```

use super::Item;

/// What stands behind the last element.
pub(super) const END: u8 = 0xff;

/// The longest head: the one of a 64-bit integer.
const HEAD_MAX: usize = 9;

struct Head {
    bytes: [u8; HEAD_MAX],
    length: usize,
}

impl Head {
    fn new(parts: [&[u8]; 2]) -> Self {
        let mut head = Self { bytes: [0; HEAD_MAX], length: 0 };
        for part in parts {
            head.bytes[head.length..head.length + part.len()].copy_from_slice(part);
            head.length += part.len();
        }
        head
    }

    fn of(item: Item<'_>) -> Self {
        match item {
            Item::Int(number) => Self::of_integer(number),
            Item::Bytes(text) => Self::of_text(text.len()),
        }
    }

    fn of_integer(number: i64) -> Self {
        let low = number.to_le_bytes();
        match number {
            0..=127 => Self::new([&low[..1], &[]]),
            -4096..=4095 => Self::new([&[0xc0 | low[1] & 0x1f, low[0]], &[]]),
            -0x8000..=0x7fff => Self::new([&[0xf1], &low[..2]]),
            -0x80_0000..=0x7f_ffff => Self::new([&[0xf2], &low[..3]]),
            -0x8000_0000..=0x7fff_ffff => Self::new([&[0xf3], &low[..4]]),
            _ => Self::new([&[0xf4], &low]),
        }
    }

    fn of_text(length: usize) -> Self {
        match length {
            0..=63 => Self::new([&[0x80 | length as u8], &[]]),
            64..=4095 => Self::new([&[0xe0 | (length >> 8) as u8, length as u8], &[]]),
            _ => {
                let length = u32::try_from(length).expect("whoever packs a text checked that it fits");
                Self::new([&[0xf0], &length.to_le_bytes()])
            }
        }
    }
}

/// How many bytes the backlen takes for an element of `length`. The largest number that would fit is left to the next size from
/// two bytes on, as Redis up to 8.2 leaves it; see [`is_disputed`].
#[inline]
pub(super) fn backlen_length(length: usize) -> usize {
    match length {
        0..=127 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    }
}

/// Whether an element's backlen is one byte shorter where Redis 8.10 and Valkey 9.1 write it: they let the largest number fit.
/// Neither side reads the other's (Redis 8.2.3 even dies of it), so a list with such an element is none to give to others.
pub(super) fn is_disputed(length: usize) -> bool {
    matches!(length, 16_383 | 2_097_151 | 268_435_455)
}

/// The bytes that `item` takes, backlen included.
pub(super) fn packed_length(item: Item<'_>) -> usize {
    let text = match item {
        Item::Int(_) => 0,
        Item::Bytes(text) => text.len(),
    };
    let length = Head::of(item).length + text;
    length + backlen_length(length)
}

/// Writes `item` to the front of `out` and returns what is behind it.
pub(super) fn write<'out>(item: Item<'_>, out: &'out mut [u8]) -> &'out mut [u8] {
    let head = Head::of(item);
    let (place, mut rest) = out.split_at_mut(head.length);
    place.copy_from_slice(&head.bytes[..head.length]);
    let mut length = head.length;
    if let Item::Bytes(text) = item {
        let place;
        (place, rest) = rest.split_at_mut(text.len());
        place.copy_from_slice(text);
        length += text.len();
    }
    let (place, rest) = rest.split_at_mut(backlen_length(length));
    write_backlen(length, place);
    rest
}

fn write_backlen(length: usize, place: &mut [u8]) {
    let mut left = length;
    for byte in place.iter_mut().rev() {
        *byte = 0x80 | (left & 0x7f) as u8;
        left >>= 7;
    }
    place[0] &= 0x7f;
}

/// The length of the element at the front of `bytes`, without its backlen, as its head tells it.
#[inline]
pub(super) fn length(bytes: &[u8]) -> Option<usize> {
    let first = *bytes.first()?;
    Some(match first {
        0..=0x7f => 1,
        0x80..=0xbf => 1 + usize::from(first & 0x3f),
        0xc0..=0xdf => 2,
        0xe0..=0xef => 2 + (usize::from(first & 0xf) << 8 | usize::from(*bytes.get(1)?)),
        0xf0 => {
            let length = u32::from_le_bytes(*bytes.get(1..)?.first_chunk()?);
            usize::try_from(length).ok()?.checked_add(5)?
        }
        0xf1 => 3,
        0xf2 => 4,
        0xf3 => 5,
        0xf4 => 9,
        0xf5..=0xff => return None,
    })
}

/// The element at the front of `bytes` and its length without its backlen.
#[inline]
pub(super) fn read(bytes: &[u8]) -> Option<(Item<'_>, usize)> {
    let length = length(bytes)?;
    let element = bytes.get(..length)?;
    let item = match *element {
        [number @ 0..=0x7f] => Item::Int(number.into()),
        [0x80..=0xbf, ref text @ ..] | [0xe0..=0xef, _, ref text @ ..] | [0xf0, _, _, _, _, ref text @ ..] => {
            Item::Bytes(text)
        }
        [high @ 0xc0..=0xdf, low] => Item::Int(((i16::from_be_bytes([high, low]) << 3) >> 3).into()),
        [0xf1, a, b] => Item::Int(i16::from_le_bytes([a, b]).into()),
        [0xf2, a, b, c] => Item::Int((i32::from_le_bytes([0, a, b, c]) >> 8).into()),
        [0xf3, a, b, c, d] => Item::Int(i32::from_le_bytes([a, b, c, d]).into()),
        [0xf4, a, b, c, d, e, f, g, h] => Item::Int(i64::from_le_bytes([a, b, c, d, e, f, g, h])),
        _ => return None,
    };
    Some((item, length))
}

/// An element whose backlen was checked.
pub(super) struct Checked<'a> {
    pub(super) item: Item<'a>,
    /// The length, backlen included.
    pub(super) length: usize,
    /// Whether the backlen is as long as we write it.
    pub(super) is_ours: bool,
}

/// The element at the front of `bytes`, with a backlen that fits, of one form or the other.
pub(super) fn read_checked(bytes: &[u8]) -> Option<Checked<'_>> {
    let (item, length) = read(bytes)?;
    let ours = backlen_length(length);
    let (is_ours, taken) = if is_backlen(length, bytes.get(length..)?, ours) {
        (true, ours)
    } else {
        let fits = is_disputed(length) && is_backlen(length, &bytes[length..], ours - 1);
        fits.then_some((false, ours - 1))?
    };
    Some(Checked { item, length: length + taken, is_ours })
}

fn is_backlen(length: usize, bytes: &[u8], taken: usize) -> bool {
    let mut backlen = [0; 5];
    let backlen = &mut backlen[..taken];
    write_backlen(length, backlen);
    bytes.starts_with(backlen)
}

/// Where the element that ends at the end of `bytes` begins, as its backlen tells it.
#[inline]
pub(super) fn start_of_last(bytes: &[u8]) -> Option<usize> {
    let mut length = 0;
    for (index, byte) in bytes.iter().rev().take(5).enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return bytes.len().checked_sub(index + 1)?.checked_sub(length);
        }
    }
    None
}
