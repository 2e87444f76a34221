//! A client: one connection at a time, pipelined requests, replies as values. It waits long (in virtual time) before it
//! gives up, because giving up is a finding.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use simurgh_kernel::net::{Stream, WriteExt, connect_tcp};
use simurgh_kernel::time;
use simurgh_protocol::resp::decode::{Value, decode};
use simurgh_protocol::resp::encode_command;

/// How long a reply may take while no fault is active any more, and with margin for stalls and recoveries.
const PATIENCE: Duration = Duration::from_secs(120);

/// Between two attempts to connect.
const RETRY: Duration = Duration::from_millis(20);

/// A connection to the server, or none at the moment.
#[derive(Debug)]
pub struct Client {
    address: SocketAddr,
    stream: Option<Stream>,
    incoming: Vec<u8>,
}

impl Client {
    /// A client that is not connected.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, stream: None, incoming: Vec::new() }
    }

    /// Whether requests can be sent.
    pub fn is_connected(&self) -> bool {
        self.stream.is_some()
    }

    /// Connects anew, until the server answers a PING.
    pub async fn connect(&mut self) -> io::Result<()> {
        let attempts = async {
            while !self.attempt().await.unwrap_or(false) {
                self.disconnect();
                time::sleep(RETRY).await;
            }
        };
        time::timeout(PATIENCE, attempts).await.map_err(|_| ErrorKind::TimedOut.into())
    }

    async fn attempt(&mut self) -> io::Result<bool> {
        self.disconnect();
        self.stream = Some(connect_tcp(self.address).await?);
        Ok(self.call(&[b"PING"]).await? == Value::Simple(b"PONG".to_vec()))
    }

    /// Drops the connection.
    pub fn disconnect(&mut self) {
        self.stream = None;
        self.incoming.clear();
    }

    /// Sends one request and waits for its reply.
    pub async fn call(&mut self, words: &[&[u8]]) -> io::Result<Value> {
        self.send(&[words]).await?;
        self.receive().await
    }

    /// Sends requests as one pipeline.
    pub async fn send(&mut self, requests: &[&[&[u8]]]) -> io::Result<()> {
        let mut bytes = Vec::new();
        for words in requests {
            encode_command(&mut bytes, words.iter().copied());
        }
        let stream = self.stream.as_mut().ok_or(ErrorKind::NotConnected)?;
        let sent = stream.write_all(&bytes).await;
        self.unless_broken(sent)
    }

    /// The next reply.
    pub async fn receive(&mut self) -> io::Result<Value> {
        let received = match time::timeout(PATIENCE, self.receive_forever()).await {
            Ok(received) => received,
            Err(_) => Err(ErrorKind::TimedOut.into()),
        };
        self.unless_broken(received)
    }

    async fn receive_forever(&mut self) -> io::Result<Value> {
        loop {
            match decode(&self.incoming) {
                Ok(Some((value, length))) => {
                    self.incoming.drain(..length);
                    return Ok(value);
                }
                Ok(None) => {}
                Err(error) => return Err(io::Error::new(ErrorKind::InvalidData, format!("{error:?}"))),
            }
            let stream = self.stream.as_mut().ok_or(ErrorKind::NotConnected)?;
            if stream.read_into(&mut self.incoming).await? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// A connection that failed once is of no use: what it was sent is unknown from here on.
    fn unless_broken<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        if result.is_err() {
            self.disconnect();
        }
        result
    }
}

/// The number in a bulk or integer reply.
pub fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Integer(number) => Some(*number),
        Value::Bulk(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}
