//! What a timeline counts: faults that struck while an operation was under way, points that it reached, and operations. A
//! campaign adds them up, so that one whose faults never strike is seen for what it is.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use simurgh_kernel::rehearsal::Point;

/// The classes of faults of one node, by the names of the project's reliability notes.
pub const CLASSES: [(&str, &str); 24] = [
    ("N2", "a packet was delayed or carried slowly"),
    ("N5", "server and clients were cut off from each other"),
    ("N6", "one direction was cut"),
    ("N8", "a cut came and went again and again"),
    ("N9-reset", "a connection was reset"),
    ("N9-silence", "a connection fell silent"),
    ("N9-hang", "a connect was never answered"),
    ("N9-end", "one direction of a connection ended before the other"),
    ("N10", "a pipe was full: back-pressure"),
    ("P1", "the server was killed"),
    ("P2", "it was killed again while it was starting"),
    ("P3", "it was stopped and went on"),
    ("P4", "the power went"),
    ("P5", "the task of a connection panicked"),
    ("T1", "its wall clock was off"),
    ("T2", "its wall clock drifted"),
    ("T3", "its wall clock stepped"),
    ("S1", "unsynced sectors or names were lost"),
    ("S2", "a write was torn"),
    ("S3", "a sync, a write or a read failed"),
    ("S3-short", "a read or write moved less than asked, or was interrupted"),
    ("S4", "the disk was full"),
    ("S5", "bits rotted, sectors failed, writes were lost, misplaced or lied about, the disk was wiped"),
    ("S6", "the disk stalled"),
];

/// What the simulator itself can tell of a timeline, beside the points in the node's code.
pub const POINTS: [&str; 15] = [
    "a crash inside recovery",
    "a crash inside recovery inside recovery",
    "the power went during a sync",
    "the power undid a change of names",
    "the disk stalled for over a second",
    "a failed sync ended the server",
    "damage was refused and undone",
    "damage was survived",
    "a lying disk was found out",
    "a wiped disk was started from",
    "an expired key was looked at after the clock stepped back",
    "a wait ended with nothing",
    "a transaction met a changed watch",
    "a script was killed",
    "a reader waited for output of over a megabyte",
];

/// Everything counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// How often each class of faults struck while an operation was under way.
    pub fired: BTreeMap<String, u64>,
    /// How often each point was reached.
    pub reached: BTreeMap<String, u64>,
    /// Operations that clients had answers to, and that the judges have seen.
    pub operations: u64,
    /// Those of them whose history was judged for linearizability.
    pub linearized: u64,
    /// Those of them whose search was given up, which is a finding.
    pub undecided: u64,
    /// Steps of transactions that were judged for strict serializability.
    pub serialized: u64,
    /// Milliseconds of virtual time.
    pub lasted_ms: u64,
}

impl Tally {
    fn numbers(&self) -> [(&'static str, u64); 5] {
        self.clone().numbers_mut().map(|(name, number)| (name, *number))
    }

    fn numbers_mut(&mut self) -> [(&'static str, &mut u64); 5] {
        [
            ("operations", &mut self.operations),
            ("linearized", &mut self.linearized),
            ("undecided", &mut self.undecided),
            ("serialized", &mut self.serialized),
            ("lasted", &mut self.lasted_ms),
        ]
    }

    /// Adds what one timeline has counted.
    pub fn add(&mut self, tally: &Self) {
        self.numbers_mut().into_iter().zip(tally.numbers()).for_each(|((_, into), (_, from))| *into += from);
        for (into, from) in [(&mut self.fired, &tally.fired), (&mut self.reached, &tally.reached)] {
            from.iter().for_each(|(name, count)| *into.entry(name.clone()).or_default() += count);
        }
    }
}

thread_local! {
    static TALLY: RefCell<Tally> = RefCell::default();
    static IN_FLIGHT: Cell<u64> = const { Cell::new(0) };
}

/// Requests were sent.
pub fn sent(requests: u64) {
    IN_FLIGHT.set(IN_FLIGHT.get() + requests);
}

/// Requests were answered.
pub fn answered(requests: u64) {
    given_up(requests);
    TALLY.with_borrow_mut(|tally| tally.operations += requests);
}

/// Requests will not be answered any more.
pub fn given_up(requests: u64) {
    IN_FLIGHT.set(IN_FLIGHT.get().saturating_sub(requests));
}

/// Operations answered so far.
pub fn operations() -> u64 {
    TALLY.with_borrow(|tally| tally.operations)
}

/// A fault struck.
pub fn fired(class: &'static str) {
    fired_times(class, 1);
}

/// A fault struck so many times.
pub fn fired_times(class: &'static str, times: u64) {
    debug_assert!(CLASSES.iter().any(|(known, _)| *known == class), "{class} is a class");
    if IN_FLIGHT.get() > 0 && times > 0 {
        TALLY.with_borrow_mut(|tally| *tally.fired.entry(class.into()).or_default() += times);
    }
}

/// A point was reached.
pub fn reach(point: &'static str) {
    debug_assert!(POINTS.contains(&point), "{point} is a point");
    TALLY.with_borrow_mut(|tally| *tally.reached.entry(point.into()).or_default() += 1);
}

/// Operations were judged for linearizability.
pub fn linearized(operations: usize) {
    TALLY.with_borrow_mut(|tally| tally.linearized += operations as u64);
}

/// Steps of a transaction are judged for strict serializability.
pub fn serialized(steps: usize) {
    TALLY.with_borrow_mut(|tally| tally.serialized += steps as u64);
}

/// The search for an order of these was given up.
pub fn undecided(operations: usize) {
    TALLY.with_borrow_mut(|tally| tally.undecided += operations as u64);
}

/// Everything so far.
pub fn tally() -> Tally {
    TALLY.with_borrow(Clone::clone)
}

/// Every point that there is.
pub fn all_points() -> impl Iterator<Item = &'static str> {
    Point::ALL.iter().map(|(_, name)| *name).chain(POINTS)
}

/// One line, which reads back.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = self.numbers().map(|(name, number)| format!("{name} {number}"));
        f.write_str(&numbers.join(" "))?;
        for (marker, counts) in [('!', &self.fired), ('@', &self.reached)] {
            for (name, count) in counts {
                write!(f, "; {marker}{name} = {count}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for Tally {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let mut parts = line.split("; ");
        let words: Vec<&str> = parts.next().ok_or(())?.split(' ').collect();
        let number = |text: &str| text.parse().map_err(|_| ());
        let mut tally = Self::default();
        if words.len() != 2 * tally.numbers_mut().len() {
            return Err(());
        }
        for ((name, into), words) in tally.numbers_mut().into_iter().zip(words.chunks(2)) {
            if words[0] != name {
                return Err(());
            }
            *into = number(words[1])?;
        }
        for part in parts {
            let (name, count) = part.rsplit_once(" = ").ok_or(())?;
            let counts = if name.starts_with('!') { &mut tally.fired } else { &mut tally.reached };
            counts.insert(name.get(1..).ok_or(())?.into(), number(count)?);
        }
        Ok(tally)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_reads_back_as_written() {
        let counts = |name: &str| BTreeMap::from([(name.to_owned(), 3)]);
        let (fired, reached) = (counts("N9-reset"), counts("a crash inside recovery"));
        let tally = Tally { fired, reached, operations: 7, linearized: 5, undecided: 1, serialized: 4, lasted_ms: 60 };
        assert_eq!(tally.to_string().parse(), Ok(tally));
        assert_eq!("nonsense".parse::<Tally>(), Err(()));
    }

    #[test]
    fn a_fault_counts_only_while_an_operation_is_under_way() {
        fired("P1");
        sent(2);
        fired("P1");
        answered(1);
        fired("P1");
        given_up(1);
        fired("P1");
        assert_eq!(tally().fired, BTreeMap::from([("P1".to_owned(), 2)]));
        assert_eq!(operations(), 1);
    }
}
