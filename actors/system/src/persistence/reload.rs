//! DEBUG RELOAD and DEBUG LOADAOF: the keyspace made anew from the disk, with every shard held.

use super::{Job, snapshotter};
use crate::loading::{Functions, Ground, Loaded, Loader};
use crate::node::Node;
use crate::recovery::{RecoveryError, disk_error, load_snapshot};
use simurgh_kernel::{core, time};
use simurgh_storage::aof::manifest::{Manifest, manifest_name};
use simurgh_storage::{Discarded, Shard};
use std::sync::Arc;
use std::time::Duration;

/// What DEBUG makes anew from the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// The log that is being written.
    Log,
    /// The last snapshot.
    Snapshot {
        /// One is made first.
        saves: bool,
    },
}

/// Loads the keyspace anew, with every shard held.
pub(crate) async fn reload(node: &Arc<Node>, source: Reload) -> Result<(), RecoveryError> {
    let mut held = loop {
        node.cancel_snapshot(Job::Save);
        node.cancel_snapshot(Job::Rewrite);
        let held = crate::shard::hold_all(node).await;
        if node.persistence.state().active.is_none() {
            break held;
        }
        drop(held);
        time::sleep(Duration::from_millis(1)).await;
    };
    let mut loaded = Shard::all(&node.layout);
    match source {
        Reload::Log => reload_log(node, &mut loaded).await?,
        Reload::Snapshot { saves } => {
            if saves {
                let saved = snapshotter::save_held(node, &mut held).await;
                saved.map_err(|error| RecoveryError::Save(error.to_string()))?;
            }
            if !load_snapshot(node, &mut loaded).await? {
                return Err(RecoveryError::NoSnapshot);
            }
        }
    }
    for (index, mut shard) in loaded.into_iter().enumerate() {
        for database in 0..node.layout.databases {
            let content = shard.take_database(database);
            let replaced = held.get(index).replace_database(database, content);
            node.discard(replaced.into_iter().map(Discarded::Database).collect());
        }
    }
    Ok(())
}

async fn reload_log(node: &Arc<Node>, loaded: &mut Vec<Shard>) -> Result<(), RecoveryError> {
    let end = node.log.end();
    while node.log.safe() < end {
        node.log.writer.notify_one();
        core::yield_now().await;
    }
    let config = node.configuration.current();
    let (folder, prefix) = (&config.config.append_dir_name, &config.config.append_file_name);
    let path = format!("{folder}/{}", manifest_name(prefix));
    let bytes = node.disk.read(&path).await.map_err(disk_error(&path))?;
    let manifest = Manifest::parse(&bytes).map_err(|error| RecoveryError::Manifest { path, error })?;
    let watched = (&node.loading, &node.shutdown);
    let mut loader = Loader::start(&Ground::of(node), &node.disk, watched, folder, std::mem::take(loaded)).await?;
    loader.functions = Functions::of(node);
    for file in manifest.data_files() {
        // Nothing may be cut: the writer has the file open, and what it has written is whole.
        loader.load(file, false).await?;
    }
    let Loaded { shards, functions, .. } = loader.finish().await?;
    *loaded = shards;
    functions.install();
    Ok(())
}
