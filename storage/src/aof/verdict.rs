//! What a log can be found to be: good up to somewhere, cut there, or refused. The rules are in `replay.rs`.

use super::record::Fault;
use super::seal::Sealer;

/// What is wrong at some byte of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The file ends within a record, a line or a transaction.
    #[error("the file ends within a record or transaction")]
    EndsEarly,
    /// The bytes are not a record.
    #[error("bad file format: {0}")]
    Format(Fault),
    /// An annotation that does not end.
    #[error("bad file format: an annotation that does not end")]
    LongLine,
    /// A start or seal line that does not fit its own check.
    #[error("a damaged seal")]
    DamagedLine,
    /// A group that does not fit its seal.
    #[error("the records from here on do not fit their checksum")]
    Sum,
    /// A seal within a record, where a damaged length reached over it.
    #[error("a record from here on reaches over a seal")]
    SwallowedSeal,
    /// A seal without a start.
    #[error("a seal, but no start line before it")]
    NoStart,
    /// A start line amid a group, or one that does not continue what stands before it.
    #[error("a start line that does not continue the log")]
    StartMismatch,
    /// An annotation that is not ours, where our seal is to be expected.
    #[error("an unknown annotation where a seal should be")]
    UnknownAnnotation,
    /// A start or seal line between MULTI and EXEC.
    #[error("a seal within a transaction")]
    SealInTransaction,
    /// MULTI between MULTI and EXEC.
    #[error("MULTI within a transaction")]
    NestedMulti,
    /// EXEC without MULTI.
    #[error("EXEC without MULTI")]
    ExecWithoutMulti,
    /// SELECT of something that is not a database's number.
    #[error("SELECT of no valid database")]
    Select,
}

/// Why a log is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// Damage that a torn write does not explain.
    #[error(
        "damaged append-only file at byte {offset}: {reason}. Make a backup of the file, then look at it with \
         `simurgh check-aof <file>`; with --fix it is cut to its first {keep} bytes and what follows is lost"
    )]
    Damaged {
        /// Where.
        offset: u64,
        /// What.
        reason: Reason,
        /// Up to where the file is good.
        keep: u64,
    },
    /// A torn tail, with `aof-load-truncated no`.
    #[error(
        "unexpected end of the append-only file at byte {offset}: {reason}. Make a backup of the file, then set \
         aof-load-truncated to yes, or cut it to its first {keep} bytes with `simurgh check-aof --fix <file>`"
    )]
    Truncated {
        /// Where.
        offset: u64,
        /// What.
        reason: Reason,
        /// Up to where the file is good.
        keep: u64,
    },
    /// A file that does not follow the one before it.
    #[error(
        "the append-only file continues a log at position {found} with chain {found_chain:016x}, but the files before \
         it end at {wanted} with {wanted_chain:016x}: a file is missing, swapped or from another log"
    )]
    Misplaced {
        /// Position in its start line.
        found: u64,
        /// Chain in its start line.
        found_chain: u64,
        /// Position at the end of the files before.
        wanted: u64,
        /// Chain at the end of the files before.
        wanted_chain: u64,
    },
    /// A file that goes on from somewhere, behind one that has no seals.
    #[error(
        "the append-only file continues a log at position {found}, but the file before it is none of that log: it is empty, \
         swapped or from another server"
    )]
    Orphaned {
        /// Position in its start line.
        found: u64,
    },
}

impl ReplayError {
    /// The length at which `check-aof --fix` cuts the file, if cutting helps.
    pub fn keep(&self) -> Option<u64> {
        match *self {
            Self::Damaged { keep, .. } | Self::Truncated { keep, .. } => Some(keep),
            Self::Misplaced { .. } | Self::Orphaned { .. } => None,
        }
    }
}

/// What was cut from the end of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Where the damage was noticed.
    pub offset: u64,
    /// What it was.
    pub reason: Reason,
    /// Bytes from `keep` to the end of the file.
    pub dropped: u64,
}

/// What a file was found to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// The file's good bytes: it must be cut to this length before anything is appended.
    pub keep: u64,
    /// Up to where the bytes are covered by seals that fit; 0 without any.
    pub sealed: u64,
    /// Up to where the file's own seals say that it was synced. What follows may be in the kernel's cache alone, and after
    /// a failed sync the kernel may believe that it is not: to be safe it must be written again, then synced. `keep`
    /// where no seal tells.
    pub synced: u64,
    /// The last seal says so of everything before it: what follows `synced` is that seal.
    pub vouched: bool,
    /// What was cut, if anything.
    pub cut: Option<Cut>,
    /// Where the log stands after the good bytes; none if the file has no start line (another server's, or empty).
    pub sealer: Option<Sealer>,
    /// Records that count, those of transactions included, without SELECT, MULTI and EXEC.
    pub records: u64,
    /// Seals that fit.
    pub seals: u64,
}
