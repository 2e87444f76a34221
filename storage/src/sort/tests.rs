//! SORT against what Redis 8.2.3 answers.

use super::*;
use crate::fixture::Fixture;
use crate::{hash, list, string};

/// `l` = 3 1 2 10, with a string and a hash for each.
fn with_list() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.reply(list::rpush, &["RPUSH", "l", "3", "1", "2", "10"]);
    fixture.reply(string::mset, &["MSET", "w_1", "5", "w_2", "3", "w_3", "9", "w_10", "4"]);
    for (key, value) in [("h_1", "9"), ("h_2", "4"), ("h_3", "2.5"), ("h_10", "-1")] {
        fixture.reply(hash::hset, &["HSET", key, "f", value]);
    }
    fixture
}

/// The elements of an answer, nulls as `nil`; anything else as it came.
fn answer(reply: &str) -> String {
    if !reply.starts_with('*') {
        return reply.trim_end().into();
    }
    let words: Vec<&str> = reply.split(' ').collect();
    let elements = words.iter().skip(1).enumerate().filter_map(|(index, word)| match *word {
        "$-1" => Some("nil"),
        _ if word.starts_with('$') => words.get(index + 2).copied(),
        _ => None,
    });
    elements.collect::<Vec<_>>().join(" ")
}

#[test]
fn elements_come_in_order() {
    let mut fixture = with_list();
    for (line, expected) in [
        ("SORT l", "1 2 3 10"),
        ("SORT l DESC", "10 3 2 1"),
        ("SORT l ALPHA", "1 10 2 3"),
        ("SORT l LIMIT 1 2", "2 3"),
        ("SORT l LIMIT -1 2", "1 2"),
        ("SORT l LIMIT 1 -1", "2 3 10"),
        ("SORT l LIMIT 10 5", ""),
        ("SORT l LIMIT 9223372036854775807 9223372036854775807", ""),
        ("SORT l BY w_*", "2 10 1 3"),
        ("SORT l BY nokey DESC", "10 2 1 3"),
        ("SORT l BY none_*", "1 10 2 3"),
        ("SORT l BY h_*->f", "10 3 2 1"),
        ("SORT l BY h_*->none", "1 10 2 3"),
        ("SORT l BY h_*", "1 10 2 3"),
        ("SORT l BY w_* GET # GET none_* GET w_* LIMIT 0 2", "2 nil 3 10 nil 4"),
        ("SORT l GET h_*->f GET w_1", "9 nil 4 nil 2.5 nil -1 nil"),
        ("SORT none", ""),
        ("SORT l LIMIT 1", "-ERR syntax error"),
        ("SORT l LIMIT abc 5", "-ERR value is not an integer or out of range"),
        ("SORT w_1 FOO", "-ERR syntax error"),
        ("SORT w_1", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("SORT l BY", "-ERR syntax error"),
    ] {
        let reply = fixture.reply(sort, &line.split(' ').collect::<Vec<_>>());
        assert_eq!(answer(&reply), expected, "{line}");
    }
    assert_eq!(answer(&fixture.reply(sort_ro, &["SORT_RO", "l", "STORE", "d"])), "-ERR syntax error");
}

#[test]
fn what_is_stored_is_logged_so_that_it_replays() {
    let mut fixture = with_list();
    let mut run = |line: &str| {
        let (reply, log) = fixture.run(sort, &line.split(' ').collect::<Vec<_>>());
        (answer(&reply), log)
    };
    assert_eq!(run("SORT l BY w_* STORE d"), (":4".into(), vec!["SORT l BY w_* STORE d".into()]));
    let outcome = vec!["DEL d".into(), "RPUSH d 10 3 2 1".into()];
    assert_eq!(run("SORT l BY h_*->f STORE d"), (":4".into(), outcome));
    assert_eq!(run("SORT l GET none_* LIMIT 0 1 STORE d").0, ":1");
    assert_eq!(run("SORT none STORE d"), (":0".into(), vec!["SORT none STORE d".into()]));
    assert_eq!(run("SORT none STORE d"), (":0".into(), vec![]));
    assert_eq!(fixture.reply(crate::generic::exists, &["EXISTS", "d"]), ":0 ");
}
