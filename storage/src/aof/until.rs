//! Where a log stood at a moment: the place to cut a file so that what is kept is the data as it was then.
//!
//! A moment is a second of the clock, told by the annotations of `aof-timestamp-enabled`, or a position of the log, told by seals.
//! Cuts lie between records, never within a transaction.

use super::record::{self, Fault, Limits, Parsed};
use super::seal::{self, Annotation, LINE_BYTES_MAX, Sealer};
use simurgh_protocol::resp::{Args, Range};

/// A moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Everything up to the end of this second since 1970.
    Second(u64),
    /// At most so many bytes of the log.
    Position(u64),
}

/// Why no place was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UntilError {
    /// Not a record.
    #[error("damaged at byte {offset}: {fault}")]
    Damaged {
        /// Where.
        offset: u64,
        /// What.
        fault: Fault,
    },
    /// A line that does not end.
    #[error("damaged at byte {0}: an annotation that does not end")]
    Line(u64),
}

/// Where to cut a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The length to keep.
    pub keep: u64,
    /// Where the log stands at `from`, the last start line or seal before it, in a file that has them.
    pub sealer: Option<Sealer>,
    /// The file's bytes from here up to `keep` are not sealed.
    pub from: u64,
}

impl Place {
    /// The position of the log at the cut, if the file tells.
    #[must_use]
    pub fn position(&self) -> Option<u64> {
        self.sealer.map(|sealer| sealer.position() + (self.keep - self.from))
    }
}

/// The search through one file of records, piece by piece.
#[derive(Debug)]
pub struct Finder {
    until: Until,
    buffer: Vec<u8>,
    /// File offset of the buffer's first byte.
    buffer_offset: u64,
    scan: usize,
    in_transaction: bool,
    /// The end of the last whole record or transaction.
    place: Place,
    /// The second of the last annotation.
    second: Option<u64>,
    ranges: Vec<Range>,
    is_found: bool,
}

impl Finder {
    /// A search from byte `offset` of a file on.
    #[must_use]
    pub fn new(until: Until, offset: u64) -> Self {
        Self {
            until,
            buffer: Vec::new(),
            buffer_offset: offset,
            scan: 0,
            in_transaction: false,
            place: Place { keep: offset, sealer: None, from: offset },
            second: None,
            ranges: Vec::new(),
            is_found: false,
        }
    }

    /// The second of the last annotation that was seen: none where the log has none.
    #[must_use]
    pub fn second(&self) -> Option<u64> {
        self.second
    }

    /// The end of the last whole record or transaction so far; after the last piece, of the file.
    #[must_use]
    pub fn place(&self) -> Place {
        self.place
    }

    /// Takes the file's next bytes; the place, if the moment lies before their end.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Option<Place>, UntilError> {
        self.buffer.drain(..self.scan);
        self.buffer_offset += self.scan as u64;
        self.scan = 0;
        self.buffer.extend_from_slice(bytes);
        while !self.is_found && self.step()? {}
        Ok(self.is_found.then_some(self.place))
    }

    /// Takes one record or annotation; whether there was a whole one.
    fn step(&mut self) -> Result<bool, UntilError> {
        let offset = self.buffer_offset + self.scan as u64;
        let rest = &self.buffer[self.scan..];
        match rest.first() {
            None => return Ok(false),
            Some(b'#') => {
                let window = &rest[..rest.len().min(LINE_BYTES_MAX)];
                let Some(line_feed) = memchr::memchr(b'\n', window) else {
                    return if rest.len() < LINE_BYTES_MAX { Ok(false) } else { Err(UntilError::Line(offset)) };
                };
                self.take_annotation(line_feed + 1);
                return Ok(true);
            }
            Some(_) => {}
        }
        self.ranges.clear();
        match record::parse(rest, &Limits::default(), &mut self.ranges) {
            Parsed::Incomplete { .. } => Ok(false),
            Parsed::Malformed { offset: at, fault } => Err(UntilError::Damaged { offset: offset + at as u64, fault }),
            Parsed::Complete { length } => {
                let args = Args::new(rest, &self.ranges);
                match args.len() {
                    1 if args.is(0, "MULTI") => self.in_transaction = true,
                    1 if args.is(0, "EXEC") => self.in_transaction = false,
                    _ => {}
                }
                self.advance(length);
                Ok(true)
            }
        }
    }

    fn take_annotation(&mut self, length: usize) {
        let line = &self.buffer[self.scan..self.scan + length];
        match seal::parse(line) {
            Annotation::Start(sealer) => self.stand_at(sealer, length),
            Annotation::Seal(seal) => self.stand_at(Sealer::new(seal.position, seal.chain), length),
            Annotation::Timestamp => {
                let second = seal::second_of(line);
                self.second = second.or(self.second);
                match (self.until, second) {
                    (Until::Second(until), Some(second)) if second > until => self.is_found = true,
                    _ => self.advance(length),
                }
            }
            Annotation::Damaged | Annotation::Unknown => self.advance(length),
        }
    }

    fn stand_at(&mut self, sealer: Sealer, length: usize) {
        self.scan += length;
        let end = self.buffer_offset + self.scan as u64;
        self.place = Place { keep: end, sealer: Some(sealer), from: end };
    }

    fn advance(&mut self, length: usize) {
        let end = self.buffer_offset + (self.scan + length) as u64;
        let next = Place { keep: end, ..self.place };
        match (self.until, next.position()) {
            // A transaction goes beyond it as a whole: its beginning is the place.
            (Until::Position(until), Some(position)) if position > until => self.is_found = true,
            _ => {
                self.scan += length;
                if !self.in_transaction {
                    self.place = next;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::encode;
    use super::*;

    /// Five groups; the second of each and the position behind it.
    fn log() -> (Vec<u8>, Vec<(u64, u64, u64)>) {
        let (mut file, mut ends) = (Vec::new(), Vec::new());
        let mut sealer = Sealer::new(100, 7);
        sealer.write_start(&mut file);
        for second in 10..15u64 {
            let mut group = format!("#TS:{second}\r\n").into_bytes();
            for words in [&[&b"MULTI"[..]][..], &[b"SET", b"k", b"v"], &[b"DEL", b"x"], &[b"EXEC"]] {
                encode(&mut group, words.iter().copied());
            }
            sealer.seal(&mut group, 0);
            file.extend_from_slice(&group);
            ends.push((second, sealer.position(), file.len() as u64));
        }
        (file, ends)
    }

    fn find(file: &[u8], until: Until, piece: usize) -> (bool, Place) {
        let mut finder = Finder::new(until, 0);
        for piece in file.chunks(piece) {
            if let Some(place) = finder.feed(piece).unwrap() {
                return (true, place);
            }
        }
        (false, finder.place())
    }

    #[test]
    fn a_second_is_kept_whole() {
        let (file, ends) = log();
        for piece in [1, 7, 1000] {
            for (second, position, end) in &ends {
                let (found, place) = find(&file, Until::Second(*second), piece);
                assert_eq!((place.keep, place.position()), (*end, Some(*position)));
                assert_eq!(found, *second != 14);
            }
            assert_eq!(find(&file, Until::Second(9), piece).1.position(), Some(100));
        }
    }

    #[test]
    fn a_position_is_never_exceeded_and_no_transaction_is_cut() {
        let (file, ends) = log();
        let last = ends.last().unwrap().1;
        for until in 100..=last + 5 {
            let (found, place) = find(&file, Until::Position(until), 13);
            let position = place.position().unwrap();
            let within = ends.iter().map(|end| end.1).filter(|end| *end <= until).max().unwrap_or(100);
            // A timestamp may stand behind the last transaction that counts.
            assert!(position <= until && (position == within || position == within + 8), "{until}: {position}");
            assert_eq!(found, until < last);
            let kept = &file[..place.keep as usize];
            assert_eq!(
                kept.windows(5).filter(|word| word == b"MULTI").count(),
                kept.windows(4).filter(|word| word == b"EXEC").count()
            );
        }
    }

    #[test]
    fn damage_is_told_and_a_log_of_others_has_no_position() {
        assert_eq!(
            Finder::new(Until::Position(5), 3).feed(b"*1\r\n$4\r\nPING\r\nx"),
            Err(UntilError::Damaged { offset: 17, fault: Fault::NoArray })
        );
        let mut finder = Finder::new(Until::Position(0), 0);
        assert_eq!(finder.feed(b"*1\r\n$4\r\nPING\r\n"), Ok(None));
        assert_eq!((finder.place().position(), finder.second()), (None, None));
        assert_eq!(Finder::new(Until::Second(5), 0).feed(&[b'#'; 200]), Err(UntilError::Line(0)));
        // However much comes at once.
        let long = [&[b'#'; 200][..], b"\n"].concat();
        assert_eq!(Finder::new(Until::Second(5), 0).feed(&long), Err(UntilError::Line(0)));
    }
}
