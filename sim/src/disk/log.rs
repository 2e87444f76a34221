//! The log file of the simulated disk. A write reaches the cache in two steps with time between them, so that a kill may
//! leave half of it; a sync takes effect at its end, so that a power loss during one may leave any part of it.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use simurgh_kernel::disk::{Failure, RawDone, RawFile, Sync, transfer};
use simurgh_kernel::time;

use super::names::Inode;
use super::{INJECTED, SimDisk, size};
use crate::tally;

/// An open file in one life of the process.
pub struct SimFile {
    disk: SimDisk,
    inode: Inode,
    submitted: Option<Submitted>,
}

/// What was started and is not done.
struct Submitted {
    buffer: Vec<u8>,
    offset: usize,
    /// How many bytes are in the cache already, and whether the write stopped there.
    written: io::Result<usize>,
    sync: Sync,
    delay: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl SimFile {
    /// Opens the file.
    pub fn new(disk: SimDisk, inode: Inode) -> Self {
        Self { disk, inode, submitted: None }
    }

    /// Writes into the cache what fits on the disk.
    fn write(&self, offset: usize, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.alive()?;
        let room = state.room();
        let fails_one_in = state.faults.write_fails_one_in;
        if !bytes.is_empty() && state.random.chance(fails_one_in) {
            let part = state.random.index(bytes.len());
            state.by_inode(self.inode)?.write(offset, &bytes[..part]);
            state.failed_transfers += 1;
            tally::fired("S3");
            return Err(io::Error::other(INJECTED));
        }
        let file = state.by_inode(self.inode)?;
        let overwritten = file.bytes().len().saturating_sub(offset);
        let fits = bytes.len().min(room.saturating_add(overwritten));
        transfer::write_all(&bytes[..fits], offset as u64, |bytes, offset| {
            let length = state.part(bytes.len())?;
            state.by_inode(self.inode)?.write(size(offset), &bytes[..length]);
            Ok(length)
        })?;
        if fits < bytes.len() {
            state.refused_writes += 1;
            tally::fired("S4");
            return Err(ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn first_step(&self, offset: usize, bytes: &[u8]) -> io::Result<usize> {
        let first = self.disk.alive()?.random.index(bytes.len() + 1);
        self.write(offset, &bytes[..first])?;
        Ok(first)
    }

    fn second_step(&self, submitted: &Submitted) -> Result<(), Failure> {
        let written = match &submitted.written {
            Ok(written) => *written,
            Err(error) => return Err(Failure::Write(io::Error::new(error.kind(), error.to_string()))),
        };
        self.write(submitted.offset + written, &submitted.buffer[written..]).map_err(Failure::Write)?;
        match submitted.sync {
            Sync::No => Ok(()),
            Sync::Data => self
                .disk
                .alive()
                .and_then(|mut state| {
                    state.syncing = state.syncing.saturating_sub(1);
                    state.sync(self.inode)
                })
                .map_err(Failure::Sync),
        }
    }
}

impl RawFile for SimFile {
    fn start(&mut self, offset: u64, buffer: Vec<u8>, sync: Sync) {
        let offset = size(offset);
        let written = self.first_step(offset, &buffer);
        if let (Sync::Data, Ok(mut state)) = (sync, self.disk.alive()) {
            state.syncing += 1;
        }
        let delay = self.disk.alive().map(|mut state| state.delay()).unwrap_or_default();
        let delay = Box::pin(time::sleep(delay));
        self.submitted = Some(Submitted { buffer, offset, written, sync, delay });
    }

    fn poll_done(&mut self, cx: &mut Context<'_>) -> Poll<RawDone> {
        let submitted = self.submitted.as_mut().expect("a write was started");
        ready!(submitted.delay.as_mut().poll(cx));
        let submitted = self.submitted.take().expect("a write was started");
        let result = self.second_step(&submitted);
        Poll::Ready(RawDone { result, buffer: submitted.buffer })
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        self.disk.alive()?.by_inode(self.inode)?.set_length(size(length));
        Ok(())
    }
}
