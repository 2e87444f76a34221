//! Rewriting the log: a new base from a snapshot, while the log goes on in a new increment from the cut on.
//!
//! ```text
//! cut       increments: old                     every record from here on belongs to the new increment
//! switch    increments: old, new                the log writer: old synced, new begun, manifest on the disk, only then written to
//! base      temp-...base.rdb                    the snapshotter: written and synced beside, renamed, directory synced
//! rebase    base: new; history: old; increments: new         in one step, by a new manifest
//! tidy up   history deleted, then a manifest without it
//! ```
//!
//! A crash between any two steps finds a manifest whose files are all there and hold everything. What it does not name is removed
//! at the next start. While `appendonly` has been switched on at run time and there is no base yet, the increment is in
//! no manifest: the data set on the disk stays what it was until the new one is whole.

use super::manifest_file::{Installed, Place, current_manifest, install_manifest};
use super::output::failed;
use super::{Begun, Outcome, SnapshotError};
use crate::node::Node;
use crate::recovery::RecoveryError;
use simurgh_storage::aof::manifest::{BaseFormat, Manifest, ManifestFile, temporary_name};
use simurgh_storage::snapshot::Format;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The log goes on in a new increment.
#[derive(Clone, Debug)]
pub(crate) struct Switched {
    /// The increment.
    pub increment: ManifestFile,
    /// The manifest on the disk names it.
    pub is_named: bool,
}

/// Writes the base and makes it the log's.
pub(super) async fn rewrite(node: &Arc<Node>, begun: &mut Begun) -> Outcome {
    let switched = match begun.switch.take() {
        Some(switch) => {
            let answer = switch.await.unwrap_or_else(|_| Err("the log writer has ended".to_owned()));
            Some(answer.map_err(SnapshotError::Switch)?)
        }
        None => None,
    };
    let place = Place::of(node);
    let mut manifest = current_manifest(node, &place).await.map_err(|error| failed(&place.folder, error))?;
    let format = match begun.active.plan.format {
        Format::Rdb => BaseFormat::Rdb,
        Format::Commands => BaseFormat::Aof,
    };
    let mut base = manifest.next_base(&place.prefix, format);
    let (path, temporary) = (place.path(&base.name), place.path(&temporary_name(&base.name)));
    let result = match super::snapshotter::write(node, &temporary, begun, None).await {
        Ok(whole) => match node.disk.rename(&temporary, &path).await {
            Ok(()) => Ok(whole),
            Err(error) => Err(failed(&path, error)),
        },
        Err(error) => Err(error),
    };
    let whole = match result {
        Ok(whole) => whole,
        Err(error) => {
            let _ = node.disk.unlink(&temporary).await;
            return Err(error);
        }
    };
    base.whole = Some(whole);
    let increments_from = replace(&mut manifest, base, switched.as_ref());
    if increments_from.is_none() {
        return Err(failed(&path, "its name cannot be in a manifest"));
    }
    match install_manifest(node.disk.as_ref(), &place, &manifest).await {
        Installed::Yes => {}
        Installed::No(error) => {
            let _ = node.disk.unlink(&path).await;
            return Err(failed(&place.folder, error));
        }
        Installed::Unknown(error) => node.fail(&format!("the log's manifest could not be synced: {error}")).await,
    }
    node.aof_earlier_size.store(whole.bytes, Ordering::Relaxed);
    node.aof_base_size.store(whole.bytes + node.aof_size.load(Ordering::Relaxed), Ordering::Relaxed);
    {
        let mut state = node.persistence.state();
        if switched.is_some() {
            state.log_starts = false;
        }
        state.manifest = Some(manifest);
    }
    forget_history(node, &place).await;
    Ok(())
}

/// The manifest with the new base, and with what it replaces as history.
fn replace(manifest: &mut Manifest, base: ManifestFile, switched: Option<&Switched>) -> Option<()> {
    let increments_from = match switched {
        Some(switched) => {
            if !switched.is_named {
                manifest.push_increment(switched.increment.clone()).ok()?;
            }
            switched.increment.sequence
        }
        // Without a log everything is in the base.
        None => u64::MAX,
    };
    manifest.replace_base(base, increments_from).ok()
}

/// Deletes what the manifest on the disk calls history, and then the mention of it. What fails is tried again at the next start.
async fn forget_history(node: &Node, place: &Place) {
    let Some(mut manifest) = node.persistence.state().manifest.clone() else { return };
    let history = manifest.take_history();
    if history.is_empty() {
        return;
    }
    for file in &history {
        if let Err(error) = node.disk.unlink(&place.path(&file.name)).await
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, file = %file.name, "a file that is no longer part of the log could not be deleted");
            return;
        }
    }
    match install_manifest(node.disk.as_ref(), place, &manifest).await {
        Installed::Yes => node.persistence.state().manifest = Some(manifest),
        Installed::No(error) => tracing::warn!(%error, "the log's manifest could not be tidied up"),
        // Both hold the same data set: the history is no part of it.
        Installed::Unknown(error) => {
            tracing::warn!(%error, "the log's manifest could not be tidied up");
            node.persistence.state().manifest = Some(manifest);
        }
    }
}

/// Removes what a rewrite that was killed has left: temporary files, history, and files beyond those that the manifest names.
pub(crate) async fn discard_leftovers(node: &Node) -> Result<(), RecoveryError> {
    let place = Place::of(node);
    forget_history(node, &place).await;
    let Some(manifest) = node.persistence.state().manifest.clone() else { return Ok(()) };
    let failed = |error| RecoveryError::Disk { path: place.folder.clone(), error };
    for name in node.disk.list(&place.folder).await.map_err(failed)? {
        if is_leftover(&name, &place.prefix, &manifest) {
            tracing::info!(file = %name, "removing what a rewrite that did not finish has left");
            node.disk.unlink(&place.path(&name)).await.map_err(failed)?;
        }
    }
    Ok(())
}

/// Whether a file in the log's folder is of no use: temporary, or numbered beyond what the manifest names.
fn is_leftover(name: &str, prefix: &str, manifest: &Manifest) -> bool {
    let inner = name.strip_prefix("temp-");
    let Some(rest) = inner.unwrap_or(name).strip_prefix(prefix).and_then(|rest| rest.strip_prefix('.')) else {
        return false;
    };
    if inner.is_some() {
        return true;
    }
    let Some((number, kind)) = rest.split_once('.') else { return false };
    let Ok(number) = number.parse::<u64>() else { return false };
    match kind {
        "base.rdb" | "base.aof" => manifest.base().is_some_and(|base| number > base.sequence),
        "incr.aof" => manifest.increments().last().is_some_and(|last| number > last.sequence),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_are_what_no_manifest_will_name() {
        let text = b"file a.aof.3.base.rdb seq 3 type b\nfile a.aof.5.incr.aof seq 5 type i\nfile a.aof.6.incr.aof seq 6 type i\n";
        let manifest = Manifest::parse(text).unwrap();
        for name in
            ["temp-a.aof.4.base.rdb", "temp-a.aof.manifest", "a.aof.4.base.rdb", "a.aof.4.base.aof", "a.aof.7.incr.aof"]
        {
            assert!(is_leftover(name, "a.aof", &manifest), "{name}");
        }
        for name in [
            "a.aof.3.base.rdb",
            "a.aof.2.base.rdb",
            "a.aof.6.incr.aof",
            "a.aof.4.incr.aof",
            "a.aof.manifest",
            "b.aof.9.base.rdb",
            "temp-b.aof.4.base.rdb",
            "a.aof.x.incr.aof",
            "a.aof.9.incr.aof.bak",
            "dump.rdb",
        ] {
            assert!(!is_leftover(name, "a.aof", &manifest), "{name}");
        }
    }

    #[test]
    fn a_base_replaces_everything_before_the_cut() {
        let mut manifest =
            Manifest::parse(b"file a.1.base.rdb seq 1 type b\nfile a.1.incr.aof seq 1 type i\n").unwrap();
        let increment = manifest.next_increment("a", None);
        let switched = Switched { increment, is_named: false };
        let base = manifest.next_base("a", BaseFormat::Rdb);
        replace(&mut manifest, base, Some(&switched)).unwrap();
        let expected = "file a.2.base.rdb seq 2 type b\nfile a.1.base.rdb seq 1 type h\nfile a.1.incr.aof seq 1 type h\n\
                        file a.2.incr.aof seq 2 type i\n";
        assert_eq!(String::from_utf8(manifest.lines()).unwrap(), expected);
        let base = manifest.next_base("a", BaseFormat::Aof);
        replace(&mut manifest, base, None).unwrap();
        assert!(manifest.increments().is_empty() && manifest.history().len() == 4);
    }
}
