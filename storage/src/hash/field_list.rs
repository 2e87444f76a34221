//! What the commands of field expiry have in common: `FIELDS numfields field ...` at the end, and times.

use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};

/// The latest time at which a field may expire, in milliseconds of Unix time: Redis keeps 46 bits.
const AT_MAX: i64 = (1 << 46) - 1;

/// The fields behind `FIELDS numfields`, which has to stand at `index`.
#[derive(Clone, Copy)]
pub(super) struct FieldList<'a> {
    args: Args<'a>,
    first: usize,
}

impl<'a> FieldList<'a> {
    /// Reads the list, which is the rest of the command; `not_positive` is what a count below one is answered with.
    pub fn read(args: &Args<'a>, index: usize, not_positive: &'static str) -> Result<Self, CommandError> {
        if !args.is(index, "FIELDS") {
            let text = "ERR Mandatory argument FIELDS is missing or not at the right position";
            return Err(CommandError::Text(text));
        }
        let first = index + 2;
        let count = args.get(index + 1).and_then(parse_i64).filter(|count| *count > 0);
        let count = count.ok_or(CommandError::Text(not_positive))?;
        if usize::try_from(count) != Ok(args.len() - first) {
            return Err(CommandError::Text("ERR The `numfields` parameter must match the number of arguments"));
        }
        Ok(Self { args: *args, first })
    }

    /// The list of HTTL, HPERSIST, HGETEX and HGETDEL.
    pub fn at(args: &Args<'a>, index: usize) -> Result<Self, CommandError> {
        Self::read(args, index, "ERR Number of fields must be a positive integer")
    }

    /// The fields.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        self.args.from(self.first)
    }

    /// How many there are: at least one.
    pub fn len(&self) -> usize {
        self.args.len() - self.first
    }
}

/// In which unit a time was given, and from where it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Seconds from now.
    Seconds,
    /// Milliseconds from now.
    Milliseconds,
    /// Seconds of Unix time.
    AtSeconds,
    /// Milliseconds of Unix time.
    AtMilliseconds,
}

impl Form {
    /// The form that the option at `index` names.
    pub fn read(args: &Args<'_>, index: usize) -> Option<Self> {
        let words = [
            ("EX", Self::Seconds),
            ("PX", Self::Milliseconds),
            ("EXAT", Self::AtSeconds),
            ("PXAT", Self::AtMilliseconds),
        ];
        words.into_iter().find(|(word, _)| args.is(index, word)).map(|(_, form)| form)
    }

    /// A time in this form as milliseconds of Unix time.
    pub fn instant(self, text: &[u8], now_ms: i64, command: &'static str) -> Result<i64, CommandError> {
        let time = parse_i64(text).ok_or(CommandError::NotAnInteger)?;
        if time < 0 {
            return Err(CommandError::Text("ERR invalid expire time, must be >= 0"));
        }
        let milliseconds = match self {
            Self::Seconds | Self::AtSeconds => time.checked_mul(1000),
            Self::Milliseconds | Self::AtMilliseconds => Some(time),
        };
        let at = match self {
            Self::Seconds | Self::Milliseconds => milliseconds.and_then(|span| span.checked_add(now_ms)),
            Self::AtSeconds | Self::AtMilliseconds => milliseconds,
        };
        at.filter(|at| *at <= AT_MAX).ok_or(CommandError::InvalidExpire(command))
    }
}

/// `command key ... FIELDS n field ...` as a record.
pub(super) fn record<'a>(front: &[&'a [u8]], count: &'a str, fields: &[&'a [u8]]) -> Vec<&'a [u8]> {
    [front, &[b"FIELDS", count.as_bytes()], fields].concat()
}
