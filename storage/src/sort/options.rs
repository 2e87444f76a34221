//! What a SORT asks for.

use super::pattern::Pattern;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};
use std::ops::Range;

/// The options behind the key.
pub(super) struct Options<'a> {
    pub by: Option<Pattern<'a>>,
    pub get: Vec<Pattern<'a>>,
    pub is_descending: bool,
    pub is_alphabetic: bool,
    pub store: Option<&'a [u8]>,
    offset: i64,
    count: i64,
}

impl<'a> Options<'a> {
    pub fn parse(args: &Args<'a>, may_store: bool) -> Result<Self, CommandError> {
        let mut options = Self {
            by: None,
            get: Vec::new(),
            is_descending: false,
            is_alphabetic: false,
            store: None,
            offset: 0,
            count: -1,
        };
        let mut index = 2;
        while index < args.len() {
            index += options.read(args, index, may_store)?;
        }
        Ok(options)
    }

    /// Reads the option at argument `index`; how many arguments it takes.
    fn read(&mut self, args: &Args<'a>, index: usize, may_store: bool) -> Result<usize, CommandError> {
        let value = args.get(index + 1);
        match (value, args.get(index + 2)) {
            _ if args.is(index, "ASC") => self.is_descending = false,
            _ if args.is(index, "DESC") => self.is_descending = true,
            _ if args.is(index, "ALPHA") => self.is_alphabetic = true,
            (Some(offset), Some(count)) if args.is(index, "LIMIT") => {
                self.offset = parse_i64(offset).ok_or(CommandError::NotAnInteger)?;
                self.count = parse_i64(count).ok_or(CommandError::NotAnInteger)?;
                return Ok(3);
            }
            (Some(key), _) if may_store && args.is(index, "STORE") => {
                self.store = Some(key);
                return Ok(2);
            }
            (Some(pattern), _) if args.is(index, "BY") => {
                self.by = Some(Pattern::new(pattern));
                return Ok(2);
            }
            (Some(pattern), _) if args.is(index, "GET") => {
                self.get.push(Pattern::new(pattern));
                return Ok(2);
            }
            _ => return Err(CommandError::Syntax),
        }
        Ok(1)
    }

    /// Whether the elements stay as they are: the pattern is the same for all of them.
    pub fn is_unsorted(&self) -> bool {
        self.by.as_ref().is_some_and(|pattern| !pattern.has_place())
    }

    /// The patterns of BY and GET.
    pub fn patterns(&self) -> impl Iterator<Item = &Pattern<'a>> {
        self.by.iter().chain(&self.get)
    }

    /// Which of `length` elements LIMIT picks.
    pub fn range(&self, length: usize) -> Range<usize> {
        let start = usize::try_from(self.offset.max(0)).unwrap_or(usize::MAX).min(length);
        let count = usize::try_from(self.count).unwrap_or(length).min(length - start);
        start..start + count
    }
}
