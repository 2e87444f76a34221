//! One file of the simulated disk: what reading it shows now, and what the platter holds.
//!
//! ```text
//!   cache     what reads see              aaaa bbbb CCCC DDDD ee
//!   dirty     sectors not yet written               ^^^^ ^^^^ ^^
//!   platter   what power loss leaves      aaaa bbbb cccc
//! ```
//!
//! A sync copies the dirty sectors and the length to the platter. Losing power draws, for each dirty sector by itself,
//! whether it got there, so writes are torn at 512 bytes and reordered; and draws how much of a changed length got there,
//! so a tail is missing, or there but zeros, or (rarely, as on file systems that do not order data before length) garbage.

use std::collections::BTreeSet;

use crate::random::Random;

/// What a disk writes whole or not at all.
pub const SECTOR: usize = 512;

/// After power loss, a sector in a grown tail that was never written holds garbage, not zeros, once in this many times.
const GARBAGE_ONE_IN: u64 = 16;

/// A file's bytes.
#[derive(Debug, Default, Clone)]
pub struct File {
    cache: Vec<u8>,
    platter: Vec<u8>,
    dirty: BTreeSet<usize>,
    /// The cache's length is news to the platter.
    length_dirty: bool,
}

/// What a file has lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// Something of it.
    pub is_lost: bool,
    /// Something of it, and something that was written with it is there.
    pub is_torn: bool,
}

impl File {
    /// What reading shows.
    pub fn bytes(&self) -> &[u8] {
        &self.cache
    }

    /// What is certain to survive.
    #[cfg(test)]
    pub fn platter(&self) -> &[u8] {
        &self.platter
    }

    /// Writes into the cache.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if end > self.cache.len() {
            self.set_length(end);
        }
        self.cache[offset..end].copy_from_slice(bytes);
        if !bytes.is_empty() {
            self.dirty.extend(offset / SECTOR..=(end - 1) / SECTOR);
        }
    }

    /// Cuts or extends the cache.
    pub fn set_length(&mut self, length: usize) {
        if length == self.cache.len() {
            return;
        }
        let changed_from = length.min(self.cache.len());
        self.cache.resize(length, 0);
        self.length_dirty = true;
        self.dirty.extend(changed_from / SECTOR..length.div_ceil(SECTOR));
    }

    /// Everything reaches the platter.
    pub fn sync(&mut self) {
        self.platter.resize(self.cache.len(), 0);
        for sector in std::mem::take(&mut self.dirty) {
            copy_sector(&self.cache, &mut self.platter, sector);
        }
        self.length_dirty = false;
    }

    /// A failed sync: some sectors reach the platter, and the others never will, because their pages are now marked clean.
    pub fn fail_sync(&mut self, random: &mut Random) {
        for sector in std::mem::take(&mut self.dirty) {
            if random.chance(2) {
                copy_sector(&self.cache, &mut self.platter, sector);
            }
        }
        self.length_dirty = false;
    }

    /// The power goes: what was lost of it.
    pub fn lose_power(&mut self, random: &mut Random) -> Loss {
        let before = self.platter.len();
        if self.length_dirty {
            self.platter.resize(surviving_length(before, self.cache.len(), random), 0);
        }
        fill_garbage(&mut self.platter, before, &self.dirty, random);
        let lost_one_in = random.between(1, 4);
        let (mut kept, mut missing) = (0, 0);
        for sector in std::mem::take(&mut self.dirty) {
            if random.chance(lost_one_in) {
                missing += 1;
            } else {
                copy_sector(&self.cache, &mut self.platter, sector);
                kept += 1;
            }
        }
        let is_lost = self.cache != self.platter;
        let is_torn = is_lost && kept > 0 && (missing > 0 || self.cache.len() != self.platter.len());
        self.cache.clone_from(&self.platter);
        self.length_dirty = false;
        Loss { is_lost, is_torn }
    }

    /// Changes bytes at rest, as a disk does: the cache and the platter both show it after a restart. What was there.
    pub fn damage(&mut self, offset: usize, damaged: &[u8]) -> Vec<u8> {
        let before = self.cache.get(offset..).map(|rest| rest[..damaged.len().min(rest.len())].to_vec());
        for bytes in [&mut self.cache, &mut self.platter] {
            if let Some(rest) = bytes.get_mut(offset..) {
                let length = damaged.len().min(rest.len());
                rest[..length].copy_from_slice(&damaged[..length]);
            }
        }
        before.unwrap_or_default()
    }
}

/// The old length, the new one, or (when it grew) somewhere between.
fn surviving_length(old: usize, new: usize, random: &mut Random) -> usize {
    match random.below(3) {
        0 => old,
        1 => new,
        _ if new > old => old + random.index(new - old),
        _ => new,
    }
}

fn fill_garbage(platter: &mut [u8], from: usize, dirty: &BTreeSet<usize>, random: &mut Random) {
    for &sector in dirty.range(from.div_ceil(SECTOR)..) {
        if random.chance(GARBAGE_ONE_IN) {
            let range = sector_range(platter.len(), sector);
            for byte in &mut platter[range] {
                *byte = random.bits().to_le_bytes()[0];
            }
        }
    }
}

fn sector_range(length: usize, sector: usize) -> std::ops::Range<usize> {
    (sector * SECTOR).min(length)..((sector + 1) * SECTOR).min(length)
}

/// Copies what both have of a sector.
fn copy_sector(from: &[u8], to: &mut [u8], sector: usize) {
    let range = sector_range(from.len().min(to.len()), sector);
    to[range.clone()].copy_from_slice(&from[range]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn synced(bytes: &[u8]) -> File {
        let mut file = File::default();
        file.write(0, bytes);
        file.sync();
        file
    }

    #[test]
    fn synced_bytes_survive_any_power_loss() {
        for seed in 0..200 {
            let mut file = synced(&[7; 2000]);
            file.write(2000, &[9; 3000]);
            file.lose_power(&mut Random::of(seed, ""));
            assert!(file.bytes().len() >= 2000);
            assert_eq!(file.bytes()[..2000], [7; 2000]);
        }
    }

    /// The canary: a disk that never loses anything would make every durability test pass.
    #[test]
    fn unsynced_bytes_are_lost_torn_zeroed_and_reordered() {
        let (mut lost, mut kept, mut zeroed, mut reordered, mut garbage, mut cut) = (0, 0, 0, 0, 0, 0);
        for seed in 0..500 {
            let mut file = synced(&[]);
            file.write(0, &[9; 4 * SECTOR]);
            file.lose_power(&mut Random::of(seed, ""));
            let bytes = file.bytes();
            let whole = |sector: usize| bytes.get(sector * SECTOR..(sector + 1) * SECTOR);
            lost += u32::from(bytes.is_empty());
            kept += u32::from(bytes == [9; 4 * SECTOR]);
            zeroed += u32::from(bytes.contains(&0));
            cut += u32::from(!bytes.is_empty() && bytes.len() < 4 * SECTOR);
            garbage += u32::from(bytes.iter().any(|byte| *byte != 0 && *byte != 9));
            reordered += u32::from(whole(0) != Some(&[9; SECTOR][..]) && whole(1) == Some(&[9; SECTOR][..]));
        }
        for (what, times) in [
            ("lost", lost),
            ("kept", kept),
            ("zeroed", zeroed),
            ("cut", cut),
            ("garbage", garbage),
            ("reordered", reordered),
        ] {
            assert!(times > 0, "never {what} in 500 seeds");
        }
    }

    /// D3: after the failed sync, a good one does not bring the bytes back.
    #[test]
    fn d3_a_failed_sync_marks_pages_clean() {
        let mut missing = 0;
        for seed in 0..50 {
            let mut file = synced(&[7; SECTOR]);
            file.write(SECTOR, &[9; SECTOR]);
            file.fail_sync(&mut Random::of(seed, ""));
            file.sync();
            assert_eq!(file.bytes()[SECTOR..], [9; SECTOR], "reading still shows them");
            file.lose_power(&mut Random::of(seed, "power"));
            missing += u32::from(file.bytes().get(SECTOR..) != Some(&[9; SECTOR][..]));
        }
        assert!(missing > 0);
    }

    #[test]
    fn a_cut_is_durable_once_synced_and_may_be_undone_before() {
        let (mut undone, mut done) = (0, 0);
        for seed in 0..50 {
            let mut file = synced(&[7; 1000]);
            file.set_length(10);
            assert_eq!(file.bytes(), [7; 10]);
            let mut crashed = file.clone();
            crashed.lose_power(&mut Random::of(seed, ""));
            undone += u32::from(crashed.bytes().len() == 1000);
            done += u32::from(crashed.bytes().len() == 10);
            file.sync();
            file.lose_power(&mut Random::of(seed, ""));
            assert_eq!(file.bytes(), [7; 10]);
        }
        assert!(undone > 0 && done > 0);
    }

    #[test]
    fn damage_is_at_rest() {
        let mut file = synced(&[0; 4]);
        assert_eq!(file.damage(2, &[8]), [0]);
        assert_eq!(file.damage(100, &[1]), []);
        file.lose_power(&mut Random::of(0, ""));
        assert_eq!(file.platter(), [0, 0, 8, 0]);
    }
}
