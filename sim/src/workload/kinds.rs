//! Private keys of every type: a list, a hash whose fields expire, a set, a sorted set, a string and a stream. As in `ledger`, a client sends
//! changes in pipelines and knows their order, so whenever it looks it can tell whether what is there is a state that the keys were in,
//! with everything that was promised. A change of all keys is one transaction: it is there as a whole or not at all.

use std::io;

use simurgh_kernel::time;
use simurgh_protocol::resp::decode::Value;

use super::think;
use crate::client::{Client, number};
use crate::judge::model::{self, ALL, COUNT, Change, Fate, State, Step};
use crate::random::Random;
use crate::world::{Finding, World};

/// The longest pipeline.
const PIPELINE_MAX: u64 = 6;

/// The longest time that a field lives, in milliseconds.
pub const FIELD_LIFE_MS_MAX: u64 = 5000;

const KEYS: [&str; 6] = ["list", "hash", "set", "zset", "string", "stream"];
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

struct Kinds {
    world: World,
    name: String,
    client: Client,
    random: Random,
    next_number: i64,
    /// After a refused change whose fate a crash may still decide, the keys are left alone and others taken.
    generation: u64,
    /// A state that is certain to have been there, and what was sent since.
    before: State,
    steps: Vec<Step>,
}

/// Runs one client until the world stops.
pub async fn run(world: World, index: u64) {
    let name = format!("kinds-{index}");
    let mut kinds = Kinds {
        client: Client::new(world.address),
        random: Random::of(world.options.seed, &name),
        next_number: 1,
        generation: 0,
        before: State::default(),
        steps: Vec::new(),
        world,
        name,
    };
    while !kinds.world.is_stopping() {
        kinds.turn().await;
        think(&mut kinds.random).await;
    }
    while kinds.world.findings().is_empty() {
        match kinds.look().await {
            Ok(()) => return,
            Err(error) => kinds.world.connection_failed(&kinds.name, &error),
        }
    }
}

impl Kinds {
    async fn turn(&mut self) {
        let done =
            if self.client.is_connected() && !self.random.chance(20) { self.write().await } else { self.look().await };
        if let Err(error) = done {
            self.world.connection_failed(&self.name, &error);
        }
    }

    fn keys(&self) -> [String; 6] {
        KEYS.map(|key| format!("{}:{}:{key}", self.name, self.generation))
    }

    fn draw(&mut self) -> Change {
        let number = self.next_number;
        self.next_number += 1;
        let name = *self.random.pick(&NAMES);
        // The toy has lists and hashes, and no more.
        let is_node = self.world.options.scenario.is_node();
        match self.random.below(if is_node { 21 } else { 8 }) {
            0 => Change::Append(number),
            1 => Change::Prepend(number),
            2 => Change::TakeFirst,
            3 => Change::TakeLast,
            4 => Change::SetField(name, number),
            5..7 => {
                let life_ms = *self.random.pick(&[10, 300, FIELD_LIFE_MS_MAX]);
                let life_ms = i64::try_from(self.random.below(life_ms)).unwrap_or(0);
                Change::SetMortalField(name, number, self.world.server_clock().ms + life_ms)
            }
            7 => Change::RemoveField(name),
            8 => Change::Count(number),
            9 => Change::AddMember(name),
            10 => Change::RemoveMember(name),
            11 => Change::Rank(name, number % 7),
            12 => Change::AddToRank(name, number % 3),
            13 => Change::RemoveRanked(name),
            14 => Change::TakeLowest,
            15 if self.random.chance(4) => Change::Clear,
            18 => Change::AddEntry(number),
            19 => Change::RemoveEntry(number - i64::try_from(self.random.between(1, 20)).unwrap_or(1).min(number)),
            20 => Change::Trim(self.random.index(6)),
            _ => Change::All(number),
        }
    }

    async fn write(&mut self) -> io::Result<()> {
        let first = self.steps.len();
        let mut requests = Vec::new();
        let mut last_replies = Vec::new();
        for _ in 0..self.random.between(1, PIPELINE_MAX) {
            let change = self.draw();
            requests.extend(requests_of(&change, &self.keys()));
            last_replies.push(requests.len());
            self.steps.push(Step { change, sent_ns: time::monotonic_ns(), fate: Fate::Unknown });
        }
        self.world.trace.note(&self.name, format_args!("sends {:?}", &self.steps[first..]));
        let words: Vec<Vec<&[u8]>> =
            requests.iter().map(|words| words.iter().map(String::as_bytes).collect()).collect();
        let slices: Vec<&[&[u8]]> = words.iter().map(Vec::as_slice).collect();
        self.client.send(&slices).await?;
        let (mut received, mut is_refused) = (0, false);
        for (place, last) in last_replies.into_iter().enumerate() {
            let mut reply = Value::Null;
            while received < last {
                reply = self.client.receive().await?;
                received += 1;
            }
            self.world.trace.note(&self.name, format_args!("{reply:?}"));
            let has_error = match &reply {
                Value::Error(_) => true,
                Value::Array(replies) => replies.iter().any(|reply| matches!(reply, Value::Error(_))),
                _ => false,
            };
            is_refused |= has_error;
            self.steps[first + place].fate =
                if has_error { Fate::Refused } else { Fate::Acknowledged(time::monotonic_ns()) };
        }
        // Looks before it goes on: every refused change doubles what may be.
        if is_refused { self.look().await } else { Ok(()) }
    }

    /// Reads all keys at one moment, and judges what is there.
    async fn look(&mut self) -> io::Result<()> {
        if !self.client.is_connected() {
            self.client.connect().await?;
        }
        let keys = self.keys();
        let [list, hash, set, ranked, string, stream] = keys.each_ref().map(|key| key.as_bytes());
        let mut expiries: Vec<&[u8]> = vec![b"HPEXPIRETIME", hash, b"FIELDS", b"6"];
        expiries.extend(NAMES.iter().chain(&[COUNT, ALL]).map(|name| name.as_bytes()));
        let from_ms = self.world.server_clock().ms;
        self.client
            .send(&[
                &[b"MULTI"],
                &[b"LRANGE", list, b"0", b"-1"],
                &[b"HGETALL", hash],
                &expiries,
                &[b"SMEMBERS", set],
                &[b"ZRANGE", ranked, b"0", b"-1", b"WITHSCORES"],
                &[b"GET", string],
                &[b"XRANGE", stream, b"-", b"+"],
                &[b"EXEC"],
            ])
            .await?;
        let mut reply = Value::Null;
        for _ in 0..9 {
            reply = self.client.receive().await?;
        }
        // A field may be gone if its moment was ever there; it may be there if the moment is still to come.
        let clock = self.world.server_clock();
        let (from_ms, to_ms) = (from_ms.min(clock.ms), clock.latest_ms);
        self.world.trace.note(&self.name, format_args!("finds {reply:?}"));
        match found(&reply) {
            Some(found) => self.judge(&found, from_ms, to_ms),
            None => self.world.find(Finding::Broken, format!("{} reads {reply:?}", self.name)),
        }
        Ok(())
    }

    fn judge(&mut self, found: &State, from_ms: i64, to_ms: i64) {
        let is_promised = |step: &Step| match step.fate {
            Fate::Acknowledged(ns) => self.world.must_survive(step.sent_ns, ns),
            Fate::Unknown | Fate::Refused => false,
        };
        let least = self.steps.iter().rposition(is_promised).map_or(0, |last| last + 1);
        let judged = model::judge(&self.before, &self.steps, least, |state| state.is(found, from_ms, to_ms));
        let Some((done, state)) = judged else {
            let what = format!(
                "{} holds {found:?}, which is no state from {least} on: {:?} after {:?}",
                self.name, self.steps, self.before
            );
            self.world.find(Finding::Broken, what);
            return;
        };
        self.steps.truncate(done);
        if self.world.options.nothing_may_be_lost() {
            (self.before, self.steps) = (state, Vec::new());
        } else if self.steps.iter().any(|step| step.fate == Fate::Refused) {
            self.generation += 1;
            (self.before, self.steps) = (State::default(), Vec::new());
        }
    }
}

/// The requests of a change, as words.
fn requests_of(change: &Change, keys: &[String; 6]) -> Vec<Vec<String>> {
    let [list, hash, set, ranked, string, stream] = keys.each_ref().map(String::as_str);
    let line = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let text = |number: i64| number.to_string();
    match *change {
        Change::Append(value) => vec![line(&["RPUSH", list, &text(value)])],
        Change::Prepend(value) => vec![line(&["LPUSH", list, &text(value)])],
        Change::TakeFirst => vec![line(&["LPOP", list])],
        Change::TakeLast => vec![line(&["RPOP", list])],
        Change::SetField(field, value) => vec![line(&["HSET", hash, field, &text(value)])],
        Change::SetMortalField(field, value, at_ms) => vec![
            line(&["MULTI"]),
            line(&["HSET", hash, field, &text(value)]),
            line(&["HPEXPIREAT", hash, &text(at_ms), "FIELDS", "1", field]),
            line(&["EXEC"]),
        ],
        Change::RemoveField(field) => vec![line(&["HDEL", hash, field])],
        Change::Count(amount) => vec![line(&["HINCRBY", hash, COUNT, &text(amount)])],
        Change::AddMember(member) => vec![line(&["SADD", set, member])],
        Change::RemoveMember(member) => vec![line(&["SREM", set, member])],
        Change::Rank(member, score) => vec![line(&["ZADD", ranked, &text(score), member])],
        Change::AddToRank(member, amount) => vec![line(&["ZINCRBY", ranked, &text(amount), member])],
        Change::RemoveRanked(member) => vec![line(&["ZREM", ranked, member])],
        Change::TakeLowest => vec![line(&["ZPOPMIN", ranked])],
        Change::AddEntry(id) => vec![line(&["XADD", stream, &format!("{id}-1"), "v", &text(id)])],
        Change::RemoveEntry(id) => vec![line(&["XDEL", stream, &format!("{id}-1")])],
        Change::Trim(length) => vec![line(&["XTRIM", stream, "MAXLEN", "=", &length.to_string()])],
        Change::Clear => vec![line(&["DEL", list, hash, set, ranked, string, stream])],
        Change::All(value) => vec![
            line(&["MULTI"]),
            line(&["RPUSH", list, &text(value)]),
            line(&["HSET", hash, ALL, &text(value)]),
            line(&["SADD", set, &text(value)]),
            line(&["ZADD", ranked, &text(value), ALL]),
            line(&["SET", string, &text(value)]),
            line(&["XADD", stream, &format!("{value}-1"), "v", &text(value)]),
            line(&["EXEC"]),
        ],
    }
}

fn number_text(number: i64) -> Vec<u8> {
    number.to_string().into_bytes()
}

/// What the replies of a look say.
fn found(reply: &Value) -> Option<State> {
    let Value::Array(replies) = reply else { return None };
    let [
        Value::Array(list),
        Value::Array(pairs),
        Value::Array(expiries),
        Value::Array(set),
        Value::Array(ranked),
        string,
        Value::Array(stream),
    ] = replies.as_slice()
    else {
        return None;
    };
    let text = |value: &Value| {
        if let Value::Bulk(text) = value { String::from_utf8(text.clone()).ok() } else { None }
    };
    let mut state = State { string: number(string), ..State::default() };
    for value in list {
        state.list.push(number(value)?);
    }
    for pair in pairs.chunks_exact(2) {
        state.hash.insert(text(&pair[0])?, (number(&pair[1])?, None));
    }
    for (name, at) in NAMES.iter().chain(&[COUNT, ALL]).zip(expiries) {
        if let Some(held) = state.hash.get_mut(*name) {
            held.1 = number(at).filter(|at| *at >= 0);
        }
    }
    for entry in stream {
        let Value::Array(entry) = entry else { return None };
        let id = text(entry.first()?)?;
        let number = id.strip_suffix("-1")?.parse().ok()?;
        if entry.get(1) != Some(&Value::Array(vec![Value::Bulk(b"v".to_vec()), Value::Bulk(number_text(number))])) {
            return None;
        }
        state.stream.push(number);
    }
    for member in set {
        state.set.insert(text(member)?);
    }
    for pair in ranked.chunks_exact(2) {
        state.ranked.insert(text(&pair[0])?, number(&pair[1])?);
    }
    Some(state)
}
