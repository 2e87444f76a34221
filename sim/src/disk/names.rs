//! The names of the simulated disk. Creating, renaming and unlinking take effect at once for whoever looks, but reach the
//! platter only when their directory is synced; until then a power loss undoes them, in part: as a journal does (a prefix
//! of them stays) or as a file system without one may (any of them stays).

use std::collections::{BTreeMap, BTreeSet};

use crate::random::Random;

/// Which file a name points to.
pub type Inode = u64;

/// A change of names that the platter does not have yet.
#[derive(Debug, Clone)]
enum Change {
    Create { path: String, inode: Inode },
    Rename { from: String, to: String, inode: Inode },
    Unlink { path: String },
}

/// The names now and on the platter.
#[derive(Debug, Default)]
pub struct Names {
    now: BTreeMap<String, Inode>,
    platter: BTreeMap<String, Inode>,
    pending: Vec<Change>,
    /// Directories are created durably, as the seam promises.
    directories: BTreeSet<String>,
}

/// The directory part of a path; the root is "".
pub fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// A path without empty and `.` parts, so that one file has one name.
pub fn normal(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    parts.join("/")
}

impl Names {
    /// The file at `path`.
    pub fn find(&self, path: &str) -> Option<Inode> {
        self.now.get(path).copied()
    }

    /// Every name of a file, and the file.
    pub fn all(&self) -> impl Iterator<Item = (String, Inode)> {
        self.now.iter().map(|(path, inode)| (path.clone(), *inode))
    }

    /// Whether a directory is there.
    pub fn has_directory(&self, directory: &str) -> bool {
        directory.is_empty() || self.directories.contains(directory)
    }

    /// Creates a directory and those above it.
    pub fn create_directory(&mut self, directory: &str) {
        let mut directory = directory;
        while !directory.is_empty() {
            self.directories.insert(directory.to_owned());
            directory = parent(directory);
        }
    }

    /// The names in a directory, sorted.
    pub fn list(&self, directory: &str) -> Vec<String> {
        let all = self.now.keys().chain(&self.directories);
        let inside = all.filter(|path| !path.is_empty() && parent(path) == directory);
        let names: BTreeSet<&str> = inside.map(|path| path.rsplit('/').next().unwrap_or(path)).collect();
        names.into_iter().map(str::to_owned).collect()
    }

    /// Every file that is reachable now or would be after a power loss: its bytes must be kept.
    pub fn reachable(&self) -> BTreeSet<Inode> {
        let pending = self.pending.iter().filter_map(|change| match change {
            Change::Create { inode, .. } | Change::Rename { inode, .. } => Some(*inode),
            Change::Unlink { .. } => None,
        });
        self.now.values().chain(self.platter.values()).copied().chain(pending).collect()
    }

    /// Creates a name.
    pub fn create(&mut self, path: String, inode: Inode) {
        self.change(Change::Create { path, inode });
    }

    /// Moves a name over another; false when there is nothing to move.
    pub fn rename(&mut self, from: String, to: String) -> bool {
        let Some(inode) = self.find(&from) else { return false };
        self.change(Change::Rename { from, to, inode });
        true
    }

    /// Removes a name; false when it is not there.
    pub fn unlink(&mut self, path: String) -> bool {
        let found = self.find(&path).is_some();
        if found {
            self.change(Change::Unlink { path });
        }
        found
    }

    fn change(&mut self, change: Change) {
        apply(&mut self.now, &change);
        self.pending.push(change);
    }

    /// The changes in `directory` reach the platter.
    pub fn sync(&mut self, directory: &str) {
        let inside = |change: &Change| match change {
            Change::Create { path, .. } | Change::Unlink { path } => parent(path) == directory,
            Change::Rename { from, to, .. } => parent(from) == directory || parent(to) == directory,
        };
        for change in self.pending.extract_if(.., |change| inside(change)) {
            apply(&mut self.platter, &change);
        }
    }

    /// What is left when the power goes, and whether anything was lost.
    pub fn lose_power(&mut self, random: &mut Random) -> bool {
        let pending = std::mem::take(&mut self.pending);
        if random.chance(2) {
            let kept = random.index(pending.len() + 1);
            pending[..kept].iter().for_each(|change| apply(&mut self.platter, change));
        } else {
            pending.iter().filter(|_| random.chance(2)).for_each(|change| apply(&mut self.platter, change));
        }
        let is_lost = self.now != self.platter;
        self.now.clone_from(&self.platter);
        is_lost
    }
}

/// Applies one change. A rename moves the file it moved, even if the change that gave it its first name was lost: both
/// names being there, or only the new one, is what file systems leave.
fn apply(names: &mut BTreeMap<String, Inode>, change: &Change) {
    match change {
        Change::Create { path, inode } => {
            names.insert(path.clone(), *inode);
        }
        Change::Rename { from, to, inode } => {
            if names.get(from) == Some(inode) {
                names.remove(from);
            }
            names.insert(to.clone(), *inode);
        }
        Change::Unlink { path } => {
            names.remove(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn synced(paths: &[&str]) -> Names {
        let mut names = Names::default();
        for (inode, path) in paths.iter().enumerate() {
            names.create((*path).to_owned(), inode as Inode);
        }
        names.sync("");
        names
    }

    /// D8: a rename without a directory sync may be undone, and is never half done.
    #[test]
    fn d8_an_unsynced_rename_is_there_or_not() {
        let (mut old, mut new) = (0, 0);
        for seed in 0..100 {
            let mut names = synced(&["manifest", "temp"]);
            assert!(names.rename("temp".into(), "manifest".into()));
            names.lose_power(&mut Random::of(seed, ""));
            match (names.find("manifest"), names.find("temp")) {
                (Some(0), Some(1)) => old += 1,
                (Some(1), None) => new += 1,
                other => panic!("half a rename: {other:?}"),
            }
        }
        assert!(old > 0 && new > 0);
    }

    #[test]
    fn synced_names_survive_and_unsynced_ones_may_not() {
        let (mut created, mut back) = (0, 0);
        for seed in 0..100 {
            let mut names = synced(&["a", "b"]);
            names.create("c".into(), 7);
            assert!(names.unlink("b".into()) && !names.unlink("b".into()));
            names.lose_power(&mut Random::of(seed, ""));
            assert_eq!(names.find("a"), Some(0));
            created += u32::from(names.find("c").is_some());
            back += u32::from(names.find("b").is_some());
        }
        assert!(created > 0 && created < 100 && back > 0 && back < 100);
    }

    #[test]
    fn a_sync_is_of_its_directory_alone() {
        let mut names = Names::default();
        names.create_directory("x/y");
        names.create("x/y/file".into(), 1);
        names.create("x/other".into(), 2);
        names.sync("x/y");
        let lost = (0..50).any(|seed| {
            let mut names =
                Names { pending: names.pending.clone(), platter: names.platter.clone(), ..Names::default() };
            names.lose_power(&mut Random::of(seed, ""));
            assert_eq!(names.find("x/y/file"), Some(1));
            names.find("x/other").is_none()
        });
        assert!(lost);
        assert_eq!(names.list("x"), ["other", "y"]);
        assert_eq!(normal("./x//y/"), "x/y");
    }
}
