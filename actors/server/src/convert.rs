//! `simurgh convert SOURCE TARGET`: from an RDB file to the folder of a log, or from such a folder to an RDB file.
//!
//! A folder of a log is an RDB file with a manifest, so the first way is a copy, once the file was found to be good. The second loads
//! the data as the server would, without changing the source, and writes it out.
#![expect(clippy::disallowed_methods, reason = "a tool that reads and writes files, not a part of the node")]

use crate::copy_log::{manifest_of, write_durably};
use anyhow::{Context as _, bail, ensure};
use simurgh_kernel::disk::PlainDisk;
use simurgh_kernel::{core, random, time};
use simurgh_protocol::config::Settings;
use simurgh_storage::Shard;
use simurgh_storage::aof::manifest::{BaseFormat, Manifest, manifest_name};
use simurgh_storage::aof::seal::Sealer;
use simurgh_storage::rdb::read::{Item, Reader};
use simurgh_storage::rdb::value::{kind_of, version_of};
use simurgh_storage::rdb::write::{Access, Origin, Writer};
use simurgh_system::offline::{Held, load_log};
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::sync::Arc;

/// Bytes that are read or written at once.
const PIECE: usize = 1 << 20;
/// `appendfilename`, unless a configuration says otherwise.
const PREFIX: &str = "appendonly.aof";
/// What a file says of the server that wrote it.
const ADVERTISED: &str = "8.2.3";

/// Converts; whether it could be done.
pub fn convert(source: &Path, target: &Path, out: &mut impl Write) -> anyhow::Result<bool> {
    ensure!(!target.exists(), "{} is there already", target.display());
    if source.is_dir() { to_rdb(source, target, out) } else { to_log(source, target, out) }
}

fn to_log(source: &Path, target: &Path, out: &mut impl Write) -> anyhow::Result<bool> {
    if !crate::check_rdb::check_rdb(source, out)? {
        bail!("{} is not a good RDB file", source.display());
    }
    let mut manifest = Manifest::default();
    manifest.replace_base(manifest.next_base(PREFIX, BaseFormat::Rdb), 0)?;
    manifest.push_increment(manifest.next_increment(PREFIX, None))?;
    std::fs::create_dir_all(target).with_context(|| format!("{}", target.display()))?;
    let mut start = Vec::new();
    Sealer::new(0, random::entropy_u64()).write_start(&mut start);
    for file in manifest.data_files() {
        let path = target.join(&file.name);
        if Some(file) == manifest.base() {
            std::fs::copy(source, &path)?;
            File::open(&path)?.sync_all()?;
        } else {
            write_durably(&path, &start)?;
        }
    }
    write_durably(&target.join(manifest_name(PREFIX)), &manifest.format())?;
    File::open(target)?.sync_all()?;
    writeln!(out, "{} is a log that begins with it", target.display())?;
    Ok(true)
}

fn to_rdb(source: &Path, target: &Path, out: &mut impl Write) -> anyhow::Result<bool> {
    let manifest = std::fs::read(manifest_of(source)?)?;
    let manifest = Manifest::parse(&manifest)?;
    let folder = source.canonicalize()?;
    let parent = folder.parent().context("a log is in a folder")?.to_owned();
    let name = folder.file_name().context("a log is in a folder")?.to_string_lossy().into_owned();
    let held = core::run(load_log(Settings::default(), Arc::new(PlainDisk::new(&parent)), &name, &manifest))??;
    let keys = write_rdb(&held, target)?;
    writeln!(out, "{keys} keys written to {}", target.display())?;
    Ok(true)
}

/// Writes all shards into a file; how many keys that was.
fn write_rdb(held: &Held, target: &Path) -> anyhow::Result<usize> {
    let shards = held.shards.as_slice();
    let mut version = 0;
    let databases = shards.first().map_or(0, Shard::databases);
    for shard in shards {
        for database in 0..databases {
            shard.database(database).for_each(|entry| version = version.max(version_of(kind_of(entry))));
        }
    }
    let origin = Origin {
        version: ADVERTISED,
        created_s: u64::try_from(time::wall_ms() / 1000).unwrap_or(0),
        used_memory_bytes: shards.iter().map(Shard::bytes).sum::<usize>() as u64,
        is_aof_base: false,
    };
    let mut file = BufWriter::with_capacity(PIECE, File::create_new(target)?);
    let mut bytes = Vec::new();
    let mut writer = Writer::begin_as(&mut bytes, &origin, version.max(simurgh_storage::rdb::VERSION_WRITTEN));
    for source in &held.libraries {
        writer.library(&mut bytes, source);
    }
    let mut all = 0;
    for database in 0..databases {
        let keys: usize = shards.iter().map(|shard| shard.database(database).len()).sum();
        if keys == 0 {
            continue;
        }
        all += keys;
        let expires: usize = shards.iter().map(|shard| shard.database(database).expiring()).sum();
        writer.database(&mut bytes, u32::try_from(database)?, keys as u64, expires as u64);
        for shard in shards {
            let mut failed = Ok(());
            shard.database(database).for_each(|entry| {
                writer.key(&mut bytes, entry, Access::Unknown);
                if bytes.len() >= PIECE && failed.is_ok() {
                    failed = file.write_all(&bytes);
                    bytes.clear();
                }
            });
            failed?;
        }
    }
    writer.end(&mut bytes);
    file.write_all(&bytes)?;
    file.into_inner()?.sync_all()?;
    Ok(all)
}

/// What the front of a base says of it.
#[derive(Debug, Default, Clone, Copy)]
pub struct BaseFacts {
    /// When it was written, in seconds since 1970.
    pub created_s: Option<u64>,
}

/// Reads the auxiliary fields of a base; a base of records has none.
pub fn base_facts(path: &Path) -> anyhow::Result<BaseFacts> {
    let mut front = Vec::new();
    File::open(path).with_context(|| format!("{}", path.display()))?.take(4096).read_to_end(&mut front)?;
    let (mut reader, mut facts) = (Reader::new(), BaseFacts::default());
    reader.feed(&front);
    while let Ok(Some(item)) = reader.next_raw(front.len()) {
        let simurgh_storage::rdb::read::RawItem::Other(Item::Aux { name, value }) = item else { break };
        if &*name == b"ctime" {
            facts.created_s = std::str::from_utf8(&value).ok().and_then(|digits| digits.parse().ok());
        }
    }
    Ok(facts)
}
