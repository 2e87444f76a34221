//! Handlers against a keyspace, the structure against a model.

use super::*;
use crate::fixture::Fixture;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A change of a set.
#[derive(Clone, Debug)]
enum Change {
    Insert(u8, i8),
    Remove(u8),
    RemoveRanks(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        8 => (0..60_u8, any::<i8>()).prop_map(|(member, score)| Change::Insert(member, score)),
        3 => (0..60_u8).prop_map(Change::Remove),
        1 => (0..30_usize, 0..4_usize).prop_map(|(start, count)| Change::RemoveRanks(start, count)),
    ]
}

/// Members that are integers and members that are not, since a listpack keeps them differently.
fn name(member: u8) -> Vec<u8> {
    if member.is_multiple_of(2) { member.to_string().into() } else { format!("m{member}").into() }
}

fn contents(set: &SortedSet) -> Vec<(Vec<u8>, f64)> {
    set.members(0..set.len()).map(|(member, score)| (member.to_vec(), score)).collect()
}

proptest! {
    /// A set that goes from one representation to the other answers like a map sorted by score and member.
    #[test]
    fn both_representations_are_a_sorted_map(changes in prop::collection::vec(change(), 1..120), entries in 0..40_u64) {
        let hasher = KeyHasher::new(3);
        let limits = Limits { entries, value: 64, hasher: &hasher };
        let (mut set, mut model) = (SortedSet::default(), BTreeMap::new());
        for change in changes {
            match change {
                Change::Insert(member, score) => {
                    let (member, score) = (name(member), f64::from(score) / 2.0);
                    prop_assert_eq!(set.insert(&member, score, &limits), model.insert(member, score));
                }
                Change::Remove(member) => prop_assert_eq!(set.remove(&name(member)), model.remove(&name(member))),
                Change::RemoveRanks(start, count) => {
                    let (start, end) = (start.min(set.len()), (start + count).min(set.len()));
                    let gone = contents(&set)[start..end].to_vec();
                    set.remove_ranks(start..end);
                    gone.iter().for_each(|(member, _)| { model.remove(member); });
                }
            }
        }
        let mut sorted: Vec<(Vec<u8>, f64)> = model.into_iter().collect();
        sorted.sort_by(|a, b| a.1.total_cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
        prop_assert_eq!(contents(&set), sorted.clone());
        for (rank, (member, score)) in sorted.iter().enumerate() {
            prop_assert_eq!(set.rank_of(member), Some((rank, *score)));
        }
        for bound in -10..10 {
            let bound = f64::from(bound) * 7.0;
            prop_assert_eq!(set.count_below(bound), sorted.iter().filter(|(_, score)| *score < bound).count());
            prop_assert_eq!(set.count_up_to(bound), sorted.iter().filter(|(_, score)| *score <= bound).count());
        }
        for (start, end) in [(0, 3), (2, 9), (5, 5), (30, 50)] {
            let range = start.min(sorted.len())..end.min(sorted.len());
            let backwards: Vec<_> = set.members(start..end).rev().map(|(member, score)| (member.to_vec(), score)).collect();
            prop_assert_eq!(backwards, sorted[range].iter().rev().cloned().collect::<Vec<_>>());
        }
        if let Some(list) = set.as_listpack() {
            let same = SortedSet::from_listpack(list.clone(), &limits).expect("it is one of ours");
            prop_assert_eq!(contents(&same), sorted);
        }
    }
}

#[test]
fn a_listpack_from_elsewhere_is_checked_and_put_in_order() {
    let hasher = KeyHasher::new(3);
    let limits = Limits { entries: 128, value: 64, hasher: &hasher };
    let of = |words: &[&str]| {
        let items: Vec<Item<'_>> = words.iter().map(|word| Item::from(word.as_bytes())).collect();
        SortedSet::from_listpack(Listpack::of(&items), &limits)
    };
    let set = of(&["b", "2", "a", "2", "c", "-inf", "d", "0.5"]).expect("a good one");
    let texts: Vec<_> =
        contents(&set).into_iter().map(|(member, _)| String::from_utf8(member).expect("text")).collect();
    assert_eq!(texts, ["c", "d", "a", "b"]);
    assert!(of(&["a"]).is_err(), "no score");
    assert!(of(&["a", "x"]).is_err(), "a score that is none");
    assert!(of(&["a", "nan"]).is_err());
    assert!(of(&["a", "1", "b", "2", "a", "3"]).is_err(), "a member twice");
}

/// Scores lie in a listpack as Redis 8.2.3 writes them.
#[test]
fn scores_are_packed_as_redis_packs_them() {
    let hasher = KeyHasher::new(3);
    let limits = Limits { entries: 128, value: 64, hasher: &hasher };
    let mut set = SortedSet::default();
    for (member, score) in [("a", -0.0), ("b", 3.0), ("c", 1e20), ("d", 0.1), ("e", f64::INFINITY)] {
        set.insert(member.as_bytes(), score, &limits);
    }
    let list = set.as_listpack().expect("small");
    let items: Vec<Item<'_>> = list.iter().collect();
    assert_eq!(items[1], Item::Int(0));
    assert_eq!(items[3], Item::Bytes(b"0.1"));
    assert_eq!(items[5], Item::Int(3));
    assert_eq!(items[7], Item::Bytes(b"1e+20"));
    assert_eq!(items[9], Item::Bytes(b"inf"));
}

#[test]
fn only_changes_are_recorded() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.run(zadd, &["ZADD", "k", "1", "a"]).1, ["ZADD k 1 a"]);
    assert!(fixture.run(zadd, &["ZADD", "k", "1", "a"]).1.is_empty());
    assert!(fixture.run(zadd, &["ZADD", "k", "NX", "2", "a"]).1.is_empty());
    assert!(fixture.run(zadd, &["ZADD", "k", "5", "b", "x", "c"]).1.is_empty());
    assert_eq!(fixture.reply(zcard, &["ZCARD", "k"]), ":1 ");
    assert_eq!(fixture.run(zadd, &["ZADD", "k", "INCR", "2", "a"]).1, ["ZADD k INCR 2 a"]);
    assert!(fixture.run(zincrby, &["ZINCRBY", "k", "0", "a"]).1.is_empty());
    assert!(fixture.run(zrem, &["ZREM", "k", "b"]).1.is_empty());
    assert!(fixture.run(zrangestore, &["ZRANGESTORE", "d", "none", "0", "1"]).1.is_empty());
    assert_eq!(fixture.run(zrangestore, &["ZRANGESTORE", "d", "k", "0", "1"]).1, ["ZRANGESTORE d k 0 1"]);
    assert_eq!(fixture.run(zrangestore, &["ZRANGESTORE", "d", "k", "5", "1"]).1, ["ZRANGESTORE d k 5 1"]);
    assert_eq!(fixture.run(zremrangebyrank, &["ZREMRANGEBYRANK", "k", "0", "0"]).1, ["ZREMRANGEBYRANK k 0 0"]);
    assert!(fixture.run(zremrangebyrank, &["ZREMRANGEBYRANK", "k", "0", "0"]).1.is_empty());
}

#[test]
fn large_sets_answer_like_small_ones() {
    let (mut small, mut large) = (Fixture::new(), Fixture::new());
    large.settings.packing.sorted_set_entries = 0;
    for fixture in [&mut small, &mut large] {
        fixture.reply(zadd, &["ZADD", "k", "1", "a", "2", "b", "2", "c", "3.5", "d", "inf", "e"]);
        fixture.reply(zadd, &["ZADD", "l", "0", "a", "0", "b", "0", "c", "0", "d"]);
    }
    for (handler, words) in [
        (zrange as crate::fixture::Handler, &["ZRANGE", "k", "1", "3", "WITHSCORES"][..]),
        (zrange, &["ZRANGE", "k", "(1", "3.5", "BYSCORE", "LIMIT", "1", "5"]),
        (zrevrangebyscore, &["ZREVRANGEBYSCORE", "k", "+inf", "2", "LIMIT", "1", "2"]),
        (zrangebylex, &["ZRANGEBYLEX", "l", "(a", "[c"]),
        (zrevrangebylex, &["ZREVRANGEBYLEX", "l", "+", "(a", "LIMIT", "0", "2"]),
        (zlexcount, &["ZLEXCOUNT", "l", "[b", "+"]),
        (zcount, &["ZCOUNT", "k", "2", "(inf"]),
        (zrevrank, &["ZREVRANK", "k", "b", "WITHSCORE"]),
        (zremrangebyscore, &["ZREMRANGEBYSCORE", "k", "2", "3"]),
        (zremrangebylex, &["ZREMRANGEBYLEX", "l", "[b", "(d"]),
        (zrange, &["ZRANGE", "k", "0", "-1", "REV"]),
        (zrange, &["ZRANGE", "l", "0", "-1"]),
    ] {
        let (one, other) = (small.run(handler, words), large.run(handler, words));
        assert_eq!(one, other, "{words:?}");
        assert!(![":0 ", "*0 "].contains(&one.0.as_str()), "{words:?} finds nothing");
    }
}
