//! Handlers of hashes against what Redis 8.2.3 answered and logged, and the structure against a model.

use super::*;
use crate::fixture::{Fixture, Handler};
use crate::{Class, Effects, generic, keyspace, object};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Handler, request, reply, records.
type Case = (Handler, &'static str, &'static str, &'static [&'static str]);

fn check(fixture: &mut Fixture, cases: &[Case]) {
    for (handler, line, reply, log) in cases {
        let words: Vec<&str> = line.split(' ').collect();
        let expected = (format!("{reply} "), log.iter().map(ToString::to_string).collect());
        assert_eq!(fixture.run(*handler, &words), expected, "{line}");
    }
}

fn with_hash(line: &str) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.reply(hset, &line.split(' ').collect::<Vec<_>>());
    fixture
}

/// The names of the events that a command caused.
fn events(fixture: &mut Fixture, handler: Handler, line: &str) -> Vec<&'static str> {
    fixture.settings.events = Class::HASH | Class::GENERIC;
    fixture.run(handler, &line.split(' ').collect::<Vec<_>>());
    fixture.events.drain(..).map(|event| event.name).collect()
}

#[test]
fn what_is_relative_or_conditional_is_logged_by_its_outcome() {
    check(
        &mut with_hash("HSET h f1 a f2 b f3 c f4 d n 5"),
        &[
            (hincrbyfloat, "HINCRBYFLOAT h n 1.5", "$3 6.5", &["HSETEX h KEEPTTL FIELDS 1 n 6.5"]),
            (hincrby, "HINCRBY h m 2", ":2", &["HINCRBY h m 2"]),
            (hexpire, "HEXPIRE h 100 FIELDS 2 n nope", "*2 :1 :-2", &["HPEXPIREAT h 1100000 FIELDS 1 n"]),
            (hexpire, "HEXPIRE h 0 FIELDS 2 n nope", "*2 :2 :-2", &["HDEL h n"]),
            (hgetex, "HGETEX h PX 5 FIELDS 2 f1 zz", "*2 $1 a $-1", &["HPEXPIREAT h 1000005 FIELDS 1 f1"]),
            (hgetex, "HGETEX h PERSIST FIELDS 2 f1 f2", "*2 $1 a $1 b", &["HPERSIST h FIELDS 1 f1"]),
            (hgetex, "HGETEX h PXAT 1 FIELDS 2 f1 f1", "*2 $1 a $-1", &["HDEL h f1"]),
            (hgetex, "HGETEX h FIELDS 1 f2", "*1 $1 b", &[]),
            (hsetex, "HSETEX h FXX EX 1 FIELDS 1 f2 x", ":1", &["HSETEX h PXAT 1001000 FIELDS 1 f2 x"]),
            (hsetex, "HSETEX h FXX EX 1 FIELDS 2 f2 x zz y", ":0", &[]),
            (hsetex, "HSETEX h PXAT 1 FIELDS 2 f2 x zz y", ":1", &["HDEL h f2 zz"]),
            (hgetdel, "HGETDEL h FIELDS 3 f3 f3 zz", "*3 $1 c $-1 $-1", &["HDEL h f3"]),
            (hsetnx, "HSETNX h f4 x", ":0", &[]),
            (hgetdel, "HGETDEL h FIELDS 2 f4 m", "*2 $1 d $1 2", &["HDEL h f4 m"]),
            (generic::exists, "EXISTS h", ":0", &[]),
        ],
    );
}

#[test]
fn times_at_the_boundaries() {
    let invalid = "-ERR invalid expire time in 'hpexpireat' command";
    check(
        &mut with_hash("HSET h f 1"),
        &[
            (hpexpireat, "HPEXPIREAT h 70368744177664 FIELDS 1 f", invalid, &[]),
            (hpexpireat, "HPEXPIREAT h 9223372036854775807 FIELDS 1 f", invalid, &[]),
            (
                hpexpireat,
                "HPEXPIREAT h 70368744177663 FIELDS 1 f",
                "*1 :1",
                &["HPEXPIREAT h 70368744177663 FIELDS 1 f"],
            ),
            (hexpiretime, "HEXPIRETIME h FIELDS 1 f", "*1 :70368744178", &[]),
            (hpexpiretime, "HPEXPIRETIME h FIELDS 2 f g", "*2 :70368744177663 :-2", &[]),
            (hexpire, "HEXPIRE h 9223372036854775807 FIELDS 1 f", "-ERR invalid expire time in 'hexpire' command", &[]),
            (hexpire, "HEXPIRE h -1 FIELDS 1 f", "-ERR invalid expire time, must be >= 0", &[]),
        ],
    );
}

/// A field is invisible from its millisecond on to every command; whoever names it logs that it is gone.
#[test]
fn expired_fields_are_not_seen() {
    let mut fixture = with_hash("HSET h a 1 b 2 c 3 d 4 e 5 g 6 i 7 j 8 keep 6");
    fixture.reply(hpexpire, &["HPEXPIRE", "h", "10", "FIELDS", "8", "a", "b", "c", "d", "e", "g", "i", "j"]);
    fixture.now_ms += 9;
    check(&mut fixture, &[(hget, "HGET h a", "$1 1", &[]), (hpttl, "HPTTL h FIELDS 1 a", "*1 :1", &[])]);
    fixture.now_ms += 1;
    check(
        &mut fixture,
        &[
            (hgetall, "HGETALL h", "*2 $4 keep $1 6", &[]),
            (hkeys, "HKEYS h", "*1 $4 keep", &[]),
            (httl, "HTTL h FIELDS 1 a", "*1 :-2", &[]),
            (hscan, "HSCAN h 0", "*2 $1 0 *2 $4 keep $1 6", &[]),
            (hlen, "HLEN h", ":9", &[]),
            (hexists, "HEXISTS h g", ":0", &["HDEL h g"]),
            (hstrlen, "HSTRLEN h i", ":0", &["HDEL h i"]),
            (hmget, "HMGET h a keep", "*2 $-1 $1 6", &["HDEL h a"]),
            (hset, "HSET h b 7", ":1", &["HDEL h b", "HSET h b 7"]),
            (hincrby, "HINCRBY h c 1", ":1", &["HDEL h c", "HINCRBY h c 1"]),
            (hdel, "HDEL h d", ":1", &["HDEL h d"]),
            (hexpire, "HEXPIRE h 10 FIELDS 1 e", "*1 :-2", &["HDEL h e"]),
            (httl, "HTTL h FIELDS 2 b c", "*2 :-1 :-1", &[]),
            (hlen, "HLEN h", ":4", &[]),
            (hrandfield, "HRANDFIELD h 0", "*0", &["HDEL h j"]),
            (hlen, "HLEN h", ":3", &[]),
        ],
    );
    assert_eq!(fixture.shards.iter().map(|shard| shard.stats.expired_fields).sum::<u64>(), 7);
}

#[test]
fn a_replay_lets_no_field_expire() {
    let mut fixture = with_hash("HSET h a 1");
    fixture.replaying = true;
    fixture.reply(hpexpireat, &["HPEXPIREAT", "h", "1", "FIELDS", "1", "a"]);
    fixture.reply(hincrby, &["HINCRBY", "h", "a", "1"]);
    fixture.reply(hsetex, &["HSETEX", "h", "PXAT", "2", "FIELDS", "1", "b", "2"]);
    assert_eq!(fixture.reply(hgetall, &["HGETALL", "h"]), "*4 $1 a $1 2 $1 b $1 2 ");
    fixture.replaying = false;
    assert_eq!(fixture.reply(hgetall, &["HGETALL", "h"]), "*0 ");
}

#[test]
fn while_the_keyspace_stands_still_expired_fields_are_not_seen_but_stay() {
    let mut fixture = with_hash("HSET h a 1 b 2");
    fixture.reply(hpexpire, &["HPEXPIRE", "h", "1", "FIELDS", "1", "a"]);
    fixture.now_ms += 1;
    fixture.keeps_expired = true;
    check(
        &mut fixture,
        &[
            (hget, "HGET h a", "$-1", &[]),
            (hexists, "HEXISTS h a", ":0", &[]),
            (hrandfield, "HRANDFIELD h", "$1 b", &[]),
            (hlen, "HLEN h", ":2", &[]),
        ],
    );
    fixture.keeps_expired = false;
    check(&mut fixture, &[(hget, "HGET h a", "$-1", &["HDEL h a"])]);
}

#[test]
fn events_are_those_of_redis() {
    let mut fixture = with_hash("HSET h f1 a f2 b");
    for (handler, line, expected) in [
        (hset as Handler, "HSET h f1 a", &["hset"][..]),
        (hincrbyfloat, "HINCRBYFLOAT h n 1", &["hincrbyfloat"]),
        (hexpire, "HEXPIRE h 9 FIELDS 2 f1 f2", &["hexpire"]),
        (hpersist, "HPERSIST h FIELDS 2 f1 n", &["hpersist"]),
        (hsetex, "HSETEX h EX 1 FIELDS 1 f1 a", &["hset", "hexpire"]),
        (hsetex, "HSETEX h PXAT 1 FIELDS 1 f1 a", &["hset", "hdel"]),
        (hgetdel, "HGETDEL h FIELDS 1 zz", &[]),
        (hdel, "HDEL h n", &["hdel"]),
        (hexpire, "HEXPIRE h 0 FIELDS 1 f2", &["hdel", "del"]),
    ] {
        assert_eq!(events(&mut fixture, handler, line), expected, "{line}");
    }
    fixture.reply(hsetex, &["HSETEX", "h", "PX", "1", "FIELDS", "1", "f", "v"]);
    fixture.now_ms += 1;
    fixture.events.clear();
    assert_eq!(events(&mut fixture, hget, "HGET h f"), ["hexpired", "del"]);
}

fn cycle(fixture: &mut Fixture, limit: usize) -> (bool, Vec<String>, Vec<&'static str>) {
    let (mut more, mut effects) = (false, Effects::default());
    effects.recording = true;
    for shard in &mut fixture.shards {
        let events = Class::HASH | Class::GENERIC;
        more |= expire_fields(shard, &fixture.layout.hasher, fixture.now_ms, limit, events, &mut effects);
    }
    let events = effects.events.iter().map(|event| event.name).collect();
    (more, crate::fixture::records(&effects), events)
}

#[test]
fn the_cron_removes_what_is_due_in_bounded_steps() {
    let mut fixture = Fixture::with_shards(1);
    fixture.settings.packing.hash_entries = 20;
    for (key, fields) in [("small", 5), ("large", 100)] {
        for index in 0..fields {
            let field = format!("f{index}");
            let span = if index % 5 == 4 { "20" } else { "10" };
            fixture.reply(hsetex, &["HSETEX", key, "PX", span, "FIELDS", "1", &field, "v"]);
        }
    }
    let expiring = |fixture: &Fixture| fixture.shards[0].database(0).hashes_expiring();
    assert_eq!((cycle(&mut fixture, 100).0, expiring(&fixture)), (false, 2));
    fixture.now_ms += 10;
    let (mut steps, mut removed) = (0, 0);
    loop {
        let (more, log, events) = cycle(&mut fixture, 7);
        let fields: usize = log.iter().map(|record| record.split(' ').count() - 2).sum();
        assert!(fields <= 7 && log.iter().all(|record| record.starts_with("HDEL ")), "{log:?}");
        assert!(events.iter().all(|name| *name == "hexpired"));
        (steps, removed) = (steps + 1, removed + fields);
        if !more {
            break;
        }
    }
    assert_eq!((steps, removed), (12, 84));
    assert_eq!(fixture.reply(hlen, &["HLEN", "large"]), ":20 ");
    fixture.now_ms += 10;
    let (more, log, events) = cycle(&mut fixture, 100);
    assert_eq!((more, log.len(), events), (false, 2, vec!["hexpired", "del", "hexpired", "del"]));
    assert_eq!(fixture.reply(keyspace::dbsize, &["DBSIZE"]), ":0 ");
    assert_eq!((expiring(&fixture), fixture.shards[0].stats.expired_fields), (0, 105));
}

#[test]
fn a_watched_hash_whose_field_expires_has_changed() {
    let mut fixture = with_hash("HSET h a 1 b 2");
    fixture.reply(hpexpire, &["HPEXPIRE", "h", "10", "FIELDS", "1", "a"]);
    let key = fixture.layout.hasher.key(b"h");
    let (shard, flag) = (fixture.layout.shard_of(&key), crate::WatchFlag::default());
    fixture.shards[shard].watch(0, &key, &flag);
    fixture.now_ms += 10;
    assert!(!flag.is_set());
    cycle(&mut fixture, 10);
    assert!(flag.is_set());
}

#[test]
fn encodings_change_where_redis_changes_them() {
    let mut fixture = Fixture::new();
    fixture.settings.packing.hash_entries = 3;
    fixture.settings.packing.hash_value = 5;
    for (handler, line, encoding) in [
        (hset as Handler, "HSET h a 1 b 2 c 3", "listpack"),
        (hexpire, "HEXPIRE h 10 FIELDS 1 zz", "listpackex"),
        (hpersist, "HPERSIST h FIELDS 1 a", "listpackex"),
        (hset, "HSET h d 4", "hashtable"),
        (hdel, "HDEL h b c d", "hashtable"),
        (hset, "HSET i a 1 a 2 a 3 a 4", "hashtable"),
        (hset, "HSET j a 12345", "listpack"),
        (hincrby, "HINCRBY j a 100000", "hashtable"),
        (hsetnx, "HSETNX k abcdef 1", "hashtable"),
        (hsetex, "HSETEX l EX 10 FIELDS 1 a 1", "listpackex"),
        (hsetex, "HSETEX l KEEPTTL FIELDS 1 a 123456", "hashtable"),
        (httl, "HTTL l FIELDS 1 a", "hashtable"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        fixture.reply(handler, &words);
        let expected = format!("${} {encoding} ", encoding.len());
        assert_eq!(fixture.reply(object::encoding, &["OBJECT", "ENCODING", words[1]]), expected, "{line}");
    }
    assert_eq!(fixture.reply(httl, &["HTTL", "l", "FIELDS", "1", "a"]), "*1 :10 ");
}

#[test]
fn copies_keep_their_expiries_and_memory_goes_back_to_nothing() {
    let mut fixture = Fixture::with_shards(1);
    fixture.settings.packing.hash_entries = 8;
    fixture.reply(hset, &["HSET", "k", "f", "v"]);
    fixture.reply(generic::del, &["DEL", "k"]);
    let empty = fixture.shards[0].bytes();
    for size in [3, 30] {
        for index in 0..size {
            fixture.reply(hsetex, &["HSETEX", "k", "EX", "10", "FIELDS", "1", &format!("f{index}"), "v"]);
        }
        fixture.reply(generic::copy, &["COPY", "k", "c", "REPLACE"]);
        assert_eq!(fixture.reply(httl, &["HTTL", "c", "FIELDS", "1", "f2"]), "*1 :10 ");
        assert_eq!(fixture.shards[0].database(0).hashes_expiring(), 2);
    }
    fixture.reply(generic::del, &["DEL", "k", "c"]);
    fixture.discarded.clear();
    assert_eq!((fixture.shards[0].bytes(), fixture.shards[0].database(0).hashes_expiring()), (empty, 0));
}

#[test]
fn hscan_returns_every_field_that_stays() {
    let mut fixture = Fixture::new();
    for index in 0..2000 {
        fixture.reply(hset, &["HSET", "h", &format!("f{index}"), "v"]);
    }
    let (mut cursor, mut seen, mut calls) = ("0".to_owned(), std::collections::BTreeSet::new(), 0);
    loop {
        let reply = fixture.reply(hscan, &["HSCAN", "h", &cursor, "COUNT", "50", "NOVALUES"]);
        let words: Vec<&str> = reply.split(' ').collect();
        cursor = words[2].to_owned();
        seen.extend(words[4..].iter().filter(|word| word.starts_with('f')).map(ToString::to_string));
        fixture.reply(hset, &["HSET", "h", &format!("new{calls}"), "v"]);
        calls += 1;
        if cursor == "0" {
            break;
        }
    }
    assert!((20..=60).contains(&calls), "{calls}");
    assert_eq!(seen.len(), 2000);
}

#[test]
fn random_fields_are_different_where_they_have_to_be() {
    let mut fixture = Fixture::new();
    for size in [10, 1000] {
        for index in 0..size {
            fixture.reply(hset, &["HSET", "h", &format!("f{index}"), "v"]);
        }
        for count in [1, size / 4, size / 2, size - 1, size, size + 1] {
            let reply = fixture.reply(hrandfield, &["HRANDFIELD", "h", &count.to_string()]);
            let fields: std::collections::BTreeSet<&str> =
                reply.split(' ').filter(|word| word.starts_with('f')).collect();
            assert_eq!(fields.len(), count.min(size));
        }
        let reply = fixture.reply(hrandfield, &["HRANDFIELD", "h", "-2500", "WITHVALUES"]);
        assert!(reply.starts_with("*5000 "));
    }
}

/// One change of the structure.
#[derive(Clone, Debug)]
enum Step {
    Set(u8, u8, Expiry),
    SetExpiry(u8, Option<i64>),
    Remove(u8),
    TakeDue(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let expiry = prop_oneof![Just(Expiry::Keep), Just(Expiry::Clear), (1..40i64).prop_map(Expiry::At)];
    prop_oneof![
        4 => (0..30u8, any::<u8>(), expiry).prop_map(|(field, value, expiry)| Step::Set(field, value, expiry)),
        2 => (0..30u8, proptest::option::of(1..40i64)).prop_map(|(field, at)| Step::SetExpiry(field, at)),
        2 => (0..30u8).prop_map(Step::Remove),
        1 => (0..40i64).prop_map(Step::TakeDue),
    ]
}

/// Field, value, expiry of each field, in order of fields.
fn content(hash: &Hash) -> Vec<(Vec<u8>, Vec<u8>, Option<i64>)> {
    let mut all = Vec::new();
    hash.each_row(|row| all.push((row.field.to_vec(), row.value.to_vec(), row.expires_at)));
    all.sort();
    all
}

proptest! {
    /// Whatever happens to it, a hash is what a map with expiries would be, in each of its representations.
    #[test]
    fn a_hash_is_a_map(steps in prop::collection::vec(step(), 1..200), entries in 0..40u64) {
        let hasher = KeyHasher::new(3);
        let limits = Limits { entries, value: 64, hasher: &hasher };
        let (mut hash, mut model) = (Hash::default(), BTreeMap::<Vec<u8>, (Vec<u8>, Option<i64>)>::new());
        // Some fields are integers, some values are long.
        let name = |field: u8| if field.is_multiple_of(3) { field.to_string().into_bytes() } else { vec![b'f', field] };
        for step in steps {
            match step {
                Step::Set(field, value, expiry) => {
                    let text = if value > 250 { vec![value; 100] } else { value.to_string().into_bytes() };
                    let before = model.get(&name(field)).and_then(|(_, at)| *at);
                    let is_new = model.insert(name(field), (text.clone(), expiry_after(expiry, before))).is_none();
                    prop_assert_eq!(hash.set(&name(field), &text, expiry, &limits), is_new);
                }
                Step::SetExpiry(field, at) => {
                    if let Some((_, before)) = model.get_mut(&name(field)) {
                        *before = at;
                        hash.set_expiry(&name(field), at);
                    }
                }
                Step::Remove(field) => prop_assert_eq!(hash.remove(&name(field)), model.remove(&name(field)).is_some()),
                Step::TakeDue(now_ms) => {
                    while let Some(field) = hash.take_due(now_ms) {
                        let taken = model.remove(&field).and_then(|(_, at)| at);
                        prop_assert!(taken.is_some_and(|at| at <= now_ms));
                    }
                    prop_assert!(!hash.is_due(now_ms));
                }
            }
            prop_assert_eq!(hash.next_field_expiry(), model.values().filter_map(|(_, at)| *at).min());
            prop_assert_eq!(hash.live_len(20), model.values().filter(|(_, at)| at.is_none_or(|at| at > 20)).count());
        }
        let expected: Vec<_> = model.into_iter().map(|(field, (value, at))| (field, value, at)).collect();
        prop_assert_eq!(content(&hash), expected.clone());
        prop_assert_eq!(content(&hash.clone()), expected);
    }
}
