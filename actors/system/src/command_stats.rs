//! How often each command ran and how long it took: INFO commandstats, errorstats and latencystats, LATENCY HISTOGRAM.
//!
//! Every thread counts in a lane of its own, so that counting is a load and a store on memory that nobody else writes (an atomic
//! addition costs more than finding a small value); whoever reads adds up. Times go to a histogram whose buckets are 1/128 wide
//! (two significant digits), made when a command first runs.

use simurgh_protocol::Reply;
use simurgh_protocol::command::{Command, CommandSpec, top_level};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

/// Buckets of a power of two.
const STEPS: u64 = 128;
/// Times above this, in nanoseconds, count as this.
const NANOS_MAX: u64 = 1_000_000_000;
/// Number of buckets.
const BUCKETS: usize = bucket_of(NANOS_MAX) + 1;
/// How many codes of errors are told apart. More than that come from scripts that make them up: then none is, as in Redis, until
/// CONFIG RESETSTAT.
const CODES_MAX: usize = 128;
/// A code has so many bytes at most, with the `-` before it.
const CODE_BYTES_MAX: usize = 32;
const NO_LONGER_TOLD_APART: &str = "ERRORSTATS_DISABLED";

/// The bucket of a time.
const fn bucket_of(nanos: u64) -> usize {
    let nanos = if nanos > NANOS_MAX { NANOS_MAX } else { nanos };
    if nanos < 2 * STEPS {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - STEPS.ilog2();
    (shift as u64 * STEPS + (nanos >> shift)) as usize
}

/// The longest time that a bucket counts, in nanoseconds.
fn bucket_end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * STEPS {
        return bucket;
    }
    let shift = bucket / STEPS - 1;
    ((bucket - shift * STEPS + 1) << shift) - 1
}

/// The distribution of a command's times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram(Vec<u64>);

impl Histogram {
    fn empty() -> Self {
        Self(vec![0; BUCKETS])
    }

    fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// How many were at most as long as the bucket of `nanos` is.
    fn count_to(&self, nanos: u64) -> u64 {
        self.0[..=bucket_of(nanos)].iter().sum()
    }

    /// The time, in nanoseconds, that `percent` of all did not exceed.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> u64 {
        let wanted = ((percent / 100.0 * self.total() as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.0.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return bucket_end(bucket);
            }
        }
        0
    }
}

/// Answers a histogram as LATENCY HISTOGRAM does: ends of powers of two in microseconds, with how many were not longer.
pub(crate) fn write_histogram(histogram: &Histogram, reply: &mut Reply) {
    let (total, mut seen, mut steps) = (histogram.total(), 0, Vec::new());
    let mut level = 1024;
    while seen < total {
        let count = histogram.count_to(level);
        if count > seen {
            steps.push((bucket_end(bucket_of(level)) / 1000, count));
            seen = count;
        }
        level *= 2;
    }
    reply.map(steps.len());
    for (micros, count) in steps {
        reply.integer(i64::try_from(micros).unwrap_or(i64::MAX));
        reply.integer(i64::try_from(count).unwrap_or(i64::MAX));
    }
}

/// Lanes besides those of the cores: the threads of timers and of the log may run a command that waits for a shard they hold.
const MORE_LANES: usize = 2;

/// The number of the calling thread among all that have ever counted.
#[inline]
pub(crate) fn thread_number() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! { static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) } }
    NUMBER.with(|number| {
        if number.get() == usize::MAX {
            number.set(THREADS.fetch_add(1, Relaxed));
        }
        number.get()
    })
}

/// A place where one thread counts, or all those that came late.
struct Lane<'a> {
    counters: &'a Counters,
    is_own: bool,
}

impl Lane<'_> {
    #[inline]
    fn add(&self, counter: &AtomicU64, amount: u64) {
        if self.is_own {
            counter.store(counter.load(Relaxed).wrapping_add(amount), Relaxed);
        } else {
            counter.fetch_add(amount, Relaxed);
        }
    }
}

/// What one lane knows of one command.
#[derive(Debug, Default)]
struct Counters {
    calls: AtomicU64,
    nanos: AtomicU64,
    rejected: AtomicU64,
    failed: AtomicU64,
    times: OnceLock<Box<[AtomicU64]>>,
}

/// What is known of one command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandCount {
    /// How often it ran.
    pub calls: u64,
    /// How long that took, in nanoseconds.
    pub nanos: u64,
    /// How often it was refused before it ran.
    pub rejected: u64,
    /// How often it ran and answered an error.
    pub failed: u64,
}

/// The counters of all commands.
#[derive(Debug)]
pub struct CommandStats {
    /// The last one is shared by all threads that came late.
    lanes: Vec<Box<[Counters]>>,
    errors: Mutex<ErrorCodes>,
}

/// How often an error with each code was answered.
#[derive(Debug, Default)]
struct ErrorCodes {
    counts: BTreeMap<String, u64>,
    is_full: bool,
}

impl ErrorCodes {
    fn add(&mut self, code: &str) {
        if let Some(count) = self.counts.get_mut(code) {
            *count += 1;
        } else if self.counts.len() < CODES_MAX && !self.is_full {
            self.counts.insert(code.to_owned(), 1);
        } else if !self.is_full {
            tracing::warn!(
                codes = ?self.counts.keys().collect::<Vec<_>>(),
                "errors are no longer counted by their codes, of which there are too many: scripts may make them up; CONFIG RESETSTAT \
                 begins again"
            );
            *self = Self { counts: BTreeMap::from([(NO_LONGER_TOLD_APART.to_owned(), 1)]), is_full: true };
        }
    }
}

/// The spec of the command with this number.
pub(crate) fn spec_of(index: usize) -> &'static CommandSpec {
    static SPECS: LazyLock<Vec<&'static CommandSpec>> = LazyLock::new(|| {
        let all = top_level().iter().flat_map(|top| std::iter::once(top).chain(top.subcommands));
        let mut specs: Vec<_> = all.filter(|spec| spec.command.is_some()).copied().collect();
        specs.sort_by_key(|spec| spec.command.map(Command::index));
        specs
    });
    SPECS[index]
}

impl CommandStats {
    /// Counters for a node with `cores` cores of connections.
    #[must_use]
    pub fn new(cores: usize) -> Self {
        let of_lane = |_| (0..Command::COUNT).map(|_| Counters::default()).collect();
        Self { lanes: (0..=cores + MORE_LANES).map(of_lane).collect(), errors: Mutex::default() }
    }

    #[inline]
    fn lane(&self, command: Command) -> Lane<'_> {
        let (number, shared) = (thread_number(), self.lanes.len() - 1);
        Lane { counters: &self.lanes[number.min(shared)][command.index()], is_own: number < shared }
    }

    /// A command has run.
    #[inline]
    pub fn called(&self, command: Command, nanos: u64, succeeded: bool, tracking: bool) {
        let lane = self.lane(command);
        lane.add(&lane.counters.calls, 1);
        lane.add(&lane.counters.nanos, nanos);
        if !succeeded {
            lane.add(&lane.counters.failed, 1);
        }
        if tracking {
            let times = lane.counters.times.get_or_init(|| (0..BUCKETS).map(|_| AtomicU64::new(0)).collect());
            lane.add(&times[bucket_of(nanos)], 1);
        }
    }

    /// A command that had been counted has failed after all.
    pub fn failed(&self, command: Command) {
        let lane = self.lane(command);
        lane.add(&lane.counters.failed, 1);
    }

    /// A command was refused before it ran.
    pub fn rejected(&self, command: Command) {
        let lane = self.lane(command);
        lane.add(&lane.counters.rejected, 1);
    }

    /// An error was answered: in `line`, its code stands between a `-` and a blank. One without a code counts as `ERR`.
    pub fn error(&self, line: &[u8]) {
        let begin = &line[..line.len().min(CODE_BYTES_MAX)];
        let code = begin.strip_prefix(b"-").and_then(|rest| Some(&rest[..rest.iter().position(|byte| *byte == b' ')?]));
        let code = code.unwrap_or(b"ERR");
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).add(&String::from_utf8_lossy(code));
    }

    /// Codes of errors, with how often each was answered.
    #[must_use]
    pub fn errors(&self) -> Vec<(String, u64)> {
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        errors.counts.iter().map(|(code, count)| (code.clone(), *count)).collect()
    }

    /// What is known of each command that was ever called or refused.
    #[must_use]
    pub fn commands(&self) -> Vec<(&'static CommandSpec, CommandCount)> {
        let counts = (0..Command::COUNT).map(|index| (spec_of(index), self.count(index)));
        counts.filter(|(_, count)| count.calls > 0 || count.rejected > 0).collect()
    }

    fn count(&self, index: usize) -> CommandCount {
        let mut sum = CommandCount::default();
        for counters in self.lanes.iter().map(|lane| &lane[index]) {
            sum.calls += counters.calls.load(Relaxed);
            sum.nanos += counters.nanos.load(Relaxed);
            sum.rejected += counters.rejected.load(Relaxed);
            sum.failed += counters.failed.load(Relaxed);
        }
        sum
    }

    /// How many times of a command are known, and how they are distributed.
    #[must_use]
    pub fn histogram(&self, command: Command) -> (u64, Histogram) {
        let mut sum = Histogram::empty();
        for times in self.lanes.iter().filter_map(|lane| lane[command.index()].times.get()) {
            for (sum, count) in sum.0.iter_mut().zip(times) {
                *sum += count.load(Relaxed);
            }
        }
        (sum.total(), sum)
    }

    /// CONFIG RESETSTAT.
    pub fn reset(&self) {
        for counters in self.lanes.iter().flatten() {
            for counter in [&counters.calls, &counters.nanos, &counters.rejected, &counters.failed] {
                counter.store(0, Relaxed);
            }
            counters.times.get().into_iter().flatten().for_each(|count| count.store(0, Relaxed));
        }
        *self.errors.lock().unwrap_or_else(PoisonError::into_inner) = ErrorCodes::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simurgh_protocol::command::DataCommand;

    const GET: Command = Command::Data(DataCommand::Get);

    #[test]
    fn buckets_follow_one_another_and_are_narrow() {
        let mut expected = 0;
        for bucket in 0..BUCKETS {
            assert_eq!(bucket_of(expected), bucket);
            let end = bucket_end(bucket);
            assert_eq!(bucket_of(end), bucket);
            assert!((end - expected) * STEPS <= end.max(1));
            expected = end + 1;
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        assert_eq!(bucket_end(bucket_of(21_000)), 21_119);
    }

    #[test]
    fn threads_add_up_also_those_that_share_a_lane() {
        let stats = CommandStats::new(1);
        std::thread::scope(|scope| {
            for _ in 0..12 {
                scope.spawn(|| (0..1000).for_each(|_| stats.called(GET, 10, true, true)));
            }
        });
        assert_eq!(stats.commands()[0].1, CommandCount { calls: 12_000, nanos: 120_000, rejected: 0, failed: 0 });
        assert_eq!(stats.histogram(GET).0, 12_000);
    }

    #[test]
    fn what_was_counted_is_told() {
        let stats = CommandStats::new(2);
        stats.called(GET, 15_000, true, true);
        stats.called(GET, 60_000, false, true);
        stats.called(GET, 60_000, true, false);
        stats.rejected(GET);
        let known = stats.commands();
        assert_eq!(known.len(), 1);
        assert_eq!(known[0].0.name, "get");
        assert_eq!(known[0].1, CommandCount { calls: 3, nanos: 135_000, rejected: 1, failed: 1 });
        let (calls, histogram) = stats.histogram(GET);
        assert_eq!(calls, 2);
        let mut reply = Reply::default();
        write_histogram(&histogram, &mut reply);
        assert_eq!(reply.bytes(), b"*4\r\n:16\r\n:1\r\n:66\r\n:2\r\n");
        assert_eq!(histogram.percentile(50.0), 15_039);
        stats.reset();
        assert!(stats.commands().is_empty());
        assert_eq!(stats.histogram(GET).0, 0);
    }

    #[test]
    fn errors_are_counted_by_their_code() {
        let stats = CommandStats::new(1);
        stats.error(b"-ERR syntax error\r\n");
        stats.error(b"-WITHOUT-BLANK\r\n");
        stats.error(b"-AN-ERROR-WITH-A-CODE-THAT-NEVER-ENDS so\r\n");
        stats.error(b"-WRONGTYPE x\r\n");
        stats.error(b"--OF-SCRIPT x\r\n");
        let of = |code: &str, count| (code.to_owned(), count);
        assert_eq!(stats.errors(), [of("-OF-SCRIPT", 1), of("ERR", 3), of("WRONGTYPE", 1)]);
    }

    #[test]
    fn codes_that_are_made_up_end_the_count_until_it_is_reset() {
        let stats = CommandStats::new(1);
        let made_up = |from: usize, to: usize| {
            (from..to).for_each(|number| stats.error(format!("-MADE{number} up").as_bytes()));
        };
        made_up(0, CODES_MAX);
        assert_eq!(stats.errors().len(), CODES_MAX);
        made_up(0, 2 * CODES_MAX);
        assert_eq!(stats.errors(), [("ERRORSTATS_DISABLED".to_owned(), 1)]);
        stats.reset();
        made_up(7, 8);
        assert_eq!(stats.errors(), [("MADE7".to_owned(), 1)]);
    }

    #[test]
    fn every_number_has_its_spec() {
        for index in 0..Command::COUNT {
            assert_eq!(spec_of(index).command.map(Command::index), Some(index));
        }
    }
}
