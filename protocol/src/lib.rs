//! The wire and its vocabulary: RESP, the command table, the config table, error texts.
//!
//! Everything here is pure: bytes come in as slices and leave through buffers that the caller owns. This crate knows nothing
//! of the keyspace, of actors or of files, so each rule can be tested with a plain function call.

pub mod command;
pub mod config;
pub mod errors;
pub mod glob;
pub mod long_double;
pub mod number;
pub mod quoted;
pub mod resp;

pub use errors::CommandError;
pub use resp::{Args, Reply};
