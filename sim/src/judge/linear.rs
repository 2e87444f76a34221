//! Linearizability of a register (Herlihy and Wing 1990), decided by search (Wing and Gong 1993, with Lowe's memory of
//! what was tried): is there one order of the operations, each at some moment between its request and its reply, in which
//! every read returns what the last write wrote? A write without a reply may have happened at any later moment, or never.
//!
//! The search is bounded, and giving it up is a finding, not a pass: keys are replaced before their histories grow long.

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
    /// Wrote the first, and read the second that was there before (GETSET).
    Swap(i64, Option<i64>),
    /// Wrote a value if there was none; whether it did (SETNX).
    WriteIfAbsent(i64, bool),
    /// Removed the value; whether there was one (DEL).
    Delete(bool),
}

impl Kind {
    /// The value that it may have written.
    pub fn written(self) -> Option<i64> {
        match self {
            Kind::Write(value) | Kind::Swap(value, _) | Kind::WriteIfAbsent(value, _) => Some(value),
            Kind::Read(_) | Kind::Delete(_) => None,
        }
    }

    /// The value that it has read, once it was answered.
    pub fn read(self) -> Option<i64> {
        match self {
            Kind::Read(value) | Kind::Swap(_, value) => value,
            Kind::Write(_) | Kind::WriteIfAbsent(..) | Kind::Delete(_) => None,
        }
    }

    /// Whether its answer tells that something is there, and not what.
    fn tells_presence(self) -> bool {
        matches!(self, Kind::WriteIfAbsent(..) | Kind::Delete(_))
    }
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
    /// Something, and nobody knows what.
    Present,
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
    let read: BTreeSet<i64> =
        history.iter().filter(|one| one.completed_ns.is_some()).filter_map(|one| one.kind.read()).collect();
    let uses: Vec<Use> = operations.iter().map(|operation| use_of(operation, &read)).collect();
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
        let mut tried_uses = Vec::new();
        for (index, operation) in operations.iter().enumerate() {
            let is_next = done & (1 << index) == 0 && operation.invoked_ns <= first_completed;
            if !is_next || tried_uses.contains(&uses[index]) || !uses[index].may_help(content) {
                continue;
            }
            if uses[index] != Use::Own {
                tried_uses.push(uses[index]);
            }
            let next = apply(operation, content).into_iter().flatten().map(|next| without_unread(next, &read));
            open.extend(next.map(|next| (done | (1 << index), next)));
        }
    }
    Verdict::Impossible
}

/// What placing an operation is good for. Those without a reply that do the same are interchangeable: of each use the earliest is
/// tried, or their number would be an exponent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// It must have its place, or somebody has read what it wrote.
    Own,
    /// Something is there afterwards, and nobody ever reads what.
    Fill,
    /// Nothing is there afterwards.
    Clear,
}

impl Use {
    /// Whether it can make something possible that was not.
    fn may_help(self, content: Content) -> bool {
        match self {
            Use::Own => true,
            Use::Fill => matches!(content, Content::Known(None) | Content::Unknown),
            Use::Clear => content != Content::Known(None),
        }
    }
}

fn use_of(operation: &Operation, read: &BTreeSet<i64>) -> Use {
    match (operation.completed_ns, operation.kind) {
        (None, Kind::Delete(_)) => Use::Clear,
        (None, kind) if kind.written().is_some_and(|value| !read.contains(&value)) => Use::Fill,
        (None | Some(_), _) => Use::Own,
    }
}

/// Values that nobody ever reads are all one.
fn without_unread(content: Content, read: &BTreeSet<i64>) -> Content {
    match content {
        Content::Known(Some(value)) if !read.contains(&value) => Content::Known(Some(i64::MIN)),
        other => other,
    }
}

/// A read without a reply, or a write without one whose value nobody read: as every value is written once, it may as well
/// never have happened. (Unless somebody was told that something was there: that may have been this.)
fn says_nothing(operation: &Operation, history: &[Operation]) -> bool {
    operation.completed_ns.is_none()
        && match operation.kind {
            Kind::Read(_) => true,
            Kind::Delete(_) => false,
            Kind::Write(value) | Kind::Swap(value, _) | Kind::WriteIfAbsent(value, _) => !history.iter().any(|other| {
                other.completed_ns.is_some() && (other.kind.read() == Some(value) || other.kind.tells_presence())
            }),
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

/// What the register may hold after the operation, if it can have found `content`.
fn apply(operation: &Operation, content: Content) -> [Option<Content>; 2] {
    let is_known = operation.completed_ns.is_some();
    let one = |is_possible: bool, after: Content| [is_possible.then_some(after), None];
    match operation.kind {
        Kind::Write(value) => one(true, Content::Known(Some(value))),
        Kind::Read(value) => one(may_be(content, value), Content::Known(value)),
        Kind::Swap(value, before) => one(!is_known || may_be(content, before), Content::Known(Some(value))),
        Kind::WriteIfAbsent(value, wrote) => {
            let written = (!is_known || wrote) && may_be(content, None);
            let left = (!is_known || !wrote) && content != Content::Known(None);
            let after = if content == Content::Unknown { Content::Present } else { content };
            [written.then_some(Content::Known(Some(value))), left.then_some(after)]
        }
        Kind::Delete(existed) => {
            let is_possible =
                !is_known || if existed { content != Content::Known(None) } else { may_be(content, None) };
            one(is_possible, Content::Known(None))
        }
    }
}

/// Whether a register with this content may hold the value.
fn may_be(content: Content, value: Option<i64>) -> bool {
    match content {
        Content::Unknown => true,
        Content::Present => value.is_some(),
        Content::Known(held) => held == value,
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

    fn done(kind: Kind, invoked_ns: u64) -> Operation {
        Operation { kind, invoked_ns, completed_ns: Some(invoked_ns + 1) }
    }

    #[test]
    fn what_swaps_sets_if_absent_and_deletes_tell_is_judged() {
        let swap = |new, old, at| done(Kind::Swap(new, old), at);
        assert_eq!(judge(&[write(1, 0, 1), swap(2, Some(1), 2), read(Some(2), 4, 5)], EMPTY), Verdict::Linearizable);
        assert_eq!(judge(&[write(1, 0, 1), swap(2, None, 2)], EMPTY), Verdict::Impossible);
        let absent = |value, wrote, at| done(Kind::WriteIfAbsent(value, wrote), at);
        assert_eq!(
            judge(&[absent(1, true, 0), absent(2, false, 2), read(Some(1), 4, 5)], EMPTY),
            Verdict::Linearizable
        );
        assert_eq!(judge(&[absent(1, true, 0), absent(2, true, 2)], EMPTY), Verdict::Impossible);
        let delete = |existed, at| done(Kind::Delete(existed), at);
        assert_eq!(
            judge(&[write(1, 0, 1), delete(true, 2), delete(false, 4), read(None, 6, 7)], EMPTY),
            Verdict::Linearizable
        );
        assert_eq!(judge(&[write(1, 0, 1), delete(true, 2), delete(true, 4)], EMPTY), Verdict::Impossible);
        // A write that nobody answered and nobody read explains what was there.
        assert_eq!(judge(&[lost_write(5, 0), delete(true, 2)], EMPTY), Verdict::Linearizable);
        assert_eq!(judge(&[lost_write(5, 3), delete(true, 0)], EMPTY), Verdict::Impossible, "before it was sent");
        let lost = Operation { kind: Kind::WriteIfAbsent(5, false), invoked_ns: 0, completed_ns: None };
        assert_eq!(judge(&[lost, read(Some(5), 2, 3)], EMPTY), Verdict::Linearizable);
        assert_eq!(judge(&[absent(5, false, 0), read(None, 2, 3)], Content::Unknown), Verdict::Impossible);
    }

    /// Clients that lose their replies again and again do not make a history that nobody can judge.
    #[test]
    fn many_lost_replies_are_decided() {
        let mut history = Vec::new();
        for round in 0..20 {
            let at = 100 * round;
            history.push(lost_write(1000 + round as i64, at));
            history.push(Operation { kind: Kind::Delete(false), invoked_ns: at + 1, completed_ns: None });
            history.push(done(Kind::Delete(true), at + 10));
            history.push(done(Kind::WriteIfAbsent(round as i64, true), at + 20));
        }
        assert_eq!(judge(&history, EMPTY), Verdict::Linearizable);
        history.push(done(Kind::Read(Some(7)), 5000));
        assert_eq!(judge(&history, EMPTY), Verdict::Impossible, "overwritten long ago");
    }

    #[test]
    fn what_was_there_before_is_told_by_the_first_read() {
        assert_eq!(judge(&[read(Some(4), 0, 1), read(Some(4), 2, 3)], Content::Unknown), Verdict::Linearizable);
        assert_eq!(judge(&[read(Some(4), 0, 1), read(Some(5), 2, 3)], Content::Unknown), Verdict::Impossible);
    }
}
