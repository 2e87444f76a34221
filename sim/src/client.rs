//! A client: one connection at a time, pipelined requests, replies as values. It waits long (in virtual time) before it
//! gives up, because giving up is a finding; but nobody can wait for a connection that a fault keeps silent.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use simurgh_kernel::net::{ReadExt, Stream, WriteExt, connect_tcp};
use simurgh_kernel::time;
use simurgh_protocol::resp::decode::{Value, decode};
use simurgh_protocol::resp::encode_command;

use crate::tally;

/// How long a reply may take while no fault is active any more, and with margin for stalls and recoveries.
const PATIENCE: Duration = Duration::from_secs(120);

/// After how long a client looks whether its connection is silent.
const LOOK: Duration = Duration::from_secs(5);

/// Between two attempts to connect.
const RETRY: Duration = Duration::from_millis(20);

/// A connection to the server, or none at the moment.
#[derive(Debug)]
pub struct Client {
    address: SocketAddr,
    stream: Option<Stream>,
    incoming: Vec<u8>,
    /// Requests that were sent and not answered.
    under_way: u64,
}

impl Client {
    /// A client that is not connected.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, stream: None, incoming: Vec::new(), under_way: 0 }
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
        let connected = time::timeout(LOOK, connect_tcp(self.address)).await;
        self.stream = Some(connected.map_err(|_| ErrorKind::ConnectionAborted)??);
        Ok(self.call(&[b"PING"]).await? == Value::Simple(b"PONG".to_vec()))
    }

    /// Drops the connection.
    pub fn disconnect(&mut self) {
        self.stream = None;
        self.incoming.clear();
        tally::given_up(std::mem::take(&mut self.under_way));
    }

    /// Says that nothing more will be sent, and reads to the end what is still answered: how many bytes.
    pub async fn finish(&mut self) -> io::Result<usize> {
        let Some(stream) = &mut self.stream else { return Err(ErrorKind::NotConnected.into()) };
        stream.shutdown().await?;
        tally::fired("N9-end");
        let mut rest = Vec::new();
        let read = time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
        let is_silent = is_silent(stream);
        self.disconnect();
        match read {
            Ok(read) => read,
            Err(_) if is_silent => Err(ErrorKind::ConnectionAborted.into()),
            Err(_) => Err(ErrorKind::TimedOut.into()),
        }
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
        self.under_way += requests.len() as u64;
        tally::sent(requests.len() as u64);
        let sent = match time::timeout(PATIENCE, stream.write_all(&bytes)).await {
            Ok(sent) => sent,
            Err(_) if is_silent(stream) => Err(ErrorKind::ConnectionAborted.into()),
            Err(_) => Err(ErrorKind::TimedOut.into()),
        };
        self.unless_broken(sent)
    }

    /// The next reply.
    pub async fn receive(&mut self) -> io::Result<Value> {
        let received = self.receive_patiently().await;
        if received.is_ok() && self.under_way > 0 {
            self.under_way -= 1;
            tally::answered(1);
        }
        self.unless_broken(received)
    }

    async fn receive_patiently(&mut self) -> io::Result<Value> {
        let began_ns = time::monotonic_ns();
        loop {
            if let Ok(received) = time::timeout(LOOK, self.receive_forever()).await {
                return received;
            }
            if self.stream.as_ref().is_some_and(is_silent) {
                return Err(ErrorKind::ConnectionAborted.into());
            }
            if u128::from(time::monotonic_ns() - began_ns) > PATIENCE.as_nanos() {
                return Err(ErrorKind::TimedOut.into());
            }
        }
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

/// Whether a fault keeps everything from being delivered, which only the simulated network can tell.
#[cfg(madsim)]
fn is_silent(stream: &Stream) -> bool {
    stream.is_silent()
}

#[cfg(not(madsim))]
fn is_silent(_stream: &Stream) -> bool {
    false
}

/// The number in a bulk or integer reply.
pub fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Integer(number) => Some(*number),
        Value::Bulk(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}
