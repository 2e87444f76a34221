//! Values of every type: what a type byte says, and the bytes behind it, in every form that Redis and Valkey have written.
//!
//! We write each value in the oldest form that holds all of it, so that every server since Redis 7.0 takes it; only a hash with
//! expiring fields needs a newer one. What is read is checked to the last byte, as it may come from a client (C9, C10): packed blocks
//! entry by entry, elements for repetition, and nothing is allocated for a count before its bytes are there.

mod hash;
pub(crate) mod list;
mod set;
mod sorted_set;
pub(crate) mod stream;

use super::cursor::{Cursor, Fault};
use super::kind::type_name;
use super::length::{read_length, write_length};
use super::module::ModuleType;
use super::string::{Sink, read_string};
use super::{TYPE_STRING, VERSION_WRITTEN};
use crate::block::Malformed;
use crate::collection::Collection;
use crate::entry::{Entry, EntryRef};
use crate::key_hash::KeyHasher;
use crate::listpack::Listpack;
use crate::rdb::ziplist::Ziplist;
use crate::string_value::Value;
use simurgh_protocol::config::Packing;
use std::borrow::Cow;

/// The type bytes, by the name that Redis's documents give the forms.
pub(crate) mod kind {
    pub const LIST: u8 = 1;
    pub const SET: u8 = 2;
    pub const ZSET: u8 = 3;
    pub const HASH: u8 = 4;
    pub const ZSET_2: u8 = 5;
    pub const MODULE_2: u8 = 7;
    pub const HASH_ZIPMAP: u8 = 9;
    pub const LIST_ZIPLIST: u8 = 10;
    pub const SET_INTSET: u8 = 11;
    pub const ZSET_ZIPLIST: u8 = 12;
    pub const HASH_ZIPLIST: u8 = 13;
    pub const LIST_QUICKLIST: u8 = 14;
    pub const STREAM_LISTPACKS: u8 = 15;
    pub const HASH_LISTPACK: u8 = 16;
    pub const ZSET_LISTPACK: u8 = 17;
    pub const LIST_QUICKLIST_2: u8 = 18;
    pub const STREAM_LISTPACKS_2: u8 = 19;
    pub const SET_LISTPACK: u8 = 20;
    pub const STREAM_LISTPACKS_3: u8 = 21;
    /// Valkey 9's hash with expiring fields. (Redis's release candidates used the byte for something else, which is refused.)
    pub const HASH_2: u8 = 22;
    pub const HASH_METADATA: u8 = 24;
    pub const HASH_LISTPACK_EX: u8 = 25;
    /// Redis 8.10's stream: with entries that nobody holds any more, and with what producers added.
    pub const STREAM_LISTPACKS_5: u8 = 27;
}

/// The version that knows hashes with expiring fields: Redis 7.4's.
pub(crate) const VERSION_OF_FIELD_EXPIRY: u16 = 12;

/// The version that knows when a stream's consumers were active: Redis 7.2's.
const VERSION_OF_ACTIVE_TIME: u16 = 11;

/// What is needed to build values.
#[derive(Clone, Copy, Debug)]
pub struct Loading<'a> {
    /// Up to which size collections are packed.
    pub packing: &'a Packing,
    /// How members are hashed.
    pub hasher: &'a KeyHasher,
    /// The longest string, in bytes.
    pub string_bytes_max: usize,
}

/// A value that was read.
#[derive(Clone, Debug)]
pub enum Loaded<'a> {
    /// A string.
    String(Cow<'a, [u8]>),
    /// Anything else.
    Collection(Collection),
}

impl Loaded<'_> {
    /// The entry that holds it.
    pub(crate) fn into_entry(self, key: &[u8], expires_at: Option<i64>, access: u32) -> Entry {
        match self {
            Self::String(bytes) => {
                let value = Value::from_bytes(&bytes);
                Entry::new(key, value, value.encoding(), expires_at, access)
            }
            Self::Collection(collection) => Entry::of_collection(key, collection, expires_at, access),
        }
    }
}

/// Why a value was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It cannot be read.
    Fault(Fault),
    /// Its type is not built.
    Unsupported(&'static str),
    /// A value of a module.
    Module(ModuleType),
    /// No server writes such a type byte.
    Unknown(u8),
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Malformed> for Refusal {
    fn from(malformed: Malformed) -> Self {
        Self::Fault(malformed.into())
    }
}

impl From<Malformed> for Fault {
    fn from(_: Malformed) -> Self {
        Self::Packed
    }
}

/// Why a value with this type byte cannot be read here, before anything of it is.
pub(crate) fn refusal_of(kind: u8) -> Option<Refusal> {
    let is_known = matches!(
        kind,
        TYPE_STRING..=kind::ZSET_2 | kind::HASH_ZIPMAP..=kind::HASH_2 | kind::HASH_METADATA | kind::HASH_LISTPACK_EX | kind::STREAM_LISTPACKS_5
    );
    if is_known { None } else { Some(type_name(kind).map_or(Refusal::Unknown(kind), Refusal::Unsupported)) }
}

/// Reads the value behind the type byte `kind`.
pub fn read_value<'a>(kind: u8, cursor: &mut Cursor<'a>, loading: &Loading<'_>) -> Result<Loaded<'a>, Refusal> {
    let collection = match kind {
        TYPE_STRING => return Ok(Loaded::String(read_string(cursor, loading.string_bytes_max)?)),
        kind::LIST | kind::LIST_ZIPLIST | kind::LIST_QUICKLIST | kind::LIST_QUICKLIST_2 => {
            Collection::List(list::read(kind, cursor, loading)?)
        }
        kind::SET | kind::SET_INTSET | kind::SET_LISTPACK => Collection::Set(set::read(kind, cursor, loading)?),
        kind::ZSET | kind::ZSET_2 | kind::ZSET_ZIPLIST | kind::ZSET_LISTPACK => {
            Collection::SortedSet(sorted_set::read(kind, cursor, loading)?)
        }
        kind::HASH
        | kind::HASH_ZIPMAP
        | kind::HASH_ZIPLIST
        | kind::HASH_LISTPACK
        | kind::HASH_2
        | kind::HASH_METADATA
        | kind::HASH_LISTPACK_EX => Collection::Hash(hash::read(kind, cursor, loading)?),
        kind::STREAM_LISTPACKS | kind::STREAM_LISTPACKS_2 | kind::STREAM_LISTPACKS_3 | kind::STREAM_LISTPACKS_5 => {
            Collection::Stream(Box::new(stream::read(kind, cursor, loading)?))
        }
        kind::MODULE_2 => return Err(Refusal::Module(ModuleType(read_length(cursor)?))),
        other => return Err(type_name(other).map_or(Refusal::Unknown(other), Refusal::Unsupported)),
    };
    if collection.is_void() {
        return Err(Fault::Empty.into());
    }
    Ok(Loaded::Collection(collection))
}

/// The type byte of a value as it is written here.
#[must_use]
pub fn kind_of(entry: EntryRef<'_>) -> u8 {
    let Some(collection) = entry.collection() else { return TYPE_STRING };
    match &*collection {
        Collection::List(_) => kind::LIST_QUICKLIST_2,
        Collection::Set(set) => set::kind_of(set),
        Collection::SortedSet(set) => sorted_set::kind_of(set),
        Collection::Hash(hash) => hash::kind_of(hash),
        Collection::Stream(stream) => stream::kind_of(stream),
    }
}

/// The version that a reader of the value must know at least.
#[must_use]
pub fn version_of(kind: u8) -> u16 {
    match kind {
        kind::HASH_METADATA | kind::HASH_LISTPACK_EX => VERSION_OF_FIELD_EXPIRY,
        kind::STREAM_LISTPACKS_3 => VERSION_OF_ACTIVE_TIME,
        _ => VERSION_WRITTEN,
    }
}

/// Appends what stands behind the type byte, nothing of it compressed.
pub fn write_value(out: &mut Vec<u8>, entry: EntryRef<'_>) {
    write_value_to(&mut Sink::new(out, false), entry);
}

/// Writes what stands behind the type byte.
pub fn write_value_to(out: &mut Sink<'_>, entry: EntryRef<'_>) {
    if let Ok(value) = entry.string() {
        value.with_text(|text| out.string(text));
    }
    let Some(collection) = entry.collection() else { return };
    match &*collection {
        Collection::List(list) => list::write(out, list),
        Collection::Set(set) => set::write(out, set),
        Collection::SortedSet(set) => sorted_set::write(out, set),
        Collection::Hash(hash) => hash::write(out, hash),
        Collection::Stream(stream) => stream::write(out, stream),
    }
}

/// Writes what stands between the key and the elements of a collection that is written element by element (`snapshot/large.rs`).
pub(crate) fn write_front(out: &mut Vec<u8>, collection: &Collection) {
    match collection {
        Collection::Hash(hash) => hash::write_front(out, hash),
        Collection::Set(_) | Collection::SortedSet(_) => write_length(out, collection.len() as u64),
        Collection::List(list) => write_length(out, list.nodes_in_file() as u64),
        Collection::Stream(stream) => write_length(out, stream.entries.nodes().len() as u64),
    }
}

/// Reads a string that is a listpack, and checks all of it.
fn read_listpack(cursor: &mut Cursor<'_>, loading: &Loading<'_>) -> Result<Listpack, Fault> {
    Ok(Listpack::from_bytes(&read_string(cursor, loading.string_bytes_max)?)?)
}

/// Reads a string that is a ziplist, checks all of it, and repacks it.
fn read_ziplist(cursor: &mut Cursor<'_>, loading: &Loading<'_>) -> Result<Listpack, Fault> {
    let bytes = read_string(cursor, loading.string_bytes_max)?;
    Ziplist::read(&bytes)?.to_listpack().ok_or(Fault::TooLong)
}

#[cfg(test)]
mod payloads;
#[cfg(test)]
mod tests;
