//! The simulated world: machines with disks that lose power, clients over a simulated network, and judges of what the
//! clients saw. A *timeline* is a seed: it fixes topology, workload, delays, faults and the scheduler.
//!
//! The disk and the random numbers build for both worlds, so that their tests run with all others; the rest is built by
//! `cargo sim` alone.

pub mod disk;
pub mod random;
