//! A clock that jumps while the server is down (RELIABILITY D17): what the log decided stays decided, moments stay what they were, and
//! nothing but the clock's own present tells whether a key is there.

use simurgh_protocol::Reply;
use simurgh_protocol::command::{Command, Lookup, lookup};
use simurgh_protocol::config::Settings as Configured;
use simurgh_protocol::resp::{Args, Range};
use simurgh_storage::access::AccessPolicy;
use simurgh_storage::aof::record::encode;
use simurgh_storage::aof::replay::{Options, Replay};
use simurgh_storage::{Class, Context, Effects, KeyHasher, Layout, Random, Settings, Shard};

/// When the log was written.
const THEN_MS: i64 = 1_800_000_000_000;
const HOUR_MS: i64 = 3_600_000;

struct Node {
    layout: Layout,
    settings: Settings,
    shards: Vec<Shard>,
}

impl Node {
    fn new() -> Self {
        let config = Configured::default().config();
        let layout = Layout { shards: 4, databases: 1, hasher: KeyHasher::new(3) };
        let settings = Settings {
            access: AccessPolicy::Lru,
            bulk_max: config.proto_max_bulk_bytes,
            lazy_flush: true,
            packing: config.packing.clone(),
            events: Class::of_letters(b""),
        };
        let shards = Shard::all(&layout);
        Self { layout, settings, shards }
    }

    /// Runs a command at `now_ms`; its reply and what it logs.
    fn run(&mut self, args: &Args<'_>, now_ms: i64, replaying: bool) -> (Vec<u8>, Vec<u8>) {
        let Lookup::Found(Command::Data(command)) = lookup(args.at(0), args.get(1)) else { panic!("a data command") };
        let (mut reply, mut effects, mut discarded) = (Reply::default(), Effects::new(true), Vec::new());
        let mut random = Random::new(1);
        let mut cx = Context {
            reply: &mut reply,
            effects: &mut effects,
            database: 0,
            now_ms,
            settings: &self.settings,
            layout: &self.layout,
            random: &mut random,
            first_hash: None,
            no_touch: false,
            may_block: false,
            in_script: false,
            replaying,
            discarded: &mut discarded,
            shards: &mut self.shards,
        };
        assert!(simurgh_storage::execute(command, &mut cx, args, None));
        let logged = effects.runs().flat_map(|(_, bytes)| bytes.to_vec()).collect();
        (reply.bytes().to_vec(), logged)
    }

    fn ask(&mut self, words: &[&str], now_ms: i64) -> (Vec<u8>, Vec<u8>) {
        let (mut bytes, mut ranges) = (Vec::new(), Vec::new());
        for word in words {
            ranges.push(Range { start: bytes.len() as u32, length: word.len() as u32 });
            bytes.extend_from_slice(word.as_bytes());
        }
        self.run(&Args::new(&bytes, &ranges), now_ms, false)
    }

    /// A node that starts with `log` when its clock says `now_ms`.
    fn started_with(log: &[u8], now_ms: i64) -> Self {
        let mut node = Self::new();
        let mut replay = Replay::new(Options::default());
        replay.feed(log);
        while let Some(record) = replay.next_record().expect("the log is good") {
            node.run(&record.arguments, now_ms, true);
        }
        node
    }
}

/// A log of keys and fields that live for so many milliseconds, and of one whose end it has already seen.
fn log() -> Vec<u8> {
    let mut node = Node::new();
    let mut log = Vec::new();
    for (words, now_ms) in [
        (&["SET", "brief", "v", "PX", "60000"][..], THEN_MS),
        (&["SET", "long", "v", "PX", "36000000"], THEN_MS),
        (&["SET", "ended", "v", "PX", "5"], THEN_MS),
        (&["HSET", "hash", "stays", "1", "brief", "2"], THEN_MS),
        (&["HPEXPIRE", "hash", "60000", "FIELDS", "1", "brief"], THEN_MS),
        // Whoever meets an expired key removes it, and that is in the log.
        (&["GET", "ended"], THEN_MS + 10),
    ] {
        log.extend(node.ask(words, now_ms).1);
    }
    let mut deletion = Vec::new();
    encode(&mut deletion, [&b"DEL"[..], b"ended"]);
    assert!(log.ends_with(&deletion), "{}", log.escape_ascii());
    log
}

#[test]
fn d17_what_the_log_decided_stays_decided_wherever_the_clock_goes() {
    for jump_ms in [-HOUR_MS, 0, HOUR_MS] {
        let now_ms = THEN_MS + jump_ms;
        let mut node = Node::started_with(&log(), now_ms);
        assert_eq!(node.ask(&["EXISTS", "ended"], now_ms).0, b":0\r\n", "{jump_ms}: an expired key is back");
        let moment = format!(":{}\r\n", THEN_MS + 36_000_000);
        assert_eq!(node.ask(&["PEXPIRETIME", "long"], now_ms).0, moment.as_bytes(), "{jump_ms}: a moment moved");
        let brief = if jump_ms < 60_000 { format!(":{}\r\n", THEN_MS + 60_000) } else { ":-2\r\n".into() };
        assert_eq!(node.ask(&["PEXPIRETIME", "brief"], now_ms).0, brief.as_bytes(), "{jump_ms}");
        let field = if jump_ms < 60_000 { b":1\r\n" } else { b":0\r\n" };
        assert_eq!(node.ask(&["HEXISTS", "hash", "brief"], now_ms).0, field, "{jump_ms}");
    }
}

/// A start with a clock that is an hour ahead, and then one with the right clock: what the first did not touch is there again, as
/// nothing was decided about it; what it met, it removed, and that is in the log.
#[test]
fn d17_a_start_with_a_wrong_clock_decides_only_what_it_logs() {
    let mut written = log();
    let mut ahead = Node::started_with(&written, THEN_MS + HOUR_MS);
    let (reply, logged) = ahead.ask(&["GET", "brief"], THEN_MS + HOUR_MS);
    assert_eq!(reply, b"$-1\r\n");
    written.extend(logged);
    let mut right = Node::started_with(&written, THEN_MS + 20);
    assert_eq!(right.ask(&["EXISTS", "brief"], THEN_MS + 20).0, b":0\r\n", "what was told to a client is undone");
    assert_eq!(right.ask(&["HLEN", "hash"], THEN_MS + 20).0, b":2\r\n");
    assert_eq!(right.ask(&["EXISTS", "long"], THEN_MS + 20).0, b":1\r\n");
}
