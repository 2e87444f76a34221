//! GEOADD: ZADD, with places for scores.

use super::place;
use crate::context::Context;
use crate::sorted_set::{AddOptions, add_all};
use simurgh_protocol::{Args, CommandError};

/// `GEOADD key [NX | XX] [CH] longitude latitude member [longitude latitude member ...]`: how many were added (with CH: or moved). Logged as
/// the ZADD that it is.
pub fn geoadd(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (mut options, mut first) = (AddOptions::default(), 2);
    loop {
        match () {
            () if args.is(first, "NX") => options.absent = true,
            () if args.is(first, "XX") => options.present = true,
            () if args.is(first, "CH") => options.count_changed = true,
            () => break,
        }
        first += 1;
    }
    let words = args.len() - first;
    if words == 0 || !words.is_multiple_of(3) || (options.absent && options.present) {
        return Err(CommandError::Syntax);
    }
    let place = |index| place(args, index).map(|place| (place.score(), args.at(index + 2)));
    let places = (first..args.len()).step_by(3).map(place).collect::<Result<Vec<_>, _>>()?;
    let pairs: Vec<(f64, &[u8])> = places.iter().map(|(score, member)| (*score as f64, *member)).collect();
    if add_all(cx, args, &pairs, options)? > 0 {
        let scores: Vec<String> = places.iter().map(|(score, _)| score.to_string()).collect();
        let mut words: Vec<&[u8]> = vec![b"ZADD"];
        words.extend(args.from(1).take(first - 1));
        scores.iter().zip(&places).for_each(|(score, (_, member))| words.extend([score.as_bytes(), member]));
        cx.log_instead(&words);
    }
    Ok(())
}
