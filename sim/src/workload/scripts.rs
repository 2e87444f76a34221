//! Tellers: transfers between the bank's accounts by scripts and functions, which name both accounts, one of them or none, and now and then
//! stop to think before a change or between two of them, for several slices. Whoever adds up the accounts (`bank`) finds zero,
//! whatever was killed, crashed or shut down in the middle. What a script stores from its clock and its random numbers is another thing
//! when it runs again, so a log of scripts in place of their effects does not replay to the same keys (see the last look).
//!
//! Each teller has a library whose function tells the library's number: one that was promised is never gone, and none is older.

use std::io;

use simurgh_kernel::time;
use simurgh_protocol::resp::decode::Value;

use super::bank::ACCOUNTS;
use super::think;
use crate::client::Client;
use crate::random::Random;
use crate::tally;
use crate::world::{Finding, World};

/// Both a script and the body of a function, whose arguments are bound to the same names.
const TRANSFER: &str = "for _ = 1, tonumber(ARGV[4]) do end \
     redis.call('DECRBY', ARGV[1], ARGV[3]) \
     for _ = 1, tonumber(ARGV[5]) do end \
     redis.call('INCRBY', ARGV[2], ARGV[3]) \
     if ARGV[6] ~= '' then local now = redis.call('TIME') \
     redis.call('SET', ARGV[6], now[1] .. ' ' .. now[2] .. ' ' .. math.random()) end";

/// How a script may end otherwise: killed, refused, unknown after a restart.
const USUAL_ERRORS: [&str; 6] = ["Script killed", "MISCONF", "NOSCRIPT", "Function not found", "LOADING", "EXECABORT"];

/// Times through a loop; a slice is about a hundred thousand.
const THOUGHTS: [u64; 3] = [60_000, 250_000, 600_000];

/// A library that was sent.
#[derive(Debug, Clone, Copy)]
struct Load {
    number: i64,
    sent_ns: u64,
    acknowledged_ns: Option<u64>,
}

struct Teller {
    world: World,
    name: String,
    client: Client,
    random: Random,
    /// What EVALSHA calls, once the server has it.
    digest: Option<Vec<u8>>,
    /// A library whose fate is unknown may come late; then another is taken.
    generation: u64,
    loads: Vec<Load>,
    next_number: i64,
}

/// Runs one client until the world stops.
pub async fn run(world: World, index: u64) {
    let name = format!("teller-{index}");
    let mut teller = Teller {
        client: Client::new(world.address),
        random: Random::of(world.options.seed, &name),
        digest: None,
        generation: 0,
        loads: Vec::new(),
        next_number: 1,
        world,
        name,
    };
    while !teller.world.is_stopping() {
        if let Err(error) = teller.turn().await {
            teller.world.connection_failed(&teller.name, &error);
        }
        think(&mut teller.random).await;
    }
}

impl Teller {
    async fn turn(&mut self) -> io::Result<()> {
        if !self.client.is_connected() {
            return self.client.connect().await;
        }
        match self.random.below(16) {
            0..3 => super::bank::audit(&self.world, &self.name, &mut self.client).await,
            3 => self.kill().await,
            4 => self.load().await,
            5..9 => self.call_function().await,
            9..11 => self.call_digest().await,
            11 => self.call_in_transaction().await,
            _ => {
                let words = self.transfer(&[b"EVAL", format!("{TRANSFER} return 1").as_bytes()]);
                let reply = self.ask(&words).await?;
                self.expect_one(&reply);
                Ok(())
            }
        }
    }

    /// The words of a call that begins so.
    fn transfer(&mut self, call: &[&[u8]]) -> Vec<Vec<u8>> {
        let random = &mut self.random;
        let from = random.index(ACCOUNTS.len());
        let to = (from + 1 + random.index(ACCOUNTS.len() - 1)) % ACCOUNTS.len();
        let (from, to) = (ACCOUNTS[from].as_bytes(), ACCOUNTS[to].as_bytes());
        let both = [from, to];
        let keys = &both[random.pick(&[0..2, 0..1, 1..2, 0..0]).clone()];
        let mut words: Vec<Vec<u8>> = call.iter().map(|word| word.to_vec()).collect();
        words.push(keys.len().to_string().into_bytes());
        words.extend(keys.iter().map(|key| key.to_vec()));
        words.extend([from.to_vec(), to.to_vec(), random.between(1, 100).to_string().into_bytes()]);
        for _ in 0..2 {
            let thoughts = if random.chance(6) { *random.pick(&THOUGHTS) } else { 0 };
            words.push(thoughts.to_string().into_bytes());
        }
        words.push(if random.chance(4) { format!("stamp:{}", self.name).into_bytes() } else { Vec::new() });
        words
    }

    async fn ask(&mut self, words: &[Vec<u8>]) -> io::Result<Value> {
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let reply = self.client.call(&words).await?;
        self.world.trace.note(&self.name, format_args!("{:?} {reply:?}", words.get(2..)));
        self.look_at_error(&reply);
        Ok(reply)
    }

    fn look_at_error(&self, reply: &Value) {
        let Value::Error(text) = reply else { return };
        let text = String::from_utf8_lossy(text);
        if !USUAL_ERRORS.iter().any(|usual| text.contains(usual)) {
            self.world.find(Finding::Broken, format!("{}'s script ends with {text}", self.name));
        }
        if text.contains("Script killed") {
            tally::reach("a script was killed");
        }
    }

    fn expect_one(&self, reply: &Value) {
        match reply {
            Value::Integer(1) | Value::Error(_) => {}
            other => self.world.find(Finding::Broken, format!("{} gets {other:?} from a script", self.name)),
        }
    }

    async fn call_digest(&mut self) -> io::Result<()> {
        let Some(digest) = self.digest.clone() else {
            let script = format!("{TRANSFER} return 1");
            if let Value::Bulk(digest) = self.client.call(&[b"SCRIPT", b"LOAD", script.as_bytes()]).await? {
                self.digest = Some(digest);
            }
            return Ok(());
        };
        let words = self.transfer(&[b"EVALSHA", &digest]);
        let reply = self.ask(&words).await?;
        self.expect_one(&reply);
        if matches!(reply, Value::Error(_)) {
            self.digest = None;
        }
        Ok(())
    }

    async fn call_in_transaction(&mut self) -> io::Result<()> {
        let script = format!("{TRANSFER} return 1");
        let transfers = [(); 2].map(|()| self.transfer(&[b"EVAL", script.as_bytes()]));
        let [one, two] = transfers.each_ref().map(|words| words.iter().map(Vec::as_slice).collect::<Vec<&[u8]>>());
        self.client.send(&[&[b"MULTI"], &one, &two, &[b"EXEC"]]).await?;
        let mut reply = Value::Null;
        for _ in 0..4 {
            reply = self.client.receive().await?;
        }
        self.world.trace.note(&self.name, format_args!("EXEC of two scripts {reply:?}"));
        self.look_at_error(&reply);
        match &reply {
            Value::Array(replies) => replies.iter().for_each(|reply| {
                self.look_at_error(reply);
                self.expect_one(reply);
            }),
            other => self.expect_one(other),
        }
        Ok(())
    }

    /// Tries to kill whatever script or function runs.
    async fn kill(&mut self) -> io::Result<()> {
        let kind: [&[u8]; 2] = [b"SCRIPT", b"FUNCTION"];
        let kind = kind[self.random.index(2)];
        let reply = self.client.call(&[kind, b"KILL"]).await?;
        self.world.trace.note(&self.name, format_args!("KILL {reply:?}"));
        match &reply {
            Value::Simple(text) if text == b"OK" => {}
            Value::Error(text) if text.starts_with(b"NOTBUSY") || text.starts_with(b"UNKILLABLE") => {}
            other => self.world.find(Finding::Broken, format!("{} gets {other:?} from KILL", self.name)),
        }
        Ok(())
    }

    fn function(&self) -> String {
        format!("transfer_{}_{}", self.name.replace('-', "_"), self.generation)
    }

    /// Loads the library with the next number.
    async fn load(&mut self) -> io::Result<()> {
        let (number, function) = (self.next_number, self.function());
        self.next_number += 1;
        let text = format!(
            "#!lua name={function}\nredis.register_function('{function}', function(keys, ARGV) {TRANSFER} return {number} end)"
        );
        self.loads.push(Load { number, sent_ns: time::monotonic_ns(), acknowledged_ns: None });
        let reply = self.client.call(&[b"FUNCTION", b"LOAD", b"REPLACE", text.as_bytes()]).await;
        self.world.trace.note(&self.name, format_args!("FUNCTION LOAD of number {number} {reply:?}"));
        match reply? {
            Value::Bulk(name) if name == function.as_bytes() => {
                if let Some(load) = self.loads.last_mut() {
                    load.acknowledged_ns = Some(time::monotonic_ns());
                }
            }
            Value::Error(_) => {}
            other => self.world.find(Finding::Broken, format!("{} gets {other:?} from FUNCTION LOAD", self.name)),
        }
        Ok(())
    }

    async fn call_function(&mut self) -> io::Result<()> {
        if self.loads.last().is_none_or(|load| load.acknowledged_ns.is_none()) {
            self.loads.clear();
            self.generation += 1;
            return self.load().await;
        }
        let function = self.function();
        let words = self.transfer(&[b"FCALL", function.as_bytes()]);
        let reply = self.ask(&words).await?;
        let survives = |load: &&Load| {
            load.acknowledged_ns.is_some_and(|acknowledged_ns| self.world.must_survive(load.sent_ns, acknowledged_ns))
        };
        let least = self.loads.iter().rfind(survives).map_or(0, |load| load.number);
        let is_right = match &reply {
            Value::Integer(number) => *number >= least && self.loads.iter().any(|load| load.number == *number),
            Value::Error(text) => least == 0 || !text.ends_with(b"Function not found"),
            _ => false,
        };
        if !is_right {
            let what = format!("{} gets {reply:?} from a function of which number {least} was promised", self.name);
            self.world.find(Finding::Broken, what);
        }
        Ok(())
    }
}
