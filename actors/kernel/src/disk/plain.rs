//! The real disk by plain system calls, on the calling thread.
//!
//! An append that must be durable is a write and an `fdatasync`. `RWF_DSYNC` would make them one call, but its error does
//! not tell which half failed (a full disk may be noticed only by the sync), and the two mean different things to a log.
#![allow(clippy::disallowed_methods, reason = "this is the seam that the ban points to")]

use std::fs::{self, File, OpenOptions};
use std::future::ready;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::task::{Context, Poll};

use super::log_file::{Failure, LogFile, RawDone, RawFile, Sync};
use super::{DirectoryLock, Disk, Operation, transfer, uring};

/// A directory of the real file system as a disk's root.
#[derive(Debug, Clone)]
pub struct PlainDisk {
    root: PathBuf,
    ring: bool,
}

impl PlainDisk {
    /// A disk whose paths are relative to `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), ring: false }
    }

    /// The same, with log files written through io_uring where the kernel allows it.
    pub fn with_ring(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), ring: uring::available() }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn open(&self, path: &str, fresh: bool) -> io::Result<LogFile> {
        let file = OpenOptions::new().read(true).write(true).create(fresh).truncate(fresh).open(self.at(path))?;
        let length = file.metadata()?.len();
        let raw: Box<dyn RawFile> =
            if self.ring { Box::new(uring::RingFile::new(file)?) } else { Box::new(PlainFile { file, done: None }) };
        Ok(LogFile::new(raw, length))
    }
}

fn done<'a, T: Send + 'a>(result: io::Result<T>) -> Operation<'a, T> {
    Box::pin(ready(result))
}

/// Room is made for what is there, however much is asked for.
fn read_range(path: &Path, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let there = usize::try_from(file.metadata()?.len().saturating_sub(offset)).unwrap_or(usize::MAX);
    transfer::read_all(offset, length.min(there), |bytes, offset| file.read_at(bytes, offset))
}

fn list(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names)
}

fn sync_directory(directory: &Path) -> io::Result<()> {
    // The root may be "", which means here.
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    File::open(directory)?.sync_all()
}

/// Creates from the top down, syncing the parent of each new one, because a directory's name lives in its parent.
fn create_directory(directory: &Path) -> io::Result<()> {
    if directory.as_os_str().is_empty() || directory.is_dir() {
        return Ok(());
    }
    let parent = directory.parent().unwrap_or(Path::new(""));
    create_directory(parent)?;
    match fs::create_dir(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => sync_directory(parent),
    }
}

fn lock_directory(directory: &Path) -> io::Result<DirectoryLock> {
    let held = File::open(directory)?;
    held.try_lock()?;
    Ok(DirectoryLock::new(held))
}

impl Disk for PlainDisk {
    fn read<'a>(&'a self, path: &'a str) -> Operation<'a, Vec<u8>> {
        done(read_range(&self.at(path), 0, usize::MAX))
    }

    fn read_range<'a>(&'a self, path: &'a str, offset: u64, length: usize) -> Operation<'a, Vec<u8>> {
        done(read_range(&self.at(path), offset, length))
    }

    fn length<'a>(&'a self, path: &'a str) -> Operation<'a, u64> {
        done(fs::metadata(self.at(path)).map(|found| found.len()))
    }

    fn list<'a>(&'a self, directory: &'a str) -> Operation<'a, Vec<String>> {
        done(list(&self.at(directory)))
    }

    fn create<'a>(&'a self, path: &'a str) -> Operation<'a, LogFile> {
        done(self.open(path, true))
    }

    fn append<'a>(&'a self, path: &'a str) -> Operation<'a, LogFile> {
        done(self.open(path, false))
    }

    fn truncate<'a>(&'a self, path: &'a str, length: u64) -> Operation<'a, ()> {
        done(OpenOptions::new().write(true).open(self.at(path)).and_then(|file| {
            file.set_len(length)?;
            file.sync_all()
        }))
    }

    fn rename<'a>(&'a self, from: &'a str, to: &'a str) -> Operation<'a, ()> {
        done(fs::rename(self.at(from), self.at(to)))
    }

    fn unlink<'a>(&'a self, path: &'a str) -> Operation<'a, ()> {
        done(fs::remove_file(self.at(path)))
    }

    fn sync_directory<'a>(&'a self, directory: &'a str) -> Operation<'a, ()> {
        done(sync_directory(&self.at(directory)))
    }

    fn create_directory<'a>(&'a self, directory: &'a str) -> Operation<'a, ()> {
        done(create_directory(&self.at(directory)))
    }

    fn lock_directory<'a>(&'a self, directory: &'a str) -> Operation<'a, DirectoryLock> {
        done(lock_directory(&self.at(directory)))
    }
}

/// A log file by system calls: everything is done when `start` returns.
struct PlainFile {
    file: File,
    done: Option<RawDone>,
}

impl PlainFile {
    fn append(&self, offset: u64, bytes: &[u8], sync: Sync) -> Result<(), Failure> {
        transfer::write_all(bytes, offset, |bytes, offset| self.file.write_at(bytes, offset))
            .map_err(Failure::Write)?;
        match sync {
            Sync::Data => self.file.sync_data().map_err(Failure::Sync),
            Sync::No => Ok(()),
        }
    }
}

impl RawFile for PlainFile {
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
