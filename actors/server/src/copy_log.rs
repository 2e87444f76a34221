//! `simurgh backup SOURCE TARGET` and `simurgh restore --to SECONDS|@POSITION SOURCE TARGET`: a sealed copy of a log.
//!
//! Files of a log only grow, so a copy may be made while the server writes: it ends at the last seal that was found. What a rewrite
//! deletes meanwhile is noticed, and the copy begun anew with the files that took its place.
#![expect(clippy::disallowed_methods, reason = "a tool that copies files, not a part of the node")]

use crate::check_aof::read;
use crate::convert::base_facts;
use anyhow::{Context as _, bail, ensure};
use simurgh_storage::aof::check::Verdict;
use simurgh_storage::aof::manifest::{FileKind, Manifest};
use simurgh_storage::aof::replay::Before;
use simurgh_storage::aof::until::{Finder, Place, Until};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Bytes that are read at once.
const PIECE: usize = 1 << 20;
/// How often a copy is begun anew because a rewrite took the files away.
const TRIES: usize = 10;

/// Copies the log in `source`, up to a moment if one is given, into `target`, which must not be there yet.
pub fn copy_log(source: &Path, target: &Path, until: Option<Until>, out: &mut impl Write) -> anyhow::Result<bool> {
    ensure!(!target.exists(), "{} is there already", target.display());
    let path = manifest_of(source)?;
    for _ in 0..TRIES {
        let text = std::fs::read(&path).with_context(|| format!("{}", path.display()))?;
        let manifest = Manifest::parse(&text).with_context(|| format!("{}", path.display()))?;
        std::fs::create_dir_all(target).with_context(|| format!("{}", target.display()))?;
        let copied = copy_files(source, target, &manifest, until, out);
        let now = std::fs::read(&path).with_context(|| format!("{}", path.display()))?;
        let is_current = Manifest::parse(&now).is_ok_and(|now| now.base() == manifest.base());
        match copied {
            Ok(kept) => {
                let name = path.file_name().context("a manifest has a name")?;
                write_durably(&target.join(name), &kept.format())?;
                File::open(target)?.sync_all()?;
                let is_good = crate::check_aof::check_aof(&target.join(name), false, out)?;
                return Ok(is_good);
            }
            Err(error) if is_current => {
                std::fs::remove_dir_all(target)?;
                return Err(error);
            }
            Err(_) => {
                writeln!(out, "a rewrite replaced the files; beginning anew")?;
                std::fs::remove_dir_all(target)?;
            }
        }
    }
    bail!("the files were replaced {TRIES} times while they were copied")
}

/// The manifest in a folder: there must be one.
pub fn manifest_of(folder: &Path) -> anyhow::Result<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("{}", folder.display()))? {
        let path = entry?.path();
        let is_temporary = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("temp-"));
        if path.extension().is_some_and(|extension| extension == "manifest") && !is_temporary {
            found.push(path);
        }
    }
    match found.as_slice() {
        [path] => Ok(path.clone()),
        _ => bail!("{}: {} manifests where one is wanted", folder.display(), found.len()),
    }
}

/// Copies what the manifest names; the manifest of the copy.
fn copy_files(
    source: &Path,
    target: &Path,
    manifest: &Manifest,
    until: Option<Until>,
    out: &mut impl Write,
) -> anyhow::Result<Manifest> {
    let mut kept = Manifest::default();
    let (mut before, mut second) = (Before::Unknown, None);
    let last = manifest.increments().last();
    for file in manifest.data_files() {
        let (from, to) = (source.join(&file.name), target.join(&file.name));
        if file.kind == FileKind::Base {
            check_base(&from, until)?;
            copy(&from, &to, None)?;
            kept.replace_base(file.clone(), 0)?;
            continue;
        }
        let report = read(&from, before)?;
        let is_last = last == Some(file);
        let is_usable = report.verdict == Verdict::Sound || (is_last && matches!(report.verdict, Verdict::Torn(_)));
        ensure!(is_usable, "{}: {report}", from.display());
        before = report.then;
        let cut = match until {
            Some(until) => find(&from, until, report.keep, &mut second)?,
            None => None,
        };
        // The end of the last file may be in the middle of a write: its last seal is where it is known to be whole.
        let whole = if is_last && report.seals > 0 { report.sealed } else { report.keep };
        copy(&from, &to, Some(cut.map_or(whole, |place| place.keep)))?;
        kept.push_increment(file.clone())?;
        if let Some(place) = cut {
            seal_cut(&to, &place)?;
            writeln!(out, "cut at byte {} of {}", place.keep, file.name)?;
            if let Some(position) = place.position() {
                writeln!(out, "the log stands at position {position}")?;
            }
            return Ok(kept);
        }
    }
    if let Some(Until::Second(_)) = until {
        ensure!(second.is_some(), "the log tells no times (aof-timestamp-enabled was no); use @POSITION");
    }
    if let Some(sealer) = before.sealer() {
        writeln!(out, "the log stands at position {}", sealer.position())?;
    }
    Ok(kept)
}

/// A base is one moment's data; none before it can be had from it.
fn check_base(path: &Path, until: Option<Until>) -> anyhow::Result<()> {
    let facts = base_facts(path)?;
    if let (Some(Until::Second(until)), Some(created_s)) = (until, facts.created_s) {
        ensure!(created_s <= until, "the base was written at {created_s}, after {until}: what was before is not kept");
    }
    Ok(())
}

/// Where the moment lies in a file, if it does.
fn find(path: &Path, until: Until, length: u64, second: &mut Option<u64>) -> anyhow::Result<Option<Place>> {
    let mut file = File::open(path)?.take(length);
    let (mut finder, mut piece) = (Finder::new(until, 0), vec![0; PIECE]);
    loop {
        let count = file.read(&mut piece)?;
        if count == 0 {
            *second = finder.second().or(*second);
            return Ok(None);
        }
        if let Some(place) = finder.feed(&piece[..count]).with_context(|| format!("{}", path.display()))? {
            if let (Until::Position(until), Some(sealer)) = (until, place.sealer) {
                ensure!(
                    place.keep > place.from || sealer.position() <= until,
                    "position {until} lies before this log begins"
                );
            }
            *second = finder.second().or(*second);
            return Ok(Some(place));
        }
    }
}

/// What was kept of the last group gets a seal of its own, so that the copy is as sound as its source.
fn seal_cut(path: &Path, place: &Place) -> anyhow::Result<()> {
    let Some(mut sealer) = place.sealer else { return Ok(()) };
    let mut file = File::options().read(true).append(true).open(path)?;
    file.seek(SeekFrom::Start(place.from))?;
    let mut rest = Vec::new();
    file.read_to_end(&mut rest)?;
    sealer.absorb(&rest);
    let mut seal = Vec::new();
    sealer.write_seal(&mut seal, sealer.position());
    file.write_all(&seal)?;
    file.sync_all()?;
    Ok(())
}

/// Copies a file, or its first bytes, and makes the copy durable.
fn copy(from: &Path, to: &Path, length: Option<u64>) -> anyhow::Result<()> {
    let source = File::open(from).with_context(|| format!("{}", from.display()))?;
    let mut target = File::create_new(to).with_context(|| format!("{}", to.display()))?;
    std::io::copy(&mut source.take(length.unwrap_or(u64::MAX)), &mut target)?;
    target.sync_all()?;
    Ok(())
}

/// Writes a new file and makes its content durable.
pub fn write_durably(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let mut file = File::create_new(path).with_context(|| format!("{}", path.display()))?;
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(())
}
