//! A keyspace to run handlers against in unit tests: several shards, a clock that the test sets, replies and records as text.

use crate::access::AccessPolicy;
use crate::blocking::Block;
use crate::context::{Context, Settings};
use crate::database::Discarded;
use crate::effects::Effects;
use crate::key_hash::KeyHasher;
use crate::notify::Class;
use crate::random::Random;
use crate::rdb::value::Loading;
use crate::shard::{Layout, Shard};
use simurgh_protocol::resp::{Protocol, Range};
use simurgh_protocol::{Args, CommandError, Reply};

/// A command's function.
pub(crate) type Handler = fn(&mut Context<'_>, &Args<'_>) -> Result<(), CommandError>;

/// Shards, clock and settings of a test.
pub(crate) struct Fixture {
    pub layout: Layout,
    pub shards: Vec<Shard>,
    pub now_ms: i64,
    pub database: usize,
    pub protocol: Protocol,
    pub settings: Settings,
    pub random: Random,
    pub discarded: Vec<Discarded>,
    pub replaying: bool,
    /// The keyspace stands still.
    pub keeps_expired: bool,
    pub may_block: bool,
    /// How the last command wanted to wait.
    pub block: Option<Block>,
    /// The events of the command that ran last.
    pub events: Vec<crate::Event>,
    /// Every record so far, in order, as its words.
    pub log: Vec<Vec<Vec<u8>>>,
}

impl Fixture {
    pub fn new() -> Self {
        Self::with_shards(4)
    }

    pub fn with_shards(shards: usize) -> Self {
        let layout = Layout { shards, databases: 16, hasher: KeyHasher::new(42) };
        Self {
            shards: Shard::all(&layout),
            layout,
            now_ms: 1_000_000,
            database: 0,
            protocol: Protocol::Resp2,
            settings: Settings {
                access: AccessPolicy::Lru,
                bulk_max: 512 << 20,
                lazy_flush: false,
                packing: simurgh_protocol::config::Settings::default().config().packing,
                events: Class::NONE,
            },
            random: Random::new(7),
            discarded: Vec::new(),
            replaying: false,
            keeps_expired: false,
            may_block: true,
            block: None,
            events: Vec::new(),
            log: Vec::new(),
        }
    }

    /// What values are built with.
    pub fn loading(&self) -> Loading<'_> {
        Loading {
            packing: &self.settings.packing,
            hasher: &self.layout.hasher,
            string_bytes_max: crate::rdb::string::STRING_BYTES_MAX,
        }
    }

    /// Runs a handler and gives the reply and the records, CR LF shown as a blank: `("+OK ", ["SET k v"])`.
    pub fn run(&mut self, handler: Handler, words: &[&str]) -> (String, Vec<String>) {
        let (reply, log) = self.run_bytes(handler, &words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
        (String::from_utf8_lossy(&reply).replace("\r\n", " "), log)
    }

    /// As `run`, for a test that only looks at the reply.
    pub fn reply(&mut self, handler: Handler, words: &[&str]) -> String {
        self.run(handler, words).0
    }

    pub fn run_bytes(&mut self, handler: Handler, words: &[&[u8]]) -> (Vec<u8>, Vec<String>) {
        let mut ranges = Vec::new();
        let mut buffer = Vec::new();
        for word in words {
            ranges.push(Range { start: buffer.len() as u32, length: word.len() as u32 });
            buffer.extend_from_slice(word);
        }
        let args = Args::new(&buffer, &ranges);
        let (mut reply, mut effects) = (Reply::new(self.protocol), Effects::default());
        effects.recording = true;
        effects.keeps_expired = self.keeps_expired;
        effects.begin();
        let mut cx = Context {
            reply: &mut reply,
            effects: &mut effects,
            database: self.database,
            now_ms: self.now_ms,
            settings: &self.settings,
            layout: &self.layout,
            random: &mut self.random,
            first_hash: None,
            no_touch: false,
            may_block: self.may_block,
            in_script: false,
            replaying: self.replaying,
            discarded: &mut self.discarded,
            shards: &mut self.shards,
        };
        if let Err(error) = handler(&mut cx, &args) {
            reply.truncate(0);
            error.reply(&mut reply);
        }
        self.block = effects.block.take();
        effects.finish(self.database, None, args.from(0));
        self.log.extend(record_words(&effects));
        self.events = std::mem::take(&mut effects.events);
        (reply.bytes().to_vec(), records(&effects))
    }
}

impl Fixture {
    /// Gives `with` a context, whose reply and records are forgotten.
    pub fn with<R>(&mut self, with: impl FnOnce(&mut Context<'_>) -> R) -> R {
        let (mut reply, mut effects) = (Reply::new(self.protocol), Effects::default());
        with(&mut Context {
            reply: &mut reply,
            effects: &mut effects,
            database: self.database,
            now_ms: self.now_ms,
            settings: &self.settings,
            layout: &self.layout,
            random: &mut self.random,
            first_hash: None,
            no_touch: false,
            may_block: true,
            in_script: false,
            replaying: self.replaying,
            discarded: &mut self.discarded,
            shards: &mut self.shards,
        })
    }
}

/// The records as text, words separated by blanks.
pub(crate) fn records(effects: &Effects) -> Vec<String> {
    record_words(effects).iter().map(|words| String::from_utf8_lossy(&words.join(&b' ')).into_owned()).collect()
}

/// The records, each as its words, without the MULTI and EXEC around those that belong together (tested in `effects.rs`).
fn record_words(effects: &Effects) -> Vec<Vec<Vec<u8>>> {
    use simurgh_protocol::resp::decode::{Value, decode};
    let mut records = Vec::new();
    for (_, mut bytes) in effects.runs() {
        while let Ok(Some((Value::Array(words), length))) = decode(bytes) {
            let words = words.into_iter().map(|word| {
                let Value::Bulk(bytes) = word else { panic!("a record is made of strings, not {word:?}") };
                bytes.to_vec()
            });
            records.push(words.collect());
            bytes = &bytes[length..];
        }
    }
    records.retain(|words: &Vec<Vec<u8>>| !(words.len() == 1 && (words[0] == b"MULTI" || words[0] == b"EXEC")));
    records
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::string;

    #[test]
    fn a_command_replies_and_is_recorded_once() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.run(string::setnx, &["SETNX", "k", "v"]), (":1 ".into(), vec!["SETNX k v".into()]));
        assert_eq!(fixture.run(string::setnx, &["SETNX", "k", "w"]), (":0 ".into(), vec![]));
        assert_eq!(fixture.run(string::get, &["GET", "k"]), ("$1 v ".into(), vec![]));
    }
}
