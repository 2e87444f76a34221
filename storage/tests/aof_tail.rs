//! The promise about a damaged log, kept to the byte and to the bit: a log as the writer makes it in `always` mode is cut at
//! every byte of its last 64 KiB, and every one of the 524,288 bits there is flipped (RELIABILITY D1, D2).
//!
//! Each trial clones a reader that stands at the front of the damaged group, so the megabytes before it are read once.

use simurgh_storage::Random;
use simurgh_storage::aof::record::encode;
use simurgh_storage::aof::replay::{End, Options, Replay, ReplayError};
use simurgh_storage::aof::seal::Sealer;

/// How much of the log's end is damaged.
const TAIL_BYTES: usize = 64 * 1024;

/// What the log is at least long, so that much of it lies before the tail.
const LOG_BYTES: usize = 160 * 1024;

/// A record as it is compared: its words.
type Words = Vec<Vec<u8>>;

/// Where a group begins: its byte, the records before it, and a reader that has read so far.
struct Group {
    start: usize,
    records: usize,
    reader: Replay,
}

/// A log, and everything that is known about it.
struct Log {
    bytes: Vec<u8>,
    groups: Vec<Group>,
    /// The end of each whole record or transaction, and the records up to there.
    units: Vec<(usize, usize)>,
    records: Vec<Words>,
}

impl Log {
    /// Groups of one to a dozen records or transactions, each synced before the next is sealed.
    fn written(options: &Options) -> Self {
        let mut random = Random::new(20);
        let mut sealer = Sealer::new(0, 0x0123_4567_89ab_cdef);
        let mut log = Self { bytes: Vec::new(), groups: Vec::new(), units: Vec::new(), records: Vec::new() };
        sealer.write_start(&mut log.bytes);
        let mut reader = Replay::new(options.clone());
        let (mut synced, mut fed) = (0, 0);
        while log.bytes.len() < LOG_BYTES {
            reader.feed(&log.bytes[fed..]);
            fed = log.bytes.len();
            while reader.next_record().expect("an undamaged log").is_some() {}
            log.groups.push(Group { start: fed, records: log.records.len(), reader: reader.clone() });
            for _ in 0..=random.below(12) {
                log.push_unit(&mut random);
            }
            sealer.absorb(&log.bytes[fed..]);
            sealer.write_seal(&mut log.bytes, synced);
            synced = sealer.position();
        }
        log
    }

    fn push_unit(&mut self, random: &mut Random) {
        let is_transaction = random.below(4) == 0;
        if is_transaction {
            encode(&mut self.bytes, [&b"MULTI"[..]]);
        }
        for _ in 0..if is_transaction { 1 + random.below(3) } else { 1 } {
            let words = some_record(random, self.records.len());
            encode(&mut self.bytes, words.iter().map(Vec::as_slice).collect::<Vec<_>>());
            self.records.push(words);
        }
        if is_transaction {
            encode(&mut self.bytes, [&b"EXEC"[..]]);
        }
        self.units.push((self.bytes.len(), self.records.len()));
    }

    fn tail(&self) -> usize {
        self.bytes.len() - TAIL_BYTES
    }

    /// The group in which a byte lies.
    fn group_of(&self, at: usize) -> &Group {
        &self.groups[self.groups.partition_point(|group| group.start <= at) - 1]
    }

    fn last_group(&self) -> &Group {
        self.groups.last().expect("there are many")
    }

    /// The end of the last whole unit at `limit` or before, and the records up to there.
    fn whole_units_to(&self, limit: usize) -> (usize, usize) {
        self.units[self.units.partition_point(|unit| unit.0 <= limit) - 1]
    }

    /// Reads `rest` after everything before `group`; how many records of the log count then. Every record must be the one
    /// that was written there.
    fn read(&self, group: &Group, rest: &[u8]) -> (usize, Result<End, ReplayError>) {
        let mut reader = group.reader.clone();
        let mut count = group.records;
        let mut drain = |reader: &mut Replay| -> Result<(), ReplayError> {
            while let Some(record) = reader.next_record()? {
                let written = self.records.get(count).expect("no record that was not written");
                assert!(
                    record.arguments.from(0).eq(written.iter().map(Vec::as_slice)),
                    "record {count} is another one"
                );
                count += 1;
            }
            Ok(())
        };
        reader.feed(rest);
        let fed = drain(&mut reader);
        let end = reader.finish();
        let drained = drain(&mut reader);
        (count, fed.and(end).and_then(|end| drained.map(|()| end)))
    }

    /// Flips every bit of `bytes` and looks at what is made of it.
    fn flip_every_bit(&self, bytes: std::ops::Range<usize>) -> Flipped {
        let mut flipped = Flipped::default();
        let mut rest = Vec::new();
        for at in bytes {
            let group = self.group_of(at);
            rest.clear();
            rest.extend_from_slice(&self.bytes[group.start..]);
            for bit in 0..8 {
                rest[at - group.start] ^= 1 << bit;
                self.judge_flip(at, bit, group, &rest, &mut flipped);
                rest[at - group.start] ^= 1 << bit;
            }
        }
        flipped
    }

    fn judge_flip(&self, at: usize, bit: u32, group: &Group, rest: &[u8], flipped: &mut Flipped) {
        let (count, end) = self.read(group, rest);
        if group.start < self.last_group().start {
            // It was synced before the next group was sealed: no power loss explains it.
            let Err(ReplayError::Damaged { offset, keep, .. }) = end else {
                panic!("bit {bit} of byte {at} is accepted: {end:?}")
            };
            assert_eq!((keep as usize, count), (group.start, group.records), "bit {bit} of byte {at}");
            assert!((keep..self.bytes.len() as u64).contains(&offset), "bit {bit} of byte {at}: noticed at {offset}");
            flipped.refused += 1;
        } else {
            // The last group may be a torn write: none of it counts, or (its seal alone is damaged) all of it.
            let end = end.unwrap_or_else(|error| panic!("bit {bit} of byte {at}: {error}"));
            let (records_end, records) = self.whole_units_to(self.bytes.len());
            let nothing = (end.keep as usize, count) == (group.start, group.records);
            let whole = at >= records_end && (end.keep as usize, count) == (records_end, records);
            assert!(nothing || whole, "bit {bit} of byte {at}: {count} records, {end:?}");
            assert_eq!(end.keep + end.cut.expect("the tail is cut").dropped, self.bytes.len() as u64);
            flipped.cut += 1;
        }
    }
}

/// What became of the flips.
#[derive(Debug, Default)]
struct Flipped {
    refused: usize,
    cut: usize,
}

/// Values that are short, long, or look like a part of a log themselves.
fn some_record(random: &mut Random, number: usize) -> Words {
    let key = format!("key:{}", random.below(50)).into_bytes();
    let value = match random.below(6) {
        0 => b"\r\n*3\r\n$3\r\nSET\r\n".to_vec(),
        1 => b"#SUM:12:12:0123456789abcdef:01234567\r\n".to_vec(),
        2 => vec![0; random.below(40)],
        3 => vec![b'v'; random.below(400)],
        _ => format!("value {number}").into_bytes(),
    };
    match random.below(5) {
        0 => vec![b"INCR".to_vec(), key],
        1 => vec![b"DEL".to_vec(), key],
        _ => vec![b"SET".to_vec(), key, value],
    }
}

#[test]
fn d1_a_log_cut_at_every_byte_of_its_tail_is_its_longest_whole_prefix() {
    let (lenient, strict) = (Options::default(), Options { load_truncated: false, ..Options::default() });
    let (log, refusing) = (Log::written(&lenient), Log::written(&strict));
    for cut in log.tail()..log.bytes.len() {
        let group = log.group_of(cut);
        let (count, end) = log.read(group, &log.bytes[group.start..cut]);
        let end = end.unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
        let (units_end, records) = log.whole_units_to(cut);
        assert_eq!(count, records, "cut at {cut}");
        // A seal that is whole is kept with the group before it.
        let keep = units_end.max(group.start);
        assert_eq!(end.keep as usize, keep, "cut at {cut}");
        assert_eq!(end.cut.map_or(0, |cut| cut.dropped), (cut - keep) as u64);
        let (_, refused) = refusing.read(refusing.group_of(cut), &log.bytes[group.start..cut]);
        assert_eq!(refused.is_err(), cut > keep, "cut at {cut}, aof-load-truncated no");
    }
}

#[test]
fn d2_a_log_with_zeros_from_every_byte_of_its_tail_on_is_its_longest_whole_prefix() {
    let log = Log::written(&Options::default());
    for from in log.tail()..log.bytes.len() {
        let group = log.group_of(from);
        let mut rest = log.bytes[group.start..from].to_vec();
        rest.resize(rest.len() + 700, 0);
        let (count, end) = log.read(group, &rest);
        let end = end.unwrap_or_else(|error| panic!("zeros from {from}: {error}"));
        let (units_end, records) = log.whole_units_to(from);
        assert_eq!((count, end.keep as usize), (records, units_end.max(group.start)), "zeros from {from}");
    }
}

/// The flips, in quarters so that they run beside each other.
fn d2_quarter(number: usize) -> Flipped {
    let log = Log::written(&Options::default());
    let begin = log.tail() + number * TAIL_BYTES / 4;
    let flipped = log.flip_every_bit(begin..begin + TAIL_BYTES / 4);
    assert_eq!(flipped.refused + flipped.cut, 8 * TAIL_BYTES / 4);
    flipped
}

#[test]
fn d2_every_bit_of_the_tails_first_quarter_is_refused_when_flipped() {
    assert_eq!(d2_quarter(0).cut, 0);
}

#[test]
fn d2_every_bit_of_the_tails_second_quarter_is_refused_when_flipped() {
    assert_eq!(d2_quarter(1).cut, 0);
}

#[test]
fn d2_every_bit_of_the_tails_third_quarter_is_refused_when_flipped() {
    assert_eq!(d2_quarter(2).cut, 0);
}

#[test]
fn d2_every_bit_of_the_tails_last_quarter_is_refused_or_cut_when_flipped() {
    let flipped = d2_quarter(3);
    assert!(flipped.cut > 0 && flipped.refused > flipped.cut, "{flipped:?}");
}
