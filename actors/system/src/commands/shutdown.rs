//! SHUTDOWN: stops the node once everything acknowledged is on the disk, and a snapshot if one is wanted.

use crate::client::{Client, Wait};
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::Shards;

/// SHUTDOWN \[NOSAVE | SAVE\] \[NOW\] \[FORCE\] \[ABORT\].
///
/// The log is always written and synced. A snapshot is made by SAVE, or without NOSAVE where save points are configured; if it
/// fails, the server goes on unless FORCE says otherwise. There is no replica to wait for, so NOW has nothing to skip.
pub fn shutdown(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let (mut save, mut nosave, mut abort, mut now, mut force) = (false, false, false, false, false);
    for index in 1..args.len() {
        match () {
            () if args.is(index, "NOSAVE") => nosave = true,
            () if args.is(index, "SAVE") => save = true,
            () if args.is(index, "ABORT") => abort = true,
            () if args.is(index, "NOW") => now = true,
            () if args.is(index, "FORCE") => force = true,
            () => return Err(CommandError::Syntax),
        }
    }
    if (abort && (save || nosave || now || force)) || (save && nosave) {
        return Err(CommandError::Syntax);
    }
    if abort {
        return Err(CommandError::Text("ERR No shutdown in progress."));
    }
    if client.transaction.is_some() {
        return Err(CommandError::Text("ERR SHUTDOWN is not allowed between MULTI and EXEC"));
    }
    let saves = save || (!nosave && !client.live().config.save_points.is_empty());
    client.wait = Some(Wait::Shutdown { saves, forced: force });
    Ok(())
}
