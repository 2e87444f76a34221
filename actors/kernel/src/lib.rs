//! The runtime seam: everything that touches the outside world goes through here, and only here. In production it is
//! tokio, the operating system's clock and entropy, plain files and io_uring; under `--cfg madsim` it is a simulated
//! machine whose every outcome follows from a seed. Above this crate there is no `cfg` and no tokio, so whatever runs
//! in production runs unchanged in the simulator.
//!
//! | module | what it gives |
//! | --- | --- |
//! | [`core`] | a thread with its own event loop, tasks on it, what a panic means |
//! | [`fiber`] | synchronous code that can be left in the middle |
//! | [`time`] | monotonic and wall clocks, sleeping, a cycle counter |
//! | [`random`] | entropy |
//! | [`net`] | listeners and streams, TCP and Unix |
//! | [`process`] | what the operating system knows of this process; the configuration file |
//! | [`signal`] | requests to end, from outside |
//! | [`disk`] | directories, whole files, and the log's append-only file |
//! | [`actor`] | supervised actors (ractor) |
//! | [`rehearsal`] | what simulated timelines plant in the node and count in it |

pub mod actor;
pub mod core;
pub mod disk;
pub mod fiber;
pub mod mailbox;
pub mod net;
pub mod process;
pub mod random;
pub mod rehearsal;
pub mod signal;
#[cfg(madsim)]
pub mod simulation;
pub mod time;

/// Channels, locks and notifications between tasks: plain data structures that need no runtime, so both worlds share them.
pub use tokio::sync;
