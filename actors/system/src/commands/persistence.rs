//! BGSAVE, SAVE, LASTSAVE, BGREWRITEAOF: snapshots on request. The cut is made here, with all shards held, so what the client has
//! written before is part of it; the rest is the snapshotter's.

use crate::client::{Client, Wait};
use crate::persistence::{Job, Outcome};
use simurgh_kernel::sync::oneshot;
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::Shards;

const SAVING: CommandError = CommandError::Text("ERR Background save already in progress");
const REWRITING: CommandError = CommandError::Text(
    "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to schedule a BGSAVE \
     whenever possible.",
);
const NOTHING_TO_CANCEL: CommandError =
    CommandError::Text("ERR Background saving is currently not in progress or scheduled");

/// Cuts where the client stands: what it has changed while it held these shards joins the log before the cut, as it is part of the
/// snapshot.
pub(super) fn begin(client: &mut Client, shards: &mut dyn Shards, job: Job) -> Option<oneshot::Receiver<Outcome>> {
    client.log_so_far(shards);
    client.node.clone().begin_snapshot(shards, job)
}

/// BGSAVE \[SCHEDULE | CANCEL\].
pub fn bgsave(client: &mut Client, args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    let (mut schedules, node) = (false, client.node.clone());
    match args.len() {
        1 => {}
        2 if args.is(1, "SCHEDULE") => schedules = true,
        2 if args.is(1, "CANCEL") => {
            let was_active = node.persistence.state().is_active(Job::Save);
            if !node.cancel_snapshot(Job::Save) {
                return Err(NOTHING_TO_CANCEL);
            }
            client.reply.simple(if was_active {
                "Background saving cancelled"
            } else {
                "Scheduled background saving cancelled"
            });
            return Ok(());
        }
        _ => return Err(CommandError::Syntax),
    }
    if node.persistence.state().is_active(Job::Save) {
        return Err(SAVING);
    }
    // Half of a transaction must not be part of a snapshot.
    if client.executing.is_none() && begin(client, shards, Job::Save).is_some() {
        client.reply.simple("Background saving started");
    } else if schedules || client.executing.is_some() {
        node.persistence.state().save_scheduled = true;
        client.reply.simple("Background saving scheduled");
    } else {
        return Err(REWRITING);
    }
    Ok(())
}

/// SAVE: the same as BGSAVE, but for the reply, which comes when the file is on the disk. Others go on meanwhile.
pub fn save(client: &mut Client, _args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    let node = client.node.clone();
    if node.persistence.state().is_active(Job::Save) {
        return Err(SAVING);
    }
    client.snapshot = Some(begin(client, shards, Job::Save).ok_or(REWRITING)?);
    client.wait = Some(Wait::Snapshot);
    Ok(())
}

/// LASTSAVE: when the last snapshot was finished.
pub fn lastsave(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let last_save_s = client.node.persistence.state().last_save_s;
    client.reply.integer(last_save_s);
    Ok(())
}

/// BGREWRITEAOF.
pub fn bgrewriteaof(client: &mut Client, _args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    let node = client.node.clone();
    if node.persistence.state().is_rewriting() {
        return Err(CommandError::Text("ERR Background append only file rewriting already in progress"));
    }
    if client.executing.is_none() && begin(client, shards, Job::Rewrite).is_some() {
        client.reply.simple("Background append only file rewriting started");
    } else {
        node.persistence.state().rewrite_scheduled = true;
        client.reply.simple("Background append only file rewriting scheduled");
    }
    Ok(())
}
