//! Reads a log back, chunk by chunk, and decides what of it counts. It never skips a byte and goes on.
//!
//! What counts, for a file (or the part of one) that our start line begins:
//!
//! ```text
//!  |== sealed group ==|== sealed group ==|== tail: no good seal behind it ==|
//!      verified           verified            the rules below
//! ```
//!
//! 1. *Sealed*: records are handed out only once the seal behind them fits. Nothing damaged is replayed.
//! 2. *The file simply ends* (cut short, or nothing but zeros from some byte on, within a group that has no seal): the
//!    longest prefix of whole records and transactions counts, up to the first missing sector; the rest is cut. The
//!    write of this group did not finish, so nobody was told that it is safe; what did arrive is kept.
//! 3. *A group does not fit its seal, or does not read as records*: none of it counts, for it cannot be known which
//!    bytes are wrong. Whether the rest may be cut depends on what later seals (each believed by its own check) say
//!    was synced when they were written:
//!    * some later seal says that this group was synced: no power loss can have done that. *Damaged middle*: refuse,
//!      with the byte offset and what to do. In `always` mode every group but the last is in this class.
//!    * no later seal says so: the group was being written when the power went. *Torn tail*: cut from its first byte on.
//!      Later groups that did arrive are cut too, because what survives must be a prefix. In `everysec` mode
//!      this is the last second; in `always` mode the last group.
//!
//! The price of rule 3 is that rot in the last group of an `always` log looks like a torn write, and is cut with a warning.
//! The writer closes that gap by adding a seal of an empty group after a sync when it has nothing else to write.
//!
//! A start line must be synced before the first group is written, or a torn one could not be told from a damaged one.
//!
//! A file without a start line was written by Redis or Valkey and loads by Redis's rules: a truncated or zero-filled tail is
//! cut, any other damage refused. With `aof-load-truncated no` every cut is refused. An open MULTI at the end is cut as a
//! whole, always. What a real server appended to a file of ours is a tail without seals (rule 2); once such a tail is longer
//! than any group of ours it is handed out as it is read.

pub use super::before::Before;
use super::record::{self, Limits, Parsed};
use super::seal::{self, Annotation, LINE_BYTES_MAX, Seal, Sealer};
use super::tail::SealSearch;
pub use super::verdict::{Cut, End, Reason, ReplayError};
use simurgh_protocol::resp::{Args, Range};

mod judge;

/// A writer should seal at least this often. Larger groups are read too, but handed out before they are verified.
pub const GROUP_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How a file is to be read.
#[derive(Debug, Clone)]
pub struct Options {
    /// What a record may claim.
    pub limits: Limits,
    /// `aof-load-truncated`: whether a torn tail is cut, or refused.
    pub load_truncated: bool,
    /// Offset in the file of the first byte that is fed: 0, or what an RDB preamble takes.
    pub offset: u64,
    /// What comes before the file; a start line at its front must go on from there.
    pub before: Before,
    /// Largest group that is held back until its seal is there.
    pub group_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            load_truncated: true,
            offset: 0,
            before: Before::Unknown,
            group_bytes_max: GROUP_BYTES_MAX,
        }
    }
}

/// A command to replay. SELECT, MULTI and EXEC are not handed out; they are in these fields.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// The command and its arguments.
    pub arguments: Args<'a>,
    /// The database it runs in.
    pub database: u32,
    /// Whether it stood between MULTI and EXEC.
    pub in_transaction: bool,
    /// Where it begins in the file.
    pub offset: u64,
}

/// The reader of one file. A clone goes on from where the original stands.
#[derive(Debug, Clone)]
pub struct Replay {
    options: Options,
    buffer: Vec<u8>,
    /// File offset of the buffer's first byte.
    buffer_offset: u64,
    /// Bytes fed, as a file offset.
    fed: u64,
    /// How far the buffer is parsed.
    scan: usize,
    /// Length of the buffer from which another look at the record at `scan` pays.
    look_again: usize,
    held: Held,
    database: u32,
    /// File offset of the MULTI that is open.
    transaction: Option<u64>,
    seals: Option<Sealed>,
    /// File offset before which everything counts.
    accepted: u64,
    seal_count: u64,
    /// Where groups end, as log position and file offset: the last that a seal said was synced, and those after it.
    marks: Vec<(u64, u64)>,
    /// The last seal says that everything before it was synced.
    is_vouched: bool,
    damage: Option<Damage>,
    misplaced: Option<ReplayError>,
    finished: bool,
}

/// Records that were read, in order: some were handed out (`next`), some may be (`ready`), some wait for their seal.
#[derive(Debug, Clone, Default)]
struct Held {
    records: Vec<HeldRecord>,
    ranges: Vec<Range>,
    next: usize,
    ready: usize,
    count: u64,
}

#[derive(Debug, Clone)]
struct HeldRecord {
    offset: u64,
    ranges: std::ops::Range<usize>,
    database: u32,
    in_transaction: bool,
}

/// Where our own part of the file stands.
#[derive(Debug, Clone)]
struct Sealed {
    /// At the last good seal, and its end in the file.
    last: Sealer,
    end: u64,
    /// At `summed` in the file.
    running: Sealer,
    summed: u64,
    /// Whole records and transactions since.
    units: Vec<Unit>,
    /// The tail grew longer than a group may be: it is handed out as it is read.
    streaming: bool,
    /// An annotation that we did not write, since the last seal.
    unknown_annotation: Option<u64>,
}

/// The end of a record, transaction or annotation outside of one; and how many records are held up to there.
#[derive(Debug, Clone)]
struct Unit {
    end: u64,
    records: usize,
}

#[derive(Debug, Clone)]
struct Damage {
    offset: u64,
    reason: Reason,
    /// So far nothing but zeros was seen from `offset` on.
    zeros_only: bool,
    search: Option<SealSearch>,
}

/// Whether a step found something to do.
#[derive(PartialEq, Eq)]
enum Step {
    Advanced,
    Starved,
}

impl Replay {
    /// A reader at the front of a file.
    pub fn new(options: Options) -> Self {
        let offset = options.offset;
        Self {
            options,
            buffer: Vec::new(),
            buffer_offset: offset,
            fed: offset,
            scan: 0,
            look_again: 0,
            held: Held::default(),
            database: 0,
            transaction: None,
            seals: None,
            accepted: offset,
            seal_count: 0,
            marks: Vec::new(),
            is_vouched: false,
            damage: None,
            misplaced: None,
            finished: false,
        }
    }

    /// Takes the file's next bytes. Call [`Replay::next_record`] until it has no more before feeding again.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.fed += bytes.len() as u64;
        if let Some(damage) = &mut self.damage {
            damage.zeros_only = damage.zeros_only && bytes.iter().all(|&byte| byte == 0);
            if let Some(search) = &mut damage.search {
                search.feed(bytes);
            }
            return;
        }
        self.forget_done();
        self.buffer.extend_from_slice(bytes);
    }

    /// The next record that counts; none when more bytes are needed (or, after [`Replay::finish`], at the end).
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, ReplayError> {
        while self.held.next == self.held.ready && self.step() == Step::Advanced {}
        if let Some(error) = self.misplaced {
            return Err(error);
        }
        if self.held.next == self.held.ready {
            return Ok(None);
        }
        let held = &self.held.records[self.held.next];
        self.held.next += 1;
        self.held.count += 1;
        let start = (held.offset - self.buffer_offset) as usize;
        let arguments = Args::new(&self.buffer[start..], &self.held.ranges[held.ranges.clone()]);
        let HeldRecord { offset, database, in_transaction, .. } = *held;
        Ok(Some(Record { arguments, database, in_transaction, offset }))
    }

    /// Up to where seals vouch for the file so far, and how many there were.
    pub fn sealed(&self) -> (u64, u64) {
        let end = self.seals.as_ref().filter(|_| self.seal_count > 0).map_or(0, |sealed| sealed.end);
        (end, self.seal_count)
    }

    /// Parses one record or annotation.
    fn step(&mut self) -> Step {
        if self.damage.is_some() || self.misplaced.is_some() || self.finished {
            return Step::Starved;
        }
        match self.buffer.get(self.scan) {
            None => Step::Starved,
            Some(b'#') => self.step_annotation(),
            Some(_) => self.step_record(),
        }
    }

    fn step_record(&mut self) -> Step {
        if self.buffer.len() < self.look_again {
            return Step::Starved;
        }
        self.forget_handed_out();
        let ranges_before = self.held.ranges.len();
        let rest = &self.buffer[self.scan..];
        match record::parse(rest, &self.options.limits, &mut self.held.ranges) {
            Parsed::Incomplete { length_min } => {
                // Looking again only after a good part more has come keeps huge records from costing their square.
                let wait = length_min.max(rest.len() + rest.len() / 4);
                self.look_again = self.scan.saturating_add(wait);
                return Step::Starved;
            }
            Parsed::Malformed { offset, fault } => {
                self.damage_at(self.scan + offset, Reason::Format(fault));
                return Step::Advanced;
            }
            Parsed::Complete { length } => self.take_record(ranges_before, length),
        }
        Step::Advanced
    }

    fn take_record(&mut self, ranges_before: usize, length: usize) {
        let offset = self.offset_of(self.scan);
        let arguments = Args::new(&self.buffer[self.scan..], &self.held.ranges[ranges_before..]);
        let role = Role::of(&arguments);
        let wrong = match role {
            Role::Multi if self.transaction.is_some() => Some(Reason::NestedMulti),
            Role::Exec if self.transaction.is_none() => Some(Reason::ExecWithoutMulti),
            Role::Select(None) => Some(Reason::Select),
            Role::Multi | Role::Exec | Role::Select(Some(_)) | Role::Command => None,
        };
        if let Some(reason) = wrong {
            return self.damage_at(self.scan, reason);
        }
        self.scan += length;
        match role {
            Role::Multi => self.transaction = Some(offset),
            Role::Exec => self.transaction = None,
            Role::Select(database) => self.database = database.unwrap_or(self.database),
            Role::Command => {
                let ranges = ranges_before..self.held.ranges.len();
                let in_transaction = self.transaction.is_some();
                self.held.records.push(HeldRecord { offset, ranges, database: self.database, in_transaction });
            }
        }
        self.close_unit();
    }

    /// Everything up to `scan` is whole, unless a transaction is open.
    fn close_unit(&mut self) {
        if self.transaction.is_some() {
            return;
        }
        let end = self.offset_of(self.scan);
        let records = self.held.records.len();
        if let Some(sealed) = &mut self.seals {
            sealed.units.push(Unit { end, records });
            sealed.streaming |= end - sealed.end > self.options.group_bytes_max as u64;
            if sealed.streaming {
                self.accept_units(end);
            }
        } else {
            self.accepted = end;
            self.held.ready = records;
        }
    }

    fn step_annotation(&mut self) -> Step {
        let rest = &self.buffer[self.scan..];
        let window = &rest[..rest.len().min(LINE_BYTES_MAX)];
        let Some(line_feed) = memchr::memchr(b'\n', window) else {
            if window.len() < LINE_BYTES_MAX {
                return Step::Starved;
            }
            let at = memchr::memchr(0, window).unwrap_or(0);
            self.damage_at(self.scan + at, Reason::LongLine);
            return Step::Advanced;
        };
        let line = &rest[..=line_feed];
        let end = self.scan + line.len();
        match seal::parse(line) {
            Annotation::Start(start) => self.take_start(start, end),
            Annotation::Seal(seal) => self.take_seal(seal, end),
            Annotation::Damaged => self.damage_at(self.scan, Reason::DamagedLine),
            annotation @ (Annotation::Timestamp | Annotation::Unknown) => {
                let offset = self.offset_of(self.scan);
                if let (Some(sealed), Annotation::Unknown) = (&mut self.seals, annotation) {
                    sealed.unknown_annotation.get_or_insert(offset);
                }
                self.scan = end;
                self.close_unit();
            }
        }
        Step::Advanced
    }

    fn take_start(&mut self, start: Sealer, end: usize) {
        if self.transaction.is_some() {
            return self.damage_at(self.scan, Reason::SealInTransaction);
        }
        let offset = self.offset_of(self.scan);
        if self.seals.as_ref().is_some_and(|sealed| sealed.end != offset || sealed.last != start) {
            return self.damage_at(self.scan, Reason::StartMismatch);
        }
        if self.seals.is_none() && offset == self.options.offset {
            self.misplaced = self.options.before.misplaces(&start);
            if self.misplaced.is_some() {
                return;
            }
        }
        self.scan = end;
        // Until a seal behind it says so, nobody knows whether the line itself was synced.
        (self.marks, self.is_vouched) = (vec![(start.position(), offset)], false);
        self.begin_group(start, self.offset_of(end));
    }

    fn take_seal(&mut self, seal: Seal, end: usize) {
        let line = self.scan;
        let end_offset = self.offset_of(end);
        let Some(sealed) = &self.seals else { return self.damage_at(line, Reason::NoStart) };
        if self.transaction.is_some() {
            return self.damage_at(line, Reason::SealInTransaction);
        }
        let summed = (sealed.summed - self.buffer_offset) as usize;
        let group = (sealed.end.saturating_sub(self.buffer_offset)) as usize;
        let mut running = sealed.running;
        running.absorb(&self.buffer[summed..line]);
        if (running.position(), running.chain()) != (seal.position, seal.chain) {
            return self.damage_at(group, Reason::Sum);
        }
        self.scan = end;
        self.seal_count += 1;
        // A seal does not vouch for itself, nor for one that only announced: of those at a position, the first counts.
        let covered = self.marks.partition_point(|(position, _)| *position <= seal.synced);
        if let Some(last) = covered.checked_sub(1) {
            let vouched = self.marks[last].0;
            self.marks.drain(..self.marks.partition_point(|(position, _)| *position < vouched));
        }
        self.marks.push((seal.position, end_offset));
        self.is_vouched = seal.synced == seal.position;
        self.begin_group(running, end_offset);
    }

    /// Everything up to `end` counts, and the log stands at `sealer` there.
    fn begin_group(&mut self, sealer: Sealer, end: u64) {
        let mut units = self.seals.take().map(|sealed| sealed.units).unwrap_or_default();
        units.clear();
        self.seals = Some(Sealed {
            last: sealer,
            end,
            running: sealer,
            summed: end,
            units,
            streaming: false,
            unknown_annotation: None,
        });
        self.accepted = end;
        self.held.ready = self.held.records.len();
    }

    fn damage_at(&mut self, at: usize, reason: Reason) {
        let search = self.seals.as_ref().map(|sealed| {
            let mut search = SealSearch::new(sealed.last.position());
            let from = sealed.end.saturating_sub(self.buffer_offset) as usize;
            search.feed(&self.buffer[from..]);
            search
        });
        let zeros_only = self.buffer.get(at..).is_some_and(|rest| rest.iter().all(|&byte| byte == 0));
        self.damage = Some(Damage { offset: self.offset_of(at), reason, zeros_only, search });
    }

    fn offset_of(&self, at: usize) -> u64 {
        self.buffer_offset + at as u64
    }

    /// Once every record that was read is handed out, their notes are of no use.
    fn forget_handed_out(&mut self) {
        if self.held.next == 0 || self.held.next < self.held.records.len() {
            return;
        }
        self.held.records.clear();
        self.held.ranges.clear();
        (self.held.next, self.held.ready) = (0, 0);
        for unit in self.seals.iter_mut().flat_map(|sealed| &mut sealed.units) {
            unit.records = 0;
        }
    }

    /// Drops what is not needed any more from the front of the buffer, when that is the larger part of it.
    fn forget_done(&mut self) {
        let mut needed = self.offset_of(self.scan);
        if let Some(sealed) = &self.seals {
            needed = needed.min(sealed.summed);
        }
        if let Some(record) = self.held.records.get(self.held.next) {
            needed = needed.min(record.offset);
        }
        let done = (needed - self.buffer_offset) as usize;
        if done > self.buffer.len() / 2 {
            self.buffer.drain(..done);
            self.buffer_offset = needed;
            self.scan -= done;
            self.look_again = self.look_again.saturating_sub(done);
        }
    }
}

/// What a record is to the structure of the log.
enum Role {
    Multi,
    Exec,
    Select(Option<u32>),
    Command,
}

impl Role {
    fn of(arguments: &Args<'_>) -> Self {
        let name = arguments.get(0).unwrap_or_default();
        match arguments.len() {
            1 if name.eq_ignore_ascii_case(b"MULTI") => Self::Multi,
            1 if name.eq_ignore_ascii_case(b"EXEC") => Self::Exec,
            2 if name.eq_ignore_ascii_case(b"SELECT") => {
                let number = arguments.get(1).filter(|word| word.iter().all(u8::is_ascii_digit));
                Self::Select(number.and_then(|word| std::str::from_utf8(word).ok()?.parse().ok()))
            }
            _ => Self::Command,
        }
    }
}

#[cfg(test)]
mod tests;
