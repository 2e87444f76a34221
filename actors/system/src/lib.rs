//! One short file per actor, and [`node`], which wires a whole node.
//!
//! ```text
//! listener ──> connection ──> shard ──> log queue ──> log writer ──> disk
//!                  ^                                       │
//!                  └───────── position that is safe ───────┘
//! ```
//!
//! Messages flow one way; replies come back on credit (a connection has one job under way). `connection` and `shard` are the
//! data path and use the kernel's run-where-you-stand mailboxes; the long-lived actors are supervised by ractor.

mod admission;
mod batch;
mod bind;
mod blocking;
mod buffers;
pub mod client;
pub mod clients;
pub mod command_stats;
pub mod commands;
pub mod configuration;
mod connection;
mod counted;
mod cron;
#[cfg(test)]
mod fixture;
mod listener;
mod loading;
pub mod log;
mod log_writer;
pub mod memory;
pub mod node;
pub mod offline;
mod output;
pub mod persistence;
mod prefetch;
pub mod pubsub;
pub mod push;
mod recovery;
pub mod reply_mode;
mod request;
mod running;
pub mod samples;
pub mod scripting;
mod shard;
pub mod stats;
mod supervisor;
pub mod tracking;
mod wait;
mod walk;
