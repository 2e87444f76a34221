//! A node that makes a mistake with its files: a disk between it and the simulated one leaves out, or does too early, what the node
//! believes to be done in order. Each mistake must be found, as those planted in the toy are.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use simurgh_kernel::disk::{DirectoryLock, Disk, LogFile, Operation, RawDone, RawFile, Sync};

use crate::disk::SimDisk;
use crate::options::Flaw;

/// The simulated disk, with one flaw.
pub struct FlawedDisk {
    inner: SimDisk,
    flaw: Flaw,
}

impl FlawedDisk {
    /// The disk of a node without a flaw is the simulated one itself.
    pub fn over(inner: SimDisk, flaw: Option<Flaw>) -> Arc<dyn Disk> {
        match flaw {
            Some(flaw) => Arc::new(Self { inner, flaw }),
            None => Arc::new(inner),
        }
    }

    fn loses_syncs_of(&self, path: &str) -> bool {
        match self.flaw {
            Flaw::UnsyncedManifest => path.ends_with(".manifest"),
            Flaw::UnsyncedBase => path.contains(".base."),
            Flaw::ForgottenRename | Flaw::EarlyTidying => false,
        }
    }

    /// Deletes the bases before the one that is about to get its name.
    async fn tidy_up(&self, base: &str) -> io::Result<()> {
        let (folder, name) = base.rsplit_once('/').unwrap_or(("", base));
        for other in self.inner.list(folder).await? {
            if other.contains(".base.") && !other.starts_with("temp-") && other != name {
                self.inner.unlink(&format!("{folder}/{other}")).await?;
            }
        }
        self.inner.sync_directory(folder).await
    }
}

/// A file whose syncs are forgotten.
struct UnsyncedFile(LogFile);

impl RawFile for UnsyncedFile {
    fn start(&mut self, _offset: u64, buffer: Vec<u8>, _sync: Sync) {
        self.0.start(buffer, Sync::No);
    }

    fn poll_done(&mut self, cx: &mut Context<'_>) -> Poll<RawDone> {
        let done = ready!(self.0.poll_done(cx));
        Poll::Ready(RawDone { result: done.result, buffer: done.buffer })
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        self.0.set_length(length).map_err(|failure| io::Error::other(failure.to_string()))
    }
}

impl Disk for FlawedDisk {
    fn read<'a>(&'a self, path: &'a str) -> Operation<'a, Vec<u8>> {
        self.inner.read(path)
    }

    fn read_range<'a>(&'a self, path: &'a str, offset: u64, length: usize) -> Operation<'a, Vec<u8>> {
        self.inner.read_range(path, offset, length)
    }

    fn length<'a>(&'a self, path: &'a str) -> Operation<'a, u64> {
        self.inner.length(path)
    }

    fn list<'a>(&'a self, directory: &'a str) -> Operation<'a, Vec<String>> {
        self.inner.list(directory)
    }

    fn create<'a>(&'a self, path: &'a str) -> Operation<'a, LogFile> {
        if !self.loses_syncs_of(path) {
            return self.inner.create(path);
        }
        Box::pin(async move { Ok(LogFile::new(Box::new(UnsyncedFile(self.inner.create(path).await?)), 0)) })
    }

    fn append<'a>(&'a self, path: &'a str) -> Operation<'a, LogFile> {
        self.inner.append(path)
    }

    fn truncate<'a>(&'a self, path: &'a str, length: u64) -> Operation<'a, ()> {
        self.inner.truncate(path, length)
    }

    fn rename<'a>(&'a self, from: &'a str, to: &'a str) -> Operation<'a, ()> {
        if self.flaw != Flaw::EarlyTidying || !to.contains(".base.") {
            return self.inner.rename(from, to);
        }
        Box::pin(async move {
            self.inner.rename(from, to).await?;
            self.tidy_up(to).await
        })
    }

    fn unlink<'a>(&'a self, path: &'a str) -> Operation<'a, ()> {
        self.inner.unlink(path)
    }

    fn sync_directory<'a>(&'a self, directory: &'a str) -> Operation<'a, ()> {
        if self.flaw == Flaw::ForgottenRename {
            return Box::pin(std::future::ready(Ok(())));
        }
        self.inner.sync_directory(directory)
    }

    fn create_directory<'a>(&'a self, directory: &'a str) -> Operation<'a, ()> {
        self.inner.create_directory(directory)
    }

    fn lock_directory<'a>(&'a self, directory: &'a str) -> Operation<'a, DirectoryLock> {
        self.inner.lock_directory(directory)
    }
}
