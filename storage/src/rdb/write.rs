//! Writes an RDB file, piece by piece into the caller's buffer, in the version that Redis 7.0 and later and
//! Valkey read.

use super::crc64::crc64;
use super::length::write_length;
use super::string::{Sink, write_string};
use super::value::{self, Loaded, kind_of, write_value_to};
use super::{VERSION_WRITTEN, opcode};
use crate::entry::EntryRef;

/// How a key is to be evicted, if that is kept (`maxmemory-policy`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Access {
    /// Not known.
    #[default]
    Unknown,
    /// Seconds since it was last used (LRU policies).
    IdleSeconds(u64),
    /// Logarithmic counter of its uses (LFU policies).
    Frequency(u8),
}

/// What stands in the auxiliary fields at a file's front.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// Version of the server.
    pub version: &'a str,
    /// When it was written, in seconds since 1970.
    pub created_s: u64,
    /// Memory in use.
    pub used_memory_bytes: u64,
    /// Whether it is the base of an append-only file.
    pub is_aof_base: bool,
}

/// Sums what it appends, so the buffer may be written and emptied between any two calls.
#[derive(Debug)]
pub struct Writer {
    sum: u64,
}

impl Writer {
    /// Begins a file.
    pub fn begin(out: &mut Vec<u8>, origin: &Origin<'_>) -> Self {
        Self::begin_as(out, origin, VERSION_WRITTEN)
    }

    /// Begins a file of another version.
    pub fn begin_as(out: &mut Vec<u8>, origin: &Origin<'_>, version: u16) -> Self {
        let mut writer = Self { sum: 0 };
        writer.append(out, |out| out.extend_from_slice(format!("REDIS{version:04}").as_bytes()));
        writer.aux(out, b"redis-ver", origin.version.as_bytes());
        writer.aux(out, b"redis-bits", b"64");
        writer.aux(out, b"ctime", origin.created_s.to_string().as_bytes());
        writer.aux(out, b"used-mem", origin.used_memory_bytes.to_string().as_bytes());
        writer.aux(out, b"aof-base", if origin.is_aof_base { b"1" } else { b"0" });
        writer
    }

    /// An auxiliary field; readers skip those they do not know.
    pub fn aux(&mut self, out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
        self.append(out, |out| {
            out.push(opcode::AUX);
            write_string(out, name);
            write_string(out, value);
        });
    }

    /// A library of functions; they stand before the keys.
    pub fn library(&mut self, out: &mut Vec<u8>, source: &[u8]) {
        self.append(out, |out| super::functions::write_library(out, source));
    }

    /// The keys that follow are of this database, about so many, so many of them expiring.
    pub fn database(&mut self, out: &mut Vec<u8>, database: u32, keys: u64, expires: u64) {
        self.append(out, |out| {
            out.push(opcode::DATABASE);
            write_length(out, database.into());
            out.push(opcode::RESIZE);
            write_length(out, keys);
            write_length(out, expires);
        });
    }

    /// A key with its value.
    pub fn key(&mut self, out: &mut Vec<u8>, entry: EntryRef<'_>, access: Access) {
        self.append(out, |out| write_key(out, entry, access, false));
    }

    /// A key with a value that was read elsewhere.
    pub fn value(
        &mut self,
        out: &mut Vec<u8>,
        key: &[u8],
        value: Loaded<'_>,
        expire_at_ms: Option<i64>,
        access: Access,
    ) {
        let entry = value.into_entry(key, expire_at_ms, 0);
        self.key(out, entry.view(), access);
        entry.free();
    }

    /// Ends the file.
    pub fn end(mut self, out: &mut Vec<u8>) {
        self.append(out, |out| out.push(opcode::END));
        out.extend_from_slice(&self.sum.to_le_bytes());
    }

    /// Ends the file with zeros in place of the sum, which readers take for none.
    pub fn end_without_sum(self, out: &mut Vec<u8>) {
        out.push(opcode::END);
        out.extend_from_slice(&0u64.to_le_bytes());
    }

    /// Sums bytes that were written elsewhere and follow what was written so far.
    pub fn absorb(&mut self, bytes: &[u8]) {
        self.sum = crc64(self.sum, bytes);
    }

    fn append(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        let start = out.len();
        write(out);
        self.sum = crc64(self.sum, &out[start..]);
    }
}

/// Appends a key with its value, which is part of no sum yet.
pub fn write_key(out: &mut Vec<u8>, entry: EntryRef<'_>, access: Access, compresses: bool) {
    write_value_to(&mut write_head(out, entry, access, compresses), entry);
}

/// Appends a key with what stands before the elements of its collection, which are written by themselves.
pub(crate) fn write_front(out: &mut Vec<u8>, entry: EntryRef<'_>, access: Access) {
    let mut out = write_head(out, entry, access, false);
    if let Some(collection) = entry.collection() {
        value::write_front(&mut out, &collection);
    }
}

fn write_head<'a>(out: &'a mut Vec<u8>, entry: EntryRef<'_>, access: Access, compresses: bool) -> Sink<'a> {
    if let Some(expire_at_ms) = entry.expires_at() {
        out.push(opcode::EXPIRE_MS);
        out.extend_from_slice(&expire_at_ms.to_le_bytes());
    }
    match access {
        Access::Unknown => {}
        Access::IdleSeconds(idle) => {
            out.push(opcode::IDLE);
            write_length(out, idle);
        }
        Access::Frequency(frequency) => out.extend_from_slice(&[opcode::FREQUENCY, frequency]),
    }
    out.push(kind_of(entry));
    let mut out = Sink::new(out, compresses);
    out.string(entry.key());
    out
}

/// Appends the choice of the database that the keys which follow belong to.
pub fn write_database(out: &mut Vec<u8>, database: u32) {
    out.push(opcode::DATABASE);
    write_length(out, database.into());
}

/// How many bytes a string takes in a file.
#[must_use]
pub fn string_length(value: &[u8]) -> usize {
    let mut out = Vec::new();
    write_string(&mut out, value);
    out.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The base that Redis 7.0.15 made on its first start with `appendonly yes`.
    #[test]
    fn an_empty_base_byte_for_byte_as_redis_7() {
        let redis: &[u8] = b"REDIS0010\xfa\tredis-ver\x067.0.15\xfa\nredis-bits\xc0@\xfa\x05ctime\xc2\x9ct\rk\xfa\x08used-mem\xc2\x90`\r\x00\xfa\x08aof-base\xc0\x01\xffB\xa3gu\x85B\xb9Y";
        let origin = Origin {
            version: "7.0.15",
            created_s: u64::from(u32::from_le_bytes(*b"\x9ct\rk")),
            used_memory_bytes: u64::from(u32::from_le_bytes(*b"\x90`\r\x00")),
            is_aof_base: true,
        };
        let mut out = Vec::new();
        Writer::begin(&mut out, &origin).end(&mut out);
        assert_eq!(out, redis);
    }
}
