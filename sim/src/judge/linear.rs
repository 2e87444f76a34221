//! Linearizability of a register (Herlihy and Wing 1990), decided by search (Wing and Gong 1993, with Lowe's memory of
//! what was tried): is there one order of the operations, each at some moment between its request and its reply, in which
//! every read returns what the last write wrote? A write without a reply may have happened at any later moment, or never.

use std::collections::BTreeSet;

/// At most this many operations can be judged at once: one bit each.
pub const OPERATIONS_MAX: usize = 128;

/// The search is given up after this many configurations.
const CONFIGURATIONS_MAX: usize = 300_000;

/// What an operation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Wrote a value.
    Write(i64),
    /// Read a value, or none.
    Read(Option<i64>),
}

/// One operation on the register.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// What it did.
    pub kind: Kind,
    /// When it was sent.
    pub invoked_ns: u64,
    /// When it was answered, if it was.
    pub completed_ns: Option<u64>,
}

/// What the register holds before the first operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Content {
    /// Anything: the first read tells.
    Unknown,
    /// This.
    Known(Option<i64>),
}

/// The judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// There is such an order.
    Linearizable,
    /// There is none.
    Impossible,
    /// The search was given up.
    Undecided,
}

/// Judges a history of at most [`OPERATIONS_MAX`] operations.
pub fn judge(history: &[Operation], before: Content) -> Verdict {
    let operations: Vec<&Operation> = history.iter().filter(|operation| !says_nothing(operation, history)).collect();
    assert!(operations.len() <= OPERATIONS_MAX, "a key is replaced before its history is this long");
    let must: u128 = bits(&operations, |operation| operation.completed_ns.is_some());
    let mut tried = BTreeSet::new();
    let mut open = vec![(0_u128, before)];
    while let Some((done, content)) = open.pop() {
        if done & must == must {
            return Verdict::Linearizable;
        }
        if !tried.insert((done, content)) {
            continue;
        }
        if tried.len() > CONFIGURATIONS_MAX {
            return Verdict::Undecided;
        }
        let first_completed = first_completion(&operations, done);
        for (index, operation) in operations.iter().enumerate() {
            if done & (1 << index) == 0
                && operation.invoked_ns <= first_completed
                && let Some(next) = apply(operation.kind, content)
            {
                open.push((done | (1 << index), next));
            }
        }
    }
    Verdict::Impossible
}

/// A read without a reply, or a write without one whose value nobody read: as every value is written once, it may as well
/// never have happened.
fn says_nothing(operation: &Operation, history: &[Operation]) -> bool {
    operation.completed_ns.is_none()
        && match operation.kind {
            Kind::Read(_) => true,
            Kind::Write(value) => !history.iter().any(|other| other.kind == Kind::Read(Some(value))),
        }
}

fn bits(operations: &[&Operation], wanted: impl Fn(&Operation) -> bool) -> u128 {
    operations.iter().enumerate().filter(|(_, operation)| wanted(operation)).map(|(index, _)| 1 << index).sum()
}

/// Nothing may be placed after an operation that was answered before it was sent.
fn first_completion(operations: &[&Operation], done: u128) -> u64 {
    let left = operations.iter().enumerate().filter(|(index, _)| done & (1 << index) == 0);
    left.filter_map(|(_, operation)| operation.completed_ns).min().unwrap_or(u64::MAX)
}

fn apply(kind: Kind, content: Content) -> Option<Content> {
    match (kind, content) {
        (Kind::Write(value), _) => Some(Content::Known(Some(value))),
        (Kind::Read(value), Content::Unknown) => Some(Content::Known(value)),
        (Kind::Read(value), Content::Known(held)) => (value == held).then_some(content),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: Content = Content::Known(None);

    fn write(value: i64, invoked_ns: u64, completed_ns: u64) -> Operation {
        Operation { kind: Kind::Write(value), invoked_ns, completed_ns: Some(completed_ns) }
    }

    fn lost_write(value: i64, invoked_ns: u64) -> Operation {
        Operation { kind: Kind::Write(value), invoked_ns, completed_ns: None }
    }

    fn read(value: Option<i64>, invoked_ns: u64, completed_ns: u64) -> Operation {
        Operation { kind: Kind::Read(value), invoked_ns, completed_ns: Some(completed_ns) }
    }

    #[test]
    fn a_read_sees_the_last_write() {
        assert_eq!(judge(&[write(1, 0, 1), read(Some(1), 2, 3)], EMPTY), Verdict::Linearizable);
        assert_eq!(judge(&[write(1, 0, 1), read(None, 2, 3)], EMPTY), Verdict::Impossible, "lost");
        assert_eq!(judge(&[read(Some(9), 0, 1)], EMPTY), Verdict::Impossible, "made up");
        assert_eq!(judge(&[write(1, 0, 1), write(2, 2, 3), read(Some(1), 4, 5)], EMPTY), Verdict::Impossible, "stale");
    }

    #[test]
    fn concurrent_operations_may_go_either_way_but_only_one() {
        let overlapping = [write(1, 0, 10), write(2, 0, 10)];
        for last in [1, 2] {
            let mut history = overlapping.to_vec();
            history.push(read(Some(last), 11, 12));
            assert_eq!(judge(&history, EMPTY), Verdict::Linearizable);
            history.push(read(Some(3 - last), 13, 14));
            assert_eq!(judge(&history, EMPTY), Verdict::Impossible);
        }
    }

    #[test]
    fn an_unanswered_write_may_come_late_or_never_but_not_early_or_twice() {
        let lost = lost_write(5, 10);
        assert_eq!(judge(&[lost, read(None, 20, 21), read(Some(5), 30, 31)], EMPTY), Verdict::Linearizable);
        assert_eq!(judge(&[lost, read(None, 20, 21), read(None, 30, 31)], EMPTY), Verdict::Linearizable);
        assert_eq!(judge(&[lost, read(Some(5), 1, 2)], EMPTY), Verdict::Impossible);
        let again = [lost, read(Some(5), 20, 21), write(6, 30, 31), read(Some(5), 40, 41)];
        assert_eq!(judge(&again, EMPTY), Verdict::Impossible);
    }

    #[test]
    fn what_was_there_before_is_told_by_the_first_read() {
        assert_eq!(judge(&[read(Some(4), 0, 1), read(Some(4), 2, 3)], Content::Unknown), Verdict::Linearizable);
        assert_eq!(judge(&[read(Some(4), 0, 1), read(Some(5), 2, 3)], Content::Unknown), Verdict::Impossible);
    }
}
