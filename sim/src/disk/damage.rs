//! What happens to bytes at rest: a bit rots, a sector fails, a write was lost or went somewhere else (RELIABILITY D14, D15).
//! What lies in the log's directory is damaged in one place, and can be put right again.
//!
//! The last lines of a growing file are spared by all but single bits: a lost last sector is a torn write to whoever looks, and
//! no single disk can tell more.

use std::io;

use super::file::SECTOR;
use super::names::{Inode, parent};
use super::{Platter, State};
use crate::random::Random;

/// The directory that is damaged.
const DIRECTORY: &str = "appendonlydir";

/// How much of the end of a growing file is spared.
const SPARED: usize = 128;

/// A damage, and how to undo it.
#[derive(Debug, PartialEq, Eq)]
pub enum Damage {
    /// Other bytes are there.
    Changed {
        /// Whose.
        inode: Inode,
        /// Its name.
        path: String,
        /// What happened.
        how: &'static str,
        /// Where.
        offset: usize,
        /// What was there.
        before: Vec<u8>,
    },
    /// A sector cannot be read.
    Unreadable {
        /// Whose.
        inode: Inode,
        /// Its name.
        path: String,
        /// Which.
        sector: usize,
    },
}

impl Platter {
    /// Damages a file of the log, if there is one.
    pub fn damage(&self, random: &mut Random) -> Option<Damage> {
        self.state().damage(random)
    }

    /// Puts right what was damaged.
    pub fn undo(&self, damage: Damage) {
        let mut state = self.state();
        match damage {
            Damage::Changed { inode, offset, before, .. } => {
                if let Ok(file) = state.by_inode(inode) {
                    file.damage(offset, &before);
                }
            }
            Damage::Unreadable { inode, sector, .. } => _ = state.unreadable.remove(&(inode, sector)),
        }
    }
}

impl State {
    fn damage(&mut self, random: &mut Random) -> Option<Damage> {
        let names: Vec<(String, Inode)> = self.names.all().filter(|(path, _)| parent(path) == DIRECTORY).collect();
        let sizes = names.into_iter().filter_map(|(path, inode)| {
            let length = self.files.get(&inode).map_or(0, |file| file.bytes().len());
            (length > 0).then_some((path, inode, length))
        });
        let files: Vec<_> = sizes.collect();
        if files.is_empty() {
            return None;
        }
        let (path, inode, length) = random.pick(&files).clone();
        let whole = if path.ends_with(".incr.aof") { length.saturating_sub(SPARED) } else { length };
        let sector = random.index(whole.div_ceil(SECTOR).max(1));
        let (from, to) = (sector * SECTOR, ((sector + 1) * SECTOR).min(whole));
        if whole == 0 || random.chance(3) {
            let (offset, bit) = (random.index(length), random.below(8));
            let flipped = self.bytes(inode, offset, offset + 1).iter().map(|byte| byte ^ (1 << bit)).collect();
            return self.change(path, inode, "a bit flipped", offset, flipped);
        }
        if random.chance(3) {
            self.unreadable.insert((inode, sector));
            return Some(Damage::Unreadable { inode, path, sector });
        }
        let (other, other_length) = {
            let (_, other, length) = random.pick(&files);
            (*other, *length)
        };
        let start = random.index(other_length.div_ceil(SECTOR)) * SECTOR;
        let (how, mut put) = if random.chance(2) {
            ("a write was lost", Vec::new())
        } else {
            ("a write was misdirected", self.bytes(other, start, start + SECTOR))
        };
        put.resize(to - from, 0);
        let same = put == self.bytes(inode, from, to);
        if same { None } else { self.change(path, inode, how, from, put) }
    }

    fn bytes(&self, inode: Inode, from: usize, to: usize) -> Vec<u8> {
        let bytes = self.files.get(&inode).map_or(&[][..], |file| file.bytes());
        bytes.get(from..to.min(bytes.len())).unwrap_or_default().to_vec()
    }

    fn change(&mut self, path: String, inode: Inode, how: &'static str, offset: usize, put: Vec<u8>) -> Option<Damage> {
        let changed: io::Result<Vec<u8>> = self.by_inode(inode).map(|file| file.damage(offset, &put));
        changed.ok().map(|before| Damage::Changed { inode, path, how, offset, before })
    }
}
