//! Reads an RDB file, chunk by chunk: what Redis up to version 15 (8.10) and Valkey 80 (9.1) write. A value of a type that is not
//! built is refused by name and offset, never skipped: that would be silent data loss. What stands beside the keys is handed out:
//! libraries of functions with their text, a module's data with its name.
//!
//! [`Reader::next_raw`] finds an entry without building its value ([`RawKey::build`] does, wherever that is wanted);
//! [`Reader::next_item`] does both.
//!
//! Memory is bounded by the largest single entry, and nothing is allocated for a length before its bytes are there. What was
//! handed out counts only once [`Item::End`] came: only then is the file's sum known to fit.

use super::crc64::crc64;
use super::cursor::{Cursor, Fault};
use super::length::read_length;
use super::module::{self, ModuleType};
use super::skip::skip_value;
use super::string::read_string;
use super::value::{Loaded, Loading, Refusal, kind, read_value, refusal_of};
use super::write::Access;
use super::{REDIS_VERSION_MAX, VALKEY_VERSIONS, opcode};
use std::borrow::Cow;

const HEADER_BYTES: usize = 9;
const SUM_BYTES: usize = 8;
/// Before this version files had no sum.
const FIRST_VERSION_WITH_SUM: u16 = 5;

/// Whether a file that begins with `front` is an RDB file (or an AOF file with one at its front), as far as can be told.
pub fn is_rdb(front: &[u8]) -> bool {
    front.starts_with(b"REDIS") || front.starts_with(b"VALKEY")
}

/// One entry of a file.
#[derive(Debug, Clone)]
pub enum Item<'a> {
    /// An auxiliary field.
    Aux {
        /// Its name.
        name: Cow<'a, [u8]>,
        /// Its value.
        value: Cow<'a, [u8]>,
    },
    /// How many keys follow in this database: a hint for sizing, not to be trusted.
    Resize {
        /// The database.
        database: u32,
        /// Keys.
        keys: u64,
        /// Keys that expire.
        expires: u64,
    },
    /// A library of functions.
    Library {
        /// Its text.
        source: Cow<'a, [u8]>,
    },
    /// A key with its value.
    Key {
        /// The database.
        database: u32,
        /// The key.
        key: Cow<'a, [u8]>,
        /// The value.
        value: Loaded<'a>,
        /// When it expires, in ms since 1970; may have passed.
        expire_at_ms: Option<i64>,
        /// What is known of its use.
        access: Access,
    },
    /// Data that a module keeps beside the keys; without the module it has no meaning.
    ModuleAux {
        /// Whose it is.
        module: ModuleType,
    },
    /// The end; the sum fits.
    End,
}

/// One entry of a file, a key's value not yet looked at.
#[derive(Debug, Clone)]
pub enum RawItem<'a> {
    /// A key.
    Key(RawKey<'a>),
    /// Anything else.
    Other(Item<'a>),
}

/// A key whose value is still as it stands in the file.
#[derive(Debug, Clone)]
pub struct RawKey<'a> {
    /// The database.
    pub database: u32,
    /// The key.
    pub key: Cow<'a, [u8]>,
    /// The value's type byte.
    pub kind: u8,
    /// The bytes behind key.
    pub value: &'a [u8],
    /// When it expires, in ms since 1970; may have passed.
    pub expire_at_ms: Option<i64>,
    /// What is known of its use.
    pub access: Access,
    /// Where the entry begins in the file.
    pub offset: u64,
}

/// Builds the value that [`Reader::next_raw`] found: `bytes` behind the type byte `kind`, of the entry at `offset`.
pub fn build_value<'a>(kind: u8, bytes: &'a [u8], offset: u64, loading: &Loading<'_>) -> Result<Loaded<'a>, ReadError> {
    let mut cursor = Cursor::new(bytes);
    match read_value(kind, &mut cursor, loading) {
        Ok(value) if cursor.consumed() == bytes.len() => Ok(value),
        // It does not reach as far as its lengths say, or further.
        Ok(_) | Err(Refusal::Fault(Fault::Short)) => Err(ReadError::Damaged { offset, fault: Fault::Packed }),
        Err(refusal) => Err(refused(refusal, offset)),
    }
}

impl<'a> RawKey<'a> {
    /// Builds the value.
    pub fn build(self, loading: &Loading<'_>) -> Result<Item<'a>, ReadError> {
        let value = build_value(self.kind, self.value, self.offset, loading)?;
        let Self { database, key, expire_at_ms, access, .. } = self;
        Ok(Item::Key { database, key, value, expire_at_ms, access })
    }
}

/// Why a file is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Neither REDIS nor VALKEY and a number.
    #[error("not an RDB file: wrong signature")]
    Signature,
    /// Written by a newer server.
    #[error("can't handle RDB format version {0}")]
    Version(u16),
    /// A value of a type that is not built yet.
    #[error("this file holds what is not built yet at byte {offset}: {name}")]
    Unsupported {
        /// Its name.
        name: &'static str,
        /// Where.
        offset: u64,
    },
    /// A value of a module.
    #[error("this file holds a value of module {module} at byte {offset}: modules are not built yet")]
    Module {
        /// Which.
        module: ModuleType,
        /// Where.
        offset: u64,
    },
    /// An entry that no known server writes.
    #[error("unknown RDB entry {code} at byte {offset}")]
    Unknown {
        /// Its first byte.
        code: u8,
        /// Where.
        offset: u64,
    },
    /// An entry that cannot be read.
    #[error("damaged RDB file at byte {offset}: {fault}")]
    Damaged {
        /// Where the entry begins.
        offset: u64,
        /// What is wrong.
        fault: Fault,
    },
    /// The sum of the file does not fit.
    #[error("wrong RDB checksum: expected {expected:016x}, found {found:016x}")]
    Checksum {
        /// What the bytes sum to.
        expected: u64,
        /// What the file says.
        found: u64,
    },
    /// The file ends before its end marker.
    #[error("unexpected end of the RDB file within the entry at byte {0}")]
    Truncated(u64),
}

/// The reader of one file.
#[derive(Debug, Default)]
pub struct Reader {
    buffer: Vec<u8>,
    state: State,
}

/// Apart from the buffer, so that entries can borrow from that while this moves on.
#[derive(Debug, Default)]
struct State {
    /// File offset of the buffer's first byte.
    buffer_offset: u64,
    /// How far the buffer is read.
    scan: usize,
    /// How far the buffer is summed. Long pieces are summed many times faster than short ones.
    summed: usize,
    /// Length of the buffer from which another look at the entry at `scan` pays.
    look_again: usize,
    sum: u64,
    version: Option<u16>,
    database: u32,
    expire_at_ms: Option<i64>,
    access: Access,
    ended: bool,
}

/// What one step came to.
enum Step<'a> {
    Item(RawItem<'a>),
    Advanced,
    Starved,
}

impl Reader {
    /// At the front of a file.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the file's next bytes. Call [`Reader::next_item`] until it has no more before feeding again.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.state.sum_up(&self.buffer);
        let State { buffer_offset, scan, look_again, summed, .. } = &mut self.state;
        if *scan > self.buffer.len() / 2 {
            self.buffer.drain(..*scan);
            *buffer_offset += *scan as u64;
            *look_again = look_again.saturating_sub(*scan);
            (*scan, *summed) = (0, 0);
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next entry, its value built as `loading` says; none when more bytes are needed, and after [`Item::End`].
    pub fn next_item(&mut self, loading: &Loading<'_>) -> Result<Option<Item<'_>>, ReadError> {
        match self.next_raw(loading.string_bytes_max)? {
            Some(RawItem::Key(raw)) => raw.build(loading).map(Some),
            Some(RawItem::Other(item)) => Ok(Some(item)),
            None => Ok(None),
        }
    }

    /// The next entry, with strings of at most `string_bytes_max`; none when more bytes are needed, and after [`Item::End`].
    pub fn next_raw(&mut self, string_bytes_max: usize) -> Result<Option<RawItem<'_>>, ReadError> {
        let Self { buffer, state } = self;
        if buffer.len() < state.look_again {
            return Ok(None);
        }
        loop {
            match state.step(buffer, string_bytes_max)? {
                Step::Item(item) => return Ok(Some(item)),
                Step::Advanced => {}
                Step::Starved => return Ok(None),
            }
        }
    }

    /// The file has no more bytes: entries that were waiting for more can be read with [`Reader::next_item`] now.
    pub fn finish(&mut self) {
        self.state.look_again = 0;
    }

    /// Whether [`Item::End`] came. If the file is at its end and this is false, it is truncated.
    pub fn is_ended(&self) -> bool {
        self.state.ended
    }

    /// How much of the file was read. After [`Item::End`], the length of the RDB file.
    pub fn offset(&self) -> u64 {
        self.state.offset()
    }

    /// Bytes that were fed but not read: after [`Item::End`], the records of an AOF file that begins with an RDB file.
    pub fn rest(&self) -> &[u8] {
        &self.buffer[self.state.scan..]
    }
}

impl State {
    fn offset(&self) -> u64 {
        self.buffer_offset + self.scan as u64
    }

    /// Sums what is read and not yet summed.
    fn sum_up(&mut self, buffer: &[u8]) {
        self.sum = crc64(self.sum, &buffer[self.summed..self.scan]);
        self.summed = self.scan;
    }

    fn step<'a>(&mut self, buffer: &'a [u8], string_bytes_max: usize) -> Result<Step<'a>, ReadError> {
        if self.ended {
            return Ok(Step::Starved);
        }
        let rest = &buffer[self.scan..];
        let Some(version) = self.version else { return self.step_header(rest) };
        let offset = self.offset();
        let mut cursor = Cursor::new(rest);
        match self.read_entry(&mut cursor, version, string_bytes_max) {
            Ok(step) => {
                let entry = &rest[..cursor.consumed()];
                if self.ended {
                    self.sum_up(buffer);
                    self.check_sum(entry)?;
                }
                self.scan += entry.len();
                Ok(step)
            }
            Err(Refusal::Fault(Fault::Short)) => {
                // Looking again only after a good part more has come keeps large values from costing their square.
                self.look_again = buffer.len() + rest.len() / 4;
                Ok(Step::Starved)
            }
            Err(refusal) => Err(refused(refusal, offset)),
        }
    }

    fn step_header(&mut self, rest: &[u8]) -> Result<Step<'static>, ReadError> {
        let Some(header) = rest.get(..HEADER_BYTES) else { return Ok(Step::Starved) };
        self.version = Some(read_header(header)?);
        self.scan += HEADER_BYTES;
        Ok(Step::Advanced)
    }

    fn read_entry<'a>(
        &mut self,
        cursor: &mut Cursor<'a>,
        version: u16,
        string_bytes_max: usize,
    ) -> Result<Step<'a>, Refusal> {
        match cursor.byte()? {
            opcode::DATABASE => {
                self.database = u32::try_from(read_length(cursor)?).map_err(|_| Fault::Length)?;
            }
            opcode::EXPIRE_MS => self.expire_at_ms = Some(i64::from_le_bytes(cursor.array()?)),
            opcode::EXPIRE_S => self.expire_at_ms = Some(i64::from(i32::from_le_bytes(cursor.array()?)) * 1000),
            opcode::IDLE => self.access = Access::IdleSeconds(read_length(cursor)?),
            opcode::FREQUENCY => self.access = Access::Frequency(cursor.byte()?),
            opcode::SLOT_INFO => {
                for _ in 0..3 {
                    read_length(cursor)?;
                }
            }
            opcode::RESIZE => {
                let (keys, expires) = (read_length(cursor)?, read_length(cursor)?);
                return Ok(other(Item::Resize { database: self.database, keys, expires }));
            }
            opcode::AUX => {
                let name = read_string(cursor, string_bytes_max)?;
                let value = read_string(cursor, string_bytes_max)?;
                return Ok(other(Item::Aux { name, value }));
            }
            opcode::END => {
                if version >= FIRST_VERSION_WITH_SUM {
                    cursor.array::<SUM_BYTES>()?;
                }
                self.ended = true;
                return Ok(other(Item::End));
            }
            opcode::FUNCTION => {
                return Ok(other(Item::Library { source: read_string(cursor, string_bytes_max)? }));
            }
            opcode::FUNCTION_EARLY => {
                return Err(Refusal::Unsupported("function library of a release candidate of Redis 7.0"));
            }
            opcode::MODULE_AUX => {
                return Ok(other(Item::ModuleAux { module: module::skip_aux(cursor, string_bytes_max)? }));
            }
            opcode::SLOT_IMPORT => return Err(Refusal::Unsupported("slot migration under way")),
            kind => return self.read_key(kind, cursor, string_bytes_max),
        }
        Ok(Step::Advanced)
    }

    fn read_key<'a>(&mut self, kind: u8, cursor: &mut Cursor<'a>, bytes_max: usize) -> Result<Step<'a>, Refusal> {
        // The cursor stands behind the type byte.
        let offset = self.offset();
        if kind == kind::MODULE_2 {
            read_string(cursor, bytes_max)?;
            return Err(Refusal::Module(ModuleType(read_length(cursor)?)));
        }
        if let Some(refusal) = refusal_of(kind) {
            return Err(refusal);
        }
        let key = read_string(cursor, bytes_max)?;
        let mut end = cursor.clone();
        skip_value(kind, &mut end, bytes_max)?;
        let value = cursor.take(end.consumed() - cursor.consumed())?;
        // Taken only now that the key is whole: a key that is read again after more bytes came still needs them.
        let expire_at_ms = self.expire_at_ms.take();
        let access = std::mem::replace(&mut self.access, Access::Unknown);
        Ok(Step::Item(RawItem::Key(RawKey { database: self.database, key, kind, value, expire_at_ms, access, offset })))
    }

    /// `entry` is the end marker and, in files that have one, the sum.
    fn check_sum(&self, entry: &[u8]) -> Result<(), ReadError> {
        let Some((marker, sum)) = entry.split_last_chunk::<SUM_BYTES>() else { return Ok(()) };
        let (expected, found) = (crc64(self.sum, marker), u64::from_le_bytes(*sum));
        // `rdbchecksum no` writes zeros.
        if found == 0 || found == expected { Ok(()) } else { Err(ReadError::Checksum { expected, found }) }
    }
}

fn other(item: Item<'_>) -> Step<'_> {
    Step::Item(RawItem::Other(item))
}

fn refused(refusal: Refusal, offset: u64) -> ReadError {
    match refusal {
        Refusal::Fault(fault) => ReadError::Damaged { offset, fault },
        Refusal::Unsupported(name) => ReadError::Unsupported { name, offset },
        Refusal::Module(module) => ReadError::Module { module, offset },
        Refusal::Unknown(code) => ReadError::Unknown { code, offset },
    }
}

fn read_header(header: &[u8]) -> Result<u16, ReadError> {
    let (digits, known) = match (header.strip_prefix(b"REDIS"), header.strip_prefix(b"VALKEY")) {
        (Some(digits), _) => (digits, 1..=REDIS_VERSION_MAX),
        (None, Some(digits)) => (digits, VALKEY_VERSIONS),
        (None, None) => return Err(ReadError::Signature),
    };
    let plain = digits.iter().all(u8::is_ascii_digit);
    let version = std::str::from_utf8(digits).ok().filter(|_| plain).and_then(|digits| digits.parse().ok());
    let version = version.ok_or(ReadError::Signature)?;
    if known.contains(&version) { Ok(version) } else { Err(ReadError::Version(version)) }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
