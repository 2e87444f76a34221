//! The simulated network: listening sockets, connections in flight, and what goes wrong with them. One for each world.
//!
//! A connection is two pipes. What is written to one travels as packets with a moment of arrival, in order; a pipe holds no
//! more than its window, so a writer whose peer does not read must wait, as with TCP. Faults are moments, too: a cut delays
//! what is sent meanwhile until it heals, a reset arrives like a packet, and a silent connection delivers nothing any more
//! although both ends believe in it.
//!
//! A process that dies leaves its peers an end or a reset, as its kernel would; a machine that loses its power leaves them
//! in silence, until it is up again and answers that it knows nothing of them.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;

use madsim::task::NodeId;
use madsim::time::TimeHandle;

use super::faults::Faults;

/// How long a machine without power leaves its peers in silence.
const SILENCE_NS: Range<u64> = 200_000_000..3_000_000_000;

/// How long after a cut has healed what it held up is sent again.
const RESEND_NS: u64 = 300_000_000;

/// The first port for the connecting end.
const FIRST_PORT: u16 = 32_768;

/// How often each fault was met by somebody.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that were reset.
    pub resets: u64,
    /// Connections that became silent.
    pub silences: u64,
    /// Connects that were never answered.
    pub hangs: u64,
    /// Packets that a cut held up.
    pub held_up: u64,
    /// Writes that found the pipe full.
    pub full_pipes: u64,
    /// Reads and writes that were cut short.
    pub shorts: u64,
}

/// One direction of a connection.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    pub packets: VecDeque<(u64, Vec<u8>)>,
    /// Bytes in the packets.
    pub bytes: usize,
    pub window: usize,
    /// When the last packet arrives.
    last_ns: u64,
    /// When the end arrives.
    pub end_ns: Option<u64>,
    pub reader: Option<Waker>,
    pub writer: Option<Waker>,
}

/// A connection. Side 0 has connected, side 1 was connected to; pipe `n` is written by side `n`.
#[derive(Debug)]
pub(super) struct Wire {
    pub ends: [SocketAddr; 2],
    pub pipes: [Pipe; 2],
    /// When a reset arrives at a side.
    pub reset_ns: [Option<u64>; 2],
    /// A side that has no process any more.
    pub gone: [bool; 2],
    /// Nothing is delivered any more.
    pub is_silent: bool,
}

impl Wire {
    /// When a packet that is sent now by `side` arrives.
    fn arrival_ns(&self, network: &mut Network, side: usize, bytes: usize) -> u64 {
        let (from, to) = (self.ends[side].ip(), self.ends[1 - side].ip());
        let carried_ns = (bytes as u64 * 1_000_000_000).checked_div(network.faults.bandwidth).unwrap_or(0);
        network.arrival_ns(from, to).max(self.pipes[side].last_ns) + carried_ns
    }

    /// Sends bytes, which have room.
    pub fn send(&mut self, network: &mut Network, side: usize, bytes: &[u8]) {
        if self.is_silent {
            // It leaves, and never arrives.
            self.pipes[side].bytes += bytes.len();
            return;
        }
        let at_ns = self.arrival_ns(network, side, bytes.len());
        if self.gone[1 - side] {
            let back_ns = at_ns + network.latency_ns();
            return self.reset(side, back_ns);
        }
        let pipe = &mut self.pipes[side];
        pipe.last_ns = at_ns;
        pipe.bytes += bytes.len();
        pipe.packets.push_back((at_ns, bytes.to_vec()));
        wake(&mut pipe.reader);
        if network.chance(network.faults.reset_one_in) {
            network.counts.resets += 1;
            for side in [0, 1] {
                let at_ns = network.now_ns() + network.latency_ns();
                self.reset(side, at_ns);
            }
        } else if network.chance(network.faults.silence_one_in) {
            network.counts.silences += 1;
            self.silence();
        }
    }

    /// Sends the end of what `side` says.
    pub fn finish(&mut self, network: &mut Network, side: usize) {
        if self.pipes[side].end_ns.is_none() {
            let at_ns = self.arrival_ns(network, side, 0);
            let pipe = &mut self.pipes[side];
            pipe.end_ns = Some(if self.is_silent { u64::MAX } else { at_ns });
            wake(&mut pipe.reader);
        }
    }

    /// A side's socket is closed. What it has not read makes a reset of its end.
    pub fn close(&mut self, network: &mut Network, side: usize) {
        if std::mem::replace(&mut self.gone[side], true) {
            return;
        }
        let is_unread = self.pipes[1 - side].bytes > 0;
        if is_unread && !self.is_silent {
            let at_ns = self.arrival_ns(network, side, 0);
            self.reset(1 - side, at_ns);
        } else {
            self.finish(network, side);
        }
    }

    fn silence(&mut self) {
        self.is_silent = true;
        for pipe in &mut self.pipes {
            pipe.packets.clear();
        }
    }

    /// A reset arrives at a side, unless one comes earlier.
    fn reset(&mut self, side: usize, at_ns: u64) {
        let at_ns = self.reset_ns[side].map_or(at_ns, |earlier| earlier.min(at_ns));
        self.reset_ns[side] = Some(at_ns);
        wake(&mut self.pipes[1 - side].reader);
        wake(&mut self.pipes[side].writer);
    }
}

pub(super) fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

/// A connection, as its ends and the network share it.
pub(super) type SharedWire = Arc<Mutex<Wire>>;

pub(super) fn lock(wire: &SharedWire) -> MutexGuard<'_, Wire> {
    wire.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A listening socket.
#[derive(Debug)]
pub(super) struct Listening {
    /// Which one it is: a later one may have the same address.
    pub id: u64,
    pub backlog: usize,
    /// Connections that nobody has accepted.
    pub queue: VecDeque<SharedWire>,
    pub waker: Option<Waker>,
}

/// Everything of a world.
#[derive(Debug, Default)]
pub(super) struct Network {
    pub listening: BTreeMap<SocketAddr, Listening>,
    machines: BTreeMap<NodeId, IpAddr>,
    wires: Vec<Weak<Mutex<Wire>>>,
    /// Until when nothing goes from one address to another.
    cuts: BTreeMap<(IpAddr, IpAddr), u64>,
    pub faults: Faults,
    pub counts: Counts,
    random: u64,
    next_id: u64,
}

thread_local! {
    static NETWORK: RefCell<Network> = RefCell::default();
}

/// Works with the world's network, unless the world is gone: some sockets are dropped after it.
pub(super) fn with<R>(act: impl FnOnce(&mut Network) -> R) -> Option<R> {
    TimeHandle::try_current()?;
    NETWORK.try_with(|network| act(&mut network.borrow_mut())).ok()
}

/// Begins a world.
pub(crate) fn begin(seed: u64, faults: Faults) {
    NETWORK.with(|network| *network.borrow_mut() = Network { random: seed, faults, ..Network::default() });
}

impl Network {
    pub fn now_ns(&self) -> u64 {
        crate::time::monotonic_ns()
    }

    /// SplitMix64: the network's own numbers, so that it does not disturb the scheduler's.
    fn bits(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.random;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    pub fn within(&mut self, range: &Range<u64>) -> u64 {
        range.start + self.bits() % (range.end.saturating_sub(range.start)).max(1)
    }

    pub fn chance(&mut self, one_in: u64) -> bool {
        one_in > 0 && self.bits().is_multiple_of(one_in)
    }

    pub fn latency_ns(&mut self) -> u64 {
        let range = self.faults.latency_ns.clone();
        self.within(&range)
    }

    /// How much of `length` bytes a call may move.
    pub fn cut_short(&mut self, length: usize) -> usize {
        if length < 2 || !self.chance(self.faults.short_one_in) {
            return length;
        }
        self.counts.shorts += 1;
        1 + (self.bits() % length.min(63) as u64) as usize
    }

    /// When what is sent now arrives.
    pub fn arrival_ns(&mut self, from: IpAddr, to: IpAddr) -> u64 {
        let at_ns = self.now_ns() + self.latency_ns();
        match self.cuts.get(&(from, to)).copied() {
            Some(until_ns) if until_ns > self.now_ns() => {
                self.counts.held_up += 1;
                until_ns.saturating_add(self.within(&(0..RESEND_NS))).max(at_ns)
            }
            Some(_) | None => at_ns,
        }
    }

    pub fn address_of(&self, machine: NodeId) -> Option<IpAddr> {
        self.machines.get(&machine).copied()
    }

    pub fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// A new connection between two addresses.
    pub fn connect(&mut self, from: IpAddr, to: SocketAddr) -> SharedWire {
        let port = FIRST_PORT + u16::try_from(self.next_id() % 28_000).unwrap_or(0);
        let windows = self.faults.window_bytes.start as u64..self.faults.window_bytes.end as u64;
        let pipes = [0, 1].map(|_| Pipe { window: self.within(&windows).max(1) as usize, ..Pipe::default() });
        let ends = [SocketAddr::new(from, port), to];
        let wire = Wire { ends, pipes, reset_ns: [None; 2], gone: [false; 2], is_silent: false };
        let wire = Arc::new(Mutex::new(wire));
        self.wires.retain(|wire| wire.strong_count() > 0);
        self.wires.push(Arc::downgrade(&wire));
        wire
    }

    /// The sockets of a machine vanish.
    fn vanish(&mut self, machine: NodeId, has_lost_power: bool) {
        let Some(address) = self.address_of(machine) else { return };
        self.listening.retain(|listening, _| listening.ip() != address);
        let wires: Vec<SharedWire> = self.wires.iter().filter_map(Weak::upgrade).collect();
        for wire in wires {
            let mut wire = lock(&wire);
            for side in [0, 1] {
                if wire.ends[side].ip() != address {
                    continue;
                }
                if has_lost_power && !std::mem::replace(&mut wire.gone[side], true) {
                    let at_ns = self.now_ns() + self.within(&SILENCE_NS);
                    wire.reset(1 - side, at_ns);
                } else {
                    wire.close(self, side);
                }
            }
        }
    }
}

/// A machine has an address.
pub(crate) fn register(machine: NodeId, address: IpAddr) {
    with(|network| network.machines.insert(machine, address));
}

/// The machine's process ends.
pub(crate) fn process_ended(machine: NodeId) {
    with(|network| network.vanish(machine, false));
}

/// The machine loses its power.
pub(crate) fn power_lost(machine: NodeId) {
    with(|network| network.vanish(machine, true));
}

/// Nothing goes from one address to another until the moment, or longer if that was cut already.
pub fn cut(from: IpAddr, to: IpAddr, until_ns: u64) {
    with(|network| {
        let until = network.cuts.entry((from, to)).or_default();
        *until = until_ns.max(*until);
    });
}

/// Ends all cuts for what is sent from now on.
pub fn heal() {
    with(|network| network.cuts.clear());
}

/// Changes what goes wrong from here on.
pub fn set_faults(faults: Faults) {
    with(|network| network.faults = faults);
}

/// What has gone wrong so far.
#[must_use]
pub fn counts() -> Counts {
    with(|network| network.counts).unwrap_or_default()
}
