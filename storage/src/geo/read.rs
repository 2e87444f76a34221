//! GEOPOS, GEODIST, GEOHASH: where members are.

use super::hash::Place;
use super::{area, metres, reply_distance, reply_place};
use crate::context::Context;
use crate::sorted_set::SortedSet;
use simurgh_protocol::{Args, CommandError};

/// `GEOPOS key [member [member ...]]`: each member's longitude and latitude, or null.
pub fn geopos(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let (set, reply) = cx.look::<SortedSet>(&key)?;
    reply.array(args.len() - 2);
    for member in args.from(2) {
        match set.as_ref().and_then(|set| set.score_of(member)) {
            Some(score) => reply_place(reply, Place::of_score(score)),
            None => reply.null_array(),
        }
    }
    Ok(())
}

/// `GEOHASH key [member [member ...]]`: each member's geohash as other systems write it, or null.
pub fn geohash(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let (set, reply) = cx.look::<SortedSet>(&key)?;
    reply.array(args.len() - 2);
    for member in args.from(2) {
        match set.as_ref().and_then(|set| set.score_of(member)) {
            Some(score) => reply.bulk(&Place::of_score(score).to_text()),
            None => reply.null(),
        }
    }
    Ok(())
}

/// `GEODIST key member member [M | KM | FT | MI]`: the distance of two members, or null.
pub fn geodist(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    if args.len() > 5 {
        return Err(CommandError::Syntax);
    }
    let unit = if args.len() == 5 { metres(args, 4)? } else { 1.0 };
    let key = cx.first_key(args);
    let (set, reply) = cx.look::<SortedSet>(&key)?;
    let place = |index| set.as_ref().and_then(|set| set.score_of(args.at(index))).map(Place::of_score);
    match place(2).zip(place(3)) {
        Some((one, other)) => reply_distance(reply, area::distance(one, other) / unit),
        None => reply.null(),
    }
    Ok(())
}
