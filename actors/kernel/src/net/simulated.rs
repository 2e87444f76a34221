//! Sockets of the simulated network (see [`wires`]), with what a real socket does to its users: a write takes what there is
//! room for, a read brings what has arrived, either may be cut short anywhere, and an end, a reset or nothing at all may come
//! in place of an answer.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::wires::{self, Listening, SharedWire, lock, wake};
use super::{Address, PeerAddress};
use crate::time;

/// Between two attempts of a connect that found no room in the backlog.
const CONNECT_RETRY_NS: u64 = 1_000_000_000;

/// A listening socket.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    id: u64,
}

impl Listener {
    /// Listens on an internet address.
    pub fn bind_tcp(address: SocketAddr, backlog: u32) -> io::Result<Self> {
        let machine = madsim::plugin::node();
        let bound = wires::with(|network| {
            let own = network.address_of(machine).ok_or(io::ErrorKind::AddrNotAvailable)?;
            let address = SocketAddr::new(own, address.port());
            if network.listening.contains_key(&address) {
                return Err(io::ErrorKind::AddrInUse);
            }
            let id = network.next_id();
            let backlog = usize::try_from(backlog).unwrap_or(usize::MAX).max(1);
            network.listening.insert(address, Listening { id, backlog, queue: Default::default(), waker: None });
            Ok(Self { address, id })
        });
        Ok(bound.expect("a task runs in a world")?)
    }

    /// There are no Unix sockets in the simulation.
    pub fn bind_unix(_path: &str, _permissions: Option<u32>, _backlog: u32) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The next connection.
    pub async fn accept(&self) -> io::Result<(Incoming, PeerAddress)> {
        std::future::poll_fn(|cx| self.poll_accept(cx)).await
    }

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Incoming, PeerAddress)>> {
        let accepted = wires::with(|network| {
            let Some(own) = network.listening.get_mut(&self.address).filter(|listening| listening.id == self.id) else {
                return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
            };
            let Some(wire) = own.queue.pop_front() else {
                own.waker = Some(cx.waker().clone());
                return Poll::Pending;
            };
            let [remote, local] = lock(&wire).ends;
            let addresses = PeerAddress { remote: Address::Tcp(remote), local: Address::Tcp(local) };
            Poll::Ready(Ok((Incoming(Stream::new(wire, 1)), addresses)))
        });
        accepted.expect("a task runs in a world")
    }

    /// Where it listens.
    pub fn local_address(&self) -> io::Result<Address> {
        Ok(Address::Tcp(self.address))
    }

    /// Ends listening, whoever waits for connections: that fails from now on, and the address is free.
    pub fn stop(&self) -> io::Result<()> {
        wires::with(|network| {
            if network.listening.get(&self.address).is_some_and(|listening| listening.id == self.id) {
                let mut listening = network.listening.remove(&self.address).expect("looked up just now");
                listening.queue.iter().for_each(|wire| lock(wire).close(network, 1));
                wake(&mut listening.waker);
            }
        });
        Ok(())
    }

    /// Closes it.
    pub fn close(self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // An address that was freed before is no mistake.
        let _ = self.stop();
    }
}

/// An accepted connection.
#[derive(Debug)]
pub struct Incoming(Stream);

impl Incoming {
    /// Gives the connection to the caller.
    pub fn open(self) -> io::Result<Stream> {
        Ok(self.0)
    }
}

/// A connection.
#[derive(Debug)]
pub struct Stream {
    wire: SharedWire,
    side: usize,
    /// The timer that is set, and for whom.
    armed: Option<(u64, Waker)>,
}

/// Connects to an internet address.
pub async fn connect_tcp(address: SocketAddr) -> io::Result<Stream> {
    let machine = madsim::plugin::node();
    let in_world = "a task runs in a world";
    let own = wires::with(|network| network.address_of(machine)).expect(in_world).ok_or(io::ErrorKind::NotConnected)?;
    let hangs = wires::with(|network| {
        let hangs = network.chance(network.faults.hang_one_in);
        network.counts.hangs += u64::from(hangs);
        hangs
    });
    if hangs == Some(true) {
        return std::future::pending().await;
    }
    loop {
        time::sleep_until(wires::with(|network| network.arrival_ns(own, address.ip())).expect(in_world)).await;
        let met = wires::with(|network| {
            let Some(listening) = network.listening.get(&address) else { return Some(None) };
            if listening.queue.len() >= listening.backlog {
                return None;
            }
            let wire = network.connect(own, address);
            let listening = network.listening.get_mut(&address).expect("looked up just now");
            listening.queue.push_back(wire.clone());
            wake(&mut listening.waker);
            Some(Some(Stream::new(wire, 0)))
        });
        let Some(met) = met.expect(in_world) else {
            time::sleep_until(time::monotonic_ns() + CONNECT_RETRY_NS).await;
            continue;
        };
        // The answer's way back.
        time::sleep_until(wires::with(|network| network.arrival_ns(address.ip(), own)).expect(in_world)).await;
        return met.ok_or_else(|| io::ErrorKind::ConnectionRefused.into());
    }
}

/// There are no Unix sockets in the simulation.
pub async fn connect_unix(_path: &str) -> io::Result<Stream> {
    Err(io::ErrorKind::Unsupported.into())
}

impl Stream {
    fn new(wire: SharedWire, side: usize) -> Self {
        Self { wire, side, armed: None }
    }

    /// No effect: the simulated network does not delay small segments.
    pub fn set_nodelay(&self, _on: bool) -> io::Result<()> {
        Ok(())
    }

    /// No effect: timelines are shorter than a probe takes.
    pub fn set_keepalive(&self, _seconds: u32) -> io::Result<()> {
        Ok(())
    }

    /// The peer's end.
    pub fn remote_address(&self) -> io::Result<Address> {
        Ok(Address::Tcp(lock(&self.wire).ends[1 - self.side]))
    }

    /// Our end.
    pub fn local_address(&self) -> io::Result<Address> {
        Ok(Address::Tcp(lock(&self.wire).ends[self.side]))
    }

    /// Whether a fault keeps everything from being delivered: what nobody in the world could know, but a judge.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        lock(&self.wire).is_silent
    }

    /// Wakes the task at the moment.
    fn arm(&mut self, at_ns: u64, cx: &mut Context<'_>) {
        if self.armed.as_ref().is_some_and(|(at, waker)| *at == at_ns && waker.will_wake(cx.waker())) {
            return;
        }
        self.armed = Some((at_ns, cx.waker().clone()));
        let left_ns = at_ns.saturating_sub(time::monotonic_ns());
        // Polled once, it has set its timer, which outlives it.
        let mut sleep = std::pin::pin!(tokio::time::sleep(std::time::Duration::from_nanos(left_ns)));
        let _ = sleep.as_mut().poll(cx);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        wires::with(|network| lock(&self.wire).close(network, self.side));
    }
}

impl Stream {
    /// Writes some of `bytes`, returning how many were taken.
    pub fn poll_write_some(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(self).poll_write(cx, bytes)
    }
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let (side, shared, now_ns) = (self.side, self.wire.clone(), time::monotonic_ns());
        let mut wire = lock(&shared);
        if wire.reset_ns[side].is_some_and(|at_ns| at_ns <= now_ns) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if wire.gone[side] {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        }
        let reset_ns = wire.reset_ns[side];
        let pipe = &mut wire.pipes[1 - side];
        let arrived: usize =
            pipe.packets.iter().take_while(|(at, _)| *at <= now_ns).map(|(_, bytes)| bytes.len()).sum();
        if arrived > 0 && into.remaining() > 0 {
            let wanted = arrived.min(into.remaining());
            let mut left = wires::with(|network| network.cut_short(wanted)).unwrap_or(wanted);
            pipe.bytes -= left;
            while left > 0 {
                let (_, bytes) = pipe.packets.front_mut().expect("as much has arrived");
                let taken = left.min(bytes.len());
                into.put_slice(&bytes[..taken]);
                bytes.drain(..taken);
                left -= taken;
                if bytes.is_empty() {
                    pipe.packets.pop_front();
                }
            }
            wake(&mut pipe.writer);
            return Poll::Ready(Ok(()));
        }
        let next_ns = pipe.packets.front().map(|(at, _)| *at).or(pipe.end_ns);
        if pipe.packets.is_empty() && pipe.end_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            return Poll::Ready(Ok(()));
        }
        pipe.reader = Some(cx.waker().clone());
        drop(wire);
        let next_ns = [next_ns, reset_ns].into_iter().flatten().min();
        if let Some(at_ns) = next_ns.filter(|at_ns| *at_ns < u64::MAX) {
            self.arm(at_ns, cx);
        }
        Poll::Pending
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let (side, shared, now_ns) = (self.side, self.wire.clone(), time::monotonic_ns());
        let mut wire = lock(&shared);
        if wire.reset_ns[side].is_some_and(|at_ns| at_ns <= now_ns) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if wire.gone[side] || wire.pipes[side].end_ns.is_some() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let reset_ns = wire.reset_ns[side];
        let pipe = &mut wire.pipes[side];
        let room = pipe.window.saturating_sub(pipe.bytes);
        if room == 0 {
            pipe.writer = Some(cx.waker().clone());
            drop(wire);
            wires::with(|network| network.counts.full_pipes += 1);
            if let Some(at_ns) = reset_ns {
                self.arm(at_ns, cx);
            }
            return Poll::Pending;
        }
        let sent = wires::with(|network| {
            let length = network.cut_short(bytes.len().min(room));
            wire.send(network, side, &bytes[..length]);
            length
        });
        Poll::Ready(Ok(sent.unwrap_or(bytes.len())))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        wires::with(|network| lock(&self.wire).finish(network, self.side));
        Poll::Ready(Ok(()))
    }
}
