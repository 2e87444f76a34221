//! The tools beside the server: what each is asked with, and what it does. They work on files, not on a running server.

use crate::check_aof::check_aof;
use crate::check_rdb::check_rdb;
use crate::convert::convert;
use crate::copy_log::copy_log;
use simurgh_storage::aof::until::Until;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A tool, and what it is to be done to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tool {
    /// The state of a log, which is mended with `fix`.
    CheckAof {
        /// Cut a torn end off.
        fix: bool,
        /// The manifest, or a file of the log.
        file: PathBuf,
    },
    /// What is in an RDB file.
    CheckRdb {
        /// The file.
        file: PathBuf,
    },
    /// From an RDB file to a log, or back.
    Convert {
        /// The file, or the log's folder.
        source: PathBuf,
        /// What is to be made.
        target: PathBuf,
    },
    /// A sealed copy of a log, as it is or as it was.
    Copy {
        /// The log's folder.
        source: PathBuf,
        /// The folder that is to be made.
        target: PathBuf,
        /// How far it is to go.
        until: Option<Until>,
    },
}

impl Tool {
    /// How the tool of this name is called, if there is one.
    pub fn usage(name: &[u8]) -> Option<&'static str> {
        Some(match name {
            b"check-aof" => "check-aof [--fix] FILE",
            b"check-rdb" => "check-rdb FILE",
            b"convert" => "convert SOURCE TARGET",
            b"backup" => "backup FOLDER TARGET",
            b"restore" => "restore --to SECONDS|@POSITION FOLDER TARGET",
            _ => return None,
        })
    }

    /// Reads what follows the tool's name.
    pub fn parse(name: &[u8], words: &[Vec<u8>]) -> Option<Self> {
        if let [to, moment, source, target] = words
            && name == b"restore"
            && to == b"--to"
        {
            return Some(Self::Copy { source: path(source), target: path(target), until: Some(moment_of(moment)?) });
        }
        let (flags, paths): (Vec<&Vec<u8>>, Vec<&Vec<u8>>) = words.iter().partition(|word| word.starts_with(b"-"));
        let flags: Vec<&[u8]> = flags.into_iter().map(Vec::as_slice).collect();
        let paths: Vec<PathBuf> = paths.into_iter().map(|word| path(word)).collect();
        Some(match (name, flags.as_slice(), paths.as_slice()) {
            (b"check-aof", [], [file]) => Self::CheckAof { fix: false, file: file.clone() },
            (b"check-aof", [b"--fix"], [file]) => Self::CheckAof { fix: true, file: file.clone() },
            (b"check-rdb", [], [file]) => Self::CheckRdb { file: file.clone() },
            (b"convert", [], [source, target]) => Self::Convert { source: source.clone(), target: target.clone() },
            (b"backup", [], [source, target]) => {
                Self::Copy { source: source.clone(), target: target.clone(), until: None }
            }
            _ => return None,
        })
    }

    /// Does it; whether all is well.
    pub fn run(&self, out: &mut impl Write) -> anyhow::Result<bool> {
        match self {
            Self::CheckAof { fix, file } => check_aof(file, *fix, out),
            Self::CheckRdb { file } => check_rdb(file, out),
            Self::Convert { source, target } => convert(source, target, out),
            Self::Copy { source, target, until } => copy_log(source, target, *until, out),
        }
    }
}

fn path(word: &[u8]) -> PathBuf {
    OsString::from_vec(word.to_owned()).into()
}

/// A second since 1970, or a position of the log behind an `@`.
fn moment_of(word: &[u8]) -> Option<Until> {
    let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse().ok();
    match word.strip_prefix(b"@") {
        Some(digits) => number(digits).map(Until::Position),
        None => number(word).map(Until::Second),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Option<Tool> {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        Tool::parse(&words[0], &words[1..])
    }

    #[test]
    fn tools_take_what_they_need_and_nothing_else() {
        let copy = |until| Some(Tool::Copy { source: "a".into(), target: "b".into(), until });
        assert_eq!(parsed(&["backup", "a", "b"]), copy(None));
        assert_eq!(parsed(&["restore", "--to", "1700000000", "a", "b"]), copy(Some(Until::Second(1_700_000_000))));
        assert_eq!(parsed(&["restore", "--to", "@77", "a", "b"]), copy(Some(Until::Position(77))));
        assert_eq!(parsed(&["convert", "a", "b"]), Some(Tool::Convert { source: "a".into(), target: "b".into() }));
        assert_eq!(parsed(&["check-rdb", "a"]), Some(Tool::CheckRdb { file: "a".into() }));
        for words in [
            &["backup", "a"][..],
            &["restore", "a", "b"],
            &["restore", "--to", "soon", "a", "b"],
            &["restore", "--to", "@", "a", "b"],
            &["convert", "a"],
            &["check-rdb", "--fix", "a"],
        ] {
            assert_eq!(parsed(words), None, "{words:?}");
        }
    }
}
