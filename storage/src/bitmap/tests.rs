//! Bitmaps against a string of '0' and '1', which is slow and plain; what only a small limit shows; what is recorded.

use super::field_number::{FieldType, Overflow};
use super::*;
use crate::fixture::{Fixture, Handler};
use proptest::prelude::*;

fn text_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:08b}")).collect()
}

fn number(fixture: &mut Fixture, handler: Handler, words: &[&str]) -> i64 {
    let reply = fixture.reply(handler, words);
    reply.trim().trim_start_matches(':').parse().expect("an integer")
}

fn set(fixture: &mut Fixture, key: &str, bytes: &[u8]) {
    fixture.run_bytes(crate::string::set, &[b"SET", key.as_bytes(), bytes]);
}

proptest! {
    #[test]
    fn counting_and_finding_agree_with_text(
        bytes in prop::collection::vec(prop_oneof![Just(0), Just(0xff), any::<u8>()], 1..60), start in 0..500usize, length in 1..500usize,
    ) {
        let text = text_of(&bytes);
        let (start, end) = (start.min(text.len() - 1), (start + length - 1).min(text.len() - 1));
        prop_assume!(start <= end);
        let mut fixture = Fixture::new();
        set(&mut fixture, "k", &bytes);
        let (first, last) = (start.to_string(), end.to_string());
        let count = number(&mut fixture, bitcount, &["BITCOUNT", "k", &first, &last, "BIT"]);
        prop_assert_eq!(count as usize, text[start..=end].matches('1').count());
        for bit in ["0", "1"] {
            let found = number(&mut fixture, bitpos, &["BITPOS", "k", bit, &first, &last, "BIT"]);
            prop_assert_eq!(usize::try_from(found).ok(), text[start..=end].find(bit).map(|at| at + start));
        }
    }

    #[test]
    fn every_operation_agrees_with_bits_counted_one_by_one(keys in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 2..5)) {
        let mut fixture = Fixture::new();
        let names: Vec<String> = (0..keys.len()).map(|index| format!("k{index}")).collect();
        for (name, bytes) in names.iter().zip(&keys) {
            set(&mut fixture, name, bytes);
        }
        let bits = |at: usize| keys.iter().map(move |key| key.get(at / 8).is_some_and(|byte| byte & (0x80 >> (at % 8)) != 0));
        let length = keys.iter().map(Vec::len).max().unwrap_or(0);
        type Rule = fn(first: bool, others: usize, all: usize, keys: usize) -> bool;
        let rules: [(&str, Rule); 7] = [
            ("AND", |_, _, all, keys| all == keys),
            ("OR", |_, _, all, _| all > 0),
            ("XOR", |_, _, all, _| all % 2 == 1),
            ("DIFF", |first, others, _, _| first && others == 0),
            ("DIFF1", |first, others, _, _| !first && others > 0),
            ("ANDOR", |first, others, _, _| first && others > 0),
            ("ONE", |_, _, all, _| all == 1),
        ];
        for (name, rule) in rules {
            let mut words = vec!["BITOP", name, "d"];
            words.extend(names.iter().map(String::as_str));
            prop_assert_eq!(number(&mut fixture, bitop, &words) as usize, length);
            for at in 0..length * 8 {
                let first = bits(at).next().expect("there are keys");
                let all = bits(at).filter(|bit| *bit).count();
                let expected = rule(first, all - usize::from(first), all, keys.len());
                prop_assert_eq!(number(&mut fixture, getbit, &["GETBIT", "d", &at.to_string()]) == 1, expected, "{} at {}", name, at);
            }
        }
    }

    /// A number comes back as it was written, and the bits around it stay.
    #[test]
    fn numbers_lie_where_they_are_written(bytes in prop::collection::vec(any::<u8>(), 30), signed: bool, bits in 1..=64u32, offset in 0..170u64, value: i64) {
        let field = FieldType { signed, bits: if signed { bits } else { bits.min(63) } };
        let mut written = bytes.clone();
        let value = field.fit(value, 0, Overflow::Wrap).expect("it wraps");
        field.write(&mut written, offset, value);
        prop_assert_eq!(field.read(&written, offset), value);
        let (before, after) = (text_of(&bytes), text_of(&written));
        let (start, end) = (offset as usize, offset as usize + field.bits as usize);
        prop_assert_eq!(&before[..start], &after[..start]);
        prop_assert_eq!(&before[end..], &after[end..]);
        let expected = format!("{:064b}", value);
        prop_assert_eq!(&after[start..end], &expected[64 - field.bits as usize..]);
    }

    /// Sums of numbers that fit agree with arithmetic that cannot overflow.
    #[test]
    fn overflow_agrees_with_wide_arithmetic(signed: bool, bits in 1..=63u32, value: i64, increment: i64) {
        let field = FieldType { signed, bits };
        let value = field.fit(value, 0, Overflow::Wrap).expect("it wraps");
        let (least, largest) = if signed { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
        let sum = i128::from(value) + i128::from(increment);
        let saturated = field.fit(value, increment, Overflow::Saturate).map(i128::from);
        prop_assert_eq!(saturated, Some(sum.clamp(least, largest)));
        prop_assert_eq!(field.fit(value, increment, Overflow::Fail).is_some(), (least..=largest).contains(&sum));
        let wrapped = i128::from(field.fit(value, increment, Overflow::Wrap).expect("it wraps"));
        prop_assert_eq!((wrapped - sum).rem_euclid(1 << bits), 0);
        prop_assert!((least..=largest).contains(&wrapped));
    }
}

#[test]
fn offsets_end_where_strings_do() {
    let mut fixture = Fixture::new();
    fixture.settings.bulk_max = 1 << 20;
    assert_eq!(fixture.reply(setbit, &["SETBIT", "k", "8388607", "1"]), ":0 ");
    assert_eq!(fixture.reply(setbit, &["SETBIT", "k", "8388608", "1"]), format!("-{BAD_OFFSET} "));
    assert_eq!(fixture.reply(bitfield, &["BITFIELD", "k", "GET", "u8", "#1048576"]), format!("-{BAD_OFFSET} "));
    assert_eq!(fixture.reply(bitfield, &["BITFIELD", "k", "GET", "u8", "#1048575"]), "*1 :1 ");
}

#[test]
fn only_changes_are_recorded() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.run(setbit, &["SETBIT", "k", "7", "0"]).1, ["SETBIT k 7 0"]);
    assert!(fixture.run(setbit, &["SETBIT", "k", "7", "0"]).1.is_empty());
    assert_eq!(fixture.run(setbit, &["SETBIT", "k", "8", "0"]).1, ["SETBIT k 8 0"]);
    assert!(fixture.run(bitfield, &["BITFIELD", "k", "GET", "u8", "0"]).1.is_empty());
    assert!(fixture.run(bitfield, &["BITFIELD", "k", "SET", "u8", "0", "0"]).1.is_empty());
    assert!(fixture.run(bitfield, &["BITFIELD", "k", "OVERFLOW", "FAIL", "SET", "u8", "0", "256"]).1.is_empty());
    let growing = ["BITFIELD", "k", "OVERFLOW", "FAIL", "SET", "u8", "16", "256"];
    assert_eq!(fixture.run(bitfield, &growing).1, [growing.join(" ")], "the key is longer now");
    assert_eq!(fixture.run(bitop, &["BITOP", "AND", "d", "k"]).1, ["BITOP AND d k"]);
    assert_eq!(fixture.run(bitop, &["BITOP", "AND", "d", "none"]).1, ["BITOP AND d none"]);
    assert!(fixture.run(bitop, &["BITOP", "AND", "d", "none"]).1.is_empty());
}
