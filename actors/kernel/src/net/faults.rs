//! What can go wrong with the simulated network's connections: plain numbers, which the simulator draws in either world.

use std::ops::Range;

/// What goes wrong with connections, besides cuts. Each "one in" is of writes or connects; 0 is never.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults {
    /// How long a packet takes.
    pub latency_ns: Range<u64>,
    /// How many bytes a pipe holds at most.
    pub window_bytes: Range<usize>,
    /// How many bytes a second a pipe carries; 0 is any number.
    pub bandwidth: u64,
    /// A read or a write moves only a few bytes.
    pub short_one_in: u64,
    /// A write is followed by a reset of the connection.
    pub reset_one_in: u64,
    /// After a write the connection is silent.
    pub silence_one_in: u64,
    /// A connect is never answered.
    pub hang_one_in: u64,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            latency_ns: 1_000_000..10_000_000,
            window_bytes: 65_536..65_537,
            bandwidth: 0,
            short_one_in: 8,
            reset_one_in: 0,
            silence_one_in: 0,
            hang_one_in: 0,
        }
    }
}
