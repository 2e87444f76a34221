//! Files of real servers, every cut and every flipped bit (RELIABILITY D10).

use super::super::write::{Origin, Writer};
use super::*;
use crate::fixture::Fixture;
use proptest::prelude::*;

type Keys = Vec<(u32, Vec<u8>, Vec<u8>, Option<i64>, Access)>;

fn read(bytes: &[u8], chunk: usize) -> Result<(Keys, u64), ReadError> {
    let fixture = Fixture::new();
    let mut reader = Reader::default();
    let mut keys = Keys::new();
    let mut drain = |reader: &mut Reader| -> Result<(), ReadError> {
        while let Some(item) = reader.next_item(&fixture.loading())? {
            if let Item::Key { database, key, value: Loaded::String(value), expire_at_ms, access } = item {
                keys.push((database, key.into_owned(), value.into_owned(), expire_at_ms, access));
            }
        }
        Ok(())
    };
    for chunk in bytes.chunks(chunk) {
        reader.feed(chunk);
        drain(&mut reader)?;
    }
    reader.finish();
    drain(&mut reader)?;
    if reader.is_ended() { Ok((keys, reader.offset())) } else { Err(ReadError::Truncated(reader.offset())) }
}

const ORIGIN: Origin<'static> =
    Origin { version: "8.2.3", created_s: 1_700_000_000, used_memory_bytes: 5, is_aof_base: true };

fn sample() -> (Vec<u8>, Keys) {
    let keys: Keys = vec![
        (0, b"a".into(), b"1".into(), None, Access::Unknown),
        (0, b"12345".into(), vec![b'x'; 300], Some(1_800_000_000_123), Access::IdleSeconds(70_000)),
        (3, b"".into(), b"".into(), Some(-5), Access::Frequency(200)),
    ];
    let mut out = Vec::new();
    let mut writer = Writer::begin(&mut out, &ORIGIN);
    let mut database = None;
    for (of, key, value, expire_at_ms, access) in &keys {
        if database.replace(*of) != Some(*of) {
            writer.database(&mut out, *of, 2, 1);
        }
        writer.value(&mut out, key, Loaded::String(value.into()), *expire_at_ms, *access);
    }
    writer.end(&mut out);
    (out, keys)
}

#[test]
fn round_trip_in_chunks_of_any_size() {
    let (bytes, keys) = sample();
    for chunk in 1..=bytes.len() {
        assert_eq!(read(&bytes, chunk), Ok((keys.clone(), bytes.len() as u64)), "chunk {chunk}");
    }
}

#[test]
fn empty_bases_of_real_servers() {
    let redis_8: &[u8] = b"REDIS0012\xfa\tredis-ver\x058.2.3\xfa\nredis-bits\xc0@\xfa\x05ctime\xc2\x9bt\rk\xfa\x08used-mem\xc2\x00\xfb\t\x00\xfa\x08aof-base\xc0\x01\xff\xc6\x12t\x85w\xd7\xb0#";
    let valkey_9: &[u8] = b"VALKEY080\xfa\nvalkey-ver\x059.1.2\xfa\nredis-bits\xc0@\xfa\x05ctime\xc2\x9ct\rk\xfa\x08used-mem\xc2\xd8?\x0f\x00\xfa\x08aof-base\xc0\x01\xff\x14\x92x\xfd\xd2.\xb0\x19";
    for bytes in [redis_8, valkey_9] {
        assert_eq!(read(bytes, 7), Ok((vec![], bytes.len() as u64)));
    }
    let (fixture, mut reader) = (Fixture::new(), Reader::default());
    reader.feed(redis_8);
    reader.feed(b"*1\r\n$4\r\nPING\r\n");
    while reader.next_item(&fixture.loading()).unwrap().is_some() {}
    assert_eq!((reader.offset(), reader.rest()), (redis_8.len() as u64, &b"*1\r\n$4\r\nPING\r\n"[..]));
}

#[test]
fn d10_every_cut_and_every_flipped_bit_is_noticed() {
    let (bytes, _) = sample();
    for cut in 0..bytes.len() {
        assert!(matches!(read(&bytes[..cut], 50), Err(ReadError::Truncated(_))), "cut {cut}");
    }
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&flipped, 50).is_err() || bit / 8 < HEADER_BYTES && flipped[8] < b'5', "bit {bit}");
    }
}

#[test]
fn old_files_and_switched_off_sums() {
    let mut seconds = b"REDIS0003\xfe\x00\xfd".to_vec();
    seconds.extend_from_slice(&1_000_000_000u32.to_le_bytes());
    seconds.extend_from_slice(b"\x00\x01k\x01v\xff");
    let expected = vec![(0, b"k".to_vec(), b"v".to_vec(), Some(1_000_000_000_000), Access::Unknown)];
    assert_eq!(read(&seconds, 3).unwrap().0, expected);
    let (mut bytes, keys) = sample();
    let sum = bytes.len() - 8;
    bytes[sum..].fill(0);
    assert_eq!(read(&bytes, 9).unwrap().0, keys);
}

/// A library is one entry, whatever pieces it comes in.
#[test]
fn libraries_are_read_back() {
    let origin = Origin { version: "8.2.3", created_s: 0, used_memory_bytes: 0, is_aof_base: false };
    let mut bytes = Vec::new();
    let mut writer = Writer::begin(&mut bytes, &origin);
    writer.library(&mut bytes, b"#!lua name=a\n");
    writer.end(&mut bytes);
    let (fixture, mut reader, mut found) = (Fixture::new(), Reader::default(), Vec::new());
    for piece in bytes.chunks(1).chain([&[][..]]) {
        reader.feed(piece);
        if piece.is_empty() {
            reader.finish();
        }
        while let Some(item) = reader.next_item(&fixture.loading()).unwrap() {
            if let Item::Library { source } = item {
                found.push(source.into_owned());
            }
        }
    }
    assert!(reader.is_ended());
    assert_eq!(found, [b"#!lua name=a\n"]);
}

#[test]
fn refused_by_name_and_offset() {
    let after_header = |entry: &[u8]| read(&[b"REDIS0011", entry].concat(), 100).unwrap_err();
    assert_eq!(after_header(b"\x06k").to_string(), "this file holds what is not built yet at byte 9: module value");
    assert_eq!(
        after_header(b"\xf6\x01x").to_string(),
        "this file holds what is not built yet at byte 9: function library of a release candidate of Redis 7.0"
    );
    assert_eq!(
        after_header(b"\x07\x01v\x81\xbd\xe7-\xa2\xbb\x1e\xb4\x00\x02").to_string(),
        "this file holds a value of module vectorset at byte 9: modules are not built yet"
    );
    assert_eq!(after_header(b"\xf3"), ReadError::Unsupported { name: "slot migration under way", offset: 9 });
    assert_eq!(after_header(b"\x63"), ReadError::Unknown { code: 0x63, offset: 9 });
    assert_eq!(after_header(b"\xfe\xc0"), ReadError::Damaged { offset: 9, fault: Fault::Length });
    assert_eq!(
        after_header(b"\x00\x81\xff\xff\xff\xff\xff\xff\xff\xff"),
        ReadError::Damaged { offset: 9, fault: Fault::TooLong }
    );
    assert_eq!(read(b"REDIS0016", 9), Err(ReadError::Version(16)));
    assert_eq!(read(b"VALKEY012", 9), Err(ReadError::Version(12)));
    assert_eq!(read(b"REDIS+011", 9), Err(ReadError::Signature));
    assert_eq!(read(b"*1\r\n$4\r\nPING", 9), Err(ReadError::Signature));
    assert_eq!(read(b"REDIS0011\xf4\x01\x02\x03\xff\0\0\0\0\0\0\0\0", 9).unwrap().0, vec![]);
}

proptest! {
    #[test]
    fn any_bytes_are_safe(tail in prop::collection::vec(any::<u8>(), 0..100), chunk in 1usize..50) {
        let _ = read(&[b"REDIS0011", &tail[..]].concat(), chunk);
    }
}

#[test]
fn functions_and_module_data_are_handed_out_beside_the_keys() {
    let module = b"\xf7\x81\xbd\xe7-\xa2\xbb\x1e\xb4\x00\x02\x01\x05\x02hi\x00";
    let mut file = [b"REDIS0012\xf5\x0d#!lua name=li".as_slice(), module, b"\x00\x01k\x01v\xff"].concat();
    let sum = crc64(0, &file);
    file.extend_from_slice(&sum.to_le_bytes());
    for chunk in 1..file.len() {
        let (fixture, mut reader, mut seen) = (Fixture::new(), Reader::new(), Vec::new());
        for chunk in file.chunks(chunk).chain([&b""[..]]) {
            match chunk {
                b"" => reader.finish(),
                _ => reader.feed(chunk),
            }
            while let Some(item) = reader.next_item(&fixture.loading()).unwrap() {
                seen.push(match item {
                    Item::Library { source } => String::from_utf8(source.into_owned()).unwrap(),
                    Item::ModuleAux { module } => module.to_string(),
                    Item::Key { key, .. } => String::from_utf8(key.into_owned()).unwrap(),
                    other @ (Item::Aux { .. } | Item::Resize { .. } | Item::End) => format!("{other:?}"),
                });
            }
        }
        assert_eq!(seen, ["#!lua name=li", "vectorset", "k", "End"], "chunk {chunk}");
    }
}
