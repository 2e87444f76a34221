//! A blocking client that keeps the bytes of each reply, for comparing servers to the byte.

use crate::resp::{self, Value};
use anyhow::{Context, Result, bail};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a reply may take before the server counts as hung.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// One connection.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    unread: Vec<u8>,
}

/// A reply as it was read, and the bytes that said it.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// What it means.
    pub value: Value,
    /// What was on the wire.
    pub bytes: Vec<u8>,
}

impl Client {
    /// Connects in RESP2.
    pub fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| format!("no server at {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
        Ok(Client { stream, unread: Vec::new() })
    }

    /// Connects and speaks `resp`, 2 or 3, without a trace in the replies.
    pub fn connect_as(address: SocketAddr, resp: u8) -> Result<Self> {
        let mut client = Client::connect(address)?;
        if resp == 3 {
            match client.ask(&["HELLO", "3"])? {
                Value::Map(_) => {}
                other => bail!("HELLO 3 answered {other:?}"),
            }
        }
        Ok(client)
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(bytes)?)
    }

    /// Sends one request and reads its reply.
    pub fn ask<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> Result<Value> {
        let mut request = Vec::new();
        resp::write_request(&mut request, arguments);
        self.send(&request)?;
        match self.read()? {
            Some(reply) => Ok(reply.value),
            None => bail!("the server closed the connection"),
        }
    }

    /// Reads one reply; nothing when the server has closed the connection.
    pub fn read(&mut self) -> Result<Option<Reply>> {
        loop {
            if let Some((value, length)) = resp::read_value(&self.unread)? {
                let bytes = self.unread.drain(..length).collect();
                return Ok(Some(Reply { value, bytes }));
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// Whether a reply has begun to come, or comes in this time. A closed connection has one: that it is closed.
    pub fn has_reply(&mut self, patience: Duration) -> Result<bool> {
        if !self.unread.is_empty() {
            return Ok(true);
        }
        self.stream.set_read_timeout(Some(patience))?;
        let mut byte = [0; 1];
        let peeked = self.stream.peek(&mut byte);
        self.stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
        match peeked {
            Ok(_) => Ok(true),
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn fill(&mut self) -> Result<bool> {
        let mut chunk = [0; 65536];
        match self.stream.read(&mut chunk) {
            Ok(0) => Ok(false),
            Ok(length) => {
                self.unread.extend_from_slice(&chunk[..length]);
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => self.fill(),
            Err(error) => Err(error).context("no reply in time"),
        }
    }
}
