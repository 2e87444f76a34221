//! Sketches against Redis's own bytes, against registers one byte each, and hostile strings.

use super::sketch::{Draft, Encoding, HEADER, Sketch, count};
use super::sparse::Raised;
use super::*;
use crate::fixture::{Fixture, Handler};
use crate::string;
use proptest::prelude::*;

const HEAD: &[u8] = b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80";

fn bytes(fixture: &mut Fixture, handler: Handler, words: &[&[u8]]) -> Vec<u8> {
    fixture.run_bytes(handler, words).0
}

fn set(fixture: &mut Fixture, key: &str, value: &[u8]) {
    assert_eq!(bytes(fixture, string::set, &[b"SET", key.as_bytes(), value]), b"+OK\r\n");
}

/// The bulk string under a key.
fn get(fixture: &mut Fixture, key: &str) -> Vec<u8> {
    let reply = bytes(fixture, string::get, &[b"GET", key.as_bytes()]);
    let start = reply.windows(2).position(|two| two == b"\r\n").expect("a bulk string") + 2;
    reply[start..reply.len() - 2].to_vec()
}

/// Observed on Redis 8.2.3: `PFADD h a b c`, `GET h`.
#[test]
fn a_sketch_has_the_bytes_that_redis_gives_it() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.reply(pfadd, &["PFADD", "h", "a", "b", "c"]), ":1 ");
    let runs = [0x60, 0xf3, 0x80, 0x50, 0xb1, 0x84, 0x4b, 0xfb, 0x80, 0x42, 0x5a];
    assert_eq!(get(&mut fixture, "h"), [HEAD, &runs].concat());
    assert_eq!(
        fixture.reply(pfdebug, &["PFDEBUG", "DECODE", "h"]),
        "$44 Z:8436 v:1,1 Z:4274 v:2,1 Z:3068 v:1,1 Z:603 "
    );
    assert_eq!(fixture.reply(pfcount, &["PFCOUNT", "h"]), ":3 ");
    assert_eq!(get(&mut fixture, "h")[8..HEADER], 3_u64.to_le_bytes(), "the count is kept in the key");
}

#[test]
fn what_changes_a_sketch_is_recorded_and_nothing_else() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.run(pfadd, &["PFADD", "h"]).1, ["PFADD h"]);
    assert!(fixture.run(pfadd, &["PFADD", "h"]).1.is_empty());
    assert_eq!(fixture.run(pfadd, &["PFADD", "h", "a"]).1, ["PFADD h a"]);
    assert!(fixture.run(pfadd, &["PFADD", "h", "a"]).1.is_empty());
    assert_eq!(fixture.run(pfcount, &["PFCOUNT", "h"]).1, ["PFCOUNT h"], "it keeps the count in the key");
    assert!(fixture.run(pfcount, &["PFCOUNT", "h"]).1.is_empty());
    assert!(fixture.run(pfcount, &["PFCOUNT", "h", "h"]).1.is_empty());
    assert_eq!(fixture.run(pfmerge, &["PFMERGE", "d", "h"]).1, ["PFMERGE d h"]);
    assert_eq!(fixture.run(pfdebug, &["PFDEBUG", "TODENSE", "h"]).1, ["PFDEBUG TODENSE h"]);
    assert!(fixture.run(pfdebug, &["PFDEBUG", "TODENSE", "h"]).1.is_empty());
    assert!(fixture.run(pfadd, &["PFADD", "h", "a"]).1.is_empty(), "dense as well");
}

#[test]
fn an_expiry_stays() {
    let mut fixture = Fixture::new();
    fixture.reply(pfadd, &["PFADD", "h", "a"]);
    fixture.reply(crate::expire::pexpireat, &["PEXPIREAT", "h", "2000000"]);
    fixture.reply(pfadd, &["PFADD", "h", "b"]);
    fixture.reply(pfmerge, &["PFMERGE", "h"]);
    fixture.reply(pfcount, &["PFCOUNT", "h"]);
    assert_eq!(fixture.reply(crate::expire::pexpiretime, &["PEXPIRETIME", "h"]), ":2000000 ");
}

#[test]
fn the_limit_decides_when_a_sketch_turns_dense() {
    for (limit, dense) in [(0, true), (26, true), (27, false)] {
        let mut fixture = Fixture::new();
        fixture.settings.packing.hyperloglog_sparse_bytes = limit;
        fixture.reply(pfadd, &["PFADD", "h", "a", "b", "c"]);
        let expected = if dense { "+dense " } else { "+sparse " };
        assert_eq!(fixture.reply(pfdebug, &["PFDEBUG", "ENCODING", "h"]), expected, "{limit}");
        assert_eq!(fixture.reply(pfcount, &["PFCOUNT", "h"]), ":3 ");
    }
}

#[test]
fn the_self_test_passes() {
    assert_eq!(Fixture::new().reply(pfselftest, &["PFSELFTEST"]), "+OK ");
}

/// What a client may have written with SET. Runs that say more than there are registers would write beyond the registers of
/// whoever believes them.
#[test]
fn hostile_strings_are_refused() {
    let no_sketch: [&[u8]; 6] = [
        b"",
        b"HYLL",
        b"HYLL\x01\0\0\0\0\0\0\0\0\0\0",
        b"HYLL\x02\0\0\0\0\0\0\0\0\0\0\x80\x7f\xff",
        b"HYLL\0\0\0\0\0\0\0\0\0\0\0\x80\x7f\xff",
        b"12",
    ];
    let mut long_run = vec![0x7f, 0xff];
    long_run.extend([0xff; 100]);
    let corrupt: [&[u8]; 8] = [
        b"",
        b"\x7f",
        b"\x7f\xfe",
        b"\x7f\xff\x00",
        b"\x7f\xff\x7f\xff",
        b"\x7f\xfb\x00\x87",
        &long_run,
        &[0xff; 5000],
    ];
    let strings = no_sketch.iter().map(|bytes| (bytes.to_vec(), NOT_A_SKETCH));
    let strings = strings.chain(corrupt.iter().map(|runs| ([HEAD, runs].concat(), CORRUPT)));
    for (value, error) in strings {
        let mut fixture = Fixture::new();
        set(&mut fixture, "k", &value);
        let error = format!("-{error} ");
        assert_eq!(fixture.reply(pfcount, &["PFCOUNT", "k"]), error, "{value:?}");
        assert_eq!(fixture.reply(pfcount, &["PFCOUNT", "k", "none"]), error, "{value:?}");
        assert_eq!(fixture.run(pfmerge, &["PFMERGE", "d", "k"]), (error.clone(), vec![]), "{value:?}");
        assert_eq!(fixture.run(pfmerge, &["PFMERGE", "k"]), (error.clone(), vec![]), "{value:?}");
        assert_eq!(fixture.reply(pfdebug, &["PFDEBUG", "TODENSE", "k"]), error, "{value:?}");
        assert_eq!(fixture.reply(pfdebug, &["PFDEBUG", "GETREG", "k"]), error, "{value:?}");
        assert_eq!(get(&mut fixture, "k"), value);
    }
}

/// Elements that fall beyond the runs find the sketch corrupt, and then none is added.
#[test]
fn a_sketch_found_corrupt_half_way_stays_as_it_was() {
    let mut fixture = Fixture::new();
    let half = [HEAD, &[0x5f, 0xff][..]].concat();
    set(&mut fixture, "k", &half);
    let low =
        (0..100).map(|number| number.to_string()).find(|text| place(text.as_bytes()).0 < 8192).expect("there is one");
    let high =
        (0..100).map(|number| number.to_string()).find(|text| place(text.as_bytes()).0 >= 8192).expect("there is one");
    assert_eq!(fixture.run(pfadd, &["PFADD", "k", &low, &high]), (format!("-{CORRUPT} "), vec![]));
    assert_eq!(get(&mut fixture, "k"), half);
}

proptest! {
    /// Whatever was raised in whatever order, both representations hold the registers that plain bytes would hold.
    #[test]
    fn registers_are_what_they_were_raised_to(
        raised in prop::collection::vec((prop_oneof![0..40usize, 0..REGISTERS, REGISTERS - 9..REGISTERS], 1..52u8), 1..200), longest in 0..600usize,
    ) {
        let (mut plain, mut draft) = (Box::new([0; REGISTERS]), Draft::empty(longest));
        for (index, value) in raised {
            prop_assert_eq!(draft.raise(index, value), Ok(plain[index] < value));
            plain[index] = plain[index].max(value);
        }
        let text = draft.finish(true);
        let sketch = Sketch::parse(&text).expect("it has the form");
        prop_assert_eq!(sketch.registers().expect("it is whole"), plain.clone());
        prop_assert!(sketch.encoding() == Encoding::Dense || text.len() <= longest.max(18));
        prop_assert_eq!(dense::registers(&dense::bytes(&plain)), plain);
    }

    /// Any bytes behind a good header: an answer or an error, and what is counted fits what is stored.
    #[test]
    fn any_runs_are_read_safely(mut runs in prop::collection::vec(prop_oneof![Just(0x7f), Just(0xff), any::<u8>()], 0..80), index in 0..REGISTERS, value in 1..60u8) {
        if let Ok(registers) = sparse::registers(&runs) {
            prop_assert_eq!(registers.len(), sparse::runs(&runs).map(|run| run.length).sum::<usize>());
        }
        let before = sparse::registers(&runs);
        match sparse::raise(&mut runs, index, value, 3000) {
            Ok(Raised::Yes) => {
                if let Ok(mut expected) = before {
                    expected[index] = value;
                    prop_assert_eq!(sparse::registers(&runs), Ok(expected));
                }
            }
            Ok(Raised::No | Raised::TooLarge) | Err(_) => prop_assert_eq!(sparse::registers(&runs), before),
        }
    }

    /// Any registers, also those that no element leads to: the estimate ends and is no surprise to arithmetic.
    #[test]
    fn any_registers_have_an_estimate(values in prop::collection::vec(0..64u8, REGISTERS)) {
        let registers: Box<Registers> = values.try_into().expect("there are as many");
        count(&registers);
    }
}

#[test]
fn the_estimate_is_zero_for_nothing_and_ends_for_everything() {
    assert_eq!(count(&[0; REGISTERS]), 0);
    assert_eq!(count(&[51; REGISTERS]), 1 << 63);
    assert_eq!(count(&[63; REGISTERS]), 1 << 63);
}
