//! Sockets of the operating system.

use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{Domain, SockAddr, SockRef, Socket, TcpKeepalive, Type};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::{Address, PeerAddress};

/// A listening socket. It belongs to the event loop of the core that first accepts from it.
#[derive(Debug)]
pub struct Listener(Kind);

#[derive(Debug)]
enum Kind {
    Tcp { socket: std::net::TcpListener, opened: OnceLock<TcpListener> },
    Unix { listener: UnixListener, path: String },
}

impl Listener {
    /// Listens on an internet address. An IPv6 address takes IPv6 connections only, so that `*` and `::*` can both be bound.
    pub fn bind_tcp(address: SocketAddr, backlog: u32) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.set_reuse_address(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.bind(&address.into())?;
        socket.listen(clamp_backlog(backlog))?;
        Ok(Self(Kind::Tcp { socket: socket.into(), opened: OnceLock::new() }))
    }

    /// Listens on a Unix socket at `path`, replacing a socket left there by an earlier run. The permissions are set between
    /// bind and listen: before it listens nobody can connect, so there is no moment at which the socket is open to more
    /// users than asked for (CVE-2023-45145), and the process's umask need not be touched.
    pub fn bind_unix(path: &str, permissions: Option<u32>, backlog: u32) -> io::Result<Self> {
        remove_unix_socket(path)?;
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.bind(&SockAddr::unix(path)?)?;
        if let Some(mode) = permissions {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
        }
        socket.listen(clamp_backlog(backlog))?;
        let listener = UnixListener::from_std(socket.into())?;
        Ok(Self(Kind::Unix { listener, path: path.to_owned() }))
    }

    /// The next connection.
    pub async fn accept(&self) -> io::Result<(Incoming, PeerAddress)> {
        match &self.0 {
            Kind::Tcp { socket, opened } => {
                let (stream, remote) = open(socket, opened)?.accept().await?;
                let local = stream.local_addr()?;
                let addresses = PeerAddress { remote: Address::Tcp(remote), local: Address::Tcp(local) };
                Ok((Incoming(IncomingKind::Tcp(stream.into_std()?)), addresses))
            }
            Kind::Unix { listener, path } => {
                let (stream, _) = listener.accept().await?;
                let end = Address::Unix(path.clone());
                let addresses = PeerAddress { remote: end.clone(), local: end };
                Ok((Incoming(IncomingKind::Unix(stream.into_std()?, path.clone())), addresses))
            }
        }
    }

    /// Where it listens (the port, when 0 was asked for).
    pub fn local_address(&self) -> io::Result<Address> {
        match &self.0 {
            Kind::Tcp { socket, .. } => Ok(Address::Tcp(socket.local_addr()?)),
            Kind::Unix { path, .. } => Ok(Address::Unix(path.clone())),
        }
    }

    /// Ends listening, whoever waits for connections: that fails from now on, and the address is free. Only for internet addresses.
    pub fn stop(&self) -> io::Result<()> {
        match &self.0 {
            Kind::Tcp { socket, .. } => SockRef::from(socket).shutdown(Shutdown::Both),
            Kind::Unix { .. } => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Closes it, and removes the file of a Unix socket.
    pub fn close(self) -> io::Result<()> {
        match self.0 {
            Kind::Tcp { .. } => Ok(()),
            Kind::Unix { listener, path } => {
                drop(listener);
                remove_unix_socket(&path)
            }
        }
    }
}

/// The socket in the event loop of the caller, or of whoever was first.
fn open<'a>(socket: &std::net::TcpListener, opened: &'a OnceLock<TcpListener>) -> io::Result<&'a TcpListener> {
    if let Some(listener) = opened.get() {
        return Ok(listener);
    }
    let listener = TcpListener::from_std(socket.try_clone()?)?;
    Ok(opened.get_or_init(|| listener))
}

/// Removes a socket's file, and only a socket's: a path given by mistake must not cost the user another file.
#[allow(clippy::disallowed_methods, reason = "a Unix socket's name is not data on a disk")]
fn remove_unix_socket(path: &str) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt;
    match std::fs::symlink_metadata(Path::new(path)) {
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path),
        Ok(_) => Err(io::Error::new(io::ErrorKind::AlreadyExists, "not a socket")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn clamp_backlog(backlog: u32) -> i32 {
    i32::try_from(backlog).unwrap_or(i32::MAX)
}

/// An accepted connection that no event loop owns yet.
#[derive(Debug)]
pub struct Incoming(IncomingKind);

#[derive(Debug)]
enum IncomingKind {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream, String),
}

impl Incoming {
    /// Gives the connection to the core of the caller.
    pub fn open(self) -> io::Result<Stream> {
        Ok(match self.0 {
            IncomingKind::Tcp(stream) => Stream::Tcp(TcpStream::from_std(stream)?),
            IncomingKind::Unix(stream, path) => Stream::Unix(UnixStream::from_std(stream)?, path),
        })
    }
}

/// A connection.
#[derive(Debug)]
pub enum Stream {
    /// Over the internet protocols.
    Tcp(TcpStream),
    /// Over a Unix socket, with its path.
    Unix(UnixStream, String),
}

/// Connects to an internet address.
pub async fn connect_tcp(address: SocketAddr) -> io::Result<Stream> {
    Ok(Stream::Tcp(TcpStream::connect(address).await?))
}

/// Connects to a Unix socket.
pub async fn connect_unix(path: &str) -> io::Result<Stream> {
    Ok(Stream::Unix(UnixStream::connect(path).await?, path.to_owned()))
}

impl Stream {
    /// Sends small segments at once (a Unix socket always does).
    pub fn set_nodelay(&self, on: bool) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_nodelay(on),
            Stream::Unix(..) => Ok(()),
        }
    }

    /// Probes a silent peer after `seconds`, then three times at a third of that; 0 switches probing off.
    pub fn set_keepalive(&self, seconds: u32) -> io::Result<()> {
        let Stream::Tcp(stream) = self else {
            return Ok(());
        };
        let socket = SockRef::from(stream);
        socket.set_keepalive(seconds > 0)?;
        if seconds == 0 {
            return Ok(());
        }
        let probes = TcpKeepalive::new()
            .with_time(Duration::from_secs(seconds.into()))
            .with_interval(Duration::from_secs((seconds / 3).max(1).into()))
            .with_retries(3);
        socket.set_tcp_keepalive(&probes)
    }

    /// The peer's end.
    pub fn remote_address(&self) -> io::Result<Address> {
        match self {
            Stream::Tcp(stream) => Ok(Address::Tcp(stream.peer_addr()?)),
            Stream::Unix(_, path) => Ok(Address::Unix(path.clone())),
        }
    }

    /// Our end.
    pub fn local_address(&self) -> io::Result<Address> {
        match self {
            Stream::Tcp(stream) => Ok(Address::Tcp(stream.local_addr()?)),
            Stream::Unix(_, path) => Ok(Address::Unix(path.clone())),
        }
    }
}

impl Stream {
    /// Writes some of `bytes`, returning how many were taken. There is nearly always room, so that is tried before anything is
    /// prepared for waiting.
    #[inline]
    pub fn poll_write_some(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = match self {
            Stream::Tcp(stream) => stream.try_write(bytes),
            Stream::Unix(stream, _) => stream.try_write(bytes),
        };
        match written {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Pin::new(self).poll_write(cx, bytes),
            written => Poll::Ready(written),
        }
    }
}

impl AsyncRead for Stream {
    #[inline]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(cx, into),
            Stream::Unix(stream, _) => Pin::new(stream).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Stream {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Unix(stream, _) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Stream::Unix(stream, _) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Unix(stream, _) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
