//! A log that begins where there is a snapshot already: its first base is a copy of that. Who comes with nothing but a dump.rdb finds
//! its keys, and keeps the file.

use super::manifest_file::Place;
use crate::recovery::{RecoveryError, disk_error};
use simurgh_kernel::disk::{Disk, Sync};
use simurgh_storage::aof::manifest::{BaseFormat, Manifest};
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
