//! What a timeline counts: faults that struck while an operation was under way, points that it reached, and operations. A
//! campaign adds them up, so that one whose faults never strike is seen for what it is.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use simurgh_kernel::rehearsal::Point;

/// The classes of faults of one node, by the names of the project's reliability notes.
pub const CLASSES: [(&str, &str); 20] = [
    ("N2", "a packet was delayed or carried slowly"),
    ("N5", "server and clients were cut off from each other"),
    ("N6", "one direction was cut"),
    ("N8", "a cut came and went again and again"),
    ("N9-reset", "a connection was reset"),
    ("N9-silence", "a connection fell silent"),
    ("N9-hang", "a connect was never answered"),
    ("N10", "a pipe was full: back-pressure"),
    ("P1", "the server was killed"),
    ("P2", "it was killed again while it was starting"),
    ("P3", "it was stopped and went on"),
    ("P4", "the power went"),
    ("T1", "its wall clock was off"),
    ("T2", "its wall clock drifted"),
    ("T3", "its wall clock stepped"),
    ("S1", "unsynced sectors or names were lost"),
    ("S3", "a sync, a write or a read failed"),
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
    /// Milliseconds of virtual time.
    pub lasted_ms: u64,
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
        write!(f, "operations {} linearized {} lasted {}", self.operations, self.linearized, self.lasted_ms)?;
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
        let ["operations", operations, "linearized", linearized, "lasted", lasted] = words.as_slice() else {
            return Err(());
        };
        let number = |text: &str| text.parse().map_err(|_| ());
        let (operations, linearized, lasted_ms) = (number(operations)?, number(linearized)?, number(lasted)?);
        let mut tally = Tally { operations, linearized, lasted_ms, ..Self::default() };
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
        let tally = Tally { fired, reached, operations: 7, linearized: 5, lasted_ms: 60 };
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
