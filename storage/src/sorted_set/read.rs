//! ZCARD, ZSCORE, ZMSCORE, ZRANK, ZREVRANK, ZCOUNT, ZLEXCOUNT: one number, or one for each member that is named.

use super::SortedSet;
use super::interval::{Interval, Measure};
use crate::context::Context;
use simurgh_protocol::{Args, CommandError, Reply};

/// `ZCARD key`: the number of members.
pub fn zcard(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let (set, reply) = cx.look::<SortedSet>(&key)?;
    reply.count(set.map_or(0, |set| set.len()));
    Ok(())
}

fn reply_score(reply: &mut Reply, score: Option<f64>) {
    match score {
        Some(score) => reply.double(score),
        None => reply.null(),
    }
}

/// `ZSCORE key member`: the member's score, or null.
pub fn zscore(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let (set, reply) = cx.look::<SortedSet>(&key)?;
    reply_score(reply, set.and_then(|set| set.score_of(args.at(2))));
    Ok(())
}

/// `ZMSCORE key member [member ...]`: each member's score, or null.
pub fn zmscore(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let (set, reply) = cx.look::<SortedSet>(&key)?;
    reply.array(args.len() - 2);
    for member in args.from(2) {
        reply_score(reply, set.as_ref().and_then(|set| set.score_of(member)));
    }
    Ok(())
}

/// `ZRANK key member [WITHSCORE]`: how many members have a lower score, or null.
pub fn zrank(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    rank(cx, args, "zrank", false)
}

/// `ZREVRANK key member [WITHSCORE]`: how many members have a higher score, or null.
pub fn zrevrank(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    rank(cx, args, "zrevrank", true)
}

fn rank(cx: &mut Context<'_>, args: &Args<'_>, name: &'static str, reverse: bool) -> Result<(), CommandError> {
    if args.len() > 4 {
        return Err(CommandError::WrongArity(name));
    }
    let with_score = args.len() == 4;
    if with_score && !args.is(3, "WITHSCORE") {
        return Err(CommandError::Syntax);
    }
    let key = cx.first_key(args);
    let (set, reply) = cx.look::<SortedSet>(&key)?;
    let found = set.and_then(|set| {
        let (rank, score) = set.rank_of(args.at(2))?;
        Some((if reverse { set.len() - 1 - rank } else { rank }, score))
    });
    match found {
        Some((rank, score)) if with_score => {
            reply.array(2);
            reply.count(rank);
            reply.double(score);
        }
        Some((rank, _)) => reply.count(rank),
        None if with_score => reply.null_array(),
        None => reply.null(),
    }
    Ok(())
}

/// `ZCOUNT key min max`: the number of members between two scores.
pub fn zcount(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    count(cx, args, Measure::Score)
}

/// `ZLEXCOUNT key min max`: the number of members between two of them, where all scores are equal.
pub fn zlexcount(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    count(cx, args, Measure::Member)
}

fn count(cx: &mut Context<'_>, args: &Args<'_>, measure: Measure) -> Result<(), CommandError> {
    let interval = Interval::parse(measure, args.at(2), args.at(3), false)?;
    let key = cx.first_key(args);
    let (set, reply) = cx.look::<SortedSet>(&key)?;
    reply.count(set.map_or(0, |set| interval.ranks(&set, false).len()));
    Ok(())
}
