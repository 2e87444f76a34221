//! From a command of the table to its handler, and what every data command owes before and after.

use crate::context::Context;
use simurgh_protocol::command::DataCommand;
use simurgh_protocol::{Args, CommandError};

/// Calls the command's handler, nothing else.
fn dispatch(command: DataCommand, cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    simurgh_protocol::dispatch_data!(command, crate, (cx, args))
}

/// Runs a data command: reply and effects are in the context afterwards. Whether it succeeded.
///
/// `raw` are the request's own bytes when they may go to the log as they are.
#[inline]
pub fn execute(command: DataCommand, cx: &mut Context<'_>, args: &Args<'_>, raw: Option<&[u8]>) -> bool {
    let mark = cx.reply.len();
    cx.effects.begin();
    let result = dispatch(command, cx, args);
    let succeeded = result.is_ok();
    if let Err(error) = result {
        cx.reply.truncate(mark);
        error.reply(cx.reply);
    }
    cx.effects.finish(cx.database, raw, args.from(0));
    succeeded
}
