//! Histories that must pass, and one for each anomaly that must not.

use super::*;
use crate::random::Random;

/// A transaction from words such as `a1=5` (append 5 to list 1) and `r1=5,6` (read that of list 1).
fn transaction(steps: &str, invoked_ns: u64, completed_ns: u64) -> Transaction {
    let steps = steps.split_whitespace().map(|word| {
        let (step, what) = word.split_once('=').unwrap();
        let (kind, key) = step.split_at(1);
        let key = key.parse().unwrap();
        let mut numbers = what.split(',').filter(|text| !text.is_empty()).map(|text| text.parse().unwrap());
        match kind {
            "a" => Step::Append { key, element: numbers.next().unwrap(), length: None },
            _ => Step::Read { key, list: Some(numbers.collect()) },
        }
    });
    let steps = steps.collect();
    Transaction { steps, outcome: Outcome::Committed, invoked_ns, completed_ns: Some(completed_ns) }
}

fn concurrent(all: &[&str]) -> Vec<Transaction> {
    all.iter().map(|steps| transaction(steps, 0, 1000)).collect()
}

fn successive(all: &[&str]) -> Vec<Transaction> {
    all.iter().zip(0..).map(|(steps, place)| transaction(steps, 10 * place, 10 * place + 5)).collect()
}

fn lost(steps: &str, outcome: Outcome) -> Transaction {
    Transaction { outcome, completed_ns: None, ..transaction(steps, 0, 0) }
}

#[track_caller]
fn finds(history: &[Transaction], name: &str) {
    let found = judge(history, &[]).expect("an anomaly");
    assert_eq!(found.split(':').next(), Some(name), "{found}");
}

#[track_caller]
fn passes(history: &[Transaction]) {
    assert_eq!(judge(history, &[]), None);
}

#[test]
fn what_has_an_order_passes() {
    passes(&[]);
    passes(&successive(&["a1=1 a2=2", "r1=1 r2=2 a1=3", "r1=1,3 a1=4 r1=1,3,4", "r2=2 r1=1,3,4 r3="]));
    passes(&concurrent(&["r1=1,2", "a1=2", "a1=1", "r1=", "r1=1"]));
    // Two readers that see different halves of two writers see them in one order.
    passes(&concurrent(&["a1=1", "a2=2", "r1=1 r2=", "r1=1 r2=2"]));
}

#[test]
fn replies_that_nothing_explains() {
    finds(&concurrent(&["r1=7"]), "from nowhere");
    finds(&concurrent(&["a1=1", "r1=1,1"]), "duplicate");
    finds(&concurrent(&["a1=1 r1="]), "internal");
    finds(&concurrent(&["a1=1", "r1= r1=1"]), "internal");
    finds(&concurrent(&["r1=1 a1=1"]), "internal");
    finds(&concurrent(&["a1=1", "a1=2", "r1=1,2", "r1=2"]), "incompatible orders");
}

#[test]
fn g1a_what_was_aborted_is_not_there() {
    let mut history = concurrent(&["r1=1"]);
    history.push(lost("a1=1", Outcome::Aborted));
    finds(&history, "G1a");
    history[1].outcome = Outcome::Unknown;
    passes(&history);
}

#[test]
fn g1b_half_of_a_transaction_is_not_there() {
    finds(&concurrent(&["a1=1 a1=2", "r1=1"]), "G1b");
    passes(&concurrent(&["a1=1 a1=2", "r1=1,2"]));
    finds(&concurrent(&["a1=1 a1=2", "a1=3", "r1=1,3,2"]), "G0");
}

#[test]
fn g0_two_transactions_write_over_each_other() {
    finds(&concurrent(&["a1=1 a2=2", "a1=3 a2=4", "r1=1,3", "r2=4,2"]), "G0");
}

#[test]
fn g1c_two_transactions_read_each_other() {
    finds(&concurrent(&["a1=1 r2=2", "a2=2 r1=1"]), "G1c");
}

#[test]
fn g_single_a_lost_update_and_a_skewed_read() {
    finds(&concurrent(&["r1= a1=1", "r1= a1=2", "r1=1,2"]), "G-single");
    finds(&concurrent(&["a1=1 a2=2", "r1=1 r2="]), "G-single");
    // The half that nobody ever reads is known to have been written, too.
    finds(&concurrent(&["a1=1 a2=2", "r1=1 r2=", "r2="]), "G-single");
}

#[test]
fn g2_a_skewed_write() {
    finds(&concurrent(&["r1= a2=2", "r2= a1=1", "r1=1 r2=2"]), "G2");
    // Readers that disagree about who wrote first.
    finds(&concurrent(&["a1=1", "a2=2", "r1=1 r2=", "r1= r2=2"]), "G2");
}

#[test]
fn who_was_answered_is_there_for_whoever_comes_later() {
    finds(&successive(&["a1=1", "r1="]), "G-single-realtime");
    finds(&successive(&["r1=1", "a1=1"]), "G1c-realtime");
    finds(&successive(&["a1=2", "a1=1", "r1=1,2"]), "G0-realtime");
    passes(&concurrent(&["a1=1", "r1="]));
    // Without a reply it may come late, or never.
    let mut history = successive(&["r1=", "r1="]);
    history.push(lost("a1=1 a2=2", Outcome::Unknown));
    passes(&history);
    history.push(transaction("r1=1 r2=", 30, 40));
    finds(&history, "G-single");
}

#[test]
fn places_that_replies_tell() {
    let mut history = successive(&["a1=1", "a1=2", "r1=2"]);
    let Step::Append { length, .. } = &mut history[1].steps[0] else { panic!() };
    *length = Some(1);
    finds(&history, "G0-realtime");
    let Step::Append { length, .. } = &mut history[0].steps[0] else { panic!() };
    *length = Some(1);
    finds(&history, "lost");
}

#[test]
fn elements_of_other_parts_of_the_timeline_may_be_there() {
    let before = concurrent(&["a1=1 a1=2"]);
    let history = successive(&["r1=1", "a1=3", "r1=1,3"]);
    assert_eq!(judge(&history, &before), None, "a crash has cut what came before");
    let aborted = [lost("a1=1", Outcome::Aborted)];
    assert!(judge(&history, &aborted).unwrap().starts_with("G1a"));
}

/// Transactions carried out one after another, at a moment between request and reply.
fn serial(seed: u64) -> Vec<Transaction> {
    let mut random = Random::of(seed, "serial");
    let (mut lists, mut element) = (vec![Vec::new(); 3], 0);
    (0..60)
        .map(|moment| {
            let steps = (0..random.between(1, 4)).map(|_| {
                let list = random.index(lists.len());
                let key = list as u64;
                if random.chance(2) {
                    element += 1;
                    lists[list].push(element);
                    Step::Append { key, element, length: Some(lists[list].len() as u64) }
                } else {
                    Step::Read { key, list: Some(lists[list].clone()) }
                }
            });
            let steps = steps.collect();
            let at = 100 + 10 * moment;
            let (invoked_ns, completed_ns) = (at - random.below(50), Some(at + random.below(50)));
            Transaction { steps, outcome: Outcome::Committed, invoked_ns, completed_ns }
        })
        .collect()
}

#[test]
fn serial_histories_pass_and_stale_reads_in_them_are_found() {
    let mut found = 0;
    for seed in 0..200 {
        let mut history = serial(seed);
        passes(&history);
        let mut random = Random::of(seed, "damage");
        // Who reads something reads a list that is an element too short.
        let reads = history.iter_mut().skip(30).flat_map(|one| &mut one.steps).filter_map(|step| match step {
            Step::Read { list: Some(list), .. } if !list.is_empty() => Some(list),
            Step::Read { .. } | Step::Append { .. } => None,
        });
        let mut reads: Vec<_> = reads.collect();
        let place = random.index(reads.len());
        reads[place].pop();
        found += u32::from(judge(&history, &[]).is_some());
    }
    // A read that overlaps with what it misses is no anomaly.
    assert!(found > 120, "{found} of 200");
}
