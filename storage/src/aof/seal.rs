//! The sums in the log: each written group of records ends in a line that says where the log stands and what all of it
//! up to there sums to. Lines that begin with `#` are annotations in Redis's format, and Redis 7.0, 8.2 and Valkey 9.1
//! skip those they do not know (tried between and after records), so the file stays loadable by them.
//!
//! ```text
//! #SIMURGH:1:<position>:<chain>:<check>\r\n                 the start: a file, or our part of one, continues from here
//! *3\r\n$3\r\nSET\r\n...                                    a group of records
//! #SUM:<position>:<synced>:<chain>:<check>\r\n              its seal
//! ```
//!
//! * `position`: bytes of the log up to here, counting everything but start and seal lines. It goes on from file to file.
//! * `chain`: CRC-64 of the same bytes, 16 hex digits. It goes on from the chain before, which began with a value drawn
//!   at random for this log. So a group that was lost, swapped, repeated or comes from another log does not fit, and
//!   the start line of a file tells whether that file follows the one before it.
//! * `synced`: the position up to which the log was known to be synced when the seal was made. A torn write can only
//!   lie beyond it, so it tells what a power loss may have done from what it cannot (see `replay.rs`).
//! * `check`: the low half of the CRC-64 of the line before it, 8 hex digits, so a seal can be believed on its own.
//!
//! Two lines are never confused with a record, never stand inside MULTI ... EXEC, and stay below the 128 bytes that
//! Redis reads at once.

use crate::rdb::crc64::crc64;

/// Longest annotation line, CR LF included: Redis reads lines into a buffer of 128 bytes with a NUL at its end.
pub const LINE_BYTES_MAX: usize = 127;

/// How every seal begins.
pub(super) const SEAL_PREFIX: &[u8] = b"#SUM:";
const START_PREFIX: &[u8] = b"#SIMURGH:1:";
const ANY_START_PREFIX: &[u8] = b"#SIMURGH:";
const TIMESTAMP_PREFIX: &[u8] = b"#TS:";
const LINE_END: &[u8] = b"\r\n";
/// Two numbers of 20 digits, chain, check, colons: every line of ours fits.
const _: () = assert!(START_PREFIX.len() + 20 + 1 + 20 + 1 + 16 + 1 + 8 + LINE_END.len() <= LINE_BYTES_MAX);

/// Where a log stands: how far, and the sum of all that came before. Makes start lines and seals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sealer {
    position: u64,
    chain: u64,
}

impl Sealer {
    /// A log that stands at `position` with `chain`; a new log begins at 0 with a random chain, a log that was read back
    /// goes on from what `replay` found.
    pub fn new(position: u64, chain: u64) -> Self {
        Self { position, chain }
    }

    /// Bytes of the log so far, start and seal lines not counted.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The sum of the log so far.
    pub fn chain(&self) -> u64 {
        self.chain
    }

    /// Takes in bytes of the log that are or will be written. A group may be taken in piece by piece.
    pub fn absorb(&mut self, bytes: &[u8]) {
        self.position += bytes.len() as u64;
        self.chain = crc64(self.chain, bytes);
    }

    /// Appends the line with which a new file begins (or our part of a file that another server began).
    pub fn write_start(&self, out: &mut Vec<u8>) {
        let line = out.len();
        out.extend_from_slice(START_PREFIX);
        push_number(out, self.position);
        push_hex(out, self.chain, 16);
        finish_line(out, line);
    }

    /// Appends the seal of everything absorbed. `synced` is the position known to be on the disk, at most our own.
    pub fn write_seal(&self, out: &mut Vec<u8>, synced: u64) {
        let line = out.len();
        out.extend_from_slice(SEAL_PREFIX);
        push_number(out, self.position);
        push_number(out, synced.min(self.position));
        push_hex(out, self.chain, 16);
        finish_line(out, line);
    }

    /// Absorbs a whole group and appends its seal to it. An empty group is a seal that only announces `synced`.
    pub fn seal(&mut self, group: &mut Vec<u8>, synced: u64) {
        self.absorb(group);
        self.write_seal(group, synced);
    }
}

fn push_number(out: &mut Vec<u8>, number: u64) {
    let mut digits = itoa::Buffer::new();
    out.extend_from_slice(digits.format(number).as_bytes());
    out.push(b':');
}

fn push_hex(out: &mut Vec<u8>, number: u64, digits: u32) {
    for place in (0..digits).rev() {
        let nibble = (number >> (place * 4)) & 15;
        out.push(b"0123456789abcdef"[nibble as usize]);
    }
}

/// Adds the check and the line's end to the line that begins at `line`.
fn finish_line(out: &mut Vec<u8>, line: usize) {
    out.push(b':');
    let check = line_check(&out[line..]);
    push_hex(out, check, 8);
    out.extend_from_slice(LINE_END);
}

fn line_check(text: &[u8]) -> u64 {
    crc64(0, text) & 0xffff_ffff
}

/// What a seal says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seal {
    /// Position of the log at the seal.
    pub position: u64,
    /// Position known to be synced when it was made.
    pub synced: u64,
    /// Sum of the log at the seal.
    pub chain: u64,
}

/// A line that begins with `#`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Annotation {
    /// A start line of ours.
    Start(Sealer),
    /// A seal of ours.
    Seal(Seal),
    /// `#TS:`, the time of what follows (`aof-timestamp-enabled`).
    Timestamp,
    /// Begins like a line of ours, but its check does not fit.
    Damaged,
    /// Something that a later version or another server wrote.
    Unknown,
}

/// Reads one annotation line, its line end included.
pub fn parse(line: &[u8]) -> Annotation {
    if line.starts_with(SEAL_PREFIX) {
        parse_seal(line).map_or(Annotation::Damaged, Annotation::Seal)
    } else if line.starts_with(ANY_START_PREFIX) {
        parse_start(line).map_or(Annotation::Damaged, Annotation::Start)
    } else if line.starts_with(TIMESTAMP_PREFIX) {
        Annotation::Timestamp
    } else {
        Annotation::Unknown
    }
}

fn parse_seal(line: &[u8]) -> Option<Seal> {
    let mut fields = checked(line)?.strip_prefix(SEAL_PREFIX)?.split(|&byte| byte == b':');
    let position = take_number(fields.next()?)?;
    let synced = take_number(fields.next()?)?;
    let chain = take_hex(fields.next()?, 16)?;
    let whole = fields.next().is_none() && synced <= position;
    whole.then_some(Seal { position, synced, chain })
}

fn parse_start(line: &[u8]) -> Option<Sealer> {
    let mut fields = checked(line)?.strip_prefix(START_PREFIX)?.split(|&byte| byte == b':');
    let position = take_number(fields.next()?)?;
    let chain = take_hex(fields.next()?, 16)?;
    fields.next().is_none().then_some(Sealer { position, chain })
}

/// The line without its check and end, if the check fits.
fn checked(line: &[u8]) -> Option<&[u8]> {
    let text = line.strip_suffix(LINE_END)?;
    let (text, check) = text.split_at_checked(text.len().checked_sub(8)?)?;
    (take_hex(check, 8)? == line_check(text)).then_some(())?;
    text.strip_suffix(b":")
}

fn take_number(digits: &[u8]) -> Option<u64> {
    let plain = digits.iter().all(u8::is_ascii_digit) && (digits.len() == 1 || !digits.starts_with(b"0"));
    plain.then_some(())?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn take_hex(digits: &[u8], length: usize) -> Option<u64> {
    let lower = digits.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (lower && digits.len() == length).then_some(())?;
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Appends the annotation that tells the time of what follows, in seconds since 1970. Part of the log, as records are.
pub fn write_second(out: &mut Vec<u8>, second: u64) {
    let mut digits = itoa::Buffer::new();
    out.extend_from_slice(TIMESTAMP_PREFIX);
    out.extend_from_slice(digits.format(second).as_bytes());
    out.extend_from_slice(LINE_END);
}

/// The time that a line tells.
pub fn second_of(line: &[u8]) -> Option<u64> {
    take_number(line.strip_prefix(TIMESTAMP_PREFIX)?.strip_suffix(LINE_END)?)
}

/// Whether the front of a line, cut by the end of the file, can be the front of a timestamp.
pub(super) fn is_cut_timestamp(cut: &[u8]) -> bool {
    cut.starts_with(TIMESTAMP_PREFIX) || TIMESTAMP_PREFIX.starts_with(cut)
}

/// Whether the front of a line, cut by the end of the file, can be the front of a seal at `position` with `chain`.
pub(super) fn agrees_with(cut: &[u8], position: u64, chain: u64) -> bool {
    let mut wanted = SEAL_PREFIX.to_vec();
    push_number(&mut wanted, position);
    let common = cut.len().min(wanted.len());
    if cut[..common] != wanted[..common] {
        return false;
    }
    // After the position come `synced`, which may be any number, and the chain.
    let Some(synced_end) = cut[common..].iter().position(|&byte| byte == b':') else {
        return cut[common..].iter().all(u8::is_ascii_digit);
    };
    let rest = &cut[common + synced_end + 1..];
    let mut hex = Vec::new();
    push_hex(&mut hex, chain, 16);
    let common = rest.len().min(hex.len());
    rest[..common] == hex[..common]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_what_the_header_says() {
        let mut sealer = Sealer::new(0, 0xabc);
        let mut out = Vec::new();
        sealer.write_start(&mut out);
        assert_eq!(parse(&out), Annotation::Start(sealer));
        assert!(out.starts_with(b"#SIMURGH:1:0:0000000000000abc:"));
        let mut group = b"*1\r\n$4\r\nPING\r\n".to_vec();
        sealer.seal(&mut group, 0);
        let line = &group[14..];
        assert!(line.starts_with(b"#SUM:14:0:"), "{}", String::from_utf8_lossy(line));
        assert_eq!(parse(line), Annotation::Seal(Seal { position: 14, synced: 0, chain: sealer.chain() }));
        let mut largest = Vec::new();
        Sealer::new(u64::MAX, u64::MAX).write_seal(&mut largest, u64::MAX);
        assert!(largest.len() <= LINE_BYTES_MAX);
        assert!(matches!(parse(&largest), Annotation::Seal(_)));
    }

    #[test]
    fn pieces_sum_as_the_whole() {
        let (mut pieces, mut whole) = (Sealer::new(5, 9), Sealer::new(5, 9));
        pieces.absorb(b"ab");
        pieces.absorb(b"c");
        whole.absorb(b"abc");
        assert_eq!(pieces, whole);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let mut line = Vec::new();
        Sealer::new(1234, 0x0123_4567_89ab_cdef).write_seal(&mut line, 1000);
        for bit in 0..line.len() * 8 {
            let mut flipped = line.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(!matches!(parse(&flipped), Annotation::Seal(_) | Annotation::Start(_)), "bit {bit}");
        }
    }

    #[test]
    fn a_cut_seal_agrees_as_far_as_it_goes() {
        let mut line = Vec::new();
        Sealer::new(1234, 7).write_seal(&mut line, 1000);
        for cut in 0..line.len() {
            assert!(agrees_with(&line[..cut], 1234, 7), "cut {cut}");
            assert!(cut < 9 || !agrees_with(&line[..cut], 1235, 7), "cut {cut}");
            assert!(cut < 31 || !agrees_with(&line[..cut], 1234, 8), "cut {cut}");
        }
    }
}
