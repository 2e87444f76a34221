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

use super::whole::Whole;
use simurgh_protocol::quoted::{quote, split_quoted};

/// Longest line, its line feed included.
const LINE_BYTES_MAX: usize = 1024;
/// The key of what a file must be; other servers skip keys that they do not know.
const WHOLE: &[u8] = b"simurgh-whole";

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
        let mut manifest = Self::default();
        for (index, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
            let number = index + 1;
            if !line.ends_with(b"\n") || line.len() > LINE_BYTES_MAX {
                return Err(ManifestError::LongLine { line: number });
            }
            if line.starts_with(b"#") {
                continue;
            }
            parse_line(line).and_then(|file| manifest.add(file)).map_err(|fault| ManifestError::Line {
                line: number,
                fault,
                text: String::from_utf8_lossy(line.trim_ascii_end()).into_owned(),
            })?;
        }
        Ok(manifest)
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

fn parse_line(line: &[u8]) -> Result<ManifestFile, LineFault> {
    let words = split_quoted(line).map_err(|_| LineFault::Format)?;
    let (pairs, []) = words.as_chunks::<2>() else {
        return Err(LineFault::Format);
    };
    let (mut name, mut sequence, mut kind) = (None, None, None);
    let (mut start_offset, mut end_offset, mut whole) = (None, None, None);
    for [key, value] in pairs {
        match key.to_ascii_lowercase().as_slice() {
            b"file" => set_once(&mut name, take_name(value)?)?,
            b"seq" => {
                set_once(&mut sequence, take_number(value).filter(|&number| number > 0).ok_or(LineFault::Format)?)?
            }
            b"type" => set_once(&mut kind, take_kind(value)?)?,
            b"startoffset" => set_once(&mut start_offset, take_number(value).ok_or(LineFault::Format)?)?,
            b"endoffset" => set_once(&mut end_offset, take_number(value).ok_or(LineFault::Format)?)?,
            WHOLE => set_once(&mut whole, Whole::parse(value).ok_or(LineFault::Format)?)?,
            _ => {}
        }
    }
    match (name, sequence, kind) {
        (Some(name), Some(sequence), Some(kind)) => {
            Ok(ManifestFile { name, sequence, kind, start_offset, end_offset, whole })
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BASE: &str = "file a.1.base.rdb seq 1 type b\n";
    const INCR: &str = "file a.1.incr.aof seq 1 type i\n";

    fn fault(text: &str) -> LineFault {
        match Manifest::parse(text.as_bytes()) {
            Err(ManifestError::Line { fault, .. }) => fault,
            other => panic!("{text}: {other:?}"),
        }
    }

    /// Each of these was given to Redis 8.2.3, 7.0.15 and Valkey 9.1.2, which load them too.
    #[test]
    fn accepted_as_redis_does() {
        for text in [
            format!("# hi\n{BASE}{INCR}"),
            format!("{BASE}{INCR}").replace('\n', "\r\n"),
            format!("type b seq 1 file a.1.base.rdb\n{INCR}"),
            format!("FILE a.1.base.rdb SEQ 1 TYPE b\n{INCR}"),
            format!("file \"a.1.base.rdb\" seq 1 type b\n{INCR}"),
            format!("  file\ta.1.base.rdb  seq 1 type b foo bar \n{INCR}"),
            format!("{INCR}{BASE}"),
            format!("{BASE}{}{INCR}", format_args!("#{}\n", "x".repeat(1022))),
        ] {
            let manifest = Manifest::parse(text.as_bytes()).unwrap();
            assert_eq!(manifest.format(), format!("{BASE}{INCR}").as_bytes(), "{text}");
        }
        assert_eq!(Manifest::parse(b"# only\n").unwrap(), Manifest::default());
        let whole = format!("{}{INCR}", BASE.replace('\n', " simurgh-whole 9:e9c6d914c4b8d9ca\n"));
        let manifest = Manifest::parse(whole.as_bytes()).unwrap();
        assert_eq!(manifest.base().unwrap().whole, Some(Whole::of(b"123456789")));
        assert_eq!(manifest.format(), whole.as_bytes());
        let gap = format!("{INCR}file b seq 9 type i startoffset 5 endoffset 7\nfile h seq 2 type h\n");
        assert_eq!(Manifest::parse(gap.as_bytes()).unwrap().increments()[1].end_offset, Some(7));
    }

    #[test]
    fn refused_as_redis_does() {
        assert_eq!(Manifest::parse(b""), Err(ManifestError::Empty));
        let unended = format!("{BASE}{}", INCR.trim_end());
        assert_eq!(Manifest::parse(unended.as_bytes()), Err(ManifestError::LongLine { line: 2 }));
        let long = format!("#{}\n", "x".repeat(1023));
        assert_eq!(Manifest::parse(long.as_bytes()), Err(ManifestError::LongLine { line: 1 }));
        for text in ["\n", "file a seq 1\n", "file a type b\n", "file a seq 1 zzz b\n", "file \"a seq 1 type b\n"] {
            assert_eq!(fault(text), LineFault::Format, "{text}");
        }
        assert_eq!(fault("file a seq 0 type b\n"), LineFault::Format);
        assert_eq!(fault("file a seq 1 type x\n"), LineFault::Kind);
        assert_eq!(fault("file a/b seq 1 type b\n"), LineFault::Path);
        assert_eq!(fault("file \"a\\\\b\" seq 1 type b\n"), LineFault::Path);
        assert_eq!(fault(&format!("{BASE}{BASE}")), LineFault::DuplicateBase);
        assert_eq!(fault(&format!("{INCR}{INCR}")), LineFault::Sequence);
        let error = Manifest::parse(format!("{BASE}{BASE}").as_bytes()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Reading the manifest file, at line 2: Found duplicate base file information: 'file a.1.base.rdb seq 1 type b'"
        );
    }

    #[test]
    fn stricter_than_redis() {
        for text in [
            "file a seq 1x type b\n",
            "file a seq 1 type b simurgh-whole 1\n",
            "file a seq -3 type b\n",
            "file a file b seq 1 type b\n",
        ] {
            assert_eq!(fault(text), LineFault::Format, "{text}");
        }
        assert_eq!(fault("file a seq 1 type bb\n"), LineFault::Kind);
        for text in ["file \"\" seq 1 type b\n", "file .. seq 1 type b\n"] {
            assert_eq!(fault(text), LineFault::Path, "{text}");
        }
    }

    #[test]
    fn a_rewrite_step_by_step() {
        let mut manifest = Manifest::default();
        manifest.replace_base(manifest.next_base("a", BaseFormat::Rdb), 0).unwrap();
        manifest.push_increment(manifest.next_increment("a", Some(0))).unwrap();
        assert_eq!(manifest.format(), format!("{BASE}{}", INCR.replace("\n", " startoffset 0\n")).as_bytes());
        let next = manifest.next_increment("a", None);
        manifest.push_increment(next.clone()).unwrap();
        manifest.replace_base(manifest.next_base("a", BaseFormat::Aof), next.sequence).unwrap();
        assert_eq!(manifest.base().unwrap().name, "a.2.base.aof");
        assert_eq!(manifest.increments(), [next]);
        let gone: Vec<_> = manifest.take_history().into_iter().map(|file| file.name).collect();
        assert_eq!(gone, ["a.1.base.rdb", "a.1.incr.aof"]);
        assert!(manifest.history().is_empty());
        assert_eq!((manifest_name("a"), temporary_name("b")), ("a.manifest".into(), "temp-b".into()));
    }

    proptest! {
        #[test]
        fn round_trip(names in prop::collection::vec("[^/\\\\\\x00]{1,40}", 1..4)) {
            let mut manifest = Manifest::default();
            for name in names.into_iter().filter(|name| name != "." && name != "..") {
                let file = manifest.next_increment("a", None);
                manifest.push_increment(ManifestFile { name, ..file }).unwrap();
            }
            prop_assume!(!manifest.increments().is_empty());
            prop_assert_eq!(Manifest::parse(&manifest.format()).unwrap(), manifest);
        }

        #[test]
        fn any_bytes_are_safe(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(manifest) = Manifest::parse(&bytes) {
                prop_assert!(manifest.format().is_empty() || Manifest::parse(&manifest.format()) == Ok(manifest.clone()));
            }
        }
    }
}
