//! Whatever happens to large collections between the cut and the end of a snapshot, its file holds what there was at the cut; and
//! no command hands over more than the elements near those that it changes.

use super::tests::{Content, Taking, content, load, pass, run};
use super::{Format, Step};
use crate::fixture::Fixture;
use proptest::prelude::*;

/// What happens to collections: K is a key, N is an element out of some dozens, and N* several.
const COMMANDS: &[&str] = &[
    "HSET K N N",
    "HSET K N N N N N N N N N N",
    "HDEL K N N N",
    "HINCRBYFLOAT K N 1.5",
    "HPEXPIRE K 25 FIELDS 2 N N",
    "HPERSIST K FIELDS 1 N",
    "HGETDEL K FIELDS 1 N",
    "SADD K N",
    "SADD K N N N N N N N N",
    "SREM K N N N",
    "SPOP K",
    "SPOP K 12",
    "SPOP K 1000",
    "SMOVE K K N",
    "SUNIONSTORE K K K",
    "SDIFFSTORE K K K",
    "ZADD K 1 N",
    "ZADD K 1 N 2 N 3 N 4 N 5 N 2 N 7 N",
    "ZINCRBY K 3 N",
    "ZREM K N N N",
    "ZPOPMIN K 3",
    "ZPOPMAX K 3",
    "ZREMRANGEBYRANK K 2 9",
    "ZUNIONSTORE K 2 K K",
    "RPUSH K N",
    "RPUSH K N N N N N N N N N N",
    "LPUSH K N N N N",
    "LPOP K 3",
    "RPOP K 3",
    "LSET K 7 N",
    "LSET K -5 N",
    "LINSERT K BEFORE N N",
    "LINSERT K AFTER N N",
    "LREM K 0 N",
    "LREM K -2 N",
    "LTRIM K 2 -3",
    "LTRIM K 9 20",
    "LMOVE K K LEFT RIGHT",
    "XADD K * N N",
    "XADD K * N N N N",
    "XADD K MAXLEN 9 * N N",
    "XTRIM K MAXLEN 12",
    "XTRIM K MINID 1000003",
    "XDEL K 1000000-0 1000001-0 1000002-1",
    "XSETID K 99999999-5",
    "XGROUP CREATE K g 0",
    "XREADGROUP GROUP g c COUNT 3 STREAMS K >",
    "XACK K g 1000000-0 1000001-0",
    "DEL K",
    "UNLINK K K",
    "SET K N",
    "SET K N KEEPTTL",
    "RENAME K K",
    "RENAME K K",
    "RENAME K K",
    "COPY K K REPLACE",
    "MOVE K 1",
    "MOVE K 0",
    "SWAPDB 0 1",
    "PEXPIRE K 20",
    "PERSIST K",
    "GETDEL K",
    "SORT K ALPHA STORE K",
    "FLUSHDB",
];

/// What happens in a test.
#[derive(Debug, Clone)]
enum Deed {
    Command { line: String, database: usize, is_freed: bool },
    Time(i64),
    Step,
}

/// Keys by type: a command of one type finds one of its own more often than not.
fn key_for(command: &str, choice: usize) -> String {
    let own = match command.as_bytes()[0] {
        b'H' => 'h',
        b'S' if !command.starts_with("SET") && !command.starts_with("SORT") => 's',
        b'Z' => 'z',
        b'L' | b'R' if !command.starts_with("RENAME") => 'l',
        b'X' => 'x',
        _ => ['h', 's', 'z', 'l', 'x'][choice % 5],
    };
    format!("{own}{}", choice / 5 % 3)
}

fn deed() -> impl Strategy<Value = Deed> {
    // The last are as frequent as the others, though some of them end what the others build.
    let command = (0..COMMANDS.len(), prop::collection::vec(0..60usize, 16), 0..2usize, any::<bool>());
    let command = command.prop_map(|(index, choices, database, is_freed)| {
        let mut choices = choices.into_iter();
        let mut next = || choices.next().unwrap_or(0);
        let words = COMMANDS[index].split(' ').map(|part| match part {
            "K" => key_for(COMMANDS[index], next()),
            "N" => format!("element:{}{}", next(), "x".repeat(next() % 40)),
            other => other.to_owned(),
        });
        Deed::Command { line: words.collect::<Vec<_>>().join(" "), database, is_freed }
    });
    prop_oneof![20 => command, 1 => (1..20i64).prop_map(Deed::Time), 6 => Just(Deed::Step)]
}

fn perform(fixture: &mut Fixture, deed: &Deed, taking: Option<&mut Taking>) {
    match deed {
        Deed::Command { line, database, is_freed } => {
            fixture.database = *database;
            run(fixture, line);
            if *is_freed {
                fixture.discarded.clear();
            }
        }
        Deed::Time(ms) => pass(fixture, *ms),
        Deed::Step => {
            taking.map(|taking| taking.step(fixture));
        }
    }
}

/// A keyspace whose collections become structures with their third element.
fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    let packing = &mut fixture.settings.packing;
    (packing.hash_entries, packing.set_entries, packing.set_integers, packing.sorted_set_entries) = (2, 2, 2, 2);
    (packing.list_size, packing.stream_node_entries) = (3, 3);
    fixture
}

/// Something in every key, in both databases.
fn fill(fixture: &mut Fixture) {
    for number in 0..3 {
        fixture.database = number % 2;
        for at in 0..40 {
            run(fixture, &format!("HSET h{number} element:{at} {at}"));
            run(fixture, &format!("SADD s{number} element:{at}"));
            run(fixture, &format!("ZADD z{number} {} element:{at}", at % 7));
            run(fixture, &format!("RPUSH l{number} element:{}", at % 9));
            run(fixture, &format!("XADD x{number} {}-{} element:{at} {at}", 1_000_000 + at / 2, at % 2));
        }
    }
}

fn taken(fixture: &mut Fixture, taking: Taking) -> Content {
    content(&load(Format::Rdb, &taking.finish(fixture)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 100 }))]
    #[test]
    fn a_snapshot_is_the_collections_at_the_cut(
        before in prop::collection::vec(deed(), 0..40),
        during in prop::collection::vec(deed(), 0..120),
        later in prop::collection::vec(deed(), 0..40),
        gives_up: bool,
        as_commands: bool,
    ) {
        let format = if as_commands { Format::Commands } else { Format::Rdb };
        let mut fixture = fixture();
        fill(&mut fixture);
        before.iter().for_each(|deed| perform(&mut fixture, deed, None));
        if gives_up {
            let mut taking = Taking::begin_with(&mut fixture, format, 0);
            for (index, deed) in later.iter().enumerate() {
                perform(&mut fixture, deed, Some(&mut taking));
                if index == later.len() / 2 {
                    taking.plan.cancel();
                }
            }
            taking.plan.cancel();
            taking.finish(&mut fixture);
        }
        let expected = content(&fixture);
        let mut taking = Taking::begin_with(&mut fixture, format, 0);
        during.iter().for_each(|deed| perform(&mut fixture, deed, Some(&mut taking)));
        prop_assert_eq!(content(&load(format, &taking.finish(&mut fixture))), expected);
        // Nothing of it is left for the next one.
        let expected = content(&fixture);
        let taking = Taking::begin_with(&mut fixture, Format::Rdb, 0);
        prop_assert_eq!(taken(&mut fixture, taking), expected);
    }
}

/// One collection of so many elements under the key `k`.
fn large(kind: &str, count: usize) -> Fixture {
    let mut fixture = Fixture::with_shards(1);
    for number in 0..count {
        let line = match kind {
            "hash" => format!("HSET k field:{number} {number}"),
            "set" => format!("SADD k member:{number}"),
            "zset" => format!("ZADD k {} member:{number}", number % 100),
            "list" => format!("RPUSH k element:{number}"),
            _ => format!("XADD k {}-1 field {number}", number + 1),
        };
        run(&mut fixture, &line);
    }
    fixture
}

/// Elements that are added, changed and removed by the thousand while they are visited: tables split and shrink.
#[test]
fn tables_that_split_and_shrink_are_seen_as_they_were() {
    for (kind, add, remove) in [
        ("hash", "HSET k field:# x", "HDEL k field:#"),
        ("set", "SADD k member:#", "SREM k member:#"),
        ("zset", "ZADD k 7 member:#", "ZREM k member:#"),
    ] {
        for grows in [true, false] {
            let mut fixture = large(kind, 4000);
            let expected = content(&fixture);
            let mut taking = Taking::begin_with(&mut fixture, Format::Rdb, 1 << 16);
            for number in 0..4000usize {
                let at = if grows { 2000 + number * 2 } else { number * 7 % 4000 };
                run(&mut fixture, &if grows { add } else { remove }.replace('#', &at.to_string()));
                if number % 3 == 0 {
                    taking.step(&mut fixture);
                }
            }
            assert_eq!(taken(&mut fixture, taking), expected, "{kind}, {grows}");
        }
    }
}

/// The longest that a visit's step or a change's part in a snapshot can be: not by the collection's size, but by a group or node.
#[test]
fn a_step_and_a_change_are_bounded_whatever_the_size() {
    for (kind, change) in KINDS_AND_CHANGES {
        let mut fixture = large(kind, 20_000);
        let mut taking = Taking::begin_with(&mut fixture, Format::Rdb, 1 << 16);
        taking.step = Step { bytes: 2000, entries: 64 };
        let mut before = 0;
        for number in 0..300 {
            run(&mut fixture, &change.replace('#', &(number * 61 + 5).to_string()));
            let held = taking.plan.held_bytes();
            assert!(held - before < HANDED_BYTES_MAX, "{kind}: {} bytes handed over", held - before);
            taking.step(&mut fixture);
            assert!(taking.written < (12 << 10) + held as usize, "{kind}: {} bytes written at once", taking.written);
            before = taking.plan.held_bytes();
        }
        taking.finish(&mut fixture);
    }
}

/// A command that changes one element of each kind, and what it may cost: a group of a table, a node of a list or a stream.
const KINDS_AND_CHANGES: [(&str, &str); 7] = [
    ("hash", "HSET k field:# x"),
    ("set", "SREM k member:#"),
    ("zset", "ZADD k 7 member:#"),
    ("list", "LSET k # x"),
    ("list", "LPOP k"),
    ("stream", "XADD k * a b"),
    ("stream", "XDEL k #-1"),
];
const HANDED_BYTES_MAX: u64 = 12 << 10;
