//! Start-up: from the files of the log back to the keyspace, and to a file that can be appended to.
//!
//! ```text
//! appendonlydir/appendonly.aof.manifest      which files, in which order
//! appendonlydir/appendonly.aof.1.base.rdb    what there was when the log began
//! appendonlydir/appendonly.aof.1.incr.aof    everything since
//! ```
//!
//! `loading` reads the files; records are applied by the same handlers that clients use. A torn tail of the last file is cut by
//! the rules of `storage::aof::replay` with a warning; damage anywhere else stops the start, with the byte and what to do.

use crate::loading::{Functions, Ground, Loaded, Loader, PIECE};
use crate::node::Node;
use crate::persistence::{Installed, Place, adopt_single_file, adopt_snapshot, install_manifest, write_new};
use simurgh_kernel::disk::{Disk, LogFile, Sync};
use simurgh_kernel::rehearsal::{Mistake, Point, has, reached};
use simurgh_kernel::{random, time};
use simurgh_storage::Shard;
use simurgh_storage::aof::manifest::{BaseFormat, FileKind, Manifest, ManifestFile, manifest_name};
use simurgh_storage::aof::replay::End;
use simurgh_storage::aof::seal::Sealer;
use simurgh_storage::aof::whole::Whole;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Why a node does not start.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant is its text")]
pub enum RecoveryError {
    #[error("{path}: {error}")]
    Disk { path: String, error: io::Error },
    #[error("{path}: {error}")]
    Manifest { path: String, error: simurgh_storage::aof::manifest::ManifestError },
    #[error("{path}: {error}")]
    Log { path: String, error: simurgh_storage::aof::replay::ReplayError },
    #[error("{path}: {error}")]
    Base { path: String, error: simurgh_storage::rdb::read::ReadError },
    #[error("{path}: the command '{name}' at byte {offset} is not one that this server can replay")]
    UnknownCommand { path: String, name: String, offset: u64 },
    #[error("{path}: the record at byte {offset} was refused: {reply}")]
    Refused { path: String, offset: u64, reply: String },
    #[error("{path}: a library of functions does not load: {error}")]
    Library { path: String, error: String },
    #[error("there is no snapshot")]
    NoSnapshot,
    #[error("the snapshot could not be saved: {0}")]
    Save(String),
    #[error("{path} was not found although the manifest names it")]
    Missing { path: String },
    #[error(
        "{path} is damaged: it is {} bytes long with the sum {:016x}, but was written with {} and {:016x} (simurgh-whole in \
         the manifest). Put a good copy of it there",
        found.bytes, found.sum, written.bytes, written.sum
    )]
    NotWhole { path: String, found: Whole, written: Whole },
    #[error("{path}: the key at byte {offset} is in a database beyond the {databases} that there are (see databases)")]
    Databases { path: String, offset: u64, databases: usize },
    #[error("{path}: the key at byte {offset} stands twice in the file")]
    Repeated { path: String, offset: u64 },
    #[error("thread: {0}")]
    Thread(io::Error),
    #[error("asked to stop while loading")]
    Stopped,
}

pub(crate) fn disk_error(path: &str) -> impl FnOnce(io::Error) -> RecoveryError + '_ {
    move |error| RecoveryError::Disk { path: path.to_owned(), error }
}

/// The log, ready to go on.
pub(crate) struct Recovered {
    pub file: LogFile,
    pub sealer: Sealer,
    /// Bytes of the files before that one.
    pub earlier_bytes: u64,
    /// The files, as the disk has them.
    pub manifest: Manifest,
}

/// Loads the keyspace and opens the log.
pub(crate) async fn recover(node: &Arc<Node>, shards: &mut Vec<Shard>) -> Result<Recovered, RecoveryError> {
    let config = node.configuration.current();
    let folder = config.config.append_dir_name.clone();
    let prefix = config.config.append_file_name.clone();
    let manifest_path = format!("{folder}/{}", manifest_name(&prefix));
    let disk = node.disk.as_ref();
    disk.create_directory(&folder).await.map_err(disk_error(&folder))?;
    let mut manifest = match disk.read(&manifest_path).await {
        Ok(bytes) => {
            Manifest::parse(&bytes).map_err(|error| RecoveryError::Manifest { path: manifest_path.clone(), error })?
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Manifest::default(),
        Err(error) => return Err(disk_error(&manifest_path)(error)),
    };
    let place = Place { folder: folder.clone(), prefix: prefix.clone() };
    adopt_single_file(disk, &place, &mut manifest).await?;
    if manifest.data_files().next().is_none() {
        adopt_snapshot(disk, &place, &config.config.db_file_name, &mut manifest).await?;
    }
    let total = bytes_of(disk, &folder, manifest.data_files()).await?;
    node.loading.total_bytes.store(total, Ordering::Relaxed);
    let watched = (&node.loading, &node.shutdown);
    let mut loader = Loader::start(&Ground::of(node), &node.disk, watched, &folder, std::mem::take(shards)).await?;
    loader.functions = Functions::of(node);
    for file in manifest.data_files() {
        // The single file of an old log may be torn at its end; a base that was written as a whole may not.
        let may_be_torn = file.kind == FileKind::Increment || file.whole.is_none();
        loader.load(file, may_be_torn && manifest.data_files().last() == Some(file)).await?;
    }
    let Loaded { shards: loaded, sealer, end, functions } = loader.finish().await?;
    *shards = loaded;
    functions.install();
    open(node, manifest, &folder, &prefix, sealer, end).await
}

/// Loads the keyspace from the file that `dbfilename` names; whether there is one. Libraries of functions take the place of those
/// that there are.
pub(crate) async fn load_snapshot(node: &Arc<Node>, shards: &mut Vec<Shard>) -> Result<bool, RecoveryError> {
    let path = node.configuration.current().config.db_file_name.clone();
    let length = match node.disk.length(&path).await {
        Ok(length) => length,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(disk_error(&path)(error)),
    };
    tracing::info!(file = %path, bytes = length, "reading");
    node.loading.total_bytes.store(length, Ordering::Relaxed);
    node.loading.keys_loaded.store(0, Ordering::Relaxed);
    node.loading.keys_expired.store(0, Ordering::Relaxed);
    let watched = (&node.loading, &node.shutdown);
    let mut loader = Loader::start(&Ground::of(node), &node.disk, watched, "", std::mem::take(shards)).await?;
    loader.functions = Functions::of(node);
    loader.expired_before_ms = Some(time::wall_ms());
    loader.load_rdb(&path, length).await?;
    let loaded = loader.finish().await?;
    *shards = loaded.shards;
    loaded.functions.install();
    Ok(true)
}

/// The length of files of the log together; those that are missing are found when they are loaded.
async fn bytes_of(
    disk: &dyn Disk,
    folder: &str,
    files: impl Iterator<Item = &ManifestFile>,
) -> Result<u64, RecoveryError> {
    let mut bytes = 0;
    for file in files {
        let path = format!("{folder}/{}", file.name);
        bytes += match disk.length(&path).await {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(disk_error(&path)(error)),
        };
    }
    Ok(bytes)
}

/// Opens the last increment for appending, or begins the log when there is none.
async fn open(
    node: &Node,
    mut manifest: Manifest,
    folder: &str,
    prefix: &str,
    sealer: Option<Sealer>,
    end: Option<End>,
) -> Result<Recovered, RecoveryError> {
    let disk = node.disk.as_ref();
    let is_continued = end.is_some_and(|end| end.sealer.is_some());
    let sealer = sealer.unwrap_or_else(|| Sealer::new(0, random::entropy_u64()));
    if let Some(last) = manifest.increments().last() {
        let path = format!("{folder}/{}", last.name);
        let mut file = disk.append(&path).await.map_err(disk_error(&path))?;
        disk.sync_directory(folder).await.map_err(disk_error(folder))?;
        if let Some(end) = end.filter(|_| !has(Mistake::Unsettled)) {
            settle(disk, &mut file, &path, &end).await?;
        }
        if !is_continued {
            write_start(&mut file, &sealer, &path).await?;
        }
        let earlier = manifest.data_files().filter(|file| file.name != last.name);
        let earlier_bytes = bytes_of(disk, folder, earlier).await?;
        return Ok(Recovered { file, sealer, earlier_bytes, manifest });
    }
    if manifest.base().is_none() {
        let (format, bytes) = empty_base(node);
        let mut base = manifest.next_base(prefix, format);
        let path = format!("{folder}/{}", base.name);
        base.whole = Some(Whole::of(&bytes));
        write_new(disk, &path, bytes).await?;
        manifest.replace_base(base, 1).map_err(|_| RecoveryError::Missing { path })?;
    }
    let earlier_bytes = bytes_of(disk, folder, manifest.data_files()).await?;
    let increment = manifest.next_increment(prefix, None);
    let path = format!("{folder}/{}", increment.name);
    let mut file = disk.create(&path).await.map_err(disk_error(&path))?;
    write_start(&mut file, &sealer, &path).await?;
    manifest.push_increment(increment).map_err(|_| RecoveryError::Missing { path: path.clone() })?;
    let place = Place { folder: folder.to_owned(), prefix: prefix.to_owned() };
    match install_manifest(disk, &place, &manifest).await {
        Installed::Yes => Ok(Recovered { file, sealer, earlier_bytes, manifest }),
        Installed::No(error) | Installed::Unknown(error) => Err(error),
    }
}

/// Makes what the life before left behind as safe as it looks. It may be in the kernel's cache alone: that life may have been
/// killed before a sync, or have stopped because one failed, after which the kernel takes what it never wrote for written.
/// So what no seal says was synced is written again and synced, and then a seal says so, if the last does not: or a torn write
/// behind it could not be told from damage to it. (That last seal is written again, too: nobody vouches for it.)
async fn settle(disk: &dyn Disk, file: &mut LogFile, path: &str, end: &End) -> Result<(), RecoveryError> {
    let mut offset = end.synced;
    if offset < end.keep {
        reached(Point::Settled);
    }
    while offset < end.keep {
        let piece = disk.read_range(path, offset, PIECE).await.map_err(disk_error(path))?;
        if piece.is_empty() {
            break;
        }
        let length = piece.len() as u64;
        let done = file.rewrite(offset, piece).await.result;
        done.map_err(|failure| disk_error(path)(io::Error::other(failure.to_string())))?;
        offset += length;
    }
    append_all(file, Vec::new(), path).await?;
    match end.sealer.filter(|_| end.synced < end.keep && !end.vouched) {
        Some(sealer) => {
            let mut seal = Vec::new();
            sealer.write_seal(&mut seal, sealer.position());
            append_all(file, seal, path).await
        }
        None => Ok(()),
    }
}

async fn write_start(file: &mut LogFile, sealer: &Sealer, path: &str) -> Result<(), RecoveryError> {
    let mut start = Vec::new();
    sealer.write_start(&mut start);
    append_all(file, start, path).await
}

async fn append_all(file: &mut LogFile, bytes: Vec<u8>, path: &str) -> Result<(), RecoveryError> {
    file.append(bytes, Sync::Data)
        .await
        .result
        .map_err(|failure| disk_error(path)(io::Error::other(failure.to_string())))
}

/// The base of a log that begins with nothing.
fn empty_base(node: &Node) -> (BaseFormat, Vec<u8>) {
    let live = node.configuration.current();
    let mut bytes = Vec::new();
    if !live.config.aof_use_rdb_preamble {
        return (BaseFormat::Aof, bytes);
    }
    let origin = simurgh_storage::rdb::write::Origin {
        version: &live.config.advertised_version,
        created_s: u64::try_from(time::wall_ms() / 1000).unwrap_or(0),
        used_memory_bytes: 0,
        is_aof_base: true,
    };
    simurgh_storage::rdb::write::Writer::begin(&mut bytes, &origin).end(&mut bytes);
    (BaseFormat::Rdb, bytes)
}
