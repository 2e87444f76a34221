//! Strings as RDB stores them: keys, values and auxiliary fields alike.
//!
//! ```text
//! length bytes                      as they are
//! C0 1 byte | C1 2 | C2 4           the decimal form of a signed number, little endian
//! C3 packed-length length bytes     LZF compressed
//! ```

use super::cursor::{Cursor, Fault};
use super::length::{Length, read_length, read_length_or_encoding, write_length};
use super::lzf;
use std::borrow::Cow;
use std::ops::{Deref, DerefMut};

/// Longest string that is read unless the caller says otherwise: what `proto-max-bulk-len` allows by default.
pub const STRING_BYTES_MAX: usize = 512 * 1024 * 1024;
/// The longest decimal form of a number of 32 bits.
const INTEGER_BYTES_MAX: usize = 11;

/// What stands instead of a length where a string is not written as it is.
pub(super) mod encoding {
    pub const INTEGER_8: u8 = 0;
    pub const INTEGER_16: u8 = 1;
    pub const INTEGER_32: u8 = 2;
    pub const LZF: u8 = 3;
}
/// An encoding's number with the two bits that say that it is one.
const ENCODING: u8 = 0xc0;

/// Reads a string of at most `bytes_max` bytes.
pub fn read_string<'a>(cursor: &mut Cursor<'a>, bytes_max: usize) -> Result<Cow<'a, [u8]>, Fault> {
    match read_length_or_encoding(cursor)? {
        Length::Plain(length) => Ok(Cow::Borrowed(cursor.take(bounded(length, bytes_max)?)?)),
        Length::Encoding(encoding::INTEGER_8) => Ok(decimal(i8::from_le_bytes(cursor.array()?).into())),
        Length::Encoding(encoding::INTEGER_16) => Ok(decimal(i16::from_le_bytes(cursor.array()?).into())),
        Length::Encoding(encoding::INTEGER_32) => Ok(decimal(i32::from_le_bytes(cursor.array()?))),
        Length::Encoding(encoding::LZF) => {
            let packed_length = bounded(read_length(cursor)?, bytes_max)?;
            let length = bounded(read_length(cursor)?, bytes_max)?;
            Ok(Cow::Owned(lzf::decompress(cursor.take(packed_length)?, length)?))
        }
        Length::Encoding(_) => Err(Fault::StringEncoding),
    }
}

pub(super) fn bounded(length: u64, bytes_max: usize) -> Result<usize, Fault> {
    usize::try_from(length).ok().filter(|&length| length <= bytes_max).ok_or(Fault::TooLong)
}

fn decimal(number: i32) -> Cow<'static, [u8]> {
    let mut digits = itoa::Buffer::new();
    Cow::Owned(digits.format(number).as_bytes().to_vec())
}

/// Appends a string: as a number if it is the decimal form of one of at most 32 bits, as it is otherwise.
pub fn write_string(out: &mut Vec<u8>, bytes: &[u8]) {
    match canonical_integer(bytes) {
        Some(number) => write_integer(out, number),
        None => {
            write_length(out, bytes.len() as u64);
            out.extend_from_slice(bytes);
        }
    }
}

/// Where a value is written: bytes, and whether strings are compressed.
#[derive(Debug)]
pub struct Sink<'a> {
    bytes: &'a mut Vec<u8>,
    compresses: bool,
}

/// Shorter strings are not compressed.
const COMPRESSED_LEAST: usize = 21;
/// Longer strings are not compressed: who waits for the shard would wait for that, too.
const COMPRESSED_MAX: usize = 64 << 10;

impl<'a> Sink<'a> {
    /// Writes to `bytes`.
    pub fn new(bytes: &'a mut Vec<u8>, compresses: bool) -> Self {
        Self { bytes, compresses }
    }

    /// Appends a string, compressed if that is wanted and makes it shorter.
    pub fn string(&mut self, bytes: &[u8]) {
        let is_compressed = self.compresses && (COMPRESSED_LEAST..=COMPRESSED_MAX).contains(&bytes.len());
        match is_compressed.then(|| lzf::compress(bytes)).flatten() {
            Some(packed) => {
                self.bytes.push(ENCODING | encoding::LZF);
                write_length(self.bytes, packed.len() as u64);
                write_length(self.bytes, bytes.len() as u64);
                self.bytes.extend_from_slice(&packed);
            }
            None => write_string(self.bytes, bytes),
        }
    }
}

impl Deref for Sink<'_> {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        self.bytes
    }
}

impl DerefMut for Sink<'_> {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        self.bytes
    }
}

fn write_integer(out: &mut Vec<u8>, number: i32) {
    if let Ok(narrow) = i8::try_from(number) {
        out.push(ENCODING | encoding::INTEGER_8);
        out.extend_from_slice(&narrow.to_le_bytes());
    } else if let Ok(narrow) = i16::try_from(number) {
        out.push(ENCODING | encoding::INTEGER_16);
        out.extend_from_slice(&narrow.to_le_bytes());
    } else {
        out.push(ENCODING | encoding::INTEGER_32);
        out.extend_from_slice(&number.to_le_bytes());
    }
}

/// The number whose one decimal form `bytes` is.
fn canonical_integer(bytes: &[u8]) -> Option<i32> {
    (bytes.len() <= INTEGER_BYTES_MAX).then_some(())?;
    let number: i32 = std::str::from_utf8(bytes).ok()?.parse().ok()?;
    let mut digits = itoa::Buffer::new();
    (digits.format(number).as_bytes() == bytes).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As the bodies of Redis 8.2.3's DUMP.
    #[test]
    fn numbers_and_texts_as_redis_writes_them() {
        let cases: [(&[u8], &[u8]); 13] = [
            (b"123", b"\xc0{"),
            (b"-128", b"\xc0\x80"),
            (b"-129", b"\xc1\x7f\xff"),
            (b"70000", b"\xc2p\x11\x01\x00"),
            (b"-2147483648", b"\xc2\x00\x00\x00\x80"),
            (b"2147483648", b"\n2147483648"),
            (b"3000000000", b"\n3000000000"),
            (b"00", b"\x0200"),
            (b"-0", b"\x02-0"),
            (b"+1", b"\x02+1"),
            (b"", b"\x00"),
            (b"1.5", b"\x031.5"),
            (b"ab", b"\x02ab"),
        ];
        for (value, body) in cases {
            let mut out = Vec::new();
            write_string(&mut out, value);
            assert_eq!(out, body);
            assert_eq!(read_string(&mut Cursor::new(body), STRING_BYTES_MAX).unwrap(), value);
        }
    }

    #[test]
    fn refuses_by_name() {
        let read = |bytes: &[u8]| read_string(&mut Cursor::new(bytes), 10).unwrap_err();
        assert_eq!(read(b"\x0b0123456789a"), Fault::TooLong);
        assert_eq!(read(b"\x81\xff\xff\xff\xff\xff\xff\xff\xff"), Fault::TooLong);
        assert_eq!(read(b"\xc4"), Fault::StringEncoding);
        assert_eq!(read(b"\xc3\x06\x0b\x01aa\xe0\n\x00"), Fault::TooLong);
        assert_eq!(read(b"\xc3\x01\x02\xff"), Fault::Lzf);
        assert_eq!(read(b"\xc2abc"), Fault::Short);
    }

    #[test]
    fn a_sink_compresses_what_it_is_told_to() {
        for (value, compresses, is_shorter) in [
            (vec![b'a'; 100], true, true),
            (vec![b'a'; 100], false, false),
            (vec![b'a'; 20], true, false),
            (vec![b'a'; COMPRESSED_MAX + 1], true, false),
        ] {
            let mut out = Vec::new();
            Sink::new(&mut out, compresses).string(&value);
            assert_eq!(out.len() < value.len(), is_shorter, "{} {compresses}", value.len());
            assert_eq!(read_string(&mut Cursor::new(&out), STRING_BYTES_MAX).unwrap(), value);
        }
    }

    proptest! {
        #[test]
        fn round_trip(value in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..100),
            any::<i32>().prop_map(|number| number.to_string().into_bytes()),
            any::<i64>().prop_map(|number| number.to_string().into_bytes()),
        ]) {
            let mut out = Vec::new();
            write_string(&mut out, &value);
            let mut cursor = Cursor::new(&out);
            let back = read_string(&mut cursor, STRING_BYTES_MAX).unwrap().into_owned();
            prop_assert_eq!(back, value);
            prop_assert_eq!(cursor.consumed(), out.len());
        }
    }
}
