//! The manifest of a multi-part append-only file: which files make up the data set, in Redis 7's own format.
//!
//! ```text
//! file appendonly.aof.3.base.rdb seq 3 type b                  the base, at most one; ours adds simurgh-whole BYTES:CRC64
//! file appendonly.aof.2.incr.aof seq 2 type h                  history: replaced, to be deleted
//! file appendonly.aof.4.incr.aof seq 4 type i startoffset 0    increments in ascending order, the last one is written to
//! ```
//!
//! What is accepted was asked of Redis 8.2.3, 7.0.15 and Valkey 9.1.2: words come in pairs and in any order, keys in any
//! case, unknown keys are skipped, names may be quoted, `#` in the first column is a comment, the last line must end too
//! and none is longer than 1024 bytes. Stricter than they are: a sequence must be a plain positive number (they read
//! `1x` as 1 and take `-3`), a type must be one letter, a name must not be empty, `.` or `..`, and no key may come twice.
//!
//! Ours adds `simurgh-manifest CRC64` to the first line: the sum of all lines, because a single flipped bit makes an increment (`i`)
//! history (`h`), which is deleted. It sums what the lines mean, as [`Manifest::lines`] writes it, not how they are spelled.

use super::whole::Whole;
use crate::rdb::crc64::crc64;
use simurgh_protocol::quoted::{quote, split_quoted};

/// Longest line, its line feed included.
const LINE_BYTES_MAX: usize = 1024;
/// The key of what a file must be; other servers skip keys that they do not know.
const WHOLE: &[u8] = b"simurgh-whole";
/// The key of what all lines sum to.
const SUM: &[u8] = b"simurgh-manifest";

/// What a file is to the data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A snapshot that the increments build on.
    Base,
    /// Replaced by a rewrite and no longer part of the data set.
    History,
    /// Records since the base or the increment before.
    Increment,
}

impl FileKind {
    fn letter(self) -> char {
        match self {
            Self::Base => 'b',
            Self::History => 'h',
            Self::Increment => 'i',
        }
    }
}

/// One line of the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestFile {
    /// Name within the append-only directory.
    pub name: String,
    /// Its number among files of its kind; history keeps the number it had.
    pub sequence: u64,
    /// What it is.
    pub kind: FileKind,
    /// Replication offset at its start (Redis 8 writes it for increments).
    pub start_offset: Option<u64>,
    /// Replication offset at its end.
    pub end_offset: Option<u64>,
    /// What it must be, if it was written once and by us.
    pub whole: Option<Whole>,
}

/// The files of a data set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Manifest {
    base: Option<ManifestFile>,
    history: Vec<ManifestFile>,
    increments: Vec<ManifestFile>,
}

/// Why a manifest is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// No byte at all.
    #[error("Found an empty AOF manifest")]
    Empty,
    /// A line does not end, or not within the limit.
    #[error("The AOF manifest file contains too long line (line {line})")]
    LongLine {
        /// Line, from 1.
        line: usize,
    },
    /// The lines are not those that were written.
    #[error(
        "The AOF manifest file is damaged or was edited: its lines sum to {found:016x}, and it says {expected:016x} \
         (without the word simurgh-manifest and what follows it, it is taken as it is)"
    )]
    Sum {
        /// What it says.
        expected: u64,
        /// What its lines sum to.
        found: u64,
    },
    /// A line that cannot be taken.
    #[error("Reading the manifest file, at line {line}: {fault}: '{text}'")]
    Line {
        /// Line, from 1.
        line: usize,
        /// What is wrong with it.
        fault: LineFault,
        /// The line, unprintable bytes replaced.
        text: String,
    },
}

/// What is wrong with a line of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    /// Not `file NAME seq NUMBER type LETTER`, or no such number.
    #[error("Invalid AOF manifest file format")]
    Format,
    /// The name leads out of the directory, or names none.
    #[error("File can't be a path, just a filename")]
    Path,
    /// Not b, h or i.
    #[error("Unknown AOF file type")]
    Kind,
    /// A second base.
    #[error("Found duplicate base file information")]
    DuplicateBase,
    /// An increment whose number is not above the one before.
    #[error("Found a non-monotonic sequence number")]
    Sequence,
}

impl Manifest {
    /// Reads a manifest file.
    pub fn parse(bytes: &[u8]) -> Result<Self, ManifestError> {
        if bytes.is_empty() {
            return Err(ManifestError::Empty);
        }
        let (mut manifest, mut claimed) = (Self::default(), None);
        for (index, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
            let number = index + 1;
            if !line.ends_with(b"\n") || line.len() > LINE_BYTES_MAX {
                return Err(ManifestError::LongLine { line: number });
            }
            if line.starts_with(b"#") {
                continue;
            }
            let parsed = parse_line(line).and_then(|(file, sum)| manifest.add(file).map(|()| sum));
            let sum = parsed.map_err(|fault| ManifestError::Line {
                line: number,
                fault,
                text: String::from_utf8_lossy(line.trim_ascii_end()).into_owned(),
            })?;
            claimed = claimed.or(sum);
        }
        match (claimed, crc64(0, &manifest.lines())) {
            (Some(expected), found) if expected != found => Err(ManifestError::Sum { expected, found }),
            _ => Ok(manifest),
        }
    }

    fn add(&mut self, file: ManifestFile) -> Result<(), LineFault> {
        match file.kind {
            FileKind::Base if self.base.is_some() => return Err(LineFault::DuplicateBase),
            FileKind::Base => self.base = Some(file),
            FileKind::History => self.history.push(file),
            FileKind::Increment if self.increments.last().is_some_and(|last| file.sequence <= last.sequence) => {
                return Err(LineFault::Sequence);
            }
            FileKind::Increment => self.increments.push(file),
        }
        Ok(())
    }

    /// The manifest file's content.
    pub fn format(&self) -> Vec<u8> {
        let mut out = self.lines();
        let sum = format!(" simurgh-manifest {:016x}", crc64(0, &out));
        if let Some(end) = out.iter().position(|&byte| byte == b'\n') {
            out.splice(end..end, sum.into_bytes());
        }
        out
    }

    /// The same without the checksum of it.
    pub fn lines(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for file in self.base.iter().chain(&self.history).chain(&self.increments) {
            format_line(&mut out, file);
        }
        out
    }

    /// The snapshot to load first.
    pub fn base(&self) -> Option<&ManifestFile> {
        self.base.as_ref()
    }

    /// The increments to replay after the base, in order; the last one is appended to.
    pub fn increments(&self) -> &[ManifestFile] {
        &self.increments
    }

    /// Files that may be deleted once a manifest without them is on the disk.
    pub fn history(&self) -> &[ManifestFile] {
        &self.history
    }

    /// Every file to load, in order.
    pub fn data_files(&self) -> impl Iterator<Item = &ManifestFile> {
        self.base.iter().chain(&self.increments)
    }

    /// The next base of the data set called `prefix` (`appendfilename`), not yet part of it.
    pub fn next_base(&self, prefix: &str, format: BaseFormat) -> ManifestFile {
        let sequence = self.base.as_ref().map_or(0, |base| base.sequence) + 1;
        let suffix = match format {
            BaseFormat::Rdb => "rdb",
            BaseFormat::Aof => "aof",
        };
        let name = format!("{prefix}.{sequence}.base.{suffix}");
        ManifestFile { name, sequence, kind: FileKind::Base, start_offset: None, end_offset: None, whole: None }
    }

    /// The next increment of the data set called `prefix`, not yet part of it.
    pub fn next_increment(&self, prefix: &str, start_offset: Option<u64>) -> ManifestFile {
        let sequence = self.increments.last().map_or(0, |last| last.sequence) + 1;
        let name = format!("{prefix}.{sequence}.incr.aof");
        ManifestFile { name, sequence, kind: FileKind::Increment, start_offset, end_offset: None, whole: None }
    }

    /// Appends an increment; from now on it is the one that is written to.
    pub fn push_increment(&mut self, file: ManifestFile) -> Result<(), LineFault> {
        check_name(&file.name)?;
        self.add(ManifestFile { kind: FileKind::Increment, ..file })
    }

    /// Makes `base` the base. The one before it and the increments numbered below `increments_from` become history.
    pub fn replace_base(&mut self, base: ManifestFile, increments_from: u64) -> Result<(), LineFault> {
        check_name(&base.name)?;
        let old_base = self.base.replace(ManifestFile { kind: FileKind::Base, ..base });
        let kept = self.increments.partition_point(|file| file.sequence < increments_from);
        let replaced = old_base.into_iter().chain(self.increments.drain(..kept));
        self.history.extend(replaced.map(|file| ManifestFile { kind: FileKind::History, ..file }));
        Ok(())
    }

    /// Forgets the history; returns what to delete once this manifest is on the disk.
    pub fn take_history(&mut self) -> Vec<ManifestFile> {
        std::mem::take(&mut self.history)
    }
}

/// How a base is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseFormat {
    /// A snapshot (`aof-use-rdb-preamble yes`).
    Rdb,
    /// Records.
    Aof,
}

/// Name of the manifest of the data set called `prefix`.
pub fn manifest_name(prefix: &str) -> String {
    format!("{prefix}.manifest")
}

/// Name under which a new manifest, base or increment is written before it is renamed to `name`.
pub fn temporary_name(name: &str) -> String {
    format!("temp-{name}")
}

/// A file, and what the line says that all lines sum to.
fn parse_line(line: &[u8]) -> Result<(ManifestFile, Option<u64>), LineFault> {
    // A zero byte would end the line early, and is in none that anybody has written.
    if line.contains(&0) {
        return Err(LineFault::Format);
    }
    let words = split_quoted(line).map_err(|_| LineFault::Format)?;
    let (pairs, []) = words.as_chunks::<2>() else {
        return Err(LineFault::Format);
    };
    let (mut name, mut sequence, mut kind) = (None, None, None);
    let (mut start_offset, mut end_offset, mut whole, mut sum) = (None, None, None, None);
    for [key, value] in pairs {
        match key.to_ascii_lowercase().as_slice() {
            b"file" => set_once(&mut name, take_name(value)?)?,
            b"seq" => {
                set_once(&mut sequence, take_number(value).filter(|&number| number > 0).ok_or(LineFault::Format)?)?
            }
            b"type" => set_once(&mut kind, take_kind(value)?)?,
            b"startoffset" => set_once(&mut start_offset, take_number(value).ok_or(LineFault::Format)?)?,
            b"endoffset" => set_once(&mut end_offset, take_number(value).ok_or(LineFault::Format)?)?,
            SUM => set_once(&mut sum, take_sum(value).ok_or(LineFault::Format)?)?,
            WHOLE => set_once(&mut whole, Whole::parse(value).ok_or(LineFault::Format)?)?,
            _ => {}
        }
    }
    match (name, sequence, kind) {
        (Some(name), Some(sequence), Some(kind)) => {
            Ok((ManifestFile { name, sequence, kind, start_offset, end_offset, whole }, sum))
        }
        _ => Err(LineFault::Format),
    }
}

fn set_once<T>(slot: &mut Option<T>, value: T) -> Result<(), LineFault> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(LineFault::Format),
    }
}

fn take_name(word: &[u8]) -> Result<String, LineFault> {
    let name = String::from_utf8(word.to_vec()).map_err(|_| LineFault::Format)?;
    check_name(&name)?;
    Ok(name)
}

fn check_name(name: &str) -> Result<(), LineFault> {
    let leads_out = name.is_empty() || name == "." || name == ".." || name.contains(['/', '\\', '\0']);
    if leads_out { Err(LineFault::Path) } else { Ok(()) }
}

fn take_number(word: &[u8]) -> Option<u64> {
    word.iter().all(u8::is_ascii_digit).then_some(())?;
    // Redis counts in signed 64-bit numbers, and a number must have a successor.
    std::str::from_utf8(word).ok()?.parse().ok().filter(|&number| number < i64::MAX as u64)
}

fn take_sum(word: &[u8]) -> Option<u64> {
    let digits = word.len() == 16 && word.iter().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(std::str::from_utf8(word).ok().filter(|_| digits)?, 16).ok()
}

fn take_kind(word: &[u8]) -> Result<FileKind, LineFault> {
    match word {
        b"b" => Ok(FileKind::Base),
        b"h" => Ok(FileKind::History),
        b"i" => Ok(FileKind::Increment),
        _ => Err(LineFault::Kind),
    }
}

fn format_line(out: &mut Vec<u8>, file: &ManifestFile) {
    out.extend_from_slice(b"file ");
    let plain = file.name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\'');
    if plain {
        out.extend_from_slice(file.name.as_bytes());
    } else {
        out.extend_from_slice(&quote(file.name.as_bytes()));
    }
    out.extend_from_slice(format!(" seq {} type {}", file.sequence, file.kind.letter()).as_bytes());
    for (key, offset) in [("startoffset", file.start_offset), ("endoffset", file.end_offset)] {
        if let Some(offset) = offset {
            out.extend_from_slice(format!(" {key} {offset}").as_bytes());
        }
    }
    if let Some(whole) = &file.whole {
        out.push(b' ');
        out.extend_from_slice(WHOLE);
        out.extend_from_slice(format!(" {}", whole.word()).as_bytes());
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests;
