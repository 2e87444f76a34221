//! Elements picked at random: what HRANDFIELD, SRANDMEMBER and ZRANDMEMBER share.

use crate::random::Random;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};

/// The most elements that a call may ask for with repetition: a reply that could still be sent.
pub(crate) const REPEATED_MAX: usize = 1 << 28;

/// How many to pick; a negative count allows repetition.
pub(crate) fn parse_count(text: &[u8]) -> Result<i64, CommandError> {
    match parse_i64(text).ok_or(CommandError::NotAnInteger)? {
        i64::MIN => Err(CommandError::Text(
            "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
        )),
        count => Ok(count),
    }
}

/// `count [WITHWORD]` from argument 2 on: how many, and whether each comes with what `word` names.
pub(crate) fn parse_count_with(args: &Args<'_>, word: &str) -> Result<(i64, bool), CommandError> {
    let count = parse_count(args.at(2))?;
    if args.len() > 4 || (args.len() == 4 && !args.is(3, word)) {
        return Err(CommandError::Syntax);
    }
    let is_paired = args.len() == 4;
    if is_paired && !(-i64::MAX / 2..=i64::MAX / 2).contains(&count) {
        return Err(CommandError::Text("ERR value is out of range"));
    }
    Ok((count, is_paired))
}

/// Chooses `wanted` of `left` in one pass, each selection being as likely as any other (Fan, Muller and Rezucha, JASA 1962).
pub(crate) struct Choice {
    pub left: usize,
    pub wanted: usize,
}

impl Choice {
    /// Whether the next one is taken.
    pub fn takes(&mut self, random: &mut Random) -> bool {
        let takes = self.wanted > 0 && random.below(self.left) < self.wanted;
        self.left -= 1;
        self.wanted -= usize::from(takes);
        takes
    }
}
