//! Every cut, every flipped bit and every kind of hole, with and without seals (RELIABILITY D1, D2, D14, D15).

use super::*;
use crate::aof::record::encode;
use proptest::prelude::*;

/// Records as they are compared: database, in a transaction, words.
type Seen = Vec<(u32, bool, Vec<Vec<u8>>)>;

fn read_with(options: Options, bytes: &[u8], chunk: usize) -> (Seen, Result<End, ReplayError>) {
    let mut seen = Seen::new();
    let mut replay = Replay::new(options);
    let mut drain = |replay: &mut Replay| -> Result<(), ReplayError> {
        while let Some(record) = replay.next_record()? {
            let words = record.arguments.from(0).map(<[u8]>::to_vec).collect();
            seen.push((record.database, record.in_transaction, words));
        }
        Ok(())
    };
    for chunk in bytes.chunks(chunk) {
        replay.feed(chunk);
        if let Err(error) = drain(&mut replay) {
            return (seen, Err(error));
        }
    }
    let end = replay.finish();
    let drained = drain(&mut replay);
    (seen, end.and_then(|end| drained.map(|()| end)))
}

fn read(bytes: &[u8]) -> (Seen, Result<End, ReplayError>) {
    read_with(Options::default(), bytes, 61)
}

/// A log of a few groups, and where everything in it ends.
struct Sample {
    bytes: Vec<u8>,
    start_end: usize,
    /// End of each group's seal.
    groups: Vec<usize>,
    /// End of each whole unit, and the records up to there.
    units: Vec<(usize, usize)>,
    records: Seen,
    sealer: Sealer,
}

/// `lag`: how many groups the sync is behind when a group is sealed; 1 is `always`. None: no seals at all.
fn sample(lag: Option<usize>) -> Sample {
    let mut sealer = Sealer::new(77, 0x0123_4567_89ab_cdef);
    let mut bytes = Vec::new();
    if lag.is_some() {
        sealer.write_start(&mut bytes);
    }
    let start_end = bytes.len();
    let mut positions = vec![77];
    let (mut groups, mut units, mut records, mut database) = (Vec::new(), Vec::new(), Seen::new(), 0);
    let lines =
        ["SELECT 3|SET a 1", "MULTI|SET b 22|INCR a|EXEC|SET c 333", "DEL a", "SELECT 0|SET some longer", "SET x y"];
    for group in lines {
        let from = bytes.len();
        let mut in_transaction = false;
        for line in group.split('|') {
            encode(&mut bytes, line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
            match line.split(' ').next().unwrap() {
                "MULTI" => in_transaction = true,
                "EXEC" => in_transaction = false,
                "SELECT" => database = line[7..].parse().unwrap(),
                _ => records.push((database, in_transaction, line.split(' ').map(|word| word.into()).collect())),
            }
            if !in_transaction {
                units.push((bytes.len(), records.len()));
            }
        }
        sealer.absorb(&bytes[from..]);
        if let Some(lag) = lag {
            let synced = positions[positions.len().saturating_sub(lag)];
            sealer.write_seal(&mut bytes, synced);
        }
        positions.push(sealer.position());
        groups.push(bytes.len());
    }
    Sample { bytes, start_end, groups, units, records, sealer }
}

impl Sample {
    /// The records of units that end at `limit` or before.
    fn records_to(&self, limit: usize) -> &[(u32, bool, Vec<Vec<u8>>)] {
        let count = self.units.iter().rev().find(|unit| unit.0 <= limit).map_or(0, |unit| unit.1);
        &self.records[..count]
    }

    /// The end of the last seal at `limit` or before.
    fn sealed_to(&self, limit: usize) -> usize {
        self.groups.iter().copied().rev().find(|&end| end <= limit).unwrap_or(self.start_end)
    }
}

#[test]
fn a_whole_log_in_chunks_of_any_size() {
    for lag in [None, Some(1), Some(3)] {
        let sample = sample(lag);
        for chunk in 1..sample.bytes.len() + 1 {
            let (seen, end) = read_with(Options::default(), &sample.bytes, chunk);
            assert_eq!(seen, sample.records, "chunk {chunk}");
            let end = end.unwrap();
            assert_eq!((end.keep, end.cut), (sample.bytes.len() as u64, None));
            assert_eq!(end.records, sample.records.len() as u64);
            assert_eq!(end.sealer, lag.map(|_| sample.sealer));
            assert_eq!(end.seals, lag.map_or(0, |_| sample.groups.len() as u64));
            let synced = lag.map_or(sample.bytes.len(), |lag| sample.groups[sample.groups.len() - 1 - lag]);
            assert_eq!(end.synced, synced as u64, "what the last seal says");
        }
    }
}

/// A seal whose own sync failed is in the kernel's cache alone, and what it says of others is true all the same.
#[test]
fn d3_a_seal_does_not_vouch_for_itself() {
    let mut sample = sample(Some(1));
    let (position, group_end) = (sample.sealer.position(), sample.bytes.len() as u64);
    assert!(!read(&sample.bytes).1.unwrap().vouched, "its last group may be torn");
    for _ in 0..2 {
        sample.sealer.write_seal(&mut sample.bytes, position);
        let end = read(&sample.bytes).1.unwrap();
        assert_eq!((end.synced, end.vouched, end.keep), (group_end, true, sample.bytes.len() as u64));
    }
    let mut group = b"*1\r\n$4\r\nPING\r\n".to_vec();
    sample.sealer.seal(&mut group, position);
    sample.bytes.extend(group);
    let end = read(&sample.bytes).1.unwrap();
    assert_eq!(
        (end.synced, end.vouched),
        (group_end, false),
        "a group says what was safe before the seals were written"
    );
    let start = &sample.bytes[..sample.start_end];
    assert_eq!(read(start).1.unwrap().synced, 0, "nor does a start line");
}

#[test]
fn d1_every_cut_keeps_the_longest_prefix_of_whole_units() {
    for lag in [None, Some(1), Some(3)] {
        let sample = sample(lag);
        for cut in 0..sample.bytes.len() {
            let (seen, end) = read(&sample.bytes[..cut]);
            let end = end.unwrap();
            assert_eq!(seen, sample.records_to(cut), "cut {cut}");
            assert_eq!(end.keep + end.cut.map_or(0, |cut| cut.dropped), cut as u64);
            // What is kept reads as the same records again, without a cut.
            let (again, kept) = read(&sample.bytes[..end.keep as usize]);
            assert_eq!((again, kept.unwrap().cut), (seen, None), "cut {cut}");
            let strict = Options { load_truncated: false, ..Options::default() };
            let (_, refused) = read_with(strict, &sample.bytes[..cut], 61);
            assert_eq!(refused.is_err(), end.cut.is_some(), "cut {cut}");
        }
    }
}

#[test]
fn d1_a_log_cut_anywhere_can_be_continued() {
    let sample = sample(Some(1));
    for cut in sample.start_end..sample.bytes.len() {
        let mut bytes = sample.bytes[..cut].to_vec();
        let end = read(&bytes).1.unwrap();
        bytes.truncate(end.keep as usize);
        let mut sealer = end.sealer.unwrap();
        let mut group = Vec::new();
        encode(&mut group, [&b"SET"[..], b"after", b"it"]);
        sealer.seal(&mut group, 0);
        bytes.extend_from_slice(&group);
        let (seen, end) = read(&bytes);
        assert_eq!(seen.len(), sample.records_to(cut).len() + 1, "cut {cut}");
        assert_eq!((end.unwrap().cut, end.unwrap().sealed), (None, bytes.len() as u64));
    }
}

#[test]
fn d2_zeros_from_any_byte_on_are_a_torn_tail() {
    for lag in [None, Some(1), Some(3)] {
        let sample = sample(lag);
        for cut in 0..sample.bytes.len() {
            for zeros in [1, 5, 700] {
                let mut bytes = sample.bytes[..cut].to_vec();
                bytes.resize(cut + zeros, 0);
                let (seen, end) = read(&bytes);
                assert_eq!(seen, sample.records_to(cut), "cut {cut} zeros {zeros}");
                let end = end.unwrap();
                assert_eq!(end.keep + end.cut.unwrap().dropped, (cut + zeros) as u64);
            }
        }
    }
}

fn flips(bytes: &[u8]) -> impl Iterator<Item = (usize, Vec<u8>)> {
    (0..bytes.len() * 8).map(|bit| {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        (bit / 8, flipped)
    })
}

#[test]
fn d2_a_flipped_bit_in_always_mode_refuses_but_for_the_last_group() {
    let sample = sample(Some(1));
    let last_group = sample.groups[sample.groups.len() - 2];
    for (at, bytes) in flips(&sample.bytes) {
        let (seen, end) = read(&bytes);
        let sealed = sample.sealed_to(at);
        if at < last_group {
            let error = end.expect_err(&format!("byte {at}"));
            assert!(at < sample.start_end || seen == sample.records_to(sealed), "byte {at}");
            assert!(at < sample.start_end || error.keep() == Some(sealed as u64), "byte {at}: {error}");
        } else {
            let end = end.unwrap_or_else(|error| panic!("byte {at}: {error}"));
            let records_end = sample.units.last().unwrap().0;
            let whole = at >= records_end && seen == sample.records;
            assert!(whole || seen == sample.records_to(sealed), "byte {at}");
            assert!(end.cut.is_some(), "byte {at}");
        }
    }
}

#[test]
fn d2_a_flipped_bit_in_what_was_not_synced_cuts_from_its_group_on() {
    let sample = sample(Some(9));
    for (at, bytes) in flips(&sample.bytes).filter(|(at, _)| *at >= sample.start_end) {
        let (seen, end) = read(&bytes);
        let end = end.unwrap_or_else(|error| panic!("byte {at}: {error}"));
        assert!(end.cut.is_some());
        let whole_tail = at > sample.units.last().unwrap().0 && seen == sample.records;
        assert!(whole_tail || seen == sample.records_to(sample.sealed_to(at)), "byte {at}");
    }
}

#[test]
fn d2_an_idle_seal_protects_the_last_group_too() {
    let mut sample = sample(Some(1));
    sample.sealer.write_seal(&mut sample.bytes, sample.sealer.position());
    let last = *sample.groups.last().unwrap();
    for (at, bytes) in flips(&sample.bytes) {
        let (seen, end) = read(&bytes);
        assert_eq!(end.is_err(), at < last, "byte {at}");
        assert!(at < last || seen == sample.records, "byte {at}");
    }
}

#[test]
fn d2_without_seals_nothing_panics_and_format_damage_is_refused() {
    let sample = sample(None);
    for (at, bytes) in flips(&sample.bytes) {
        let (seen, end) = read(&bytes);
        let before = sample.records_to(at);
        assert_eq!(&seen[..before.len()], before, "byte {at}");
        if sample.bytes[at] == b'*' && at < sample.groups[1] {
            assert!(end.is_err() || bytes[at] == b'#', "byte {at}");
        }
    }
}

#[test]
fn a_missing_sector_ends_a_tail_without_seal() {
    let mut bytes = Vec::new();
    let sealer = Sealer::new(0, 5);
    sealer.write_start(&mut bytes);
    encode(&mut bytes, [&b"SET"[..], b"k", b"v"]);
    let first = bytes.len();
    encode(&mut bytes, [&b"SET"[..], b"big", &[b'x'; 3000]]);
    encode(&mut bytes, [&b"SET"[..], b"l", b"w"]);
    assert_eq!(read(&bytes).0.len(), 3);
    bytes[1024..1536].fill(0);
    let (seen, end) = read(&bytes);
    assert_eq!((seen.len(), end.unwrap().keep), (1, first as u64));
}

#[test]
fn d15_a_file_out_of_place_is_found() {
    let sample = sample(Some(1));
    let wanted = |position, chain| Options { before: Before::At(Sealer::new(position, chain)), ..Options::default() };
    let right = read_with(wanted(77, 0x0123_4567_89ab_cdef), &sample.bytes, 50);
    assert_eq!(right.0, sample.records);
    for options in [wanted(78, 0x0123_4567_89ab_cdef), wanted(77, 1)] {
        let (seen, end) = read_with(options, &sample.bytes, 50);
        assert!(seen.is_empty() && matches!(end, Err(ReplayError::Misplaced { .. })));
    }
}

#[test]
fn d15_a_file_that_went_missing_between_others_is_found() {
    let sample = sample(Some(1));
    let nothing = read(b"").1.unwrap();
    let foreign = read(&self::sample(None).bytes).1.unwrap();
    let (before, after) = (Sealer::new(77, 0x0123_4567_89ab_cdef), Sealer::new(99, 1));
    // Behind a base; behind one that the disk has emptied, another that is ours, or what Redis has written.
    for (ends, wanted, is_right) in [
        (vec![], Before::Unknown, true),
        (vec![nothing], Before::Foreign, false),
        (vec![foreign], Before::Foreign, false),
        (vec![End { sealer: Some(before), ..foreign }, nothing], Before::At(before), true),
        (vec![End { sealer: Some(after), ..foreign }, nothing], Before::At(after), false),
        (vec![End { sealer: Some(before), ..foreign }, foreign], Before::Foreign, false),
    ] {
        let told = ends.iter().fold(Before::Unknown, |before, end| before.then(end));
        assert_eq!(told, wanted);
        let (seen, end) = read_with(Options { before: told, ..Options::default() }, &sample.bytes, 50);
        assert_eq!((seen.is_empty(), end.is_ok()), (!is_right, is_right), "{told:?}");
    }
    let mut begun = Vec::new();
    Sealer::new(0, 5).write_start(&mut begun);
    let behind_foreign = Options { before: Before::Foreign, ..Options::default() };
    assert!(read_with(behind_foreign, &begun, 50).1.is_ok(), "a log that began behind another server's file");
}

#[test]
fn d15_lost_swapped_and_repeated_groups_are_found() {
    let sample = sample(Some(1));
    let mut edges = vec![sample.start_end];
    edges.extend(&sample.groups);
    let group = |index: usize| &sample.bytes[edges[index]..edges[index + 1]];
    for order in [vec![0, 2, 3, 4], vec![0, 2, 1, 3, 4], vec![0, 1, 1, 2, 3], vec![1, 2, 3]] {
        let mut bytes = sample.bytes[..sample.start_end].to_vec();
        order.iter().for_each(|&index| bytes.extend_from_slice(group(index)));
        assert!(matches!(read(&bytes).1, Err(ReplayError::Damaged { reason: Reason::Sum, .. })), "{order:?}");
    }
}

#[test]
fn another_server_may_append_to_our_file_and_we_to_its() {
    let mut sample = sample(Some(1));
    encode(&mut sample.bytes, [&b"SET"[..], b"from", b"redis"]);
    sample.bytes.extend_from_slice(b"#TS:1700000000\r\n");
    let (seen, end) = read(&sample.bytes);
    assert_eq!((seen.len(), end.unwrap().cut), (sample.records.len() + 1, None));
    let small = Options { group_bytes_max: 10, ..Options::default() };
    assert_eq!(read_with(small, &sample.bytes, 7).0, seen);

    let mut foreign = self::sample(None).bytes;
    Sealer::new(0, 9).write_start(&mut foreign);
    let mut group = Vec::new();
    encode(&mut group, [&b"SET"[..], b"ours", b"1"]);
    let mut sealer = Sealer::new(0, 9);
    sealer.seal(&mut group, 0);
    foreign.extend_from_slice(&group);
    let (seen, end) = read(&foreign);
    assert_eq!((seen.len(), end.unwrap().sealer), (sample.records.len() + 1, Some(sealer)));
}

#[test]
fn groups_larger_than_the_limit_are_still_verified() {
    let sample = sample(Some(1));
    let small = || Options { group_bytes_max: 1, ..Options::default() };
    let (seen, end) = read_with(small(), &sample.bytes, 9);
    assert_eq!((seen, end.unwrap().sealer), (sample.records.clone(), Some(sample.sealer)));
    let mut bytes = sample.bytes.clone();
    let value = bytes.windows(2).position(|pair| pair == b"22").unwrap();
    bytes[value] = b'3';
    assert!(read_with(small(), &bytes, 9).1.is_err());
}

#[test]
fn structure_faults_are_named() {
    let reason = |lines: &[&str]| {
        let mut bytes = Vec::new();
        for line in lines {
            encode(&mut bytes, line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
        }
        match read(&bytes).1 {
            Err(ReplayError::Damaged { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(reason(&["EXEC"]), Reason::ExecWithoutMulti);
    assert_eq!(reason(&["MULTI", "multi"]), Reason::NestedMulti);
    assert_eq!(reason(&["SELECT x"]), Reason::Select);
    assert_eq!(reason(&["SELECT 4294967296"]), Reason::Select);
    let mut seal_only = Vec::new();
    Sealer::new(0, 0).write_seal(&mut seal_only, 0);
    assert!(matches!(read(&seal_only).1, Err(ReplayError::Damaged { reason: Reason::NoStart, .. })));
}

#[test]
fn a_huge_record_does_not_cost_its_square() {
    let mut bytes = Vec::new();
    let words = vec![&b"word"[..]; 300_000];
    encode(&mut bytes, words.iter().copied());
    let (seen, _) = read_with(Options::default(), &bytes, 512);
    assert_eq!(seen[0].2.len(), words.len());
}

proptest! {
    #[test]
    fn sealed_content_is_never_replayed_wrong(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(), chunk in 1usize..300, lag in 1usize..5,
    ) {
        let sample = sample(Some(lag));
        let mut bytes = sample.bytes.clone();
        for (at, byte) in damage {
            let at = at.index(bytes.len() - sample.start_end) + sample.start_end;
            bytes[at] = byte;
        }
        // The end stays: a damaged tail that also lost its seal cannot be told from an undamaged one.
        let cut = cut.index(sample.groups.len());
        bytes.truncate(sample.groups[cut]);
        let (seen, end) = read_with(Options::default(), &bytes, chunk);
        prop_assert!(sample.records.starts_with(&seen));
        if let Ok(end) = end {
            prop_assert!(end.keep <= bytes.len() as u64);
        }
    }

    #[test]
    fn any_bytes_are_safe(
        bytes in prop::collection::vec(prop_oneof![
            Just(&b"*1\r\n$5\r\nMULTI\r\n"[..]), Just(&b"*1\r\n$4\r\nEXEC\r\n"[..]), Just(&b"*1\r\n$4\r\nPING\r\n"[..]),
            Just(&b"#SUM:"[..]), Just(&b"#SIMURGH:1:0:0000000000000000:"[..]), Just(&b"\r\n"[..]), Just(&b"\0"[..]), Just(&b"*"[..]),
            Just(&b"#SIMURGH:1:0:0000000000000000:24f2ae23\r\n"[..]),
        ], 0..20),
        chunk in 1usize..50, load_truncated: bool, group_bytes_max in 0usize..100,
    ) {
        let options = Options { load_truncated, group_bytes_max, ..Options::default() };
        let bytes = bytes.concat();
        if let (_, Ok(end)) = read_with(options, &bytes, chunk) {
            prop_assert!(end.keep <= bytes.len() as u64);
        }
    }
}
