//! The frame of a snapshot's file: what stands before the keys and behind them, and the sum of all of it.

use super::Format;
use crate::rdb::VERSION_WRITTEN;
use crate::rdb::value::VERSION_OF_FIELD_EXPIRY;
use crate::rdb::write::{Origin, Writer};
use simurgh_protocol::resp::encode_command;
use std::sync::Arc;

/// How much of a database there is at the cut: a hint for whoever loads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    /// Its number.
    pub database: u32,
    /// Keys.
    pub keys: u64,
    /// Keys that expire.
    pub expires: u64,
    /// Hashes with expiring fields.
    pub hashes_expiring: u64,
}

/// What stands before the keys.
#[derive(Clone, Copy, Debug)]
pub struct Front<'a> {
    /// Who writes, and when.
    pub origin: &'a Origin<'a>,
    /// Position of the log at the cut.
    pub log_position: Option<u64>,
    /// The texts of libraries of functions.
    pub libraries: &'a [Arc<[u8]>],
    /// How much there is in each database.
    pub hints: &'a [Hint],
}

/// A snapshot's file, written front to back.
#[derive(Debug)]
pub struct SnapshotFile {
    writer: Option<Writer>,
}

impl SnapshotFile {
    /// Begins the file.
    ///
    /// The version is what every server from Redis 7.0 on reads, Valkey too, unless a hash has expiring fields: those need one
    /// that Valkey refuses, whose own form of them Redis refuses.
    pub fn begin(out: &mut Vec<u8>, format: Format, front: &Front<'_>) -> Self {
        if format == Format::Commands {
            for source in front.libraries {
                encode_command(out, [&b"FUNCTION"[..], b"LOAD", source].into_iter());
            }
            return Self { writer: None };
        }
        let expires_fields = front.hints.iter().any(|hint| hint.hashes_expiring > 0);
        let version = if expires_fields { VERSION_OF_FIELD_EXPIRY } else { VERSION_WRITTEN };
        let mut writer = Writer::begin_as(out, front.origin, version);
        if let Some(position) = front.log_position {
            writer.aux(out, b"simurgh-log-position", position.to_string().as_bytes());
        }
        front.libraries.iter().for_each(|source| writer.library(out, source));
        for hint in front.hints.iter().filter(|hint| hint.keys > 0) {
            writer.database(out, hint.database, hint.keys, hint.expires);
        }
        Self { writer: Some(writer) }
    }

    /// Sums bytes of keys that are about to be written.
    pub fn absorb(&mut self, bytes: &[u8]) {
        if let Some(writer) = &mut self.writer {
            writer.absorb(bytes);
        }
    }

    /// Ends the file; without a sum if that is not wanted (`rdbchecksum no`).
    pub fn end(self, out: &mut Vec<u8>, sums: bool) {
        match self.writer {
            Some(writer) if sums => writer.end(out),
            Some(writer) => writer.end_without_sum(out),
            None => {}
        }
    }
}
