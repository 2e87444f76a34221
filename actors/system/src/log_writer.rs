//! The log writer actor: the last stage of the pipeline, the only one that touches the log's files.
//!
//! It takes everything that has queued, ends it with a seal, hands it to the disk in one submission (with a sync where the mode
//! asks for one) and announces the position that is safe. While it waits for the disk the next group gathers, so one sync
//! serves all that wait.
//!
//! The seal of a group is made before the group is synced, so none but a later one can tell that it was. When nothing has come
//! for a moment, and at the end, an empty group's seal tells it: rot in what was the last group is then known from a torn write.
//!
//! When the disk refuses: a failed *write* left nothing in the file, so the same bytes are written again later and writes are
//! refused meanwhile. A failed *sync* is never retried: nobody knows what is on the disk, so the node stops and recovers from
//! what is really there (fsyncgate).
//!
//! A rewrite cuts the log: what was recorded before goes to the file of now, which is synced, and only when a manifest that names the
//! new file is on the disk is anything written to that. Without a log (`appendonly no`) there is no file, and nothing comes.

use crate::commands::latency::measured;
use crate::log::{LogCut, Mode, Taken};
use crate::node::Node;
use crate::persistence::{Installed, Place, Switched, current_manifest, install_manifest, write_new};
use simurgh_kernel::actor::{Actor, ActorProcessingErr, ActorRef};
use simurgh_kernel::core::AbortOnUnwind;
use simurgh_kernel::disk::{Failure, LogFile, Sync};
use simurgh_kernel::rehearsal::{Mistake, Point, has, reached};
use simurgh_kernel::time;
use simurgh_storage::aof::seal::Sealer;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often the writer looks where no reply waits for it.
const TICK: Duration = Duration::from_millis(50);
/// The same while there is no log.
const TICK_OFF: Duration = Duration::from_secs(1);
/// How long between two syncs of `everysec`.
const SYNC_NS: u64 = 1_000_000_000;
/// How long before a failed write is tried again.
const RETRY: Duration = Duration::from_millis(500);
/// Buffers above this are not kept for reuse.
const KEPT: usize = 4 << 20;

/// The log writer; each message is one turn: wait for records, write a group of them.
pub(crate) struct LogWriter;

/// Messages of the log writer. Records do not come as messages but in the log's buffer: one wake-up serves a whole group.
pub(crate) enum LogMessage {
    /// Write what has queued.
    Write,
}

/// The files and where they stand.
pub(crate) struct Writing {
    node: Arc<Node>,
    /// None until there is a log.
    file: Option<LogFile>,
    sealer: Sealer,
    spare: Vec<u8>,
    synced: u64,
    /// What the last seal in the file says was synced.
    vouched: u64,
    last_sync_ns: u64,
}

impl Actor for LogWriter {
    type Msg = LogMessage;
    type State = Writing;
    type Arguments = (Arc<Node>, Option<LogFile>, Sealer);

    async fn pre_start(
        &self,
        myself: ActorRef<LogMessage>,
        (node, file, sealer): Self::Arguments,
    ) -> Result<Writing, ActorProcessingErr> {
        myself.cast(LogMessage::Write)?;
        node.aof_size.store(file.as_ref().map_or(0, LogFile::length), Ordering::Relaxed);
        // Recovery has synced and vouched for all of it.
        let synced = sealer.position();
        let last_sync_ns = time::monotonic_ns();
        Ok(Writing { node, file, sealer, spare: Vec::new(), synced, vouched: synced, last_sync_ns })
    }

    async fn handle(
        &self,
        myself: ActorRef<LogMessage>,
        LogMessage::Write: LogMessage,
        writing: &mut Writing,
    ) -> Result<(), ActorProcessingErr> {
        // Half a group written and a writer that goes on would be a lie.
        let _guard = AbortOnUnwind::new();
        let is_last = writing.node.shutdown.connections_gone();
        let wrote = writing.write_group(is_last).await;
        if is_last && !wrote {
            writing.write_idle_seal(Sync::Data).await;
            writing.node.log_closed.notify_one();
            return Ok(());
        }
        let tick = if writing.node.log.mode() == Mode::Off { TICK_OFF } else { TICK };
        if !wrote && time::timeout(tick, writing.node.log.writer.notified()).await.is_err() && writing.is_idle() {
            writing.write_idle_seal(Sync::No).await;
        }
        Ok(myself.cast(LogMessage::Write)?)
    }
}

impl Writing {
    /// Writes and, if due, syncs what has queued; whether there was anything to do.
    async fn write_group(&mut self, is_last: bool) -> bool {
        let mode = self.node.log.mode();
        let Taken { group, position, cut } = self.node.log.take(std::mem::take(&mut self.spare));
        if is_last && has(Mistake::ForgottenLastGroup) {
            return false;
        }
        let sync = self.is_sync_due(mode, is_last || cut.is_some(), position);
        let did = !group.is_empty() || sync == Sync::Data;
        if self.file.is_none() {
            // The end of what was recorded while the log was off, or not yet on: no data set has a place for it.
            self.sealer.absorb(&group);
            (self.synced, self.vouched) = (position, position);
            self.keep(group);
        } else if did {
            self.write_records(group, position, mode, sync).await;
        } else {
            self.spare = group;
        }
        if did {
            self.node.log.announce(position);
        }
        match cut {
            Some(cut) => {
                self.switch(cut).await;
                self.node.log.note_synced(self.synced);
                true
            }
            None => did,
        }
    }

    /// Writes a group, and syncs it if that is due.
    async fn write_records(&mut self, mut group: Vec<u8>, position: u64, mode: Mode, sync: Sync) {
        if !group.is_empty() {
            self.sealer.seal(&mut group, self.synced);
            self.vouched = self.synced;
            debug_assert_eq!(self.sealer.position(), position);
        }
        let (began_ns, has_records) = (time::monotonic_ns(), !group.is_empty());
        self.append(group, sync).await;
        self.tell_latency(time::monotonic_ns() - began_ns, has_records, mode, sync);
        if sync == Sync::Data || has(Mistake::FalseVouching) {
            self.synced = position;
            self.last_sync_ns = time::monotonic_ns();
            self.node.log.note_synced(position);
        }
    }

    /// The log goes on in a new file; everything before it is synced. If that cannot be, it goes on in the one it has.
    async fn switch(&mut self, cut: LogCut) {
        let switched = self.begin_file(cut.starts).await;
        if let Err(error) = &switched {
            tracing::warn!(%error, "the log could not go on in a new file");
            if self.file.is_none() {
                // Nothing can be promised without a file.
                self.node.log.set_mode(Mode::Off);
            }
        }
        // Who asked may have given up.
        let _ = cut.answer.send(switched);
    }

    async fn begin_file(&mut self, starts: bool) -> Result<Switched, String> {
        let node = self.node.clone();
        let place = Place::of(&node);
        let mut manifest = current_manifest(&node, &place).await?;
        let increment = manifest.next_increment(&place.prefix, None);
        let path = place.path(&increment.name);
        let mut start = Vec::new();
        self.sealer.write_start(&mut start);
        let file = write_new(node.disk.as_ref(), &path, start).await.map_err(|error| error.to_string())?;
        if !starts {
            manifest.push_increment(increment.clone()).map_err(|fault| fault.to_string())?;
            match install_manifest(node.disk.as_ref(), &place, &manifest).await {
                Installed::Yes => node.persistence.state().manifest = Some(manifest),
                Installed::No(error) => {
                    let _ = node.disk.unlink(&path).await;
                    return Err(error.to_string());
                }
                Installed::Unknown(error) => {
                    node.fail(&format!("the log's manifest could not be synced: {error}")).await
                }
            }
        }
        let before = if starts { 0 } else { self.file.as_ref().map_or(0, LogFile::length) };
        node.aof_earlier_size.fetch_add(before, Ordering::Relaxed);
        node.aof_size.store(file.length(), Ordering::Relaxed);
        self.file = Some(file);
        // The new file says where it begins, and all of that is on the disk.
        self.vouched = self.synced;
        Ok(Switched { increment, is_named: !starts })
    }

    /// LATENCY's events, by Redis's names. A write and its sync are one submission here, so either's time is that of both; what
    /// queued meanwhile was delayed by as much.
    fn tell_latency(&self, nanos: u64, has_records: bool, mode: Mode, sync: Sync) {
        let node = &self.node;
        if has_records {
            measured(node, "aof-write", nanos);
        }
        match (sync, mode) {
            (Sync::Data, Mode::Always) => measured(node, "aof-fsync-always", nanos),
            (Sync::Data, Mode::Off | Mode::No | Mode::EverySecond | Mode::Write) => {
                measured(node, "aof-write-pending-fsync", nanos);
            }
            (Sync::No, _) => measured(node, "aof-write-alone", nanos),
        }
    }

    /// Whether nothing waits to be written.
    fn is_idle(&self) -> bool {
        self.node.log.backlog() == 0
    }

    /// Tells in the file that everything in it was synced, unless the last seal does already or it was not. On a full disk the
    /// next idle moment tries again: nobody waits for it. It need not be synced: until the kernel has written it to the
    /// disk, the group before it has just been.
    async fn write_idle_seal(&mut self, sync: Sync) {
        if self.vouched == self.synced || self.synced != self.sealer.position() {
            return;
        }
        let Some(file) = &mut self.file else { return };
        let mut seal = std::mem::take(&mut self.spare);
        self.sealer.write_seal(&mut seal, self.synced);
        let done = file.append(seal, sync).await;
        match done.result {
            Ok(()) => self.vouched = self.synced,
            Err(Failure::Write(error)) => tracing::debug!(%error, "the log could not be vouched for"),
            Err(failure @ (Failure::Sync(_) | Failure::Poisoned(_))) => {
                self.node.fail(&format!("the log could not be synced: {failure}")).await;
            }
        }
        self.keep(done.buffer);
    }

    /// The buffer serves again, and the file has its new length.
    fn keep(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.spare = if buffer.capacity() > KEPT { Vec::new() } else { buffer };
        self.node.aof_size.store(self.file.as_ref().map_or(0, LogFile::length), Ordering::Relaxed);
    }

    fn is_sync_due(&self, mode: Mode, is_last: bool, position: u64) -> Sync {
        let is_due = match mode {
            // Switched off: what was still logged is made safe once.
            Mode::Always | Mode::Off => true,
            Mode::EverySecond | Mode::Write => time::monotonic_ns() - self.last_sync_ns >= SYNC_NS,
            Mode::No => false,
        };
        let is_wanted = self.node.log.wanted() > self.synced;
        if (is_due || is_last || is_wanted) && position > self.synced { Sync::Data } else { Sync::No }
    }

    /// Appends a group, however long the disk refuses to take it.
    async fn append(&mut self, mut group: Vec<u8>, sync: Sync) {
        loop {
            let Some(file) = &mut self.file else { return };
            let done = file.append(group, sync).await;
            group = done.buffer;
            match done.result {
                Ok(()) => break,
                Err(Failure::Write(_)) if has(Mistake::WriteErrorIgnored) => break,
                Err(Failure::Sync(_) | Failure::Poisoned(_)) if has(Mistake::SyncErrorIgnored) => break,
                Err(Failure::Write(error)) => {
                    tracing::warn!(%error, "the log cannot be written; writes are refused until it can");
                    self.node.log.set_refusal(Some(error.to_string()));
                    time::sleep(RETRY).await;
                }
                Err(failure @ (Failure::Sync(_) | Failure::Poisoned(_))) => {
                    if !self.is_idle() {
                        reached(Point::SyncErrorInGroupCommit);
                    }
                    self.node.fail(&format!("the log could not be synced: {failure}")).await;
                }
            }
        }
        if self.node.log.refuses() {
            reached(Point::Refusal);
            tracing::info!("the log can be written again");
            self.node.log.set_refusal(None);
        }
        self.keep(group);
    }
}
