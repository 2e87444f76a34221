//! Every data command with generated arguments: numbers at every boundary, words that are missing or repeated, and shards
//! that notice when a command touches one that its keys do not lead to (RELIABILITY C11, C12, C14, C15).

use super::*;
use simurgh_protocol::command::{Argument, DataCommand, check_arity, keys};
use simurgh_protocol::resp::Protocol;
use simurgh_protocol::resp::decode::{Value, decode};
use simurgh_protocol::{Reply, command};
use simurgh_storage::access::AccessPolicy;
use simurgh_storage::{Class, Context, Effects, KeyHasher, Random, Settings, Shard, execute};

/// Requests of each command.
const REQUESTS: usize = 2500;

/// Strings are kept short, so that a large offset is an error and not a large string.
const BULK_MAX: u64 = 1 << 20;

const NUMBERS: [&str; 40] = [
    "0",
    "1",
    "-1",
    "2",
    "3",
    "10",
    "-2",
    "127",
    "128",
    "255",
    "256",
    "65535",
    "65536",
    "1048575",
    "1048576",
    "1048577",
    "536870911",
    "536870912",
    "2147483647",
    "2147483648",
    "-2147483648",
    "-2147483649",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775",
    "9223372036854776",
    "9223372036854775806",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775807",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "1000000",
    "1000001",
    "00",
    "+1",
    "",
];
const DOUBLES: [&str; 16] = [
    "nan",
    "-nan",
    "inf",
    "-inf",
    "+inf",
    "0",
    "-0",
    "1e308",
    "1.7976931348623157e308",
    "-1e308",
    "1e-400",
    "5e-324",
    "1e4932",
    "3.0e5",
    "0x1p3",
    "1.5x",
];
const KEYS: [&str; 9] = ["a", "b", "c", "d", "number", "float", "long", "{tag}x", ""];
const TEXTS: [&str; 6] = ["", "v", "12", "3.5", "abcdefgh", "9223372036854775807"];

/// Shards of which only some may be used.
struct Watched {
    shards: Vec<Shard>,
    allowed: u64,
    request: String,
}

impl simurgh_storage::Shards for Watched {
    fn shard(&mut self, index: usize) -> &mut Shard {
        assert!(self.allowed >> index & 1 == 1, "{} uses shard {index}, allowed are {:b}", self.request, self.allowed);
        &mut self.shards[index]
    }
}

struct Machine {
    layout: Layout,
    watched: Watched,
    settings: Settings,
    random: Random,
    now_ms: i64,
}

impl Machine {
    fn new(seed: u64) -> Self {
        let layout = Layout { shards: 64, databases: 3, hasher: KeyHasher::new(seed) };
        let watched = Watched { shards: Shard::all(&layout), allowed: 0, request: String::new() };
        let settings = Settings {
            access: AccessPolicy::Lru,
            bulk_max: BULK_MAX,
            lazy_flush: false,
            packing: simurgh_protocol::config::Settings::default().config().packing,
            events: Class::NONE,
        };
        Self { layout, watched, settings, random: Random::new(seed), now_ms: 1_700_000_000_000 }
    }

    /// Runs a request if its number of words is right; its reply, which is exactly one.
    fn run(&mut self, command: DataCommand, words: &[Vec<u8>]) -> Option<Vec<u8>> {
        let (mut buffer, mut ranges) = (Vec::new(), Vec::new());
        for word in words {
            ranges.push(Range { start: buffer.len() as u32, length: word.len() as u32 });
            buffer.extend_from_slice(word);
        }
        let args = Args::new(&buffer, &ranges);
        let spec = command.spec();
        if check_arity(spec, args.len()).is_err() {
            return None;
        }
        let (first_hash, shards) = place(Command::Data(command), &args, &self.layout);
        self.watched.request = words.iter().map(|word| String::from_utf8_lossy(word) + " ").collect();
        self.watched.allowed = self.allowed(spec, &args, shards);
        let (mut reply, mut effects) = (Reply::new(Protocol::Resp2), Effects::new(true));
        let mut cx = Context {
            reply: &mut reply,
            effects: &mut effects,
            database: 0,
            now_ms: self.now_ms,
            settings: &self.settings,
            layout: &self.layout,
            random: &mut self.random,
            first_hash,
            no_touch: false,
            may_block: false,
            in_script: false,
            replaying: false,
            discarded: &mut Vec::new(),
            shards: &mut self.watched,
        };
        execute(command, &mut cx, &args, None);
        let bytes = reply.bytes().to_vec();
        let (_, length) = decode(&bytes).expect("a reply is RESP").expect("a reply is whole");
        assert_eq!(length, bytes.len(), "{} has more than one reply", self.watched.request);
        Some(bytes)
    }

    /// The shards of exactly the keys that COMMAND GETKEYS tells, all of which must be held; all, where it cannot be sure.
    fn allowed(&self, spec: &command::CommandSpec, args: &Args<'_>, held: u64) -> u64 {
        if spec.shards == Shards::All || (!spec.has_key_range() && held == all(&self.layout)) {
            return all(&self.layout);
        }
        let keys: Vec<usize> = match keys(spec, args) {
            Ok(keys) => keys.iter().map(|key| key.index).collect(),
            // PFMERGE without a source: a request that has fewer keys than its specs.
            Err(_) if spec.has_key_range() => spec.key_range.positions(args.len()).collect(),
            Err(_) => Vec::new(),
        };
        let shard = |index: &usize| self.layout.shard_of(&self.layout.hasher.key(args.at(*index)));
        let extracted = keys.iter().fold(0, |set, key| set | 1 << shard(key));
        assert_eq!(extracted & !held, 0, "{}: not all of its keys are held", self.watched.request);
        extracted
    }

    fn fill(&mut self) {
        let set = data("set");
        for (key, value) in [("a", "1"), ("b", "two"), ("number", "9223372036854775806"), ("float", "1.5")] {
            self.run(set, &words(&["SET", key, value]));
        }
        self.run(set, &words(&["SET", "d", "dies", "PX", "100000"]));
        self.run(set, &[b"SET".to_vec(), b"long".to_vec(), vec![b'x'; 70_000]]);
    }

    fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.random.below(choices.len())]
    }

    /// Appends words for an argument of a command's grammar.
    fn argument(&mut self, argument: &Argument, out: &mut Vec<Vec<u8>>) {
        if argument.optional && self.random.below(2) == 0 {
            return;
        }
        let times = if argument.multiple { 1 + self.random.below(3) } else { 1 };
        for time in 0..times {
            if let Some(token) = argument.token
                && (time == 0 || argument.multiple_token)
            {
                out.push(token.as_bytes().to_vec());
            }
            let word = match argument.kind {
                "pure-token" => continue,
                "block" => {
                    argument.of.iter().for_each(|part| self.argument(part, out));
                    continue;
                }
                "oneof" => {
                    let which = self.random.below(argument.of.len());
                    self.argument(&argument.of[which], out);
                    continue;
                }
                "key" => self.one_of(&KEYS),
                "integer" | "unix-time" => self.one_of(&NUMBERS),
                "double" => self.one_of(&DOUBLES),
                _ if self.random.below(4) == 0 => self.one_of(&NUMBERS),
                _ => self.one_of(&TEXTS),
            };
            out.push(word.as_bytes().to_vec());
        }
    }

    /// A request after the grammar, sometimes with a word changed, doubled or left out.
    fn request(&mut self, command: DataCommand) -> Vec<Vec<u8>> {
        let spec = command.spec();
        let mut out: Vec<Vec<u8>> = spec.name.split('|').map(|word| word.as_bytes().to_vec()).collect();
        let name = out.len();
        spec.docs.arguments.iter().for_each(|argument| self.argument(argument, &mut out));
        if out.len() > name && self.random.below(4) == 0 {
            let at = name + self.random.below(out.len() - name);
            match self.random.below(3) {
                0 => out[at] = self.one_of(&NUMBERS).as_bytes().to_vec(),
                1 => out.insert(at, out[at].clone()),
                _ => drop(out.remove(at)),
            }
        }
        out
    }
}

fn words(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

fn data(name: &str) -> DataCommand {
    let Lookup::Found(Command::Data(command)) = lookup(name.as_bytes(), None) else { panic!("{name} has no handler") };
    command
}

/// Every command that runs on shards.
fn data_commands() -> Vec<DataCommand> {
    let commands = (0..Command::COUNT).filter_map(|index| Command::spec_at(index)?.command);
    commands.filter_map(|command| if let Command::Data(command) = command { Some(command) } else { None }).collect()
}

#[test]
fn c11_c12_c14_c15_every_data_command_with_numbers_at_every_boundary() {
    let mut machine = Machine::new(11);
    let commands = data_commands();
    assert!(commands.len() > 50, "{} data commands", commands.len());
    for command in commands {
        let mut answered = 0;
        for _ in 0..REQUESTS {
            if machine.random.below(20) == 0 {
                machine.fill();
            }
            machine.now_ms += machine.random.below(50) as i64;
            let request = machine.request(command);
            answered += usize::from(machine.run(command, &request).is_some());
        }
        assert!(answered > REQUESTS / 3, "{} was hardly ever called: {answered}", command.spec().name);
        let longest = machine.watched.shards.iter().map(Shard::bytes).sum::<usize>();
        assert!(longest < 32 << 20, "{} leaves {longest} bytes", command.spec().name);
    }
}

/// CVE-2023-28425: the same key twice. CVE-2023-28856: what is not a number.
#[test]
fn c14_keys_twice_and_what_is_not_a_number() {
    let mut machine = Machine::new(14);
    let mut reply = |request: &[&str]| {
        let reply = machine.run(data(request[0]), &words(request)).expect("the right number of words");
        String::from_utf8(reply).expect("text")
    };
    assert_eq!(reply(&["msetnx", "k", "1", "k", "2"]), ":1\r\n");
    assert_eq!(reply(&["get", "k"]), "$1\r\n2\r\n");
    assert_eq!(reply(&["msetnx", "k", "3", "l", "4"]), ":0\r\n");
    assert_eq!(reply(&["mset", "m", "1", "m", "2", "m", "3"]), "+OK\r\n");
    assert_eq!(reply(&["del", "m", "m"]), ":1\r\n");
    assert_eq!(reply(&["rename", "k", "k"]), "+OK\r\n");
    for number in DOUBLES.iter().filter(|number| number.contains("nan") || number.contains("inf")) {
        let refused = reply(&["incrbyfloat", "k", number]);
        assert!(refused.starts_with("-ERR"), "{number}: {refused}");
    }
    assert_eq!(reply(&["get", "k"]), "$1\r\n2\r\n");
}

/// C5, C15: every request is answered once and on one line if it is refused, whatever bytes it is made of.
#[test]
fn c5_c15_words_of_any_bytes() {
    let mut machine = Machine::new(15);
    let commands = data_commands();
    for _ in 0..50_000 {
        let command = commands[machine.random.below(commands.len())];
        let request: Vec<Vec<u8>> = (0..1 + machine.random.below(6))
            .map(|_| (0..machine.random.below(12)).map(|_| machine.random.next_u64() as u8).collect())
            .collect();
        let reply = machine.run(command, &request).unwrap_or_default();
        if let Ok(Some((Value::Error(text), _))) = decode(&reply) {
            assert!(!text.contains(&b'\r') && !text.contains(&b'\n'), "{reply:?}");
        }
    }
}
