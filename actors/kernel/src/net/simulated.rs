//! madsim's TCP, made to behave like a socket where madsim does not: a write reaches the peer without a flush, shutting
//! down reaches it too, and reads and writes are cut short at lengths drawn from the seed, because a real socket may cut
//! them anywhere and code must not depend on where.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

use super::{Address, PeerAddress};

/// One read or write in this many is cut short.
const ONE_IN: u64 = 8;

/// A call that is cut short moves at most this many bytes.
const CUT_LENGTH_MAX: usize = 63;

/// A listening socket. madsim binds asynchronously, so that is done by the first accept.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    bound: tokio::sync::OnceCell<TcpListener>,
}

impl Listener {
    /// Listens on an internet address.
    pub fn bind_tcp(address: SocketAddr, _backlog: u32) -> io::Result<Self> {
        Ok(Self { address, bound: tokio::sync::OnceCell::new() })
    }

    /// There are no Unix sockets in the simulation.
    pub fn bind_unix(_path: &str, _permissions: Option<u32>, _backlog: u32) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The next connection.
    pub async fn accept(&self) -> io::Result<(Incoming, PeerAddress)> {
        let listener = self.bound.get_or_try_init(|| TcpListener::bind(self.address)).await?;
        let (stream, remote) = listener.accept().await?;
        let local = stream.local_addr()?;
        let addresses = PeerAddress { remote: Address::Tcp(remote), local: Address::Tcp(local) };
        Ok((Incoming(stream), addresses))
    }

    /// Where it listens.
    pub fn local_address(&self) -> io::Result<Address> {
        Ok(Address::Tcp(self.bound.get().map_or(Ok(self.address), TcpListener::local_addr)?))
    }

    /// A simulated node listens for as long as it lives.
    pub fn stop(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Closes it.
    pub fn close(self) -> io::Result<()> {
        Ok(())
    }
}

/// An accepted connection.
#[derive(Debug)]
pub struct Incoming(TcpStream);

impl Incoming {
    /// Gives the connection to the caller.
    pub fn open(self) -> io::Result<Stream> {
        Ok(Stream::new(self.0))
    }
}

/// A connection; empty once shut down.
#[derive(Debug)]
pub struct Stream {
    connection: Option<TcpStream>,
    remote: Address,
    local: Address,
}

/// Connects to an internet address.
pub async fn connect_tcp(address: SocketAddr) -> io::Result<Stream> {
    Ok(Stream::new(TcpStream::connect(address).await?))
}

/// There are no Unix sockets in the simulation.
pub async fn connect_unix(_path: &str) -> io::Result<Stream> {
    Err(io::ErrorKind::Unsupported.into())
}

impl Stream {
    fn new(connection: TcpStream) -> Self {
        let remote = Address::Tcp(connection.peer_addr().expect("madsim knows both ends"));
        let local = Address::Tcp(connection.local_addr().expect("madsim knows both ends"));
        Self { connection: Some(connection), remote, local }
    }

    /// No effect: the simulated network does not delay small segments.
    pub fn set_nodelay(&self, _on: bool) -> io::Result<()> {
        Ok(())
    }

    /// No effect: the simulated network has no half-open connections.
    pub fn set_keepalive(&self, _seconds: u32) -> io::Result<()> {
        Ok(())
    }

    /// The peer's end.
    pub fn remote_address(&self) -> io::Result<Address> {
        Ok(self.remote.clone())
    }

    /// Our end.
    pub fn local_address(&self) -> io::Result<Address> {
        Ok(self.local.clone())
    }
}

/// How much of `length` bytes this call may move: usually all, sometimes a few, never nothing of something.
fn cut(length: usize) -> usize {
    if length < 2 || !madsim::rand::random::<u64>().is_multiple_of(ONE_IN) {
        return length;
    }
    let few = length.min(CUT_LENGTH_MAX) as u64;
    1 + usize::try_from(madsim::rand::random::<u64>() % few).expect("a small number")
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Some(connection) = &mut self.connection else {
            return Poll::Ready(Ok(()));
        };
        let mut part = into.take(cut(into.remaining()));
        std::task::ready!(Pin::new(connection).poll_read(cx, &mut part))?;
        let bytes = part.filled().to_vec();
        into.put_slice(&bytes);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Some(connection) = &mut self.connection else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let taken = std::task::ready!(Pin::new(&mut *connection).poll_write(cx, &bytes[..cut(bytes.len())]))?;
        std::task::ready!(Pin::new(connection).poll_flush(cx))?;
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.connection = None;
        Poll::Ready(Ok(()))
    }
}
