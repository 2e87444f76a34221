//! Whole RDB files: with their sum mended, so that what is behind it is reached. Chunks of any size read alike, what is found without
//! building values is what is found with it, and a value that is built can be written and read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use simurgh_protocol::config::{Config, Settings};
use simurgh_storage::KeyHasher;
use simurgh_storage::rdb::check::Check;
use simurgh_storage::rdb::dump::{dump_loaded, restore};
use simurgh_storage::rdb::read::{Item, RawItem, ReadError, Reader};
use simurgh_storage::rdb::string::STRING_BYTES_MAX;
use simurgh_storage::rdb::value::Loading;
use std::sync::LazyLock;

static SETTINGS: LazyLock<Config> = LazyLock::new(|| Settings::default().config());
static HASHER: LazyLock<KeyHasher> = LazyLock::new(|| KeyHasher::new(1));

fn loading() -> Loading<'static> {
    Loading { packing: &SETTINGS.packing, hasher: &HASHER, string_bytes_max: STRING_BYTES_MAX }
}

/// The keys of a file, and how it ends.
fn read(bytes: &[u8], chunk: usize) -> (Vec<Vec<u8>>, Result<bool, ReadError>) {
    let (mut reader, mut keys) = (Reader::new(), Vec::new());
    for chunk in bytes.chunks(chunk).chain([&b""[..]]) {
        match chunk {
            b"" => reader.finish(),
            _ => reader.feed(chunk),
        }
        loop {
            match reader.next_item(&loading()) {
                Ok(Some(Item::Key { key, value, .. })) => {
                    keys.push(key.into_owned());
                    let mut dumped = Vec::new();
                    dump_loaded(&mut dumped, value);
                    restore(&dumped, &loading()).expect("what was built here is read here");
                }
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => return (keys, Err(error)),
            }
        }
    }
    (keys, Ok(reader.is_ended()))
}

/// How many entries there are, values not looked at.
fn count(bytes: &[u8]) -> usize {
    let (mut reader, mut count) = (Reader::new(), 0);
    reader.feed(bytes);
    reader.finish();
    while let Ok(Some(item)) = reader.next_raw(STRING_BYTES_MAX) {
        count += usize::from(matches!(item, RawItem::Key(_)));
    }
    count
}

fuzz_target!(|input: (u8, &[u8])| {
    let (chunk, bytes) = input;
    // A sum of zeros is no sum.
    let mut bytes = bytes.to_vec();
    if let Some(sum) = bytes.len().checked_sub(8) {
        bytes[sum..].fill(0);
    }
    let (keys, end) = read(&bytes, usize::from(chunk) + 1);
    assert_eq!((&keys, &end), (&read(&bytes, usize::MAX).0, &end));
    assert!(count(&bytes) >= keys.len());
    let mut check = Check::new(0);
    check.feed(&bytes);
    let report = check.finish();
    assert_eq!(report.keys(), keys.len() as u64);
    assert_eq!(report.error.is_none(), end == Ok(true));
});
