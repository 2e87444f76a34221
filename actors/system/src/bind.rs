//! The sockets that a node listens on: `bind`, `port`, `unixsocket`, and their change while it runs.
//!
//! Where an address stays, so does its socket: a change interrupts nobody who is about to connect there. The others are given up
//! before new ones are bound, since `*` takes every address of its port; if one cannot be bound, the old ones come back.

use crate::node::{Node, StartError};
use crate::supervisor::SupervisorMessage;
use simurgh_kernel::actor::ActorRef;
use simurgh_kernel::net::{Address, Listener};
use simurgh_protocol::config::Config;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};

/// The sockets that a node listens on.
#[derive(Debug, Default)]
pub(crate) struct Listening(Mutex<Option<Sockets>>);

#[derive(Debug)]
struct Sockets {
    listeners: Vec<Arc<Listener>>,
    /// Who lets connections be accepted from further ones.
    supervisor: ActorRef<SupervisorMessage>,
}

impl Listening {
    /// The node has started with these.
    pub fn begin(&self, listeners: Vec<Arc<Listener>>, supervisor: ActorRef<SupervisorMessage>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Sockets { listeners, supervisor });
    }
}

impl Node {
    /// Listens where `config` says from now on, and nowhere else.
    ///
    /// # Errors
    /// An address cannot be bound; the node listens where it did.
    pub(crate) fn listen_at(&self, config: &Config) -> Result<(), StartError> {
        let mut listening = self.listening.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Sockets { listeners, supervisor }) = &mut *listening else { return Ok(()) };
        let wanted = addresses(config)?;
        let (kept, ended): (Vec<_>, Vec<_>) = listeners.drain(..).partition(|listener| {
            address_of(listener).is_none_or(|address| wanted.iter().any(|wanted| wanted.address == address))
        });
        for listener in &ended {
            if let Err(error) = listener.stop() {
                tracing::warn!(%error, "a socket that is no longer listened on could not be stopped");
            }
        }
        *listeners = kept;
        let is_new = |wanted: &&Wanted| !listeners.iter().any(|kept| address_of(kept) == Some(wanted.address));
        let bound = bind_all(wanted.iter().filter(is_new), config.tcp_backlog);
        let (new, outcome) = match bound {
            Ok(new) => (new, Ok(())),
            Err(error) => (again(&ended, config.tcp_backlog), Err(error)),
        };
        for listener in new.into_iter().map(Arc::new) {
            let _ = supervisor.cast(SupervisorMessage::Listen(listener.clone()));
            listeners.push(listener);
        }
        outcome
    }
}

/// Binds what was listened on before.
fn again(ended: &[Arc<Listener>], backlog: u32) -> Vec<Listener> {
    let bind = |listener: &Arc<Listener>| match Listener::bind_tcp(address_of(listener)?, backlog) {
        Ok(listener) => Some(listener),
        Err(error) => {
            tracing::error!(%error, "an address that was listened on could not be bound again");
            None
        }
    };
    ended.iter().filter_map(bind).collect()
}

fn address_of(listener: &Arc<Listener>) -> Option<SocketAddr> {
    match listener.local_address() {
        Ok(Address::Tcp(address)) => Some(address),
        Ok(Address::Unix(_)) | Err(_) => None,
    }
}

/// An address to listen on.
struct Wanted {
    address: SocketAddr,
    /// Marked with `-`: the machine may not have it.
    is_optional: bool,
}

/// Binds every address; one that is missing stops the start unless it is marked with `-`.
pub(crate) fn bind(config: &Config) -> Result<Vec<Listener>, StartError> {
    let mut listeners = bind_all(addresses(config)?.iter(), config.tcp_backlog)?;
    if let Some(path) = &config.unix_socket {
        let path = String::from_utf8_lossy(path).into_owned();
        let listener = Listener::bind_unix(&path, config.unix_socket_mode, config.tcp_backlog);
        listeners.push(listener.map_err(|error| StartError::Bind { address: path, error })?);
    }
    Ok(listeners)
}

fn bind_all<'a>(wanted: impl Iterator<Item = &'a Wanted>, backlog: u32) -> Result<Vec<Listener>, StartError> {
    let mut listeners = Vec::new();
    for Wanted { address, is_optional } in wanted {
        match Listener::bind_tcp(*address, backlog) {
            Ok(listener) => listeners.push(listener),
            Err(_) if *is_optional => {}
            Err(error) => return Err(StartError::Bind { address: address.to_string(), error }),
        }
    }
    Ok(listeners)
}

/// The addresses that `bind` and `port` name.
fn addresses(config: &Config) -> Result<Vec<Wanted>, StartError> {
    let mut addresses = Vec::new();
    let any = ["*".to_owned(), "-::*".to_owned()];
    let names = if config.bind.is_empty() { &any[..] } else { &config.bind[..] };
    for name in names.iter().filter(|_| config.port != 0) {
        let (is_optional, host) = name.strip_prefix('-').map_or((false, name.as_str()), |host| (true, host));
        match resolve(host, config.port) {
            Ok(address) => addresses.push(Wanted { address, is_optional }),
            Err(_) if is_optional => {}
            Err(error) => return Err(StartError::Bind { address: format!("{host}:{}", config.port), error }),
        }
    }
    Ok(addresses)
}

fn resolve(host: &str, port: u16) -> io::Result<SocketAddr> {
    let host = match host {
        "*" => "0.0.0.0",
        "::*" => "::",
        other => other,
    };
    match host.parse::<std::net::IpAddr>() {
        Ok(ip) => Ok(SocketAddr::new(ip, port)),
        Err(_) => (host, port).to_socket_addrs()?.next().ok_or(io::ErrorKind::AddrNotAvailable.into()),
    }
}
