//! Supervised actors: ractor under the kernel's name, so that no other crate depends on it and the simulator can choose
//! its runtime. Two rules follow from what ractor is: actors are never named (its registry is global to the process, so
//! two simulated nodes could not both own a name), and its mailboxes are unbounded, so nothing a client can drive without
//! limit is sent to one.

pub use ractor::*;
