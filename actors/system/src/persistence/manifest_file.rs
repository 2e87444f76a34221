//! The manifest of the log on the disk: read, and replaced in one step.

use crate::node::Node;
use crate::recovery::RecoveryError;
use simurgh_kernel::disk::{Disk, LogFile, Sync};
use simurgh_storage::aof::manifest::{Manifest, manifest_name, temporary_name};
use std::io;

/// Where the log's files are.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub folder: String,
    pub prefix: String,
}

impl Place {
    /// Of this node.
    pub fn of(node: &Node) -> Self {
        let live = node.configuration.current();
        Self { folder: live.config.append_dir_name.clone(), prefix: live.config.append_file_name.clone() }
    }

    /// The path of a file.
    pub fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }
}

/// The manifest in force. A node without a log looks what an earlier one has left.
pub(crate) async fn current_manifest(node: &Node, place: &Place) -> Result<Manifest, String> {
    if let Some(manifest) = node.persistence.state().manifest.clone() {
        return Ok(manifest);
    }
    node.disk.create_directory(&place.folder).await.map_err(|error| error.to_string())?;
    match node.disk.read(&place.path(&manifest_name(&place.prefix))).await {
        Ok(bytes) => Manifest::parse(&bytes).map_err(|error| error.to_string()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Manifest::default()),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether a new manifest is in force.
pub(crate) enum Installed {
    /// It is, whatever happens.
    Yes,
    /// It is not, and the one before it is.
    No(RecoveryError),
    /// It is for now. Which one a power loss would leave, nobody knows.
    Unknown(RecoveryError),
}

/// Switches to a new manifest in one step: written and synced beside, renamed over, and the directory synced.
pub(crate) async fn install_manifest(disk: &dyn Disk, place: &Place, manifest: &Manifest) -> Installed {
    let path = place.path(&manifest_name(&place.prefix));
    let temporary = place.path(&temporary_name(&manifest_name(&place.prefix)));
    let failed = |error| RecoveryError::Disk { path: path.clone(), error };
    if let Err(error) = write_new(disk, &temporary, manifest.format()).await {
        return Installed::No(error);
    }
    // The files that the manifest names must be there before the manifest is.
    if let Err(error) = disk.sync_directory(&place.folder).await {
        return Installed::No(failed(error));
    }
    if let Err(error) = disk.rename(&temporary, &path).await {
        return Installed::No(failed(error));
    }
    match disk.sync_directory(&place.folder).await {
        Ok(()) => Installed::Yes,
        Err(error) => Installed::Unknown(failed(error)),
    }
}

/// Writes a whole new file, and syncs it.
pub(crate) async fn write_new(disk: &dyn Disk, path: &str, bytes: Vec<u8>) -> Result<LogFile, RecoveryError> {
    let failed = |error| RecoveryError::Disk { path: path.to_owned(), error };
    let mut file = disk.create(path).await.map_err(failed)?;
    let done = file.append(bytes, Sync::Data).await;
    done.result.map_err(|failure| failed(io::Error::other(failure.to_string())))?;
    Ok(file)
}
