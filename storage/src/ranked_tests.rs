//! Tests of the counted tree against a plain vector.

use super::*;
use crate::random::Random;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Item(f64, u32);

impl Ranking for Item {
    fn score(self) -> f64 {
        self.0
    }
}

/// Every branch knows its first item and its count, no node is empty or too large, and the tally is right.
fn assert_sound(tree: &Ranked<Item>) {
    fn visit(inner: &Inner<Item>, is_root: bool, tally: &mut Tally) -> usize {
        assert!(inner.0.len() < FAN && (is_root || !inner.0.is_empty()));
        for branch in &inner.0 {
            let first = match &branch.node {
                Node::Leaf(items) => {
                    assert!((1..=LEAF).contains(&branch.count));
                    tally.leaves += 1;
                    items[0]
                }
                Node::Inner(inner) => {
                    tally.inners += 1;
                    assert_eq!(visit(inner, false, tally), branch.count);
                    inner.0[0].first
                }
            };
            assert_eq!((branch.first, branch.score), (first, first.0));
        }
        assert!(inner.0.iter().all(Branch::is_leaf) || !inner.0.iter().any(Branch::is_leaf));
        inner.0.iter().map(|branch| branch.count).sum()
    }
    let mut tally = Tally::default();
    assert_eq!(visit(&tree.root, true, &mut tally), tree.len());
    assert_eq!((tally.leaves, tally.inners), (tree.tally.leaves, tree.tally.inners));
}

fn insert_in_order(tree: &mut Ranked<Item>, item: Item) {
    let rank = tree.partition_point(|score, other| (score, other.1) < (item.0, item.1));
    tree.insert(rank, item);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 32 }))]

    #[test]
    fn behaves_as_a_sorted_vector(
        rounds in proptest::collection::vec((any::<bool>(), 0u64..1 << 40, 1usize..1500, 1u64..2000), 1..12),
    ) {
        let (mut tree, mut model, mut number) = (Ranked::default(), Vec::<Item>::new(), 0);
        for (add, seed, count, spread) in rounds {
            let mut random = Random::new(seed);
            for _ in 0..count {
                if add {
                    number += 1;
                    let item = Item(random.below(spread as usize) as f64, number);
                    insert_in_order(&mut tree, item);
                    model.insert(model.partition_point(|other| (other.0, other.1) < (item.0, item.1)), item);
                } else if !model.is_empty() {
                    let rank = random.below(model.len().min(spread as usize));
                    prop_assert_eq!(tree.remove(rank), model.remove(rank));
                }
            }
            assert_sound(&tree);
            let (from, to) = (random.below(model.len() + 1), random.below(model.len() + 1));
            let ranks = from.min(to)..from.max(to);
            prop_assert!(tree.range(ranks.clone()).eq(model[ranks.clone()].iter().copied()));
            prop_assert!(tree.range(ranks.clone()).rev().eq(model[ranks].iter().rev().copied()));
            let score = random.below(spread as usize) as f64;
            prop_assert_eq!(tree.partition_point(|other, _| other < score), model.partition_point(|item| item.0 < score));
            prop_assert_eq!(tree.partition_point(|other, _| other <= score), model.partition_point(|item| item.0 <= score));
        }
        prop_assert!(tree.range(0..usize::MAX).eq(model.iter().copied()));
        prop_assert!((0..=model.len()).all(|rank| tree.nth(rank) == model.get(rank).copied()));
    }

    #[test]
    fn a_range_may_be_taken_from_both_ends(count in 0u32..1000, ends in proptest::collection::vec(any::<bool>(), 0..1100)) {
        let mut tree = Ranked::default();
        (0..count).for_each(|number| tree.insert(number as usize, Item(1.0, number)));
        let (mut run, mut model) = (tree.range(0..count as usize), 0..count);
        for front in ends {
            prop_assert_eq!(run.len(), model.len());
            let (found, expected) = if front { (run.next(), model.next()) } else { (run.next_back(), model.next_back()) };
            prop_assert_eq!(found.map(|item| item.1), expected);
        }
    }
}

#[test]
fn memory_for_each_item_is_bounded() {
    const COUNT: u32 = 100_000;
    let rising: fn(u32) -> f64 = |number| f64::from(number);
    let falling = |number| -f64::from(number);
    let random = |number| Random::new(u64::from(number)).unit();
    for (name, most, score) in [("rising", 9.5, rising), ("falling", 10.0, falling), ("random", 12.0, random)] {
        let mut tree = Ranked::default();
        // Pointers, as in a sorted set, are eight bytes; an item of the test is sixteen.
        (0..COUNT).for_each(|number| insert_in_order(&mut tree, Item(score(number), number)));
        assert_sound(&tree);
        let inner = FAN * (size_of::<Branch<Item>>() - 8) + size_of::<Inner<Item>>();
        let bytes = tree.tally.leaves * LEAF * 8 + tree.tally.inners * inner;
        let each = bytes as f64 / f64::from(COUNT);
        assert!(each < most, "{name}: {each} bytes for each item");
    }
}

#[test]
fn shedding_drops_a_bounded_part_at_a_time() {
    let mut tree = Ranked::default();
    (0..30_000).for_each(|number| tree.insert(number, Item(1.0, number as u32)));
    loop {
        let (before, shed) = (tree.len(), tree.shed());
        assert!(shed <= FAN * LEAF);
        assert_eq!(tree.len() + shed, before);
        assert_sound(&tree);
        if shed == 0 {
            break;
        }
        assert_eq!(tree.nth(tree.len().wrapping_sub(1)).map(|item| item.1 as usize + 1).unwrap_or(0), tree.len());
    }
    assert!(tree.is_empty());
}
