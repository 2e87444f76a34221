//! The request parser: incremental, borrowing, and suspicious.
//!
//! ```text
//! *3\r\n $3\r\nSET\r\n $1\r\nk\r\n $5\r\nhello\r\n      a multibulk request: what clients send
//! SET k "hello"\r\n                                 an inline request: what people type
//! ```
//!
//! The parser never copies an argument. It is given the same buffer again when more bytes have come and goes on where it
//! stopped, so a large value that arrives in a thousand pieces is looked at once. Limits and error texts are Redis's
//! (`networking.c` of the BSD-licensed releases; checked against 8.2.3): lengths are bounded before anything is reserved for
//! them, and more tightly before a client has authenticated (CVE-2021-32675, CVE-2025-21605).

use super::args::{Args, Range};
use crate::quoted::split_quoted;

/// The longest inline request, and the longest header line of a multibulk request, in bytes.
const INLINE_MAX: usize = 64 * 1024;
/// The most arguments a client may announce before it has authenticated.
const UNAUTHENTICATED_ARGS_MAX: i64 = 10;
/// The longest argument a client may announce before it has authenticated, in bytes.
const UNAUTHENTICATED_BULK_MAX: i64 = 16 * 1024;
/// Offsets are 32 bits wide, so no buffer and no argument reaches this.
const OFFSET_MAX: i64 = u32::MAX as i64 - 64;

/// What bounds a request besides the protocol itself.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// `proto-max-bulk-len`, in bytes.
    pub bulk_max: i64,
    /// Whether the client still has to authenticate.
    pub unauthenticated: bool,
}

/// A request that cannot be understood. The connection is closed after the error has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant is its text")]
pub enum ProtocolError {
    #[error("ERR Protocol error: too big inline request")]
    InlineTooBig,
    #[error("ERR Protocol error: unbalanced quotes in request")]
    UnbalancedQuotes,
    #[error("ERR Protocol error: too big mbulk count string")]
    CountLineTooBig,
    #[error("ERR Protocol error: too big bulk count string")]
    BulkLineTooBig,
    #[error("ERR Protocol error: invalid multibulk length")]
    Count,
    #[error("ERR Protocol error: unauthenticated multibulk length")]
    CountUnauthenticated,
    #[error("ERR Protocol error: expected '$', got '{}'", printable(*.0))]
    ExpectedBulk(u8),
    #[error("ERR Protocol error: invalid bulk length")]
    Bulk,
    #[error("ERR Protocol error: unauthenticated bulk length")]
    BulkUnauthenticated,
}

/// A byte as it may stand inside an error line: those that would end the line are shown as a blank.
fn printable(byte: u8) -> char {
    if byte == b'\r' || byte == b'\n' || byte == 0 { ' ' } else { char::from(byte) }
}

/// One complete request, as positions into the buffer it was parsed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Offset of its first byte.
    pub start: usize,
    /// Offset just behind its last byte.
    pub end: usize,
    /// Index of its first argument in the vector of ranges.
    pub args_from: usize,
    /// How many arguments it has.
    pub args_count: usize,
    /// Whether its bytes are exactly what an encoder would write, so that they may go to the log as they are.
    pub canonical: bool,
}

impl Request {
    /// The request's arguments.
    #[must_use]
    pub fn args<'a>(&self, buffer: &'a [u8], ranges: &'a [Range]) -> Args<'a> {
        Args::new(buffer, &ranges[self.args_from..self.args_from + self.args_count])
    }
}

/// What one call of [`RequestParser::next`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A complete request; its arguments were appended to the ranges.
    Request(Request),
    /// An inline request lies at these bytes. [`RequestParser::inline`] turns it into a multibulk one.
    Inline {
        /// Offset of the line's first byte.
        start: usize,
        /// Length of the line without its line end.
        length: usize,
        /// Offset just behind the line end.
        end: usize,
    },
    /// More bytes are needed.
    Incomplete,
}

/// The state between two calls: how far the current request has been read.
#[derive(Debug, Default)]
pub struct RequestParser {
    /// Arguments that the current request still lacks; 0 between requests.
    args_left: i64,
    /// Length of the argument whose header has been read.
    bulk: Option<u32>,
    /// Offset of the next unread byte, from the start of the current request.
    offset: usize,
    /// Arguments read so far, with offsets from the start of the current request.
    partial: Vec<Range>,
    /// No deviation from the encoder's form seen yet in the current request.
    canonical: bool,
}

impl RequestParser {
    /// A parser between two requests.
    #[must_use]
    pub const fn new() -> Self {
        Self { args_left: 0, bulk: None, offset: 0, partial: Vec::new(), canonical: false }
    }

    /// Reads the next request of `buffer` from `start` on, appending its arguments to `ranges`.
    ///
    /// After `Incomplete` call again with the same request at `start` (which may have moved: the parser keeps offsets relative
    /// to it) and more bytes behind it.
    ///
    /// # Errors
    /// [`ProtocolError`] when the bytes are no request; the parser is then of no further use.
    pub fn next(
        &mut self,
        buffer: &[u8],
        start: usize,
        ranges: &mut Vec<Range>,
        limits: Limits,
    ) -> Result<Progress, ProtocolError> {
        if self.args_left == 0
            && let Some(request) = whole(buffer, start, ranges, limits)
        {
            return Ok(Progress::Request(request));
        }
        let bytes = &buffer[start..];
        if self.args_left == 0 {
            match bytes.first() {
                None => return Ok(Progress::Incomplete),
                Some(b'*') => {}
                Some(_) => return find_inline(bytes, start),
            }
            let Some((count, after, canonical)) = header(bytes, 0, ProtocolError::CountLineTooBig)? else {
                return Ok(Progress::Incomplete);
            };
            let count = count.filter(|count| *count <= i64::from(i32::MAX)).ok_or(ProtocolError::Count)?;
            if limits.unauthenticated && count > UNAUTHENTICATED_ARGS_MAX {
                return Err(ProtocolError::CountUnauthenticated);
            }
            if count <= 0 {
                return Ok(Progress::Request(empty(start, start + after, ranges.len())));
            }
            self.args_left = count;
            self.offset = after;
            self.canonical = canonical;
        }
        self.arguments(bytes, limits)?;
        if self.args_left > 0 {
            return Ok(Progress::Incomplete);
        }
        Ok(Progress::Request(self.complete(start, ranges)))
    }

    /// Reads arguments until the request is complete or the bytes end.
    fn arguments(&mut self, bytes: &[u8], limits: Limits) -> Result<(), ProtocolError> {
        while self.args_left > 0 {
            let length = match self.bulk {
                Some(length) => length,
                None => match self.bulk_header(bytes, limits)? {
                    Some(length) => length,
                    None => return Ok(()),
                },
            };
            let end = self.offset + length as usize;
            let Some(line_end) = bytes.get(end..end + 2) else {
                self.bulk = Some(length);
                return Ok(());
            };
            self.canonical &= line_end == b"\r\n";
            let start = u32::try_from(self.offset).map_err(|_| ProtocolError::Bulk)?;
            self.partial.push(Range { start, length });
            self.offset = end + 2;
            self.bulk = None;
            self.args_left -= 1;
        }
        Ok(())
    }

    /// Reads `$<length>\r\n`.
    fn bulk_header(&mut self, bytes: &[u8], limits: Limits) -> Result<Option<u32>, ProtocolError> {
        match bytes.get(self.offset) {
            None => return Ok(None),
            Some(b'$') => {}
            // Redis looks at the kind only once the whole line is there.
            Some(other) => {
                return match header(bytes, self.offset, ProtocolError::BulkLineTooBig)? {
                    None => Ok(None),
                    Some(_) => Err(ProtocolError::ExpectedBulk(*other)),
                };
            }
        }
        let Some((length, after, canonical)) = header(bytes, self.offset, ProtocolError::BulkLineTooBig)? else {
            return Ok(None);
        };
        let length = length
            .filter(|length| (0..=limits.bulk_max.min(OFFSET_MAX)).contains(length))
            .ok_or(ProtocolError::Bulk)?;
        if limits.unauthenticated && length > UNAUTHENTICATED_BULK_MAX {
            return Err(ProtocolError::BulkUnauthenticated);
        }
        self.canonical &= canonical;
        self.offset = after;
        Ok(u32::try_from(length).ok())
    }

    /// Hands the finished request out and forgets it.
    fn complete(&mut self, start: usize, ranges: &mut Vec<Range>) -> Request {
        let base = start as u32;
        let args_from = ranges.len();
        ranges.extend(self.partial.iter().map(|range| Range { start: base + range.start, length: range.length }));
        let request = Request {
            start,
            end: start + self.offset,
            args_from,
            args_count: self.partial.len(),
            canonical: self.canonical,
        };
        self.partial.clear();
        self.offset = 0;
        request
    }

    /// How many bytes the argument being received still lacks: what the read buffer should have room for.
    #[must_use]
    pub fn missing(&self, available: usize) -> usize {
        self.bulk.map_or(0, |length| (self.offset + length as usize + 2).saturating_sub(available))
    }

    /// Turns an inline request into a multibulk one, encoded at the end of `buffer`.
    ///
    /// Returns `None` for an empty line, which gets no reply.
    ///
    /// # Errors
    /// [`ProtocolError::UnbalancedQuotes`].
    pub fn inline(
        line: &[u8],
        buffer: &mut Vec<u8>,
        ranges: &mut Vec<Range>,
    ) -> Result<Option<Request>, ProtocolError> {
        let words = split_quoted(line).map_err(|_| ProtocolError::UnbalancedQuotes)?;
        if words.is_empty() {
            return Ok(None);
        }
        let (start, args_from) = (buffer.len(), ranges.len());
        super::reply::write_header(buffer, b'*', words.len());
        for word in &words {
            super::reply::write_header(buffer, b'$', word.len());
            ranges.push(Range { start: buffer.len() as u32, length: word.len() as u32 });
            buffer.extend_from_slice(word);
            buffer.extend_from_slice(b"\r\n");
        }
        Ok(Some(Request { start, end: buffer.len(), args_from, args_count: words.len(), canonical: true }))
    }
}

/// The most arguments, and the longest one, of a request that is read in one go.
const WHOLE_ARGS_MAX: usize = 99;
const WHOLE_BULK_MAX: i64 = 999;

/// Reads a small request that is all there and has the encoder's form: nearly every one. `None` leaves it to the parser that
/// expects anything, as if nobody had looked.
#[inline]
fn whole(buffer: &[u8], start: usize, ranges: &mut Vec<Range>, limits: Limits) -> Option<Request> {
    if limits.unauthenticated || limits.bulk_max < WHOLE_BULK_MAX || buffer.get(start) != Some(&b'*') {
        return None;
    }
    let (args_count, mut at) = small_number(buffer, start + 1)?;
    if args_count == 0 || args_count > WHOLE_ARGS_MAX || u32::try_from(buffer.len()).is_err() {
        return None;
    }
    let args_from = ranges.len();
    for _ in 0..args_count {
        match whole_bulk(buffer, at) {
            Some(range) => {
                at = (range.start + range.length) as usize + 2;
                ranges.push(range);
            }
            None => {
                ranges.truncate(args_from);
                return None;
            }
        }
    }
    Some(Request { start, end: at, args_from, args_count, canonical: true })
}

/// Reads `$<length>\r\n<bytes>\r\n`.
#[inline]
fn whole_bulk(buffer: &[u8], at: usize) -> Option<Range> {
    if buffer.get(at) != Some(&b'$') {
        return None;
    }
    let (length, start) = small_number(buffer, at + 1)?;
    let end = start + length;
    (buffer.get(end..end + 2)? == b"\r\n").then_some(Range { start: start as u32, length: length as u32 })
}

/// Reads one to three digits, without a zero in front, and the line's end: the number and the offset behind it.
#[inline]
fn small_number(buffer: &[u8], at: usize) -> Option<(usize, usize)> {
    // Behind the shortest line there are three bytes more, or it is not all there.
    let line: &[u8; 5] = buffer.get(at..at + 5)?.first_chunk()?;
    let digit = |index: usize| {
        let digit = line[index].wrapping_sub(b'0');
        (digit < 10).then_some(usize::from(digit))
    };
    let is_end = |index: usize| line[index] == b'\r' && line[index + 1] == b'\n';
    let first = digit(0)?;
    if is_end(1) {
        return Some((first, at + 3));
    }
    if first == 0 {
        return None;
    }
    let second = first * 10 + digit(1)?;
    if is_end(2) {
        return Some((second, at + 4));
    }
    let third = second * 10 + digit(2)?;
    is_end(3).then_some((third, at + 5))
}

/// `*0` and `*-1`: a request without arguments, which gets no reply (and must leave no state behind: CVE-2026-27623).
fn empty(start: usize, end: usize, args_from: usize) -> Request {
    Request { start, end, args_from, args_count: 0, canonical: false }
}

/// Finds the end of an inline request.
fn find_inline(bytes: &[u8], start: usize) -> Result<Progress, ProtocolError> {
    match memchr::memchr(b'\n', bytes) {
        None if bytes.len() > INLINE_MAX => Err(ProtocolError::InlineTooBig),
        None => Ok(Progress::Incomplete),
        Some(at) => {
            let length = if at > 0 && bytes[at - 1] == b'\r' { at - 1 } else { at };
            Ok(Progress::Inline { start, length, end: start + at + 1 })
        }
    }
}

/// Reads a header line `<kind><integer>\r\n` at `offset`: its number (`None` when it is none), the offset behind it, and
/// whether it has the form an encoder would write. `Ok(None)` when the line is not complete.
#[inline]
fn header(
    bytes: &[u8],
    offset: usize,
    too_big: ProtocolError,
) -> Result<Option<(Option<i64>, usize, bool)>, ProtocolError> {
    // The usual line has one to four digits: look at them without a search.
    let mut value: i64 = 0;
    let mut at = offset + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'0'..=b'9' if at - offset <= 10 => value = value * 10 + i64::from(byte - b'0'),
            b'\r' if at > offset + 1 => {
                let Some(next) = bytes.get(at + 1) else { return Ok(None) };
                let leading_zero = bytes[offset + 1] == b'0' && at > offset + 2;
                let number = if leading_zero { None } else { Some(value) };
                return Ok(Some((number, at + 2, *next == b'\n')));
            }
            _ => return odd_header(bytes, offset, too_big),
        }
        at += 1;
    }
    Ok(None)
}

/// The header lines that are not one to ten digits: negative, empty, huge or garbage.
#[cold]
fn odd_header(
    bytes: &[u8],
    offset: usize,
    too_big: ProtocolError,
) -> Result<Option<(Option<i64>, usize, bool)>, ProtocolError> {
    let line = &bytes[offset..];
    match memchr::memchr(b'\r', line) {
        None if line.len() > INLINE_MAX => Err(too_big),
        None => Ok(None),
        Some(end) if end + 1 >= line.len() => Ok(None),
        Some(end) => Ok(Some((line.get(1..end).and_then(crate::number::parse_i64), offset + end + 2, false))),
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
