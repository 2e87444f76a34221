//! Whatever commands come between the cut and the end of a snapshot, its file holds what there was at the cut.

use super::{Format, Front, Hint, Piece, Plan, SnapshotFile, Step, Stop, Tour};
use crate::execute::execute;
use crate::fixture::Fixture;
use crate::rdb::read::{Item, Reader};
use crate::rdb::value::write_value;
use crate::rdb::write::Origin;
use crate::{Collection, EntryRef};
use proptest::prelude::*;
use simurgh_protocol::Args;
use simurgh_protocol::command::{Command, Lookup, lookup};
use simurgh_protocol::resp::Range;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Everything that a keyspace holds, in a form that does not depend on how it came to be.
pub(super) type Content = BTreeMap<(usize, Vec<u8>), (Option<i64>, &'static str, Vec<Vec<u8>>)>;

fn value_of(entry: EntryRef<'_>) -> Vec<Vec<u8>> {
    match entry.collection().as_deref() {
        Some(collection @ (Collection::Set(_) | Collection::Hash(_) | Collection::SortedSet(_))) => {
            let mut elements = Vec::new();
            collection.for_each(&mut |parts| elements.push(parts.join(&0)));
            elements.sort();
            elements
        }
        Some(list @ Collection::List(_)) => {
            let mut elements = Vec::new();
            list.for_each(&mut |parts| elements.push(parts.concat()));
            elements
        }
        Some(Collection::Stream(_)) | None => {
            let mut bytes = Vec::new();
            write_value(&mut bytes, entry);
            vec![bytes]
        }
    }
}

pub(super) fn content(fixture: &Fixture) -> Content {
    let mut content = Content::new();
    for shard in &fixture.shards {
        for number in 0..shard.databases() {
            shard.database(number).for_each(|entry| {
                let value = (entry.expires_at(), entry.type_name(), value_of(entry));
                content.insert((number, entry.key().to_vec()), value);
            });
        }
    }
    content
}

/// Runs a line as a command, whatever comes of it.
pub(super) fn run(fixture: &mut Fixture, line: &str) {
    let (mut ranges, mut buffer) = (Vec::new(), Vec::new());
    for word in line.split(' ') {
        ranges.push(Range { start: buffer.len() as u32, length: word.len() as u32 });
        buffer.extend_from_slice(word.as_bytes());
    }
    let args = Args::new(&buffer, &ranges);
    let Lookup::Found(Command::Data(command)) = lookup(args.at(0), args.get(1)) else { panic!("no command: {line}") };
    fixture.with(|cx| execute(command, cx, &args, None));
}

/// Loads a file of either format into an empty keyspace.
pub(super) fn load(format: Format, bytes: &[u8]) -> Fixture {
    let mut loaded = Fixture::new();
    match format {
        Format::Rdb => load_rdb(&mut loaded, bytes),
        Format::Commands => load_commands(&mut loaded, bytes),
    }
    loaded
}

fn load_rdb(loaded: &mut Fixture, bytes: &[u8]) {
    let mut reader = Reader::new();
    reader.feed(bytes);
    reader.finish();
    let source = Fixture::new();
    while let Some(item) = reader.next_item(&source.loading()).expect("the file is whole") {
        let Item::Key { database, key, value, expire_at_ms, .. } = item else { continue };
        let key = source.layout.hasher.key(&key);
        let shard = source.layout.shard_of(&key);
        let database = loaded.shards[shard].database_mut(database as usize);
        assert!(database.get(&key).is_none(), "{} is there twice", key.bytes.escape_ascii());
        database.insert_loaded(&key, value, expire_at_ms, 0);
    }
    assert!(reader.is_ended());
}

fn load_commands(loaded: &mut Fixture, bytes: &[u8]) {
    use crate::aof::replay::{Options, Replay};
    loaded.replaying = true;
    let mut replay = Replay::new(Options::default());
    replay.feed(bytes);
    let mut apply = |replay: &mut Replay| {
        while let Some(record) = replay.next_record().expect("the file is whole") {
            let (mut ranges, mut buffer) = (Vec::new(), Vec::new());
            for word in record.arguments.from(0) {
                ranges.push(Range { start: buffer.len() as u32, length: word.len() as u32 });
                buffer.extend_from_slice(word);
            }
            let args = Args::new(&buffer, &ranges);
            let Lookup::Found(Command::Data(command)) = lookup(args.at(0), args.get(1)) else { panic!("no command") };
            loaded.database = record.database as usize;
            assert!(loaded.with(|cx| execute(command, cx, &args, None)));
        }
    };
    apply(&mut replay);
    replay.finish().expect("the file is whole");
    apply(&mut replay);
}

const STEP: Step = Step { bytes: 200, entries: 3 };

/// A snapshot under way, and its file so far.
pub(super) struct Taking {
    pub plan: Arc<Plan>,
    file: Option<SnapshotFile>,
    piece: Piece,
    bytes: Vec<u8>,
    tour: Tour,
    pub step: Step,
    /// Bytes that the last step wrote.
    pub written: usize,
}

impl Taking {
    pub fn begin(fixture: &mut Fixture, format: Format) -> Self {
        Self::begin_with(fixture, format, usize::MAX)
    }

    /// Begins one for which collections of at least so many bytes are large.
    pub fn begin_with(fixture: &mut Fixture, format: Format, large_bytes: usize) -> Self {
        let plan = Plan::new(format, None, true, &fixture.layout.hasher).with_large_bytes(large_bytes);
        let plan = Arc::new(plan);
        let origin = Origin { version: "8.2.3", created_s: 0, used_memory_bytes: 0, is_aof_base: false };
        let mut hints = Vec::new();
        for database in 0..fixture.layout.databases {
            let sum = |of: &dyn Fn(&crate::Database) -> usize| {
                fixture.shards.iter().map(|shard| of(shard.database(database)) as u64).sum()
            };
            hints.push(Hint {
                database: database as u32,
                keys: sum(&|database| database.len()),
                expires: sum(&|database| database.expiring()),
                hashes_expiring: sum(&|database| database.hashes_expiring()),
            });
        }
        fixture.shards.iter_mut().for_each(|shard| shard.begin_snapshot(&plan));
        let mut bytes = Vec::new();
        let front = Front { origin: &origin, log_position: Some(1), libraries: &[], hints: &hints };
        let file = SnapshotFile::begin(&mut bytes, format, &front);
        Self {
            plan,
            file: Some(file),
            piece: Piece::default(),
            bytes,
            tour: Tour::new(fixture.layout.shards),
            step: STEP,
            written: 0,
        }
    }

    fn write(&mut self) {
        self.written = self.piece.bytes.len();
        self.file.as_mut().expect("it has not ended").absorb(&self.piece.bytes);
        self.bytes.append(&mut self.piece.bytes);
    }

    /// Takes a step; whether there is more to do.
    pub fn step(&mut self, fixture: &mut Fixture) -> bool {
        if self.plan.is_cancelled() {
            // Whatever the file stands in the midst of, nobody goes on with it.
            self.piece = Piece::default();
        }
        if !self.plan.visit_orphans(self.step, &mut self.piece) {
            match self.tour.next(&self.plan, &self.piece) {
                Stop::Shard(index) => {
                    let (shard, tour) = (&mut fixture.shards[index], &mut self.tour);
                    drop(tour.step(shard, self.step, &mut self.piece));
                }
                // What it waits for may be on its way to being freed.
                Stop::Wait => fixture.discarded.clear(),
                Stop::Done => return false,
            }
        }
        self.write();
        true
    }

    pub fn finish(mut self, fixture: &mut Fixture) -> Vec<u8> {
        while self.step(fixture) {}
        self.file.take().expect("it has not ended").end(&mut self.bytes, true);
        assert_eq!((self.plan.held_bytes(), self.plan.open()), (0, 0));
        assert!(fixture.shards.iter().all(|shard| !shard.is_in_snapshot()));
        self.bytes
    }
}

const COMMANDS: &[&str] = &[
    "SET K V",
    "SET K V PX 50",
    "APPEND K V",
    "SETRANGE K 40 V",
    "INCRBY K 7",
    "SETBIT K 99 1",
    "PFADD K V",
    "GETDEL K",
    "GETEX K PX 30",
    "DEL K",
    "UNLINK K K",
    "RENAME K K",
    "RENAMENX K K",
    "COPY K K REPLACE",
    "MOVE K 1",
    "PEXPIRE K 20",
    "PERSIST K",
    "RPUSH K V V V",
    "LPOP K",
    "LSET K 0 V",
    "LINSERT K BEFORE V V",
    "LMOVE K K LEFT RIGHT",
    "SADD K V V 1 2",
    "SREM K V",
    "SPOP K",
    "SMOVE K K V",
    "SINTERSTORE K K K",
    "SUNION K K",
    "SDIFF K K",
    "HSET K V V V V",
    "HDEL K V",
    "HINCRBY K V 3",
    "HPEXPIRE K 25 FIELDS 1 V",
    "HPERSIST K FIELDS 1 V",
    "ZADD K 1 V 2 V",
    "ZINCRBY K 3 V",
    "ZPOPMIN K",
    "ZRANGESTORE K K 0 1",
    "ZUNIONSTORE K 2 K K",
    "XADD K * V V",
    "XTRIM K MAXLEN 2",
    "XGROUP CREATE K V 0",
    "XREADGROUP GROUP V V COUNT 1 STREAMS K >",
    "XADD K MAXLEN 3 * V V",
    "GET K",
    "TYPE K",
    "SORT K ALPHA STORE K",
    "RESTORE K 0 x",
    "FLUSHDB",
    "SWAPDB 0 1",
    "SWAPDB 1 2",
    "FLUSHALL ASYNC",
];

/// What happens in a test.
#[derive(Debug, Clone)]
enum Deed {
    Command { line: String, database: usize },
    Time(i64),
    Step,
}

fn deed() -> impl Strategy<Value = Deed> {
    let word = prop_oneof![Just("a"), Just("b"), Just("c"), Just("d"), Just("e"), Just("f"), Just("g")];
    // The rare ones, at the end, come up as often as one of the others.
    let command = (0..COMMANDS.len(), prop::collection::vec(word, 8), 0..3usize, any::<bool>());
    let command = command.prop_map(|(index, words, database, is_long)| {
        let mut words = words.into_iter();
        let mut line = Vec::new();
        for part in COMMANDS[index].split(' ') {
            line.push(match part {
                "K" => words.next().unwrap_or("a").to_owned(),
                "V" if is_long => words.next().unwrap_or("a").repeat(70),
                "V" => words.next().unwrap_or("a").to_owned(),
                other => other.to_owned(),
            });
        }
        Deed::Command { line: line.join(" "), database }
    });
    prop_oneof![12 => command, 1 => (1..20i64).prop_map(Deed::Time), 3 => Just(Deed::Step)]
}

/// Time passes, and what has expired goes.
pub(super) fn pass(fixture: &mut Fixture, ms: i64) {
    fixture.now_ms += ms;
    for shard in &mut fixture.shards {
        let mut effects = crate::Effects::default();
        crate::expiry::expire_cycle(shard, fixture.now_ms, 3, crate::Class::NONE, &mut effects);
    }
}

fn perform(fixture: &mut Fixture, deed: &Deed, taking: Option<&mut Taking>) {
    match deed {
        Deed::Command { line, database } => {
            fixture.database = *database;
            run(fixture, line);
            fixture.discarded.clear();
        }
        Deed::Time(ms) => pass(fixture, *ms),
        Deed::Step => {
            taking.map(|taking| taking.step(fixture));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn a_snapshot_is_the_keyspace_at_the_cut(
        before in prop::collection::vec(deed(), 0..60),
        during in prop::collection::vec(deed(), 0..80),
        later in prop::collection::vec(deed(), 0..30),
        as_commands: bool,
        gives_up: bool,
        in_steps: bool,
    ) {
        let mut fixture = Fixture::new();
        let large_bytes = if in_steps { 0 } else { usize::MAX };
        let format = if as_commands { Format::Commands } else { Format::Rdb };
        before.iter().for_each(|deed| perform(&mut fixture, deed, None));
        if gives_up {
            // One that is given up leaves nothing behind that could disturb the next.
            let mut taking = Taking::begin_with(&mut fixture, format, large_bytes);
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
        let mut taking = Taking::begin_with(&mut fixture, format, large_bytes);
        during.iter().for_each(|deed| perform(&mut fixture, deed, Some(&mut taking)));
        let written = taking.finish(&mut fixture);
        prop_assert_eq!(content(&load(format, &written)), expected);
        // Nothing of it is left for the next one.
        let expected = content(&fixture);
        let written = Taking::begin(&mut fixture, Format::Rdb).finish(&mut fixture);
        prop_assert_eq!(content(&load(Format::Rdb, &written)), expected);
    }
}

/// A hundred letters that cannot be compressed.
fn noise(seed: u32) -> String {
    let mut state = seed;
    let letter = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'!' + (state >> 24) as u8 % 90)
    };
    (0..100).map(letter).collect()
}

#[test]
fn what_is_handed_over_is_counted_until_it_is_taken() {
    let mut fixture = Fixture::with_shards(1);
    (0..100).for_each(|index| run(&mut fixture, &format!("SET key:{index} {}", noise(index))));
    let taking = Taking::begin(&mut fixture, Format::Rdb);
    (0..50).for_each(|index| run(&mut fixture, &format!("SET key:{index} w")));
    (0..50).for_each(|index| run(&mut fixture, &format!("GET key:{index}")));
    let held = taking.plan.held_bytes();
    assert!((50 * 100..50 * 130).contains(&held), "{held}");
    run(&mut fixture, "FLUSHALL");
    assert!(taking.plan.held_bytes() > held + 50 * 100);
    assert_eq!(fixture.shards[0].keys(), 0);
    let plan = taking.plan.clone();
    let written = taking.finish(&mut fixture);
    assert_eq!((plan.held_bytes(), plan.keys()), (0, 100));
    assert_eq!(content(&load(Format::Rdb, &written)).len(), 100);
}

/// The mark of one snapshot is no mark for the next, and what comes to be in between belongs to neither.
#[test]
fn snapshots_follow_each_other() {
    let mut fixture = Fixture::new();
    for round in 0..5 {
        run(&mut fixture, &format!("SET before:{round} x"));
        let expected = content(&fixture);
        let taking = Taking::begin(&mut fixture, Format::Rdb);
        run(&mut fixture, &format!("SET during:{round} x"));
        run(&mut fixture, &format!("RENAME before:{round} moved:{round}"));
        let written = taking.finish(&mut fixture);
        assert_eq!(content(&load(Format::Rdb, &written)), expected);
    }
}
