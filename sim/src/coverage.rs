//! In how many timelines of a campaign each class of faults struck while an operation was under way, and each two classes
//! together: what was never tried was not tested.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::Bound::{Excluded, Unbounded};

use crate::tally::{CLASSES, Tally};

/// Of so many timelines,
const PER: u64 = 10_000;
/// so many shall meet each class of faults,
const CLASS_MIN: u64 = 500;
/// and so many each two.
const PAIR_MIN: u64 = 20;

/// Each timeline counts once for a class, a pair or a point.
#[derive(Debug, Default)]
pub struct Coverage {
    /// How many timelines there were.
    pub timelines: u64,
    /// Everything that they counted.
    pub sum: Tally,
    classes: BTreeMap<String, u64>,
    pairs: BTreeMap<(String, String), u64>,
    points: BTreeMap<String, u64>,
}

impl Coverage {
    /// A timeline more. One that did not live to tell has no tally.
    pub fn note(&mut self, tally: Option<&Tally>) {
        self.timelines += 1;
        let Some(tally) = tally else { return };
        self.sum.add(tally);
        let struck: BTreeSet<&String> = tally.fired.keys().collect();
        for class in &struck {
            *self.classes.entry((*class).clone()).or_default() += 1;
            for other in struck.range::<&String, _>((Excluded(class), Unbounded)) {
                *self.pairs.entry(((*class).clone(), (*other).clone())).or_default() += 1;
            }
        }
        for point in tally.reached.keys() {
            *self.points.entry(point.clone()).or_default() += 1;
        }
    }

    /// How many timelines a class struck.
    pub fn class(&self, class: &str) -> u64 {
        self.classes.get(class).copied().unwrap_or(0)
    }

    /// How many timelines reached a point.
    pub fn point(&self, point: &str) -> u64 {
        self.points.get(point).copied().unwrap_or(0)
    }

    /// How many timelines two classes struck.
    fn pair(&self, one: &str, other: &str) -> u64 {
        let (one, other) = if one < other { (one, other) } else { (other, one) };
        self.pairs.get(&(one.to_owned(), other.to_owned())).copied().unwrap_or(0)
    }

    /// Whether so few of the campaign's timelines are less than the goal for [`PER`].
    fn is_rare(&self, timelines: u64, wanted: u64) -> bool {
        timelines * PER < wanted * self.timelines
    }

    /// The classes that struck too few timelines, with their number.
    pub fn rare_classes(&self) -> Vec<(&'static str, u64)> {
        let counted = CLASSES.iter().map(|(class, _)| (*class, self.class(class)));
        counted.filter(|(_, timelines)| self.is_rare(*timelines, CLASS_MIN)).collect()
    }

    /// The pairs that struck too few timelines, with their number, the rarest first.
    pub fn rare_pairs(&self) -> Vec<(String, u64)> {
        let all = CLASSES.iter().enumerate().flat_map(|(place, (one, _))| {
            CLASSES[place + 1..].iter().map(move |(other, _)| (format!("{one}+{other}"), self.pair(one, other)))
        });
        let mut rare: Vec<_> = all.filter(|(_, timelines)| self.is_rare(*timelines, PAIR_MIN)).collect();
        rare.sort_by_key(|(_, timelines)| *timelines);
        rare
    }

    /// What of the goals is missed, as sentences.
    pub fn missed(&self) -> String {
        let mut text = String::new();
        let named = |rare: Vec<String>| if rare.is_empty() { "none".to_owned() } else { rare.join(", ") };
        let classes = self.rare_classes().into_iter().map(|(class, times)| format!("{class} {times}")).collect();
        let pairs = self.rare_pairs();
        let all = CLASSES.len() * (CLASSES.len() - 1) / 2;
        let _ = write!(
            text,
            "Classes in fewer than {CLASS_MIN} of {PER} timelines: {}. {} of {all} pairs of classes in {PAIR_MIN} of {PER} \
             or more; the others: {}.",
            named(classes),
            all - pairs.len(),
            named(pairs.into_iter().map(|(pair, times)| format!("{pair} {times}")).collect())
        );
        text
    }

    /// In how many timelines each class struck.
    pub fn classes(&self) -> String {
        let counts: Vec<String> = CLASSES.iter().map(|(class, _)| format!("{class} {}", self.class(class))).collect();
        counts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn struck(classes: &[&str]) -> Tally {
        let fired = classes.iter().map(|class| ((*class).to_owned(), 3)).collect();
        Tally { fired, operations: 10, ..Tally::default() }
    }

    #[test]
    fn a_timeline_counts_once_however_often_a_fault_struck() {
        let mut coverage = Coverage::default();
        coverage.note(Some(&struck(&["P1", "N10", "S1"])));
        coverage.note(Some(&struck(&["P1"])));
        coverage.note(None);
        assert_eq!((coverage.timelines, coverage.sum.operations), (3, 20));
        assert_eq!((coverage.class("P1"), coverage.class("S1"), coverage.class("T3")), (2, 1, 0));
        assert_eq!((coverage.pair("P1", "N10"), coverage.pair("S1", "P1"), coverage.pair("S1", "T3")), (1, 1, 0));
    }

    #[test]
    fn what_is_rare_is_named() {
        let mut coverage = Coverage::default();
        let all: Vec<&str> = CLASSES.iter().map(|(class, _)| *class).collect();
        coverage.note(Some(&struck(&all)));
        assert!(coverage.rare_classes().is_empty() && coverage.rare_pairs().is_empty());
        // One of 400 is enough for a pair and too little for a class.
        let most: Vec<&str> = all.iter().copied().filter(|class| *class != "T3").collect();
        (0..399).for_each(|_| coverage.note(Some(&struck(&most))));
        assert_eq!(coverage.rare_classes(), [("T3", 1)]);
        assert!(coverage.rare_pairs().is_empty());
        (0..200).for_each(|_| coverage.note(Some(&struck(&most))));
        assert_eq!(coverage.rare_pairs().len(), all.len() - 1);
        assert!(coverage.missed().contains("N2+T3 1"), "{}", coverage.missed());
    }
}
