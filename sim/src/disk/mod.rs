//! A disk that loses power. A [`Platter`] belongs to a simulated machine and outlives its process; each life of the process
//! mounts it and gets a [`SimDisk`], the kernel's disk seam. When the life ends, whatever its tasks still try comes to
//! nothing: a dead process does not write.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use simurgh_kernel::disk::{DirectoryLock, Disk, LogFile, Operation, transfer};
use simurgh_kernel::time;

use crate::random::Random;
use crate::tally;

mod damage;
mod file;
mod log;
mod names;

pub use damage::Damage;
use file::{File, SECTOR};
use names::{Inode, Names, normal, parent};

/// What goes wrong besides power loss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults {
    /// A sync fails once in this many; 0 is never.
    pub sync_fails_one_in: u64,
    /// A sync says that it is done, and has done nothing.
    pub sync_lies_one_in: u64,
    /// A read fails.
    pub read_fails_one_in: u64,
    /// A write fails, and leaves a part of it.
    pub write_fails_one_in: u64,
    /// A system call moves less than it was asked to, or is interrupted before it has moved anything.
    pub short_one_in: u64,
    /// An operation stalls once in this many; 0 is never.
    pub stall_one_in: u64,
    /// The longest stall.
    pub stall_ms_max: u64,
    /// How many bytes fit.
    pub capacity: usize,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            sync_fails_one_in: 0,
            sync_lies_one_in: 0,
            read_fails_one_in: 0,
            write_fails_one_in: 0,
            short_one_in: 0,
            stall_one_in: 0,
            stall_ms_max: 0,
            capacity: usize::MAX,
        }
    }
}

impl Faults {
    /// Whether the server may end, or have to be started again, because of them.
    pub fn may_end_the_server(&self) -> bool {
        self.sync_fails_one_in > 0 || self.read_fails_one_in > 0 || self.may_hold_up()
    }

    /// Whether the log may have to wait before it can be written.
    pub fn may_hold_up(&self) -> bool {
        self.write_fails_one_in > 0 || self.capacity < usize::MAX
    }
}

/// The text of an injected error.
pub const INJECTED: &str = "injected input/output error";

/// What lies on the disk, and in the operating system's cache.
#[derive(Debug)]
struct State {
    names: Names,
    files: BTreeMap<Inode, File>,
    next_inode: Inode,
    /// Which life may act; all others are dead.
    life: u64,
    locks: BTreeSet<String>,
    faults: Faults,
    random: Random,
    /// How many syncs were made to fail, and how many writes did not fit, so that a timeline can tell an injected fault
    /// from a real one.
    failed_syncs: u64,
    refused_writes: u64,
    failed_transfers: u64,
    /// How many syncs were lies, and whether the power went afterwards.
    lies: u64,
    is_betrayed: bool,
    /// Syncs under way.
    syncing: u64,
    /// Sectors that cannot be read.
    unreadable: BTreeSet<(Inode, usize)>,
}

/// A machine's disk.
#[derive(Debug, Clone)]
pub struct Platter(Arc<Mutex<State>>);

/// The disk as one life of the process sees it.
#[derive(Debug, Clone)]
pub struct SimDisk {
    platter: Platter,
    life: u64,
}

impl Platter {
    /// An empty disk that behaves as `seed` says.
    pub fn new(seed: u64, faults: Faults) -> Self {
        Self(Arc::new(Mutex::new(State {
            names: Names::default(),
            files: BTreeMap::new(),
            next_inode: 1,
            life: 0,
            locks: BTreeSet::new(),
            faults,
            random: Random::of(seed, "disk"),
            failed_syncs: 0,
            refused_writes: 0,
            failed_transfers: 0,
            lies: 0,
            is_betrayed: false,
            syncing: 0,
            unreadable: BTreeSet::new(),
        })))
    }

    /// Begins a life; the one before ends.
    pub fn mount(&self) -> SimDisk {
        self.kill();
        SimDisk { platter: self.clone(), life: self.state().life }
    }

    /// The process ends: what it wrote stays in the cache.
    pub fn kill(&self) {
        let mut state = self.state();
        state.life += 1;
        state.syncing = 0;
        state.locks.clear();
    }

    /// The power goes: what was not synced is lost, torn or reordered.
    pub fn lose_power(&self) {
        if self.state().syncing > 0 {
            tally::reach("the power went during a sync");
        }
        self.kill();
        let mut state = self.state();
        let State { names, files, random, .. } = &mut *state;
        for file in files.values_mut() {
            let loss = file.lose_power(random);
            if loss.is_lost {
                tally::fired("S1");
            }
            if loss.is_torn {
                tally::fired("S2");
            }
        }
        if names.lose_power(random) {
            tally::fired("S1");
            tally::reach("the power undid a change of names");
        }
        state.is_betrayed = state.lies > 0;
        state.forget_unreachable();
    }

    /// The disk is replaced by an empty one.
    pub fn wipe(&self) {
        self.kill();
        let mut state = self.state();
        (state.names, state.files, state.unreadable) = Default::default();
        (state.lies, state.is_betrayed) = (0, false);
    }

    /// Whether the power went after the disk had lied about a sync: nobody knows what is on it.
    pub fn is_betrayed(&self) -> bool {
        self.state().is_betrayed
    }

    /// Changes what goes wrong from here on.
    pub fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// How many syncs were made to fail.
    pub fn failed_syncs(&self) -> u64 {
        self.state().failed_syncs
    }

    /// How many operations failed because they were made to.
    pub fn injected(&self) -> u64 {
        let state = self.state();
        state.failed_syncs + state.refused_writes + state.failed_transfers
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn inode(&self, path: &str) -> io::Result<Inode> {
        self.names.find(&normal(path)).ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn file(&mut self, path: &str) -> io::Result<&mut File> {
        let inode = self.inode(path)?;
        self.by_inode(inode)
    }

    fn by_inode(&mut self, inode: Inode) -> io::Result<&mut File> {
        self.files.get_mut(&inode).ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn directory(&self, directory: &str) -> io::Result<String> {
        let directory = normal(directory);
        if self.names.has_directory(&directory) { Ok(directory) } else { Err(ErrorKind::NotFound.into()) }
    }

    /// How many bytes still fit.
    fn room(&self) -> usize {
        let used: usize = self.files.values().map(|file| file.bytes().len()).sum();
        self.faults.capacity.saturating_sub(used)
    }

    fn create(&mut self, path: &str) -> io::Result<Inode> {
        let path = normal(path);
        self.directory(parent(&path))?;
        if let Some(inode) = self.names.find(&path) {
            self.by_inode(inode)?.set_length(0);
            return Ok(inode);
        }
        let inode = self.next_inode;
        self.next_inode += 1;
        self.files.insert(inode, File::default());
        self.names.create(path, inode);
        Ok(inode)
    }

    fn sync(&mut self, inode: Inode) -> io::Result<()> {
        let Some(file) = self.files.get_mut(&inode) else { return Err(ErrorKind::NotFound.into()) };
        if self.random.chance(self.faults.sync_fails_one_in) {
            file.fail_sync(&mut self.random);
            self.failed_syncs += 1;
            tally::fired("S3");
            return Err(io::Error::other(INJECTED));
        }
        if self.random.chance(self.faults.sync_lies_one_in) {
            self.lies += 1;
            tally::fired("S5");
            return Ok(());
        }
        file.sync();
        Ok(())
    }

    /// Whether a read may go on.
    fn may_read(&mut self, path: &str, offset: usize, length: usize) -> io::Result<()> {
        let inode = self.inode(path)?;
        let last = offset.saturating_add(length.saturating_sub(1)) / SECTOR;
        let is_unreadable = self.unreadable.range((inode, offset / SECTOR)..=(inode, last)).next().is_some();
        if self.random.chance(self.faults.read_fails_one_in) {
            self.failed_transfers += 1;
            tally::fired("S3");
            return Err(io::Error::other(INJECTED));
        }
        if is_unreadable { Err(io::Error::other(INJECTED)) } else { Ok(()) }
    }

    /// How much of a transfer the next system call moves.
    fn part(&mut self, length: usize) -> io::Result<usize> {
        if length == 0 || !self.random.chance(self.faults.short_one_in) {
            return Ok(length);
        }
        tally::fired("S3-short");
        if self.random.chance(2) { Err(ErrorKind::Interrupted.into()) } else { Ok(1 + self.random.index(length)) }
    }

    /// Reads as a process does that asks again for what a call has left out.
    fn read(&mut self, path: &str, offset: usize, length: usize) -> io::Result<Vec<u8>> {
        self.may_read(path, offset, length)?;
        let inode = self.inode(path)?;
        let there = self.by_inode(inode)?.bytes().len().saturating_sub(offset);
        transfer::read_all(offset as u64, length.min(there), |into, offset| {
            let length = self.part(into.len())?;
            let bytes = self.by_inode(inode)?.bytes();
            into[..length].copy_from_slice(&bytes[size(offset)..size(offset) + length]);
            Ok(length)
        })
    }

    fn forget_unreachable(&mut self) {
        let reachable = self.names.reachable();
        self.files.retain(|inode, _| reachable.contains(inode));
    }

    /// How long an operation takes.
    fn delay(&mut self) -> Duration {
        let usual = Duration::from_micros(self.random.between(20, 400));
        if self.random.chance(self.faults.stall_one_in) {
            let stall_ms_max = self.faults.stall_ms_max.max(1);
            let stall_ms = self.random.between(1, stall_ms_max);
            tally::fired("S6");
            if stall_ms > 1000 {
                tally::reach("the disk stalled for over a second");
            }
            return usual + Duration::from_millis(stall_ms);
        }
        usual
    }
}

impl SimDisk {
    /// The state, if this life still lasts.
    fn alive(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.platter.state();
        if state.life == self.life { Ok(state) } else { Err(dead()) }
    }

    /// Takes the time a disk takes, then acts, if the process is still alive by then.
    fn after_delay<'a, T: Send + 'a>(
        &'a self,
        act: impl FnOnce(&mut State) -> io::Result<T> + Send + 'a,
    ) -> Operation<'a, T> {
        Box::pin(async move {
            let delay = self.alive()?.delay();
            time::sleep(delay).await;
            act(&mut *self.alive()?)
        })
    }

    fn log_file(&self, inode: Inode, length: usize) -> LogFile {
        LogFile::new(Box::new(log::SimFile::new(self.clone(), inode)), length as u64)
    }
}

fn dead() -> io::Error {
    io::Error::other("the process that owned this is dead")
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl Disk for SimDisk {
    fn read<'a>(&'a self, path: &'a str) -> Operation<'a, Vec<u8>> {
        self.after_delay(move |state| state.read(path, 0, usize::MAX))
    }

    fn read_range<'a>(&'a self, path: &'a str, offset: u64, length: usize) -> Operation<'a, Vec<u8>> {
        self.after_delay(move |state| state.read(path, size(offset), length))
    }

    fn length<'a>(&'a self, path: &'a str) -> Operation<'a, u64> {
        self.after_delay(move |state| Ok(state.file(path)?.bytes().len() as u64))
    }

    fn list<'a>(&'a self, directory: &'a str) -> Operation<'a, Vec<String>> {
        self.after_delay(move |state| {
            let directory = state.directory(directory)?;
            Ok(state.names.list(&directory))
        })
    }

    fn create<'a>(&'a self, path: &'a str) -> Operation<'a, LogFile> {
        self.after_delay(move |state| Ok(self.log_file(state.create(path)?, 0)))
    }

    fn append<'a>(&'a self, path: &'a str) -> Operation<'a, LogFile> {
        self.after_delay(move |state| {
            let inode = state.inode(path)?;
            let length = state.by_inode(inode)?.bytes().len();
            Ok(self.log_file(inode, length))
        })
    }

    fn truncate<'a>(&'a self, path: &'a str, length: u64) -> Operation<'a, ()> {
        self.after_delay(move |state| {
            let inode = state.inode(path)?;
            state.by_inode(inode)?.set_length(size(length));
            state.sync(inode)
        })
    }

    fn rename<'a>(&'a self, from: &'a str, to: &'a str) -> Operation<'a, ()> {
        self.after_delay(move |state| {
            let to = normal(to);
            state.directory(parent(&to))?;
            let moved = state.names.rename(normal(from), to);
            if moved { Ok(()) } else { Err(ErrorKind::NotFound.into()) }
        })
    }

    fn unlink<'a>(&'a self, path: &'a str) -> Operation<'a, ()> {
        self.after_delay(move |state| {
            let found = state.names.unlink(normal(path));
            if found { Ok(()) } else { Err(ErrorKind::NotFound.into()) }
        })
    }

    fn sync_directory<'a>(&'a self, directory: &'a str) -> Operation<'a, ()> {
        self.after_delay(move |state| {
            let directory = state.directory(directory)?;
            state.names.sync(&directory);
            Ok(())
        })
    }

    fn create_directory<'a>(&'a self, directory: &'a str) -> Operation<'a, ()> {
        self.after_delay(move |state| {
            state.names.create_directory(&normal(directory));
            Ok(())
        })
    }

    fn lock_directory<'a>(&'a self, directory: &'a str) -> Operation<'a, DirectoryLock> {
        self.after_delay(move |state| {
            let directory = state.directory(directory)?;
            if !state.locks.insert(directory.clone()) {
                return Err(ErrorKind::WouldBlock.into());
            }
            Ok(DirectoryLock::new(HeldLock { disk: self.clone(), directory }))
        })
    }
}

/// Releases the lock, unless its life has ended and the lock with it.
struct HeldLock {
    disk: SimDisk,
    directory: String,
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        if let Ok(mut state) = self.disk.alive() {
            state.locks.remove(&self.directory);
        }
    }
}

#[cfg(all(test, not(madsim)))]
mod tests;
