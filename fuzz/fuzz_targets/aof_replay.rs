//! The log's reader: the same whatever the chunks, and what it keeps is a log without a cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use simurgh_storage::aof::replay::{End, Options, Replay, ReplayError};

type Seen = Vec<(u32, Vec<Vec<u8>>)>;

fn read(bytes: &[u8], chunk: usize) -> (Seen, Result<End, ReplayError>) {
    let mut replay = Replay::new(Options::default());
    let mut seen = Seen::new();
    for chunk in bytes.chunks(chunk) {
        replay.feed(chunk);
        drain(&mut replay, &mut seen);
    }
    let end = replay.finish();
    drain(&mut replay, &mut seen);
    (seen, end)
}

fn drain(replay: &mut Replay, seen: &mut Seen) {
    while let Ok(Some(record)) = replay.next_record() {
        seen.push((record.database, record.arguments.from(0).map(<[u8]>::to_vec).collect()));
    }
}

fuzz_target!(|input: (u8, &[u8])| {
    let (chunk, bytes) = input;
    let whole = read(bytes, usize::MAX);
    assert_eq!(whole, read(bytes, usize::from(chunk) + 1));
    if let (seen, Ok(end)) = whole {
        let (again, kept) = read(&bytes[..end.keep as usize], usize::MAX);
        assert_eq!(again, seen);
        assert!(kept.expect("kept bytes are good").cut.is_none());
    }
});
