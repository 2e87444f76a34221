//! `simurgh check-aof [--fix] FILE`: how far a file of the log is good, and, when asked, cuts it there.
#![expect(clippy::disallowed_methods, reason = "a tool that reads one file, not a part of the node")]

use anyhow::Context as _;
use simurgh_storage::aof::check::{Check, Verdict};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

/// Bytes that are read at once.
const PIECE: usize = 1 << 20;

/// Reports on the file; whether it is good, or has been made good.
pub fn check_aof(path: &Path, fix: bool, out: &mut impl Write) -> anyhow::Result<bool> {
    let mut file = File::open(path).with_context(|| format!("{}", path.display()))?;
    let (mut check, mut piece) = (Check::default(), vec![0; PIECE]);
    loop {
        let count = file.read(&mut piece)?;
        if count == 0 {
            break;
        }
        check.feed(&piece[..count]);
    }
    let report = check.finish();
    writeln!(out, "{report}")?;
    let Some(length) = report.cut_to() else { return Ok(report.verdict == Verdict::Sound) };
    if !fix {
        writeln!(out, "make a backup, then run this with --fix to cut the file to {length} bytes")?;
        return Ok(false);
    }
    let file = OpenOptions::new().write(true).open(path)?;
    file.set_len(length)?;
    file.sync_all()?;
    writeln!(out, "cut to {length} bytes")?;
    Ok(true)
}
