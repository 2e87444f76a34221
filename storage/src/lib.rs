//! The keyspace: representations, data types and their commands, expiry, eviction, effects, file formats.
//!
//! Everything here is pure. Time and random numbers come in as arguments, replies and effects go out as values; nothing awaits,
//! reads a clock or opens a file. Whoever runs a command holds the shards it needs and hands them in through [`Shards`].

pub mod access;
pub mod aof;
pub mod bitmap;
mod block;
pub mod blocking;
mod collection;
mod collection_word;
mod context;
mod database;
pub mod dict;
mod dict_owed;
pub mod dump;
mod effects;
pub mod element;
mod entry;
pub mod eviction;
mod execute;
pub mod expire;
pub mod expiry;
#[cfg(test)]
mod fixture;
pub mod generic;
pub mod geo;
pub mod hash;
pub mod hyperloglog;
pub mod intset;
mod key_hash;
mod key_sizes;
pub mod keyspace;
pub mod list;
pub mod listpack;
mod loan;
pub mod member;
mod notify;
pub mod object;
mod occupied;
mod packed_or;
mod pick;
mod prefetch;
mod random;
pub mod ranked;
pub mod rdb;
pub mod scan;
mod scan_found;
mod scan_options;
pub mod scored;
pub mod set;
mod shard;
mod slot_table;
pub mod snapshot;
pub mod sort;
pub mod sorted_set;
pub mod stream;
pub mod string;
mod string_value;
mod tagged_block;
pub mod walk;

pub use block::Malformed;
pub use collection::{Collection, CollectionRef, Edit, Kind, View};
pub use context::{Context, Expiry, Settings};
pub use database::{Database, Discarded, size_class};
pub use effects::{Effects, Run, Touched};
pub use entry::{Encoding, EntryRef, LENGTH_MAX};
pub use execute::execute;
pub use key_hash::{Key, KeyHasher, SLOTS};
pub use key_sizes::KeySizes;
pub use notify::{Class, Event};
pub use occupied::Occupied;
pub use random::Random;
pub use shard::{Layout, Shard, ShardStats, Shards, WatchFlag};
pub use string_value::Value;
