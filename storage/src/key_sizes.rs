//! How many values of each type are how large: what INFO's section `keysizes` shows.
//!
//! A value is counted in the bin of the power of two below its size: bytes of a string, elements of a collection. The counts follow
//! every change of an entry in `database.rs` and `occupied.rs`, as memory does, so that nothing is walked over when somebody asks.
//! Streams are not counted, as in Redis 8.2.

use crate::collection::Collection;
use crate::entry::EntryRef;

/// Bin 0 is for empty values, bin n for sizes from 2^(n-1) on; the last has all beyond.
const BINS: usize = 42;

/// The types, as their fields in INFO are named.
const TYPES: [&str; 5] = ["strings_sizes", "lists_items", "sets_items", "zsets_items", "hashes_items"];

/// The number of a type in [`TYPES`], and of a bin.
pub(crate) type Bin = (u8, u8);

/// How many values there are in each bin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySizes([[u64; BINS]; TYPES.len()]);

impl Default for KeySizes {
    fn default() -> Self {
        Self([[0; BINS]; TYPES.len()])
    }
}

/// Where a value is counted, if it is.
#[inline]
pub(crate) fn bin_of(entry: EntryRef<'_>) -> Option<Bin> {
    let (kind, size) = match entry.string() {
        Ok(value) => (0, value.text_length()),
        Err(_) => match &*entry.collection()? {
            Collection::List(list) => (1, list.len()),
            Collection::Set(set) => (2, set.len()),
            Collection::SortedSet(set) => (3, set.len()),
            Collection::Hash(hash) => (4, hash.len()),
            Collection::Stream(_) => return None,
        },
    };
    let bin = size.checked_ilog2().map_or(0, |power| (power as usize + 1).min(BINS - 1));
    Some((kind, bin as u8))
}

impl KeySizes {
    /// A value has come.
    #[inline]
    pub(crate) fn add(&mut self, bin: Option<Bin>) {
        if let Some((kind, bin)) = bin {
            self.0[usize::from(kind)][usize::from(bin)] += 1;
        }
    }

    /// A value has gone, which had been counted.
    #[inline]
    pub(crate) fn subtract(&mut self, bin: Option<Bin>) {
        if let Some((kind, bin)) = bin {
            self.0[usize::from(kind)][usize::from(bin)] -= 1;
        }
    }

    /// Counts what `other` counts too.
    pub fn merge(&mut self, other: &Self) {
        for (sum, count) in self.0.as_flattened_mut().iter_mut().zip(other.0.as_flattened()) {
            *sum += count;
        }
    }

    /// The types of which there are values: the name of the field, and its text, like `1=3,4=1,1K=2`.
    pub fn lines(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        TYPES.iter().zip(&self.0).filter_map(|(name, bins)| {
            let known = bins.iter().enumerate().filter(|(_, count)| **count > 0);
            let parts: Vec<String> = known.map(|(bin, count)| format!("{}={count}", label(bin))).collect();
            (!parts.is_empty()).then(|| (*name, parts.join(",")))
        })
    }
}

/// The least size of a bin, in the units of Redis.
fn label(bin: usize) -> String {
    let Some(power) = bin.checked_sub(1) else { return "0".to_owned() };
    let unit = ["", "K", "M", "G", "T"][power / 10];
    format!("{}{unit}", 1u64 << (power % 10))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;
    use crate::{generic, hash, keyspace, list, set, sorted_set, string};

    fn shown(fixture: &Fixture) -> String {
        let mut sum = KeySizes::default();
        fixture.shards.iter().filter_map(|shard| shard.database(0).sizes()).for_each(|sizes| sum.merge(sizes));
        sum.lines().map(|(name, text)| format!("{name}:{text}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn bins_are_named_as_redis_names_them() {
        let names: Vec<String> = [0, 1, 2, 10, 11, 20, 21, 31, 41].map(label).into();
        assert_eq!(names, ["0", "1", "2", "512", "1K", "512K", "1M", "1G", "1T"]);
    }

    #[test]
    fn counts_follow_every_change() {
        let mut fixture = Fixture::new();
        fixture.reply(string::set, &["SET", "a", "12345"]);
        fixture.reply(string::set, &["SET", "e", ""]);
        assert_eq!(shown(&fixture), "strings_sizes:0=1,4=1");
        fixture.reply(string::append, &["APPEND", "a", "678"]);
        fixture.reply(list::rpush, &["RPUSH", "l", "1", "2", "3"]);
        fixture.reply(set::sadd, &["SADD", "s", "1", "2"]);
        fixture.reply(sorted_set::zadd, &["ZADD", "z", "1", "m"]);
        fixture.reply(hash::hset, &["HSET", "h", "f", "v"]);
        let all = "strings_sizes:0=1,8=1 lists_items:2=1 sets_items:2=1 zsets_items:1=1 hashes_items:1=1";
        assert_eq!(shown(&fixture), all);
        fixture.reply(list::lpop, &["LPOP", "l", "3"]);
        fixture.reply(generic::rename, &["RENAME", "s", "z"]);
        assert_eq!(shown(&fixture), "strings_sizes:0=1,8=1 sets_items:2=1 hashes_items:1=1");
        fixture.reply(string::set, &["SET", "h", "x"]);
        fixture.reply(string::incr, &["INCR", "n"]);
        fixture.reply(generic::del, &["DEL", "z", "e"]);
        assert_eq!(shown(&fixture), "strings_sizes:1=2,8=1");
        fixture.reply(keyspace::flushall, &["FLUSHALL"]);
        assert_eq!(shown(&fixture), "");
    }
}
