//! Requests as text against the table's answers. The expected texts were observed from Redis 8.2.3 (MSETEX, DELEX and the
//! conditions of SET from 8.10.2).

use super::*;
use crate::resp::{Args, Protocol, Range, Reply};
use proptest::prelude::*;

/// Runs `with` on a request of these words.
fn request<T>(words: &[&[u8]], with: impl FnOnce(&Args<'_>) -> T) -> T {
    let mut ranges = Vec::new();
    let mut start = 0;
    for word in words {
        ranges.push(Range { start, length: word.len() as u32 });
        start += word.len() as u32;
    }
    with(&Args::new(&words.concat(), &ranges))
}

/// The error that the words of this line get before any command runs.
fn refused(line: &str) -> String {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    let mut reply = Reply::new(Protocol::Resp2);
    request(&words, resolve).expect_err(line).reply(&mut reply);
    String::from_utf8_lossy(reply.bytes()).trim_end_matches("\r\n").to_string()
}

/// What a `COMMAND` reply to this line is, on one line.
fn answer(line: &str) -> String {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    let mut reply = Reply::new(Protocol::Resp3);
    let done = request(&words, |args| match words[1] {
        b"INFO" => {
            replies::info(args, &mut reply);
            Ok(())
        }
        b"LIST" => replies::list(args, &mut reply),
        b"GETKEYS" => replies::getkeys(args, &mut reply),
        b"GETKEYSANDFLAGS" => replies::getkeysandflags(args, &mut reply),
        _ => {
            replies::docs(args, &mut reply);
            Ok(())
        }
    });
    if let Err(error) = done {
        reply.error(error);
    }
    String::from_utf8_lossy(reply.bytes()).replace("\r\n", " ").trim_end().to_string()
}

#[test]
fn refusals() {
    for (line, expected) in [
        ("foo", "-ERR unknown command 'foo', with args beginning with: "),
        ("FOO a b", "-ERR unknown command 'FOO', with args beginning with: 'a' 'b' "),
        ("foo a\r\nb\0c d", "-ERR unknown command 'foo', with args beginning with: 'a  b' 'd' "),
        ("fo\r\no\0x d", "-ERR unknown command 'fo  o', with args beginning with: 'd' "),
        ("client|list", "-ERR unknown command 'client|list', with args beginning with: "),
        ("GET", "-ERR wrong number of arguments for 'get' command"),
        ("get a b", "-ERR wrong number of arguments for 'get' command"),
        ("CONFIG get", "-ERR wrong number of arguments for 'config|get' command"),
        ("config", "-ERR wrong number of arguments for 'config' command"),
        ("config foo", "-ERR unknown subcommand 'foo'. Try CONFIG HELP."),
        ("Config fo\r\no\0x 1", "-ERR unknown subcommand 'fo  o'. Try CONFIG HELP."),
        ("command nosuch", "-ERR unknown subcommand 'nosuch'. Try COMMAND HELP."),
    ] {
        assert_eq!(refused(line), expected, "{line:?}");
    }
}

#[test]
fn long_refusals_are_cut() {
    let name = "f".repeat(200);
    assert_eq!(refused(&name), format!("-ERR unknown command '{}', with args beginning with: ", &name[..128]));
    let words = format!("foo {} bcd e", "a".repeat(120));
    assert!(refused(&words).ends_with("aaa' 'bcd' "), "the second still fits, then there are 128");
    let words = format!("foo {} {} e", "a".repeat(100), "b".repeat(100));
    assert!(refused(&words).ends_with(&format!("a' '{}' ", "b".repeat(25))));
    let words = format!("config {name}");
    assert_eq!(refused(&words), format!("-ERR unknown subcommand '{}'. Try CONFIG HELP.", &name[..128]));
}

/// The bytes of a name that is no text come back as they are.
#[test]
fn refusals_repeat_any_bytes() {
    let mut reply = Reply::new(Protocol::Resp2);
    request(&[b"f\xff\xfe", b"\x80"], resolve).expect_err("no such name").reply(&mut reply);
    assert_eq!(reply.bytes(), b"-ERR unknown command 'f\xff\xfe', with args beginning with: '\x80' \r\n");
}

#[test]
fn keys_of_requests() {
    for (line, expected) in [
        ("COMMAND GETKEYS get a", "*1 $1 a"),
        ("COMMAND GETKEYS mset a 1 b", "*2 $1 a $1 b"),
        ("COMMAND GETKEYS msetex 2 a b c d", "*2 $1 a $1 c"),
        ("COMMAND GETKEYS msetex 2 a b", "-ERR Invalid arguments specified for command"),
        ("COMMAND GETKEYS msetex 0 a b", "-ERR Invalid arguments specified for command"),
        ("COMMAND GETKEYS msetex 99999999999999 a b", "-ERR Invalid arguments specified for command"),
        ("COMMAND GETKEYS nosuch", "-ERR Invalid command specified"),
        ("COMMAND GETKEYS config nosuch", "-ERR Invalid command specified"),
        ("COMMAND GETKEYS config", "-ERR The command has no key arguments"),
        ("COMMAND GETKEYS ping", "-ERR The command has no key arguments"),
        ("COMMAND GETKEYS get", "-ERR Invalid number of arguments specified for command"),
        ("COMMAND GETKEYS object freq k", "*1 $1 k"),
        ("COMMAND GETKEYSANDFLAGS copy a b", "*2 *2 $1 a ~2 +RO +access *2 $1 b ~2 +OW +update"),
        ("COMMAND GETKEYSANDFLAGS set a 1", "*1 *2 $1 a ~2 +OW +update"),
        ("COMMAND GETKEYSANDFLAGS set a get", "*1 *2 $1 a ~2 +OW +update"),
        ("COMMAND GETKEYSANDFLAGS set a 1 nx GET", "*1 *2 $1 a ~3 +RW +access +update"),
        ("COMMAND GETKEYSANDFLAGS set a 1 ifne x", "*1 *2 $1 a ~2 +RW +update"),
        ("COMMAND GETKEYSANDFLAGS delex a", "*1 *2 $1 a ~2 +RM +delete"),
        ("COMMAND GETKEYSANDFLAGS delex a ifeq x", "*1 *2 $1 a ~2 +RW +delete"),
    ] {
        assert_eq!(answer(line), expected, "{line}");
    }
}

#[test]
fn descriptions() {
    for (line, expected) in [
        (
            "COMMAND INFO memory|purge nosuch",
            "*2 *10 $12 memory|purge :2 ~0 :0 :0 :0 ~1 +@slow ~2 $25 request_policy:all_shards \
             $29 response_policy:all_succeeded ~0 ~0 _",
        ),
        (
            "COMMAND INFO mget",
            "*1 *10 $4 mget :-2 ~2 +readonly +fast :1 :-1 :1 ~3 +@read +@string +@fast ~1 $26 request_policy:multi_shard \
             ~1 %3 $5 flags ~2 +RO +access $12 begin_search %2 $4 type $5 index $4 spec %1 $5 index :1 \
             $9 find_keys %2 $4 type $5 range $4 spec %3 $7 lastkey :-1 $7 keystep :1 $5 limit :0 ~0",
        ),
        ("COMMAND LIST FILTERBY ACLCAT Transaction", "*5 $7 discard $4 exec $5 multi $7 unwatch $5 watch"),
        ("COMMAND LIST FILTERBY PATTERN CLIENT|NO*", "*2 $15 client|no-evict $15 client|no-touch"),
        ("COMMAND LIST FILTERBY MODULE json", "*0"),
        ("COMMAND LIST FILTERBY ACLCAT @read", "*0"),
        ("COMMAND LIST FILTERBY nosuch x", "-ERR syntax error"),
        ("COMMAND LIST FILTERBY PATTERN", "-ERR syntax error"),
        ("COMMAND DOCS nosuch get|x", "%0"),
        (
            "COMMAND DOCS strlen",
            "%1 $6 strlen %5 $7 summary $31 Answers the length of a string. $5 since $5 2.2.0 $5 group $6 string \
             $10 complexity $4 O(1) $9 arguments *1 %4 $4 name $3 key $4 type $3 key $12 display_text $3 key \
             $14 key_spec_index :0",
        ),
    ] {
        assert_eq!(answer(line), expected, "{line}");
    }
}

proptest! {
    /// However many words a request has, both ways to its keys lead to the same words, and none lies outside.
    #[test]
    fn both_ways_to_the_keys_agree(command in 0..Command::COUNT, count in 1..12usize) {
        let spec = top_level().iter().flat_map(|top| std::iter::once(top).chain(top.subcommands))
            .find(|spec| spec.command.is_some_and(|it| it.index() == command)).expect("every number has a row");
        prop_assume!(check_arity(spec, count).is_ok() && spec.has_key_range());
        prop_assume!(spec.has_keys() || spec.keys.is_empty());
        let words = vec![&b"1"[..]; count];
        let found = request(&words, |args| keys(spec, args));
        let range: Vec<usize> = spec.key_range.positions(count).collect();
        // A request may have fewer keys than there are specs: PFMERGE without a source.
        prop_assume!(found.is_ok());
        prop_assert_eq!(Ok(range), found.map(|keys| keys.iter().map(|key| key.index).collect()));
    }

    /// Key extraction meets requests that nobody has checked yet.
    #[test]
    fn no_request_breaks_key_extraction(numbers in "-?[0-9]{0,20}", count in 0..5usize) {
        let mut words = vec![&b"MSETEX"[..], numbers.as_bytes()];
        words.extend(vec![&b"k"[..]; count]);
        let spec = Command::Data(DataCommand::Msetex).spec();
        if let Ok(keys) = request(&words, |args| keys(spec, args)) {
            prop_assert!(!keys.is_empty() && keys.iter().all(|key| key.index < words.len()));
        }
    }
}
