//! SHUTDOWN: stops the node once everything acknowledged is on the disk.

use crate::client::{Client, Wait};
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::Shards;

/// SHUTDOWN \[NOSAVE | SAVE\] \[NOW\] \[FORCE\] \[ABORT\].
///
/// The log is always written and synced, so NOSAVE, NOW and FORCE have nothing to skip: there is no snapshot to save and no
/// replica to wait for. SAVE is refused as long as snapshots are not built.
pub fn shutdown(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let (mut save, mut nosave, mut abort, mut others) = (false, false, false, false);
    for index in 1..args.len() {
        match () {
            () if args.is(index, "NOSAVE") => nosave = true,
            () if args.is(index, "SAVE") => save = true,
            () if args.is(index, "ABORT") => abort = true,
            () if args.is(index, "NOW") || args.is(index, "FORCE") => others = true,
            () => return Err(CommandError::Syntax),
        }
    }
    if (abort && (save || nosave || others)) || (save && nosave) {
        return Err(CommandError::Syntax);
    }
    if abort {
        return Err(CommandError::Text("ERR No shutdown in progress."));
    }
    if save {
        return Err(CommandError::Text(
            "ERR this server cannot save snapshots yet: use SHUTDOWN NOSAVE, which keeps the log",
        ));
    }
    if client.transaction.is_some() {
        return Err(CommandError::Text("ERR SHUTDOWN is not allowed between MULTI and EXEC"));
    }
    client.node.shutdown.ask();
    client.wait = Some(Wait::Shutdown);
    Ok(())
}
