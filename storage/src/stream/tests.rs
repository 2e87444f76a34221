//! The commands against a keyspace, with values asked of Redis 8.2.3, and the entries against a model.

use super::*;
use crate::fixture::{Fixture, Handler};
use crate::random::Random;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The function of a command's name.
fn handler(words: &[Vec<u8>]) -> Handler {
    let name = |at: usize| words.get(at).map(|word| word.to_ascii_uppercase()).unwrap_or_default();
    match (name(0).as_slice(), name(1).as_slice()) {
        (b"XADD", _) => xadd,
        (b"XTRIM", _) => xtrim,
        (b"XDEL", _) => xdel,
        (b"XDELEX", _) => xdelex,
        (b"XACK", _) => xack,
        (b"XACKDEL", _) => xackdel,
        (b"XCLAIM", _) => xclaim,
        (b"XAUTOCLAIM", _) => xautoclaim,
        (b"XREADGROUP", _) => xreadgroup,
        (b"XREAD", _) => xread,
        (b"XRANGE", _) => xrange,
        (b"XREVRANGE", _) => xrevrange,
        (b"XLEN", _) => xlen,
        (b"XSETID", _) => xsetid,
        (b"XPENDING", _) => xpending,
        (b"XGROUP", b"CREATE") => xgroup_create,
        (b"XGROUP", b"SETID") => xgroup_setid,
        (b"XGROUP", b"DESTROY") => xgroup_destroy,
        (b"XGROUP", b"CREATECONSUMER") => xgroup_createconsumer,
        (b"XGROUP", b"DELCONSUMER") => xgroup_delconsumer,
        (b"XINFO", b"STREAM") => xinfo_stream,
        (b"XINFO", b"GROUPS") => xinfo_groups,
        (b"XINFO", b"CONSUMERS") => xinfo_consumers,
        (b"DEL", _) => crate::generic::del,
        (other, _) => panic!("no function for {}", String::from_utf8_lossy(other)),
    }
}

fn words(line: &str) -> Vec<Vec<u8>> {
    line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

fn run_words(fixture: &mut Fixture, words: &[Vec<u8>]) -> (String, Vec<String>) {
    let parts: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let (reply, log) = fixture.run_bytes(handler(words), &parts);
    (String::from_utf8_lossy(&reply).replace("\r\n", " ").trim_end().to_owned(), log)
}

fn run(fixture: &mut Fixture, line: &str) -> (String, Vec<String>) {
    run_words(fixture, &words(line))
}

fn reply(fixture: &mut Fixture, line: &str) -> String {
    run(fixture, line).0
}

/// The records of a command.
fn log(fixture: &mut Fixture, line: &str) -> Vec<String> {
    run(fixture, line).1
}

#[test]
fn entries_are_added_with_ids_of_their_own_or_of_the_clock() {
    let mut fixture = Fixture::new();
    assert_eq!(run(&mut fixture, "XADD s * a 1"), ("$9 1000000-0".into(), vec!["XADD s 1000000-0 a 1".into()]));
    assert_eq!(reply(&mut fixture, "XADD s * a 2"), "$9 1000000-1");
    fixture.now_ms = 5;
    assert_eq!(log(&mut fixture, "XADD s * a 3"), ["XADD s 1000000-2 a 3"]);
    assert_eq!(log(&mut fixture, "XADD s 1000001-* b 4"), ["XADD s 1000001-0 b 4"]);
    assert_eq!(log(&mut fixture, "XADD s 1000002-5 b 4"), ["XADD s 1000002-5 b 4"]);
    let smaller = "-ERR The ID specified in XADD is equal or smaller than the target stream top item";
    assert_eq!(run(&mut fixture, "XADD s 1000002-5 b 4"), (smaller.into(), vec![]));
    assert_eq!(reply(&mut fixture, "XLEN s"), ":5");
    assert_eq!(run(&mut fixture, "XADD none NOMKSTREAM * a 1"), ("$-1".into(), vec![]));
    assert_eq!(run(&mut fixture, "XADD none 0-0 a 1").1, Vec::<String>::new());
    assert_eq!(reply(&mut fixture, "XINFO STREAM none"), "-ERR no such key");
}

#[test]
fn an_approximate_trimming_is_recorded_as_an_exact_one() {
    let mut fixture = Fixture::new();
    fixture.settings.packing.stream_node_entries = 2;
    for number in 1..=7 {
        reply(&mut fixture, &format!("XADD k 1-{number} a {number}"));
    }
    assert_eq!(run(&mut fixture, "XTRIM k MAXLEN ~ 5 LIMIT 1"), (":0".into(), vec![]));
    assert_eq!(run(&mut fixture, "XTRIM k MAXLEN ~ 5 LIMIT 2"), (":2".into(), vec!["XTRIM k MAXLEN = 5".into()]));
    assert_eq!(run(&mut fixture, "XTRIM k MINID ~ 1-6"), (":2".into(), vec!["XTRIM k MINID = 1-5".into()]));
    assert_eq!(log(&mut fixture, "XADD k MAXLEN ~ 1 1-8 a 1"), ["XADD k MAXLEN = 2 1-8 a 1"]);
    assert_eq!(log(&mut fixture, "XADD k MAXLEN ~ 0 1-9 a 1"), ["XADD k MAXLEN = 0 1-9 a 1"]);
    let all = "18446744073709551615-18446744073709551615";
    assert_eq!(log(&mut fixture, "XADD k MINID ~ 999 1-10 a 1"), [format!("XADD k MINID = {all} 1-10 a 1")]);
    assert_eq!(log(&mut fixture, "XADD k MAXLEN ~ 9 1-11 a 1"), ["XADD k 1-11 a 1"]);
    // Where references matter, no node is removed whole.
    assert_eq!(reply(&mut fixture, "XTRIM k MAXLEN ~ 0 DELREF"), ":0");
    assert_eq!(run(&mut fixture, "XTRIM k MAXLEN 0 ACKED"), (":1".into(), vec!["XTRIM k ACKED MAXLEN = 0".into()]));
    // Only as far as the entries would reach that go if no group referred to any; a replay needs no nodes to know.
    for number in 1..=6 {
        reply(&mut fixture, &format!("XADD k 2-{number} a 1"));
    }
    reply(&mut fixture, "XGROUP CREATE k g 0");
    reply(&mut fixture, "XREADGROUP GROUP g c COUNT 6 STREAMS k >");
    reply(&mut fixture, "XACK k g 2-3 2-6");
    assert_eq!(reply(&mut fixture, "XTRIM k MAXLEN 5 ACKED"), ":0");
    assert_eq!(run(&mut fixture, "XTRIM k MAXLEN 3 ACKED"), (":2".into(), vec!["XTRIM k ACKED MAXLEN = 4".into()]));
}

#[test]
fn what_a_group_is_given_is_recorded_by_its_outcome() {
    let mut fixture = Fixture::new();
    for number in 1..=5 {
        reply(&mut fixture, &format!("XADD k 2-{number} a {number}"));
    }
    reply(&mut fixture, "XGROUP CREATE k g 0");
    assert_eq!(
        log(&mut fixture, "XREADGROUP GROUP g c1 COUNT 2 STREAMS k >"),
        [
            "XCLAIM k g c1 0 2-1 2-2 TIME 1000000 RETRYCOUNT 1 FORCE JUSTID LASTID 2-2",
            "XGROUP SETID k g 2-2 ENTRIESREAD 2"
        ]
    );
    assert_eq!(
        log(&mut fixture, "XREADGROUP GROUP g c2 COUNT 1 NOACK STREAMS k >"),
        ["XGROUP CREATECONSUMER k g c2", "XGROUP SETID k g 2-3 ENTRIESREAD 3"]
    );
    assert_eq!(
        run(&mut fixture, "XREADGROUP GROUP g c3 STREAMS k 0"),
        ("*1 *2 $1 k *0".into(), vec!["XGROUP CREATECONSUMER k g c3".into()])
    );
    assert_eq!(
        log(&mut fixture, "XREADGROUP GROUP g c1 STREAMS k 2-1"),
        ["XCLAIM k g c1 0 2-2 TIME 1000000 RETRYCOUNT 2 FORCE JUSTID LASTID 2-3"]
    );
    assert_eq!(
        log(&mut fixture, "XCLAIM k g c3 0 2-1 IDLE 500 RETRYCOUNT 9"),
        ["XCLAIM k g c3 0 2-1 TIME 999500 RETRYCOUNT 9 FORCE JUSTID LASTID 2-3"]
    );
    reply(&mut fixture, "XDEL k 2-1");
    assert_eq!(
        run(&mut fixture, "XAUTOCLAIM k g c4 0 0 JUSTID"),
        (
            "*3 $3 0-0 *1 $3 2-2 *1 $3 2-1".into(),
            vec![
                "XCLAIM k g c3 0 2-1 TIME 999500 RETRYCOUNT 9 FORCE JUSTID LASTID 2-3".into(),
                "XCLAIM k g c4 0 2-2 TIME 1000000 RETRYCOUNT 2 FORCE JUSTID LASTID 2-3".into()
            ]
        )
    );
    assert_eq!(run(&mut fixture, "XREADGROUP GROUP g c4 STREAMS k 5").1, Vec::<String>::new());
}

#[test]
fn only_what_no_group_needs_is_deleted_if_so_asked() {
    let mut fixture = Fixture::new();
    for number in 1..=5 {
        reply(&mut fixture, &format!("XADD k 1-{number} a 1"));
    }
    reply(&mut fixture, "XGROUP CREATE k g 0");
    reply(&mut fixture, "XGROUP CREATE k h 0");
    reply(&mut fixture, "XREADGROUP GROUP g c COUNT 3 STREAMS k >");
    reply(&mut fixture, "XREADGROUP GROUP h c COUNT 2 NOACK STREAMS k >");
    assert_eq!(reply(&mut fixture, "XACK k g 1-1"), ":1");
    assert_eq!(reply(&mut fixture, "XDELEX k ACKED IDS 5 1-1 1-2 1-3 1-4 9-9"), "*5 :1 :2 :2 :2 :2");
    assert_eq!(reply(&mut fixture, "XDELEX k IDS 2 1-2 1-1"), "*2 :1 :-1");
    // What a group holds of an entry that is gone goes too, and must go in a replay.
    let record = vec!["XDELEX k DELREF IDS 1 1-2".to_owned()];
    assert_eq!(run(&mut fixture, "XDELEX k DELREF IDS 1 1-2"), ("*1 :-1".into(), record));
    assert_eq!(reply(&mut fixture, "XACKDEL k g ACKED IDS 2 1-3 1-4"), "*2 :2 :-1");
    assert_eq!(reply(&mut fixture, "XPENDING k g"), "*4 :0 $-1 $-1 *-1");
}

#[test]
fn a_reading_is_a_map_in_resp3() {
    let mut fixture = Fixture::new();
    reply(&mut fixture, "XADD k 1-1 a 1");
    fixture.protocol = simurgh_protocol::resp::Protocol::Resp3;
    assert_eq!(reply(&mut fixture, "XREAD STREAMS k 0"), "%1 $1 k *1 *2 $3 1-1 *2 $1 a $1 1");
    assert_eq!(reply(&mut fixture, "XREAD STREAMS k $"), "_");
}

#[test]
fn a_parsed_reading_may_be_served_later() {
    let mut fixture = Fixture::new();
    reply(&mut fixture, "XADD k 1-1 a 1");
    fn add_between(cx: &mut Context<'_>, args: &simurgh_protocol::Args<'_>) -> Result<(), CommandError> {
        let reading = Reading::of_xread(cx, args)?;
        assert!(reading.waits && reading.deadline_ms.is_none());
        assert!(!serve(cx, &reading)?);
        let key = cx.key(b"k");
        let limits = NodeLimits::of(&cx.settings.packing);
        let pairs: [&[u8]; 2] = [b"a", b"2"];
        cx.edit_or_create::<Stream>(&key)?.entries.append(StreamId::new(2, 0), pairs.into_iter(), limits);
        assert!(serve(cx, &reading)?);
        Ok(())
    }
    let (reply, _) = fixture.run(add_between, &["XREAD", "BLOCK", "0", "STREAMS", "k", "$"]);
    assert_eq!(reply, "*1 *2 $1 k *1 *2 $3 2-0 *2 $1 a $1 2 ");
}

/// A random command of a session that uses everything.
fn random_command(random: &mut Random, number: u64) -> String {
    let mut below = |limit: u64| random.next_u64() % limit;
    let (group, consumer) = (["g", "h"][below(2) as usize], ["c1", "c2", "c3"][below(3) as usize]);
    let (id, other) = (below(number + 2), below(number + 2));
    let references = ["", " KEEPREF", " DELREF", " ACKED"][below(4) as usize];
    let sign = ["", " =", " ~"][below(3) as usize];
    let bound = if below(2) == 0 { format!("MAXLEN{sign} {}", below(12)) } else { format!("MINID{sign} {id}") };
    match below(20) {
        0..5 => format!("XADD k {number} a {id} b {other}"),
        5 => format!("XADD k{references} {bound} {number}-* f {id}"),
        6 => format!("XTRIM k {bound}{references}"),
        7 => format!("XDEL k {id} {other}"),
        8 => format!("XDELEX k{references} IDS 2 {id} {other}"),
        9 => format!("XACKDEL k {group}{references} IDS 2 {id} {other}"),
        10 => format!("XACK k {group} {id} {other}"),
        11 | 12 => format!("XREADGROUP GROUP {group} {consumer} COUNT {} STREAMS k >", 1 + id % 4),
        13 => format!("XREADGROUP GROUP {group} {consumer} NOACK STREAMS k >"),
        14 => format!("XREADGROUP GROUP {group} {consumer} STREAMS k {id}"),
        15 => format!("XCLAIM k {group} {consumer} {} {id} {other} FORCE LASTID {id}", below(30)),
        16 => format!("XAUTOCLAIM k {group} {consumer} {} {id} COUNT 3", below(30)),
        17 => format!("XGROUP DELCONSUMER k {group} {consumer}"),
        18 if id % 4 == 0 => format!("XGROUP SETID k {group} {id} ENTRIESREAD {other}"),
        18 => format!("XGROUP CREATE k {group} {id} MKSTREAM"),
        _ if id % 5 == 0 => format!("XGROUP DESTROY k {group}"),
        _ => format!("XGROUP CREATECONSUMER k {group} {consumer}"),
    }
}

/// Everything that can be asked of the stream, apart from when consumers were last seen.
fn state(fixture: &mut Fixture) -> Vec<String> {
    let full = reply(fixture, "XINFO STREAM k FULL COUNT 0");
    let words: Vec<&str> = full.split(' ').collect();
    let mut state = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let is_time = at > 0 && ["seen-time", "active-time"].contains(&words[at - 1]);
        // Nodes are filled otherwise when entries were trimmed otherwise.
        let is_shape = at > 0 && words[at - 1].starts_with("radix-tree");
        state.push(if is_time || is_shape { "?".to_owned() } else { (*word).to_owned() });
    }
    state
}

#[test]
fn a_replay_of_any_session_comes_to_the_same_state() {
    for seed in 0..60 {
        let (mut fixture, mut random) = (Fixture::with_shards(1), Random::new(seed));
        fixture.settings.packing.stream_node_entries = 1 + seed % 5;
        for number in 1..=150 {
            fixture.now_ms += 7;
            let command = random_command(&mut random, number);
            reply(&mut fixture, &command);
        }
        let mut replayed = Fixture::with_shards(1);
        replayed.replaying = true;
        replayed.settings.packing.stream_node_entries = 1 + seed % 3;
        for record in &fixture.log {
            let (reply, _) = run_words(&mut replayed, record);
            let record = String::from_utf8_lossy(&record.join(&b' ')).into_owned();
            assert!(!reply.starts_with('-'), "seed {seed}: {record}: {reply}");
        }
        let (live, again) = (state(&mut fixture), state(&mut replayed));
        let at = live.iter().zip(&again).position(|(one, other)| one != other);
        let around = at.map(|at| (&live[at.saturating_sub(9)..=at], &again[at]));
        assert_eq!((around, live.len()), (None, again.len()), "seed {seed}");
    }
}

#[test]
fn bytes_are_those_of_an_empty_keyspace_again() {
    let mut fixture = Fixture::with_shards(1);
    reply(&mut fixture, "XADD k 1 a 1");
    reply(&mut fixture, "DEL k");
    let (before, mut random) = (fixture.shards[0].bytes(), Random::new(3));
    for number in 1..=400 {
        reply(&mut fixture, &random_command(&mut random, number));
    }
    assert!(fixture.shards[0].bytes() > before);
    reply(&mut fixture, "DEL k");
    assert_eq!(fixture.shards[0].bytes(), before);
}

/// One change of the entries.
#[derive(Clone, Debug)]
enum Change {
    Add(u64, Vec<(String, String)>),
    Delete(usize),
    Trim(u64, bool),
}

fn change() -> impl Strategy<Value = Change> {
    let pair = ("[ab]{1,2}", prop_oneof!["[0-9]{1,6}", "[a-z]{0,70}"]);
    prop_oneof![
        6 => (0..3_u64, proptest::collection::vec(pair, 1..4)).prop_map(|(step, pairs)| Change::Add(step, pairs)),
        2 => any::<usize>().prop_map(Change::Delete),
        1 => (0..20_u64, any::<bool>()).prop_map(|(length, exact)| Change::Trim(length, exact)),
    ]
}

type Model = BTreeMap<StreamId, Vec<String>>;

fn texts(entry: &Entry<'_>) -> Vec<String> {
    entry.items().map(|item| String::from_utf8(item.to_vec()).unwrap()).collect()
}

fn check_against(entries: &Entries, model: &Model, from: StreamId, to: StreamId) {
    let forward: Vec<_> = entries.range(from, to).map(|entry| (entry.id, texts(&entry))).collect();
    let mut backward: Vec<_> = entries.range(from, to).rev().map(|entry| (entry.id, texts(&entry))).collect();
    backward.reverse();
    let expected: Vec<_> =
        if from > to { Vec::new() } else { model.range(from..=to).map(|(id, texts)| (*id, texts.clone())).collect() };
    assert_eq!(forward, expected);
    assert_eq!(backward, expected);
}

proptest! {
    #[test]
    fn entries_are_those_of_a_model(changes in proptest::collection::vec(change(), 1..120), node in 1..6_u64) {
        let (mut stream, mut model, mut id) = (Stream::default(), Model::new(), StreamId::new(5, 0));
        let limits = NodeLimits { bytes: 200, entries: node };
        for change in changes {
            match change {
                Change::Add(step, pairs) => {
                    id = if step == 0 { id.next().unwrap() } else { StreamId::new(id.ms + step, 0) };
                    let words: Vec<String> = pairs.into_iter().flat_map(|(name, value)| [name, value]).collect();
                    stream.entries.append(id, words.iter().map(String::as_bytes), limits);
                    model.insert(id, words);
                }
                Change::Delete(number) => {
                    let victim = model.keys().nth(number % model.len().max(1)).copied().unwrap_or(id);
                    prop_assert_eq!(stream.entries.delete(victim), model.remove(&victim).is_some());
                }
                Change::Trim(length, exact) => {
                    let trim = Trim {
                        bound: Bound::Length(length),
                        is_approximate: !exact,
                        limit: 0,
                        references: References::Keep,
                        is_replayed: false,
                    };
                    let removed = stream.trim(&trim);
                    (0..removed).for_each(|_| drop(model.pop_first()));
                    prop_assert!(!exact || model.len() as u64 <= length);
                    prop_assert!(removed == 0 || model.len() as u64 >= length);
                }
            }
            prop_assert_eq!(stream.len(), model.len());
            prop_assert_eq!(stream.entries.first_id(), model.keys().next().copied().unwrap_or_default());
        }
        check_against(&stream.entries, &model, StreamId::MIN, StreamId::MAX);
        for from in [0, 5, id.ms / 2, id.ms] {
            check_against(&stream.entries, &model, StreamId::new(from, 1), StreamId::new(id.ms - 1, 0));
        }
        // The nodes as they would be dumped are good ones, and make the same entries.
        let mut loaded = Entries::default();
        for (id, node) in stream.entries.nodes() {
            let node = crate::listpack::Listpack::from_bytes(node.as_bytes()).unwrap();
            loaded.push_node(*id, node).unwrap();
        }
        check_against(&loaded, &model, StreamId::MIN, StreamId::MAX);
        prop_assert_eq!(loaded.len(), stream.entries.len());
    }

    #[test]
    fn a_node_of_any_items_is_refused_or_read(items in proptest::collection::vec(-2..6_i64, 0..24)) {
        let items: Vec<_> = items.into_iter().map(crate::listpack::Item::Int).collect();
        let mut entries = Entries::default();
        if entries.push_node(StreamId::new(1, 0), crate::listpack::Listpack::of(&items)).is_ok() {
            prop_assert_eq!(entries.iter().count() as u64, entries.len());
            prop_assert_eq!(entries.iter().rev().count() as u64, entries.len());
            let first = entries.first_id();
            prop_assert_eq!(entries.delete(first), !first.is_zero());
        }
    }
}
