//! Listeners and streams. A [`Stream`] is TCP or a Unix socket in production and a simulated TCP connection under madsim;
//! it reads and writes through tokio's traits, and [`Stream::poll_read_into`] reads straight into a vector's spare room.
//!
//! An accepted connection arrives as [`Incoming`], not yet tied to an event loop, because the core that accepts is not the
//! core that will serve it: send it there and [`Incoming::open`] it.

use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::{fmt, io};

use tokio::io::AsyncReadExt;

pub mod faults;
#[cfg(not(madsim))]
mod real;
#[cfg(madsim)]
mod simulated;
#[cfg(madsim)]
pub mod wires;

#[cfg(not(madsim))]
pub use real::{Incoming, Listener, Stream, connect_tcp, connect_unix};
#[cfg(madsim)]
pub use simulated::{Incoming, Listener, Stream, connect_tcp, connect_unix};
pub use tokio::io::{AsyncRead, AsyncReadExt as ReadExt, AsyncWrite, AsyncWriteExt as WriteExt, ReadBuf};

/// One end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// An internet address.
    Tcp(SocketAddr),
    /// The path of the Unix socket that was connected to.
    Unix(String),
}

impl Address {
    /// Whether the peer is on this machine: what protected mode asks.
    pub fn is_local(&self) -> bool {
        match self {
            Address::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Address::Unix(_) => true,
        }
    }
}

/// Redis's form: `127.0.0.1:6379`, `[::1]:6379`, `/run/simurgh.sock:0`.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => write!(f, "{address}"),
            Address::Unix(path) => write!(f, "{path}:0"),
        }
    }
}

/// Both ends of an accepted connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerAddress {
    /// The client's end.
    pub remote: Address,
    /// Our end.
    pub local: Address,
}

impl Stream {
    /// Reads what is there into the spare capacity of `buffer`, growing it first when there is none, and returns how many
    /// bytes arrived; 0 is the end of the stream. The capacity is neither zeroed nor copied.
    pub fn poll_read_into(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        // The future holds two references and no state of its own, so making it anew for each poll costs nothing.
        let read = std::pin::pin!(self.read_buf(buffer));
        read.poll(cx)
    }

    /// [`Stream::poll_read_into`] as a future; safe to drop when it has not finished.
    pub async fn read_into(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        self.read_buf(buffer).await
    }
}

#[cfg(all(test, not(madsim)))]
mod tests;

#[cfg(all(test, madsim))]
mod simulated_tests;
