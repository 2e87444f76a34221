//! Lengths: one to nine bytes, the first two bits say how many.
//!
//! ```text
//! 00xxxxxx                         6 bits
//! 01xxxxxx xxxxxxxx               14 bits, the high ones first
//! 10000000 4 bytes                32 bits, big endian
//! 10000001 8 bytes                64 bits, big endian
//! 11xxxxxx                        no length: the number of a string encoding
//! ```

use super::cursor::{Cursor, Fault};

/// What stands where a length may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// A length or number.
    Plain(u64),
    /// The number of a string encoding.
    Encoding(u8),
}

const WIDE_32: u8 = 0x80;
const WIDE_64: u8 = 0x81;

/// Reads a length or the number of an encoding.
pub fn read_length_or_encoding(cursor: &mut Cursor<'_>) -> Result<Length, Fault> {
    let first = cursor.byte()?;
    let low = first & 0x3f;
    match first >> 6 {
        0 => Ok(Length::Plain(u64::from(low))),
        1 => Ok(Length::Plain(u64::from(low) << 8 | u64::from(cursor.byte()?))),
        3 => Ok(Length::Encoding(low)),
        _ if first == WIDE_32 => Ok(Length::Plain(u64::from(u32::from_be_bytes(cursor.array()?)))),
        _ if first == WIDE_64 => Ok(Length::Plain(u64::from_be_bytes(cursor.array()?))),
        _ => Err(Fault::Length),
    }
}

/// Reads a length.
pub fn read_length(cursor: &mut Cursor<'_>) -> Result<u64, Fault> {
    match read_length_or_encoding(cursor)? {
        Length::Plain(length) => Ok(length),
        Length::Encoding(_) => Err(Fault::Length),
    }
}

/// Appends a length in its shortest form.
pub fn write_length(out: &mut Vec<u8>, length: u64) {
    if let Ok(wide) = u32::try_from(length) {
        match wide {
            0..0x40 => out.push(wide as u8),
            0x40..0x4000 => out.extend_from_slice(&(0x4000 | wide as u16).to_be_bytes()),
            _ => {
                out.push(WIDE_32);
                out.extend_from_slice(&wide.to_be_bytes());
            }
        }
    } else {
        out.push(WIDE_64);
        out.extend_from_slice(&length.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_at_their_edges() {
        let edges =
            [(0, 1), (0x3f, 1), (0x40, 2), (0x3fff, 2), (0x4000, 5), (0xffff_ffff, 5), (1 << 32, 9), (u64::MAX, 9)];
        for (length, bytes) in edges {
            let mut out = Vec::new();
            write_length(&mut out, length);
            assert_eq!(out.len(), bytes, "{length}");
            assert_eq!(read_length(&mut Cursor::new(&out)), Ok(length));
            for cut in 0..bytes {
                assert_eq!(read_length(&mut Cursor::new(&out[..cut])), Err(Fault::Short), "{length} cut {cut}");
            }
        }
        assert_eq!(read_length(&mut Cursor::new(&[0x82, 0, 0, 0, 0])), Err(Fault::Length));
        assert_eq!(read_length(&mut Cursor::new(&[0xc0])), Err(Fault::Length));
    }
}
