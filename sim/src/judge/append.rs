//! Transactions that append to lists and read them, each element once in the whole timeline (Elle's list-append: Kingsbury and
//! Alvaro 2020): a read shows in which order its elements were written, so what depends on what follows from the reads. They
//! must be strictly serializable: one order of all of them explains every reply, and who ended before another began comes first.
//!
//! What is looked for, the gravest first: elements from nowhere or of transactions that did not happen (G1a), of a transaction
//! that was not at its end (G1b), lists that are no prefixes of one list, replies that a transaction's own steps do not explain,
//! and then cycles ([`super::cycle`]).

use std::collections::{BTreeMap, BTreeSet};

use super::cycle::{Edge, Graph};

/// A step of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Appended an element; how long the list was then, if that was told.
    Append {
        /// To this list.
        key: u64,
        /// No other has it.
        element: u64,
        /// The list's new length.
        length: Option<u64>,
    },
    /// Read a list, if it was told.
    Read {
        /// This one.
        key: u64,
        /// Its elements.
        list: Option<Vec<u64>>,
    },
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All of it happened.
    Committed,
    /// Nothing of it happened.
    Aborted,
    /// Nobody was told.
    Unknown,
}

/// A transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// What it does, in its order.
    pub steps: Vec<Step>,
    /// How it ended.
    pub outcome: Outcome,
    /// When it was sent.
    pub invoked_ns: u64,
    /// When it was answered, if it was.
    pub completed_ns: Option<u64>,
}

/// Judges transactions between which nothing may be lost. `others` are those of the timeline's other parts: their elements may be
/// there from the beginning. What is wrong, if anything.
pub fn judge(history: &[Transaction], others: &[Transaction]) -> Option<String> {
    let mut lists = Lists::of(history);
    direct(history, others, &lists).or_else(|| lists.orders(history)).or_else(|| lists.cycles(history))
}

/// Who has appended an element.
#[derive(Debug, Clone, Copy)]
struct Origin {
    transaction: usize,
    /// No later step of the transaction appends to the same list.
    is_last: bool,
}

/// What is known of the lists.
struct Lists {
    origins: BTreeMap<u64, Origin>,
    /// The longest that anyone has read of each.
    longest: BTreeMap<u64, Vec<u64>>,
    /// Transactions that happened: they say so, or somebody has seen something of them.
    happened: Vec<bool>,
}

impl Lists {
    fn of(history: &[Transaction]) -> Self {
        let mut origins: BTreeMap<u64, Origin> = BTreeMap::new();
        let mut longest: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        let mut happened: Vec<bool> = history.iter().map(|one| one.outcome == Outcome::Committed).collect();
        for (transaction, one) in history.iter().enumerate() {
            let mut last = BTreeMap::new();
            for step in &one.steps {
                match step {
                    Step::Append { key, element, .. } => {
                        if let Some(origin) = last.insert(*key, *element).and_then(|before| origins.get_mut(&before)) {
                            origin.is_last = false;
                        }
                        origins.insert(*element, Origin { transaction, is_last: true });
                    }
                    Step::Read { key, list: Some(list) } => {
                        let longest = longest.entry(*key).or_default();
                        if list.len() > longest.len() {
                            longest.clone_from(list);
                        }
                    }
                    Step::Read { list: None, .. } => {}
                }
            }
        }
        for element in longest.values().flatten() {
            if let Some(origin) = origins.get(element) {
                happened[origin.transaction] = true;
            }
        }
        Self { origins, longest, happened }
    }

    fn writer(&self, element: u64) -> Option<usize> {
        self.origins.get(&element).map(|origin| origin.transaction)
    }

    fn longest(&self, key: u64) -> &[u64] {
        self.longest.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Whether all lists that were read of a key are the beginning of one, and elements stand where their replies said.
    fn orders(&mut self, history: &[Transaction]) -> Option<String> {
        for one in history {
            for step in &one.steps {
                match step {
                    Step::Read { key, list: Some(list) } if !self.longest(*key).starts_with(list) => {
                        return Some(format!(
                            "incompatible orders: list {key} was {list:?} and {:?}",
                            self.longest(*key)
                        ));
                    }
                    Step::Append { key, element, length: Some(length) } => {
                        let place = usize::try_from(*length).ok().and_then(|length| length.checked_sub(1));
                        let there = place.and_then(|place| self.longest(*key).get(place));
                        if there.is_some_and(|there| there != element) {
                            let longest = self.longest(*key);
                            return Some(format!(
                                "lost: {element} made list {key} {length} long, which is {longest:?}"
                            ));
                        }
                    }
                    Step::Read { .. } | Step::Append { length: None, .. } => {}
                }
            }
        }
        None
    }

    fn cycles(&self, history: &[Transaction]) -> Option<String> {
        let mut graph = Graph::new(history.len());
        for list in self.longest.values() {
            let writers: Vec<usize> = list.iter().filter_map(|element| self.writer(*element)).collect();
            writers.windows(2).for_each(|pair| graph.add(pair[0], pair[1], Edge::WriteWrite));
        }
        let unread = self.unread(history);
        for (key, writers) in &unread {
            if let Some(last) = self.longest(*key).iter().rev().find_map(|element| self.writer(*element)) {
                writers.iter().for_each(|writer| graph.add(last, *writer, Edge::WriteWrite));
            }
        }
        for (reader, one) in history.iter().enumerate() {
            let mut own = BTreeSet::new();
            for step in &one.steps {
                match step {
                    Step::Append { element, .. } => {
                        own.insert(*element);
                    }
                    Step::Read { key, list: Some(list) } => self.read(&mut graph, reader, (*key, list), &own, &unread),
                    Step::Read { list: None, .. } => {}
                }
            }
        }
        self.add_time(&mut graph, history);
        let (name, cycle) = graph.anomaly()?;
        let told: Vec<String> = cycle
            .into_iter()
            .filter_map(|node| history.get(node).map(|one| format!("\n        {node}: {one:?}")))
            .collect();
        Some(format!("{name}: {}", told.concat()))
    }

    /// What follows from a read.
    fn read(
        &self,
        graph: &mut Graph,
        reader: usize,
        (key, list): (u64, &[u64]),
        own: &BTreeSet<u64>,
        unread: &BTreeMap<u64, BTreeSet<usize>>,
    ) {
        let foreign = list.iter().rev().find(|element| !own.contains(element));
        if let Some(writer) = foreign.and_then(|element| self.writer(*element)) {
            graph.add(writer, reader, Edge::WriteRead);
        }
        let rest = self.longest(key).get(list.len()..).unwrap_or_default();
        match rest.iter().find_map(|element| self.writer(*element)) {
            Some(writer) => graph.add(reader, writer, Edge::ReadWrite),
            // What nobody has read came behind everything that somebody has.
            None => {
                unread.get(&key).into_iter().flatten().for_each(|writer| graph.add(reader, *writer, Edge::ReadWrite))
            }
        }
    }

    /// By list, the transactions that happened and have appended something that nobody has read.
    fn unread(&self, history: &[Transaction]) -> BTreeMap<u64, BTreeSet<usize>> {
        let seen: BTreeSet<u64> = self.longest.values().flatten().copied().collect();
        let mut unread: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
        for (transaction, one) in history.iter().enumerate().filter(|(transaction, _)| self.happened[*transaction]) {
            for step in &one.steps {
                if let Step::Append { key, element, .. } = step
                    && !seen.contains(element)
                {
                    unread.entry(*key).or_default().insert(transaction);
                }
            }
        }
        unread
    }

    /// Who was answered before another was sent comes before it. Nodes that are no transactions stand for the moments.
    fn add_time(&self, graph: &mut Graph, history: &[Transaction]) {
        let mut events: Vec<(u64, bool, usize)> = Vec::new();
        for (transaction, one) in history.iter().enumerate().filter(|(transaction, _)| self.happened[*transaction]) {
            events.push((one.invoked_ns, false, transaction));
            events.extend(one.completed_ns.map(|ns| (ns, true, transaction)));
        }
        // At one moment, what begins comes first, so that nothing is claimed of two that touch.
        events.sort_unstable();
        let mut moment = None;
        for (_, ends, transaction) in events {
            if ends {
                let next = graph.add_node();
                graph.add(transaction, next, Edge::Time);
                if let Some(moment) = moment.replace(next) {
                    graph.add(moment, next, Edge::Time);
                }
            } else if let Some(moment) = moment {
                graph.add(moment, transaction, Edge::Time);
            }
        }
    }
}

/// What is wrong with a reply by itself, whatever came before.
fn direct(history: &[Transaction], others: &[Transaction], lists: &Lists) -> Option<String> {
    let elsewhere: BTreeMap<u64, Outcome> = others.iter().flat_map(appended).collect();
    for (reader, one) in history.iter().enumerate() {
        // Of each list, what the transaction itself has made of it, and what it had read before.
        let mut own: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        let mut known: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for step in &one.steps {
            match step {
                Step::Append { key, element, .. } => {
                    own.entry(*key).or_default().push(*element);
                    known.entry(*key).and_modify(|list| list.push(*element));
                }
                Step::Read { key, list: Some(list) } => {
                    let own = own.get(key).map_or(&[] as &[u64], Vec::as_slice);
                    if known.get(key).is_some_and(|known| known != list) || !list.ends_with(own) {
                        return Some(format!("internal: {list:?} in list {key} is not what it must be: {one:?}"));
                    }
                    let foreign = &list[..list.len() - own.len()];
                    if let Some(wrong) = foreign_elements(foreign, reader, history, &elsewhere, lists) {
                        return Some(format!("{wrong}: list {key} was {list:?}"));
                    }
                    known.insert(*key, list.clone());
                }
                Step::Read { list: None, .. } => {}
            }
        }
    }
    None
}

/// What is wrong with elements that others have appended.
fn foreign_elements(
    elements: &[u64],
    reader: usize,
    history: &[Transaction],
    elsewhere: &BTreeMap<u64, Outcome>,
    lists: &Lists,
) -> Option<String> {
    let mut seen = BTreeSet::new();
    for (place, element) in elements.iter().enumerate() {
        if !seen.insert(element) {
            return Some(format!("duplicate: {element}"));
        }
        let origin = lists.origins.get(element);
        let outcome = origin.map(|origin| history[origin.transaction].outcome).or(elsewhere.get(element).copied());
        match outcome {
            None => return Some(format!("from nowhere: {element}")),
            Some(Outcome::Aborted) => return Some(format!("G1a: {element} was aborted")),
            Some(Outcome::Committed | Outcome::Unknown) => {}
        }
        let Some(origin) = origin else { continue };
        if origin.transaction == reader {
            return Some(format!("internal: {element} is the reader's own, and not appended yet"));
        }
        if place + 1 == elements.len() && !origin.is_last {
            return Some(format!("G1b: {element} was not the last"));
        }
    }
    None
}

fn appended(one: &Transaction) -> impl Iterator<Item = (u64, Outcome)> {
    one.steps.iter().filter_map(|step| match step {
        Step::Append { element, .. } => Some((*element, one.outcome)),
        Step::Read { .. } => None,
    })
}

#[cfg(test)]
#[path = "append_tests.rs"]
mod tests;
