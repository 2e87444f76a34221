//! Requests to end the process, from outside: SIGTERM (a service manager) and SIGINT (a person at a terminal). In the
//! simulator they arrive as the runner's "ctrl-c" to one node.

/// Which request arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM.
    Terminate,
    /// SIGINT.
    Interrupt,
}

/// Catches the signals; from here on they no longer end the process by themselves.
#[cfg(not(madsim))]
#[derive(Debug)]
pub struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(not(madsim))]
impl Signals {
    /// Starts catching. Must run on a core.
    pub fn catch() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// The next request to end.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            biased;
            Some(()) = self.terminate.recv() => Signal::Terminate,
            Some(()) = self.interrupt.recv() => Signal::Interrupt,
            else => std::future::pending().await,
        }
    }
}

/// Catches the simulated node's "ctrl-c".
#[cfg(madsim)]
#[derive(Debug)]
pub struct Signals {}

#[cfg(madsim)]
impl Signals {
    /// Starts catching.
    pub fn catch() -> std::io::Result<Self> {
        Ok(Self {})
    }

    /// The next request to end.
    pub async fn next(&mut self) -> Signal {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Signal::Terminate,
            Err(_) => std::future::pending().await,
        }
    }
}
