//! A toy server: a map, a log and a few commands, in the simplest way that keeps the promises. It exists to test the
//! simulator: without mistakes every timeline must pass, and each planted [`Mistake`] must be found.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use simurgh_kernel::core;
use simurgh_kernel::disk::{Disk, Failure, LogFile, Sync};
use simurgh_kernel::net::{Incoming, Listener, WriteExt};
use simurgh_kernel::sync::watch;
use simurgh_kernel::time;
use simurgh_protocol::resp::decode::{Value, decode};

use crate::disk::SimDisk;
use crate::options::{Mistake, Mode};

mod commands;
mod hashes;
mod lists;
mod record;

use commands::Session;
use lists::Waiting;

/// The log's name.
const LOG: &str = "log";

/// How long the log writer waits for something to write before it looks whether a sync is due.
const WRITER_PAUSE: Duration = Duration::from_millis(5);

/// One life of the toy.
pub struct Toy {
    disk: SimDisk,
    mode: Mode,
    mistake: Option<Mistake>,
    state: Mutex<State>,
    /// The log's positions, which replies wait for.
    positions: watch::Sender<Positions>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Positions {
    written: u64,
    synced: u64,
}

/// The data, and what the log writer has not taken yet.
#[derive(Debug, Default)]
pub struct State {
    values: BTreeMap<Vec<u8>, Vec<u8>>,
    pending: Vec<u8>,
    /// How many bytes were ever handed to the log.
    position: u64,
    waiting: Waiting,
}

impl State {
    /// Sets values and logs that as one record.
    pub fn set(&mut self, changes: Vec<(Vec<u8>, Vec<u8>)>) {
        let before = self.pending.len();
        record::encode(&mut self.pending, &changes);
        self.position += (self.pending.len() - before) as u64;
        self.values.extend(changes);
    }

    /// Sets values without the log, which is a mistake.
    pub fn set_without_log(&mut self, changes: Vec<(Vec<u8>, Vec<u8>)>) {
        self.values.extend(changes);
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Option<&Vec<u8>> {
        self.values.get(key)
    }
}

/// Runs a life of the toy until the log fails.
pub async fn run(disk: SimDisk, address: SocketAddr, mode: Mode, mistake: Option<Mistake>) -> io::Result<()> {
    let _lock = disk.lock_directory("").await?;
    let (values, log) = recover(&disk, mistake).await?;
    let state = Mutex::new(State { values, ..State::default() });
    let toy = Arc::new(Toy { disk: disk.clone(), mode, mistake, state, positions: watch::Sender::default() });
    let listener = Listener::bind_tcp(address, 16)?;
    let serving = Arc::clone(&toy);
    core::spawn(async move {
        while let Ok((incoming, _)) = listener.accept().await {
            core::spawn(serve(Arc::clone(&serving), incoming));
        }
    });
    toy.write_log(log).await
}

/// Loads the log and writes it anew: what the old one holds may have been written by a life whose sync failed, so it is
/// not trusted to be on the disk only because it can be read.
async fn recover(disk: &SimDisk, mistake: Option<Mistake>) -> io::Result<(BTreeMap<Vec<u8>, Vec<u8>>, LogFile)> {
    let old = match disk.read(LOG).await {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let mut values = record::replay(&old, mistake == Some(Mistake::TrustingReplay));
    if mistake == Some(Mistake::ImmortalFields) {
        let hashes = values.iter_mut().filter(|(key, _)| key.ends_with(b":hash"));
        hashes.for_each(|(_, hash)| *hash = hashes::immortal(hash));
    }
    let mut fresh = Vec::new();
    for (key, value) in &values {
        record::encode(&mut fresh, &[(key.clone(), value.clone())]);
    }
    let mut log = disk.create("log.new").await?;
    log.append(fresh, Sync::Data).await.result.map_err(io::Error::other)?;
    disk.rename("log.new", LOG).await?;
    if mistake != Some(Mistake::ForgottenDirectory) {
        disk.sync_directory("").await?;
    }
    Ok((values, log))
}

impl Toy {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write_log(&self, mut log: LogFile) -> io::Result<()> {
        let mut last_sync_ns = time::monotonic_ns();
        loop {
            let (bytes, position) = {
                let mut state = self.state();
                (std::mem::take(&mut state.pending), state.position)
            };
            let now = time::monotonic_ns();
            let due = self.mode == Mode::Always || now - last_sync_ns > 1_000_000_000;
            if bytes.is_empty() && (self.mode == Mode::Always || !due) {
                time::sleep(WRITER_PAUSE).await;
                continue;
            }
            let sync = if due { Sync::Data } else { Sync::No };
            self.append(&mut log, bytes, sync).await?;
            last_sync_ns = if due { now } else { last_sync_ns };
            self.positions.send_modify(|positions| {
                positions.written = position;
                positions.synced = if due { position } else { positions.synced };
            });
        }
    }

    async fn append(&self, log: &mut LogFile, bytes: Vec<u8>, sync: Sync) -> io::Result<()> {
        match log.append(bytes, sync).await.result {
            Err(Failure::Sync(_)) if self.mistake == Some(Mistake::RetriedSync) => {
                *log = self.disk.append(LOG).await?;
                Ok(())
            }
            result => result.map_err(io::Error::other),
        }
    }

    /// Waits until what is logged up to `position` is as safe as the mode promises.
    async fn wait_until_safe(&self, position: u64) {
        if self.mistake == Some(Mistake::EarlyReply) {
            return;
        }
        let mut positions = self.positions.subscribe();
        let safe = positions.wait_for(|positions| match self.mode {
            Mode::Always => positions.synced >= position,
            Mode::Write => positions.written >= position,
            Mode::EverySecond | Mode::No => true,
        });
        let _ = safe.await;
    }
}

async fn serve(toy: Arc<Toy>, incoming: Incoming) {
    let Ok(mut stream) = incoming.open() else { return };
    let (mut buffer, mut session) = (Vec::new(), Session::default());
    while stream.read_into(&mut buffer).await.is_ok_and(|length| length > 0) {
        let (mut replies, mut position) = (Vec::new(), 0);
        while let Ok(Some((request, length))) = decode(&buffer) {
            buffer.drain(..length);
            let words = words(request);
            if words.first().is_some_and(|name| name.starts_with(b"BL")) {
                // Who waits has the replies to what came before.
                toy.wait_until_safe(std::mem::take(&mut position)).await;
                if stream.write_all(&std::mem::take(&mut replies)).await.is_err() {
                    return;
                }
                let Some((reply, taken_at)) = toy.take(&words).await else { return };
                (replies, position) = (reply, taken_at);
                continue;
            }
            let mut state = toy.state();
            let before = state.position;
            session.handle(&mut state, words, &mut replies, toy.mistake);
            // A read waits for the writes that it may have seen, as a write waits for itself.
            let is_read = state.position == before;
            if !(is_read && toy.mistake == Some(Mistake::PhantomRead)) {
                position = state.position;
            }
        }
        toy.wait_until_safe(position).await;
        if stream.write_all(&replies).await.is_err() {
            return;
        }
    }
}

fn words(request: Value) -> Vec<Vec<u8>> {
    let Value::Array(words) = request else { return Vec::new() };
    words.into_iter().filter_map(|word| if let Value::Bulk(bytes) = word { Some(bytes) } else { None }).collect()
}
