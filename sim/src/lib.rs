//! The simulated world: machines with disks that lose power, clients over a simulated network, and judges of what the
//! clients saw. A *timeline* is a seed: it fixes topology, workload, delays, faults and the scheduler.
//!
//! What needs no simulated machines builds for both worlds, so that its tests run with all others; the rest is built by
//! `cargo sim` alone.
#![allow(clippy::wildcard_enum_match_arm, reason = "a client treats every reply it did not expect alike")]

pub mod arguments;
pub mod busy;
#[cfg(madsim)]
pub mod campaign;
pub mod client;
pub mod coverage;
pub mod disk;
pub mod flawed;
pub mod judge;
#[cfg(madsim)]
pub mod lives;
pub mod options;
pub mod random;
#[cfg(madsim)]
pub mod runner;
pub mod scenario;
#[cfg(madsim)]
pub mod score;
pub mod server;
#[cfg(madsim)]
pub mod shrink;
pub mod tally;
#[cfg(madsim)]
pub mod timeline;
pub mod toy;
pub mod trace;
pub mod trouble;
#[cfg(madsim)]
pub mod twice;
pub mod workload;
pub mod world;
