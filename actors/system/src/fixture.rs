//! Requests for unit tests.

use simurgh_protocol::Args;
use simurgh_protocol::resp::Range;

/// Gives `with` the arguments that a line's words are.
pub(crate) fn with_words<R>(line: &str, with: impl FnOnce(&Args<'_>) -> R) -> R {
    let (mut ranges, mut start) = (Vec::new(), 0);
    for word in line.split(' ') {
        ranges.push(Range { start, length: word.len() as u32 });
        start += word.len() as u32 + 1;
    }
    with(&Args::new(line.as_bytes(), &ranges))
}
