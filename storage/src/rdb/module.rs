//! What modules left in a file: their name, which is packed into a number, and data that can be skipped without knowing the
//! module, because each piece says what it is.
//!
//! ```text
//! id                                  54 bits of name (nine letters of six bits each), 10 bits of version
//! (1|2 length) | (3 4 bytes) | (4 8 bytes) | (5 string)           pieces
//! 0                                   the end
//! ```

use super::cursor::{Cursor, Fault};
use super::length::read_length;
use super::skip::skip_string;
use std::fmt;

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const NAME_LETTERS: u32 = 9;
const VERSION_BITS: u32 = 10;

const END: u64 = 0;
const SIGNED: u64 = 1;
const UNSIGNED: u64 = 2;
const FLOAT: u64 = 3;
const DOUBLE: u64 = 4;
const STRING: u64 = 5;

/// Which module's type, by the number that stands for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModuleType(pub u64);

impl fmt::Display for ModuleType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in (0..NAME_LETTERS).rev() {
            let index = (self.0 >> (VERSION_BITS + letter * 6)) & 63;
            write!(f, "{}", char::from(LETTERS[index as usize]))?;
        }
        Ok(())
    }
}

/// Skips the pieces of a value, and their end.
pub(super) fn skip_pieces(cursor: &mut Cursor<'_>, string_bytes_max: usize) -> Result<(), Fault> {
    loop {
        match read_length(cursor)? {
            END => return Ok(()),
            SIGNED | UNSIGNED => {
                read_length(cursor)?;
            }
            FLOAT => {
                cursor.take(4)?;
            }
            DOUBLE => {
                cursor.take(8)?;
            }
            STRING => skip_string(cursor, string_bytes_max)?,
            _ => return Err(Fault::Module),
        }
    }
}

/// Skips what a module keeps beside the keys; returns whose it is.
pub(super) fn skip_aux(cursor: &mut Cursor<'_>, string_bytes_max: usize) -> Result<ModuleType, Fault> {
    let module = ModuleType(read_length(cursor)?);
    // Whether it goes before or after the keys, as a piece of its own.
    if read_length(cursor)? != UNSIGNED {
        return Err(Fault::Module);
    }
    read_length(cursor)?;
    skip_pieces(cursor, string_bytes_max)?;
    Ok(module)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdb::string::STRING_BYTES_MAX;

    /// The head of a vector set in a file of Redis 8.10.2.
    const VECTOR_SET: &[u8] = b"\x81\xbd\xe7-\xa2\xbb\x1e\xb4\0";

    #[test]
    fn a_name_is_read_out_of_its_number() {
        let id = read_length(&mut Cursor::new(VECTOR_SET)).unwrap();
        assert_eq!(ModuleType(id).to_string(), "vectorset");
        assert_eq!(ModuleType(0).to_string(), "AAAAAAAAA");
        assert_eq!(ModuleType(u64::MAX).to_string(), "_________");
    }

    #[test]
    fn data_is_skipped_to_its_end_and_not_beyond() {
        let pieces = b"\x01\x05\x02@\x64\x03abcd\x04abcdefgh\x05\x02hi\x00rest";
        let mut cursor = Cursor::new(pieces);
        skip_pieces(&mut cursor, STRING_BYTES_MAX).unwrap();
        assert_eq!(cursor.consumed(), pieces.len() - 4);
        for cut in 0..pieces.len() - 4 {
            assert_eq!(skip_pieces(&mut Cursor::new(&pieces[..cut]), STRING_BYTES_MAX), Err(Fault::Short));
        }
        assert_eq!(skip_pieces(&mut Cursor::new(b"\x06"), STRING_BYTES_MAX), Err(Fault::Module));
    }
}
