//! A dataset that uses every type in every encoding, for files that go from one server to another.
//!
//! Written by commands, so that each server lays it out in its own way; with settings that move the borders between encodings the
//! same dataset gives other files ([`VARIANTS`]).

use crate::client::Client;
use crate::resp::Value;
use anyhow::{Result, bail};
use std::collections::BTreeMap;

/// Settings under which a server writes files that differ: packed and unpacked values, compressed or not, with and without a sum, and
/// with what is known of each key's use in both forms.
pub const VARIANTS: [&[&str]; 3] = [
    &["--maxmemory-policy", "allkeys-lru", "--maxmemory", "1gb"],
    &[
        "--maxmemory-policy",
        "allkeys-lfu",
        "--maxmemory",
        "1gb",
        "--rdbcompression",
        "no",
        "--list-max-listpack-size",
        "4",
        "--hash-max-listpack-entries",
        "0",
        "--zset-max-listpack-entries",
        "0",
        "--set-max-intset-entries",
        "2",
        "--stream-node-max-entries",
        "3",
    ],
    &["--rdbchecksum", "no", "--hash-max-listpack-value", "4000", "--zset-max-listpack-value", "4000"],
];

/// Far away, so that nothing expires while a test runs.
const FAR_MS: &str = "4000000000000";

/// What not every server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Fields of hashes expire.
    pub field_expiry: bool,
    /// Functions can be loaded.
    pub functions: bool,
}

impl Abilities {
    /// Of the server that an oracle's name means; ours has what Redis 8.2 has.
    #[must_use]
    pub fn of(oracle: &str) -> Self {
        Self { field_expiry: oracle != "redis-7.0", functions: true }
    }
}

/// Fills the server.
pub fn fill(client: &mut Client, abilities: Abilities) -> Result<()> {
    for database in ["0", "3", "15"] {
        ask(client, &["SELECT", database])?;
        strings(client)?;
        lists(client)?;
        sets(client)?;
        sorted_sets(client)?;
        hashes(client, abilities)?;
        streams(client)?;
    }
    if abilities.functions {
        let library = "#!lua name=everything\nredis.register_function('one', function() return 1 end)";
        ask(client, &["FUNCTION", "LOAD", library])?;
    }
    ask(client, &["SELECT", "0"])?;
    Ok(())
}

/// A request that must not be answered with an error.
pub fn ask<A: AsRef<[u8]>>(client: &mut Client, words: &[A]) -> Result<Value> {
    match client.ask(words)? {
        Value::Error(text) => {
            let request: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word.as_ref())).collect();
            bail!("{request:?}: {}", String::from_utf8_lossy(&text))
        }
        reply => Ok(reply),
    }
}

/// A text of `length` bytes that packs badly: no run of it comes twice.
fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..length).map(next).collect()
}

fn strings(client: &mut Client) -> Result<()> {
    let numbers = ["0", "-1", "127", "-129", "32768", "-2147483648", "2147483648", "9223372036854775807", "007", "1.5"];
    for (index, number) in numbers.iter().enumerate() {
        ask(client, &[b"SET".as_slice(), format!("number:{index}").as_bytes(), number.as_bytes()])?;
    }
    for length in [0, 1, 20, 44, 45, 63, 64, 16383, 16384, 70_000] {
        ask(client, &[b"SET".as_slice(), format!("same:{length}").as_bytes(), &vec![b'x'; length]])?;
        ask(client, &[b"SET".as_slice(), format!("noise:{length}").as_bytes(), &noise(length, 7)])?;
    }
    ask(client, &["SET", "", "the empty key"])?;
    ask(client, &[b"SET".as_slice(), &noise(300, 3), b"a key of noise"])?;
    ask(client, &["SET", "1234", "a key that is a number"])?;
    ask(client, &["SET", "expiring", "v", "PXAT", FAR_MS])?;
    ask(client, &["PFADD", "sparse", "a", "b", "c"])?;
    ask(client, &["SETBIT", "bits", "5000", "1"])?;
    for number in 0..3000 {
        ask(client, &["PFADD", "dense", &number.to_string()])?;
    }
    Ok(())
}

fn lists(client: &mut Client) -> Result<()> {
    for (key, count, length) in [("few", 3, 3), ("many", 700, 10), ("long", 5, 9000), ("mixed", 40, 600)] {
        for number in 0..count {
            let element =
                if number % 3 == 0 { (number * 1000).to_string().into_bytes() } else { noise(length, number) };
            ask(client, &[b"RPUSH".as_slice(), format!("list:{key}").as_bytes(), &element])?;
        }
    }
    Ok(())
}

fn sets(client: &mut Client) -> Result<()> {
    for (key, from, step) in [("int16", 0, 1), ("int32", 100_000, 7), ("int64", 1 << 40, 3), ("many-ints", -5, 11)] {
        let count = if key == "many-ints" { 1500 } else { 5 };
        for number in 0..count {
            ask(client, &["SADD", &format!("set:{key}"), &(from + number * step as i64).to_string()])?;
        }
    }
    for (key, count, length) in [("few", 4, 5), ("many", 400, 20), ("long", 3, 500)] {
        for number in 0..count {
            ask(client, &[b"SADD".as_slice(), format!("set:{key}").as_bytes(), &noise(length, number + 1)])?;
        }
    }
    Ok(())
}

fn sorted_sets(client: &mut Client) -> Result<()> {
    let scores = ["0", "-1", "1.5", "inf", "-inf", "3.0000000000000004", "1e300", "-7", "17179869184", "0.1"];
    for (key, count, length) in [("few", 10, 4), ("many", 300, 12), ("long", 4, 900)] {
        for number in 0..count {
            let score = scores[number as usize % scores.len()];
            let key = format!("zset:{key}");
            ask(client, &[b"ZADD".as_slice(), key.as_bytes(), score.as_bytes(), &noise(length, number + 1)])?;
        }
    }
    ask(client, &["ZADD", "zset:numbers", "1", "1", "2", "22222222222", "3", "-3"])?;
    ask(client, &["GEOADD", "zset:geo", "13.361389", "38.115556", "Palermo"])?;
    Ok(())
}

fn hashes(client: &mut Client, abilities: Abilities) -> Result<()> {
    for (key, count, length) in [("few", 4, 5), ("many", 600, 20), ("long", 3, 3000)] {
        for number in 0..count {
            let (key, field) = (format!("hash:{key}"), format!("field:{number}"));
            ask(client, &[b"HSET".as_slice(), key.as_bytes(), field.as_bytes(), &noise(length, number + 1)])?;
            ask(client, &["HSET", &key, &number.to_string(), &(number * 7).to_string()])?;
        }
        if abilities.field_expiry {
            let copy = format!("fields:{key}");
            ask(client, &["COPY", &format!("hash:{key}"), &copy])?;
            ask(client, &["HPEXPIREAT", &copy, FAR_MS, "FIELDS", "2", "field:0", "1"])?;
            ask(client, &["HPEXPIREAT", &copy, "4000000009999", "FIELDS", "1", "field:2"])?;
        }
    }
    Ok(())
}

fn streams(client: &mut Client) -> Result<()> {
    for (key, count) in [("few", 3), ("many", 350)] {
        let key = format!("stream:{key}");
        for number in 1..=count {
            let id = format!("{}-{}", 1000 + number / 2, number);
            let other = format!("other:{}", number % 5);
            ask(client, &["XADD", &key, &id, "field", &number.to_string(), &other, "v"])?;
        }
        ask(client, &["XDEL", &key, "1001-2"])?;
        ask(client, &["XGROUP", "CREATE", &key, "readers", "0"])?;
        ask(client, &["XGROUP", "CREATE", &key, "idle", "$"])?;
        for consumer in ["alice", "bob"] {
            let read = ["XREADGROUP", "GROUP", "readers", consumer, "COUNT", "1", "STREAMS", &key, ">"];
            ask(client, &read)?;
        }
        ask(client, &["XGROUP", "CREATECONSUMER", &key, "readers", "carol"])?;
    }
    ask(client, &["XADD", "stream:empty", "5-5", "a", "b"])?;
    ask(client, &["XTRIM", "stream:empty", "MAXLEN", "0"])?;
    Ok(())
}

/// What a key holds, as text that is the same on every server that holds the same.
fn contents_of(client: &mut Client, key: &[u8], abilities: Abilities) -> Result<Vec<String>> {
    let Value::Simple(kind) = ask(client, &[b"TYPE".as_slice(), key])? else { bail!("TYPE gives a word") };
    let kind = String::from_utf8(kind)?;
    let mut all = match kind.as_str() {
        "string" => texts(&ask(client, &[b"GET".as_slice(), key])?),
        "list" => texts(&ask(client, &[b"LRANGE".as_slice(), key, b"0", b"-1"])?),
        "set" => sorted(texts(&ask(client, &[b"SMEMBERS".as_slice(), key])?)),
        "zset" => scored(&texts(&ask(client, &[b"ZRANGE".as_slice(), key, b"0", b"-1", b"WITHSCORES"])?))?,
        "hash" => fields(client, key, abilities)?,
        "stream" => stream(client, key)?,
        other => bail!("a key of type {other}"),
    };
    all.push(format!("{kind}, expires at {:?}", ask(client, &[b"PEXPIRETIME".as_slice(), key])?));
    Ok(all)
}

/// The strings and numbers in a reply, in order.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Bulk(text) | Value::Simple(text) => vec![text.escape_ascii().to_string()],
        other => vec![format!("{other:?}")],
    }
}

fn sorted(mut all: Vec<String>) -> Vec<String> {
    all.sort();
    all
}

/// Servers write the same score in different ways.
fn scored(pairs: &[String]) -> Result<Vec<String>> {
    let pairs = pairs.chunks(2).map(|pair| Ok(format!("{} {:?}", pair[0], pair[1].parse::<f64>()?)));
    pairs.collect()
}

fn fields(client: &mut Client, key: &[u8], abilities: Abilities) -> Result<Vec<String>> {
    let Value::Array(items) = ask(client, &[b"HGETALL".as_slice(), key])? else { bail!("HGETALL gives an array") };
    let mut all = Vec::new();
    for pair in items.chunks(2) {
        let [Value::Bulk(field), value] = pair else { bail!("HGETALL gives pairs") };
        let expiry = match abilities.field_expiry {
            true => ask(client, &[b"HPEXPIRETIME".as_slice(), key, b"FIELDS", b"1", field])?,
            false => Value::Array(vec![Value::Integer(-1)]),
        };
        all.push(format!("{} {:?} {:?}", field.escape_ascii(), texts(value), texts(&expiry)));
    }
    Ok(sorted(all))
}

fn stream(client: &mut Client, key: &[u8]) -> Result<Vec<String>> {
    let mut all = texts(&ask(client, &[b"XRANGE".as_slice(), key, b"-", b"+"])?);
    let info = texts(&ask(client, &[b"XINFO".as_slice(), b"STREAM", key])?);
    for name in ["length", "last-generated-id", "max-deleted-entry-id", "entries-added", "groups"] {
        let at = info.iter().position(|word| word == name).map(|at| info[at + 1].clone());
        all.push(format!("{name} {at:?}"));
    }
    for group in ["readers", "idle"] {
        let request = [b"XPENDING".as_slice(), key, group.as_bytes()];
        // Not every stream has them.
        if let Ok(pending) = ask(client, &request) {
            all.extend(texts(&pending));
            let consumers = ask(client, &[b"XINFO".as_slice(), b"CONSUMERS", key, group.as_bytes()])?;
            let Value::Array(consumers) = consumers else { bail!("XINFO CONSUMERS gives an array") };
            for consumer in consumers {
                // Its name and what it holds; how long it has been idle goes on.
                all.extend(texts(&consumer).into_iter().take(4));
            }
        }
    }
    all.extend(texts(&ask(client, &[b"XINFO".as_slice(), b"GROUPS", key])?));
    Ok(all)
}

/// What all databases hold, by database and key.
pub fn contents(client: &mut Client, abilities: Abilities) -> Result<BTreeMap<String, Vec<String>>> {
    let mut all = BTreeMap::new();
    for database in 0..16 {
        ask(client, &["SELECT", &database.to_string()])?;
        let Value::Array(keys) = ask(client, &["KEYS", "*"])? else { bail!("KEYS gives an array") };
        for key in keys {
            let Value::Bulk(key) = key else { bail!("a key is a string") };
            let holds = contents_of(client, &key, abilities)?;
            all.insert(format!("{database}/{}", key.escape_ascii()), holds);
        }
    }
    ask(client, &["SELECT", "0"])?;
    Ok(all)
}

/// Whether two servers hold the same, as far as both can tell; an error names keys that differ.
pub fn same(one: &mut Client, other: &mut Client, abilities: Abilities) -> Result<()> {
    let (ours, theirs) = (contents(one, abilities)?, contents(other, abilities)?);
    if ours.is_empty() {
        bail!("there is nothing to compare");
    }
    let names = ours.keys().chain(theirs.keys()).collect::<std::collections::BTreeSet<_>>();
    let differ: Vec<_> = names.into_iter().filter(|name| ours.get(*name) != theirs.get(*name)).collect();
    let Some(first) = differ.first() else { return Ok(()) };
    let (here, there) =
        (ours.get(*first).cloned().unwrap_or_default(), theirs.get(*first).cloned().unwrap_or_default());
    let at = here.iter().zip(&there).position(|(here, there)| here != there).unwrap_or(here.len().min(there.len()));
    let count = differ.len();
    bail!(
        "{count} of {} keys differ: {:?}; {first} at {at}: {:?} / {:?}",
        ours.len(),
        &differ[..count.min(5)],
        here.get(at),
        there.get(at)
    )
}
