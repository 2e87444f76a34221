//! The reader of RDB files: the same whatever the chunks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use simurgh_protocol::config::{Config, Settings};
use simurgh_storage::KeyHasher;
use simurgh_storage::rdb::read::{ReadError, Reader};
use simurgh_storage::rdb::string::STRING_BYTES_MAX;
use simurgh_storage::rdb::value::Loading;
use std::sync::LazyLock;

static SETTINGS: LazyLock<Config> = LazyLock::new(|| Settings::default().config());
static HASHER: LazyLock<KeyHasher> = LazyLock::new(|| KeyHasher::new(1));

fn read(bytes: &[u8], chunk: usize) -> (Vec<String>, Result<bool, ReadError>) {
    let mut reader = Reader::default();
    let mut seen = Vec::new();
    for chunk in bytes.chunks(chunk) {
        reader.feed(chunk);
        if let Err(error) = drain(&mut reader, &mut seen) {
            return (seen, Err(error));
        }
    }
    reader.finish();
    let drained = drain(&mut reader, &mut seen);
    (seen, drained.map(|()| reader.is_ended()))
}

fn drain(reader: &mut Reader, seen: &mut Vec<String>) -> Result<(), ReadError> {
    let loading = Loading { packing: &SETTINGS.packing, hasher: &HASHER, string_bytes_max: STRING_BYTES_MAX };
    while let Some(item) = reader.next_item(&loading)? {
        seen.push(format!("{item:?}"));
    }
    Ok(())
}

fuzz_target!(|input: (u8, &[u8])| {
    let (chunk, tail) = input;
    let bytes = [b"REDIS0011", tail].concat();
    assert_eq!(read(&bytes, usize::MAX), read(&bytes, usize::from(chunk) + 1));
});
