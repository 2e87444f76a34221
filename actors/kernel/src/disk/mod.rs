//! The disk seam. A [`Disk`] does what is rare (list, rename, read at start-up); a [`LogFile`] does what is hot: append a
//! buffer and make it durable, as one submission, handing the buffer back so that nothing is allocated in steady state.
//!
//! Three disks stand behind it: [`PlainDisk`] (system calls), the same with [`uring`] for its log files, and the
//! simulator's, which loses power. All pass [`conformance`].
//!
//! What a crash may undo, and so what callers must do:
//!
//! | done | survives power loss once |
//! | --- | --- |
//! | bytes appended | an append with [`Sync::Data`] succeeded after them |
//! | a file created, renamed or unlinked | [`Disk::sync_directory`] of its directory succeeded |
//!
//! Paths are relative to the disk's root, with `/` between parts.

use std::any::Any;
use std::io;
use std::pin::Pin;

pub mod conformance;
mod log_file;
#[cfg(not(madsim))]
mod plain;
pub mod transfer;
#[cfg(not(madsim))]
mod uring;

pub use log_file::{Done, Failure, LogFile, RawDone, RawFile, Sync};
#[cfg(not(madsim))]
pub use plain::PlainDisk;
#[cfg(not(madsim))]
pub use uring::available as uring_available;

/// What every slow operation returns. Boxed, because these are the cold paths.
pub type Operation<'a, T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>;

/// Holds a directory for one node, until dropped.
pub struct DirectoryLock(#[expect(dead_code, reason = "held for its drop")] Box<dyn Any + Send + std::marker::Sync>);

impl DirectoryLock {
    /// Wraps whatever releases the lock when dropped.
    pub fn new(held: impl Any + Send + std::marker::Sync) -> Self {
        Self(Box::new(held))
    }
}

impl std::fmt::Debug for DirectoryLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DirectoryLock")
    }
}

/// Directories and files. Production does these on the calling thread: they belong to start-up, to shutting down and to the
/// log writer's own core.
pub trait Disk: Send + std::marker::Sync {
    /// The whole of a file.
    fn read<'a>(&'a self, path: &'a str) -> Operation<'a, Vec<u8>>;

    /// At most `length` bytes from `offset`; fewer only where the file ends.
    fn read_range<'a>(&'a self, path: &'a str, offset: u64, length: usize) -> Operation<'a, Vec<u8>>;

    /// A file's length.
    fn length<'a>(&'a self, path: &'a str) -> Operation<'a, u64>;

    /// The names in a directory, sorted.
    fn list<'a>(&'a self, directory: &'a str) -> Operation<'a, Vec<String>>;

    /// Opens a new, empty file for appending, discarding what was there. The name is durable once the directory is synced.
    fn create<'a>(&'a self, path: &'a str) -> Operation<'a, LogFile>;

    /// Opens a file that exists for appending at its end.
    fn append<'a>(&'a self, path: &'a str) -> Operation<'a, LogFile>;

    /// Cuts (or extends with zeros) a file and makes that durable.
    fn truncate<'a>(&'a self, path: &'a str, length: u64) -> Operation<'a, ()>;

    /// Moves a file over another name in one step, which a crash either undoes or does not. Durable once the directory
    /// is synced (both, when they differ).
    fn rename<'a>(&'a self, from: &'a str, to: &'a str) -> Operation<'a, ()>;

    /// Removes a name. Durable once the directory is synced.
    fn unlink<'a>(&'a self, path: &'a str) -> Operation<'a, ()>;

    /// Makes the names in a directory durable.
    fn sync_directory<'a>(&'a self, directory: &'a str) -> Operation<'a, ()>;

    /// Creates a directory and those above it, durably; one that is there is left alone.
    fn create_directory<'a>(&'a self, directory: &'a str) -> Operation<'a, ()>;

    /// Takes a directory for one node alone; fails with [`io::ErrorKind::WouldBlock`] while another holds it.
    fn lock_directory<'a>(&'a self, directory: &'a str) -> Operation<'a, DirectoryLock>;
}
