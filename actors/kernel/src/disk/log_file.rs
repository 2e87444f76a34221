//! A file that is only appended to, and the rules that every disk shares:
//!
//! - *A failed sync poisons the file.* After one, the kernel may have marked pages clean that it never wrote, and the next
//!   sync would succeed without them (fsyncgate: PostgreSQL 2018, Redis until 2021). So nothing is ever written to it
//!   again; what to do about the log is decided above, and never by retrying.
//! - *A failed write leaves no half of it.* The file is cut back to where it ended. If even that fails, it is poisoned.
//! - One append at a time: the buffer handed in is the caller's again when it is done. It is empty then, with its
//!   capacity, unless the append failed: then it still holds what is not in the file.

use std::io;
use std::task::{Context, Poll, ready};

/// Whether an append must be durable before it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// The kernel has it: survives the process, not the machine.
    No,
    /// It and everything appended before is on the disk: survives power loss.
    Data,
}

/// Which half of an append failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Nothing of it is in the file, unless that is now poisoned.
    #[error("write: {0}")]
    Write(io::Error),
    /// It is in the file, durable or not: nobody knows. The file is poisoned.
    #[error("sync: {0}")]
    Sync(io::Error),
    /// Refused because of an earlier failure.
    #[error("refused after an earlier failure: {0}")]
    Poisoned(String),
}

/// A finished append.
#[derive(Debug)]
pub struct Done {
    /// How it went.
    pub result: Result<(), Failure>,
    /// The buffer: cleared when it was appended, otherwise with its bytes, so that they can be written again.
    pub buffer: Vec<u8>,
}

/// What a disk reports to [`LogFile`] when a submission is done.
#[derive(Debug)]
pub struct RawDone {
    /// How it went.
    pub result: Result<(), Failure>,
    /// The buffer, as it was handed in.
    pub buffer: Vec<u8>,
}

/// What a disk implements for its files: a positioned write, all of it or an error, with an optional sync.
pub trait RawFile: Send {
    /// Begins to write all of `buffer` at `offset`, then to sync when asked. Short writes and EINTR are continued inside.
    fn start(&mut self, offset: u64, buffer: Vec<u8>, sync: Sync);

    /// Ready when what was started is done.
    fn poll_done(&mut self, cx: &mut Context<'_>) -> Poll<RawDone>;

    /// Cuts the file (or extends it with zeros). Not durable by itself.
    fn set_length(&mut self, length: u64) -> io::Result<()>;
}

/// An append-only file. See the module for its rules.
pub struct LogFile {
    raw: Box<dyn RawFile>,
    /// Where the next append goes.
    length: u64,
    /// How long the file will be once what is under way is done.
    in_flight: Option<u64>,
    poison: Option<String>,
    /// The buffer of an append that was refused.
    refused: Option<Vec<u8>>,
}

impl std::fmt::Debug for LogFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogFile")
            .field("length", &self.length)
            .field("in_flight", &self.in_flight)
            .field("poison", &self.poison)
            .finish_non_exhaustive()
    }
}

impl LogFile {
    /// For disks: an open file that is `length` bytes long.
    pub fn new(raw: Box<dyn RawFile>, length: u64) -> Self {
        Self { raw, length, in_flight: None, poison: None, refused: None }
    }

    /// How long the file is, without an append under way.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Why appends are refused, if they are.
    pub fn poison(&self) -> Option<&str> {
        self.poison.as_deref()
    }

    /// Begins to append `buffer`; an empty one with [`Sync::Data`] only syncs.
    ///
    /// # Panics
    /// When an append is under way: its buffer has not been handed back.
    pub fn start(&mut self, buffer: Vec<u8>, sync: Sync) {
        self.start_at(self.length, buffer, sync);
    }

    fn start_at(&mut self, offset: u64, buffer: Vec<u8>, sync: Sync) {
        assert!(self.in_flight.is_none(), "one append at a time");
        self.in_flight = Some(self.length.max(offset + buffer.len() as u64));
        if self.poison.is_some() {
            self.refused = Some(buffer);
        } else {
            self.raw.start(offset, buffer, sync);
        }
    }

    /// Ready when the append under way is done.
    ///
    /// # Panics
    /// When none is.
    pub fn poll_done(&mut self, cx: &mut Context<'_>) -> Poll<Done> {
        let length = self.in_flight.expect("an append is under way");
        let RawDone { mut result, mut buffer } = match self.refused.take() {
            Some(buffer) => RawDone { result: Err(self.refusal()), buffer },
            None => ready!(self.raw.poll_done(cx)),
        };
        self.in_flight = None;
        match &mut result {
            Ok(()) => {
                self.length = length;
                buffer.clear();
            }
            Err(Failure::Write(error)) => self.cut_back(error),
            Err(Failure::Sync(error)) => {
                self.length = length;
                self.poison = Some(format!("sync: {error}"));
            }
            Err(Failure::Poisoned(_)) => {}
        }
        Poll::Ready(Done { result, buffer })
    }

    /// Appends and waits. The future must be driven to its end.
    pub async fn append(&mut self, buffer: Vec<u8>, sync: Sync) -> Done {
        self.start(buffer, sync);
        std::future::poll_fn(|cx| self.poll_done(cx)).await
    }

    /// Writes bytes that are in the file at `offset` already once more, so that the kernel takes them for new and the next
    /// sync is about them. For what an earlier life left behind: that it can be read does not say that it is on the disk.
    ///
    /// # Panics
    /// When the file does not reach so far.
    pub async fn rewrite(&mut self, offset: u64, bytes: Vec<u8>) -> Done {
        assert!(offset + bytes.len() as u64 <= self.length, "only what is there is written again");
        self.start_at(offset, bytes, Sync::No);
        std::future::poll_fn(|cx| self.poll_done(cx)).await
    }

    /// Cuts the file to `length`. Not durable until the next sync.
    pub fn set_length(&mut self, length: u64) -> Result<(), Failure> {
        assert!(self.in_flight.is_none(), "one operation at a time");
        if self.poison.is_some() {
            return Err(self.refusal());
        }
        self.raw.set_length(length).map_err(Failure::Write)?;
        self.length = length;
        Ok(())
    }

    fn cut_back(&mut self, write_error: &io::Error) {
        if let Err(error) = self.raw.set_length(self.length) {
            self.poison = Some(format!("write: {write_error}; and cutting the file back: {error}"));
        }
    }

    fn refusal(&self) -> Failure {
        Failure::Poisoned(self.poison.clone().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};

    /// A file that fails as told, and notes what reached it.
    #[derive(Default)]
    struct Scripted {
        failures: VecDeque<Option<Failure>>,
        truncation_fails: bool,
        noted: Arc<Mutex<Vec<String>>>,
        done: Option<RawDone>,
    }

    impl RawFile for Scripted {
        fn start(&mut self, offset: u64, buffer: Vec<u8>, sync: Sync) {
            self.noted.lock().unwrap().push(format!("write {} at {offset} {sync:?}", buffer.len()));
            let result = self.failures.pop_front().flatten().map_or(Ok(()), Err);
            self.done = Some(RawDone { result, buffer });
        }

        fn poll_done(&mut self, _cx: &mut Context<'_>) -> Poll<RawDone> {
            Poll::Ready(self.done.take().expect("something was started"))
        }

        fn set_length(&mut self, length: u64) -> io::Result<()> {
            self.noted.lock().unwrap().push(format!("cut to {length}"));
            if self.truncation_fails { Err(io::ErrorKind::Other.into()) } else { Ok(()) }
        }
    }

    fn file(failures: Vec<Option<Failure>>, truncation_fails: bool) -> (LogFile, Arc<Mutex<Vec<String>>>) {
        let noted = Arc::default();
        let raw = Scripted { failures: failures.into(), truncation_fails, noted: Arc::clone(&noted), done: None };
        (LogFile::new(Box::new(raw), 100), noted)
    }

    fn append(file: &mut LogFile, sync: Sync) -> Result<(), Failure> {
        let mut buffer = Vec::with_capacity(32);
        buffer.extend_from_slice(b"0123456789");
        file.start(buffer, sync);
        let Poll::Ready(done) = file.poll_done(&mut Context::from_waker(std::task::Waker::noop())) else {
            panic!("the scripted file is always done")
        };
        let expected: &[u8] = if done.result.is_ok() { b"" } else { b"0123456789" };
        assert_eq!(done.buffer, expected, "cleared unless it must be written again");
        assert!(done.buffer.capacity() >= 32, "the buffer comes back with its room");
        done.result
    }

    /// D3: after a failed sync the data may be gone from the page cache, so no later sync may vouch for it.
    #[test]
    fn d3_a_failed_sync_poisons_the_file() {
        let (mut log, noted) = file(vec![Some(Failure::Sync(io::ErrorKind::Other.into()))], false);
        assert!(matches!(append(&mut log, Sync::Data), Err(Failure::Sync(_))));
        assert!(log.poison().is_some());
        assert!(matches!(append(&mut log, Sync::Data), Err(Failure::Poisoned(_))));
        assert!(matches!(append(&mut log, Sync::No), Err(Failure::Poisoned(_))));
        assert!(matches!(log.set_length(0), Err(Failure::Poisoned(_))));
        assert_eq!(*noted.lock().unwrap(), ["write 10 at 100 Data"], "nothing reaches a poisoned file");
    }

    /// D4, D6: a full disk leaves no half record, and the file serves again when there is room.
    #[test]
    fn d4_a_failed_write_is_cut_back() {
        let (mut log, noted) = file(vec![None, Some(Failure::Write(io::ErrorKind::StorageFull.into()))], false);
        append(&mut log, Sync::No).unwrap();
        assert!(matches!(append(&mut log, Sync::No), Err(Failure::Write(_))));
        assert_eq!(log.length(), 110);
        append(&mut log, Sync::Data).unwrap();
        assert_eq!(
            *noted.lock().unwrap(),
            ["write 10 at 100 No", "write 10 at 110 No", "cut to 110", "write 10 at 110 Data"]
        );
        assert_eq!(log.length(), 120);
    }

    #[test]
    fn a_failed_write_that_cannot_be_cut_back_poisons() {
        let (mut log, _) = file(vec![Some(Failure::Write(io::ErrorKind::StorageFull.into()))], true);
        assert!(matches!(append(&mut log, Sync::No), Err(Failure::Write(_))));
        assert!(matches!(append(&mut log, Sync::No), Err(Failure::Poisoned(_))));
    }

    #[test]
    #[should_panic(expected = "one append at a time")]
    fn a_second_start_is_a_mistake() {
        let (mut log, _) = file(vec![], false);
        log.start(vec![1], Sync::No);
        log.start(vec![2], Sync::No);
    }
}
