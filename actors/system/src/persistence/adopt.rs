//! A log that begins where there is something already. Who comes with nothing but a dump.rdb finds its keys, and keeps the file: the
//! first base is a copy of it. Who comes with the single file of a log that servers before Redis 7 wrote has it moved into the
//! log's folder, where it is the first base, as Redis 7 does.

use super::manifest_file::{Installed, Place, install_manifest};
use crate::recovery::{RecoveryError, disk_error};
use simurgh_kernel::disk::{Disk, Sync};
use simurgh_storage::aof::manifest::{BaseFormat, Manifest, ManifestFile};
use simurgh_storage::aof::whole::Whole;
use std::io;

/// Bytes that are copied at once.
const PIECE: usize = 1 << 20;

/// Makes a copy of the snapshot `name`, if there is one, the base in `manifest`, which is in force only once it is on the disk.
pub(crate) async fn adopt_snapshot(
    disk: &dyn Disk,
    place: &Place,
    name: &str,
    manifest: &mut Manifest,
) -> Result<(), RecoveryError> {
    match disk.length(name).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(disk_error(name)(error)),
    }
    let mut base = manifest.next_base(&place.prefix, BaseFormat::Rdb);
    let path = place.path(&base.name);
    tracing::info!(file = name, base = %path, "there is no log yet: it begins with what the snapshot holds");
    let mut file = disk.create(&path).await.map_err(disk_error(&path))?;
    let mut whole = Whole::default();
    loop {
        let piece = disk.read_range(name, whole.bytes, PIECE).await.map_err(disk_error(name))?;
        let is_end = piece.is_empty();
        whole.absorb(&piece);
        let done = file.append(piece, if is_end { Sync::Data } else { Sync::No }).await;
        done.result.map_err(|failure| disk_error(&path)(io::Error::other(failure.to_string())))?;
        if is_end {
            break;
        }
    }
    base.whole = Some(whole);
    manifest.replace_base(base, 1).map_err(|_| RecoveryError::Missing { path })
}

/// Makes the single file of an old log the base in `manifest`, if there is one and no log yet. The manifest comes first: a crash between
/// the two steps finds one that names a file which is not there yet, and the move is made up for.
pub(crate) async fn adopt_single_file(
    disk: &dyn Disk,
    place: &Place,
    manifest: &mut Manifest,
) -> Result<(), RecoveryError> {
    let (name, path) = (place.prefix.as_str(), place.path(&place.prefix));
    let is_begun = manifest.base().is_some_and(|base| base.name == name);
    let is_new = manifest.data_files().next().is_none();
    if !is_begun && !is_new || !is_there(disk, name).await? || is_there(disk, &path).await? {
        return Ok(());
    }
    if is_new {
        tracing::info!(file = name, base = %path, "this log is a single file, as before Redis 7: it becomes the base of the log");
        let base = ManifestFile { name: name.to_owned(), ..manifest.next_base(name, BaseFormat::Aof) };
        manifest.replace_base(base, 1).map_err(|_| RecoveryError::Missing { path: path.clone() })?;
        match install_manifest(disk, place, manifest).await {
            Installed::Yes => {}
            Installed::No(error) | Installed::Unknown(error) => return Err(error),
        }
    }
    disk.rename(name, &path).await.map_err(disk_error(&path))?;
    disk.sync_directory(&place.folder).await.map_err(disk_error(&place.folder))?;
    disk.sync_directory("").await.map_err(disk_error(""))
}

async fn is_there(disk: &dyn Disk, path: &str) -> Result<bool, RecoveryError> {
    match disk.length(path).await {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(disk_error(path)(error)),
    }
}
