//! The tools beside the server: what each is asked with, and what it does. They work on files, not on a running server.

use crate::check_aof::check_aof;
use crate::check_rdb::check_rdb;
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
}

impl Tool {
    /// How the tool of this name is called, if there is one.
    pub fn usage(name: &[u8]) -> Option<&'static str> {
        Some(match name {
            b"check-aof" => "check-aof [--fix] FILE",
            b"check-rdb" => "check-rdb FILE",
            _ => return None,
        })
    }

    /// Reads what follows the tool's name.
    pub fn parse(name: &[u8], words: &[Vec<u8>]) -> Option<Self> {
        let (flags, paths): (Vec<&Vec<u8>>, Vec<&Vec<u8>>) = words.iter().partition(|word| word.starts_with(b"-"));
        let flags: Vec<&[u8]> = flags.into_iter().map(Vec::as_slice).collect();
        let paths: Vec<PathBuf> = paths.into_iter().map(|path| OsString::from_vec(path.clone()).into()).collect();
        Some(match (name, flags.as_slice(), paths.as_slice()) {
            (b"check-aof", [], [file]) => Self::CheckAof { fix: false, file: file.clone() },
            (b"check-aof", [b"--fix"], [file]) => Self::CheckAof { fix: true, file: file.clone() },
            (b"check-rdb", [], [file]) => Self::CheckRdb { file: file.clone() },
            _ => return None,
        })
    }

    /// Does it; whether all is well.
    pub fn run(&self, out: &mut impl Write) -> anyhow::Result<bool> {
        match self {
            Self::CheckAof { fix, file } => check_aof(file, *fix, out),
            Self::CheckRdb { file } => check_rdb(file, out),
        }
    }
}
