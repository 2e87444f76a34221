//! Kills a server with `kill -9` at random moments under load and looks, after each restart, whether everything that
//! was acknowledged is there, in order, and nothing else.
//!
//! ```text
//! kill_loop [--server SERVER] [--mode always|write|everysec|no|forgetful] [--end kill|shutdown] [--rounds N] [--seed N]
//!           [--writers N] [--rewrites yes|no]
//! ```
//!
//! With `--rewrites yes` most lives have somebody who asks for BGREWRITEAOF and BGSAVE at random, and each key of those takes a little,
//! so that the kill meets them anywhere. Then dump.rdb must be whole after each life, and no file be left that the manifest does not name.
//!
//! `--end shutdown` asks the server to end instead, under the same load: then every mode keeps all that it acknowledged
//! (RELIABILITY D16). The seed fixes what is written and for how long a server lives; where in its work the kill meets it is
//! the machine's doing. `forgetful` is the test of the test: a server without a log, whose loss must be found.

use anyhow::{Context, Result, bail};
use simurgh_tests::client::Client;
use simurgh_tests::outcome::report;
use simurgh_tests::random::{Random, SEED};
use simurgh_tests::resp::{Value, write_request};
use simurgh_tests::server::{Program, Server, our_tool};
use simurgh_tests::writes::{Contents, SHARED_COUNTER, Write, explain};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The longest time that a server lives under load.
const LIFE_MS_MAX: u64 = 400;

/// How long the first life is prolonged until something is acknowledged.
const FIRST_REPLY_MAX: Duration = Duration::from_secs(20);

/// Writes that a writer sends in one go, at most.
const BATCH_MAX: u64 = 24;

struct Options {
    server: Program,
    mode: String,
    asks_to_end: bool,
    rounds: usize,
    seed: u64,
    writers: usize,
    rewrites: bool,
}

fn main() -> ExitCode {
    report(options().and_then(|options| match options.mode.as_str() {
        "forgetful" => {
            let (_, found) = run(&options)?;
            Ok((found, 1 - found))
        }
        _ => run(&options),
    }))
}

fn options() -> Result<Options> {
    let mut options = Options {
        server: Program::Ours,
        mode: "always".into(),
        asks_to_end: false,
        rounds: 20,
        seed: SEED,
        writers: 4,
        rewrites: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().with_context(|| format!("{name} wants a value"))?;
        match name.as_str() {
            "--server" => options.server = Program::parse(&value)?,
            "--mode" => options.mode = value,
            "--end" => options.asks_to_end = value == "shutdown",
            "--rounds" => options.rounds = value.parse()?,
            "--seed" => options.seed = value.parse()?,
            "--rewrites" => options.rewrites = value == "yes",
            "--writers" => options.writers = value.parse()?,
            _ => bail!("no such option: {name}"),
        }
    }
    Ok(options)
}

/// Redis has no mode `write`; what it promises there is what its `everysec` does: written before the reply.
fn fsync_of<'a>(server: &Program, mode: &'a str) -> &'a str {
    if mode == "write" && *server != Program::Ours { "everysec" } else { mode }
}

fn run(options: &Options) -> Result<(usize, usize)> {
    let end = if options.asks_to_end { "SHUTDOWN" } else { "kill -9" };
    println!("{end} of {} in mode {}, seed {}", options.server.name(), options.mode, options.seed);
    let mut words = match options.mode.as_str() {
        "forgetful" => vec!["--appendonly", "no"],
        mode => vec!["--appendonly", "yes", "--appendfsync", fsync_of(&options.server, mode)],
    };
    if options.rewrites {
        // Microseconds; a life writes some dozens of keys.
        words.extend(["--rdb-key-save-delay", "200"]);
    }
    let mut server = Server::start(&options.server, &words)?;
    let snapshots = Snapshots::default();
    let mut random = Random::new(options.seed);
    let mut writers: Vec<Writer> = (0..options.writers).map(|number| Writer::new(number, random.bits())).collect();
    let (mut counted, mut writes) = (0, 0);
    let acknowledged = AtomicUsize::new(0);
    for round in 0..options.rounds {
        let lives_ms = 20 + random.below(LIFE_MS_MAX);
        let rewriter = (options.rewrites && !random.one_in(4)).then(|| Random::new(random.bits()));
        let ended = std::thread::scope(|scope| {
            let address = server.address;
            for writer in &mut writers {
                let acknowledged = &acknowledged;
                scope.spawn(move || writer.write_until_the_end(address, acknowledged));
            }
            if let Some(random) = rewriter {
                let snapshots = &snapshots;
                scope.spawn(move || snapshots.ask_until_the_end(address, random));
            }
            std::thread::sleep(Duration::from_millis(lives_ms));
            // On a machine that is busy with other things a first life may be over before anything was acknowledged.
            let begin = Instant::now();
            while round == 0 && acknowledged.load(Relaxed) == 0 && begin.elapsed() < FIRST_REPLY_MAX {
                std::thread::sleep(Duration::from_millis(5));
            }
            if options.asks_to_end {
                return server.shut_down();
            }
            server.kill();
            Ok(())
        });
        ended.with_context(|| format!("round {round}"))?;
        if random.one_in(3) && !options.asks_to_end {
            killed_while_it_starts(&mut server, &mut random)?;
        }
        server.launch().with_context(|| format!("round {round}: it does not come back"))?;
        writes += writers.iter().map(|writer| writer.acknowledged_now).sum::<usize>();
        let verified = verify(server.address, &mut writers, counted);
        match verified.and_then(|now| if options.rewrites { look_at_files(&server).map(|()| now) } else { Ok(now) }) {
            Ok(now) => counted = now,
            Err(error) => {
                println!("round {round}, killed after {lives_ms} ms: {error:#}");
                if options.mode != "forgetful" {
                    println!("its files are kept in {}", server.keep_folder().display());
                }
                return Ok((round, 1));
            }
        }
    }
    println!("{writes} acknowledged writes in {} rounds", options.rounds);
    if options.rewrites {
        let (asked, begun) = (snapshots.asked.into_inner(), snapshots.begun.into_inner());
        println!("{asked} rewrites and snapshots asked for, {begun} begun");
        anyhow::ensure!(begun > 0, "no rewrite was begun: this proves nothing of them");
    }
    if writes == 0 {
        bail!("no write was acknowledged: this proves nothing");
    }
    Ok((options.rounds, 0))
}

/// Recovery may be cut short too, and then begins anew.
fn killed_while_it_starts(server: &mut Server, random: &mut Random) -> Result<()> {
    server.spawn()?;
    std::thread::sleep(Duration::from_millis(random.below(60)));
    server.kill();
    Ok(())
}

/// Rewrites and snapshots that were asked for, and those of them that began at once.
#[derive(Default)]
struct Snapshots {
    asked: AtomicUsize,
    begun: AtomicUsize,
}

impl Snapshots {
    /// Asks for one after the other until the connection ends.
    fn ask_until_the_end(&self, address: SocketAddr, mut random: Random) {
        let Ok(mut client) = Client::connect(address) else { return };
        loop {
            std::thread::sleep(Duration::from_millis(random.below(40)));
            let request = random.pick(&["BGREWRITEAOF", "BGREWRITEAOF", "BGSAVE"]);
            let Ok(reply) = client.ask(&[request]) else { return };
            self.asked.fetch_add(1, Relaxed);
            if matches!(&reply, Value::Simple(text) if text.ends_with(b"started")) {
                self.begun.fetch_add(1, Relaxed);
            }
        }
    }
}

/// Nobody rewrites now: dump.rdb must be whole if it is there, and all else the manifest's.
fn look_at_files(server: &Server) -> Result<()> {
    let dump = server.folder().join("dump.rdb");
    if dump.exists() {
        let (good, text) = our_tool(&["check-rdb", &dump.to_string_lossy()]);
        anyhow::ensure!(good, "dump.rdb: {text}");
    }
    let log = server.folder().join("appendonlydir");
    let manifest = std::fs::read_to_string(log.join("appendonly.aof.manifest"))?;
    for entry in std::fs::read_dir(&log)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let is_named = manifest.contains(&format!("file {name} ")) || name == "appendonly.aof.manifest";
        anyhow::ensure!(is_named, "{name} was left behind: {manifest}");
    }
    Ok(())
}

/// Compares what is there with what each writer may expect; gives the value of the shared counter.
fn verify(address: SocketAddr, writers: &mut [Writer], counted: u64) -> Result<u64> {
    let mut client = Client::connect(address)?;
    let shared = match client.ask(&["GET", SHARED_COUNTER])? {
        Value::Bulk(text) => String::from_utf8(text)?.parse()?,
        Value::Nil => 0,
        other => bail!("the counter is {other:?}"),
    };
    let sure: u64 = writers.iter().map(|writer| writer.shared_counts_now).sum();
    let seen = writers.iter().map(|writer| writer.counter_seen).max().unwrap_or(0);
    let perhaps: u64 = writers.iter().flat_map(|writer| &writer.unacknowledged).map(Write::shared_counts).sum();
    if shared < counted + sure || shared < seen || shared > counted + sure + perhaps {
        bail!(
            "the counter was {counted}, {sure} more were acknowledged, {perhaps} perhaps done, {seen} was read; it is {shared}"
        );
    }
    let mut keys = 0;
    for writer in writers.iter_mut() {
        keys += writer.settle(&mut client)?;
    }
    let expected = keys + usize::from(shared > 0);
    match client.ask(&["DBSIZE"])? {
        Value::Integer(size) if size == expected as i64 => Ok(shared),
        other => bail!("{expected} keys are known, DBSIZE says {other:?}"),
    }
}

struct Writer {
    number: usize,
    random: Random,
    contents: Contents,
    unacknowledged: Vec<Write>,
    acknowledged_now: usize,
    shared_counts_now: u64,
    /// The largest value of the shared counter that a reply has shown: it must not be less later.
    counter_seen: u64,
}

impl Writer {
    fn new(number: usize, seed: u64) -> Self {
        Writer {
            number,
            random: Random::new(seed),
            contents: Contents::new(),
            unacknowledged: Vec::new(),
            acknowledged_now: 0,
            shared_counts_now: 0,
            counter_seen: 0,
        }
    }

    /// Writes until the connection ends. A refused write is an error of the server, and is reported by `settle`.
    fn write_until_the_end(&mut self, address: SocketAddr, acknowledged: &AtomicUsize) {
        self.acknowledged_now = 0;
        self.shared_counts_now = 0;
        if let Ok(mut client) = Client::connect(address) {
            while self.write_batch(&mut client).is_some() {
                acknowledged.store(1, Relaxed);
            }
        }
    }

    /// Sends a batch and reads what comes; nothing when the connection has ended.
    fn write_batch(&mut self, client: &mut Client) -> Option<()> {
        let batch: Vec<Write> =
            (0..=self.random.below(BATCH_MAX)).map(|_| Write::random(&mut self.random, self.number)).collect();
        let mut bytes = Vec::new();
        let replies: Vec<usize> = batch.iter().map(|write| write.request(&mut bytes)).collect();
        write_request(&mut bytes, &["GET", SHARED_COUNTER]);
        self.unacknowledged.extend(batch);
        client.send(&bytes).ok()?;
        for count in replies {
            let mut last = Value::Nil;
            for _ in 0..count {
                last = client.read().ok()??.value;
            }
            self.acknowledge(&last);
        }
        if let Value::Bulk(text) = client.read().ok()??.value {
            self.counter_seen = String::from_utf8_lossy(&text).parse().unwrap_or(0);
        }
        Some(())
    }

    fn acknowledge(&mut self, reply: &Value) {
        let write = self.unacknowledged.remove(0);
        assert!(write.is_done(reply), "{write:?} was answered with {reply:?}");
        write.apply(&mut self.contents);
        self.shared_counts_now += write.shared_counts();
        self.acknowledged_now += 1;
    }

    /// Finds the contents that the server came back with among those that are allowed, and goes on from them.
    fn settle(&mut self, client: &mut Client) -> Result<usize> {
        let mut found = Contents::new();
        let mut keys: Vec<String> = (0..12).map(|n| format!("{}:{n}", self.number)).collect();
        keys.extend((0..3).map(|n| format!("{}:n{n}", self.number)));
        for key in keys {
            let Value::Bulk(value) = client.ask(&["GET", &key])? else { continue };
            let at = match client.ask(&["PEXPIRETIME", &key])? {
                Value::Integer(at) => u64::try_from(at).ok(),
                other => bail!("PEXPIRETIME {key}: {other:?}"),
            };
            found.insert(key, (String::from_utf8(value)?, at));
        }
        if explain(&self.contents, &self.unacknowledged, &found).is_none() {
            bail!("writer {}: {}", self.number, first_difference(&self.contents, &found, self.unacknowledged.len()));
        }
        self.contents = found;
        self.unacknowledged.clear();
        Ok(self.contents.len())
    }
}

fn first_difference(acknowledged: &Contents, found: &Contents, unacknowledged: usize) -> String {
    let keys = acknowledged.keys().chain(found.keys());
    let differing = keys
        .filter(|key| acknowledged.get(*key) != found.get(*key))
        .map(|key| format!("{key}: acknowledged {:.80?}, found {:.80?}", acknowledged.get(key), found.get(key)));
    let list: Vec<String> = differing.take(5).collect();
    format!("no beginning of its {unacknowledged} unacknowledged writes explains what is there: {}", list.join("; "))
}
