//! The product from outside: everything here talks to a server over a socket, as any client would, so the same
//! harness judges ours, Redis and Valkey. `tests/run` runs all of it.
//!
//! The RESP reader in [`resp`] is a second one on purpose: a parser must not be the judge of its own server.
//!
//! Real clocks, threads, files and processes are what this crate is for, so the bans that keep simulated code
//! deterministic do not hold here; seeds come from the command line instead.
#![allow(clippy::disallowed_methods, reason = "test harnesses live in the real world")]

pub mod case_file;
pub mod case_runner;
pub mod client;
pub mod everything;
pub mod failing_disk;
pub mod grammar;
pub mod minimise;
pub mod outcome;
pub mod pattern;
pub mod random;
pub mod resp;
pub mod server;
pub mod text;
pub mod vocabulary;
pub mod writes;
