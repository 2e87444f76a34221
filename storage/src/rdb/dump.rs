//! The payload of DUMP and RESTORE: one value, the RDB version it is written in, and a sum.
//!
//! ```text
//! type value | version, 2 bytes little endian | CRC-64 of everything before it, 8 bytes little endian
//! ```
//!
//! We write version 10, which Redis from 7.0 on and Valkey restore, but for hashes with expiring fields; a number or short text is
//! written byte for byte as they do (long texts they compress, we do not). We read every version of both. Unlike they do, we do not let a value
//! reach into the footer: `\0\5abc` is refused here, and restored as `abc\n\0` there.

use super::crc64::crc64;
use super::cursor::Cursor;
use super::value::{Loaded, Loading, Refusal, kind_of, read_value, version_of, write_value};
use super::{REDIS_VERSION_MAX, VALKEY_VERSIONS};
use crate::entry::EntryRef;

/// Why a payload is refused; the text is the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DumpError {
    /// Too short, from a newer server, or damaged.
    #[error("ERR DUMP payload version or checksum are wrong")]
    VersionOrChecksum,
    /// The sum fits, but not the value.
    #[error("ERR Bad data format")]
    Format,
    /// A value of a type that this server does not have yet.
    #[error("ERR this server cannot restore a {0} yet")]
    Unsupported(&'static str),
}

/// Appends the payload of an entry's value.
pub fn dump(out: &mut Vec<u8>, entry: EntryRef<'_>) {
    let start = out.len();
    let kind = kind_of(entry);
    out.push(kind);
    write_value(out, entry);
    seal(out, start, version_of(kind));
}

/// Ends a payload that begins at `start` with its version and the sum.
pub(super) fn seal(out: &mut Vec<u8>, start: usize, version: u16) {
    out.extend_from_slice(&version.to_le_bytes());
    let sum = crc64(0, &out[start..]);
    out.extend_from_slice(&sum.to_le_bytes());
}

/// Appends the payload of a value that was read.
pub fn dump_loaded(out: &mut Vec<u8>, value: Loaded<'_>) {
    let entry = value.into_entry(b"", None, 0);
    dump(out, entry.view());
    entry.free();
}

/// Checks version and sum; returns type and value without the footer.
pub fn verify(payload: &[u8]) -> Result<&[u8], DumpError> {
    let (summed, sum) = payload.split_last_chunk::<8>().ok_or(DumpError::VersionOrChecksum)?;
    let (body, version) = summed.split_last_chunk::<2>().ok_or(DumpError::VersionOrChecksum)?;
    let version = u16::from_le_bytes(*version);
    let known = version <= REDIS_VERSION_MAX || VALKEY_VERSIONS.contains(&version);
    if known && u64::from_le_bytes(*sum) == crc64(0, summed) { Ok(body) } else { Err(DumpError::VersionOrChecksum) }
}

/// Checks a payload and reads its value.
pub fn restore<'a>(payload: &'a [u8], loading: &Loading<'_>) -> Result<Loaded<'a>, DumpError> {
    let mut cursor = Cursor::new(verify(payload)?);
    let kind = cursor.byte().map_err(|_| DumpError::Format)?;
    // Bytes after the value are ignored, as there.
    read_value(kind, &mut cursor, loading).map_err(|refusal| match refusal {
        Refusal::Fault(_) | Refusal::Unknown(_) => DumpError::Format,
        Refusal::Unsupported(name) => DumpError::Unsupported(name),
        Refusal::Module(_) => DumpError::Unsupported("module value"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Entry;
    use crate::fixture::Fixture;
    use proptest::prelude::*;

    fn payload(body: &[u8], version: u16) -> Vec<u8> {
        let mut out = body.to_vec();
        seal(&mut out, 0, version);
        out
    }

    fn restored(payload: &[u8]) -> Result<Vec<u8>, DumpError> {
        match restore(payload, &Fixture::new().loading())? {
            Loaded::String(value) => Ok(value.into_owned()),
            Loaded::Collection(_) => panic!("a collection where a string was dumped"),
        }
    }

    fn dump_string(out: &mut Vec<u8>, value: &[u8]) {
        let entry: Entry = Loaded::String(value.into()).into_entry(b"key", None, 0);
        dump(out, entry.view());
        entry.free();
    }

    /// Redis 7.0.15 gave these bytes.
    #[test]
    fn byte_for_byte_as_redis_7() {
        let cases: [(&[u8], &[u8]); 4] = [
            (b"123", b"\x00\xc0{\n\x00H\xe2S\xe1\x00zg\xb9"),
            (b"70000", b"\x00\xc2p\x11\x01\x00\n\x00\x01\xa4\x08\xfe\x950\x95\xa5"),
            (b"", b"\x00\x00\n\x00]\x9b\\@\x0f\x7f\xa2\xda"),
            (b"aaaaaaaaaaaaaaaaaaaa", b"\x00\x14aaaaaaaaaaaaaaaaaaaa\n\x00\x83\xb4k^\x1b\x11\xac\xf1"),
        ];
        for (value, expected) in cases {
            let mut out = Vec::new();
            dump_string(&mut out, value);
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn restores_what_others_dump() {
        let redis_8 = b"\x00\xc3\x06\x15\x01aa\xe0\n\x00\x0c\x006z\x87\xa8\xfdk\xa1!";
        assert_eq!(restored(redis_8).unwrap(), [b'a'; 21]);
        let valkey_9 = b"\x00\xc3\x06\x15\x01aa\xe0\n\x00P\x002&z\xf9\x99\x13X\x9c";
        assert_eq!(restored(valkey_9).unwrap(), [b'a'; 21]);
    }

    /// Redis 8.2.3 answers the same, but for the last case of each list (see the head of this file).
    #[test]
    fn refused_as_redis_does() {
        for payload in [&b""[..], b"abc", b"\x00\x03abc\x0a\x00\0\0\0\0\0\0\0\0"] {
            assert_eq!(restored(payload), Err(DumpError::VersionOrChecksum));
        }
        for version in [REDIS_VERSION_MAX + 1, 79, 81, u16::MAX] {
            assert_eq!(restored(&payload(b"\0\x03abc", version)), Err(DumpError::VersionOrChecksum));
        }
        for body in [
            &b""[..],
            b"\x63\x03abc",
            b"\0\xc5a",
            b"\0\xc3\x06\x16\x01aa\xe0\n\x00",
            b"\0\x82\0\0\0\x03abc",
            b"\0\x05abc",
        ] {
            assert_eq!(restored(&payload(body, 10)), Err(DumpError::Format), "{body:?}");
        }
        for body in [&b"\0\x81\0\0\0\0\0\0\0\x03abc"[..], b"\0\x80\0\0\0\x03abc", b"\0\x03abcdef"] {
            assert_eq!(restored(&payload(body, 1)).unwrap(), b"abc", "{body:?}");
        }
        assert_eq!(restored(&payload(b"\x07\x00", 10)), Err(DumpError::Unsupported("module value")));
    }

    proptest! {
        #[test]
        fn round_trip_and_every_flipped_bit(value in prop::collection::vec(any::<u8>(), 0..60), bit: prop::sample::Index) {
            let mut out = Vec::new();
            dump_string(&mut out, &value);
            prop_assert_eq!(restored(&out).unwrap(), value);
            let bit = bit.index(out.len() * 8);
            out[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(restored(&out), Err(DumpError::VersionOrChecksum));
        }

        #[test]
        fn any_body_is_safe(body in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = restore(&payload(&body, 10), &Fixture::new().loading());
        }
    }
}
