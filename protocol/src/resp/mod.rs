//! RESP, both ways: [`RequestParser`] reads what clients send, [`Reply`] writes what they get back, and [`decode`] reads
//! replies as a client does (for tests, the simulator and replication).
//!
//! Specification: <https://redis.io/docs/latest/develop/reference/protocol-spec/>.

mod args;
pub mod decode;
mod reply;
mod request;

pub use args::{Args, Range};
pub use reply::{Protocol, Reply, encode_command};
pub use request::{Limits, Progress, ProtocolError, Request, RequestParser};
