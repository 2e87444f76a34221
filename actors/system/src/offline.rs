//! Loading without a node, for tools: the same readers and workers, no clients, and nothing on the disk is changed.

use crate::configuration::Live;
use crate::loading::{Functions, Ground, Loader, Loading};
use crate::node::Shutdown;
pub use crate::recovery::RecoveryError;
use simurgh_kernel::disk::Disk;
use simurgh_protocol::config::Settings;
use simurgh_storage::aof::manifest::Manifest;
use simurgh_storage::{KeyHasher, Layout, Shard};
use std::sync::Arc;

/// Shards to load into: enough for any number of threads.
const SHARDS: usize = 32;
/// More databases than anybody has.
const DATABASES: usize = 1024;

/// What a log holds.
#[derive(Debug)]
pub struct Held {
    /// All shards.
    pub shards: Vec<Shard>,
    /// The texts of the base's libraries of functions.
    pub libraries: Vec<Vec<u8>>,
}

/// Loads the log in `folder`. Functions that were loaded since its base was written are refused: that takes a node that can run them.
///
/// # Errors
/// [`RecoveryError`].
pub async fn load_log(
    settings: Settings,
    disk: Arc<dyn Disk>,
    folder: &str,
    manifest: &Manifest,
) -> Result<Held, RecoveryError> {
    let layout = Layout { shards: SHARDS, databases: DATABASES, hasher: KeyHasher::new(0) };
    let ground = Arc::new(Ground { layout, live: Arc::new(Live::new(settings, None)), seed: 0 });
    let (loading, shutdown) = (Loading::default(), Shutdown::default());
    let shards = Shard::all(&ground.layout);
    let mut loader = Loader::start(&ground, &disk, (&loading, &shutdown), folder, shards).await?;
    loader.mends = false;
    for file in manifest.data_files() {
        loader.load(file, manifest.increments().last() == Some(file)).await?;
    }
    let loaded = loader.finish().await?;
    let libraries = if let Functions::Kept(sources) = loaded.functions { sources } else { Vec::new() };
    Ok(Held { shards: loaded.shards, libraries })
}
