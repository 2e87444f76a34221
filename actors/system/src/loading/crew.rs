//! The workers as the reader sees them.
//!
//! Entries and records gather in a batch for each worker, which goes into its queue when it is large enough. What needs shards of
//! several workers is run by the reader itself, when the workers have done all before it and handed their shards over; it keeps
//! them for a while, as such records seldom come alone.

use super::Ground;
use super::worker::{Batch, Entry, Job, Record, Worker};
use crate::recovery::RecoveryError;
use crate::request::place;
use simurgh_kernel::core::{Core, abort_on_panic};
use simurgh_kernel::rehearsal::{Mistake, has};
use simurgh_kernel::sync::{mpsc, oneshot};
use simurgh_protocol::Args;
use simurgh_protocol::command::{Command, DataCommand};
use simurgh_protocol::resp::Range;
use simurgh_storage::Shard;
use simurgh_storage::rdb::read::RawKey;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes and items of a batch from which it is sent.
const BATCH_BYTES: usize = 256 << 10;
const BATCH_ITEMS: usize = 4096;
/// Batches that wait for a worker.
const QUEUE: usize = 4;
/// How many records in a row must need one worker only before the workers get their shards back.
const ALONE: u32 = 1000;

/// What stopped a worker.
pub(super) type Failure = Arc<Mutex<Option<RecoveryError>>>;

/// The workers.
pub(crate) struct Crew {
    ground: Arc<Ground>,
    cores: Vec<Core>,
    queues: Vec<mpsc::Sender<Job>>,
    /// The batch of each worker that is being filled.
    batches: Vec<Batch>,
    /// The shards of each worker, as bits.
    masks: Vec<u64>,
    /// While the reader runs records itself: with all shards, and how many that need one worker may come until they go back.
    alone: Option<(Worker, u32)>,
    failure: Failure,
}

impl Crew {
    /// Starts as many workers as there are processors, and shares the shards out.
    pub fn start(ground: &Arc<Ground>, workers: usize) -> Result<Self, RecoveryError> {
        let workers = workers.clamp(1, ground.layout.shards);
        let failure = Failure::default();
        let mut crew = Self {
            ground: ground.clone(),
            cores: Vec::new(),
            queues: Vec::new(),
            batches: Vec::new(),
            masks: vec![0; workers],
            alone: None,
            failure,
        };
        for index in 0..workers {
            let core = Core::start("load", index).map_err(RecoveryError::Thread)?;
            let (queue, jobs) = mpsc::channel(QUEUE);
            let worker = Worker::new(ground, workers);
            let failure = crew.failure.clone();
            core.spawn(abort_on_panic(async move { worker.run(jobs, failure).await }));
            crew.cores.push(core);
            crew.queues.push(queue);
            crew.batches.push(Batch::default());
        }
        for shard in 0..ground.layout.shards {
            crew.masks[shard % workers] |= 1 << shard;
        }
        Ok(crew)
    }

    /// Hands the shards to the workers.
    pub async fn deal_out(&mut self, shards: Vec<Shard>) -> Result<(), RecoveryError> {
        let workers = self.queues.len();
        let mut shares: Vec<Vec<Shard>> = (0..workers).map(|_| Vec::new()).collect();
        for (index, shard) in shards.into_iter().enumerate() {
            shares[index % workers].push(shard);
        }
        for (index, share) in shares.into_iter().enumerate() {
            self.send(index, Job::Return(share)).await?;
        }
        Ok(())
    }

    /// Takes the shards back, when everything sent before is done.
    pub async fn gather(&mut self) -> Result<Vec<Shard>, RecoveryError> {
        if let Some((worker, _)) = self.alone.take() {
            return Ok(worker.into_shards());
        }
        let mut answers = Vec::new();
        for index in 0..self.queues.len() {
            self.send_batch(index).await?;
            let (answer, share) = oneshot::channel();
            self.send(index, Job::Lend(answer)).await?;
            answers.push(share);
        }
        let mut shards = Vec::new();
        for answer in answers {
            shards.extend(answer.await.map_err(|_| self.take_failure())?);
        }
        shards.sort_by_key(Shard::index);
        Ok(shards)
    }

    /// The workers have their shards, whatever the records before needed.
    pub async fn resume(&mut self) -> Result<(), RecoveryError> {
        if self.alone.is_some() {
            let shards = self.gather().await?;
            self.deal_out(shards).await?;
        }
        Ok(())
    }

    /// So many keys will come into a database.
    pub async fn expect(&mut self, database: usize, keys: usize) -> Result<(), RecoveryError> {
        for index in 0..self.queues.len() {
            self.send_batch(index).await?;
            self.send(index, Job::Expect { database, keys }).await?;
        }
        Ok(())
    }

    /// A key of a snapshot.
    pub async fn insert(&mut self, raw: &RawKey<'_>, path: &Arc<str>) -> Result<(), RecoveryError> {
        if raw.database as usize >= self.ground.layout.databases {
            let databases = self.ground.layout.databases;
            return Err(RecoveryError::Databases { path: path.to_string(), offset: raw.offset, databases });
        }
        let key = self.ground.layout.hasher.key(&raw.key);
        let shard = self.ground.layout.shard_of(&key);
        let index = shard % self.queues.len();
        let batch = &mut self.batches[index];
        batch.path.get_or_insert_with(|| path.clone());
        let start = batch.bytes.len();
        batch.bytes.extend_from_slice(&raw.key);
        batch.bytes.extend_from_slice(raw.value);
        batch.entries.push(Entry {
            hash: key.hash,
            start,
            key: raw.key.len(),
            value: raw.value.len(),
            shard,
            database: raw.database,
            kind: raw.kind,
            expire_at_ms: raw.expire_at_ms,
            offset: raw.offset,
        });
        if batch.bytes.len() >= BATCH_BYTES || batch.entries.len() >= BATCH_ITEMS {
            self.send_batch(index).await?;
        }
        Ok(())
    }

    /// A command of the log.
    pub async fn run(
        &mut self,
        command: DataCommand,
        args: &Args<'_>,
        database: u32,
        offset: u64,
        path: &Arc<str>,
    ) -> Result<(), RecoveryError> {
        let (first_hash, shards) = place(Command::Data(command), args, &self.ground.layout);
        let index = shards.trailing_zeros() as usize % self.queues.len();
        let has_one_worker = shards != 0 && shards & !self.masks[index] == 0;
        let record = Record { command, database, offset, first_hash, arguments: 0..args.len() };
        match &mut self.alone {
            Some((_, 0)) if has_one_worker => self.resume().await?,
            Some((worker, left)) => {
                *left = if has_one_worker { *left - 1 } else { ALONE };
                return worker.run_record(&record, args, path);
            }
            None if has_one_worker => {}
            None => {
                let shards = self.gather().await?;
                let mut worker = Worker::new(&self.ground, 1);
                worker.take(shards);
                let done = worker.run_record(&record, args, path);
                self.alone = Some((worker, ALONE));
                return done;
            }
        }
        // Offsets in a batch are 32 bits wide, as in a record; so a large one begins a batch.
        if args.from(0).map(<[u8]>::len).sum::<usize>() >= BATCH_BYTES {
            self.send_batch(index).await?;
        }
        let batch = &mut self.batches[index];
        batch.path.get_or_insert_with(|| path.clone());
        let first = batch.ranges.len();
        let mut is_time = false;
        for word in args.from(0) {
            let Some(word) = mistaken(is_time, word) else {
                batch.ranges.pop();
                continue;
            };
            let word = word.as_ref();
            is_time = word.eq_ignore_ascii_case(b"PXAT");
            let start = batch.bytes.len() as u32;
            batch.ranges.push(Range { start, length: word.len() as u32 });
            batch.bytes.extend_from_slice(word);
        }
        batch.records.push(Record { arguments: first..batch.ranges.len(), ..record });
        if batch.bytes.len() >= BATCH_BYTES || batch.records.len() >= BATCH_ITEMS {
            self.send_batch(index).await?;
        }
        Ok(())
    }

    async fn send_batch(&mut self, index: usize) -> Result<(), RecoveryError> {
        if self.batches[index].is_empty() {
            return Ok(());
        }
        let batch = std::mem::take(&mut self.batches[index]);
        self.send(index, Job::Build(batch)).await
    }

    async fn send(&mut self, index: usize, job: Job) -> Result<(), RecoveryError> {
        if self.queues[index].send(job).await.is_ok() { Ok(()) } else { Err(self.take_failure()) }
    }

    /// Why a worker is gone.
    fn take_failure(&self) -> RecoveryError {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.expect("a worker that ends while it has a queue says why")
    }
}

impl Drop for Crew {
    /// The threads end when they have finished the batch that they are at.
    fn drop(&mut self) {
        self.cores.iter().for_each(Core::stop);
    }
}

/// A word of a record: as it is, unless a mistake about times to live is planted; nothing if it goes with the one before it.
fn mistaken(is_time: bool, word: &[u8]) -> Option<Cow<'_, [u8]>> {
    if is_time && has(Mistake::ForgottenTimeToLive) {
        return None;
    }
    match std::str::from_utf8(word).ok().and_then(|text| text.parse::<i64>().ok()) {
        Some(at_ms) if is_time && has(Mistake::RelativeTimeToLive) => {
            Some((at_ms + 1000).to_string().into_bytes().into())
        }
        _ => Some(word.into()),
    }
}
