//! Whether a request may write, by what the script that it runs says of itself: for CLIENT PAUSE.
//!
//! A script with flags writes unless it says that it does not, EVAL_RO or not; without flags, its command decides.

use crate::admission;
use crate::commands::scripting::digest_of;
use crate::node::Node;
use simurgh_protocol::Args;
use simurgh_protocol::command::{Command, ConnectionCommand};
use simurgh_scripting::ScriptFlags;

/// Whether a pause of writes holds a request back.
pub(crate) fn may_write(node: &Node, command: Command, args: &Args<'_>) -> bool {
    match flags(node, command, args) {
        Some(flags) if flags.are_given => !flags.no_writes,
        Some(_) | None => admission::may_write(command),
    }
}

/// The flags of the script that a request runs, if it runs one that is known.
fn flags(node: &Node, command: Command, args: &Args<'_>) -> Option<ScriptFlags> {
    use ConnectionCommand::{Eval, EvalRo, Evalsha, EvalshaRo, Fcall, FcallRo};
    let is_one = |all: [ConnectionCommand; 2]| all.iter().any(|one| command == Command::Connection(*one));
    if is_one([Eval, EvalRo]) {
        return ScriptFlags::of(args.at(1)).ok();
    }
    if is_one([Evalsha, EvalshaRo]) {
        return node.scripting.cache().flags(&digest_of(args.at(1))?);
    }
    if is_one([Fcall, FcallRo]) {
        let (library, index) = node.scripting.libraries().function(args.at(1))?;
        return library.functions.get(index).map(|function| function.flags);
    }
    None
}
