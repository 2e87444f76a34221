//! The other half of `tests/aof_exchange.py`: writes a multi-part append-only directory for real servers to load, and
//! reads the ones that they wrote.
//!
//! `aof_exchange write DIR KEYS` and `aof_exchange read DIR`; the latter prints a line `database key value expire_at_ms` for
//! each key that is left, in order.
#![allow(clippy::disallowed_methods, reason = "a tool for a test: it reads and writes real files")]

use simurgh_protocol::config::Settings;
use simurgh_protocol::resp::Args;
use simurgh_storage::KeyHasher;
use simurgh_storage::aof::check::Check;
use simurgh_storage::aof::manifest::{BaseFormat, Manifest, manifest_name};
use simurgh_storage::aof::record::encode;
use simurgh_storage::aof::replay::{Before, Options, Replay};
use simurgh_storage::aof::seal::Sealer;
use simurgh_storage::rdb::read::{Item, Reader, is_rdb};
use simurgh_storage::rdb::value::{Loaded, Loading};
use simurgh_storage::rdb::write::{Access, Origin, Writer};
use std::collections::BTreeMap;
use std::path::Path;

type Failure = Box<dyn std::error::Error>;
type Keys = BTreeMap<(u32, Vec<u8>), (Vec<u8>, Option<i64>)>;

const PREFIX: &str = "appendonly.aof";
/// Far away, so that nothing expires while the test runs.
const EXPIRE_AT_MS: i64 = 4_000_000_000_000;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["write", directory, keys] => write(Path::new(directory), keys.parse()?),
        ["read", directory] => read(Path::new(directory)),
        _ => Err("usage: aof_exchange write DIR KEYS | read DIR".into()),
    }
}

fn write(directory: &Path, keys: u32) -> Result<(), Failure> {
    let mut manifest = Manifest::default();
    manifest.replace_base(manifest.next_base(PREFIX, BaseFormat::Rdb), 0)?;
    manifest.push_increment(manifest.next_increment(PREFIX, None))?;
    manifest.push_increment(manifest.next_increment(PREFIX, None))?;
    let mut base = Vec::new();
    let origin = Origin { version: "8.2.3", created_s: 1_700_000_000, used_memory_bytes: 1 << 20, is_aof_base: true };
    let mut writer = Writer::begin(&mut base, &origin);
    writer.database(&mut base, 0, u64::from(keys), 1);
    for key in 0..keys {
        let name = format!("base:{key}");
        let value = Loaded::String(name.repeat(3).into_bytes().into());
        writer.value(&mut base, name.as_bytes(), value, None, Access::Unknown);
    }
    let value = Loaded::String(b"123"[..].into());
    writer.value(&mut base, b"base:expiring", value, Some(EXPIRE_AT_MS), Access::Unknown);
    writer.end(&mut base);
    let mut sealer = Sealer::new(0, 0x5eed);
    let mut increments = Vec::new();
    for part in 0..2 {
        let mut file = Vec::new();
        sealer.write_start(&mut file);
        for key in 0..keys {
            let mut group = Vec::new();
            write_group(&mut group, part, key);
            let synced = sealer.position();
            sealer.seal(&mut group, synced);
            file.extend_from_slice(&group);
        }
        increments.push(file);
    }
    let contents = std::iter::once(base).chain(increments);
    for (file, content) in manifest.data_files().zip(contents) {
        std::fs::write(directory.join(&file.name), content)?;
    }
    std::fs::write(directory.join(manifest_name(PREFIX)), manifest.format())?;
    Ok(())
}

fn write_group(group: &mut Vec<u8>, part: u32, key: u32) {
    let database = (key % 3).to_string();
    let name = format!("incr{part}:{key}");
    encode(group, [&b"SELECT"[..], database.as_bytes()]);
    encode(group, [&b"SET"[..], name.as_bytes(), &[key as u8, 0, b'\n', b'#']]);
    encode(group, [&b"MULTI"[..]]);
    encode(group, [&b"SET"[..], format!("{name}:in").as_bytes(), name.as_bytes()]);
    encode(group, [&b"PEXPIREAT"[..], name.as_bytes(), EXPIRE_AT_MS.to_string().as_bytes()]);
    encode(group, [&b"EXEC"[..]]);
    if key.is_multiple_of(7) {
        encode(group, [&b"DEL"[..], format!("{name}:in").as_bytes()]);
    }
}

fn read(directory: &Path) -> Result<(), Failure> {
    let manifest = Manifest::parse(&std::fs::read(directory.join(manifest_name(PREFIX)))?)?;
    let mut keys = Keys::new();
    let mut before = Before::Unknown;
    for file in manifest.data_files() {
        let bytes = std::fs::read(directory.join(&file.name))?;
        let mut check = Check::default();
        bytes.chunks(4096).for_each(|chunk| check.feed(chunk));
        eprintln!("{}\n{}", file.name, check.finish());
        let offset = if is_rdb(&bytes) { read_rdb(&bytes, &mut keys)? } else { 0 };
        if offset < bytes.len() as u64 {
            before = read_log(&bytes[offset as usize..], Options { offset, before, ..Options::default() }, &mut keys)?;
        }
    }
    for ((database, key), (value, expire_at_ms)) in keys {
        println!("{database} {} {} {}", hex(&key), hex(&value), expire_at_ms.unwrap_or(-1));
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read_rdb(bytes: &[u8], keys: &mut Keys) -> Result<u64, Failure> {
    let mut reader = Reader::default();
    for chunk in bytes.chunks(4096) {
        reader.feed(chunk);
        take_items(&mut reader, keys)?;
    }
    reader.finish();
    take_items(&mut reader, keys)?;
    if reader.is_ended() { Ok(reader.offset()) } else { Err("the RDB file is truncated".into()) }
}

fn take_items(reader: &mut Reader, keys: &mut Keys) -> Result<(), Failure> {
    let (packing, hasher) = (Settings::default().config().packing, KeyHasher::new(0));
    let loading = Loading { packing: &packing, hasher: &hasher, string_bytes_max: simurgh_storage::LENGTH_MAX };
    while let Some(item) = reader.next_item(&loading)? {
        if let Item::Key { database, key, value: Loaded::String(value), expire_at_ms, .. } = item {
            keys.insert((database, key.into_owned()), (value.into_owned(), expire_at_ms));
        }
    }
    Ok(())
}

fn read_log(bytes: &[u8], options: Options, keys: &mut Keys) -> Result<Before, Failure> {
    let before = options.before;
    let mut replay = Replay::new(options);
    for chunk in bytes.chunks(4096) {
        replay.feed(chunk);
        while let Some(record) = replay.next_record()? {
            apply(record.database, &record.arguments, keys)?;
        }
    }
    let end = replay.finish()?;
    while let Some(record) = replay.next_record()? {
        apply(record.database, &record.arguments, keys)?;
    }
    Ok(before.then(&end))
}

/// The few commands that real servers write into their log for what the test does.
fn apply(database: u32, arguments: &Args<'_>, keys: &mut Keys) -> Result<(), Failure> {
    let words: Vec<Vec<u8>> = arguments.from(0).map(<[u8]>::to_vec).collect();
    let name = words[0].to_ascii_uppercase();
    match (name.as_slice(), &words[1..]) {
        (b"SET", [key, value]) => {
            keys.insert((database, key.clone()), (value.clone(), None));
        }
        (b"SET", [key, value, option, at]) if option.eq_ignore_ascii_case(b"PXAT") => {
            let at = std::str::from_utf8(at)?.parse()?;
            keys.insert((database, key.clone()), (value.clone(), Some(at)));
        }
        (b"PEXPIREAT", [key, at]) => {
            let at = std::str::from_utf8(at)?.parse()?;
            if let Some(value) = keys.get_mut(&(database, key.clone())) {
                value.1 = Some(at);
            }
        }
        (b"DEL" | b"UNLINK", deleted) => {
            for key in deleted {
                keys.remove(&(database, key.clone()));
            }
        }
        _ => return Err(format!("unexpected command {}", String::from_utf8_lossy(&name)).into()),
    }
    Ok(())
}
