//! What a command did, as values: the records for the log, and how many changes there were.
//!
//! Records are encoded once, as RESP, into one buffer that is reused from batch to batch. A record joins the log's stream
//! while its shards are still held, so the order of the stream is an order in which the commands really ran. Each run of
//! records for one database is marked, since the stream needs a `SELECT` between them and only the stream knows which database
//! it was left at.

use crate::blocking::{Block, ReadyKey};
use crate::notify::{Class, Event};
use simurgh_protocol::resp::encode_command;
use std::collections::VecDeque;

/// A run of records that belong to one database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Number of the database.
    pub database: usize,
    /// Offset of the run's first byte in the buffer.
    pub start: usize,
}

/// The effects gathered since they were last taken.
#[derive(Debug, Default)]
pub struct Effects {
    /// Whether anybody reads the records. Without a log and without replicas nothing is encoded.
    pub recording: bool,
    /// The keyspace stands still (CLIENT PAUSE): a key whose time has come is not seen, but stays until the pause is over.
    pub keeps_expired: bool,
    /// Keyspace events in the order in which they happened; whoever delivers them takes them away.
    pub events: Vec<Event>,
    /// Whether anybody wants to know which keys change (client-side caching).
    pub watching: bool,
    /// What has changed, if so; whoever tells of it takes it away.
    pub touched: Vec<Touched>,
    /// Keys that commands wait for and that have changed, in the order in which they did.
    pub ready: VecDeque<ReadyKey>,
    /// The command that ran has found nothing and wants to wait.
    pub block: Option<Block>,
    bytes: Vec<u8>,
    runs: Vec<Run>,
    records: usize,
    /// Changes made by the command that runs now.
    changes: u64,
    /// Changes made since the node started: `rdb_changes_since_last_save` and whether a command is to be logged.
    changes_total: u64,
    replaced: bool,
    /// The command is recorded although it changed nothing.
    forced: bool,
    /// Where the records of the command or transaction under way begin.
    group: Option<Group>,
    in_transaction: bool,
    /// All databases were emptied.
    flushed_all: bool,
}

/// What a command has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Touched {
    /// A key, in whatever database.
    Key(Box<[u8]>),
    /// A flush: any key.
    All,
}

/// The start of records that must take effect together.
#[derive(Clone, Copy, Debug)]
struct Group {
    bytes: usize,
    records: usize,
}

const MULTI: &[u8] = b"*1\r\n$5\r\nMULTI\r\n";
const EXEC: &[u8] = b"*1\r\n$4\r\nEXEC\r\n";

impl Effects {
    /// No effects yet; `recording` says whether anybody reads the records.
    #[must_use]
    pub fn new(recording: bool) -> Self {
        Self { recording, ..Self::default() }
    }

    /// Begins a command.
    #[inline]
    pub fn begin(&mut self) {
        self.changes = 0;
        self.replaced = false;
        self.forced = false;
        if self.recording && !self.in_transaction {
            self.open_group();
        }
    }

    /// Begins a transaction: its records stand between MULTI and EXEC.
    pub fn begin_transaction(&mut self) {
        self.open_group();
        self.in_transaction = true;
    }

    /// Ends a transaction.
    pub fn end_transaction(&mut self) {
        self.in_transaction = false;
        self.close_group();
    }

    /// Whether the transaction under way has changed something: the rest of it belongs to that.
    #[must_use]
    pub fn is_halfway(&self) -> bool {
        self.in_transaction && self.group.is_some_and(|group| self.records > group.records)
    }

    fn open_group(&mut self) {
        self.group = Some(Group { bytes: self.bytes.len(), records: self.records });
    }

    /// Ends a group: several records of one belong together.
    #[inline]
    fn close_group(&mut self) {
        if let Some(group) = self.group.take()
            && self.records > group.records + 1
        {
            self.wrap(group);
        }
    }

    /// Puts the records since the group's start between MULTI and EXEC.
    #[cold]
    fn wrap(&mut self, group: Group) {
        self.bytes.splice(group.bytes..group.bytes, MULTI.iter().copied());
        for run in self.runs.iter_mut().filter(|run| run.start > group.bytes) {
            run.start += MULTI.len();
        }
        self.bytes.extend_from_slice(EXEC);
    }

    /// Notes an event where no command runs, if `wanted` has its class.
    pub(crate) fn tell(&mut self, wanted: Class, class: Class, name: &'static str, database: usize, key: &[u8]) {
        if wanted.meets(class) {
            self.events.push(Event { class, name, database, key: key.into() });
        }
    }

    /// Whether there is something to tell others of.
    #[must_use]
    #[inline]
    pub fn has_news(&self) -> bool {
        !self.events.is_empty() || !self.touched.is_empty()
    }

    /// Notes that a key has changed, for those who have it in their caches.
    #[inline]
    pub(crate) fn touch(&mut self, key: &[u8]) {
        if self.watching {
            self.touched.push(Touched::Key(key.into()));
        }
    }

    /// Notes that a database was emptied.
    pub(crate) fn touch_all(&mut self) {
        if self.watching {
            self.touched.push(Touched::All);
        }
    }

    /// Notes that all databases were emptied.
    pub(crate) fn flush_all(&mut self) {
        self.flushed_all = true;
    }

    /// Whether all databases were emptied since this was last asked.
    pub fn take_flushed_all(&mut self) -> bool {
        std::mem::take(&mut self.flushed_all)
    }

    /// Notes one change of the keyspace.
    pub fn change(&mut self) {
        self.changes += 1;
        self.changes_total += 1;
    }

    /// Notes `count` changes of the keyspace at once.
    pub fn change_many(&mut self, count: u64) {
        self.changes += count;
        self.changes_total += count;
    }

    /// The command is to be recorded even if it changed nothing (a flush of what is empty already).
    pub fn force(&mut self) {
        self.forced = true;
    }

    /// Whether the running command changed anything.
    #[must_use]
    pub fn changed(&self) -> bool {
        self.changes > 0
    }

    /// Changes noted since the last call of [`Effects::take_changes`].
    pub fn take_changes(&mut self) -> u64 {
        std::mem::take(&mut self.changes_total)
    }

    /// Records `words` in place of the command itself: an outcome that replays the same whenever it is replayed.
    pub fn replace(&mut self, database: usize, words: &[&[u8]]) {
        self.replaced = true;
        self.record(database, words);
    }

    /// The command is not to be recorded, whatever it changed.
    pub fn suppress(&mut self) {
        self.replaced = true;
    }

    /// Records `words` besides the command itself (the deletion of an expired key that it met).
    pub fn record(&mut self, database: usize, words: &[&[u8]]) {
        if self.recording {
            self.open_run(database);
            encode_command(&mut self.bytes, words.iter().copied());
        }
    }

    /// Ends a command: records it as it was sent if it changed something and was not replaced.
    #[inline]
    pub fn finish<'a>(&mut self, database: usize, raw: Option<&[u8]>, words: impl ExactSizeIterator<Item = &'a [u8]>) {
        if self.recording {
            self.finish_record(database, raw, words);
        }
    }

    fn finish_record<'a>(
        &mut self,
        database: usize,
        raw: Option<&[u8]>,
        words: impl ExactSizeIterator<Item = &'a [u8]>,
    ) {
        if (self.changes > 0 || self.forced) && !self.replaced {
            self.open_run(database);
            match raw {
                Some(raw) => self.bytes.extend_from_slice(raw),
                None => encode_command(&mut self.bytes, words),
            }
        }
        if !self.in_transaction {
            self.close_group();
        }
    }

    fn open_run(&mut self, database: usize) {
        if self.runs.last().is_none_or(|run| run.database != database) {
            self.runs.push(Run { database, start: self.bytes.len() });
        }
        self.records += 1;
    }

    /// Whether there are records to be logged.
    #[must_use]
    pub fn has_records(&self) -> bool {
        self.records > 0
    }

    /// Number of records since the last [`Effects::clear`].
    #[must_use]
    pub fn records(&self) -> usize {
        self.records
    }

    /// The records, run by run.
    pub fn runs(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.runs.iter().enumerate().map(|(index, run)| {
            let end = self.runs.get(index + 1).map_or(self.bytes.len(), |next| next.start);
            (run.database, &self.bytes[run.start..end])
        })
    }

    /// Forgets the records, keeping the memory for the next batch.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.runs.clear();
        self.records = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(effects: &Effects) -> Vec<(usize, String)> {
        effects
            .runs()
            .map(|(database, bytes)| (database, String::from_utf8_lossy(bytes).replace("\r\n", " ")))
            .collect()
    }

    #[test]
    fn records_that_belong_together_are_a_transaction() {
        let mut effects = Effects { recording: true, ..Effects::default() };
        effects.begin();
        effects.change();
        effects.finish(0, Some(b"A "), std::iter::empty());
        effects.begin();
        effects.record(0, &[b"B"]);
        effects.record(3, &[b"C"]);
        effects.finish(3, None, std::iter::empty());
        let expected = [(0, "A *1 $5 MULTI *1 $1 B ".to_owned()), (3, "*1 $1 C *1 $4 EXEC ".to_owned())];
        assert_eq!(text(&effects), expected);
        effects.clear();
        effects.begin_transaction();
        for database in [1, 2] {
            effects.begin();
            effects.change();
            assert_eq!(effects.is_halfway(), database == 2);
            effects.finish(database, Some(b"X "), std::iter::empty());
        }
        effects.end_transaction();
        assert!(!effects.is_halfway());
        assert_eq!(text(&effects), [(1, "*1 $5 MULTI X ".to_owned()), (2, "X *1 $4 EXEC ".to_owned())]);
    }
}
