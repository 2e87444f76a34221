//! Cycles among transactions, named as Adya did (1999), found as Elle does (Kingsbury and Alvaro 2020). Where one transaction
//! must come before another, an edge leads from it to the other; a cycle means that there is no order of all of them.
//!
//! | name | the cycle has |
//! | --- | --- |
//! | G0 | writes over writes |
//! | G1c | and reads of what was written |
//! | G-single | one read of what another then wrote over |
//! | G2 | several of those |
//!
//! `-realtime` is added when the cycle needs that what ended before something began comes first.

use std::collections::VecDeque;

/// Why one transaction comes before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// Its write was written over by the other's.
    WriteWrite,
    /// The other read its write.
    WriteRead,
    /// It read what the other then wrote over.
    ReadWrite,
    /// It ended before the other began.
    Time,
}

/// Transactions by number, and what leads from one to another.
#[derive(Debug)]
pub struct Graph(Vec<Vec<(usize, Edge)>>);

impl Graph {
    /// So many transactions, and no edge.
    pub fn new(nodes: usize) -> Self {
        Self(vec![Vec::new(); nodes])
    }

    /// One more node, which is no transaction.
    pub fn add_node(&mut self) -> usize {
        self.0.push(Vec::new());
        self.0.len() - 1
    }

    /// An edge; one that leads from a transaction to itself says nothing.
    pub fn add(&mut self, from: usize, to: usize, edge: Edge) {
        if from != to {
            self.0[from].push((to, edge));
        }
    }

    /// The gravest cycle, if there is one: its name, and the nodes on it.
    pub fn anomaly(&self) -> Option<(&'static str, Vec<usize>)> {
        self.cycle(|_| true)?;
        let names =
            [["G0", "G1c", "G-single", "G2"], ["G0-realtime", "G1c-realtime", "G-single-realtime", "G2-realtime"]];
        names.into_iter().zip([false, true]).find_map(|([g0, g1c, g_single, g2], timed)| {
            let is_write = |edge: Edge| edge == Edge::WriteWrite || (timed && edge == Edge::Time);
            let is_no_anti = |edge: Edge| is_write(edge) || edge == Edge::WriteRead;
            let named = |name, cycle: Option<Vec<usize>>| cycle.map(|cycle| (name, cycle));
            named(g0, self.cycle(is_write))
                .or_else(|| named(g1c, self.cycle(is_no_anti)))
                .or_else(|| named(g_single, self.cycle_through_one(is_no_anti)))
                .or_else(|| named(g2, self.cycle(|edge| timed || edge != Edge::Time)))
        })
    }

    /// Any cycle of such edges, by a search in depth.
    fn cycle(&self, follows: impl Fn(Edge) -> bool) -> Option<Vec<usize>> {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            OnPath,
            Done,
        }
        let mut states = vec![State::New; self.0.len()];
        for start in 0..self.0.len() {
            if states[start] != State::New {
                continue;
            }
            states[start] = State::OnPath;
            // Each node of the path with the place of its next edge.
            let mut path = vec![(start, 0)];
            while let Some((node, next)) = path.last_mut() {
                let Some((to, edge)) = self.0[*node].get(*next).copied() else {
                    states[*node] = State::Done;
                    path.pop();
                    continue;
                };
                *next += 1;
                match states[to] {
                    _ if !follows(edge) => {}
                    State::Done => {}
                    State::New => {
                        states[to] = State::OnPath;
                        path.push((to, 0));
                    }
                    State::OnPath => {
                        return Some(path.into_iter().map(|(node, _)| node).skip_while(|node| *node != to).collect());
                    }
                }
            }
        }
        None
    }

    /// A cycle of one [`Edge::ReadWrite`] and such edges.
    fn cycle_through_one(&self, follows: impl Fn(Edge) -> bool) -> Option<Vec<usize>> {
        let anti = self.0.iter().enumerate().flat_map(|(from, edges)| {
            edges.iter().filter(|(_, edge)| *edge == Edge::ReadWrite).map(move |(to, _)| (from, *to))
        });
        anti.into_iter().find_map(|(from, to)| self.path(to, from, &follows))
    }

    /// A shortest way, by a search in breadth.
    fn path(&self, from: usize, to: usize, follows: impl Fn(Edge) -> bool) -> Option<Vec<usize>> {
        let mut before = vec![None; self.0.len()];
        before[from] = Some(from);
        let mut open = VecDeque::from([from]);
        while let Some(node) = open.pop_front() {
            if node == to {
                let mut way = vec![to];
                let mut node = to;
                while let Some(last) = before[node].filter(|last| *last != node) {
                    way.push(last);
                    node = last;
                }
                way.reverse();
                return Some(way);
            }
            for (next, edge) in &self.0[node] {
                if follows(*edge) && before[*next].is_none() {
                    before[*next] = Some(node);
                    open.push_back(*next);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(edges: &[(usize, usize, Edge)]) -> Option<&'static str> {
        let mut graph = Graph::new(4);
        edges.iter().for_each(|(from, to, edge)| graph.add(*from, *to, *edge));
        graph.anomaly().map(|(name, _)| name)
    }

    #[test]
    fn cycles_have_their_names() {
        use Edge::{ReadWrite, Time, WriteRead, WriteWrite};
        assert_eq!(named(&[(0, 1, WriteWrite), (1, 2, WriteRead), (0, 2, ReadWrite), (2, 3, Time)]), None);
        assert_eq!(named(&[(0, 1, WriteWrite), (1, 0, WriteWrite)]), Some("G0"));
        assert_eq!(named(&[(0, 1, WriteWrite), (1, 2, WriteRead), (2, 0, WriteWrite)]), Some("G1c"));
        assert_eq!(named(&[(0, 1, WriteRead), (1, 2, WriteWrite), (2, 0, ReadWrite)]), Some("G-single"));
        assert_eq!(named(&[(0, 1, ReadWrite), (1, 0, ReadWrite)]), Some("G2"));
        assert_eq!(named(&[(0, 1, WriteWrite), (1, 0, Time)]), Some("G0-realtime"));
        assert_eq!(named(&[(0, 1, ReadWrite), (1, 0, Time)]), Some("G-single-realtime"));
        assert_eq!(named(&[(0, 1, ReadWrite), (1, 2, Time), (2, 3, ReadWrite), (3, 0, Time)]), Some("G2-realtime"));
        // The gravest first, and what needs no clock before what does.
        let two = [(0, 1, WriteWrite), (1, 0, Time), (2, 3, ReadWrite), (3, 2, ReadWrite)];
        assert_eq!(named(&two), Some("G2"));
    }

    #[test]
    fn the_nodes_of_a_cycle_are_told() {
        let mut graph = Graph::new(3);
        let moment = graph.add_node();
        graph.add(0, 1, Edge::WriteWrite);
        graph.add(1, moment, Edge::Time);
        graph.add(moment, 0, Edge::Time);
        graph.add(2, 2, Edge::WriteWrite);
        assert_eq!(graph.anomaly(), Some(("G0-realtime", vec![0, 1, moment])));
    }
}
