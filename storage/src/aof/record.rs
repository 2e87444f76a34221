//! One record of the log: a command as a RESP array of bulk strings, which is also how replicas and clients send it.
//!
//! ```text
//! *3\r\n $3\r\nSET\r\n $1\r\nk\r\n $5\r\nvalue\r\n        (without the blanks)
//! ```
//!
//! Encoding appends to the caller's buffer and allocates nothing else. Parsing copies nothing: it notes where each
//! argument lies, as the parser of requests does, so that a handler takes both alike. It is stricter than Redis's loader, which reads numbers like `atoi`: lengths are plain decimal without
//! sign or leading zeros and every line ends in CR LF. All writers write it so, and what else is found is damage.

use simurgh_protocol::resp::{Range, encode_command};

/// What a record may claim before it counts as damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most arguments of one record.
    pub arguments_max: usize,
    /// Most bytes of one argument (`proto-max-bulk-len` bounds what can have been written).
    pub argument_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { arguments_max: i32::MAX as usize, argument_bytes_max: 512 * 1024 * 1024 }
    }
}

/// The smallest argument, `$0\r\n\r\n`.
const ARGUMENT_BYTES_MIN: usize = 6;
/// Digits of the longest length that is looked at; more cannot be within any limit.
const LENGTH_DIGITS_MAX: usize = 19;

/// Why bytes are not a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A record must begin with `*`.
    #[error("expected '*' or '#'")]
    NoArray,
    /// An argument must begin with `$`.
    #[error("expected '$'")]
    NoBulk,
    /// A length is not a plain decimal number.
    #[error("invalid length")]
    Length,
    /// The command has no arguments at all, or more than the limit.
    #[error("argument count out of range")]
    ArgumentCount,
    /// An argument is longer than the limit.
    #[error("argument too long")]
    ArgumentBytes,
    /// Offsets within a record are 32 bits wide, here as in a connection's buffer.
    #[error("record longer than 4 GiB")]
    RecordBytes,
    /// CR LF is missing.
    #[error("expected CR LF")]
    LineEnd,
}

/// What the front of a slice holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parsed {
    /// A whole record of this many bytes; its arguments were appended to `ranges`.
    Complete {
        /// Length of the record.
        length: usize,
    },
    /// A record that goes on after the slice; `ranges` is as before.
    Incomplete {
        /// The record has at least this many bytes in all.
        length_min: usize,
    },
    /// No record; `ranges` is as before.
    Malformed {
        /// First byte that does not fit, counted from the start of the slice.
        offset: usize,
        /// What is wrong there.
        fault: Fault,
    },
}

/// Appends a whole record.
///
/// ```
/// let mut out = Vec::new();
/// simurgh_storage::aof::record::encode(&mut out, [&b"SET"[..], b"k", b"v"]);
/// assert_eq!(out, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n");
/// ```
pub fn encode<'a, I>(out: &mut Vec<u8>, arguments: I)
where
    I: IntoIterator<Item = &'a [u8]>,
    I::IntoIter: ExactSizeIterator,
{
    encode_command(out, arguments.into_iter());
}

/// Reads the record at the front of `bytes` and appends where its arguments lie to `ranges`.
pub fn parse(bytes: &[u8], limits: &Limits, ranges: &mut Vec<Range>) -> Parsed {
    let ranges_before = ranges.len();
    match parse_arguments(bytes, limits, ranges) {
        Ok(length) => Parsed::Complete { length },
        Err(stop) => {
            ranges.truncate(ranges_before);
            match stop {
                Stop::Short { length_min } => Parsed::Incomplete { length_min },
                Stop::Fault { offset, fault } => Parsed::Malformed { offset, fault },
            }
        }
    }
}

/// Why reading stopped before the end of a record.
enum Stop {
    Short { length_min: usize },
    Fault { offset: usize, fault: Fault },
}

fn parse_arguments(bytes: &[u8], limits: &Limits, ranges: &mut Vec<Range>) -> Result<usize, Stop> {
    let (count, mut at) = take_length(bytes, 0, b'*', Fault::NoArray)?;
    if count == 0 || count > limits.arguments_max {
        return Err(Stop::Fault { offset: 0, fault: Fault::ArgumentCount });
    }
    for index in 0..count {
        let rest_min = (count - index - 1).saturating_mul(ARGUMENT_BYTES_MIN);
        let line = at;
        let (length, start) = match take_length(bytes, at, b'$', Fault::NoBulk) {
            Err(Stop::Short { length_min }) => {
                return Err(Stop::Short { length_min: length_min.saturating_add(rest_min) });
            }
            other => other?,
        };
        if length > limits.argument_bytes_max {
            return Err(Stop::Fault { offset: line, fault: Fault::ArgumentBytes });
        }
        let end = start.saturating_add(length);
        at = take_line_end(bytes, end, rest_min)?;
        let (Ok(start), Ok(length), Ok(_)) = (u32::try_from(start), u32::try_from(length), u32::try_from(at)) else {
            return Err(Stop::Fault { offset: line, fault: Fault::RecordBytes });
        };
        ranges.push(Range { start, length });
    }
    Ok(at)
}

/// Reads `kind`, a decimal number and CR LF at `at`; returns the number and what offset follows.
fn take_length(bytes: &[u8], at: usize, kind: u8, wrong_kind: Fault) -> Result<(usize, usize), Stop> {
    match bytes.get(at) {
        None => return Err(Stop::Short { length_min: at + 4 }),
        Some(&byte) if byte != kind => {
            return Err(Stop::Fault { offset: at, fault: wrong_kind });
        }
        Some(_) => {}
    }
    let mut end = at + 1;
    let mut number: usize = 0;
    while let Some(digit) = bytes.get(end).filter(|byte| byte.is_ascii_digit()) {
        let leading_zero = end > at + 1 && number == 0;
        if leading_zero || end - at > LENGTH_DIGITS_MAX {
            return Err(Stop::Fault { offset: end, fault: Fault::Length });
        }
        number = number.saturating_mul(10).saturating_add(usize::from(digit - b'0'));
        end += 1;
    }
    if end == at + 1 && end < bytes.len() {
        return Err(Stop::Fault { offset: end, fault: Fault::Length });
    }
    Ok((number, take_line_end(bytes, end, 0)?))
}

/// CR LF at `at`; returns what offset follows. `rest_min` bytes follow at least.
fn take_line_end(bytes: &[u8], at: usize, rest_min: usize) -> Result<usize, Stop> {
    for (offset, wanted) in (at..).zip(*b"\r\n") {
        match bytes.get(offset) {
            None => {
                return Err(Stop::Short { length_min: at.saturating_add(2).saturating_add(rest_min) });
            }
            Some(&byte) if byte != wanted => {
                return Err(Stop::Fault { offset, fault: Fault::LineEnd });
            }
            Some(_) => {}
        }
    }
    Ok(at + 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use simurgh_protocol::resp::Args;

    fn parsed(bytes: &[u8]) -> Parsed {
        parse(bytes, &Limits::default(), &mut Vec::new())
    }

    #[test]
    fn faults_name_the_byte() {
        let at = |bytes: &[u8]| {
            let Parsed::Malformed { offset, fault } = parsed(bytes) else { panic!("{bytes:?}") };
            (offset, fault)
        };
        assert_eq!(at(b"+OK\r\n"), (0, Fault::NoArray));
        assert_eq!(at(b"*0\r\n"), (0, Fault::ArgumentCount));
        assert_eq!(at(b"*-1\r\n"), (1, Fault::Length));
        assert_eq!(at(b"*01\r\n"), (2, Fault::Length));
        assert_eq!(at(b"*1\n"), (2, Fault::LineEnd));
        assert_eq!(at(b"*1\r\n:3\r\n"), (4, Fault::NoBulk));
        assert_eq!(at(b"*1\r\n$3\r\nabcd\r\n"), (11, Fault::LineEnd));
        assert_eq!(at(b"*1\r\n$9999999999\r\n"), (4, Fault::ArgumentBytes));
        assert_eq!(at(b"*1\r\n$99999999999999999999\r\n"), (24, Fault::Length));
    }

    #[test]
    fn length_min_counts_what_must_follow() {
        assert_eq!(parsed(b""), Parsed::Incomplete { length_min: 4 });
        assert_eq!(parsed(b"*3\r\n$3\r\nSE"), Parsed::Incomplete { length_min: 13 + 12 });
    }

    proptest! {
        #[test]
        fn round_trip_and_every_cut(words in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..6)) {
            let mut out = Vec::new();
            encode(&mut out, words.iter().map(Vec::as_slice));
            let mut ranges = Vec::new();
            prop_assert_eq!(parse(&out, &Limits::default(), &mut ranges), Parsed::Complete { length: out.len() });
            let back: Vec<Vec<u8>> = Args::new(&out, &ranges).from(0).map(<[u8]>::to_vec).collect();
            prop_assert_eq!(back, words);
            for cut in 0..out.len() {
                let Parsed::Incomplete { length_min } = parsed(&out[..cut]) else { panic!("cut at {cut}") };
                prop_assert!(length_min > cut && length_min <= out.len());
            }
        }

        #[test]
        fn any_bytes_are_safe(bytes in prop::collection::vec(prop_oneof![Just(b'*'), Just(b'$'), Just(b'1'), Just(b'\r'), Just(b'\n'), any::<u8>()], 0..60)) {
            let mut ranges = Vec::new();
            if let Parsed::Complete { length } = parse(&bytes, &Limits::default(), &mut ranges) {
                let mut again = Vec::new();
                encode(&mut again, Args::new(&bytes, &ranges).from(0));
                prop_assert_eq!(&again[..], &bytes[..length]);
            }
        }
    }
}
