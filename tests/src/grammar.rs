//! Command streams from a grammar: what the differential run sends to two servers.
//!
//! Few keys, so that commands meet; boundary numbers and hostile text, so that errors meet too; nothing whose answer
//! depends on the moment, except where [`Compare`] says how to compare it. Times lie far in the past or the future,
//! so that no key expires while a stream runs. Strings stay short enough for LCS, which takes the product of two
//! lengths in memory.
//!
//! To add a group of commands: a file beside `commands.rs` with a function that makes one of them, and its line in
//! [`GROUPS`]. [`Grammar::key_of`] gives keys that mostly hold the group's own type.

mod bitmap;
mod blocking;
mod commands;
mod geo;
mod hash;
mod hyperloglog;
mod introspection;
mod list;
mod listening;
mod script;
mod set;
mod sorted_set;
mod stream;
mod valkey;

use crate::random::Random;
use crate::vocabulary::{FLOATS, INTEGERS, KEYS, NOT_FLOATS, NOT_INTEGERS, PATTERNS, SPANS_OVER};

/// How many clients a stream has.
pub const CLIENTS: usize = 3;

/// One thing to do on both servers.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// A command of one client.
    Command {
        /// Which client.
        client: usize,
        /// The command and its arguments.
        arguments: Vec<Vec<u8>>,
        /// How its two replies are compared.
        compare: Compare,
    },
    /// A whole iteration with SCAN, compared as sets of keys.
    ScanAll {
        /// Which client.
        client: usize,
        /// What follows the cursor.
        options: Vec<Vec<u8>>,
    },
    /// DUMP on both, and RESTORE of the other's payload on each.
    Exchange {
        /// Which client.
        client: usize,
        /// Whose value.
        key: Vec<u8>,
    },
    /// Clients of their own wait, one after the other; another acts; those that wait still are unblocked.
    Wake {
        /// Which client would have acted.
        client: usize,
        /// What waits, each for a client of its own.
        waiting: Vec<Words>,
        /// What one more client does.
        actions: Vec<Words>,
    },
    /// A client of its own asks to be told; another acts; all that the first is sent is compared.
    Listen {
        /// Which client would have acted.
        client: usize,
        /// What the first asks.
        listener: Vec<Words>,
        /// What another does.
        actions: Vec<Words>,
    },
}

/// A command and its arguments.
pub type Words = Vec<Vec<u8>>;

/// How two replies are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// To the byte.
    Bytes,
    /// As sets of members.
    AnyOrder,
    /// Both a value of the same kind, or the same bytes.
    Presence,
    /// Integers of seconds that the clock moves.
    Seconds,
    /// Integers of milliseconds that the clock moves.
    Milliseconds,
    /// To the byte, but for the moments and idle times of streams, their groups and their consumers.
    Moments,
}

/// Which commands a stream is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// What Redis 8.2 has.
    Redis82,
    /// Mostly what Redis 8.10 adds.
    Redis810,
    /// Mostly what Valkey 9.1 adds.
    Valkey91,
}

impl Operation {
    /// Which client acts.
    pub fn client(&self) -> usize {
        match self {
            Operation::Command { client, .. }
            | Operation::ScanAll { client, .. }
            | Operation::Exchange { client, .. }
            | Operation::Wake { client, .. }
            | Operation::Listen { client, .. } => *client,
        }
    }
}

/// A stream of about `length` operations that `seed` fixes.
pub fn stream(seed: u64, length: usize, dialect: Dialect) -> Vec<Operation> {
    let mut grammar = Grammar { random: Random::new(seed), dialect, client: 0, queueing: [false; CLIENTS], next: None };
    (0..length).map(|_| grammar.operation()).collect()
}

struct Grammar {
    random: Random,
    dialect: Dialect,
    client: usize,
    /// Which clients are between MULTI and EXEC, where replies are not compared one by one.
    queueing: [bool; CLIENTS],
    /// What the same client does next.
    next: Option<Words>,
}

/// Makes a random command of a group, well formed or nearly so.
type Make = fn(&mut Grammar) -> (Words, Compare);

/// The groups that both Redis 8.2 and Valkey 9.1 have: how often each is chosen beside the others, and what makes its commands.
const GROUPS: &[(u64, Make)] = &[
    (110, Grammar::string),
    (34, Grammar::generic),
    (26, Grammar::expiry),
    (20, Grammar::transaction),
    (10, Grammar::server),
    (40, Grammar::bitmap),
    (60, Grammar::hash),
    (30, Grammar::hyperloglog),
    (60, Grammar::set_group),
    (80, Grammar::list),
    (70, Grammar::stream),
    (80, Grammar::sorted_set),
    (40, Grammar::geo),
    (50, Grammar::script),
    (12, Grammar::published),
    (16, Grammar::introspection),
    (6, Grammar::waiting_briefly),
];

impl Grammar {
    fn operation(&mut self) -> Operation {
        if let Some(arguments) = self.next.take() {
            return self.finish(self.client, arguments, Compare::Bytes);
        }
        if self.random.one_in(6) {
            self.client = self.random.below(CLIENTS as u64) as usize;
        }
        let client = self.client;
        if !self.queueing[client] && self.random.one_in(60) {
            return match self.dialect {
                Dialect::Redis82 if self.random.one_in(2) => Operation::Exchange { client, key: self.key() },
                _ => Operation::ScanAll { client, options: self.scan_options() },
            };
        }
        if self.dialect != Dialect::Redis810 && self.random.one_in(80) {
            return if self.random.one_in(2) { self.woken() } else { self.listened_to() };
        }
        let (mut arguments, mut compare) = self.command();
        if self.queueing[client] && compare != Compare::Bytes {
            (arguments, _) = (vec![b"GET".to_vec(), self.key()], ());
            return self.finish(client, arguments, Compare::Bytes);
        }
        if self.random.one_in(40) && !is_transaction(&arguments[0]) && !is_delicate(&arguments) {
            let whole = arguments.clone();
            self.damage(&mut arguments);
            if self.dialect == Dialect::Valkey91 && !valkey::agrees(&arguments, self.queueing[client]) {
                arguments = whole;
            }
            if compare == Compare::AnyOrder && arguments[0].ends_with(b"RANDFIELD") {
                // Perhaps not all fields now, but some picked at random.
                compare = Compare::Presence;
            }
        }
        self.finish(client, arguments, compare)
    }

    fn finish(&mut self, client: usize, mut arguments: Words, compare: Compare) -> Operation {
        match arguments[0].to_ascii_uppercase().as_slice() {
            b"MULTI" => self.queueing[client] = true,
            b"EXEC" | b"DISCARD" | b"RESET" => self.queueing[client] = false,
            _ => {}
        }
        if is_set_at(&arguments) {
            // A key set into the past is gone, but counted until somebody looks; so look, or DBSIZE would race.
            self.next = Some(words(&[b"GET", &arguments[1]]));
        }
        self.mix_case(&mut arguments[0]);
        Operation::Command { client, arguments, compare }
    }

    fn command(&mut self) -> (Words, Compare) {
        match self.dialect {
            Dialect::Redis82 => {}
            Dialect::Redis810 if self.random.one_in(6) => return (self.set_810(), Compare::Bytes),
            Dialect::Redis810 if self.random.one_in(6) => return (self.sorted_set_810(), Compare::Bytes),
            Dialect::Redis810 if !self.random.one_in(4) => return (self.redis_810(), Compare::Bytes),
            Dialect::Redis810 => return (self.basic(), Compare::Bytes),
            Dialect::Valkey91 if self.random.one_in(20) => {
                return (words(&[b"DELIFEQ", &self.key(), &self.value()]), Compare::Bytes);
            }
            Dialect::Valkey91 => {}
        }
        self.shared()
    }

    /// A command that the oracle knows as Redis 8.2 does.
    fn shared(&mut self) -> (Words, Compare) {
        loop {
            let (words, compare) = self.of_a_group();
            if self.dialect != Dialect::Valkey91 || valkey::agrees(&words, self.queueing[self.client]) {
                return (words, compare);
            }
        }
    }

    fn of_a_group(&mut self) -> (Words, Compare) {
        let mut share = self.random.below(GROUPS.iter().map(|(share, _)| share).sum());
        for (width, make) in GROUPS {
            if share < *width {
                return make(self);
            }
            share -= width;
        }
        unreachable!("the share lies below the sum of all")
    }

    fn scan_options(&mut self) -> Words {
        let mut all = Vec::new();
        if self.random.one_in(2) {
            all.extend(words(&[b"COUNT", &self.from(&["1", "2", "10", "1000"])]));
        }
        if self.random.one_in(3) {
            all.extend(words(&[b"MATCH", &self.from(PATTERNS)]));
        }
        if self.random.one_in(4) {
            all.extend(words(&[b"TYPE", &self.from(&["string", "list", "STRING"])]));
        }
        all
    }

    fn keys_after(&mut self, name: &str) -> Words {
        let mut all = words(&[name.as_bytes()]);
        for _ in 0..=self.random.below(4) {
            all.push(self.key());
        }
        all
    }

    fn pairs_after(&mut self, name: &str) -> Words {
        let mut all = words(&[name.as_bytes()]);
        for _ in 0..=self.random.below(4) {
            all.push(self.key());
            all.push(self.value());
        }
        all
    }

    fn key(&mut self) -> Vec<u8> {
        self.from(KEYS)
    }

    /// Mostly one of three keys of a data type's own, `prefix1` and so on; sometimes a key that may hold anything.
    fn key_of(&mut self, prefix: &str) -> Vec<u8> {
        match self.random.below(8) {
            0 => self.key(),
            number => format!("{prefix}{}", number % 3 + 1).into_bytes(),
        }
    }

    fn value(&mut self) -> Vec<u8> {
        match self.random.below(12) {
            0..4 => self.from(INTEGERS),
            4 => self.from(NOT_INTEGERS),
            5 | 6 => self.from(FLOATS),
            7 => self.from(NOT_FLOATS),
            8 => self.random_bytes(60),
            9 if self.random.one_in(10) => self.random_bytes(3000),
            _ => self.from(&["hello", "world", "ohmytext", "mynewtext", "a", "The quick brown fox", "1"]),
        }
    }

    fn random_bytes(&mut self, length_max: u64) -> Vec<u8> {
        let alphabet: &[u8] = if self.random.one_in(2) { b"ab" } else { b"abcdefgh\r\n\0\xff*$" };
        let length = self.random.below(length_max);
        (0..length).map(|_| alphabet[self.random.below(alphabet.len() as u64) as usize]).collect()
    }

    fn integer(&mut self) -> Vec<u8> {
        if self.random.one_in(10) { self.from(NOT_INTEGERS) } else { self.from(INTEGERS) }
    }

    fn integer_or_not(&mut self) -> Vec<u8> {
        if self.random.one_in(2) {
            self.from(NOT_INTEGERS)
        } else {
            self.from(&["9223372036854775807", "-9223372036854775808", "9223372036854775808", "9223372036854776"])
        }
    }

    fn float(&mut self) -> Vec<u8> {
        if self.random.one_in(6) { self.from(NOT_FLOATS) } else { self.from(FLOATS) }
    }

    fn offset(&mut self) -> Vec<u8> {
        match self.random.below(6) {
            0 => self.integer_or_not(),
            1 => self.from(&["536870912", "536870913", "-1", "4294967296"]),
            _ => self.from(&["0", "1", "2", "5", "10", "50", "1000"]),
        }
    }

    /// Seconds from now: over, or longer than any run; far from each other, so that GT and LT do not race the clock.
    fn span(&mut self) -> Vec<u8> {
        match self.random.below(8) {
            0 => self.integer_or_not(),
            1 | 2 => self.from(SPANS_OVER),
            _ => (100_000 + 100 * self.random.below(1_000_000)).to_string().into_bytes(),
        }
    }

    fn milliseconds_span(&mut self) -> Vec<u8> {
        match self.random.below(8) {
            0 => self.integer_or_not_milliseconds(),
            1 | 2 => self.from(SPANS_OVER),
            _ => (100_000_000 + 100_000 * self.random.below(1_000_000)).to_string().into_bytes(),
        }
    }

    /// `9223372036854776` overflows as seconds, but as milliseconds it is a time like another.
    fn integer_or_not_milliseconds(&mut self) -> Vec<u8> {
        if self.random.one_in(2) {
            self.from(NOT_INTEGERS)
        } else {
            self.from(&["9223372036854775807", "-9223372036854775808"])
        }
    }

    fn database(&mut self) -> Vec<u8> {
        self.from(&["0", "0", "1", "1", "2", "15", "16", "-1", "abc", "9223372036854775808"])
    }

    fn from(&mut self, choices: &[&str]) -> Vec<u8> {
        value_of(self.random.pick(choices))
    }

    /// Too few arguments, too many, or one that belongs elsewhere.
    fn damage(&mut self, arguments: &mut Words) {
        match self.random.below(3) {
            0 => {
                arguments.pop();
                if arguments.is_empty() {
                    arguments.push(b"GET".to_vec());
                }
            }
            1 => arguments.push(self.value()),
            _ => {
                let at = self.random.below(arguments.len() as u64) as usize;
                if (1..=damageable(&arguments[0])).contains(&at) {
                    arguments[at] = self.value();
                }
            }
        }
    }

    fn mix_options(&mut self, all: &mut Words) {
        for word in all.iter_mut().skip(3) {
            self.mix_case(word);
        }
    }

    fn mix_case(&mut self, word: &mut [u8]) {
        match self.random.below(4) {
            0 => word.make_ascii_lowercase(),
            1 if word.len() > 1 => word[0].make_ascii_lowercase(),
            _ => {}
        }
    }
}

/// Whether a command begins or ends a queue. Those are never damaged: the grammar has to know which clients queue.
fn is_transaction(name: &[u8]) -> bool {
    [&b"MULTI"[..], b"EXEC", b"DISCARD", b"RESET"].contains(&name)
}

/// Whether a damaged argument may lead where the two differ on purpose: without its count a command picks, and even removes, what
/// only chance knows; of a large index LSET in Redis takes the lowest 32 bits; in a script there may be one of those; who waits with
/// another timeout waits for ever.
fn is_delicate(arguments: &Words) -> bool {
    const NAMES: [&[u8]; 15] = [
        b"SPOP",
        b"SRANDMEMBER",
        b"ZRANDMEMBER",
        b"HRANDFIELD",
        b"LSET",
        b"WAIT",
        b"WAITAOF",
        b"CLIENT",
        b"HELLO",
        b"QUIT",
        b"COMMAND",
        b"MODULE",
        b"SHUTDOWN",
        b"AUTH",
        b"ACL",
    ];
    let name = arguments[0].as_slice();
    let begins = |start: &&[u8]| name.starts_with(start);
    NAMES.contains(&name)
        || [&b"EVAL"[..], b"FCALL", b"BL", b"BRPOP", b"BZ", b"SUBS", b"PSUB", b"SSUB", b"UNSUB", b"PUNSUB", b"SUNSUB"]
            .iter()
            .any(begins)
        || arguments.iter().any(|word| word == b"BLOCK")
}

fn is_set_at(arguments: &Words) -> bool {
    let is_at = |word: &Vec<u8>| word.eq_ignore_ascii_case(b"EXAT") || word.eq_ignore_ascii_case(b"PXAT");
    arguments[0] == b"SET" && arguments.len() > 2 && arguments.iter().any(is_at)
}

/// Up to which argument a command takes any value: a random time would let keys expire while the stream runs, and a
/// random offset would make a large string.
fn damageable(name: &[u8]) -> usize {
    match name {
        b"SET" => 2,
        b"HRANDFIELD" | b"ZRANDMEMBER" | b"SETRANGE" | b"RESTORE" | b"SETBIT" | b"BITFIELD" => 1,
        _ if name.windows(2).any(|two| two == b"EX" || two == b"XP") => 1,
        _ => usize::MAX,
    }
}

/// A text as bytes: `\u{ff}` stands for the byte 255.
fn value_of(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect()
}

fn words(all: &[&[u8]]) -> Words {
    all.iter().map(|word| word.to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_fixes_the_stream_and_another_changes_it() {
        assert_eq!(stream(7, 200, Dialect::Redis82), stream(7, 200, Dialect::Redis82));
        assert_ne!(stream(7, 200, Dialect::Redis82), stream(8, 200, Dialect::Redis82));
    }

    #[test]
    fn no_stream_makes_a_large_string() {
        for operation in stream(1, 20_000, Dialect::Redis82) {
            let Operation::Command { arguments, .. } = operation else { continue };
            let limits = match arguments[0].to_ascii_uppercase().as_slice() {
                b"SETRANGE" if arguments.len() == 4 => (1000, 536_870_912),
                b"SETBIT" if arguments.len() == 4 => (10_000, 4_294_967_296),
                _ => continue,
            };
            let offset = String::from_utf8_lossy(&arguments[2]).parse::<i64>().unwrap_or(0);
            assert!(offset <= limits.0 || offset >= limits.1, "{offset}");
        }
    }
}
