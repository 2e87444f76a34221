//! What one client's keys of every type must hold: the changes that the client sent, in order, up to some point. Which point is not
//! known where replies or crashes came in between, so a state is right if it is that of any of them which keeps what was promised.

use std::collections::{BTreeMap, BTreeSet};

/// A change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// RPUSH.
    Append(i64),
    /// LPUSH.
    Prepend(i64),
    /// LPOP.
    TakeFirst,
    /// RPOP.
    TakeLast,
    /// HSET.
    SetField(&'static str, i64),
    /// HSET and HPEXPIREAT in one transaction.
    SetMortalField(&'static str, i64, i64),
    /// HDEL.
    RemoveField(&'static str),
    /// HINCRBY of a field of its own.
    Count(i64),
    /// SADD.
    AddMember(&'static str),
    /// SREM.
    RemoveMember(&'static str),
    /// ZADD.
    Rank(&'static str, i64),
    /// ZINCRBY.
    AddToRank(&'static str, i64),
    /// ZREM.
    RemoveRanked(&'static str),
    /// ZPOPMIN.
    TakeLowest,
    /// XADD, with the number as its id.
    AddEntry(i64),
    /// XDEL.
    RemoveEntry(i64),
    /// XTRIM to as many.
    Trim(usize),
    /// DEL of all keys.
    Clear,
    /// A change of every key in one transaction.
    All(i64),
}

/// The field that counts.
pub const COUNT: &str = "count";
/// The member that changes of every key rank.
pub const ALL: &str = "all";

/// What the keys hold, at a moment that is past.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct State {
    /// The list.
    pub list: Vec<i64>,
    /// The hash: values, and when fields expire.
    pub hash: BTreeMap<String, (i64, Option<i64>)>,
    /// The set.
    pub set: BTreeSet<String>,
    /// The sorted set.
    pub ranked: BTreeMap<String, i64>,
    /// The string.
    pub string: Option<i64>,
    /// The stream: the ids of its entries.
    pub stream: Vec<i64>,
}

impl State {
    /// Makes a change.
    pub fn apply(&mut self, change: &Change) {
        match *change {
            Change::Append(value) => self.list.push(value),
            Change::Prepend(value) => self.list.insert(0, value),
            Change::TakeFirst if self.list.is_empty() => {}
            Change::TakeFirst => _ = self.list.remove(0),
            Change::TakeLast => _ = self.list.pop(),
            Change::SetField(field, value) => _ = self.hash.insert(field.into(), (value, None)),
            Change::SetMortalField(field, value, at_ms) => _ = self.hash.insert(field.into(), (value, Some(at_ms))),
            Change::RemoveField(field) => _ = self.hash.remove(field),
            Change::Count(amount) => self.hash.entry(COUNT.into()).or_insert((0, None)).0 += amount,
            Change::AddMember(member) => _ = self.set.insert(member.into()),
            Change::RemoveMember(member) => _ = self.set.remove(member),
            Change::Rank(member, score) => _ = self.ranked.insert(member.into(), score),
            Change::AddToRank(member, amount) => *self.ranked.entry(member.into()).or_default() += amount,
            Change::RemoveRanked(member) => _ = self.ranked.remove(member),
            Change::TakeLowest => {
                let lowest = self.ranked.iter().map(|(member, score)| (*score, member.clone())).min();
                lowest.and_then(|(_, member)| self.ranked.remove(&member));
            }
            Change::AddEntry(id) => self.stream.push(id),
            Change::RemoveEntry(id) => self.stream.retain(|other| *other != id),
            Change::Trim(length) => _ = self.stream.drain(..self.stream.len().saturating_sub(length)),
            Change::Clear => *self = Self::default(),
            Change::All(value) => {
                self.list.push(value);
                self.hash.insert(ALL.into(), (value, None));
                self.set.insert(value.to_string());
                self.ranked.insert(ALL.into(), value);
                self.string = Some(value);
                self.stream.push(value);
            }
        }
    }

    /// Whether this is what was found between two moments. A field that expired meanwhile may be there or not.
    pub fn is(&self, found: &State, from_ms: i64, to_ms: i64) -> bool {
        let lives = |state: &State| {
            let sure = |at: Option<i64>| at.is_none_or(|at| at > to_ms);
            let fields = state.hash.iter().filter(|(_, (_, at))| sure(*at));
            fields.map(|(field, held)| (field.clone(), *held)).collect::<BTreeMap<_, _>>()
        };
        let may_be_there = |(field, held): (&String, &(i64, Option<i64>))| {
            held.1.is_none_or(|at| at > from_ms) && self.hash.get(field) == Some(held)
        };
        self.list == found.list
            && self.set == found.set
            && self.ranked == found.ranked
            && self.string == found.string
            && self.stream == found.stream
            && lives(self) == lives(found)
            && found.hash.iter().all(may_be_there)
    }
}

/// What is known of a change that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// No reply: done or not, but in order.
    Unknown,
    /// Answered, then.
    Acknowledged(u64),
    /// Answered with an error: may be there or not, whatever comes after it.
    Refused,
}

/// A change that was sent.
#[derive(Debug, Clone)]
pub struct Step {
    /// What.
    pub change: Change,
    /// When.
    pub sent_ns: u64,
    /// How it ended.
    pub fate: Fate,
}

/// After how many of the steps, `least` of them at least, the state was that which was found, and what it is by the steps: the latest
/// such moment. Nothing if there is none.
pub fn judge(
    before: &State,
    steps: &[Step],
    least: usize,
    is_found: impl Fn(&State) -> bool,
) -> Option<(usize, State)> {
    let mut states = vec![before.clone()];
    let mut found = None;
    for done in 0..=steps.len() {
        if done >= least
            && let Some(state) = states.iter().find(|state| is_found(state))
        {
            found = Some((done, state.clone()));
        }
        let Some(step) = steps.get(done) else { break };
        let without = if step.fate == Fate::Refused { states.clone() } else { Vec::new() };
        states.iter_mut().for_each(|state| state.apply(&step.change));
        states.extend(without);
        states.sort_unstable();
        states.dedup();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(change: Change, fate: Fate) -> Step {
        Step { change, sent_ns: 0, fate }
    }

    fn after(changes: &[Change]) -> State {
        let mut state = State::default();
        changes.iter().for_each(|change| state.apply(change));
        state
    }

    fn judged(steps: &[Step], least: usize, found: &State) -> Option<usize> {
        judge(&State::default(), steps, least, |state| state.is(found, 0, 0)).map(|(done, _)| done)
    }

    #[test]
    fn a_prefix_that_keeps_what_was_promised_is_right_and_nothing_else() {
        let changes = [Change::Append(1), Change::AddMember("a"), Change::Rank("a", 3), Change::All(4)];
        let steps: Vec<Step> = changes.iter().map(|change| step(change.clone(), Fate::Unknown)).collect();
        for done in 0..=changes.len() {
            assert_eq!(judged(&steps, 0, &after(&changes[..done])), Some(done));
        }
        assert_eq!(judged(&steps, 3, &after(&changes[..2])), None, "a promise was broken");
        assert_eq!(judged(&steps, 0, &after(&changes[1..2])), None, "one before it is missing");
        let mut torn = after(&changes);
        torn.ranked.remove(ALL);
        assert_eq!(judged(&steps, 0, &torn), None, "half a transaction");
    }

    #[test]
    fn what_was_refused_may_be_there_or_not() {
        let changes = [Change::Append(1), Change::Append(2), Change::Append(3)];
        let mut steps: Vec<Step> = changes.iter().map(|change| step(change.clone(), Fate::Acknowledged(1))).collect();
        assert_eq!(judged(&steps, 3, &after(&[Change::Append(1), Change::Append(3)])), None);
        steps[1].fate = Fate::Refused;
        assert_eq!(judged(&steps, 3, &after(&[Change::Append(1), Change::Append(3)])), Some(3));
        assert_eq!(judged(&steps, 3, &after(&changes)), Some(3));
    }

    #[test]
    fn fields_expire_at_their_moment() {
        let model = after(&[Change::SetField("a", 1), Change::SetMortalField("b", 2, 100)]);
        let gone = after(&[Change::SetField("a", 1)]);
        let other = after(&[Change::SetField("a", 1), Change::SetMortalField("b", 2, 101)]);
        let immortal = after(&[Change::SetField("a", 1), Change::SetField("b", 2)]);
        assert!(model.is(&model, 98, 99) && !model.is(&gone, 98, 99), "before");
        assert!(model.is(&model, 99, 100) && model.is(&gone, 99, 100), "meanwhile");
        assert!(!model.is(&model, 100, 101) && model.is(&gone, 100, 101), "after");
        assert!(!model.is(&other, 98, 99) && !model.is(&immortal, 98, 99), "another moment");
        assert!(!gone.is(&model, 98, 99), "made up");
    }

    #[test]
    fn the_lowest_is_taken_first() {
        let state = after(&[Change::Rank("b", 1), Change::Rank("a", 1), Change::Rank("c", 0), Change::TakeLowest]);
        assert_eq!(state, after(&[Change::Rank("b", 1), Change::Rank("a", 1)]));
        assert_eq!(
            after(&[Change::Rank("b", 1), Change::Rank("a", 1), Change::TakeLowest]),
            after(&[Change::Rank("b", 1)])
        );
    }
}
