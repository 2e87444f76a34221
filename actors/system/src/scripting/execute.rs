//! The run of a script or function: as a transaction does, it runs with its shards held, and what its commands changed stands between
//! MULTI and EXEC in the log.

use super::{Engines, FunctionCall, Rules, ScriptHost, Watcher, with_engine};
use crate::client::Client;
use simurgh_kernel::rehearsal::{Mistake, has};
use simurgh_protocol::CommandError;
use simurgh_scripting::{Callable, Host, Run, ScriptEngine};
use simurgh_storage::Shards;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

/// Runs `callable` with these keys and other arguments for `client`, and writes its reply.
///
/// # Errors
/// There is no engine. An error that ends the script is its reply.
pub(crate) fn execute(
    client: &mut Client,
    shards: &mut dyn Shards,
    callable: Callable<'_>,
    (keys, args): (&[&[u8]], &[&[u8]]),
    rules: Rules,
) -> Result<(), CommandError> {
    let node = client.node.clone();
    let call = match callable {
        Callable::Script { .. } => None,
        Callable::Function { name, request, .. } => Some(FunctionCall::new(name, request)),
    };
    let watcher = Rc::new(Watcher::new(client, call, shards.held()));
    let seed = client.with_context(shards, None, |cx| cx.random.next_u64()) as u32;
    let run = Run { callable, keys, args, seed, watch: watcher.clone() };
    // The script's reply goes where the client's stand; its commands have the engine's buffer.
    let mut reply = std::mem::take(&mut client.reply);
    let (executing, database) = (client.executing, client.database);
    let is_one = executing.is_none() && !has(Mistake::SplitScript);
    if is_one {
        client.effects().begin_transaction();
    }
    client.executing = Some(executing.unwrap_or(0));
    let in_script = std::mem::replace(&mut client.in_script, true);
    let (which, engine_bytes) = match run.callable {
        Callable::Script { .. } => (Engines::Scripts, &node.scripting.engine_bytes),
        Callable::Function { .. } => (Engines::Functions, &node.scripting.function_engine_bytes),
    };
    let mut restarts = false;
    let outcome = with_engine(&node, which, |engine| {
        let mut host = ScriptHost::new(client, shards, rules, watcher);
        let ended = engine.run(&run, &mut host, &mut reply);
        restarts = host.restarts;
        engine_bytes.store(engine.memory() as u64, Relaxed);
        if let Err(fault) = ended
            && !restarts
        {
            let written = reply.len();
            reply.error_bytes(&fault.text);
            host.note_error(&reply.bytes()[written..], fault.of_command);
        }
        Ok(())
    });
    client.reply = reply;
    client.in_script = in_script;
    (client.executing, client.database) = (executing, database);
    if is_one {
        client.effects().end_transaction();
    }
    client.restarts = restarts;
    if restarts {
        return Ok(());
    }
    outcome
}
