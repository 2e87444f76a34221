//! The logic of `simurgh check-aof [--fix]`: reads one file of a log as recovery would, and says how far it is good.
//! An RDB file at the front (a base, or an old single-file log that was rewritten) is read too.

use super::replay::{Before, Cut, Options, Reason, Replay, ReplayError};
use super::whole::Whole;
use crate::key_hash::KeyHasher;
use crate::rdb::read::{ReadError, Reader, is_rdb};
use crate::rdb::value::Loading;
use simurgh_protocol::config::{Packing, Settings};
use std::fmt;

/// What is wrong with a file, if anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Every byte counts.
    Sound,
    /// The tail is torn; the server would cut it on its own (with `aof-load-truncated yes`).
    Torn(Cut),
    /// Damaged within; the server refuses to start.
    Damaged {
        /// Where.
        offset: u64,
        /// What.
        reason: Reason,
    },
    /// It does not go on from where the file before it ends.
    Misplaced(ReplayError),
    /// The RDB part is damaged; nothing here can mend that.
    Rdb(ReadError),
}

/// What a check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// What all of it is.
    pub whole: Whole,
    /// Length of the RDB part at its front.
    pub rdb_bytes: u64,
    /// Up to where it is good: the length to cut it to. 0 if the RDB part is damaged: then no cut helps.
    pub keep: u64,
    /// Up to where seals vouch for it.
    pub sealed: u64,
    /// Seals that fit.
    pub seals: u64,
    /// Commands that count.
    pub records: u64,
    /// What comes before the next file, if this is an increment.
    pub then: Before,
    /// What is wrong.
    pub verdict: Verdict,
}

impl Report {
    /// The length to cut the file to, if that would mend it.
    pub fn cut_to(&self) -> Option<u64> {
        match self.verdict {
            Verdict::Sound | Verdict::Misplaced(_) | Verdict::Rdb(_) => None,
            Verdict::Torn(_) | Verdict::Damaged { .. } => Some(self.keep),
        }
    }
}

/// A check in progress.
#[derive(Debug)]
pub struct Check {
    stage: Stage,
    rdb_bytes: u64,
    records: u64,
    /// What comes before the file.
    before: Before,
    /// What was fed.
    whole: Whole,
    /// The values of an RDB part are built, to see that they can be.
    packing: Packing,
    hasher: KeyHasher,
}

#[derive(Debug)]
enum Stage {
    /// Too few bytes to tell what the file begins with.
    Front(Vec<u8>),
    Rdb(Box<Reader>),
    Log(Box<Replay>),
    Failed(ReadError),
}

/// The longer of the two signatures.
const SIGNATURE_BYTES: usize = b"VALKEY".len();

impl Default for Check {
    fn default() -> Self {
        Self {
            stage: Stage::Front(Vec::new()),
            rdb_bytes: 0,
            records: 0,
            before: Before::Unknown,
            whole: Whole::default(),
            packing: Settings::default().config().packing,
            hasher: KeyHasher::new(0),
        }
    }
}

impl Check {
    /// A check of a file before which there is this.
    #[must_use]
    pub fn after(before: Before) -> Self {
        Self { before, ..Self::default() }
    }

    /// Takes the file's next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.whole.absorb(bytes);
        match &mut self.stage {
            Stage::Front(front) => {
                front.extend_from_slice(bytes);
                if front.len() >= SIGNATURE_BYTES {
                    self.leave_front();
                }
            }
            Stage::Rdb(reader) => {
                reader.feed(bytes);
                self.read_rdb();
            }
            Stage::Log(replay) => {
                replay.feed(bytes);
                self.records += drain(replay);
            }
            Stage::Failed(_) => {}
        }
    }

    /// The file has no more bytes.
    pub fn finish(mut self) -> Report {
        if matches!(self.stage, Stage::Front(_)) {
            self.leave_front();
        }
        if let Stage::Rdb(reader) = &mut self.stage {
            reader.finish();
            self.read_rdb();
        }
        let failure = match &mut self.stage {
            Stage::Log(replay) => {
                let mut replay = std::mem::replace(&mut **replay, Replay::new(Options::default()));
                return self.report_log(&mut replay);
            }
            Stage::Failed(error) => *error,
            Stage::Rdb(reader) => ReadError::Truncated(reader.offset()),
            Stage::Front(_) => ReadError::Truncated(0),
        };
        self.report(0, Verdict::Rdb(failure))
    }

    fn leave_front(&mut self) {
        let Stage::Front(front) = &mut self.stage else { return };
        let front = std::mem::take(front);
        if is_rdb(&front) {
            let mut reader = Reader::default();
            reader.feed(&front);
            self.stage = Stage::Rdb(Box::new(reader));
            self.read_rdb();
        } else {
            self.begin_log(&front);
        }
    }

    fn read_rdb(&mut self) {
        let Stage::Rdb(reader) = &mut self.stage else { return };
        let (packing, hasher) = (&self.packing, &self.hasher);
        let loading = Loading { packing, hasher, string_bytes_max: crate::LENGTH_MAX };
        loop {
            match reader.next_item(&loading) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => {
                    self.stage = Stage::Failed(error);
                    return;
                }
            }
        }
        if reader.is_ended() {
            self.rdb_bytes = reader.offset();
            let rest = reader.rest().to_vec();
            self.begin_log(&rest);
        }
    }

    fn begin_log(&mut self, bytes: &[u8]) {
        let mut replay = Replay::new(Options { offset: self.rdb_bytes, before: self.before, ..Options::default() });
        replay.feed(bytes);
        self.records += drain(&mut replay);
        self.stage = Stage::Log(Box::new(replay));
    }

    fn report_log(mut self, replay: &mut Replay) -> Report {
        match replay.finish() {
            Ok(end) => {
                self.records = end.records;
                let verdict = end.cut.map_or(Verdict::Sound, Verdict::Torn);
                let then = self.before.then(&end);
                let report = self.report(end.keep, verdict);
                Report { sealed: end.sealed, seals: end.seals, then, ..report }
            }
            Err(ReplayError::Damaged { offset, reason, keep } | ReplayError::Truncated { offset, reason, keep }) => {
                let (sealed, seals) = replay.sealed();
                Report { sealed, seals, ..self.report(keep, Verdict::Damaged { offset, reason }) }
            }
            Err(error @ (ReplayError::Misplaced { .. } | ReplayError::Orphaned { .. })) => {
                self.report(0, Verdict::Misplaced(error))
            }
        }
    }

    fn report(&self, keep: u64, verdict: Verdict) -> Report {
        Report {
            whole: self.whole,
            rdb_bytes: self.rdb_bytes,
            keep,
            sealed: 0,
            seals: 0,
            records: self.records,
            then: self.before,
            verdict,
        }
    }
}

/// Reads on without looking at the records; what is wrong comes out at the end.
fn drain(replay: &mut Replay) -> u64 {
    let mut records = 0;
    while let Ok(Some(_)) = replay.next_record() {
        records += 1;
    }
    records
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "file: {} bytes, {} commands in its log part", self.whole.bytes, self.records)?;
        if self.rdb_bytes > 0 {
            writeln!(f, "RDB part: {} bytes, its checksum fits", self.rdb_bytes)?;
        }
        match self.seals {
            0 => writeln!(f, "seals: none (written by another server, or nothing written yet)")?,
            seals => writeln!(f, "seals: {seals}, all of them fit up to byte {}", self.sealed)?,
        }
        let lost = self.whole.bytes - self.keep;
        match self.verdict {
            Verdict::Sound => write!(f, "result: good"),
            Verdict::Torn(Cut { offset, reason, .. }) => {
                write!(
                    f,
                    "result: torn tail at byte {offset}: {reason}\ngood up to byte {}, {lost} bytes after it do not count",
                    self.keep
                )
            }
            Verdict::Damaged { offset, reason } => {
                write!(
                    f,
                    "result: DAMAGED at byte {offset}: {reason}\ngood up to byte {}, --fix would lose {lost} bytes after it",
                    self.keep
                )
            }
            Verdict::Misplaced(error) => write!(f, "result: MISPLACED: {error}"),
            Verdict::Rdb(error) => write!(f, "result: DAMAGED: {error}; this cannot be mended by cutting the file"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::encode;
    use super::super::seal::Sealer;
    use super::*;
    use crate::rdb::write::{Origin, Writer};

    fn check(bytes: &[u8]) -> Report {
        let mut check = Check::default();
        bytes.chunks(5).for_each(|chunk| check.feed(chunk));
        check.finish()
    }

    fn log() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut sealer = Sealer::new(0, 1);
        sealer.write_start(&mut bytes);
        for key in [&b"a"[..], b"b"] {
            let mut group = Vec::new();
            encode(&mut group, [&b"SET"[..], key, b"v"]);
            let synced = sealer.position();
            sealer.seal(&mut group, synced);
            bytes.extend_from_slice(&group);
        }
        bytes
    }

    fn rdb() -> Vec<u8> {
        let mut bytes = Vec::new();
        let origin = Origin { version: "8.2.3", created_s: 1, used_memory_bytes: 1, is_aof_base: true };
        Writer::begin(&mut bytes, &origin).end(&mut bytes);
        bytes
    }

    #[test]
    fn sound_files() {
        for (bytes, records, seals) in [(vec![], 0, 0), (log(), 2, 2), (rdb(), 0, 0), ([rdb(), log()].concat(), 2, 2)] {
            let report = check(&bytes);
            let length = bytes.len() as u64;
            assert_eq!((report.verdict, report.cut_to()), (Verdict::Sound, None));
            assert_eq!(
                (report.whole.bytes, report.keep, report.records, report.seals),
                (length, length, records, seals)
            );
        }
        assert!(check(&log()).to_string().ends_with("result: good"));
    }

    #[test]
    fn cutting_mends_a_log_wherever_a_bit_flipped() {
        let bytes = [rdb(), log()].concat();
        for bit in rdb().len() * 8..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let report = check(&flipped);
            let cut_to = report.cut_to().unwrap_or_else(|| panic!("bit {bit}"));
            // A flip in the start line can make it an unknown annotation: then its first seal is what does not fit.
            let start_end = rdb().len() + log().iter().position(|&byte| byte == b'\n').expect("a start line");
            assert!(bit / 8 <= start_end || cut_to as usize <= bit / 8 + 1, "bit {bit}");
            assert!(report.to_string().contains("good up to byte"));
            assert_eq!(check(&flipped[..cut_to as usize]).verdict, Verdict::Sound, "bit {bit}");
        }
    }

    #[test]
    fn a_damaged_rdb_part_is_not_cut() {
        let bytes = [rdb(), log()].concat();
        for bit in 0..rdb().len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let report = check(&flipped);
            assert!(bit < 48 || matches!(report.verdict, Verdict::Rdb(_)), "bit {bit}");
            assert_ne!(report.verdict, Verdict::Sound);
        }
        assert_eq!(check(&rdb()[..20]).verdict, Verdict::Rdb(ReadError::Truncated(9)));
    }
}
