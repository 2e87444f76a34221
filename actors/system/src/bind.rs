//! The sockets that a node listens on: `bind`, `port`, `unixsocket`.

use crate::node::StartError;
use simurgh_kernel::net::Listener;
use simurgh_protocol::config::Config;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// Binds every address; one that is missing stops the start unless it is marked with `-`.
pub(crate) fn bind(config: &Config) -> Result<Vec<Listener>, StartError> {
    let mut listeners = Vec::new();
    let any = ["*".to_owned(), "-::*".to_owned()];
    let names = if config.bind.is_empty() { &any[..] } else { &config.bind[..] };
    for name in names.iter().filter(|_| config.port != 0) {
        let (is_optional, host) = name.strip_prefix('-').map_or((false, name.as_str()), |host| (true, host));
        match bind_tcp(host, config.port, config.tcp_backlog) {
            Ok(listener) => listeners.push(listener),
            Err(_) if is_optional => {}
            Err(error) => return Err(StartError::Bind { address: format!("{host}:{}", config.port), error }),
        }
    }
    if let Some(path) = &config.unix_socket {
        let path = String::from_utf8_lossy(path).into_owned();
        let listener = Listener::bind_unix(&path, config.unix_socket_mode, config.tcp_backlog);
        listeners.push(listener.map_err(|error| StartError::Bind { address: path, error })?);
    }
    Ok(listeners)
}

fn bind_tcp(host: &str, port: u16, backlog: u32) -> io::Result<Listener> {
    let host = match host {
        "*" => "0.0.0.0",
        "::*" => "::",
        other => other,
    };
    let address: SocketAddr = match host.parse::<std::net::IpAddr>() {
        Ok(ip) => SocketAddr::new(ip, port),
        Err(_) => (host, port).to_socket_addrs()?.next().ok_or(io::ErrorKind::AddrNotAvailable)?,
    };
    Listener::bind_tcp(address, backlog)
}
