//! `simurgh check-aof [--fix] FILE`: how far a file of the log is good, and, when asked, cuts it there. Of a manifest, all files that
//! it names are looked at, bases too, and whether each goes on from the one before.
#![expect(clippy::disallowed_methods, reason = "a tool that reads files, not a part of the node")]

use anyhow::Context as _;
use simurgh_storage::aof::check::{Check, Report, Verdict};
use simurgh_storage::aof::manifest::{FileKind, Manifest};
use simurgh_storage::aof::replay::Before;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

/// Bytes that are read at once.
const PIECE: usize = 1 << 20;

/// Reports on the file, or on those that a manifest names; whether all is good, or has been made good.
pub fn check_aof(path: &Path, fix: bool, out: &mut impl Write) -> anyhow::Result<bool> {
    if path.extension().is_some_and(|extension| extension == "manifest") {
        return check_all(path, fix, out);
    }
    let report = read(path, Before::Unknown)?;
    writeln!(out, "{report}")?;
    mend(path, &report, fix, out)
}

/// Checks every file that counts. Only the last may have a torn end: the server cuts no other.
fn check_all(path: &Path, fix: bool, out: &mut impl Write) -> anyhow::Result<bool> {
    let text = std::fs::read(path).with_context(|| format!("{}", path.display()))?;
    let manifest = Manifest::parse(&text).with_context(|| format!("{}", path.display()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let files: Vec<_> = manifest.data_files().collect();
    let (mut before, mut is_good) = (Before::Unknown, true);
    for (index, file) in files.iter().enumerate() {
        let path = folder.join(&file.name);
        writeln!(out, "--- {}", file.name)?;
        let report = read(&path, before)?;
        writeln!(out, "{report}")?;
        if file.kind == FileKind::Increment {
            before = report.then;
        }
        if file.whole.is_some_and(|written| written != report.whole) {
            writeln!(
                out,
                "result: DAMAGED: it is not what the manifest says (simurgh-whole); this cannot be mended by cutting the file"
            )?;
            is_good = false;
            continue;
        }
        if index + 1 == files.len() {
            is_good &= mend(&path, &report, fix, out)?;
        } else if report.verdict != Verdict::Sound {
            writeln!(out, "this is not the last file, so cutting it would not help: nothing that follows would fit")?;
            is_good = false;
        }
    }
    writeln!(out, "--- {}: {}", path.display(), if is_good { "all good" } else { "NOT good" })?;
    Ok(is_good)
}

/// Reads one file, before which there is this.
pub fn read(path: &Path, before: Before) -> anyhow::Result<Report> {
    let mut file = File::open(path).with_context(|| format!("{}", path.display()))?;
    let (mut check, mut piece) = (Check::after(before), vec![0; PIECE]);
    loop {
        let count = file.read(&mut piece)?;
        if count == 0 {
            break;
        }
        check.feed(&piece[..count]);
    }
    Ok(check.finish())
}

fn mend(path: &Path, report: &Report, fix: bool, out: &mut impl Write) -> anyhow::Result<bool> {
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
