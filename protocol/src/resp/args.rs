//! The arguments of one request, borrowed from the buffer in which they arrived.
//!
//! A request is a slice of byte ranges into a buffer, so that a pipeline of a hundred commands costs no allocation: the
//! ranges live in one vector that is reused for every batch. Replayed log records, queued `MULTI` commands and live requests
//! all take this shape, so a handler cannot tell them apart.

/// Where an argument lies in its buffer: offset of the first byte, and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Offset of the first byte.
    pub start: u32,
    /// Length in bytes.
    pub length: u32,
}

/// The arguments of one request; index 0 is the command's name.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    buffer: &'a [u8],
    ranges: &'a [Range],
}

impl<'a> Args<'a> {
    /// Arguments at `ranges` of `buffer`. Every range must lie inside the buffer, as those of the parser do.
    #[must_use]
    pub fn new(buffer: &'a [u8], ranges: &'a [Range]) -> Self {
        Self { buffer, ranges }
    }

    /// How many arguments there are, the command's name included.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a request always has its name")]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Argument `index`, which the command's arity has promised to be there.
    ///
    /// # Panics
    /// When there are fewer arguments: handlers check counts beyond the arity with [`Args::get`].
    #[must_use]
    pub fn at(&self, index: usize) -> &'a [u8] {
        self.slice(self.ranges[index])
    }

    /// Argument `index`, if there are that many.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.ranges.get(index).map(|range| self.slice(*range))
    }

    /// The arguments from `first` on, in order.
    pub fn from(&self, first: usize) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        let this = *self;
        this.ranges[first.min(this.ranges.len())..].iter().map(move |range| this.slice(*range))
    }

    /// The request that begins at argument `count`, as `COMMAND GETKEYS` is shown one.
    #[must_use]
    pub fn skip(&self, count: usize) -> Self {
        Self { buffer: self.buffer, ranges: &self.ranges[count.min(self.ranges.len())..] }
    }

    /// Whether argument `index` is there and equals `word`, letter case aside (as Redis compares option names).
    #[must_use]
    pub fn is(&self, index: usize, word: &str) -> bool {
        self.get(index).is_some_and(|argument| argument.eq_ignore_ascii_case(word.as_bytes()))
    }

    fn slice(&self, range: Range) -> &'a [u8] {
        let start = range.start as usize;
        &self.buffer[start..start + range.length as usize]
    }
}
