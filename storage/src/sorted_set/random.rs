//! ZRANDMEMBER: members picked at random, each as likely as any other.

use super::{SortedSet, reply_members};
use crate::context::Context;
use crate::listpack::Item;
use crate::pick::{REPEATED_MAX, parse_count_with};
use crate::random::Random;
use simurgh_protocol::{Args, CommandError};
use std::collections::BTreeSet;

/// `ZRANDMEMBER key [count [WITHSCORES]]`: a member, or `count` different ones; `-count` with repetitions.
pub fn zrandmember(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let mut random = Random::new(cx.random.next_u64());
    if args.len() == 2 {
        let (set, reply) = cx.look::<SortedSet>(&key)?;
        match set.as_deref().and_then(|set| set.member_at(random.below(set.len()))) {
            Some((member, _)) => member.write_to(reply),
            None => reply.null(),
        }
        return Ok(());
    }
    let (count, with_scores) = parse_count_with(args, "WITHSCORES")?;
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let (set, reply) = cx.look::<SortedSet>(&key)?;
    let Some(set) = set.filter(|_| wanted > 0) else {
        reply.array(0);
        return Ok(());
    };
    let len = set.len();
    if count < 0 {
        if wanted > REPEATED_MAX {
            return Err(CommandError::Text("ERR value is out of range"));
        }
        let pick = |_| set.member_at(random.below(len)).expect("a rank below the length");
        reply_members(reply, (0..wanted).map(pick), with_scores);
    } else if wanted >= len {
        reply_members(reply, set.members(0..len), with_scores);
    } else {
        let ranks = different_ranks(wanted, len, &mut random);
        let pick = |rank| set.member_at(rank).expect("a rank below the length");
        reply_members(reply, ranks.into_iter().map(pick), with_scores);
    }
    Ok(())
}

/// `count` of `len` ranks, fewer than all, in random order: each draw is below a bound that rises to `len`, and one that has been drawn
/// gives its place to the bound itself (Bentley and Floyd, CACM 30:9, 1987).
fn different_ranks(count: usize, len: usize, random: &mut Random) -> Vec<usize> {
    let (mut drawn, mut ranks) = (BTreeSet::new(), Vec::with_capacity(count));
    for bound in len - count..len {
        let rank = random.below(bound + 1);
        let rank = if drawn.insert(rank) { rank } else { bound };
        drawn.insert(rank);
        ranks.push(rank);
    }
    for end in (1..count).rev() {
        ranks.swap(end, random.below(end + 1));
    }
    ranks
}

impl SortedSet {
    /// The member of a rank, with its score.
    fn member_at(&self, rank: usize) -> Option<(Item<'_>, f64)> {
        self.members(rank..rank.saturating_add(1)).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_is_as_likely_as_any_other() {
        let (mut random, mut counts) = (Random::new(1), [0_u32; 10]);
        for _ in 0..10_000 {
            let ranks = different_ranks(3, 10, &mut random);
            assert_eq!(ranks.iter().collect::<BTreeSet<_>>().len(), 3);
            ranks.into_iter().for_each(|rank| counts[rank] += 1);
        }
        assert!(counts.iter().all(|count| (2_800..3_200).contains(count)), "{counts:?}");
    }
}
