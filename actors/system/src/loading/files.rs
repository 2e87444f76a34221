//! Reads the files of a log, or a single snapshot, and hands what is in them to the workers.

use super::{Crew, Ground, Loading};
use crate::node::{Node, Shutdown};
use crate::recovery::{RecoveryError, disk_error};
use crate::scripting::{Collision, Libraries, Patience};
use simurgh_kernel::disk::Disk;
use simurgh_kernel::rehearsal::{Mistake, Point, has, reached};
use simurgh_kernel::{core, time};
use simurgh_protocol::command::{Command, Lookup, lookup};
use simurgh_storage::Shard;
use simurgh_storage::aof::manifest::{FileKind, ManifestFile};
use simurgh_storage::aof::replay::{Before, End, Options, Record, Replay};
use simurgh_storage::aof::seal::Sealer;
use simurgh_storage::aof::whole::Whole;
use simurgh_storage::rdb::read::{Item, RawItem, ReadError, Reader, is_rdb};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes that are read at once.
pub(crate) const PIECE: usize = 1 << 20;
/// How often a line tells how far loading has come.
const TELL_NS: u64 = 5_000_000_000;
/// The fewest bytes that a key takes in a file: how many are said to follow is believed as far as there is room for them.
const KEY_BYTES_MIN: u64 = 4;

/// Libraries of functions, as they come.
pub(crate) enum Functions {
    /// They are loaded, for a node.
    Run(Arc<Node>, Libraries),
    /// Their texts are kept.
    Kept(Vec<Vec<u8>>),
}

impl Functions {
    /// Of a node.
    pub fn of(node: &Arc<Node>) -> Self {
        Self::Run(node.clone(), Libraries::default())
    }

    /// Puts what was loaded in place of what there was; who has looked at that before looks again.
    pub fn install(self) {
        match self {
            Self::Run(node, mut libraries) => {
                let mut installed = node.scripting.libraries();
                libraries.generation += installed.generation + 1;
                *installed = libraries;
            }
            Self::Kept(_) => {}
        }
    }

    fn take(&mut self, source: &[u8], path: &str) -> Result<(), RecoveryError> {
        match self {
            Self::Run(node, libraries) => {
                let loaded = libraries.load(node, source, Collision::Refuse, Patience::Endless);
                loaded.map_err(|error| RecoveryError::Library { path: path.to_owned(), error: error.to_string() })?;
            }
            Self::Kept(sources) => sources.push(source.to_vec()),
        }
        Ok(())
    }
}

/// What came of loading.
pub(crate) struct Loaded {
    pub shards: Vec<Shard>,
    /// Where the log stands.
    pub sealer: Option<Sealer>,
    /// What its last file was found to be.
    pub end: Option<End>,
    pub functions: Functions,
}

/// Applies files to shards.
pub(crate) struct Loader<'a> {
    crew: Crew,
    disk: Arc<dyn Disk>,
    ground: Arc<Ground>,
    loading: &'a Loading,
    shutdown: &'a Shutdown,
    folder: &'a str,
    /// Bytes of the files that are loaded.
    done_bytes: u64,
    told_ns: u64,
    /// Keys of a snapshot whose time had come by then are left out; in a log's base they stay, for the log goes on from all of it.
    pub expired_before_ms: Option<i64>,
    /// What comes before the next file.
    before: Before,
    /// What was read of the file that is loaded.
    read: Whole,
    /// What the last file of records was found to be.
    end: Option<End>,
    /// What becomes of libraries of functions.
    pub functions: Functions,
    /// Whether a torn end is cut off on the disk too.
    pub mends: bool,
}

impl<'a> Loader<'a> {
    /// Begins to load files of `folder` into `shards`.
    pub async fn start(
        ground: &Arc<Ground>,
        disk: &Arc<dyn Disk>,
        (loading, shutdown): (&'a Loading, &'a Shutdown),
        folder: &'a str,
        shards: Vec<Shard>,
    ) -> Result<Self, RecoveryError> {
        let config = &ground.live.config;
        let workers = if config.threads == 0 { core::available_cores() } else { config.threads as usize };
        let mut crew = Crew::start(ground, workers)?;
        crew.deal_out(shards).await?;
        Ok(Self {
            crew,
            disk: disk.clone(),
            ground: ground.clone(),
            loading,
            shutdown,
            folder,
            done_bytes: 0,
            told_ns: time::monotonic_ns(),
            expired_before_ms: None,
            before: Before::Unknown,
            read: Whole::default(),
            end: None,
            functions: Functions::Kept(Vec::new()),
            mends: true,
        })
    }

    /// What was loaded.
    pub async fn finish(mut self) -> Result<Loaded, RecoveryError> {
        let shards = self.crew.gather().await?;
        Ok(Loaded { shards, sealer: self.before.sealer(), end: self.end, functions: self.functions })
    }

    /// Loads a file of the log.
    pub async fn load(&mut self, file: &ManifestFile, is_last: bool) -> Result<(), RecoveryError> {
        let path = format!("{}/{}", self.folder, file.name);
        let disk = self.disk.clone();
        let length = match disk.length(&path).await {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(RecoveryError::Missing { path }),
            Err(error) => return Err(disk_error(&path)(error)),
        };
        tracing::info!(file = %path, bytes = length, "reading");
        if file.kind == FileKind::Base && length == 0 && file.name.ends_with(".rdb") {
            return Err(RecoveryError::Base { path, error: ReadError::Truncated(0) });
        }
        self.read = Whole::default();
        let front = disk.read_range(&path, 0, 16).await.map_err(disk_error(&path))?;
        let mut offset = 0;
        if is_rdb(&front) {
            offset = self.load_rdb(&path, length).await?;
        }
        if offset < length || file.kind == FileKind::Increment {
            self.load_records(&path, file.kind, offset..length, is_last).await?;
        }
        self.done_bytes += length;
        match file.whole {
            Some(written) if written != self.read => Err(RecoveryError::NotWhole { path, found: self.read, written }),
            Some(_) | None => Ok(()),
        }
    }

    /// Loads an RDB file of `length` bytes, or the part of a log file that is one; returns where it ends.
    pub async fn load_rdb(&mut self, path: &str, length: u64) -> Result<u64, RecoveryError> {
        self.crew.resume().await?;
        let mut reader = Reader::new();
        let shared: Arc<str> = path.into();
        let failed = |error| RecoveryError::Base { path: path.to_owned(), error };
        let (mut read, mut keys, mut expired) = (0, 0, 0);
        while !reader.is_ended() {
            let piece = self.disk.read_range(path, read, PIECE).await.map_err(disk_error(path))?;
            self.read.absorb(&piece);
            read += piece.len() as u64;
            let is_all = piece.is_empty();
            if is_all {
                reader.finish();
            }
            reader.feed(&piece);
            while let Some(item) = reader.next_raw(simurgh_storage::LENGTH_MAX).map_err(failed)? {
                match item {
                    RawItem::Key(raw) if self.is_expired(raw.expire_at_ms) => expired += 1,
                    RawItem::Key(raw) => {
                        keys += 1;
                        self.crew.insert(&raw, &shared).await?;
                    }
                    RawItem::Other(item) => self.take(&item, path, length).await?,
                }
            }
            if is_all && !reader.is_ended() {
                return Err(failed(ReadError::Truncated(reader.offset())));
            }
            self.progress(read).await?;
        }
        self.loading.keys_loaded.fetch_add(keys, Ordering::Relaxed);
        self.loading.keys_expired.fetch_add(expired, Ordering::Relaxed);
        Ok(reader.offset())
    }

    fn is_expired(&self, expire_at_ms: Option<i64>) -> bool {
        matches!((expire_at_ms, self.expired_before_ms), (Some(at), Some(now)) if at <= now)
    }

    /// What stands beside the keys.
    async fn take(&mut self, item: &Item<'_>, path: &str, length: u64) -> Result<(), RecoveryError> {
        match item {
            Item::Resize { database, keys, .. } => {
                let (database, keys) = (*database as usize, (*keys).min(length / KEY_BYTES_MIN));
                if database < self.ground.layout.databases {
                    self.crew.expect(database, keys as usize).await?;
                }
            }
            Item::Library { source } => self.functions.take(source, path)?,
            Item::ModuleAux { module } => {
                tracing::warn!(file = path, %module, "what a module keeps beside the keys was skipped");
            }
            Item::Aux { .. } | Item::Key { .. } | Item::End => {}
        }
        Ok(())
    }

    async fn load_records(
        &mut self,
        path: &str,
        kind: FileKind,
        bytes: std::ops::Range<u64>,
        is_last: bool,
    ) -> Result<(), RecoveryError> {
        let (offset, length) = (bytes.start, bytes.end);
        let mut replay = Replay::new(Options {
            load_truncated: self.ground.live.config.aof_load_truncated && is_last,
            offset,
            before: self.before,
            ..Options::default()
        });
        let shared: Arc<str> = path.into();
        let failed = |error| RecoveryError::Log { path: path.to_owned(), error };
        let mut read = offset;
        while read < length {
            let piece = self.disk.read_range(path, read, PIECE).await.map_err(disk_error(path))?;
            if piece.is_empty() {
                break;
            }
            self.read.absorb(&piece);
            read += piece.len() as u64;
            replay.feed(&piece);
            while let Some(record) = replay.next_record().map_err(failed)? {
                self.run(&record, &shared).await?;
            }
            self.progress(read).await?;
        }
        let end = replay.finish().map_err(failed)?;
        while let Some(record) = replay.next_record().map_err(failed)? {
            self.run(&record, &shared).await?;
        }
        if kind == FileKind::Increment {
            self.before = self.before.then(&end);
        }
        self.end = Some(end);
        self.cut(path, &end, length).await
    }

    async fn run(&mut self, record: &Record<'_>, path: &Arc<str>) -> Result<(), RecoveryError> {
        let args = &record.arguments;
        let found = lookup(args.at(0), args.get(1));
        if let (Lookup::Found(command), Functions::Run(node, libraries)) = (found, &mut self.functions)
            && let Some(applied) = crate::commands::function::replay(node, command, args, libraries)
        {
            return applied.map_err(|error| RecoveryError::Refused {
                path: path.to_string(),
                offset: record.offset,
                reply: error.to_string(),
            });
        }
        let Lookup::Found(Command::Data(command)) = found else {
            let name = String::from_utf8_lossy(args.at(0)).into_owned();
            return Err(RecoveryError::UnknownCommand { path: path.to_string(), name, offset: record.offset });
        };
        self.crew.run(command, args, record.database, record.offset, path).await
    }

    async fn cut(&self, path: &str, end: &End, length: u64) -> Result<(), RecoveryError> {
        if let Some(cut) = &end.cut {
            reached(Point::TornTail);
            tracing::warn!(
                file = %path, offset = cut.offset, dropped = cut.dropped, reason = %cut.reason,
                "the end of the log was cut: a write had not finished when the node stopped"
            );
        }
        if end.keep < length && self.mends && !has(Mistake::TailKept) {
            let too_far = u64::from(has(Mistake::TailCutTooFar));
            self.disk.truncate(path, end.keep - too_far.min(end.keep)).await.map_err(disk_error(path))?;
        }
        Ok(())
    }

    /// Tells how far it has come, and lets clients be answered; ends when the node is to stop.
    async fn progress(&mut self, read: u64) -> Result<(), RecoveryError> {
        let done = self.done_bytes + read;
        self.loading.read_bytes.store(done, Ordering::Relaxed);
        core::yield_now().await;
        if self.shutdown.is_asked() {
            return Err(RecoveryError::Stopped);
        }
        let now_ns = time::monotonic_ns();
        if now_ns - self.told_ns >= TELL_NS {
            self.told_ns = now_ns;
            let total = self.loading.total_bytes.load(Ordering::Relaxed).max(1);
            tracing::info!("loading: {done} of {total} bytes, {:.0}%", done as f64 * 100.0 / total as f64);
        }
        Ok(())
    }
}
