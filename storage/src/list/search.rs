//! LPOS: where an element is.

use super::edit::OUT_OF_RANGE;
use super::{End, List};
use crate::context::Context;
use crate::listpack::Item;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};

const RANK_ZERO: &str = "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to \
     start from the end of the list";

/// What a call asks for.
struct Options {
    /// The match to begin with, 1 being the first.
    rank: u64,
    /// From which end.
    end: End,
    /// How many matches; 0 is all. Without it the answer is no array.
    count: Option<u64>,
    /// How many elements to look at; 0 is all.
    length_max: u64,
}

impl Options {
    fn parse(args: &Args<'_>) -> Result<Self, CommandError> {
        let mut options = Self { rank: 1, end: End::Front, count: None, length_max: 0 };
        for index in (3..args.len()).step_by(2) {
            let value = args.get(index + 1).ok_or(CommandError::Syntax)?;
            if args.is(index, "RANK") {
                let rank = parse_i64(value).ok_or(CommandError::NotAnInteger)?;
                options.rank = match rank {
                    i64::MIN => return Err(OUT_OF_RANGE),
                    0 => return Err(CommandError::Text(RANK_ZERO)),
                    _ => rank.unsigned_abs(),
                };
                options.end = if rank < 0 { End::Back } else { End::Front };
            } else if args.is(index, "COUNT") {
                options.count = Some(not_negative(value, "ERR COUNT can't be negative")?);
            } else if args.is(index, "MAXLEN") {
                options.length_max = not_negative(value, "ERR MAXLEN can't be negative")?;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(options)
    }
}

fn not_negative(text: &[u8], otherwise: &'static str) -> Result<u64, CommandError> {
    parse_i64(text).and_then(|number| u64::try_from(number).ok()).ok_or(CommandError::Text(otherwise))
}

/// `0` as a limit is none.
fn limit(number: u64) -> usize {
    if number == 0 { usize::MAX } else { usize::try_from(number).unwrap_or(usize::MAX) }
}

/// `LPOS key element [RANK rank] [COUNT num-matches] [MAXLEN len]`: the index of a match or null; with COUNT an array of indexes.
pub fn lpos(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let options = Options::parse(args)?;
    let key = cx.first_key(args);
    let (list, reply) = cx.look::<List>(&key)?;
    let found = list.map_or_else(Vec::new, |list| find(&list, args.at(2).into(), &options));
    match (options.count, found.first()) {
        (None, None) => reply.null(),
        (None, Some(number)) => reply.count(*number),
        (Some(_), _) => {
            reply.array(found.len());
            found.iter().for_each(|number| reply.count(*number));
        }
    }
    Ok(())
}

/// The numbers of the matches, in the order in which they are met.
fn find(list: &List, wanted: Item<'_>, options: &Options) -> Vec<usize> {
    let length = list.len();
    let towards = if options.end == End::Front { End::Back } else { End::Front };
    let first = if options.end == End::Front { 0 } else { length - 1 };
    let skipped = usize::try_from(options.rank - 1).unwrap_or(usize::MAX);
    list.iter_from(first, towards)
        .take(limit(options.length_max))
        .enumerate()
        .filter(|(_, item)| item.same(&wanted))
        .map(|(seen, _)| if options.end == End::Front { seen } else { length - 1 - seen })
        .skip(skipped)
        .take(options.count.map_or(1, limit))
        .collect()
}
