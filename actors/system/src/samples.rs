//! What the timer notes now and then for INFO: rates over the last one or two seconds, and the most memory that was in use.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// How many samples a rate is taken over.
const SAMPLES: usize = 16;
/// The least time between two samples.
const SAMPLE_MS: i64 = 100;

/// Counters at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// When, in milliseconds.
    pub at_ms: i64,
    /// Commands that had run.
    pub commands: u64,
    /// Bytes that had been received.
    pub input: u64,
    /// Bytes that had been sent.
    pub output: u64,
}

/// What happened in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Commands.
    pub commands: u64,
    /// Kibibytes received.
    pub input_kib: f64,
    /// Kibibytes sent.
    pub output_kib: f64,
}

/// The most memory that was in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// Bytes.
    pub bytes: usize,
    /// When that was, in seconds of Unix time.
    pub time_s: i64,
}

#[derive(Debug, Default)]
struct State {
    samples: VecDeque<Sample>,
    peak: Peak,
}

/// The samples of a node.
#[derive(Debug, Default)]
pub struct Samples(Mutex<State>);

impl Samples {
    fn with<R>(&self, with: impl FnOnce(&mut State) -> R) -> R {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes a sample unless the last one is recent.
    pub fn take(&self, sample: Sample) {
        self.with(|state| {
            let is_due = state.samples.back().is_none_or(|last| sample.at_ms - last.at_ms >= SAMPLE_MS);
            if is_due {
                state.samples.push_back(sample);
            }
            if state.samples.len() > SAMPLES {
                state.samples.pop_front();
            }
        });
    }

    /// What happens in a second at present.
    #[must_use]
    pub fn rates(&self) -> Rates {
        self.with(|state| {
            let (Some(first), Some(last)) = (state.samples.front(), state.samples.back()) else {
                return Rates::default();
            };
            let seconds = (last.at_ms - first.at_ms) as f64 / 1000.0;
            if seconds <= 0.0 {
                return Rates::default();
            }
            let per_second = |first: u64, last: u64| last.saturating_sub(first) as f64 / seconds;
            Rates {
                commands: per_second(first.commands, last.commands) as u64,
                input_kib: per_second(first.input, last.input) / 1024.0,
                output_kib: per_second(first.output, last.output) / 1024.0,
            }
        })
    }

    /// Notes the memory in use; the most there ever was.
    pub fn note_memory(&self, bytes: usize, time_s: i64) -> Peak {
        self.with(|state| {
            if bytes > state.peak.bytes {
                state.peak = Peak { bytes, time_s };
            }
            state.peak
        })
    }

    /// CONFIG RESETSTAT: the counters begin anew, and so do rates and the peak.
    pub fn reset(&self) {
        self.with(|state| *state = State::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_over_the_samples_that_are_kept() {
        let samples = Samples::default();
        assert_eq!(samples.rates(), Rates::default());
        for second in 0..30 {
            let count = second as u64;
            samples.take(Sample { at_ms: second * 1000, commands: count * 50, input: count * 2048, output: 0 });
            samples.take(Sample { at_ms: second * 1000 + 1, commands: 0, input: 0, output: 0 });
        }
        assert_eq!(samples.rates(), Rates { commands: 50, input_kib: 2.0, output_kib: 0.0 });
    }

    #[test]
    fn the_peak_stays() {
        let samples = Samples::default();
        assert_eq!(samples.note_memory(10, 1).bytes, 10);
        assert_eq!(samples.note_memory(5, 2), Peak { bytes: 10, time_s: 1 });
    }
}
