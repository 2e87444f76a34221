//! A RESP server without a keyspace: reads requests, forgets them, answers. What it costs a request is the floor for
//! any server of one thread on this machine, so benchmarks show it beside the real ones.
//!
//! Usage: `sink --port PORT`. GET is answered with 64 bytes, CONFIG with nothing, the rest with `+OK`.

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;

const LISTENER: Token = Token(usize::MAX);
const VALUE: &[u8] = b"$64\r\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n";

struct Connection {
    stream: TcpStream,
    input: Vec<u8>,
    output: Vec<u8>,
}

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--port").skip(1);
    let port: u16 = arguments.next().unwrap_or_else(|| "7999".into()).parse()?;
    let mut listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], port)))?;
    let (mut poll, mut events) = (Poll::new()?, Events::with_capacity(1024));
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut connections: Vec<Option<Connection>> = Vec::new();
    loop {
        poll.poll(&mut events, None)?;
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((mut stream, _)) = listener.accept() {
                    stream.set_nodelay(true)?;
                    poll.registry().register(&mut stream, Token(connections.len()), Interest::READABLE)?;
                    connections.push(Some(Connection { stream, input: Vec::new(), output: Vec::new() }));
                }
            } else if !connections[event.token().0].as_mut().is_some_and(Connection::serve) {
                connections[event.token().0] = None;
            }
        }
    }
}

impl Connection {
    /// Answers what has come; false when the peer has gone.
    fn serve(&mut self) -> bool {
        let mut chunk = [0; 65536];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return false,
                Ok(length) => {
                    self.input.extend_from_slice(&chunk[..length]);
                    self.answer();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return self.flush(),
                Err(_) => return false,
            }
        }
    }

    fn answer(&mut self) {
        let mut at = 0;
        while let Some((name, end)) = next_request(&self.input, at) {
            self.output.extend_from_slice(match self.input[name] | 0x20 {
                b'g' => VALUE,
                b'c' => b"*0\r\n",
                _ => b"+OK\r\n",
            });
            at = end;
        }
        self.input.drain(..at);
    }

    /// A client that does not read is not waited for: this is a floor, not a server.
    fn flush(&mut self) -> bool {
        let whole =
            self.output.is_empty() || matches!(self.stream.write(&self.output), Ok(n) if n == self.output.len());
        self.output.clear();
        whole
    }
}

/// Where the name of the request at `at` begins, and where the request ends.
fn next_request(input: &[u8], at: usize) -> Option<(usize, usize)> {
    let (count, mut end) = header(input, at)?;
    let mut name = None;
    for _ in 0..count {
        let (length, body) = header(input, end)?;
        name.get_or_insert(body);
        end = body + length + 2;
    }
    (end <= input.len()).then_some((name?, end))
}

fn header(input: &[u8], at: usize) -> Option<(usize, usize)> {
    let mut number = 0;
    for (offset, byte) in input.get(at + 1..)?.iter().enumerate() {
        match byte {
            b'0'..=b'9' => number = number * 10 + usize::from(byte - b'0'),
            b'\n' => return Some((number, at + 1 + offset + 1)),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_apart() {
        let wire = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1\r\n$4\r\nPING\r\n";
        assert_eq!(next_request(wire, 0), Some((8, 20)));
        assert_eq!(next_request(wire, 20), Some((28, wire.len())));
        assert_eq!(next_request(&wire[..19], 0), None);
    }
}
