//! LCS: the longest subsequence that two strings have in common, by the textbook's table.
//!
//! ```text
//! length(i, j): of the first i bytes of one string and the first j of the other
//!   = length(i - 1, j - 1) + 1                         if their last bytes are equal
//!   = max(length(i - 1, j), length(i, j - 1))          otherwise
//! ```
//!
//! The way back from the table's last corner finds the subsequence from its end, which is why the matches are answered last
//! one first. Where both ways are as good, the other string gives way, as in Redis.

use crate::context::Context;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError, Reply};

/// What is to be answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Options {
    length: bool,
    indexes: bool,
    shortest: usize,
    with_lengths: bool,
}

impl Options {
    fn read(args: &Args<'_>) -> Result<Self, CommandError> {
        let (mut options, mut index) = (Self::default(), 3);
        while index < args.len() {
            if args.is(index, "LEN") {
                options.length = true;
            } else if args.is(index, "IDX") {
                options.indexes = true;
            } else if args.is(index, "WITHMATCHLEN") {
                options.with_lengths = true;
            } else if args.is(index, "MINMATCHLEN") && index + 1 < args.len() {
                index += 1;
                let shortest = parse_i64(args.at(index)).ok_or(CommandError::NotAnInteger)?;
                options.shortest = usize::try_from(shortest).unwrap_or(0);
            } else {
                return Err(CommandError::Syntax);
            }
            index += 1;
        }
        if options.length && options.indexes {
            return Err(CommandError::Text("ERR If you want both the length and indexes, please just use IDX."));
        }
        Ok(options)
    }
}

/// The string under a key, copied; none is empty.
fn operand(cx: &mut Context<'_>, name: &[u8]) -> Result<Vec<u8>, CommandError> {
    let key = cx.key(name);
    let Some(entry) = cx.read(&key) else { return Ok(Vec::new()) };
    let value = entry.string().map_err(|_| CommandError::Text("ERR The specified keys must contain string values"))?;
    Ok(value.to_vec())
}

/// `LCS key1 key2 [LEN] [IDX] [MINMATCHLEN length] [WITHMATCHLEN]`: the subsequence, its length, or where it lies.
pub fn lcs(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (one, other) = (operand(cx, args.at(1))?, operand(cx, args.at(2))?);
    let options = Options::read(args)?;
    let cells = (one.len() as u128 + 1) * (other.len() as u128 + 1);
    if cells * size_of::<u32>() as u128 > u128::from(cx.settings.bulk_max) {
        return Err(CommandError::Text("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"));
    }
    if options.length {
        cx.reply.count(common_length(&one, &other));
        return Ok(());
    }
    let pairs = common_pairs(&one, &other);
    if options.indexes {
        reply_matches(cx.reply, &runs(&pairs), pairs.len(), options);
    } else {
        let common: Vec<u8> = pairs.iter().rev().map(|(at, _)| one[*at]).collect();
        cx.reply.bulk(&common);
    }
    Ok(())
}

/// The next row of the table, from the one before.
fn fill_row(byte: u8, other: &[u8], above: &[u32], row: &mut [u32]) {
    let mut left = 0;
    for (j, other_byte) in other.iter().enumerate() {
        left = if byte == *other_byte { above[j] + 1 } else { above[j + 1].max(left) };
        row[j + 1] = left;
    }
}

/// The length alone, which needs two rows of the table only.
fn common_length(one: &[u8], other: &[u8]) -> usize {
    let (mut above, mut row) = (vec![0; other.len() + 1], vec![0; other.len() + 1]);
    for byte in one {
        fill_row(*byte, other, &above, &mut row);
        std::mem::swap(&mut above, &mut row);
    }
    above[other.len()] as usize
}

/// The positions in both strings of each byte of the subsequence, last one first.
fn common_pairs(one: &[u8], other: &[u8]) -> Vec<(usize, usize)> {
    let width = other.len() + 1;
    let mut table = vec![0u32; (one.len() + 1) * width];
    for (i, byte) in one.iter().enumerate() {
        let (above, row) = table[i * width..(i + 2) * width].split_at_mut(width);
        fill_row(*byte, other, above, row);
    }
    let (mut i, mut j, mut pairs) = (one.len(), other.len(), Vec::new());
    while i > 0 && j > 0 {
        if one[i - 1] == other[j - 1] {
            (i, j) = (i - 1, j - 1);
            pairs.push((i, j));
        } else if table[(i - 1) * width + j] > table[i * width + j - 1] {
            i -= 1;
        } else {
            j -= 1;
        }
    }
    pairs
}

/// A run of bytes that follow each other in both strings: where it begins in each, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    one: usize,
    other: usize,
    length: usize,
}

/// The runs that the pairs form, last one first.
fn runs(pairs: &[(usize, usize)]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (one, other) in pairs.iter().copied() {
        match runs.last_mut() {
            Some(run) if run.one == one + 1 && run.other == other + 1 => {
                *run = Run { one, other, length: run.length + 1 };
            }
            _ => runs.push(Run { one, other, length: 1 }),
        }
    }
    runs
}

fn reply_matches(reply: &mut Reply, runs: &[Run], length: usize, options: Options) {
    let long_enough = || runs.iter().filter(|run| run.length >= options.shortest);
    reply.map(2);
    reply.bulk(b"matches");
    reply.array(long_enough().count());
    for run in long_enough() {
        reply.array(if options.with_lengths { 3 } else { 2 });
        for start in [run.one, run.other] {
            reply.array(2);
            reply.count(start);
            reply.count(start + run.length - 1);
        }
        if options.with_lengths {
            reply.count(run.length);
        }
    }
    reply.bulk(b"len");
    reply.count(length);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition itself, without a table.
    fn naive_length(one: &[u8], other: &[u8]) -> usize {
        match (one, other) {
            ([.., last], [.., other_last]) if last == other_last => {
                naive_length(&one[..one.len() - 1], &other[..other.len() - 1]) + 1
            }
            ([_, ..], [_, ..]) => {
                naive_length(&one[..one.len() - 1], other).max(naive_length(one, &other[..other.len() - 1]))
            }
            _ => 0,
        }
    }

    proptest! {
        #[test]
        fn the_table_finds_what_the_definition_says(
            one in proptest::collection::vec(b'a'..b'd', 0..9),
            other in proptest::collection::vec(b'a'..b'd', 0..9),
        ) {
            let expected = naive_length(&one, &other);
            let pairs = common_pairs(&one, &other);
            prop_assert_eq!(common_length(&one, &other), expected);
            prop_assert_eq!(pairs.len(), expected);
            for (at, other_at) in &pairs {
                prop_assert_eq!(one[*at], other[*other_at]);
            }
            for pair in pairs.windows(2) {
                prop_assert!(pair[1].0 < pair[0].0 && pair[1].1 < pair[0].1);
            }
            prop_assert_eq!(runs(&pairs).iter().map(|run| run.length).sum::<usize>(), expected);
        }
    }
}
