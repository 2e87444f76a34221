//! Consumer groups, where nothing may be lost:
//!
//! - Ids rise in the order in which entries were added, whatever the clock does.
//! - An entry is delivered once as new, and acknowledged once.
//! - In the end every entry that was acknowledged to who added it is in the stream; what was delivered and not acknowledged is
//!   pending, what was acknowledged is not; and what is pending was delivered, or its reader lost the reply.

use std::collections::BTreeSet;

/// An entry that was delivered as new.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Which.
    pub id: String,
    /// When it was asked for.
    pub invoked_ns: u64,
    /// When it came.
    pub ended_ns: u64,
}

/// What all clients did.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// How often an entry was sent.
    pub sent: usize,
    /// What was added, in the order of the answers, and when those came.
    pub added: Vec<(String, u64)>,
    /// What was delivered as new.
    pub delivered: Vec<Delivery>,
    /// What somebody wanted to acknowledge.
    pub acknowledging: BTreeSet<String>,
    /// What the answers said: how many were acknowledged.
    pub acknowledged: Vec<(String, i64)>,
    /// Reads whose answers have not come, and may never.
    open_reads: BTreeSet<(u64, usize)>,
    reads: usize,
}

impl History {
    /// A read begins.
    pub fn reads_under_way(&mut self, invoked_ns: u64) -> (u64, usize) {
        self.reads += 1;
        self.open_reads.insert((invoked_ns, self.reads));
        (invoked_ns, self.reads)
    }

    /// A read was answered.
    pub fn read_ended(&mut self, read: (u64, usize)) {
        self.open_reads.remove(&read);
    }
}

/// What is there in the end.
#[derive(Debug, Clone, Default)]
pub struct End {
    /// The ids in the stream.
    pub entries: Vec<String>,
    /// The ids that are pending.
    pub pending: Vec<String>,
    /// How long the stream says it is.
    pub length: i64,
}

/// An id as numbers, so that ids compare as streams do.
fn place(id: &str) -> Option<(u64, u64)> {
    let (ms, sequence) = id.split_once('-')?;
    Some((ms.parse().ok()?, sequence.parse().ok()?))
}

/// Judges a timeline in which nothing may be lost.
pub fn judge(history: &History, end: &End) -> Option<String> {
    let mut seen = BTreeSet::new();
    if let Some(twice) = history.delivered.iter().find(|delivery| !seen.insert(&delivery.id)) {
        return Some(format!("{} was delivered as new twice: {twice:?}", twice.id));
    }
    let mut done = BTreeSet::new();
    for (id, count) in &history.acknowledged {
        if *count == 1 && !done.insert(id) {
            return Some(format!("{id} was acknowledged twice"));
        }
        if *count == 0 {
            return Some(format!("{id} was delivered and not pending when it was acknowledged"));
        }
    }
    if end.length != i64::try_from(end.entries.len()).unwrap_or(-1) || end.entries.len() > history.sent {
        return Some(format!(
            "the stream has {} entries, says {}; {} were sent",
            end.entries.len(),
            end.length,
            history.sent
        ));
    }
    let entries: BTreeSet<&String> = end.entries.iter().collect();
    if let Some((missing, _)) = history.added.iter().find(|(id, _)| !entries.contains(id)) {
        return Some(format!("{missing} was added and is not there"));
    }
    if let Some(pair) = end.entries.windows(2).find(|pair| place(&pair[0]) >= place(&pair[1])) {
        return Some(format!("ids do not rise: {pair:?}"));
    }
    pending(history, end, &done)
}

fn pending(history: &History, end: &End, done: &BTreeSet<&String>) -> Option<String> {
    let pending: BTreeSet<&String> = end.pending.iter().collect();
    if let Some(id) = pending.iter().find(|id| done.contains(*id)) {
        return Some(format!("{id} was acknowledged and is pending"));
    }
    let open = |id: &&String| !history.acknowledging.contains(*id);
    let delivered: BTreeSet<&String> = history.delivered.iter().map(|delivery| &delivery.id).collect();
    if let Some(id) = delivered.iter().filter(|id| open(id)).find(|id| !pending.contains(*id)) {
        return Some(format!("{id} was delivered, never acknowledged, and is not pending"));
    }
    // Each read whose answer was lost may have been given a few.
    let unexplained = pending.iter().filter(|id| !delivered.contains(*id)).count();
    (unexplained > 4 * history.open_reads.len()).then(|| {
        format!("{unexplained} entries are pending that nobody got, and {} replies were lost", history.open_reads.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(delivered: &[&str], acknowledged: &[&str]) -> History {
        let mut history = History { sent: 3, ..History::default() };
        history.added = ["1-0", "2-0", "10-0"].map(|id| (id.to_owned(), 0)).to_vec();
        let delivery = |id: &&str| Delivery { id: (*id).into(), invoked_ns: 0, ended_ns: 1 };
        history.delivered = delivered.iter().map(delivery).collect();
        history.acknowledged = acknowledged.iter().map(|id| ((*id).to_owned(), 1)).collect();
        history.acknowledging = acknowledged.iter().map(|id| (*id).to_owned()).collect();
        history
    }

    fn end(entries: &[&str], pending: &[&str]) -> End {
        let own = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        End { entries: own(entries), pending: own(pending), length: entries.len() as i64 }
    }

    #[test]
    fn what_groups_lose_double_or_forget_is_found() {
        let all = ["1-0", "2-0", "10-0"];
        let good = history(&["1-0", "2-0"], &["1-0"]);
        assert_eq!(judge(&good, &end(&all, &["2-0"])), None);
        assert!(judge(&history(&["1-0", "1-0"], &[]), &end(&all, &["1-0"])).is_some(), "delivered twice");
        assert!(judge(&good, &end(&all[..2], &["2-0"])).is_some(), "an entry lost");
        assert!(judge(&good, &end(&all, &[])).is_some(), "a pending entry lost");
        assert!(judge(&good, &end(&all, &["1-0", "2-0"])).is_some(), "an acknowledgement lost");
        assert!(judge(&good, &end(&all, &["2-0", "10-0"])).is_some(), "pending, and nobody got it");
        assert!(judge(&good, &end(&["2-0", "1-0", "10-0"], &["2-0"])).is_some(), "out of order");
        let mut lost = good.clone();
        lost.reads_under_way(5);
        assert_eq!(judge(&lost, &end(&all, &["2-0", "10-0"])), None, "its reader lost the reply");
    }
}
