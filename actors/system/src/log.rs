//! The log's stream, as those who write to it see it: one buffer that records join in order, and the position that is safe.
//!
//! ```text
//! position   ... written and safe ...|... being written ...|... in the buffer ...|
//!                                  safe                                       end
//! ```
//!
//! A record joins while its shards are held, so the order of the stream is an order in which the commands really ran. A reply
//! carries its condition: the position that must be safe before it leaves. When a sync is due and who waits for it are separate:
//! the log writer decides the first, each connection the second.

use crate::persistence::Switched;
use simurgh_kernel::rehearsal::{Mistake, has};
use simurgh_kernel::sync::{Notify, oneshot};
use simurgh_kernel::time;
use simurgh_storage::Effects;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// What a reply promises about the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// There is no log.
    Off = 0,
    /// Written soon, synced when the kernel likes.
    No = 1,
    /// Written soon, synced within about a second.
    EverySecond = 2,
    /// Handed to the kernel before the reply: survives `kill -9`.
    Write = 3,
    /// On the disk before the reply: survives power loss.
    Always = 4,
}

impl Mode {
    fn from_bits(bits: u8) -> Self {
        match bits {
            1 => Self::No,
            2 => Self::EverySecond,
            3 => Self::Write,
            4 => Self::Always,
            _ => Self::Off,
        }
    }

    /// Whether replies wait for the log.
    #[must_use]
    pub fn replies_wait(self) -> bool {
        matches!(self, Self::Write | Self::Always)
    }
}

/// What must have become of a record before a reply that tells of it may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// What the mode in force promises: written, in `always` on the disk.
    InForce,
    /// On the disk, whatever the mode in force.
    Synced,
}

impl Promise {
    /// What a client is promised that chose a mode for itself; none if its replies need not wait. The stronger of the two counts.
    #[must_use]
    pub fn of(in_force: Mode, chosen: Option<Mode>) -> Option<Self> {
        match (in_force, chosen) {
            (Mode::Off, _) => None,
            (Mode::Always, _) => Some(Self::InForce),
            (Mode::No | Mode::EverySecond | Mode::Write, Some(Mode::Always)) => Some(Self::Synced),
            (Mode::Write, _) | (Mode::No | Mode::EverySecond, Some(Mode::Write)) => Some(Self::InForce),
            (Mode::No | Mode::EverySecond, _) => None,
        }
    }
}

/// Bytes in the buffer from which connections stop reading until the writer has caught up: a slow disk is answered with
/// back-pressure, not with memory.
pub const CONGESTED_BYTES: usize = 256 << 20;
/// Bytes in the buffer from which the writer is woken even where no reply waits.
const EAGER_BYTES: usize = 1 << 20;

/// A position at which the log goes on in a new file.
#[derive(Debug)]
pub(crate) struct LogCut {
    /// Bytes of the buffer that belong to the file before it.
    at: usize,
    /// The new file begins a data set that is not yet on the disk: no manifest is to name it.
    pub starts: bool,
    /// Told of the new file.
    pub answer: oneshot::Sender<Result<Switched, String>>,
}

/// What waits to be written.
pub(crate) struct Taken {
    pub group: Vec<u8>,
    /// The position behind it.
    pub position: u64,
    /// What follows belongs to a new file.
    pub cut: Option<LogCut>,
}

#[derive(Debug, Default)]
struct Stream {
    buffer: Vec<u8>,
    /// Position of the end of the buffer.
    end: u64,
    /// The database that the last record left selected.
    database: Option<usize>,
    cut: Option<LogCut>,
    /// The second that was told last.
    second: u64,
}

/// What one core's connections wait for.
#[derive(Default)]
struct Waiting {
    wakers: Mutex<Vec<(u64, Promise, Waker)>>,
    relay: Notify,
    /// Something was appended that replies wait for.
    appended: Notify,
}

/// Adds records to the buffer.
#[inline]
fn add(buffer: &mut Vec<u8>, bytes: &[u8]) {
    if has(Mistake::SwappedRecords) && buffer.starts_with(b"*") && !buffer.starts_with(b"*2\r\n$6\r\nSELECT") {
        buffer.splice(..0, bytes.iter().copied());
    } else if has(Mistake::SplitTransaction) && bytes.starts_with(b"*1\r\n$5\r\nMULTI\r\n") {
        let records = &bytes[b"*1\r\n$5\r\nMULTI\r\n".len()..];
        buffer.extend_from_slice(records.strip_suffix(b"*1\r\n$4\r\nEXEC\r\n").unwrap_or(records));
    } else {
        buffer.extend_from_slice(bytes);
    }
}

/// The log as the data path sees it.
pub struct Log {
    mode: AtomicU8,
    stream: Mutex<Stream>,
    safe: AtomicU64,
    /// Everything before this position is on the disk.
    synced: AtomicU64,
    /// Somebody waits until everything before this position is on the disk.
    wanted: AtomicU64,
    /// Whether the time is written into the log (`aof-timestamp-enabled`).
    tells_time: AtomicBool,
    /// The writer has been told that there is something, and has not looked yet.
    told: AtomicBool,
    /// Wakes the writer.
    pub(crate) writer: Notify,
    /// Bytes in the buffer at the last look.
    backlog: AtomicU64,
    /// Memory of the buffer, and of the one that is being written.
    capacity: AtomicU64,
    capacity_taken: AtomicU64,
    waiting: Vec<Waiting>,
    refusal: Mutex<Option<String>>,
    refuses: AtomicBool,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Log({:?}, safe {})", self.mode(), self.safe())
    }
}

impl Log {
    /// A log without a writer, for a node with `cores` cores of connections.
    #[must_use]
    pub fn new(cores: usize) -> Self {
        Self {
            mode: AtomicU8::new(Mode::Off as u8),
            stream: Mutex::default(),
            safe: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            wanted: AtomicU64::new(0),
            tells_time: AtomicBool::new(false),
            told: AtomicBool::new(false),
            writer: Notify::new(),
            backlog: AtomicU64::new(0),
            capacity: AtomicU64::new(0),
            capacity_taken: AtomicU64::new(0),
            waiting: (0..cores).map(|_| Waiting::default()).collect(),
            refusal: Mutex::new(None),
            refuses: AtomicBool::new(false),
        }
    }

    fn stream(&self) -> MutexGuard<'_, Stream> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What replies promise now.
    #[must_use]
    #[inline]
    pub fn mode(&self) -> Mode {
        Mode::from_bits(self.mode.load(Ordering::Acquire))
    }

    /// Changes what replies promise from now on.
    pub fn set_mode(&self, mode: Mode) {
        self.mode.store(mode as u8, Ordering::Release);
        self.writer.notify_one();
    }

    /// Whether the time is written before the first record of each second.
    pub fn set_tells_time(&self, tells: bool) {
        self.tells_time.store(tells, Ordering::Relaxed);
    }

    /// Begins the stream at `position`, which is safe.
    pub(crate) fn begin_at(&self, position: u64) {
        let mut stream = self.stream();
        stream.end = position;
        stream.database = None;
        stream.cut = None;
        stream.buffer.clear();
        self.safe.store(position, Ordering::Release);
        self.synced.store(position, Ordering::Release);
    }

    /// Adds records to the stream, in the order in which they were made; returns the position behind them. The shards that they
    /// changed must still be held. `core` is the one whose client did it.
    pub fn append(&self, core: usize, effects: &Effects) -> u64 {
        let (end, waiting) = {
            let mut stream = self.stream();
            let before = stream.buffer.len();
            if self.tells_time.load(Ordering::Relaxed) {
                let second = u64::try_from(time::wall_ms() / 1000).unwrap_or(0);
                if second > stream.second {
                    simurgh_storage::aof::seal::write_second(&mut stream.buffer, second);
                    stream.second = second;
                }
            }
            for (database, bytes) in effects.runs() {
                if stream.database != Some(database) {
                    let number = database.to_string();
                    let words: [&[u8]; 2] = [b"SELECT", number.as_bytes()];
                    simurgh_protocol::resp::encode_command(&mut stream.buffer, words.into_iter());
                    stream.database = Some(database);
                }
                add(&mut stream.buffer, bytes);
            }
            stream.end += (stream.buffer.len() - before) as u64;
            self.capacity.store(stream.buffer.capacity() as u64, Ordering::Relaxed);
            (stream.end, stream.buffer.len())
        };
        self.backlog.store(waiting as u64, Ordering::Relaxed);
        if (self.mode().replies_wait() || waiting > EAGER_BYTES) && !self.told.swap(true, Ordering::AcqRel) {
            self.waiting[core].appended.notify_one();
        }
        end
    }

    /// Everything from here on belongs to a new file; all shards are held. Tells which, once the records before it are on the disk.
    pub(crate) fn cut(&self, starts: bool) -> oneshot::Receiver<Result<Switched, String>> {
        let (answer, switched) = oneshot::channel();
        let mut stream = self.stream();
        let at = stream.buffer.len();
        // One that the writer has not come to yet ends here: its sender is dropped.
        stream.cut = Some(LogCut { at, starts, answer });
        // The new file's reader begins with no database chosen.
        stream.database = None;
        drop(stream);
        self.writer.notify_one();
        switched
    }

    /// Takes everything that waits to be written to the file of now, leaving `spare` in its place.
    pub(crate) fn take(&self, spare: Vec<u8>) -> Taken {
        self.told.store(false, Ordering::Release);
        let mut stream = self.stream();
        let mut group = std::mem::replace(&mut stream.buffer, spare);
        let mut position = stream.end;
        let cut = stream.cut.take();
        if let Some(cut) = &cut {
            position -= (group.len() - cut.at) as u64;
            stream.buffer.extend_from_slice(&group[cut.at..]);
            group.truncate(cut.at);
        }
        self.backlog.store(stream.buffer.len() as u64, Ordering::Relaxed);
        self.capacity.store(stream.buffer.capacity() as u64, Ordering::Relaxed);
        self.capacity_taken.store(group.capacity() as u64, Ordering::Relaxed);
        Taken { group, position, cut }
    }

    /// Position of the end of the stream.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.stream().end
    }

    /// Bytes that wait to be written.
    #[must_use]
    pub fn backlog(&self) -> usize {
        self.backlog.load(Ordering::Relaxed) as usize
    }

    /// Memory of its buffers, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        (self.capacity.load(Ordering::Relaxed) + self.capacity_taken.load(Ordering::Relaxed)) as usize
    }

    /// Everything before this position is safe in the mode in force.
    #[must_use]
    #[inline]
    pub fn safe(&self) -> u64 {
        self.safe.load(Ordering::Acquire)
    }

    /// Everything before this position is on the disk.
    #[must_use]
    pub fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    /// How far a promise is kept.
    #[must_use]
    #[inline]
    pub fn kept(&self, promise: Promise) -> u64 {
        match promise {
            Promise::InForce => self.safe(),
            Promise::Synced => self.synced(),
        }
    }

    /// Asks for a sync of everything before `position`, without waiting for the mode's own time.
    pub fn want_synced(&self, core: usize, position: u64) {
        self.wanted.fetch_max(position, Ordering::AcqRel);
        // Who has told the writer already told it before it takes the records, and it looks at `wanted` only then.
        if !self.told.swap(true, Ordering::AcqRel) {
            self.waiting[core].appended.notify_one();
        }
    }

    /// Up to where somebody waits for a sync.
    pub(crate) fn wanted(&self) -> u64 {
        self.wanted.load(Ordering::Acquire)
    }

    /// Notes that everything before `position` is on the disk; who waits hears of it with what is announced next.
    pub(crate) fn note_synced(&self, position: u64) {
        self.synced.fetch_max(position, Ordering::AcqRel);
    }

    /// Announces that everything before `position` is safe.
    pub(crate) fn announce(&self, position: u64) {
        let position = if has(Mistake::EndAnnounced) { self.end() } else { position };
        self.safe.fetch_max(position, Ordering::AcqRel);
        for core in &self.waiting {
            core.relay.notify_one();
        }
    }

    /// Wakes a connection of `core` once a promise is kept up to `position`. Ask once for a position, and look at [`Log::kept`] again
    /// afterwards: it may have been kept meanwhile.
    pub fn wake_when_kept(&self, core: usize, promise: Promise, position: u64, waker: &Waker) {
        let mut wakers = self.waiting[core].wakers.lock().unwrap_or_else(PoisonError::into_inner);
        wakers.push((position, promise, waker.clone()));
    }

    /// Runs on each core: tells the writer that there is something to write, after everything else that is ready on this core
    /// has had its turn, so that one write and one sync serve all of it.
    pub(crate) async fn tell_writer(&self, core: usize) {
        loop {
            self.waiting[core].appended.notified().await;
            self.writer.notify_one();
        }
    }

    /// Runs on each core: wakes its connections whose position has become safe. One wake-up crosses threads for all of them.
    pub(crate) async fn relay(&self, core: usize) {
        let waiting = &self.waiting[core];
        loop {
            waiting.relay.notified().await;
            let (safe, synced) = (self.safe(), self.synced());
            let mut ready = Vec::new();
            waiting.wakers.lock().unwrap_or_else(PoisonError::into_inner).retain(|(position, promise, waker)| {
                let kept = if *promise == Promise::InForce { safe } else { synced };
                let is_kept = *position <= kept;
                if is_kept {
                    ready.push(waker.clone());
                }
                !is_kept
            });
            ready.into_iter().for_each(Waker::wake);
        }
    }

    /// Whether writes are refused because the log cannot take them.
    #[must_use]
    #[inline]
    pub fn refuses(&self) -> bool {
        self.refuses.load(Ordering::Acquire)
    }

    /// Why writes are refused.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Refuses writes, or allows them again.
    pub(crate) fn set_refusal(&self, refusal: Option<String>) {
        self.refuses.store(refusal.is_some(), Ordering::Release);
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = refusal;
    }
}
