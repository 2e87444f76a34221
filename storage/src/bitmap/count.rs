//! BITCOUNT: how many bits are set.

use super::range::{self, Unit};
use crate::context::Context;
use simurgh_protocol::{Args, CommandError};

/// `BITCOUNT key [start end [BYTE | BIT]]`: the number of set bits, 0 when the key is not there.
pub fn bitcount(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let range = match args.len() {
        2 => None,
        4 | 5 => {
            let (start, end) = (range::offset(args.at(2))?, range::offset(args.at(3))?);
            Some((start, end, Unit::parse(args, 4)?))
        }
        _ => return Err(CommandError::Syntax),
    };
    let key = cx.first_key(args);
    let (entry, reply) = cx.lookup(&key);
    reply.count(match entry {
        Some(entry) => entry.string()?.with_text(|text| count(text, range)),
        None => 0,
    });
    Ok(())
}

fn count(bytes: &[u8], range: Option<(i64, i64, Unit)>) -> usize {
    let Some((start, end, unit)) = range else { return ones(bytes) };
    // Unlike elsewhere, two negative offsets in the wrong order mean nothing even if both lie before the string.
    if start < 0 && end < 0 && start > end {
        return 0;
    }
    let Some((first, last)) = range::bits(bytes.len(), start, end, unit) else { return 0 };
    let (head, tail) = (bytes[first / 8] & !range::from(first), bytes[last / 8] & !range::up_to(last));
    ones(&bytes[first / 8..=last / 8]) - (head.count_ones() + tail.count_ones()) as usize
}

/// Counts eight bytes at a time.
fn ones(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    let in_words: usize = words.iter().map(|word| u64::from_ne_bytes(*word).count_ones() as usize).sum();
    in_words + rest.iter().map(|byte| byte.count_ones() as usize).sum::<usize>()
}
