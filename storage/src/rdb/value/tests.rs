//! Values of every type as other servers dump them, and what no server writes.

use super::super::crc64::crc64;
use super::super::dump::{DumpError, dump, restore};
use super::payloads::PAYLOADS;
use super::*;
use crate::fixture::Fixture;
use proptest::prelude::*;

/// What a value holds, as text in an order of its own where it has none.
fn contents(collection: &Collection) -> Vec<String> {
    let mut all = Vec::new();
    collection.for_each(&mut |parts| all.push(String::from_utf8_lossy(&parts.join(&b' ')).into_owned()));
    if !matches!(collection, Collection::List(_) | Collection::Stream(_)) {
        all.sort();
    }
    all
}

fn restored(fixture: &Fixture, payload: &[u8]) -> Result<Collection, DumpError> {
    match restore(payload, &fixture.loading())? {
        Loaded::Collection(collection) => Ok(collection),
        Loaded::String(_) => panic!("a string where a collection was dumped"),
    }
}

fn payload_of(body: &[u8]) -> Vec<u8> {
    let mut payload = [body, &10u16.to_le_bytes()].concat();
    let sum = crc64(0, &payload);
    payload.extend_from_slice(&sum.to_le_bytes());
    payload
}

fn dumped(collection: &Collection) -> Vec<u8> {
    let entry = Entry::of_collection(b"key", collection.clone(), None, 0);
    let mut out = Vec::new();
    dump(&mut out, entry.view());
    entry.free();
    out
}

#[test]
fn what_every_server_dumps_is_restored() {
    let fixture = Fixture::new();
    let (x, long, huge) = ("x".repeat(20), "x".repeat(70), "y".repeat(9000));
    for (server, name, payload) in PAYLOADS {
        let collection = restored(&fixture, payload).unwrap_or_else(|error| panic!("{server} {name}: {error}"));
        let expected: Vec<String> = match *name {
            "list" => vec!["a".into(), "1".into(), "-70000".into(), x.clone()],
            "quicklist" => vec!["a".into(), "b".into(), huge.clone(), "c".into()],
            "intset" => vec!["-2".into(), "1".into(), "70000".into()],
            "set" => vec!["3".into(), "a".into(), "b".into()],
            "table" => vec!["a".into(), long.clone()],
            "zset" => vec!["a 1".into(), "b 2.5".into(), "c -inf".into()],
            "skiplist" => vec!["b inf".into(), "c -3".into(), format!("{long} 1.5")],
            "hash" => vec!["a 1".into(), "b two".into()],
            "hashtable" => vec!["a 1".into(), format!("b {long}")],
            "fields" => vec!["a 1".into(), "b 2 4102444800000".into(), "c 3".into()],
            "fieldtable" => vec!["a 1".into(), format!("b {long} 4102444800000"), "c 3 4102444800500".into()],
            "stream" => vec!["1-1 a b".into(), "2-0 other 1 more 2".into()],
            other => panic!("no expectation for {other}"),
        };
        let found: Vec<String> = contents(&collection).iter().map(|text| text.trim_end().to_owned()).collect();
        assert_eq!(found, expected, "{server} {name}");
    }
}

#[test]
fn what_is_dumped_is_restored_the_same() {
    let fixture = Fixture::new();
    for (server, name, payload) in PAYLOADS {
        let collection = restored(&fixture, payload).unwrap();
        let ours = dumped(&collection);
        let again = restored(&fixture, &ours).unwrap_or_else(|error| panic!("{server} {name}: {error}"));
        assert_eq!(contents(&again), contents(&collection), "{server} {name}");
        assert_eq!(again.encoding_name(), collection.encoding_name(), "{server} {name}");
        assert_eq!(again.next_field_expiry(), collection.next_field_expiry());
    }
}

/// What Redis 8.10.2 gave for a stream with a group whose one consumer holds an entry and with a producer's two additions, one of
/// which came twice; then with an entry that was given back.
#[test]
fn streams_of_redis_8_10() {
    let held = b"\x1b\x01\x10\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01--\x00\x00\x00\x11\x00\x02\x01\x00\x01\x01\x01\x81a\x02\x00\x01\x02\x01\x00\x01\x00\x01\x81b\x02\x04\x01\x00\x01\x00\x01\x01\x01\x01\x01\x81c\x02\x81d\x02\x06\x01\xff\x02\x01\x02\x01\x01\x00\x00\x02\x01\x01g\x01\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x7f\xc4\x07.\xa2\x01\x00\x00\x01\x01\x05alice\x7f\xc4\x07.\xa2\x01\x00\x00\x7f\xc4\x07.\xa2\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00";
    let producers = b"@d@d\x01\x01p\x02\x01i\x81\x00\x00\x01\xa2.\x07\xc4\x83\x00\x01j\x81\x00\x00\x01\xa2.\x07\xc4\x84\x00\x02\x01";
    let fixture = Fixture::new();
    for tail in [&b"@d@d\x00\x00\x00"[..], producers] {
        let stream = restored(&fixture, &payload_of(&[held, tail].concat())).unwrap();
        assert_eq!(contents(&stream).len(), 2);
        let Collection::Stream(stream) = &stream else { panic!("a stream") };
        let (_, group) = stream.groups.iter().next().unwrap();
        assert_eq!((group.pending().len(), group.consumers().len()), (1, 1));
    }
    let given_back = [&held[..held.len() - 1], b"\x01", &[0; 16], producers].concat();
    assert_eq!(
        restored(&fixture, &payload_of(&given_back)).unwrap_err(),
        DumpError::Unsupported("stream with entries that were given back (XNACK)")
    );
}

#[test]
fn what_no_server_writes_is_refused() {
    let fixture = Fixture::new();
    let packed = |kind: u8, blob: &[u8]| [&[kind, blob.len() as u8], blob].concat();
    for body in [
        // Nothing in it.
        &b"\x12\x00"[..],
        b"\x01\x00",
        b"\x02\x00",
        b"\x05\x00",
        b"\x04\x00",
        // The same member twice, and a score that is none.
        b"\x02\x02\x01a\x01a",
        b"\x04\x02\x01a\x01b\x01a\x01c",
        b"\x05\x01\x01a\x00\x00\x00\x00\x00\x00\xf8\x7f",
        b"\x03\x01\x01a\xfd",
        // A count that no bytes follow, and a container that does not exist.
        b"\x02\x81\xff\xff\xff\xff\xff\xff\xff\xff\x01a",
        b"\x12\x01\x03\x01a",
        // The bytes that Redis's release candidates used for hashes with expiring fields.
        b"\x17\x01a",
    ] {
        assert!(restored(&fixture, &payload_of(body)).is_err(), "{body:?}");
    }
    // A hash with a field and no value.
    let odd = packed(kind::HASH_LISTPACK, b"\x0a\x00\x00\x00\x01\x00\x81a\x02\xff");
    assert_eq!(restored(&fixture, &payload_of(&odd)).unwrap_err(), DumpError::Format);
}

proptest! {
    /// C9, C10: whatever comes with a good footer is refused or restored, and what is restored can be dumped and restored again.
    #[test]
    fn damaged_payloads_are_safe(index in any::<prop::sample::Index>(), place in any::<prop::sample::Index>(), byte: u8, cut: bool) {
        let fixture = Fixture::new();
        let (_, _, payload) = index.get(PAYLOADS);
        let mut body = payload[..payload.len() - 10].to_vec();
        let place = place.index(body.len());
        if cut {
            body.truncate(place);
        } else {
            body[place] = byte;
        }
        if let Ok(Loaded::Collection(collection)) = restore(&payload_of(&body), &fixture.loading()) {
            let again = restored(&fixture, &dumped(&collection)).unwrap();
            prop_assert_eq!(contents(&again), contents(&collection));
        }
    }

    #[test]
    fn any_bytes_behind_any_kind_are_safe(kind in 0u8..32, bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let fixture = Fixture::new();
        let _ = restore(&payload_of(&[&[kind], &bytes[..]].concat()), &fixture.loading());
    }
}
