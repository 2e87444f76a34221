//! A worker: builds entries and runs records for the shards that are its own.

use super::Ground;
use super::crew::Failure;
use crate::recovery::RecoveryError;
use simurgh_kernel::sync::{mpsc, oneshot};
use simurgh_kernel::{core, time};
use simurgh_protocol::command::DataCommand;
use simurgh_protocol::resp::Range;
use simurgh_protocol::{Args, Reply};
use simurgh_storage::rdb::read::build_value;
use simurgh_storage::rdb::value::Loading;
use simurgh_storage::{Context, Effects, Key, Random, Shard, Shards};
use std::sync::{Arc, PoisonError};

/// How many entries ahead the memory is fetched that an insertion will touch.
const AHEAD: usize = 12;

/// What a worker is told to do.
pub(super) enum Job {
    /// Build this.
    Build(Batch),
    /// So many keys will come into a database, over all shards.
    Expect { database: usize, keys: usize },
    /// Hand the shards over.
    Lend(oneshot::Sender<Vec<Shard>>),
    /// Here they are (again).
    Return(Vec<Shard>),
}

/// Entries of a snapshot or records of a log, in order.
#[derive(Default)]
pub(super) struct Batch {
    /// The file that they come from.
    pub path: Option<Arc<str>>,
    pub bytes: Vec<u8>,
    pub entries: Vec<Entry>,
    pub ranges: Vec<Range>,
    pub records: Vec<Record>,
}

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.records.is_empty()
    }
}

/// An entry: its key and its value lie in the batch one behind the other.
pub(super) struct Entry {
    pub hash: u64,
    pub start: usize,
    pub key: usize,
    pub value: usize,
    pub shard: usize,
    pub database: u32,
    pub kind: u8,
    pub expire_at_ms: Option<i64>,
    pub offset: u64,
}

/// A record: its arguments are ranges of the batch.
pub(super) struct Record {
    pub command: DataCommand,
    pub database: u32,
    pub offset: u64,
    pub first_hash: Option<u64>,
    pub arguments: std::ops::Range<usize>,
}

/// Shards of which a worker has each `stride`th.
struct Share {
    shards: Vec<Shard>,
    stride: usize,
}

impl Shards for Share {
    fn shard(&mut self, index: usize) -> &mut Shard {
        &mut self.shards[index / self.stride]
    }
}

/// A worker.
pub(super) struct Worker {
    ground: Arc<Ground>,
    share: Share,
    reply: Reply,
    effects: Effects,
    random: Random,
}

impl Worker {
    /// One of `workers`.
    pub fn new(ground: &Arc<Ground>, workers: usize) -> Self {
        Self {
            ground: ground.clone(),
            share: Share { shards: Vec::new(), stride: workers },
            reply: Reply::default(),
            effects: Effects::default(),
            random: Random::new(ground.seed),
        }
    }

    /// Takes the shards that are its own.
    pub fn take(&mut self, shards: Vec<Shard>) {
        self.share.shards = shards;
    }

    /// Gives them up.
    pub fn into_shards(self) -> Vec<Shard> {
        self.share.shards
    }

    /// Works until the queue ends or something cannot be built.
    pub async fn run(mut self, mut jobs: mpsc::Receiver<Job>, failure: Failure) {
        while let Some(job) = jobs.recv().await {
            let done = match job {
                Job::Build(batch) => self.build(&batch),
                Job::Expect { database, keys } => {
                    self.expect(database, keys);
                    Ok(())
                }
                Job::Lend(answer) => {
                    // Nobody waits for them if loading has ended meanwhile.
                    let _ = answer.send(std::mem::take(&mut self.share.shards));
                    Ok(())
                }
                Job::Return(shards) => {
                    self.take(shards);
                    Ok(())
                }
            };
            if let Err(error) = done {
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                return;
            }
            core::yield_now().await;
        }
    }

    fn expect(&mut self, database: usize, keys: usize) {
        let all = self.ground.layout.shards.max(1);
        for shard in &mut self.share.shards {
            shard.database_mut(database).reserve(keys / all);
        }
    }

    fn build(&mut self, batch: &Batch) -> Result<(), RecoveryError> {
        let Some(path) = &batch.path else { return Ok(()) };
        for (index, entry) in batch.entries.iter().enumerate() {
            if let Some(ahead) = batch.entries.get(index + AHEAD) {
                self.share.shard(ahead.shard).database(ahead.database as usize).prefetch_bucket(ahead.hash);
            }
            self.insert(entry, &batch.bytes, path)?;
        }
        for record in &batch.records {
            let args = Args::new(&batch.bytes, &batch.ranges[record.arguments.clone()]);
            self.run_record(record, &args, path)?;
        }
        Ok(())
    }

    fn insert(&mut self, entry: &Entry, bytes: &[u8], path: &str) -> Result<(), RecoveryError> {
        let (key, rest) = bytes[entry.start..].split_at(entry.key);
        let loading = Loading {
            packing: &self.ground.live.storage.packing,
            hasher: &self.ground.layout.hasher,
            string_bytes_max: simurgh_storage::LENGTH_MAX,
        };
        let value = build_value(entry.kind, &rest[..entry.value], entry.offset, &loading)
            .map_err(|error| RecoveryError::Base { path: path.to_owned(), error })?;
        let key = Key { bytes: key, hash: entry.hash };
        let database = self.share.shard(entry.shard).database_mut(entry.database as usize);
        if database.get(&key).is_some() {
            return Err(RecoveryError::Repeated { path: path.to_owned(), offset: entry.offset });
        }
        database.insert_loaded(&key, value, entry.expire_at_ms, 0);
        Ok(())
    }

    /// Runs a record as a command.
    pub fn run_record(&mut self, record: &Record, args: &Args<'_>, path: &str) -> Result<(), RecoveryError> {
        let ground = self.ground.clone();
        let mut discarded = Vec::new();
        let mut cx = Context {
            reply: &mut self.reply,
            effects: &mut self.effects,
            database: record.database as usize,
            now_ms: time::wall_ms(),
            settings: &ground.live.storage,
            layout: &ground.layout,
            random: &mut self.random,
            first_hash: record.first_hash,
            no_touch: false,
            may_block: false,
            in_script: false,
            replaying: true,
            discarded: &mut discarded,
            shards: &mut self.share,
        };
        let arity_fits = simurgh_protocol::command::check_arity(record.command.spec(), args.len()).is_ok();
        let applied = arity_fits
            && cx.database < ground.layout.databases
            && simurgh_storage::execute(record.command, &mut cx, args, None);
        if !applied {
            let reply = String::from_utf8_lossy(self.reply.bytes()).trim_end().to_owned();
            return Err(RecoveryError::Refused { path: path.to_owned(), offset: record.offset, reply });
        }
        self.reply.truncate(0);
        self.effects.clear();
        Ok(())
    }
}
