//! The file that a snapshot goes to: written beside, in pieces, each at most as fast as the disk takes it.

use super::{Begun, Job, SnapshotError};
use crate::node::Node;
use simurgh_kernel::disk::{LogFile, Sync};
use simurgh_kernel::time;
use simurgh_storage::aof::whole::Whole;
use simurgh_storage::rdb::write::Origin;
use simurgh_storage::snapshot::{Front, Piece, SnapshotFile};

/// A piece is written when it has so many bytes.
pub(super) const PIECE: usize = 64 << 10;
/// Bytes after which the file is synced, so that the end of it all has little left to wait for.
const SYNCED_BYTES: u64 = 4 << 20;

/// A snapshot's file.
pub(super) struct Output {
    path: String,
    file: LogFile,
    frame: SnapshotFile,
    pub piece: Piece,
    whole: Whole,
    unsynced: u64,
    syncs_on_the_way: bool,
}

impl Output {
    /// Begins the file at `path`.
    pub async fn create(node: &Node, path: String, begun: &Begun) -> Result<Self, SnapshotError> {
        let live = node.configuration.current();
        let file = node.disk.create(&path).await.map_err(|error| failed(&path, error))?;
        let job = begun.active.job;
        let origin = Origin {
            version: &live.config.advertised_version,
            created_s: u64::try_from(time::wall_ms() / 1000).unwrap_or(0),
            used_memory_bytes: node.memory.used() as u64,
            is_aof_base: job == Job::Rewrite,
        };
        let mut piece = Piece::default();
        let format = begun.active.plan.format;
        let front =
            Front { origin: &origin, log_position: begun.position, libraries: &begun.libraries, hints: &begun.hints };
        let frame = SnapshotFile::begin(&mut piece.bytes, format, &front);
        let syncs_on_the_way = match job {
            Job::Save => live.config.rdb_incremental_sync,
            Job::Rewrite => live.config.aof_rewrite_incremental_sync,
        };
        let mut output =
            Self { path, file, frame, piece: Piece::default(), whole: Whole::default(), unsynced: 0, syncs_on_the_way };
        output.append(piece.bytes, Sync::No).await?;
        Ok(output)
    }

    /// Writes the keys in the piece.
    pub async fn write(&mut self) -> Result<(), SnapshotError> {
        if self.piece.bytes.is_empty() {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.piece.bytes);
        self.frame.absorb(&bytes);
        let is_due = self.syncs_on_the_way && self.unsynced + bytes.len() as u64 >= SYNCED_BYTES;
        let buffer = self.append(bytes, if is_due { Sync::Data } else { Sync::No }).await?;
        self.piece.bytes = buffer;
        Ok(())
    }

    /// Ends the file, with everything on the disk; what all of it is.
    pub async fn end(mut self, sums: bool) -> Result<Whole, SnapshotError> {
        self.write().await?;
        let mut bytes = Vec::new();
        let Self { path, mut file, frame, mut whole, .. } = self;
        frame.end(&mut bytes, sums);
        whole.absorb(&bytes);
        let done = file.append(bytes, Sync::Data).await;
        done.result.map_err(|failure| failed(&path, failure))?;
        Ok(whole)
    }

    async fn append(&mut self, bytes: Vec<u8>, sync: Sync) -> Result<Vec<u8>, SnapshotError> {
        self.unsynced = if sync == Sync::Data { 0 } else { self.unsynced + bytes.len() as u64 };
        self.whole.absorb(&bytes);
        let done = self.file.append(bytes, sync).await;
        done.result.map_err(|failure| failed(&self.path, failure))?;
        Ok(done.buffer)
    }
}

/// The disk has refused.
pub(super) fn failed(path: &str, error: impl ToString) -> SnapshotError {
    SnapshotError::Disk { path: path.to_owned(), error: error.to_string() }
}
