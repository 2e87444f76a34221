//! Ids of entries: a time in milliseconds and a number within it, and the ways in which a client may write one.

use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{CommandError, Reply};

/// The longest text that is read as an id.
const TEXT_MAX: usize = 127;

/// An entry's id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId {
    /// The time, in milliseconds, unless the client chose something else.
    pub ms: u64,
    /// The number within that time.
    pub seq: u64,
}

impl StreamId {
    /// The least: no entry has it.
    pub const MIN: Self = Self { ms: 0, seq: 0 };
    /// The greatest.
    pub const MAX: Self = Self { ms: u64::MAX, seq: u64::MAX };

    /// The id of these two numbers.
    #[must_use]
    pub const fn new(ms: u64, seq: u64) -> Self {
        Self { ms, seq }
    }

    /// Whether it is 0-0.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self == Self::MIN
    }

    /// The id behind this one.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(Self { ms: self.ms, seq }),
            None => Some(Self { ms: self.ms.checked_add(1)?, seq: 0 }),
        }
    }

    /// The id before this one.
    #[must_use]
    pub fn prev(self) -> Option<Self> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(Self { ms: self.ms, seq }),
            None => Some(Self { ms: self.ms.checked_sub(1)?, seq: u64::MAX }),
        }
    }

    /// The id's sixteen bytes in the order in which Redis keeps and compares them.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        let number = u128::from(self.ms) << 64 | u128::from(self.seq);
        number.to_be_bytes()
    }

    /// The id of [`StreamId::to_bytes`].
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let number = u128::from_be_bytes(bytes);
        Self { ms: (number >> 64) as u64, seq: number as u64 }
    }

    /// Writes the id as a bulk string.
    pub fn write_to(self, reply: &mut Reply) {
        reply.bulk(&self.to_text());
    }

    /// The id as text.
    #[must_use]
    pub fn to_text(self) -> Vec<u8> {
        let (mut ms, mut seq) = (itoa::Buffer::new(), itoa::Buffer::new());
        [ms.format(self.ms).as_bytes(), b"-", seq.format(self.seq).as_bytes()].concat()
    }

    /// Reads an id in full or as its first number, to which `missing` is the second.
    pub fn parse(text: &[u8], missing: u64) -> Result<Self, CommandError> {
        read(text).and_then(|typed| typed.with_missing(missing)).ok_or(INVALID)
    }

    /// Reads an id, or `-` or `+` for the least or the greatest.
    pub fn parse_open(text: &[u8], missing: u64) -> Result<Self, CommandError> {
        match text {
            b"-" => Ok(Self::MIN),
            b"+" => Ok(Self::MAX),
            _ => Self::parse(text, missing),
        }
    }

    /// Reads where an interval starts; with `(` before it, behind that id.
    pub fn parse_start(text: &[u8]) -> Result<Self, CommandError> {
        match excluded(text) {
            None => Self::parse_open(text, 0),
            Some(text) => {
                let id = Self::parse(text, 0)?;
                id.next().ok_or(CommandError::Text("ERR invalid start ID for the interval"))
            }
        }
    }

    /// Reads where an interval ends; with `(` before it, before that id.
    pub fn parse_end(text: &[u8]) -> Result<Self, CommandError> {
        match excluded(text) {
            None => Self::parse_open(text, u64::MAX),
            Some(text) => {
                let id = Self::parse(text, u64::MAX)?;
                id.prev().ok_or(CommandError::Text("ERR invalid end ID for the interval"))
            }
        }
    }
}

impl std::fmt::Display for StreamId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}-{}", self.ms, self.seq)
    }
}

const INVALID: CommandError = CommandError::Text("ERR Invalid stream ID specified as stream command argument");

/// The id behind the `(` of a bound that is excluded.
fn excluded(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b"(").filter(|rest| !rest.is_empty())
}

/// The id that XADD is to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewId {
    /// `*`: the time and the first number that is free.
    Auto,
    /// `ms-*`: the first number that is free in that time.
    AutoSeq(u64),
    /// This one.
    Exact(StreamId),
}

impl NewId {
    /// Reads XADD's id.
    pub fn parse(text: &[u8]) -> Result<Self, CommandError> {
        if text == b"*" {
            return Ok(Self::Auto);
        }
        match read(text).ok_or(INVALID)? {
            Typed { ms, seq: TypedSeq::Given(seq) } => Ok(Self::Exact(StreamId { ms, seq })),
            Typed { ms, seq: TypedSeq::Missing } => Ok(Self::Exact(StreamId { ms, seq: 0 })),
            Typed { ms, seq: TypedSeq::Star } => Ok(Self::AutoSeq(ms)),
        }
    }

    /// The id itself, in a stream whose last one is `last`; nothing if none is left.
    #[must_use]
    pub fn choose(self, last: StreamId, now_ms: u64) -> Option<StreamId> {
        match self {
            Self::Exact(id) => Some(id),
            Self::Auto if now_ms > last.ms => Some(StreamId::new(now_ms, 0)),
            Self::Auto => last.next(),
            Self::AutoSeq(ms) if ms == last.ms => Some(StreamId::new(ms, last.seq.checked_add(1)?)),
            // A time that lies before the last one is refused where ids are compared.
            Self::AutoSeq(ms) => Some(StreamId::new(ms, 0)),
        }
    }
}

/// An id as it was typed.
struct Typed {
    ms: u64,
    seq: TypedSeq,
}

enum TypedSeq {
    Missing,
    Star,
    Given(u64),
}

impl Typed {
    fn with_missing(&self, missing: u64) -> Option<StreamId> {
        match self.seq {
            TypedSeq::Given(seq) => Some(StreamId { ms: self.ms, seq }),
            TypedSeq::Missing => Some(StreamId { ms: self.ms, seq: missing }),
            TypedSeq::Star => None,
        }
    }
}

fn read(text: &[u8]) -> Option<Typed> {
    (text.len() <= TEXT_MAX).then_some(())?;
    let text = text.split(|byte| *byte == 0).next()?;
    let Some(dash) = memchr::memchr(b'-', text) else {
        return Some(Typed { ms: read_number(text)?, seq: TypedSeq::Missing });
    };
    let seq = match &text[dash + 1..] {
        b"*" => TypedSeq::Star,
        seq => TypedSeq::Given(read_number(seq)?),
    };
    Some(Typed { ms: read_number(&text[..dash])?, seq })
}

/// Reads a number as generously as Redis does: what is not in its only spelling is read as C's `strtoull` reads it, blanks and
/// sign before it included.
fn read_number(text: &[u8]) -> Option<u64> {
    if let Some(number) = parse_i64(text) {
        return u64::try_from(number).ok();
    }
    let text = text.trim_ascii_start();
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    (!digits.is_empty()).then_some(())?;
    let number = digits.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })?;
    Some(if negative { number.wrapping_neg() } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_are_read_as_redis_reads_them() {
        let of = |ms, seq| Some(StreamId::new(ms, seq));
        let too_long = [&b"0".repeat(127)[..], b"-1"].concat();
        for (text, expected) in [
            (&b"1-1"[..], of(1, 1)),
            (b"1", of(1, 7)),
            (b"01-01", of(1, 1)),
            (b" 1-1", of(1, 1)),
            (b"+1-+2", of(1, 2)),
            (b"1- -1", of(1, u64::MAX)),
            (b"1--01", of(1, u64::MAX)),
            (b"1--1", None),
            (b"7\0-1", of(7, 7)),
            (b"18446744073709551615-18446744073709551615", Some(StreamId::MAX)),
            (b"18446744073709551616", None),
            (b"", None),
            (b"-", None),
            (b"-1", None),
            (b"1-", None),
            (b"1-1 ", None),
            (b"1-*", None),
            (b"*", None),
            (b"1-2-3", None),
            (&too_long, None),
        ] {
            assert_eq!(StreamId::parse(text, 7).ok(), expected, "{:?}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn the_ends_of_an_interval_may_be_open_or_excluded() {
        let start = |text: &str| StreamId::parse_start(text.as_bytes()).map_err(|error| error.to_string());
        let end = |text: &str| StreamId::parse_end(text.as_bytes()).map_err(|error| error.to_string());
        assert_eq!(start("-"), Ok(StreamId::MIN));
        assert_eq!(end("+"), Ok(StreamId::MAX));
        assert_eq!(start("5"), Ok(StreamId::new(5, 0)));
        assert_eq!(end("5"), Ok(StreamId::new(5, u64::MAX)));
        assert_eq!(start("(5"), Ok(StreamId::new(5, 1)));
        assert_eq!(end("(5"), Ok(StreamId::new(5, u64::MAX - 1)));
        assert_eq!(end("(5-0"), Ok(StreamId::new(4, u64::MAX)));
        assert_eq!(start("("), Err(INVALID.to_string()));
        assert_eq!(start("(-"), Err(INVALID.to_string()));
        let greatest = "(18446744073709551615-18446744073709551615";
        assert_eq!(start(greatest), Err("ERR invalid start ID for the interval".into()));
        assert_eq!(end("(0-0"), Err("ERR invalid end ID for the interval".into()));
    }

    #[test]
    fn a_new_id_follows_the_last_one() {
        let last = StreamId::new(10, 5);
        let choose = |text: &str, now_ms| NewId::parse(text.as_bytes()).unwrap().choose(last, now_ms);
        assert_eq!(choose("*", 11), Some(StreamId::new(11, 0)));
        assert_eq!(choose("*", 9), Some(StreamId::new(10, 6)));
        assert_eq!(choose("10-*", 0), Some(StreamId::new(10, 6)));
        assert_eq!(choose("12-*", 0), Some(StreamId::new(12, 0)));
        assert_eq!(choose("3", 0), Some(StreamId::new(3, 0)));
        assert_eq!(NewId::Auto.choose(StreamId::MAX, 1), None);
        assert_eq!(NewId::AutoSeq(u64::MAX).choose(StreamId::MAX, 1), None);
    }

    proptest! {
        #[test]
        fn neighbours_and_bytes(ms: u64, seq: u64) {
            let id = StreamId { ms, seq };
            prop_assert_eq!(StreamId::from_bytes(id.to_bytes()), id);
            prop_assert_eq!(StreamId::parse(&id.to_text(), 0), Ok(id));
            if let Some(next) = id.next() {
                prop_assert!(next > id);
                prop_assert_eq!(next.prev(), Some(id));
                prop_assert!(next.to_bytes() > id.to_bytes());
            }
        }
    }
}
