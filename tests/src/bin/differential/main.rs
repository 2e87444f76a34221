//! Sends generated command streams to two servers and compares their replies to the byte, over RESP2 and RESP3.
//!
//! ```text
//! differential [--ours SERVER] [--oracle SERVER] [--commands N] [--seed N] [--dialect redis-8.2|redis-8.10|valkey-9.1]
//! ```
//!
//! Without `--seed` the streams are the same in every run, so a machine that runs them finds what every other has found; fresh
//! ones are asked for with a fresh seed (`tests/run --campaign` does). A difference prints the seed and a stream made as short
//! as it gets; `--seed` runs that one again.

mod among;

use anyhow::{Context, Result, bail};
use simurgh_tests::client::{Client, Reply};
use simurgh_tests::grammar::{CLIENTS, Compare, Dialect, Operation, Words, stream};
use simurgh_tests::minimise::minimise;
use simurgh_tests::outcome::report;
use simurgh_tests::random::SEED;
use simurgh_tests::resp::{Value, write_request};
use simurgh_tests::server::{Program, Server};
use simurgh_tests::text::{quote, show};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::ExitCode;

/// Operations of a stream, which begins with empty databases and new connections.
const STREAM_LENGTH: usize = 500;

/// How many shorter streams are tried after a difference.
const TRIES: usize = 600;

/// How far the clocks of two servers may be apart when they answer, with what lies between two requests.
const CLOCK_TOLERANCE_MS: i64 = 5_000;

/// Instants and spans up to here may come from the clock; beyond lie the absolute ones of the grammar.
const CLOCK_SECONDS_MAX: i64 = 5_000_000_000;

/// Differences after which a run ends.
const DIFFERENCES_MAX: usize = 10;

struct Options {
    ours: Program,
    oracle: Program,
    dialect: Dialect,
    commands: usize,
    seed: u64,
}

fn main() -> ExitCode {
    report(options().and_then(|options| run(&options)))
}

fn options() -> Result<Options> {
    let mut arguments = std::env::args().skip(1);
    let (mut ours, mut oracle, mut dialect) = ("ours".to_owned(), None, "redis-8.2".to_owned());
    let (mut commands, mut seed): (_, Option<u64>) = (20_000, None);
    while let Some(name) = arguments.next() {
        let value = arguments.next().with_context(|| format!("{name} wants a value"))?;
        match name.as_str() {
            "--ours" => ours = value,
            "--oracle" => oracle = Some(value),
            "--dialect" => dialect = value,
            "--commands" => commands = value.parse()?,
            "--seed" => seed = Some(value.parse()?),
            _ => bail!("no such option: {name}"),
        }
    }
    let oracle = Program::parse(&oracle.unwrap_or_else(|| dialect.clone()))?;
    let dialect = match dialect.as_str() {
        "redis-8.2" => Dialect::Redis82,
        "redis-8.10" => Dialect::Redis810,
        "valkey-9.1" => Dialect::Valkey91,
        _ => bail!("no such dialect: {dialect}"),
    };
    Ok(Options { ours: Program::parse(&ours)?, oracle, dialect, commands, seed: seed.unwrap_or(SEED) })
}

fn run(options: &Options) -> Result<(usize, usize)> {
    let settings = [
        ["--enable-debug-command", "yes"],
        ["--appendonly", "no"],
        ["--notify-keyspace-events", "KEA"],
        ["--slowlog-log-slower-than", "-1"],
    ];
    let settings = settings.as_flattened();
    let start = |program| Server::start(program, settings);
    let (ours, oracle) = (start(&options.ours)?, start(&options.oracle)?);
    println!("{} against {}, seeds from {}", options.ours.name(), options.oracle.name(), options.seed);
    let streams = options.commands.div_ceil(STREAM_LENGTH);
    let mut differences = 0;
    for index in 0..streams {
        let seed = options.seed + index as u64;
        let operations = stream(seed, STREAM_LENGTH, options.dialect);
        let resp = if seed.is_multiple_of(2) { 2 } else { 3 };
        let common_only = options.dialect == Dialect::Valkey91;
        let pair = Addresses { ours: ours.address, oracle: oracle.address, resp, common_only };
        if let Some(difference) = pair.compare(&operations).with_context(|| format!("seed {seed}"))? {
            differences += 1;
            explain(&pair, seed, &operations, &difference);
            if differences == DIFFERENCES_MAX {
                bail!("{differences} of {} streams differ", index + 1);
            }
        }
    }
    println!("{} commands in {streams} streams", streams * STREAM_LENGTH);
    Ok((streams - differences, differences))
}

fn explain(pair: &Addresses, seed: u64, operations: &[Operation], difference: &Difference) {
    println!("seed {seed} (RESP{}): {}", pair.resp, difference.text);
    let until = &operations[..=difference.at];
    let short = minimise(until, TRIES, |shorter| matches!(pair.compare(shorter), Ok(Some(_))));
    for operation in &short {
        println!("  {}", show_operation(operation));
    }
    match pair.compare(&short) {
        Ok(Some(difference)) => println!("{}\n", difference.text),
        _ => println!("(does not happen every time)\n"),
    }
}

fn show_operation(operation: &Operation) -> String {
    let (what, words) = match operation {
        Operation::Command { arguments, .. } => ("", arguments.clone()),
        Operation::ScanAll { options, .. } => ("SCAN all ", options.clone()),
        Operation::Exchange { key, .. } => ("DUMP and RESTORE ", vec![key.clone()]),
        Operation::Wake { waiting, actions, .. } => return show_episode("waiting", waiting, actions),
        Operation::Listen { listener, actions, .. } => return show_episode("listening", listener, actions),
    };
    format!("client {}: {what}{}", operation.client(), show_words(&words))
}

fn show_words(words: &Words) -> String {
    let words: Vec<String> = words.iter().map(|word| quote(word)).collect();
    words.join(" ")
}

fn show_episode(what: &str, first: &[Words], actions: &[Words]) -> String {
    let lines = |all: &[Words]| all.iter().map(show_words).collect::<Vec<_>>().join("; ");
    format!("{what}: {}\n    meanwhile: {}", lines(first), lines(actions))
}

struct Addresses {
    ours: SocketAddr,
    oracle: SocketAddr,
    resp: u8,
    /// Whether only what Redis and Valkey have in common is compared: see [`in_common`].
    common_only: bool,
}

struct Difference {
    at: usize,
    text: String,
}

impl Addresses {
    /// Runs the stream on both and gives the first difference.
    fn compare(&self, operations: &[Operation]) -> Result<Option<Difference>> {
        let (mut ours, mut oracle) = (Side::begin(self.ours, self.resp)?, Side::begin(self.oracle, self.resp)?);
        let mut at = 0;
        while at < operations.len() {
            let end = at + batch_length(&operations[at..]);
            let found = match &operations[at] {
                Operation::Command { .. } => {
                    compare_batch(&mut ours, &mut oracle, &operations[at..end], self.common_only)?
                }
                Operation::ScanAll { client, options } => compare_scan(&mut ours, &mut oracle, *client, options)?,
                Operation::Exchange { client, key } => exchange(&mut ours, &mut oracle, *client, key)?,
                Operation::Wake { waiting, actions, .. } => {
                    self.among(|address| among::wake(address, self.resp, waiting, actions))?
                }
                Operation::Listen { listener, actions, .. } => {
                    self.among(|address| among::listen(address, self.resp, listener, actions))?
                }
            };
            if let Some((offset, text)) = found {
                if is_old_error_number(&text) {
                    return Ok(None);
                }
                return Ok(Some(Difference { at: at + offset, text }));
            }
            at = end;
        }
        Ok(None)
    }

    fn among(&self, play: impl Fn(SocketAddr) -> Result<among::Transcript>) -> Result<Found> {
        let (ours, oracle) = (play(self.ours).context("ours")?, play(self.oracle).context("the oracle")?);
        Ok(among::first_difference(&ours, &oracle, self.common_only).map(|text| (0, text)))
    }
}

/// Redis's SORT stumbles over an error number that any number out of range may have left behind, however long ago. From there on the
/// two have different keys, so the stream ends.
fn is_old_error_number(difference: &str) -> bool {
    const STUMBLES: &str = "One or more scores can't be converted into double";
    // In a transaction it is one reply of many, on a line of its own.
    difference
        .rsplit_once("\n  ours ")
        .is_some_and(|(oracle, ours)| oracle.contains(STUMBLES) && !ours.contains(STUMBLES))
}

/// How many operations from here one client can send in one go.
fn batch_length(operations: &[Operation]) -> usize {
    let client = operations[0].client();
    let same = |operation: &&Operation| matches!(operation, Operation::Command { .. }) && operation.client() == client;
    operations.iter().take_while(same).count().max(1)
}

struct Side {
    clients: Vec<Client>,
}

impl Side {
    fn begin(address: SocketAddr, resp: u8) -> Result<Self> {
        let mut cleaner = Client::connect(address)?;
        for words in [&["FLUSHALL"][..], &["SCRIPT", "FLUSH"], &["FUNCTION", "FLUSH"]] {
            cleaner.ask(words)?;
        }
        let clients = (0..CLIENTS).map(|_| Client::connect_as(address, resp)).collect::<Result<_>>()?;
        Ok(Side { clients })
    }

    fn ask(&mut self, client: usize, arguments: &[Vec<u8>]) -> Result<Value> {
        self.clients[client].ask(arguments)
    }
}

type Found = Option<(usize, String)>;

fn compare_batch(ours: &mut Side, oracle: &mut Side, batch: &[Operation], common_only: bool) -> Result<Found> {
    let client = batch[0].client();
    let mut bytes = Vec::new();
    for operation in batch {
        if let Operation::Command { arguments, .. } = operation {
            write_request(&mut bytes, arguments);
        }
    }
    ours.clients[client].send(&bytes).context("ours")?;
    oracle.clients[client].send(&bytes).context("the oracle")?;
    let mut found = None;
    for (at, operation) in batch.iter().enumerate() {
        let Operation::Command { arguments, compare, .. } = operation else { continue };
        let theirs = oracle.clients[client].read().context("the oracle")?;
        let our = match ours.clients[client].read() {
            Ok(reply) => reply,
            Err(error) => return Ok(Some((at, format!("{}: ours: {error:#}", show_operation(operation))))),
        };
        if found.is_none() && !alike(*compare, common_only, our.as_ref(), theirs.as_ref()) {
            let text =
                format!("{}\n  oracle {}\n  ours   {}", show_words(arguments), show_reply(&theirs), show_reply(&our));
            found = Some((at, text));
        }
        if our.is_none() || theirs.is_none() {
            break;
        }
    }
    Ok(found)
}

fn show_reply(reply: &Option<Reply>) -> String {
    match reply {
        Some(reply) => {
            format!("{}   (bytes {})", show(&reply.value), quote(&reply.bytes[..reply.bytes.len().min(200)]))
        }
        None => "closed the connection".into(),
    }
}

fn alike(compare: Compare, common_only: bool, ours: Option<&Reply>, oracle: Option<&Reply>) -> bool {
    let (Some(ours), Some(oracle)) = (ours, oracle) else { return ours.is_none() && oracle.is_none() };
    if ours.bytes == oracle.bytes || common_only && in_common(&ours.value) == in_common(&oracle.value) {
        return true;
    }
    match compare {
        Compare::Bytes => false,
        Compare::AnyOrder if common_only => members(&in_common(&ours.value)) == members(&in_common(&oracle.value)),
        Compare::AnyOrder => members(&ours.value).is_some_and(|all| Some(all) == members(&oracle.value)),
        Compare::Presence => {
            let kind = |reply: &Reply| reply.bytes.first().filter(|kind| b"$*".contains(kind)).copied();
            kind(ours).is_some() && kind(ours) == kind(oracle) && ours.value != Value::Nil && oracle.value != Value::Nil
        }
        Compare::Seconds => close(&ours.value, &oracle.value, 1),
        Compare::Milliseconds => close(&ours.value, &oracle.value, 1000),
        Compare::Moments => without_moments(&ours.value) == without_moments(&oracle.value),
    }
}

/// The reply as far as Redis and Valkey agree: errors without their texts, numbers without the way in which they are written.
fn in_common(value: &Value) -> Value {
    let number = |text: &str| match text.parse::<f64>() {
        // Valkey writes seventeen places behind the point, so that small ones have few digits.
        Ok(number) if number.abs() < 0.001 => Value::Double(format!("{number:.14}")),
        Ok(number) => Value::Double(format!("{number:.12e}")),
        Err(_) => Value::Double(text.to_owned()),
    };
    match value {
        Value::Error(_) | Value::BulkError(_) => Value::Error(Vec::new()),
        Value::Double(text) => number(text),
        Value::Bulk(text) if text.len() > LENGTH_OF_A_SHORT_NUMBER && text.contains(&b'.') => {
            std::str::from_utf8(text).map_or_else(|_| value.clone(), number)
        }
        Value::Array(items) => Value::Array(items.iter().map(in_common).collect()),
        Value::Set(items) => Value::Set(items.iter().map(in_common).collect()),
        Value::Push(items) => Value::Push(items.iter().map(in_common).collect()),
        Value::Map(pairs) => Value::Map(pairs.iter().map(|(key, value)| (in_common(key), in_common(value))).collect()),
        other => other.clone(),
    }
}

/// Up to here a text with a point is compared as it is.
const LENGTH_OF_A_SHORT_NUMBER: usize = 8;

/// The names before moments and idle times, and before the size of the tree in which Redis keeps nodes: after XTRIM with DELREF or
/// ACKED it keeps some that have no entry left.
const MOMENTS: &[&[u8]] =
    &[b"seen-time", b"active-time", b"idle", b"inactive", b"radix-tree-keys", b"radix-tree-nodes"];

/// A reply about streams in which every moment and idle time is 1, if it is any: `active-time` may be none, which is -1.
fn without_moments(value: &Value) -> Value {
    let moment = |number: i64| Value::Integer(if number >= 0 { 1 } else { number });
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(without_moments).collect();
            // A pending entry: an id, perhaps its consumer, since when or for how long, how often.
            if let [Value::Bulk(_), middle @ .., Value::Integer(_)] = items.as_mut_slice()
                && let [Value::Integer(number)] | [Value::Bulk(_), Value::Integer(number)] = middle
            {
                *number = 1;
            }
            for at in 1..items.len() {
                if let (Value::Bulk(name), Value::Integer(number)) = (&items[at - 1], &items[at])
                    && MOMENTS.contains(&name.as_slice())
                {
                    items[at] = moment(*number);
                }
            }
            Value::Array(items)
        }
        Value::Map(pairs) => Value::Map(
            pairs
                .iter()
                .map(|(name, value)| match (name, value) {
                    (Value::Bulk(text), Value::Integer(number)) if MOMENTS.contains(&text.as_slice()) => {
                        (name.clone(), moment(*number))
                    }
                    _ => (name.clone(), without_moments(value)),
                })
                .collect(),
        ),
        other => other.clone(),
    }
}

fn members(value: &Value) -> Option<Vec<String>> {
    let mut texts: Vec<String> = match value {
        Value::Array(items) | Value::Set(items) => items.iter().map(show).collect(),
        Value::Map(pairs) => pairs.iter().map(|(key, value)| format!("{} {}", show(key), show(value))).collect(),
        _ => return None,
    };
    texts.sort();
    Some(texts)
}

fn close(ours: &Value, oracle: &Value, per_second: i64) -> bool {
    if let (Value::Array(ours), Value::Array(oracle)) = (ours, oracle) {
        let is_close = |(ours, oracle): (&Value, &Value)| ours == oracle || close(ours, oracle, per_second);
        return ours.len() == oracle.len() && ours.iter().zip(oracle).all(is_close);
    }
    let (Value::Integer(ours), Value::Integer(oracle)) = (ours, oracle) else { return false };
    let is_time = *ours > 0 && *oracle > 0;
    let absolute = *oracle / per_second > CLOCK_SECONDS_MAX && *ours / per_second > CLOCK_SECONDS_MAX;
    // What is left until an absolute instant moves too; only its EXPIRETIME does not, and that has equal bytes.
    let tolerance = CLOCK_TOLERANCE_MS * per_second / 1000;
    is_time && (ours - oracle).abs() <= if absolute { tolerance.min(3 * per_second) } else { tolerance }
}

/// Both servers' keys by a whole iteration. In a transaction SCAN is only queued, the same on both.
fn compare_scan(ours: &mut Side, oracle: &mut Side, client: usize, options: &[Vec<u8>]) -> Result<Found> {
    let (ours, oracle) = (scan(ours, client, options)?, scan(oracle, client, options)?);
    Ok((ours != oracle).then(|| (0, format!("SCAN\n  oracle {oracle:?}\n  ours   {ours:?}"))))
}

fn scan(side: &mut Side, client: usize, options: &[Vec<u8>]) -> Result<BTreeSet<String>> {
    let mut cursor = b"0".to_vec();
    let mut keys = BTreeSet::new();
    for _ in 0..100_000 {
        let mut request = vec![b"SCAN".to_vec(), cursor];
        request.extend_from_slice(options);
        let reply = side.ask(client, &request)?;
        let Value::Array(parts) = &reply else { return Ok(BTreeSet::from([show(&reply)])) };
        let [Value::Bulk(next), Value::Array(found)] = parts.as_slice() else {
            bail!("SCAN answered {}", show(&reply))
        };
        keys.extend(found.iter().map(show));
        if next == b"0" {
            return Ok(keys);
        }
        cursor = next.clone();
    }
    bail!("SCAN does not end")
}

/// What a payload holds. Its end is the format's version (ours names the oldest that fits, so that older servers read
/// it too) and a checksum over that.
fn contents(payload: &[u8]) -> &[u8] {
    &payload[..payload.len().saturating_sub(PAYLOAD_END)]
}

/// The version and the checksum.
const PAYLOAD_END: usize = 2 + 8;

/// The kind of a payload that is a string; of other types servers choose among several forms.
const STRING: u8 = 0;

/// The longest payload of a string that has to be equal: beyond, strings are compressed, and each does that its own way.
const EQUAL_PAYLOAD_MAX: usize = 30;

fn exchange(ours: &mut Side, oracle: &mut Side, client: usize, key: &[u8]) -> Result<Found> {
    let dump = vec![b"DUMP".to_vec(), key.to_vec()];
    let (from_ours, from_oracle) = (ours.ask(client, &dump)?, oracle.ask(client, &dump)?);
    let (Value::Bulk(our), Value::Bulk(their)) = (&from_ours, &from_oracle) else {
        let differ = from_ours != from_oracle;
        return Ok(differ.then(|| (0, format!("DUMP\n  oracle {from_oracle:?}\n  ours   {from_ours:?}"))));
    };
    let is_string = their.first() == Some(&STRING);
    if is_string && contents(our) != contents(their) && our.len().max(their.len()) <= EQUAL_PAYLOAD_MAX {
        return Ok(Some((0, format!("DUMP\n  oracle {}\n  ours   {}", quote(their), quote(our)))));
    }
    let restore = |payload: &[u8]| words(&[b"RESTORE", b"exchanged", b"0", payload, b"REPLACE"]);
    let (first, second) = (ours.ask(client, &restore(their))?, oracle.ask(client, &restore(our))?);
    let read = reading(&oracle.ask(client, &words(&[b"TYPE", b"exchanged"]))?);
    let (our, their) = (ours.ask(client, &read)?, oracle.ask(client, &read)?);
    ours.ask(client, &words(&[b"DEL", b"exchanged"]))?;
    oracle.ask(client, &words(&[b"DEL", b"exchanged"]))?;
    let is_alike = our == their
        || [b"HGETALL".to_vec(), b"SMEMBERS".to_vec()].contains(&read[0]) && members(&our) == members(&their);
    let differ = first != second || !is_alike;
    Ok(differ.then(|| (0, format!("RESTORE\n  oracle {second:?} {their:?}\n  ours   {first:?} {our:?}"))))
}

/// What reads all of the exchanged value, by what TYPE says.
fn reading(type_name: &Value) -> Vec<Vec<u8>> {
    let Value::Simple(name) = type_name else { return words(&[b"GET", b"exchanged"]) };
    match name.as_slice() {
        b"hash" => words(&[b"HGETALL", b"exchanged"]),
        b"set" => words(&[b"SMEMBERS", b"exchanged"]),
        b"list" => words(&[b"LRANGE", b"exchanged", b"0", b"-1"]),
        b"zset" => words(&[b"ZRANGE", b"exchanged", b"0", b"-1", b"WITHSCORES"]),
        b"stream" => words(&[b"XRANGE", b"exchanged", b"-", b"+"]),
        _ => words(&[b"GET", b"exchanged"]),
    }
}

fn words(all: &[&[u8]]) -> Vec<Vec<u8>> {
    all.iter().map(|word| word.to_vec()).collect()
}
