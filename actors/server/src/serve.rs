//! Runs the server: data folder, log, node, signals, and the banner that says what it promises.

use crate::allocator;
use crate::arguments::Sources;
use crate::load::{Loaded, load};
use crate::logging;
use anyhow::Context as _;
use simurgh_kernel::core;
use simurgh_kernel::disk::PlainDisk;
use simurgh_kernel::signal::Signals;
use simurgh_protocol::config::{AppendFsync, Config};
use simurgh_system::node::{Node, Options};
use std::path::PathBuf;
use std::sync::Arc;

/// Serves until it is told to stop.
pub fn serve(sources: &Sources) -> anyhow::Result<()> {
    let mut loaded = load(sources)?;
    let config = loaded.settings.config();
    let folder = data_folder(&config)?;
    loaded.settings.resolve_dir(folder.as_os_str().as_encoded_bytes());
    logging::start(&config)?;
    simurgh_kernel::time::prepare();
    for setting in &loaded.without_meaning {
        tracing::warn!("{setting}");
    }
    core::run(run(loaded, config, folder))?
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
    let running = Node::start(Options {
        settings: loaded.settings,
        config_file: loaded.file.map(|file| file.to_string_lossy().into_owned()),
        disk: Arc::new(PlainDisk::with_ring(&folder)),
        allocated: Some(allocator::allocated),
        set_log_level: Some(logging::set_level),
    })
    .await?;
    tracing::info!("Ready to accept connections");
    let node = running.node.clone();
    core::spawn(async move {
        signals.next().await;
        node.shutdown.ask();
    });
    running.until_shutdown().await;
    Ok(())
}

/// What a person should know at the start: where the data is, and what a reply promises.
fn banner(config: &Config, folder: &std::path::Path) {
    let promise = match (config.append_only, config.append_fsync) {
        (false, _) => "no log: a restart begins with nothing",
        (true, AppendFsync::Always) => "appendfsync always: what is acknowledged survives power loss",
        (true, AppendFsync::Write) => "appendfsync write: what is acknowledged survives kill -9",
        (true, AppendFsync::EverySecond) => "appendfsync everysec: at most about a second is at risk",
        (true, AppendFsync::No) => "appendfsync no: what the kernel has not written yet is at risk",
    };
    tracing::info!("Simurgh {}, port {}, process {}", env!("CARGO_PKG_VERSION"), config.port, std::process::id());
    tracing::info!("data in {}; {promise}", folder.display());
}
