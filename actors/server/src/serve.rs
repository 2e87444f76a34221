//! Runs the server: data folder, log, node, signals, and the banner that says what it promises.

use crate::allocator;
use crate::arguments::Sources;
use crate::load::{Loaded, load};
use crate::logging;
use anyhow::Context as _;
use simurgh_kernel::core;
use simurgh_kernel::disk::PlainDisk;
use simurgh_kernel::signal::Signals;
use simurgh_protocol::config::{AppendFsync, Config, Supervised};
use simurgh_system::node::{Node, Options, RecoveryError, StartError};
use std::future::poll_fn;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

/// Serves until it is told to stop.
pub fn serve(sources: &Sources) -> anyhow::Result<()> {
    let mut loaded = load(sources)?;
    let config = loaded.settings.config();
    if let Some(reason) = why_not(&config) {
        anyhow::bail!("{reason}");
    }
    let folder = data_folder(&config)?;
    loaded.settings.resolve_dir(folder.as_os_str().as_encoded_bytes());
    logging::start(&config)?;
    simurgh_kernel::time::prepare();
    for setting in &loaded.without_meaning {
        tracing::warn!("{setting}");
    }
    core::run(run(loaded, config, folder))?
}

/// What of a configuration is refused besides single settings.
pub fn why_not(config: &Config) -> Option<&'static str> {
    (config.supervised == Supervised::Upstart)
        .then_some("supervised upstart: that service manager is not supported; use systemd, auto or no")
}

/// The data folder, made if it is not there.
fn data_folder(config: &Config) -> anyhow::Result<PathBuf> {
    let folder = PathBuf::from(String::from_utf8_lossy(&config.dir).into_owned());
    std::fs::create_dir_all(&folder).with_context(|| format!("the data folder {}", folder.display()))?;
    folder.canonicalize().with_context(|| format!("the data folder {}", folder.display()))
}

async fn run(loaded: Loaded, config: Config, folder: PathBuf) -> anyhow::Result<()> {
    let mut signals = Signals::catch()?;
    banner(&config, &folder);
    let start = Node::start(Options {
        settings: loaded.settings,
        config_file: loaded.file.map(|file| file.to_string_lossy().into_owned()),
        disk: Arc::new(if config.log_io_uring { PlainDisk::with_ring(&folder) } else { PlainDisk::new(&folder) }),
        set_log_level: Some(logging::set_level),
        allocator: Some(allocator::HOOKS),
    });
    let running = match unless_asked_to_end(start, &mut signals).await {
        None => {
            tracing::warn!("Received shutdown signal during loading, exiting now.");
            return Ok(());
        }
        // SHUTDOWN.
        Some(Err(StartError::Recovery(RecoveryError::Stopped))) => return Ok(()),
        Some(started) => started?,
    };
    tracing::info!("Ready to accept connections");
    let _pid_file = PidFile::write(&config)?;
    tell_supervisor(&config, "READY=1");
    let node = running.node.clone();
    core::spawn(async move {
        loop {
            signals.next().await;
            // Who counts on snapshots gets the last one, or the server goes on.
            let has_save_points = !node.configuration.current().config.save_points.is_empty();
            if !has_save_points || node.save_before_stop().await {
                return node.shutdown.ask();
            }
        }
    });
    running.until_shutdown().await;
    Ok(())
}

/// Waits for `start`, unless a signal asks the process to end before that. What is dropped then has told nobody anything.
async fn unless_asked_to_end<F: Future>(start: F, signals: &mut Signals) -> Option<F::Output> {
    let (mut start, mut asked) = (pin!(start), pin!(signals.next()));
    poll_fn(|cx| match asked.as_mut().poll(cx) {
        Poll::Ready(_) => Poll::Ready(None),
        Poll::Pending => start.as_mut().poll(cx).map(Some),
    })
    .await
}

/// The file that holds the number of the process while it runs.
struct PidFile(Option<PathBuf>);

impl PidFile {
    #[expect(clippy::disallowed_methods, reason = "the file belongs to the process, not to the simulated disk")]
    fn write(config: &Config) -> anyhow::Result<Self> {
        let path = config.pid_file.as_ref().map(|path| PathBuf::from(String::from_utf8_lossy(path).into_owned()));
        if let Some(path) = &path {
            let number = format!("{}\n", std::process::id());
            std::fs::write(path, number).with_context(|| format!("the pidfile {}", path.display()))?;
        }
        Ok(Self(path))
    }
}

impl Drop for PidFile {
    #[expect(clippy::disallowed_methods, reason = "the file belongs to the process, not to the simulated disk")]
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Tells systemd a state, if it is the one that wants to know: a datagram to the socket that it names.
fn tell_supervisor(config: &Config, state: &str) {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let is_wanted = matches!(config.supervised, Supervised::Systemd | Supervised::Auto);
    let Some(path) = path.to_str().filter(|_| is_wanted) else { return };
    // A name that begins with `@` is in the abstract namespace.
    let address = match path.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(path),
    };
    let sent = address.and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
    if let Err(error) = sent {
        tracing::warn!(%error, "the service manager could not be told: {state}");
    }
}

/// What a person should know at the start: where the data is, and what a reply promises.
fn banner(config: &Config, folder: &std::path::Path) {
    let promise = match (config.append_only, config.append_fsync) {
        (false, _) => "no log: a restart begins with the last snapshot",
        (true, AppendFsync::Always) => "appendfsync always: what is acknowledged survives power loss",
        (true, AppendFsync::Write) => "appendfsync write: what is acknowledged survives kill -9",
        (true, AppendFsync::EverySecond) => "appendfsync everysec: at most about a second is at risk",
        (true, AppendFsync::No) => "appendfsync no: what the kernel has not written yet is at risk",
    };
    tracing::info!("Simurgh {}, port {}, process {}", env!("CARGO_PKG_VERSION"), config.port, std::process::id());
    tracing::info!("data in {}; {promise}", folder.display());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Start, parse};
    use std::ffi::OsString;

    #[test]
    fn a_service_manager_that_is_not_supported_is_refused_before_anything_is_touched() {
        let words = ["simurgh", "--supervised", "upstart", "--dir", "/nowhere/to/be/made"].map(OsString::from);
        let Ok(Start::Serve(sources)) = parse(words, []) else { panic!("it is asked to serve") };
        let refusal = serve(&sources).expect_err("it does not start").to_string();
        assert_eq!(refusal, "supervised upstart: that service manager is not supported; use systemd, auto or no");
    }
}
