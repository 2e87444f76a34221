//! Redis's patterns, as `KEYS`, `SCAN`, `PSUBSCRIBE` and `CONFIG GET` take them.
//!
//! ```text
//!  *        any bytes, also none            [abc] [a-z]   one of these bytes, or of this range
//!  ?        any one byte                    [^abc]        any one byte but these
//!  \x       the byte x itself               anything else stands for itself
//! ```
//!
//! A pattern is read once into the pieces between its stars and then costs little a key, however it was meant. The first and
//! the last piece have fixed places. Those between are sought from left to right, each right after the one before; the
//! leftmost find is always as good as any other, so nothing is tried twice and nothing recurses (CVE-2022-36021,
//! CVE-2024-31228). A piece without wildcards is sought in linear time, one with up to 64 bytes by trying every place, a
//! longer one by following all places at once with one bit each (Baeza-Yates and Gonnet, *A new approach to text searching*).

use memchr::memmem::Finder;

/// Pieces with wildcards up to this length are sought by trying every place.
const TRIED_MAX: usize = 64;

/// A pattern, ready to be compared with many keys.
#[derive(Debug)]
pub struct Glob {
    first: Piece,
    middle: Vec<Piece>,
    /// What follows the last star; `None` without a star, where the first piece is everything.
    last: Option<Piece>,
    length_min: usize,
    /// The pattern is `*`, the one pattern with a star that fits the empty text: `**` does not, in Redis.
    is_star: bool,
}

/// What stands for one byte.
#[derive(Clone, Debug, PartialEq)]
enum Token {
    Byte(u8),
    /// A letter in either case, given in lower case.
    Letter(u8),
    Any,
    /// One bit for each byte.
    Class([u64; 4]),
}

impl Token {
    fn matches(&self, byte: u8) -> bool {
        match self {
            Token::Byte(wanted) => *wanted == byte,
            Token::Letter(wanted) => *wanted == byte.to_ascii_lowercase(),
            Token::Any => true,
            Token::Class(bits) => bits[usize::from(byte >> 6)] & (1 << (byte & 63)) != 0,
        }
    }
}

/// Tokens between two stars.
#[derive(Debug, Default)]
struct Piece {
    tokens: Vec<Token>,
    search: Search,
}

/// How a piece between two stars is sought.
#[derive(Debug, Default)]
enum Search {
    /// By comparing its tokens at every place.
    #[default]
    Tried,
    /// It is plain text.
    Text(Box<Finder<'static>>),
    /// One bit for each place; the masks of a byte say which tokens it matches.
    Bits { words: usize, masks: Vec<u64> },
}

impl Glob {
    /// Reads a pattern.
    #[must_use]
    pub fn new(pattern: &[u8]) -> Self {
        Self::read(pattern, false)
    }

    /// Reads a pattern for which letters match in either case.
    #[must_use]
    pub fn ignoring_case(pattern: &[u8]) -> Self {
        Self::read(pattern, true)
    }

    fn read(pattern: &[u8], any_case: bool) -> Self {
        let mut pieces = Reader { rest: pattern, any_case }.pieces();
        let length_min = pieces.iter().map(|piece| piece.tokens.len()).sum();
        let last = if pieces.len() > 1 { pieces.pop() } else { None };
        let mut middle = pieces.split_off(1);
        middle.retain(|piece| !piece.tokens.is_empty());
        middle.iter_mut().for_each(Piece::prepare);
        let first = pieces.pop().unwrap_or_default();
        Glob { first, middle, last, length_min, is_star: pattern == b"*" }
    }

    /// Whether the whole of `text` fits.
    #[must_use]
    pub fn matches(&self, text: &[u8]) -> bool {
        let Some(last) = &self.last else {
            return text.len() == self.length_min && self.first.starts(text);
        };
        if text.is_empty() {
            return self.is_star;
        }
        if text.len() < self.length_min || !self.first.starts(text) {
            return false;
        }
        let (text, end) = text.split_at(text.len() - last.tokens.len());
        let mut rest = &text[self.first.tokens.len()..];
        last.starts(end) && self.middle.iter().all(|piece| piece.find(rest).map(|end| rest = &rest[end..]).is_some())
    }

    /// Whether any text at all fits, so that nothing needs comparing.
    #[must_use]
    pub fn matches_everything(&self) -> bool {
        self.is_star
    }
}

impl Piece {
    /// Chooses how to seek it.
    fn prepare(&mut self) {
        let byte = |token: &Token| if let Token::Byte(byte) = token { Some(*byte) } else { None };
        let text: Option<Vec<u8>> = self.tokens.iter().map(byte).collect();
        self.search = match text {
            Some(text) => Search::Text(Box::new(Finder::new(&text).into_owned())),
            None if self.tokens.len() <= TRIED_MAX => Search::Tried,
            None => self.bits(),
        };
    }

    fn bits(&self) -> Search {
        let words = self.tokens.len().div_ceil(64);
        let mut masks = vec![0; words * 256];
        for byte in 0..=u8::MAX {
            let mask = &mut masks[usize::from(byte) * words..][..words];
            for (at, _) in self.tokens.iter().enumerate().filter(|(_, token)| token.matches(byte)) {
                mask[at / 64] |= 1 << (at % 64);
            }
        }
        Search::Bits { words, masks }
    }

    /// Whether the text begins with it.
    fn starts(&self, text: &[u8]) -> bool {
        text.len() >= self.tokens.len() && self.tokens.iter().zip(text).all(|(token, byte)| token.matches(*byte))
    }

    /// Where its leftmost occurrence ends.
    fn find(&self, text: &[u8]) -> Option<usize> {
        let length = self.tokens.len();
        match &self.search {
            Search::Text(finder) => finder.find(text).map(|at| at + length),
            Search::Tried => text.windows(length).position(|window| self.starts(window)).map(|at| at + length),
            Search::Bits { words, masks } => self.find_by_bits(text, *words, masks),
        }
    }

    /// Bit `i` of `state`: the last `i + 1` bytes match the first `i + 1` tokens. One byte moves every bit up by one and
    /// keeps those whose token it matches.
    fn find_by_bits(&self, text: &[u8], words: usize, masks: &[u64]) -> Option<usize> {
        let mut state = vec![0_u64; words];
        let done = 1 << ((self.tokens.len() - 1) % 64);
        for (at, byte) in text.iter().enumerate() {
            let mut carry = 1;
            for (word, mask) in state.iter_mut().zip(&masks[usize::from(*byte) * words..]) {
                let next = *word >> 63;
                *word = (*word << 1 | carry) & mask;
                carry = next;
            }
            if state[words - 1] & done != 0 {
                return Some(at + 1);
            }
        }
        None
    }
}

/// Reads a pattern from its front.
struct Reader<'a> {
    rest: &'a [u8],
    any_case: bool,
}

impl Reader<'_> {
    fn pieces(mut self) -> Vec<Piece> {
        let mut pieces = vec![Piece::default()];
        while let Some((byte, rest)) = self.rest.split_first() {
            self.rest = rest;
            let token = match byte {
                b'*' => {
                    pieces.push(Piece::default());
                    continue;
                }
                b'?' => Token::Any,
                b'[' => self.class(),
                // A backslash at the end stands for itself.
                b'\\' => self.next().map_or(Token::Byte(b'\\'), |byte| self.byte(byte)),
                byte => self.byte(*byte),
            };
            if let Some(piece) = pieces.last_mut() {
                piece.tokens.push(token);
            }
        }
        pieces
    }

    fn next(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    fn byte(&self, byte: u8) -> Token {
        if self.any_case && byte.is_ascii_alphabetic() {
            Token::Letter(byte.to_ascii_lowercase())
        } else {
            Token::Byte(byte)
        }
    }

    /// What follows a `[`. A class that is never closed ends with the pattern; a byte behind a backslash stands for itself
    /// alone, whatever its case; `a-` takes the byte that follows for the end of a range, even a `]`.
    fn class(&mut self) -> Token {
        let negated = self.rest.first() == Some(&b'^');
        if negated {
            self.rest = &self.rest[1..];
        }
        let mut bits = [0; 4];
        loop {
            match *self.rest {
                [b'\\', byte, ..] => {
                    self.rest = &self.rest[2..];
                    add(&mut bits, byte);
                }
                [b']', ..] => {
                    self.rest = &self.rest[1..];
                    break;
                }
                [from, b'-', to, ..] => {
                    self.rest = &self.rest[3..];
                    self.range(&mut bits, from.min(to), from.max(to));
                }
                [byte, ..] => {
                    self.rest = &self.rest[1..];
                    self.range(&mut bits, byte, byte);
                }
                [] => break,
            }
        }
        Token::Class(if negated { bits.map(|word| !word) } else { bits })
    }

    fn range(&self, bits: &mut [u64; 4], from: u8, to: u8) {
        let fold = |byte: u8| if self.any_case { byte.to_ascii_lowercase() } else { byte };
        let range = fold(from)..=fold(to);
        (0..=u8::MAX).filter(|byte| range.contains(&fold(*byte))).for_each(|byte| add(bits, byte));
    }
}

fn add(bits: &mut [u64; 4], byte: u8) {
    bits[usize::from(byte >> 6)] |= 1 << (byte & 63);
}

/// Whether one text fits one pattern. For many texts, read the pattern once: [`Glob::new`].
#[must_use]
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    Glob::new(pattern).matches(text)
}

/// As [`matches`], letters in either case.
#[must_use]
pub fn matches_ignoring_case(pattern: &[u8], text: &[u8]) -> bool {
    Glob::ignoring_case(pattern).matches(text)
}

#[cfg(test)]
mod tests;
