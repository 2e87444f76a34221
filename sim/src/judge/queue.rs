//! Queues: every item is pushed once, so whoever took it, and when, tells the whole story.
//!
//! - Nothing is taken that nobody pushed, and nothing twice.
//! - First in, first out: what was pushed before something else is not taken after it.
//! - Who waits for an item gets one: no wait ends empty while an item lies there all the time.
//! - Who waits first is served first. (Only where one key decides: a wait for several keys may have to be tried again by its own client
//!   when their shards are busy, and somebody else may come first.)
//! - What was promised is somewhere: taken, in its queue, or lost with a reply that a client never saw.

use std::collections::{BTreeMap, BTreeSet};

/// How long a waiting client may be passed over: it may have to come back for shards that are busy.
const GRACE_NS: u64 = 300_000_000;

/// A command is at its place by the reply of the one before it in a pipeline, or a little later if the pipeline came in parts.
const ARRIVAL_NS: u64 = 30_000_000;

/// Items that were pushed by one command.
#[derive(Debug, Clone)]
pub struct Push {
    /// Where to.
    pub queue: usize,
    /// In this order.
    pub items: Vec<u64>,
    /// When it was sent.
    pub invoked_ns: u64,
    /// When it was acknowledged.
    pub completed_ns: Option<u64>,
}

/// How taking an item ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Not known: the reply was lost, or was an error.
    Unknown,
    /// Nothing came in time.
    Nothing,
    /// An item of a queue.
    Item(usize, u64),
}

/// An item that a client wanted.
#[derive(Debug, Clone)]
pub struct Pop {
    /// Where from: the first of them that has one.
    pub queues: Vec<usize>,
    /// The item goes to another list, where it is found even if the reply is lost.
    pub is_move: bool,
    /// When it was sent.
    pub invoked_ns: u64,
    /// When the server had it for certain.
    pub arrived_ns: Option<u64>,
    /// How long it waits.
    pub timeout_ns: u64,
    /// When its end was seen: the reply, or that there will be none.
    pub ended_ns: u64,
    /// How it ended.
    pub outcome: Outcome,
}

impl Pop {
    fn item(&self) -> Option<u64> {
        match self.outcome {
            Outcome::Item(_, item) => Some(item),
            Outcome::Unknown | Outcome::Nothing => None,
        }
    }
}

/// What all clients did.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// Every push.
    pub pushes: Vec<Push>,
    /// Every attempt to take something.
    pub pops: Vec<Pop>,
}

/// What is there in the end.
#[derive(Debug, Clone, Default)]
pub struct End {
    /// Items in each queue.
    pub queues: Vec<Vec<u64>>,
    /// Items that were moved from it.
    pub moved: Vec<Vec<u64>>,
}

/// Where an item comes from.
#[derive(Debug, Clone, Copy)]
struct Origin {
    push: usize,
    place: usize,
    queue: usize,
    invoked_ns: u64,
    completed_ns: u64,
}

impl Origin {
    /// It was pushed before the other for certain.
    fn is_before(&self, other: &Self) -> bool {
        self.queue == other.queue
            && if self.push == other.push { self.place < other.place } else { self.completed_ns < other.invoked_ns }
    }
}

fn origins(history: &History) -> BTreeMap<u64, Origin> {
    let mut origins = BTreeMap::new();
    for (push, pushed) in history.pushes.iter().enumerate() {
        for (place, item) in pushed.items.iter().enumerate() {
            let completed_ns = pushed.completed_ns.unwrap_or(u64::MAX);
            let (queue, invoked_ns) = (pushed.queue, pushed.invoked_ns);
            origins.insert(*item, Origin { push, place, queue, invoked_ns, completed_ns });
        }
    }
    origins
}

/// A part of the timeline in which nothing may be lost, and what happened in all of it.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// From when on.
    pub from_ns: u64,
    /// Until when.
    pub to_ns: u64,
    /// All moments at which the server died.
    pub crashes_ns: &'a [u64],
    /// How much later things may be than they would be if nothing held them up.
    pub slack_ns: u64,
}

/// Judges what began in a part of the timeline.
pub fn judge(history: &History, part: &Part<'_>) -> Option<String> {
    let origins = origins(history);
    let pops: Vec<&Pop> =
        history.pops.iter().filter(|pop| (part.from_ns..part.to_ns).contains(&pop.invoked_ns)).collect();
    let mut taken = Vec::new();
    for pop in &pops {
        let Outcome::Item(queue, item) = pop.outcome else { continue };
        match origins.get(&item) {
            Some(origin)
                if origin.queue == queue && pop.queues.contains(&queue) && origin.invoked_ns < pop.ended_ns =>
            {
                taken.push((*pop, *origin, item));
            }
            _ => return Some(format!("{item} was taken from queue {queue}, where nobody had pushed it: {pop:?}")),
        }
    }
    let mut seen = BTreeSet::new();
    if let Some((pop, _, item)) = taken.iter().find(|(_, _, item)| !seen.insert(*item)) {
        return Some(format!("{item} was taken twice, the second time by {pop:?}"));
    }
    order(&taken).or_else(|| arrival(&pops, &taken, part.slack_ns)).or_else(|| starvation(&pops, &taken, part))
}

type Taken<'a> = (&'a Pop, Origin, u64);

/// First in, first out.
fn order(taken: &[Taken<'_>]) -> Option<String> {
    for (early, after, item) in taken {
        for (late, before, passed) in taken {
            if early.ended_ns < late.invoked_ns && before.is_before(after) {
                return Some(format!(
                    "{item} was taken before {passed}, which was pushed before it: {early:?}, {late:?}"
                ));
            }
        }
    }
    None
}

/// First come, first served, among those who wait for one key.
fn arrival(pops: &[&Pop], taken: &[Taken<'_>], slack_ns: u64) -> Option<String> {
    let origin_of =
        |pop: &Pop| taken.iter().find(|(_, _, item)| Some(*item) == pop.item()).map(|(_, origin, _)| origin);
    let alone = |pop: &Pop| pop.queues == [0] && !pop.is_move;
    for first in pops.iter().filter(|pop| alone(pop)) {
        let Some(arrived_ns) = first.arrived_ns.map(|ns| ns + ARRIVAL_NS + slack_ns) else { continue };
        let own = origin_of(first);
        for (second, origin, item) in taken {
            if !alone(second) || second.invoked_ns < arrived_ns {
                continue;
            }
            let is_passed_over = match first.outcome {
                Outcome::Item(..) => own.is_some_and(|own| origin.is_before(own)),
                Outcome::Nothing => second.ended_ns < first.invoked_ns + first.timeout_ns,
                Outcome::Unknown => false,
            };
            if is_passed_over {
                return Some(format!("{item} went to who came later: {second:?}, not to {first:?}"));
            }
        }
    }
    None
}

/// Nobody waits in vain where an item lies all the time. (That it lay there is certain if somebody took it who asked later.)
fn starvation(pops: &[&Pop], taken: &[Taken<'_>], part: &Part<'_>) -> Option<String> {
    for pop in pops.iter().filter(|pop| pop.outcome == Outcome::Nothing) {
        for (later, origin, item) in taken {
            let until_ns = pop.invoked_ns + pop.timeout_ns;
            let lay_there = pop.queues.contains(&origin.queue)
                && origin.completed_ns < until_ns.saturating_sub(GRACE_NS + part.slack_ns)
                && later.invoked_ns > pop.ended_ns
                && !part.crashes_ns.iter().any(|ns| (origin.invoked_ns..=later.invoked_ns).contains(ns));
            if lay_there {
                return Some(format!("{item} lay there while {pop:?} waited in vain; {later:?} got it"));
            }
        }
    }
    None
}

/// Judges what is there in the end, in a timeline in which nothing may be lost.
pub fn judge_end(history: &History, end: &End, slack_ns: u64) -> Option<String> {
    let origins = origins(history);
    let mut places: BTreeMap<u64, usize> = BTreeMap::new();
    let moved: BTreeSet<u64> = end.moved.iter().flatten().copied().collect();
    for item in end.queues.iter().chain(&end.moved).flatten() {
        *places.entry(*item).or_default() += 1;
        if !origins.contains_key(item) {
            return Some(format!("{item} is there, which nobody pushed"));
        }
    }
    for pop in &history.pops {
        match pop.item() {
            Some(item) if pop.is_move && !moved.contains(&item) => {
                return Some(format!("{item} was moved, and is not where it was moved to: {pop:?}"));
            }
            Some(item) if !pop.is_move => *places.entry(item).or_default() += 1,
            Some(_) | None => {}
        }
    }
    if let Some((item, _)) = places.iter().find(|(_, count)| **count > 1) {
        return Some(format!("{item} was taken, and is there"));
    }
    for queue in &end.queues {
        let origins: Vec<&Origin> = queue.iter().filter_map(|item| origins.get(item)).collect();
        if let Some(pair) = origins.windows(2).find(|pair| pair[1].is_before(pair[0])) {
            return Some(format!("items of a queue are out of order in the end: {pair:?}"));
        }
    }
    let missing = origins.iter().filter(|(item, origin)| origin.completed_ns < u64::MAX && !places.contains_key(item));
    lost(history, missing.map(|(item, origin)| (*item, *origin)).collect(), slack_ns)
}

/// An item that is nowhere went to a client that lost its reply. Each of those has taken one at most, so each needs an item's own.
fn lost(history: &History, missing: Vec<(u64, Origin)>, slack_ns: u64) -> Option<String> {
    let takers: Vec<&Pop> = history.pops.iter().filter(|pop| pop.outcome == Outcome::Unknown && !pop.is_move).collect();
    let may_take = |item: usize, taker: usize| {
        let (origin, pop): (&Origin, &Pop) = (&missing[item].1, takers[taker]);
        // A server that is still there may serve it for as long as it would have waited.
        pop.queues.contains(&origin.queue)
            && origin.invoked_ns <= pop.ended_ns.max(pop.invoked_ns + pop.timeout_ns) + GRACE_NS + slack_ns
    };
    let mut owner: Vec<Option<usize>> = vec![None; takers.len()];
    for (place_of, (item, _)) in missing.iter().enumerate() {
        if !place(place_of, &may_take, &mut owner, &mut BTreeSet::new()) {
            return Some(format!("{item} was acknowledged and is nowhere"));
        }
    }
    None
}

/// Finds a taker for an item, if need be by finding others for the items of others (a matching by augmenting paths).
fn place(
    item: usize,
    may_take: &impl Fn(usize, usize) -> bool,
    owner: &mut [Option<usize>],
    tried: &mut BTreeSet<usize>,
) -> bool {
    for taker in 0..owner.len() {
        if may_take(item, taker) && tried.insert(taker) {
            let is_free = match owner[taker] {
                None => true,
                Some(other) => place(other, may_take, owner, tried),
            };
            if is_free {
                owner[taker] = Some(item);
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn push(items: &[u64], invoked_ms: u64) -> Push {
        Push { queue: 0, items: items.to_vec(), invoked_ns: invoked_ms * MS, completed_ns: Some((invoked_ms + 1) * MS) }
    }

    fn pop(invoked_ms: u64, ended_ms: u64, outcome: Outcome) -> Pop {
        Pop {
            queues: vec![0],
            is_move: false,
            invoked_ns: invoked_ms * MS,
            arrived_ns: Some((invoked_ms + 1) * MS),
            timeout_ns: 1000 * MS,
            ended_ns: ended_ms * MS,
            outcome,
        }
    }

    fn judged(pushes: &[Push], pops: &[Pop]) -> Option<String> {
        let part = Part { from_ns: 0, to_ns: u64::MAX, crashes_ns: &[], slack_ns: 0 };
        judge(&History { pushes: pushes.to_vec(), pops: pops.to_vec() }, &part)
    }

    fn judged_end(pushes: &[Push], pops: &[Pop], queue: &[u64]) -> Option<String> {
        let end = End { queues: vec![queue.to_vec()], moved: vec![vec![]] };
        judge_end(&History { pushes: pushes.to_vec(), pops: pops.to_vec() }, &end, 0)
    }

    #[test]
    fn items_are_taken_once_in_order_and_none_is_made_up() {
        let pushes = [push(&[1, 2], 10), push(&[3], 20)];
        let took = |item, at| pop(at, at + 2, Outcome::Item(0, item));
        assert_eq!(judged(&pushes, &[took(1, 30), took(2, 40), took(3, 50)]), None);
        assert!(judged(&pushes, &[took(1, 30), took(1, 40)]).is_some(), "twice");
        assert!(judged(&pushes, &[took(9, 30)]).is_some(), "made up");
        assert!(judged(&pushes, &[took(1, 5)]).is_some(), "before it was pushed");
        assert!(judged(&pushes, &[took(2, 30), took(1, 40)]).is_some(), "out of order in a push");
        assert!(judged(&pushes, &[took(3, 30), took(1, 40)]).is_some(), "out of order");
        let overlapping = [pop(30, 45, Outcome::Item(0, 3)), took(1, 40)];
        assert_eq!(judged(&pushes, &overlapping), None, "either may have been first");
    }

    #[test]
    fn who_waits_first_is_served_first_and_nobody_waits_in_vain() {
        let pushes = [push(&[1], 500), push(&[2], 600)];
        let (first, second) =
            (|item| pop(10, 700, Outcome::Item(0, item)), |item| pop(100, 700, Outcome::Item(0, item)));
        assert_eq!(judged(&pushes, &[first(1), second(2)]), None);
        assert!(judged(&pushes, &[first(2), second(1)]).is_some(), "the other way round");
        assert!(judged(&pushes, &[pop(10, 1012, Outcome::Nothing), second(1)]).is_some(), "passed over");
        let (waiter, later) = (pop(10, 1012, Outcome::Nothing), pop(1500, 1502, Outcome::Item(0, 1)));
        assert!(judged(&pushes, &[waiter.clone(), later.clone()]).is_some(), "in vain");
        let history = History { pushes: pushes.to_vec(), pops: vec![waiter, later] };
        let part = Part { from_ns: 0, to_ns: u64::MAX, crashes_ns: &[1200 * MS], slack_ns: 0 };
        assert_eq!(judge(&history, &part), None, "a crash may have brought it back");
    }

    #[test]
    fn what_was_promised_is_somewhere() {
        let pushes = [push(&[1, 2], 10)];
        let took = pop(30, 40, Outcome::Item(0, 1));
        let lost = pop(50, 60, Outcome::Unknown);
        assert_eq!(judged_end(&pushes, std::slice::from_ref(&took), &[2]), None);
        assert!(judged_end(&pushes, std::slice::from_ref(&took), &[]).is_some(), "lost");
        assert!(judged_end(&pushes, std::slice::from_ref(&took), &[1, 2]).is_some(), "taken and there");
        assert!(judged_end(&pushes, &[], &[2, 1]).is_some(), "out of order");
        assert!(judged_end(&pushes, &[], &[1, 2, 3]).is_some(), "made up");
        assert_eq!(judged_end(&pushes, &[took, lost.clone()], &[]), None, "gone with a reply");
        assert!(judged_end(&pushes, std::slice::from_ref(&lost), &[]).is_some(), "one reply takes one item");
        let moved = Pop { is_move: true, ..lost };
        assert!(judged_end(&pushes, &[moved], &[1]).is_some(), "a moved item is not lost with the reply");
    }
}
