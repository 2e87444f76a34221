//! SCAN: cursors, whole iterations while keys come and go, and what is refused.

use super::*;
use crate::fixture::Fixture;
use crate::{expire, generic, keyspace, string};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// One call: the next cursor and the keys.
fn call(fixture: &mut Fixture, words: &[&str]) -> (String, Vec<String>) {
    let reply = fixture.reply(scan, words);
    let parts: Vec<&str> = reply.split_whitespace().collect();
    assert_eq!(parts[0], "*2", "{reply}");
    let keys: Vec<String> = parts[4..].iter().skip(1).step_by(2).map(ToString::to_string).collect();
    assert_eq!(parts[3], format!("*{}", keys.len()));
    (parts[2].to_owned(), keys)
}

/// A whole walk; every key as often as it came.
fn walk_all(fixture: &mut Fixture, options: &[&str]) -> Vec<String> {
    let (mut cursor, mut all) = ("0".to_owned(), Vec::new());
    loop {
        let (next, keys) = call(fixture, &[&["SCAN", &cursor], options].concat());
        all.extend(keys);
        cursor = next;
        if cursor == "0" {
            all.sort();
            return all;
        }
    }
}

fn filled(count: usize) -> Fixture {
    let mut fixture = Fixture::new();
    for index in 0..count {
        fixture.reply(string::setnx, &["SETNX", &format!("k{index}"), "v"]);
    }
    fixture
}

/// Redis 8.2.3 answered so.
#[test]
fn errors() {
    let mut fixture = Fixture::new();
    let empty = "*2 $1 0 *0 ";
    for cursor in ["18446744073709551615", "-18446744073709551615", "01", "+1", " 1", "\t1", "00"] {
        assert_eq!(fixture.reply(scan, &["SCAN", cursor]), empty, "{cursor:?}");
    }
    for cursor in [
        "abc",
        "-1",
        "18446744073709551616",
        "-18446744073709551616",
        "",
        "0x10",
        "1 ",
        "+",
        "-",
        "1\n",
        "+-1",
        "1_000",
    ] {
        assert_eq!(fixture.reply(scan, &["SCAN", cursor]), "-ERR invalid cursor ", "{cursor:?}");
    }
    for (line, reply) in [
        ("SCAN 0 COUNT 0", "-ERR syntax error "),
        ("SCAN 0 COUNT -1", "-ERR syntax error "),
        ("SCAN 0 COUNT abc", "-ERR value is not an integer or out of range "),
        ("SCAN 0 FOO", "-ERR syntax error "),
        ("SCAN 0 MATCH", "-ERR syntax error "),
        ("SCAN abc COUNT 0", "-ERR invalid cursor "),
        ("SCAN 0 TYPE foo COUNT 0", "-ERR syntax error "),
        ("SCAN 0 TYPE foo", empty),
        ("SCAN 0 count 9223372036854775807", empty),
    ] {
        assert_eq!(fixture.reply(scan, &line.split(' ').collect::<Vec<_>>()), reply, "{line}");
    }
}

#[test]
fn a_quiet_database_is_walked_once_key_by_key() {
    let mut fixture = filled(1000);
    let mut expected: Vec<_> = (0..1000).map(|index| format!("k{index}")).collect();
    expected.sort();
    assert_eq!(walk_all(&mut fixture, &[]), expected);
    assert_eq!(walk_all(&mut fixture, &["COUNT", "1", "TYPE", "STRING", "MATCH", "*"]), expected);
    assert_eq!(walk_all(&mut fixture, &["TYPE", "list"]), Vec::<String>::new());
    assert_eq!(walk_all(&mut fixture, &["MATCH", "k99?"]).len(), 10);
    // A call returns about as many as it was asked for.
    let (_, keys) = call(&mut fixture, &["SCAN", "0", "COUNT", "100"]);
    assert!((100..120).contains(&keys.len()), "{}", keys.len());
}

#[test]
fn expired_keys_are_removed_and_not_returned() {
    let mut fixture = filled(100);
    for index in 0..50 {
        fixture.reply(expire::pexpire, &["PEXPIRE", &format!("k{index}"), "5"]);
    }
    fixture.now_ms += 5;
    assert_eq!(walk_all(&mut fixture, &[]).len(), 50);
    assert_eq!(fixture.reply(keyspace::dbsize, &["DBSIZE"]), ":50 ");
}

/// Names that share three slots, so that their tables grow and shrink.
fn crowded() -> &'static [String] {
    static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
        let hasher = Fixture::new().layout.hasher;
        let names = (0..).map(|index| format!("k{index}"));
        names.filter(|name| [3, 9000, SLOTS - 1].contains(&hasher.key(name.as_bytes()).slot())).take(600).collect()
    });
    &NAMES
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Keys that are there throughout are returned, whatever comes and goes between the calls; keys that were never there are not.
    #[test]
    fn what_stays_is_returned(
        staying in 1usize..60,
        is_crowded: bool,
        count in 1usize..40,
        shards in 1usize..6,
        changes in prop::collection::vec((any::<bool>(), 0usize..300, 1usize..600), 1..40),
    ) {
        let mut fixture = Fixture::with_shards(shards);
        let spread: Vec<String> = (0..600).map(|index| format!("s{index}")).collect();
        let (stay, come) = (if is_crowded { crowded() } else { &spread }).split_at(staying);
        // Tables are large at first, and shrink when what comes and goes has gone.
        for name in stay.iter().chain(come) {
            fixture.reply(string::setnx, &["SETNX", name, "v"]);
        }
        let count = count.to_string();
        let (mut cursor, mut seen, mut changes) = ("0".to_owned(), BTreeSet::new(), changes.into_iter().cycle());
        let all: BTreeSet<String> = stay.iter().chain(come).cloned().collect();
        for calls in 0.. {
            prop_assert!(calls < 20_000, "the walk ends");
            let (next, keys) = call(&mut fixture, &["SCAN", &cursor, "COUNT", &count]);
            seen.extend(keys);
            cursor = next;
            if cursor == "0" {
                break;
            }
            let (insert, first, number) = changes.next().expect("a cycle");
            for name in &come[first..(first + number).min(come.len())] {
                if insert {
                    fixture.reply(string::setnx, &["SETNX", name, "v"]);
                } else {
                    fixture.reply(generic::del, &["DEL", name]);
                }
            }
        }
        for name in stay {
            prop_assert!(seen.contains(name), "{} is missing", name);
        }
        prop_assert!(seen.is_subset(&all));
    }

    /// Any cursor is safe, and leads to the end.
    #[test]
    fn any_cursor_is_safe(cursor in any::<u64>()) {
        let mut fixture = filled(50);
        let mut cursor = cursor.to_string();
        let end = (0..100).find(|_| {
            cursor = call(&mut fixture, &["SCAN", &cursor, "COUNT", "5"]).0;
            cursor == "0"
        });
        prop_assert!(end.is_some(), "at {}", cursor);
    }
}
