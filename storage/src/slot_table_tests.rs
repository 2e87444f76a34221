//! Tests of the slot table against a plain map, with full chains, growth and shrinking in the middle of a scan.

use super::*;
use crate::entry::Encoding;
use crate::string_value::Value;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// A poor hash, so that tags collide and chains grow long: three bits of bucket, two of tag.
fn poor_hash(key: u16) -> u64 {
    u64::from(key % 5) | (u64::from(key % 3) << 42)
}

fn good_hash(key: u16) -> u64 {
    u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn run(operations: &[(bool, u16)], hash: fn(u16) -> u64) {
    let (mut table, mut model) = (SlotTable::default(), BTreeMap::new());
    for (step, (insert, key)) in operations.iter().enumerate() {
        let bytes = key.to_be_bytes();
        let place = table.find(hash(*key), &bytes);
        assert_eq!(place.is_some(), model.contains_key(key));
        match (insert, place) {
            (true, None) => {
                let entry = Entry::new(&bytes, Value::Int(step as i64), Encoding::Int, None, 0);
                let place = table.insert(hash(*key), entry);
                assert_eq!(table.view(place).key(), bytes);
                model.insert(*key, step as i64);
            }
            (true, Some(place)) => {
                table.change(place, |entry| entry.set_value(Value::Int(step as i64), Encoding::Int));
                model.insert(*key, step as i64);
            }
            (false, Some(place)) => {
                table.remove(place).free();
                model.remove(key);
            }
            (false, None) => {}
        }
        assert_eq!(table.len(), model.len());
    }
    let mut seen = BTreeMap::new();
    table.for_each(|entry| {
        let Value::Int(value) = entry.string().unwrap() else { panic!("integers went in") };
        let key = u16::from_be_bytes(entry.key().try_into().expect("two bytes"));
        assert!(seen.insert(key, value).is_none());
    });
    assert_eq!(seen, model);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

    #[test]
    fn behaves_as_a_map(operations in proptest::collection::vec((prop::bool::weighted(0.7), 0u16..200), 0..600)) {
        run(&operations, good_hash);
        run(&operations, poor_hash);
    }

    /// What is there from the first call to the last is returned, whatever else comes and goes.
    #[test]
    fn scan_keeps_its_promise(before in 1u16..300, changes in proptest::collection::vec((any::<bool>(), 300u16..900), 0..400)) {
        let mut table = SlotTable::default();
        let add = |table: &mut SlotTable, key: u16| {
            if table.find(good_hash(key), &key.to_be_bytes()).is_none() {
                table.insert(good_hash(key), Entry::new(&key.to_be_bytes(), Value::Int(0), Encoding::Int, None, 0));
            }
        };
        (0..before).for_each(|key| add(&mut table, key));
        let (mut seen, mut cursor, mut changes) = (BTreeSet::new(), 0, changes.chunks(3));
        loop {
            cursor = table.scan(cursor, |entry| {
                seen.insert(u16::from_be_bytes(entry.key().try_into().expect("two bytes")));
            });
            if cursor == 0 {
                break;
            }
            for (insert, key) in changes.next().unwrap_or(&[]) {
                if *insert {
                    for more in 0..20 {
                        add(&mut table, key + more);
                    }
                } else if let Some(place) = table.find(good_hash(*key), &key.to_be_bytes()) {
                    table.remove(place).free();
                }
            }
        }
        prop_assert!((0..before).all(|key| seen.contains(&key)));
    }
}
