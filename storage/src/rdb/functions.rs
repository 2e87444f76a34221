//! The payload of FUNCTION DUMP and RESTORE: the texts of libraries as they stand in an RDB file, the version, and a sum.
//!
//! ```text
//! (F5 text)... | version, 2 bytes little endian | CRC-64 of everything before it, 8 bytes little endian
//! ```

use super::cursor::Cursor;
use super::dump::{DumpError, seal, verify};
use super::string::{STRING_BYTES_MAX, read_string, write_string};
use super::{VERSION_WRITTEN, opcode};
use std::borrow::Cow;

/// Why a payload is refused; the text is the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FunctionsError {
    /// Too short, from a newer server, or damaged.
    #[error("ERR DUMP payload version or checksum are wrong")]
    VersionOrChecksum,
    /// The sum fits, but there is something else than libraries in it.
    #[error("ERR given type is not a function")]
    NoFunction,
    /// A library whose text cannot be read.
    #[error("ERR Failed loading library payload")]
    Format,
    /// A library as Redis had it before 7.0 was done.
    #[error("ERR Pre-GA function format not supported")]
    Early,
}

/// Appends a library's text, as it stands in a file and in a payload.
pub fn write_library(out: &mut Vec<u8>, source: &[u8]) {
    out.push(opcode::FUNCTION);
    write_string(out, source);
}

/// The payload of these libraries.
pub fn dump<'a>(sources: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    sources.for_each(|source| write_library(&mut out, source));
    seal(&mut out, 0, VERSION_WRITTEN);
    out
}

/// Checks a payload and returns the texts in it.
pub fn restore(payload: &[u8]) -> Result<Vec<Cow<'_, [u8]>>, FunctionsError> {
    let body = verify(payload).map_err(|error| match error {
        DumpError::VersionOrChecksum => FunctionsError::VersionOrChecksum,
        DumpError::Format | DumpError::Unsupported(_) => FunctionsError::Format,
    })?;
    let mut cursor = Cursor::new(body);
    let mut sources = Vec::new();
    while cursor.consumed() < body.len() {
        match cursor.byte().map_err(|_| FunctionsError::Format)? {
            opcode::FUNCTION => {
                sources.push(read_string(&mut cursor, STRING_BYTES_MAX).map_err(|_| FunctionsError::Format)?);
            }
            opcode::FUNCTION_EARLY => return Err(FunctionsError::Early),
            _ => return Err(FunctionsError::NoFunction),
        }
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn payload(body: &[u8], version: u16) -> Vec<u8> {
        let mut out = body.to_vec();
        seal(&mut out, 0, version);
        out
    }

    #[test]
    fn restores_what_others_dump() {
        // Redis 8.2.3 without any library, and with one.
        assert_eq!(restore(b"\x0c\x00\x96\xedh\x80\xf5U<\x93").unwrap(), Vec::<Cow<'_, [u8]>>::new());
        let one = b"\xf5\x05#!lua";
        assert_eq!(restore(&payload(one, 12)).unwrap(), [&b"#!lua"[..]]);
        assert_eq!(restore(&payload(one, 80)).unwrap(), [&b"#!lua"[..]]);
    }

    #[test]
    fn refused_by_name() {
        assert_eq!(restore(b"x"), Err(FunctionsError::VersionOrChecksum));
        assert_eq!(restore(&payload(b"\xf5\x05#!lua", 79)), Err(FunctionsError::VersionOrChecksum));
        assert_eq!(restore(&payload(b"\x00\x03abc", 10)), Err(FunctionsError::NoFunction));
        assert_eq!(restore(&payload(b"\xf6\x03abc", 10)), Err(FunctionsError::Early));
        assert_eq!(restore(&payload(b"\xf5\x05#!", 10)), Err(FunctionsError::Format));
    }

    proptest! {
        #[test]
        fn round_trip(sources in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..5)) {
            let payload = dump(sources.iter().map(Vec::as_slice));
            prop_assert_eq!(restore(&payload).unwrap(), sources);
        }

        #[test]
        fn any_body_is_safe(body in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = restore(&payload(&body, 10));
        }
    }
}
