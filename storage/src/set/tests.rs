//! Sets against a model, and what the text cases do not show: records, events, accounting, how even the picks are.

use super::*;
use crate::fixture::{Fixture, Handler};
use crate::generic;
use proptest::prelude::*;
use simurgh_protocol::resp::decode::{Value, decode};
use std::collections::{BTreeMap, BTreeSet};

fn words<'w>(name: &'w str, key: &'w str, members: &'w [String]) -> Vec<&'w str> {
    [name, key].into_iter().chain(members.iter().map(String::as_str)).collect()
}

fn numbered(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}{number}")).collect()
}

/// The members that a reply lists.
fn listed(fixture: &mut Fixture, handler: Handler, words: &[&str]) -> Vec<String> {
    let bytes: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let (reply, _) = fixture.run_bytes(handler, &bytes);
    let Ok(Some((Value::Array(items) | Value::Set(items), _))) = decode(&reply) else { panic!("{words:?}: {reply:?}") };
    let text = |item| if let Value::Bulk(text) = item { String::from_utf8_lossy(&text).into_owned() } else { panic!() };
    items.into_iter().map(text).collect()
}

fn encoding(fixture: &mut Fixture, key: &str) -> String {
    fixture.reply(crate::object::encoding, &["OBJECT", "ENCODING", key])
}

#[test]
fn a_set_that_comes_and_goes_leaves_no_byte() {
    let mut fixture = Fixture::with_shards(1);
    fixture.reply(sadd, &["SADD", "k", "x"]);
    fixture.reply(srem, &["SREM", "k", "x"]);
    let empty = fixture.shards[0].bytes();
    for prefix in ["", "m", "a-member-longer-than-sixty-four-bytes-in-all-so-that-it-fits-no-listpack-"] {
        for count in [1, 5, 130, 600, 6000] {
            fixture.reply(sadd, &words("SADD", "k", &numbered(prefix, count)));
            assert!(fixture.shards[0].bytes() > empty + 2 * count);
            fixture.reply(sunionstore, &["SUNIONSTORE", "l", "k", "k"]);
            fixture.reply(spop, &["SPOP", "l", &(count / 2).to_string()]);
            fixture.reply(sinterstore, &["SINTERSTORE", "l", "k", "l"]);
            fixture.reply(sdiffstore, &["SDIFFSTORE", "l", "l", "k"]);
            fixture.reply(srem, &words("SREM", "k", &numbered(prefix, count)));
            assert_eq!(fixture.shards[0].bytes(), empty, "{prefix}{count}");
        }
    }
}

#[test]
fn a_pop_is_logged_by_its_outcome_and_replays_to_the_same() {
    for (prefix, count, popped) in
        [("", 40, 3), ("m", 100, 30), ("m", 100, 95), ("m", 6000, 10), ("m", 6000, 5990), ("", 600, 2000)]
    {
        let (mut fixture, mut replayed) = (Fixture::new(), Fixture::new());
        for fixture in [&mut fixture, &mut replayed] {
            fixture.reply(sadd, &words("SADD", "k", &numbered(prefix, count)));
        }
        let one = fixture.run(spop, &["SPOP", "k"]);
        let taken = one.0.split(' ').nth(1).unwrap_or_default().to_owned();
        assert_eq!(one.1, [format!("SREM k {taken}")]);
        replayed.reply(srem, &["SREM", "k", &taken]);
        let (_, records) = fixture.run(spop, &["SPOP", "k", &popped.to_string()]);
        for record in &records {
            let record: Vec<&str> = record.split(' ').collect();
            replayed.reply(if record[0] == "DEL" { generic::del } else { srem }, &record);
        }
        assert_eq!(records[0] == "DEL k", popped >= count);
        let all =
            |fixture: &mut Fixture| listed(fixture, smembers, &["SMEMBERS", "k"]).into_iter().collect::<BTreeSet<_>>();
        let left = all(&mut fixture);
        assert_eq!((left.len(), &left), ((count - 1).saturating_sub(popped), &all(&mut replayed)));
    }
}

/// What Redis 8.2.3 leaves of a set of 600 members: `OBJECT ENCODING` after SPOP with a count.
#[test]
fn what_a_pop_leaves_is_in_redis_s_encoding() {
    for (members, popped, left) in [
        (numbered("", 600), 590, "listpack"),
        (numbered("", 600), 100, "hashtable"),
        (numbered("m", 600), 500, "listpack"),
        (numbered("m", 600), 499, "hashtable"),
        (numbered("m", 1000), 850, "hashtable"),
        (numbered("", 500), 495, "intset"),
        (numbered("m", 100), 95, "listpack"),
    ] {
        let mut fixture = Fixture::new();
        fixture.reply(sadd, &words("SADD", "k", &members));
        let taken = listed(&mut fixture, spop, &["SPOP", "k", &popped.to_string()]);
        assert_eq!(taken.iter().collect::<BTreeSet<_>>().len(), popped);
        assert_eq!(encoding(&mut fixture, "k"), format!("${} {left} ", left.len()));
    }
}

#[test]
fn what_replays_the_same_is_logged_as_sent() {
    let mut fixture = Fixture::new();
    let told: &[(Handler, &[&str], &[&str])] = &[
        (sadd, &["SADD", "a", "1", "2", "x"], &["SADD a 1 2 x"]),
        (sadd, &["SADD", "a", "1"], &[]),
        (srem, &["SREM", "a", "9"], &[]),
        (srem, &["SREM", "a", "2", "9"], &["SREM a 2 9"]),
        (smove, &["SMOVE", "a", "b", "x"], &["SMOVE a b x"]),
        (smove, &["SMOVE", "a", "b", "x"], &[]),
        (smove, &["SMOVE", "a", "a", "1"], &[]),
        (smove, &["SMOVE", "a", "b", "1"], &["SMOVE a b 1"]),
        (sunionstore, &["SUNIONSTORE", "c", "b", "none"], &["SUNIONSTORE c b none"]),
        (sdiffstore, &["SDIFFSTORE", "c", "b", "b"], &["SDIFFSTORE c b b"]),
        (sinterstore, &["SINTERSTORE", "c", "b", "none"], &[]),
        (spop, &["SPOP", "b", "0"], &[]),
        (spop, &["SPOP", "b", "5"], &["DEL b"]),
        (spop, &["SPOP", "b"], &[]),
    ];
    for (handler, words, records) in told {
        assert_eq!(fixture.run(*handler, words).1, *records, "{words:?}");
    }
}

/// Asks a chi-square test whether `picks` fall on `cells` cells evenly; far beyond any chance if not.
fn is_even(picks: &BTreeMap<String, u32>, cells: usize) -> bool {
    let total: u32 = picks.values().sum();
    let expected = f64::from(total) / cells as f64;
    let missing = (cells - picks.len()) as f64 * expected;
    let chi: f64 = picks.values().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum::<f64>() + missing;
    let freedom = (cells - 1) as f64;
    chi < freedom + 6.0 * (2.0 * freedom).sqrt()
}

#[test]
fn every_member_is_as_likely_as_any_other() {
    for (prefix, count) in [("", 50), ("m", 100), ("m", 400)] {
        let mut fixture = Fixture::new();
        fixture.reply(sadd, &words("SADD", "k", &numbered(prefix, count)));
        for picked in ["-5", "3", "45", "1"] {
            let mut picks = BTreeMap::new();
            for _ in 0..4000 {
                let members = listed(&mut fixture, srandmember, &["SRANDMEMBER", "k", picked]);
                if picked != "-5" {
                    assert_eq!(members.iter().collect::<BTreeSet<_>>().len(), picked.parse::<usize>().unwrap());
                }
                members.into_iter().for_each(|member| *picks.entry(member).or_insert(0) += 1);
            }
            assert!(is_even(&picks, count), "{prefix}{count} {picked}: {picks:?}");
        }
    }
}

#[test]
fn a_scan_finds_what_stays_while_others_come_and_go() {
    let mut fixture = Fixture::new();
    fixture.reply(sadd, &words("SADD", "k", &numbered("stays", 3000)));
    let (mut cursor, mut found, mut round) = ("0".to_owned(), BTreeSet::new(), 0);
    loop {
        let (reply, _) = fixture.run(sscan, &["SSCAN", "k", &cursor, "COUNT", "50", "MATCH", "stays*"]);
        let parts: Vec<&str> = reply.split(' ').collect();
        cursor = parts[2].to_owned();
        found.extend(parts[4..].iter().filter(|part| part.starts_with("stays")).map(|part| (*part).to_owned()));
        fixture.reply(sadd, &words("SADD", "k", &numbered(&format!("comes{round}-"), 200)));
        if round > 0 {
            fixture.reply(srem, &words("SREM", "k", &numbered(&format!("comes{}-", round - 1), 150)));
        }
        round += 1;
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(found.len(), 3000);
    assert!(round > 10, "in steps: {round}");
}

fn member() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0..40_i64).prop_map(|number| number.to_string()),
        1 => any::<i64>().prop_map(|number| number.to_string()),
        3 => "[a-e]{0,2}",
        1 => "0[0-9]",
        1 => "[xy]{60,70}",
    ]
}

type Model = BTreeMap<usize, BTreeSet<String>>;

fn combined(model: &Model, keys: &[usize], what: usize) -> BTreeSet<String> {
    let of = |key: &usize| model.get(key).cloned().unwrap_or_default();
    let sets = keys.iter().map(of);
    let combine: fn(BTreeSet<String>, BTreeSet<String>) -> BTreeSet<String> =
        [|one, other| &one & &other, |one, other| &one | &other, |one, other| &one - &other][what];
    sets.reduce(combine).unwrap_or_default()
}

/// The three of a kind: the reply, the count, the stored.
const COMBINING: [[Handler; 3]; 3] =
    [[sinter, sintercard, sinterstore], [sunion, sunioncard, sunionstore], [sdiff, sdiffcard, sdiffstore]];

fn check(fixture: &mut Fixture, model: &Model, key: usize) {
    let expected = model.get(&key).cloned().unwrap_or_default();
    let name = format!("k{key}");
    let all = listed(fixture, smembers, &["SMEMBERS", &name]);
    assert_eq!((all.len(), all.into_iter().collect::<BTreeSet<_>>()), (expected.len(), expected.clone()));
    assert_eq!(fixture.reply(scard, &["SCARD", &name]), format!(":{} ", expected.len()));
    for member in ["7", "07", "a", ""] {
        let is_member = i64::from(expected.contains(member));
        assert_eq!(fixture.reply(sismember, &["SISMEMBER", &name, member]), format!(":{is_member} "));
    }
}

fn combine(fixture: &mut Fixture, model: &mut Model, keys: &[usize], what: usize) {
    let names: Vec<String> = keys.iter().map(|key| format!("k{key}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let expected = combined(model, keys, what);
    let [listing, counting, storing] = COMBINING[what];
    let found = listed(fixture, listing, &[&["X"], &names[..]].concat());
    assert_eq!((found.len(), found.into_iter().collect::<BTreeSet<_>>()), (expected.len(), expected.clone()));
    for limit in [0, 1, 3] {
        let (count, text) = (names.len().to_string(), limit.to_string());
        let words = [&["X", &count[..]], &names[..], &["LIMIT", &text[..]]].concat();
        let limited = if limit == 0 { expected.len() } else { expected.len().min(limit) };
        assert_eq!(fixture.reply(counting, &words), format!(":{limited} "));
    }
    let target = keys[0];
    let stored = fixture.reply(storing, &[&["X", names[0]], &names[..]].concat());
    assert_eq!(stored, format!(":{} ", expected.len()));
    model.insert(target, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn sets_do_what_trees_do(
        limits in (0_u64..8, 0_u64..8),
        steps in prop::collection::vec((0..9_usize, prop::collection::vec(member(), 1..12), prop::collection::vec(0..4_usize, 1..12)), 1..40),
    ) {
        let (mut fixture, mut model) = (Fixture::new(), Model::new());
        (fixture.settings.packing.set_integers, fixture.settings.packing.set_entries) = limits;
        for (what, members, keys) in steps {
            let (key, other) = (keys[0], keys[keys.len() - 1]);
            let (name, other_name) = (format!("k{key}"), format!("k{other}"));
            match what {
                0..3 => combine(&mut fixture, &mut model, &keys, what),
                3 => {
                    let set = model.entry(key).or_default();
                    let removed = members.iter().filter(|member| set.remove(*member)).count();
                    prop_assert_eq!(fixture.reply(srem, &words("SREM", &name, &members)), format!(":{removed} "));
                }
                4 => {
                    let is_there = model.entry(key).or_default().contains(&members[0]);
                    let moved = fixture.reply(smove, &["SMOVE", &name, &other_name, &members[0]]);
                    prop_assert_eq!(moved, format!(":{} ", i64::from(is_there)));
                    if is_there {
                        model.entry(key).or_default().remove(&members[0]);
                        model.entry(other).or_default().insert(members[0].clone());
                    }
                }
                5 => {
                    let count = members.len().to_string();
                    for member in listed(&mut fixture, spop, &["SPOP", &name, &count]) {
                        prop_assert!(model.entry(key).or_default().remove(&member));
                    }
                }
                _ => {
                    let set = model.entry(key).or_default();
                    let added = members.iter().filter(|member| set.insert((*member).clone())).count();
                    prop_assert_eq!(fixture.reply(sadd, &words("SADD", &name, &members)), format!(":{added} "));
                }
            }
            (0..4).for_each(|key| check(&mut fixture, &model, key));
        }
    }
}
