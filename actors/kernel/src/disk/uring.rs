//! A log file through io_uring: the write and the sync that must follow it are linked and submitted with one system call,
//! which also waits for them. Only these two operations are used, so that the ring is easy to reason about.
//!
//! It is not the default. The kernel hands a sync to a worker thread, so one durable append at a time took 82 µs against 62
//! µs by plain system calls (64 bytes; 107 against 85 µs for 16 KiB; ext4 on a virtual disk, medians of 400, five rounds;
//! `examples/log_latency.rs`). It is for disks where that measures the other way round.
//!
//! Nothing outlives a call: `start` returns when the kernel has answered every entry, so the buffer is never shared with
//! it afterwards. A kernel (or a container's seccomp filter) that refuses is noticed by [`available`].
#![allow(unsafe_code, reason = "a submission names a buffer by its address")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::LazyLock;
use std::task::{Context, Poll};

use io_uring::types::{Fd, FsyncFlags};
use io_uring::{IoUring, Probe, opcode, squeue};

use super::log_file::{Failure, RawDone, RawFile, Sync};

/// A write and a sync.
const ENTRIES: u32 = 2;

const WRITE: u64 = 1;
const SYNC: u64 = 2;

/// A write's length is 32 bits wide; longer buffers go in parts.
const PART_LENGTH_MAX: usize = 1 << 30;

/// Whether this kernel lets this process use a ring with the two operations. Asked once.
pub fn available() -> bool {
    static AVAILABLE: LazyLock<bool> = LazyLock::new(|| probe().unwrap_or(false));
    *AVAILABLE
}

fn probe() -> io::Result<bool> {
    let ring = IoUring::new(ENTRIES)?;
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe)?;
    Ok(probe.is_supported(opcode::Write::CODE) && probe.is_supported(opcode::Fsync::CODE))
}

/// A log file with a ring of its own.
pub struct RingFile {
    file: File,
    ring: IoUring,
    done: Option<RawDone>,
}

/// What the kernel answered to one submission: a count or a negative error number, none when the entry was not submitted.
#[derive(Default)]
struct Answers {
    written: Option<i32>,
    synced: Option<i32>,
}

impl RingFile {
    /// Sets up the ring.
    pub fn new(file: File) -> io::Result<Self> {
        Ok(Self { file, ring: IoUring::new(ENTRIES)?, done: None })
    }

    fn append(&mut self, mut offset: u64, mut bytes: &[u8], sync: Sync) -> Result<(), Failure> {
        loop {
            let part = &bytes[..bytes.len().min(PART_LENGTH_MAX)];
            let with_sync = sync == Sync::Data && part.len() == bytes.len();
            if part.is_empty() && !with_sync {
                return Ok(());
            }
            let answers = self.submit(offset, part, with_sync).map_err(Failure::Write)?;
            let written = written_length(answers.written)?;
            bytes = &bytes[written..];
            offset += written as u64;
            match answers.synced {
                // The link broke because the write was short: go on with the rest.
                Some(code) if code == -CANCELED && !bytes.is_empty() => {}
                Some(code) if code == -INTERRUPTED => {}
                Some(code) if code < 0 => {
                    return Err(Failure::Sync(io::Error::from_raw_os_error(-code)));
                }
                Some(_) => return Ok(()),
                None => {}
            }
        }
    }

    /// Submits the write (unless `bytes` is empty) and the sync, and waits for both.
    fn submit(&mut self, offset: u64, bytes: &[u8], with_sync: bool) -> io::Result<Answers> {
        let fd = Fd(self.file.as_raw_fd());
        let length = u32::try_from(bytes.len()).expect("a part is at most 1 GiB");
        let link = if with_sync { squeue::Flags::IO_LINK } else { squeue::Flags::empty() };
        let write = opcode::Write::new(fd, bytes.as_ptr(), length).offset(offset).build().flags(link).user_data(WRITE);
        let sync = opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build().user_data(SYNC);
        let entries: &[squeue::Entry] = match (bytes.is_empty(), with_sync) {
            (false, true) => &[write, sync],
            (false, false) => &[write],
            (true, _) => &[sync],
        };
        // SAFETY: `fd` is open and `bytes` borrowed for the whole of this function, and `wait_for` returns only when the
        // kernel has answered every entry (or could not have taken any), so it never reads `bytes` afterwards.
        unsafe { self.ring.submission().push_multiple(entries) }.map_err(io::Error::other)?;
        self.wait_for(entries.len())
    }

    /// Waits until all `count` entries are answered. Once the kernel may have taken them there is no way back, so an error
    /// other than an interruption, which would leave the buffer shared, ends the process.
    fn wait_for(&mut self, count: usize) -> io::Result<Answers> {
        let mut answers = Answers::default();
        let mut answered = 0;
        while answered < count {
            match self.ring.submit_and_wait(count - answered) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    tracing::error!(%error, "io_uring_enter failed with a write under way");
                    std::process::abort();
                }
            }
            for entry in self.ring.completion() {
                answered += 1;
                match entry.user_data() {
                    WRITE => answers.written = Some(entry.result()),
                    _ => answers.synced = Some(entry.result()),
                }
            }
        }
        Ok(answers)
    }
}

const CANCELED: i32 = rustix::io::Errno::CANCELED.raw_os_error();
const INTERRUPTED: i32 = rustix::io::Errno::INTR.raw_os_error();

fn written_length(answer: Option<i32>) -> Result<usize, Failure> {
    match answer {
        None => Ok(0),
        Some(0) => Err(Failure::Write(io::ErrorKind::WriteZero.into())),
        Some(code) if code == -INTERRUPTED => Ok(0),
        Some(code) => usize::try_from(code).map_err(|_| Failure::Write(io::Error::from_raw_os_error(-code))),
    }
}

impl RawFile for RingFile {
    fn start(&mut self, offset: u64, buffer: Vec<u8>, sync: Sync) {
        let result = self.append(offset, &buffer, sync);
        self.done = Some(RawDone { result, buffer });
    }

    fn poll_done(&mut self, _cx: &mut Context<'_>) -> Poll<RawDone> {
        Poll::Ready(self.done.take().expect("a write was started"))
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }
}
