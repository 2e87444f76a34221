//! Start-up: from the files of the log back to the keyspace, and to a file that can be appended to.
//!
//! ```text
//! appendonlydir/appendonly.aof.manifest      which files, in which order
//! appendonlydir/appendonly.aof.1.base.rdb    what there was when the log began
//! appendonlydir/appendonly.aof.1.incr.aof    everything since
//! ```
//!
//! Files are read in pieces; records are applied by the same handlers that clients use. A torn tail of the last file is cut by
//! the rules of `storage::aof::replay` with a warning; damage anywhere else stops the start, with the byte and what to do.

use crate::node::Node;
use crate::scripting::{Collision, Libraries, Patience};
use simurgh_kernel::disk::{Disk, LogFile, Sync};
use simurgh_kernel::{core, random, time};
use simurgh_protocol::command::{Command, Lookup, lookup};
use simurgh_protocol::resp::Range;
use simurgh_protocol::{Args, Reply};
use simurgh_storage::aof::manifest::{BaseFormat, FileKind, Manifest, ManifestFile, manifest_name, temporary_name};
use simurgh_storage::aof::replay::{End, Options, Record, Replay};
use simurgh_storage::aof::seal::Sealer;
use simurgh_storage::rdb::read::{Item, Reader, is_rdb};
use simurgh_storage::rdb::value::{Loaded, Loading};
use simurgh_storage::{Context, Discarded, Effects, Random, Shard, Shards};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes that are read at once.
const PIECE: usize = 1 << 20;

/// Why a node does not start.
#[derive(Debug, thiserror::Error)]
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
    #[error("{path} was not found although the manifest names it")]
    Missing { path: String },
}

fn disk_error(path: &str) -> impl FnOnce(io::Error) -> RecoveryError + '_ {
    move |error| RecoveryError::Disk { path: path.to_owned(), error }
}

/// The log, ready to go on.
pub(crate) struct Recovered {
    pub file: LogFile,
    pub sealer: Sealer,
    /// Bytes of the files before that one.
    pub earlier_bytes: u64,
}

/// Loads the keyspace and opens the log.
pub(crate) async fn recover(node: &Arc<Node>, shards: &mut Vec<Shard>) -> Result<Recovered, RecoveryError> {
    let config = node.configuration.current();
    let folder = config.config.append_dir_name.clone();
    let prefix = config.config.append_file_name.clone();
    let manifest_path = format!("{folder}/{}", manifest_name(&prefix));
    let disk = node.disk.as_ref();
    disk.create_directory(&folder).await.map_err(disk_error(&folder))?;
    let manifest = match disk.read(&manifest_path).await {
        Ok(bytes) => {
            Manifest::parse(&bytes).map_err(|error| RecoveryError::Manifest { path: manifest_path.clone(), error })?
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Manifest::default(),
        Err(error) => return Err(disk_error(&manifest_path)(error)),
    };
    let total = bytes_of(disk, &folder, manifest.data_files()).await?;
    node.loading.total_bytes.store(total, Ordering::Relaxed);
    let mut loader = Loader {
        node,
        shards,
        folder: &folder,
        done_bytes: 0,
        continues: None,
        end: None,
        libraries: Libraries::default(),
    };
    for file in manifest.data_files() {
        loader.load(file, manifest.increments().last() == Some(file)).await?;
    }
    let (sealer, end) = (loader.continues, loader.end);
    *node.scripting.libraries() = loader.libraries;
    open(node, manifest, &folder, &prefix, sealer, end).await
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

/// Loads the keyspace anew from the log that is being written, with every shard held: DEBUG LOADAOF.
pub(crate) async fn reload(node: &Arc<Node>) -> Result<(), RecoveryError> {
    let mut held = loop {
        match node.shards.try_hold(node.shards.all()) {
            Some(held) => break held,
            None => core::yield_now().await,
        }
    };
    let end = node.log.end();
    while node.log.safe() < end {
        node.log.writer.notify_one();
        core::yield_now().await;
    }
    let config = node.configuration.current();
    let (folder, prefix) = (&config.config.append_dir_name, &config.config.append_file_name);
    let path = format!("{folder}/{}", manifest_name(prefix));
    let bytes = node.disk.read(&path).await.map_err(disk_error(&path))?;
    let manifest = Manifest::parse(&bytes).map_err(|error| RecoveryError::Manifest { path, error })?;
    let mut loaded = Shard::all(&node.layout);
    let mut loader = Loader {
        node,
        shards: &mut loaded,
        folder,
        done_bytes: 0,
        continues: None,
        end: None,
        libraries: Libraries::default(),
    };
    for file in manifest.data_files() {
        // Nothing may be cut: the writer has the file open, and what it has written is whole.
        loader.load(file, false).await?;
    }
    let mut libraries = loader.libraries;
    libraries.generation += node.scripting.libraries().generation + 1;
    *node.scripting.libraries() = libraries;
    for (index, mut shard) in loaded.into_iter().enumerate() {
        for database in 0..node.layout.databases {
            let content = shard.take_database(database);
            node.discard(vec![Discarded::Database(held.get(index).take_database(database))]);
            *held.get(index).database_mut(database) = content;
        }
    }
    Ok(())
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
    let is_continued = sealer.is_some();
    let sealer = sealer.unwrap_or_else(|| Sealer::new(0, random::entropy_u64()));
    if let Some(last) = manifest.increments().last() {
        let path = format!("{folder}/{}", last.name);
        let mut file = disk.append(&path).await.map_err(disk_error(&path))?;
        disk.sync_directory(folder).await.map_err(disk_error(folder))?;
        if let Some(end) = end {
            settle(disk, &mut file, &path, &end).await?;
        }
        if !is_continued {
            write_start(&mut file, &sealer, &path).await?;
        }
        let earlier = manifest.data_files().filter(|file| file.name != last.name);
        let earlier_bytes = bytes_of(disk, folder, earlier).await?;
        return Ok(Recovered { file, sealer, earlier_bytes });
    }
    if manifest.base().is_none() {
        let base = manifest.next_base(prefix, BaseFormat::Rdb);
        let path = format!("{folder}/{}", base.name);
        write_new(disk, &path, empty_base(node)).await?;
        manifest.replace_base(base, 1).map_err(|_| RecoveryError::Missing { path })?;
    }
    let earlier_bytes = bytes_of(disk, folder, manifest.data_files()).await?;
    let increment = manifest.next_increment(prefix, None);
    let path = format!("{folder}/{}", increment.name);
    let mut file = disk.create(&path).await.map_err(disk_error(&path))?;
    write_start(&mut file, &sealer, &path).await?;
    manifest.push_increment(increment).map_err(|_| RecoveryError::Missing { path: path.clone() })?;
    switch_manifest(disk, folder, prefix, &manifest).await?;
    Ok(Recovered { file, sealer, earlier_bytes })
}

/// Makes what the life before left behind as safe as it looks. It may be in the kernel's cache alone: that life may have been
/// killed before a sync, or have stopped because one failed, after which the kernel takes what it never wrote for written.
/// So what no seal says was synced is written again and synced, and then a seal says so, if the last does not: or a torn write
/// behind it could not be told from damage to it. (That last seal is written again, too: nobody vouches for it.)
async fn settle(disk: &dyn Disk, file: &mut LogFile, path: &str, end: &End) -> Result<(), RecoveryError> {
    let mut offset = end.synced;
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

async fn write_new(disk: &dyn Disk, path: &str, bytes: Vec<u8>) -> Result<(), RecoveryError> {
    let mut file = disk.create(path).await.map_err(disk_error(path))?;
    append_all(&mut file, bytes, path).await
}

/// Switches to a new manifest in one step: written and synced beside, renamed over, and the directory synced.
pub(crate) async fn switch_manifest(
    disk: &dyn Disk,
    folder: &str,
    prefix: &str,
    manifest: &Manifest,
) -> Result<(), RecoveryError> {
    let path = format!("{folder}/{}", manifest_name(prefix));
    let temporary = format!("{folder}/{}", temporary_name(&manifest_name(prefix)));
    write_new(disk, &temporary, manifest.format()).await?;
    // The files that the manifest names must be there before the manifest is.
    disk.sync_directory(folder).await.map_err(disk_error(folder))?;
    disk.rename(&temporary, &path).await.map_err(disk_error(&path))?;
    disk.sync_directory(folder).await.map_err(disk_error(folder))
}

/// The base of a log that begins with nothing.
fn empty_base(node: &Node) -> Vec<u8> {
    let live = node.configuration.current();
    let mut bytes = Vec::new();
    let origin = simurgh_storage::rdb::write::Origin {
        version: &live.config.advertised_version,
        created_s: u64::try_from(time::wall_ms() / 1000).unwrap_or(0),
        used_memory_bytes: 0,
        is_aof_base: true,
    };
    simurgh_storage::rdb::write::Writer::begin(&mut bytes, &origin).end(&mut bytes);
    bytes
}

/// Applies files to the shards.
struct Loader<'a> {
    node: &'a Arc<Node>,
    shards: &'a mut Vec<Shard>,
    folder: &'a str,
    /// Bytes of the files that are loaded.
    done_bytes: u64,
    /// Where the log stood at the end of the file before.
    continues: Option<Sealer>,
    /// What the last file of records was found to be.
    end: Option<End>,
    /// The libraries of functions so far.
    libraries: Libraries,
}

impl Loader<'_> {
    async fn load(&mut self, file: &ManifestFile, is_last: bool) -> Result<(), RecoveryError> {
        let path = format!("{}/{}", self.folder, file.name);
        let disk = self.node.disk.clone();
        let length = match disk.length(&path).await {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(RecoveryError::Missing { path }),
            Err(error) => return Err(disk_error(&path)(error)),
        };
        tracing::info!(file = %path, bytes = length, "reading");
        let front = disk.read_range(&path, 0, 16).await.map_err(disk_error(&path))?;
        let mut offset = 0;
        if is_rdb(&front) {
            offset = self.load_rdb(&path).await?;
        }
        if offset < length || file.kind == FileKind::Increment {
            self.load_records(&path, offset, length, is_last).await?;
        }
        self.done_bytes += length;
        Ok(())
    }

    /// Loads an RDB file, or the part of a log file that is one; returns where it ends.
    async fn load_rdb(&mut self, path: &str) -> Result<u64, RecoveryError> {
        let mut reader = Reader::new();
        let live = self.node.configuration.current();
        let loading = Loading {
            packing: &live.storage.packing,
            hasher: &self.node.layout.hasher,
            string_bytes_max: simurgh_storage::LENGTH_MAX,
        };
        let failed = |error| RecoveryError::Base { path: path.to_owned(), error };
        let mut read = 0;
        while !reader.is_ended() {
            let piece = self.node.disk.read_range(path, read, PIECE).await.map_err(disk_error(path))?;
            read += piece.len() as u64;
            if piece.is_empty() {
                reader.finish();
            }
            reader.feed(&piece);
            while let Some(item) = reader.next_item(&loading).map_err(failed)? {
                match item {
                    Item::Key { database, key, value, expire_at_ms, .. } => {
                        insert(self.node, self.shards, database as usize, &key, value, expire_at_ms);
                    }
                    Item::Library { source } => {
                        let loaded = self.libraries.load(self.node, &source, Collision::Refuse, Patience::Endless);
                        loaded.map_err(|error| RecoveryError::Library {
                            path: path.to_owned(),
                            error: error.to_string(),
                        })?;
                    }
                    Item::Aux { .. } | Item::Resize { .. } | Item::End => {}
                }
            }
            self.progress(read).await;
        }
        Ok(reader.offset())
    }

    async fn load_records(&mut self, path: &str, offset: u64, length: u64, is_last: bool) -> Result<(), RecoveryError> {
        let config = self.node.configuration.current();
        let mut replay = Replay::new(Options {
            load_truncated: config.config.aof_load_truncated && is_last,
            offset,
            continues: self.continues,
            ..Options::default()
        });
        let failed = |error| RecoveryError::Log { path: path.to_owned(), error };
        let mut applier = Applier::new(self.node);
        let mut read = offset;
        while read < length {
            let piece = self.node.disk.read_range(path, read, PIECE).await.map_err(disk_error(path))?;
            if piece.is_empty() {
                break;
            }
            read += piece.len() as u64;
            replay.feed(&piece);
            while let Some(record) = replay.next_record().map_err(failed)? {
                applier.apply(self.shards, &mut self.libraries, &record, path)?;
            }
            self.progress(read).await;
        }
        let end = replay.finish().map_err(failed)?;
        while let Some(record) = replay.next_record().map_err(failed)? {
            applier.apply(self.shards, &mut self.libraries, &record, path)?;
        }
        self.continues = end.sealer;
        self.end = Some(end);
        self.cut(path, &end, length).await
    }

    async fn cut(&self, path: &str, end: &End, length: u64) -> Result<(), RecoveryError> {
        if let Some(cut) = &end.cut {
            tracing::warn!(
                file = %path, offset = cut.offset, dropped = cut.dropped, reason = %cut.reason,
                "the end of the log was cut: a write had not finished when the node stopped"
            );
        }
        if end.keep < length {
            self.node.disk.truncate(path, end.keep).await.map_err(disk_error(path))?;
        }
        Ok(())
    }

    /// Lets clients be answered that loading is under way.
    async fn progress(&self, read: u64) {
        self.node.loading.read_bytes.store(self.done_bytes + read, Ordering::Relaxed);
        core::yield_now().await;
    }
}

fn insert(node: &Node, shards: &mut [Shard], database: usize, key: &[u8], value: Loaded<'_>, expires_at: Option<i64>) {
    let key = node.layout.hasher.key(key);
    let shard = &mut shards[node.layout.shard_of(&key)];
    if database >= node.layout.databases || shard.database(database).get(&key).is_some() {
        return;
    }
    shard.database_mut(database).insert_loaded(&key, value, expires_at, 0);
}

/// Runs records as commands.
struct Applier {
    node: Arc<Node>,
    reply: Reply,
    effects: Effects,
    random: Random,
    ranges: Vec<Range>,
    buffer: Vec<u8>,
}

impl Applier {
    fn new(node: &Arc<Node>) -> Self {
        Self {
            node: node.clone(),
            reply: Reply::default(),
            effects: Effects::default(),
            random: Random::new(node.seed),
            ranges: Vec::new(),
            buffer: Vec::new(),
        }
    }

    fn apply(
        &mut self,
        shards: &mut Vec<Shard>,
        libraries: &mut Libraries,
        record: &Record<'_>,
        path: &str,
    ) -> Result<(), RecoveryError> {
        self.ranges.clear();
        self.buffer.clear();
        for word in record.arguments.from(0) {
            self.ranges.push(Range { start: self.buffer.len() as u32, length: word.len() as u32 });
            self.buffer.extend_from_slice(word);
        }
        let args = Args::new(&self.buffer, &self.ranges);
        let found = lookup(args.at(0), args.get(1));
        if let Lookup::Found(command) = found
            && let Some(applied) = crate::commands::function::replay(&self.node, command, &args, libraries)
        {
            return applied.map_err(|error| RecoveryError::Refused {
                path: path.to_owned(),
                offset: record.offset,
                reply: error.to_string(),
            });
        }
        let Lookup::Found(Command::Data(command)) = found else {
            let name = String::from_utf8_lossy(args.at(0)).into_owned();
            return Err(RecoveryError::UnknownCommand { path: path.to_owned(), name, offset: record.offset });
        };
        let live = self.node.configuration.current();
        let shards: &mut dyn Shards = shards;
        let mut discarded = Vec::new();
        let mut cx = Context {
            reply: &mut self.reply,
            effects: &mut self.effects,
            database: record.database as usize,
            now_ms: time::wall_ms(),
            settings: &live.storage,
            layout: &self.node.layout,
            random: &mut self.random,
            first_hash: None,
            no_touch: false,
            may_block: false,
            replaying: true,
            discarded: &mut discarded,
            shards,
        };
        let arity_fits = simurgh_protocol::command::check_arity(command.spec(), args.len()).is_ok();
        let applied = arity_fits
            && cx.database < self.node.layout.databases
            && simurgh_storage::execute(command, &mut cx, &args, None);
        if !applied {
            let reply = String::from_utf8_lossy(self.reply.bytes()).trim_end().to_owned();
            return Err(RecoveryError::Refused { path: path.to_owned(), offset: record.offset, reply });
        }
        self.reply.truncate(0);
        self.effects.clear();
        Ok(())
    }
}
