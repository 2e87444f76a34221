//! What string commands answer, record and store.
//!
//! The files in `cases` hold one command a line with its reply and records: `SET k v EX 10 => +OK | SET k v PXAT 1010000`.
//! Replies and encodings were observed on the server that the file names, and are never edited to please the code. Records are
//! ours, where they say more plainly what a condition came to. `@k int` states an encoding, `RESP3` changes the protocol, an
//! empty line begins a new keyspace.

use super::*;
use crate::fixture::{Fixture, Handler};
use crate::{expire, generic};
use proptest::prelude::*;
use simurgh_protocol::quoted::split_quoted;
use simurgh_protocol::resp::Protocol;

fn handler(name: &[u8]) -> Handler {
    match name.to_ascii_uppercase().as_slice() {
        b"APPEND" => append,
        b"DECR" => decr,
        b"DECRBY" => decrby,
        b"DEL" => generic::del,
        b"DELEX" => delex,
        b"DELIFEQ" => delifeq,
        b"DIGEST" => digest,
        b"EXISTS" => generic::exists,
        b"GET" => get,
        b"GETDEL" => getdel,
        b"GETEX" => getex,
        b"GETRANGE" => getrange,
        b"GETSET" => getset,
        b"INCR" => incr,
        b"INCRBY" => incrby,
        b"INCRBYFLOAT" => incrbyfloat,
        b"INCREX" => increx,
        b"LCS" => lcs,
        b"MGET" => mget,
        b"MSET" => mset,
        b"MSETEX" => msetex,
        b"MSETNX" => msetnx,
        b"PSETEX" => psetex,
        b"SET" => set,
        b"SETEX" => setex,
        b"SETNX" => setnx,
        b"SETRANGE" => setrange,
        b"STRLEN" => strlen,
        b"SUBSTR" => substr,
        b"PERSIST" => expire::persist,
        b"PEXPIREAT" => expire::pexpireat,
        b"TTL" => expire::ttl,
        other => panic!("no handler for {}", String::from_utf8_lossy(other)),
    }
}

/// Runs a command and shows its reply and records as a case does.
fn run(fixture: &mut Fixture, command: &str) -> String {
    let words = split_quoted(command.as_bytes()).expect("quotes are balanced");
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let (reply, records) = fixture.run_bytes(handler(words[0]), &words);
    let reply = String::from_utf8_lossy(&reply).replace("\r\n", " ").trim_end().to_owned();
    [vec![reply], records].concat().join(" | ").trim_end().to_owned()
}

fn encoding(fixture: &mut Fixture, name: &str) -> String {
    let key = fixture.layout.hasher.key(name.as_bytes());
    let shard = fixture.layout.shard_of(&key);
    let entry = fixture.shards[shard].database(0).get(&key).expect("a key whose encoding is stated is there");
    entry.encoding_name().to_owned()
}

/// Keys, values and expiries.
fn contents(fixture: &Fixture) -> Vec<(Vec<u8>, Vec<u8>, Option<i64>)> {
    let mut contents = Vec::new();
    for shard in &fixture.shards {
        shard.database(0).for_each(|entry| {
            contents.push((entry.key().to_vec(), entry.string().unwrap().to_vec(), entry.expires_at()));
        });
    }
    contents.sort();
    contents
}

/// The log, replayed a century later, gives the same keyspace.
fn replay(fixture: &Fixture) {
    let mut again = Fixture { replaying: true, now_ms: fixture.now_ms + 3_000_000_000_000, ..Fixture::new() };
    for record in &fixture.log {
        let words: Vec<&[u8]> = record.iter().map(Vec::as_slice).collect();
        let (reply, _) = again.run_bytes(handler(words[0]), &words);
        assert_ne!(reply[0], b'-', "{}", String::from_utf8_lossy(&reply));
    }
    assert_eq!(contents(fixture), contents(&again));
}

fn check(cases: &str) {
    let (mut fixture, mut wrong) = (Fixture::new(), Vec::new());
    for line in cases.lines().filter(|line| !line.starts_with('#')) {
        if let Some((command, expected)) = line.split_once(" => ") {
            let actual = run(&mut fixture, command);
            if actual != expected.trim_end() {
                wrong.push(format!("{line}\n   is {actual}"));
            }
        } else if let Some((key, expected)) = line.strip_prefix('@').and_then(|line| line.split_once(' ')) {
            let actual = encoding(&mut fixture, key);
            if actual != expected {
                wrong.push(format!("{line}\n   is {actual}"));
            }
        } else {
            match line {
                "" => replay(&std::mem::replace(&mut fixture, Fixture::new())),
                "RESP3" => fixture.protocol = Protocol::Resp3,
                _ => panic!("not a case: {line}"),
            }
        }
    }
    replay(&fixture);
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn commands_answer_as_redis_8_2_does() {
    check(include_str!("cases/redis-8.2.txt"));
}

#[test]
fn conditional_commands_answer_as_redis_8_10_does() {
    check(include_str!("cases/redis-8.10.txt"));
}

#[test]
fn delifeq_answers_as_valkey_9_does() {
    check(include_str!("cases/valkey-9.txt"));
}

#[test]
fn lcs_takes_the_way_back_that_redis_8_2_takes() {
    check(include_str!("cases/lcs.txt"));
}

#[test]
fn floats_are_added_as_redis_8_2_does() {
    check(include_str!("cases/float.txt"));
}

/// Redis 8.2 counts the key against the limit.
#[test]
fn short_strings_are_embedded() {
    let mut fixture = Fixture::new();
    for (length, expected) in [(0, "embstr"), (40, "embstr"), (41, "raw")] {
        run(&mut fixture, &format!("SET k \"{}\"", "a".repeat(length)));
        assert_eq!(encoding(&mut fixture, "k"), expected, "{length}");
    }
}

/// What LCS and the string limits say when `proto-max-bulk-len` is small; observed on Redis 8.2.3 with 1 MiB.
#[test]
fn c12_strings_stay_below_the_longest_bulk() {
    let mut fixture = Fixture::new();
    fixture.settings.bulk_max = 1 << 20;
    let too_long = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)";
    let too_wide = "-ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len";
    for (command, expected) in [
        ("SETRANGE k 1048575 x", ":1048576 | SETRANGE k 1048575 x"),
        ("SETRANGE k 1048576 x", too_long),
        ("SETRANGE k 9223372036854775807 x", too_long),
        ("SETRANGE none 9223372036854775807 x", too_long),
        ("SETRANGE none 9223372036854775807 \"\"", ":0"),
        ("SETRANGE k 9223372036854775808 x", "-ERR value is not an integer or out of range"),
        ("APPEND k x", too_long),
        ("APPEND k \"\"", ":1048576 | APPEND k"),
        ("STRLEN k", ":1048576"),
        ("SETRANGE one 510 x", ":511 | SETRANGE one 510 x"),
        ("SETRANGE other 510 x", ":511 | SETRANGE other 510 x"),
        ("LCS one other LEN", ":511"),
        ("SETRANGE other 511 x", ":512 | SETRANGE other 511 x"),
        ("LCS one other LEN", too_wide),
        ("LCS none k", too_wide),
    ] {
        assert_eq!(run(&mut fixture, command), expected, "{command}");
    }
}

/// An expired key is no key, even to commands that keep expiries.
#[test]
fn what_has_expired_is_gone_before_it_is_seen() {
    for (command, expected) in [
        ("GET k", "$-1 | DEL k"),
        ("SET k w KEEPTTL", "+OK | DEL k | SET k w KEEPTTL"),
        ("SET k w", "+OK | DEL k | SET k w"),
        ("SET k w XX", "$-1 | DEL k"),
        ("SETNX k w", ":1 | DEL k | SETNX k w"),
        ("INCR k", ":1 | DEL k | INCR k"),
        ("APPEND k w", ":1 | DEL k | APPEND k w"),
        ("INCREX k ENX PXAT 3000000", "*2 :1 :1 | DEL k | SET k 1 PXAT 3000000"),
        ("MSETEX 1 k w KEEPTTL", ":1 | DEL k | SET k w KEEPTTL"),
        ("GETDEL k", "$-1 | DEL k"),
    ] {
        let mut fixture = Fixture::new();
        run(&mut fixture, "SET k 5 PX 100");
        fixture.now_ms += 100;
        assert_eq!(run(&mut fixture, command), expected, "{command}");
        let key = fixture.layout.hasher.key(b"k");
        let shard = fixture.layout.shard_of(&key);
        let expiry = fixture.shards[shard].database(0).get(&key).and_then(|entry| entry.expires_at());
        replay(&fixture);
        assert_eq!(expiry, command.contains("PXAT").then_some(3_000_000), "{command}");
    }
}

/// One command of the model test.
#[derive(Clone, Debug)]
enum Edit {
    Append(Vec<u8>),
    SetRange(usize, Vec<u8>),
    GetRange(i64, i64),
    SetInteger(i64),
}

fn edits() -> impl Strategy<Value = Edit> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..20);
    let offset = || prop_oneof![4 => -40i64..40, 1 => Just(i64::MIN), 1 => Just(i64::MAX), 1 => Just(1i64 << 32)];
    prop_oneof![
        bytes().prop_map(Edit::Append),
        (0usize..60, bytes()).prop_map(|(offset, bytes)| Edit::SetRange(offset, bytes)),
        (offset(), offset()).prop_map(|(start, end)| Edit::GetRange(start, end)),
        any::<i64>().prop_map(Edit::SetInteger),
    ]
}

/// GETRANGE in numbers that cannot overflow.
fn naive_range(value: &[u8], start: i64, end: i64) -> Vec<u8> {
    if start < 0 && end < 0 && start > end {
        return Vec::new();
    }
    let length = value.len() as i128;
    let from_start = |offset: i64| if offset < 0 { (length + i128::from(offset)).max(0) } else { i128::from(offset) };
    let picked = from_start(start)..=from_start(end);
    let bytes = value.iter().enumerate().filter(|(index, _)| picked.contains(&(*index as i128)));
    bytes.map(|(_, byte)| *byte).collect()
}

proptest! {
    #[test]
    fn editing_in_place_is_editing_a_vector(edits in proptest::collection::vec(edits(), 1..40)) {
        let (mut fixture, mut model) = (Fixture::new(), None::<Vec<u8>>);
        for edit in edits {
            let (reply, expected) = match edit {
                Edit::Append(bytes) => {
                    let value = model.get_or_insert_default();
                    value.extend(&bytes);
                    let reply = fixture.run_bytes(append, &[b"APPEND", b"k", &bytes]).0;
                    (reply, format!(":{}\r\n", value.len()).into_bytes())
                }
                Edit::SetRange(offset, bytes) => {
                    if !bytes.is_empty() {
                        let value = model.get_or_insert_default();
                        value.resize(value.len().max(offset + bytes.len()), 0);
                        value[offset..offset + bytes.len()].copy_from_slice(&bytes);
                    }
                    let length = model.as_ref().map_or(0, Vec::len);
                    let words: [&[u8]; 4] = [b"SETRANGE", b"k", &offset.to_string().into_bytes(), &bytes];
                    (fixture.run_bytes(setrange, &words).0, format!(":{length}\r\n").into_bytes())
                }
                Edit::GetRange(start, end) => {
                    let picked = naive_range(model.as_deref().unwrap_or_default(), start, end);
                    let (start, end) = (start.to_string(), end.to_string());
                    let words: [&[u8]; 4] = [b"GETRANGE", b"k", start.as_bytes(), end.as_bytes()];
                    let expected = [format!("${}\r\n", picked.len()).as_bytes(), &picked, b"\r\n"].concat();
                    (fixture.run_bytes(getrange, &words).0, expected)
                }
                Edit::SetInteger(number) => {
                    let text = number.to_string().into_bytes();
                    model = Some(text.clone());
                    (fixture.run_bytes(set, &[b"SET", b"k", &text]).0, b"+OK\r\n".to_vec())
                }
            };
            prop_assert_eq!(reply, expected);
            if let Some(model) = &model {
                let stored = fixture.run_bytes(get, &[b"GET", b"k"]).0;
                prop_assert_eq!(stored, [format!("${}\r\n", model.len()).as_bytes(), model, b"\r\n"].concat());
            }
        }
    }
}

/// Redis 8.2.3 answered so.
#[test]
fn what_is_of_another_type_is_there_all_the_same() {
    let mut fixture = Fixture::new();
    fixture.reply(crate::list::rpush, &["RPUSH", "l", "a"]);
    let wrong_type = "-WRONGTYPE Operation against a key holding the wrong kind of value ";
    assert_eq!(fixture.reply(setrange, &["SETRANGE", "l", "9223372036854775807", "x"]), wrong_type);
    assert_eq!(fixture.reply(set, &["SET", "l", "x", "XX", "GET"]), wrong_type);
    assert_eq!(fixture.reply(set, &["SET", "l", "x", "NX"]), "$-1 ");
    assert_eq!(fixture.reply(set, &["SET", "l", "x", "XX"]), "+OK ");
}
