//! A load of SET and GET at a fixed rate, and how long its requests wait at rest and while the server writes a snapshot or a new log.
//!
//! Usage: `save_load --port PORT --keys N --connections C --rate R --seconds S --job BGSAVE|BGREWRITEAOF --repeat K`. One line of
//! JSON for the time at rest and one for the time in which the job was under way, which is begun `K` times.
//!
//! Requests have a time at which they are due. One that could not be sent then, because the reply before it was late, has waited since
//! then: a server that stands still for 20 ms keeps everybody waiting who would have come in that time, not only who was there.

use anyhow::{Context, Result, bail};
use simurgh_tests::client::Client;
use simurgh_tests::random::Random;
use simurgh_tests::resp::Value;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often the server is asked whether the job is still under way.
const POLL: Duration = Duration::from_millis(5);
/// Rest between two jobs.
const PAUSE: Duration = Duration::from_millis(500);
/// How long one job may take.
const JOB_SECONDS_MAX: u64 = 300;
const VALUE: [u8; 64] = [b'y'; 64];

#[derive(Clone)]
struct Load {
    address: SocketAddr,
    keys: u64,
    connections: u64,
    rate: u64,
    rest: Duration,
    job: String,
    repeat: u32,
}

/// One answered request: when its reply came, and how long it was due.
struct Sample {
    at: Instant,
    waited: Duration,
}

/// From when to when something went on.
type Window = (Instant, Instant);

fn main() -> Result<()> {
    let load = arguments()?;
    let stop = AtomicBool::new(false);
    let (mut samples, windows) = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..load.connections)
            .map(|number| {
                let (load, stop) = (&load, &stop);
                scope.spawn(move || send(load, number, stop))
            })
            .collect();
        let windows = watch(&load);
        stop.store(true, Ordering::Relaxed);
        let mut samples = Vec::new();
        for client in clients {
            samples.extend(client.join().expect("a client does not panic")?);
        }
        anyhow::Ok((samples, windows?))
    })?;
    let (rest, jobs) = windows;
    samples.sort_by_key(|sample| sample.at);
    print("rest", &[rest], &samples);
    print(&load.job, &jobs, &samples);
    Ok(())
}

fn arguments() -> Result<Load> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |name: &str| {
        let at = words.iter().position(|word| word == name).with_context(|| format!("{name} is missing"))?;
        words.get(at + 1).with_context(|| format!("{name} wants a value"))
    };
    let number = |name: &str| -> Result<u64> { Ok(word(name)?.parse()?) };
    Ok(Load {
        address: SocketAddr::from(([127, 0, 0, 1], word("--port")?.parse()?)),
        keys: number("--keys")?.max(1),
        connections: number("--connections")?.max(1),
        rate: number("--rate")?.max(1),
        rest: Duration::from_secs(number("--seconds")?),
        job: word("--job")?.clone(),
        repeat: word("--repeat")?.parse()?,
    })
}

/// One connection's requests until it is told to stop.
fn send(load: &Load, number: u64, stop: &AtomicBool) -> Result<Vec<Sample>> {
    let mut client = Client::connect(load.address)?;
    let mut random = Random::new(number + 1);
    let gap = Duration::from_secs(1) * u32::try_from(load.connections)? / u32::try_from(load.rate)?;
    let mut due = Instant::now() + gap * u32::try_from(number)? / u32::try_from(load.connections)?;
    let mut samples = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let now = Instant::now();
        // Who sleeps a little too long has not waited for the server.
        let begin = if now < due {
            std::thread::sleep(due - now);
            Instant::now()
        } else {
            due
        };
        let key = format!("key:{:012}", random.below(load.keys));
        let reply = if random.one_in(2) {
            client.ask(&[b"SET", key.as_bytes(), &VALUE])?
        } else {
            client.ask(&["GET", &key])?
        };
        if let Value::Error(text) = reply {
            bail!("refused: {text:?}");
        }
        let at = Instant::now();
        samples.push(Sample { at, waited: at - begin });
        due += gap;
    }
    Ok(samples)
}

/// Lets the load run at rest, then begins the job as often as asked; when that was.
fn watch(load: &Load) -> Result<(Window, Vec<Window>)> {
    let mut client = Client::connect(load.address)?;
    std::thread::sleep(Duration::from_millis(500));
    let begin = Instant::now();
    std::thread::sleep(load.rest);
    let rest = (begin, Instant::now());
    let mut jobs = Vec::new();
    for _ in 0..load.repeat {
        let begin = Instant::now();
        if let Value::Error(text) = client.ask(&[&load.job])? {
            bail!("{} is refused: {text:?}", load.job);
        }
        while is_under_way(&mut client)? {
            if begin.elapsed().as_secs() > JOB_SECONDS_MAX {
                bail!("{} does not end", load.job);
            }
            std::thread::sleep(POLL);
        }
        jobs.push((begin, Instant::now()));
        std::thread::sleep(PAUSE);
    }
    Ok((rest, jobs))
}

fn is_under_way(client: &mut Client) -> Result<bool> {
    let Value::Bulk(info) = client.ask(&["INFO", "persistence"])? else { bail!("INFO is not text") };
    let info = String::from_utf8_lossy(&info);
    Ok(["rdb_bgsave_in_progress:1", "aof_rewrite_in_progress:1", "aof_rewrite_scheduled:1"]
        .iter()
        .any(|field| info.contains(field)))
}

fn print(name: &str, windows: &[Window], samples: &[Sample]) {
    let mut waited: Vec<Duration> = Vec::new();
    for (from, to) in windows {
        let begin = samples.partition_point(|sample| sample.at < *from);
        // What was due within the window and came after it belongs to it.
        let late = |sample: &&Sample| sample.at <= *to || sample.at - sample.waited < *to;
        waited.extend(samples[begin..].iter().take_while(late).map(|sample| sample.waited));
    }
    waited.sort();
    let share = |share: f64| {
        let at = ((waited.len() as f64 * share) as usize).min(waited.len().saturating_sub(1));
        waited.get(at).map_or(0.0, Duration::as_secs_f64) * 1000.0
    };
    let seconds: f64 = windows.iter().map(|(from, to)| (*to - *from).as_secs_f64()).sum();
    println!(
        "{{\"name\":\"{name}\",\"seconds\":{seconds:.3},\"requests\":{},\"p50\":{:.3},\"p99\":{:.3},\"p999\":{:.3},\"max\":{:.3}}}",
        waited.len(),
        share(0.5),
        share(0.99),
        share(0.999),
        share(1.0)
    );
}
