//! Scripts on this node: the cache of their texts, the one that runs, and the engines.
//!
//! A script holds every shard while it runs, so at most one runs at a time and it may touch any key, declared or not. Each
//! core has an engine of its own, made when its first script comes. What others may know of the script that runs, and ask of
//! it, is in a few atomics: its core has no time for messages.

mod cache;
mod execute;
mod host;
mod running;

pub(crate) use cache::Cache;
pub(crate) use execute::execute;
pub(crate) use host::{Rules, ScriptHost};
pub(crate) use running::{NotKilled, Running, Watcher};

use crate::node::Node;
use simurgh_protocol::CommandError;
use simurgh_scripting::LuaEngine;
use std::cell::RefCell;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the node knows of scripts.
#[derive(Debug, Default)]
pub struct Scripting {
    cache: Mutex<Cache>,
    /// The script that runs.
    pub(crate) running: Running,
    /// Memory of the engine that ran last, in bytes.
    pub(crate) engine_bytes: AtomicU64,
}

impl Scripting {
    /// The scripts that are kept.
    pub(crate) fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An engine, and for which node and since which flush it has compiled scripts.
struct Owned {
    engine: LuaEngine,
    seed: u64,
    flushes: u64,
}

thread_local! {
    static ENGINE: RefCell<Option<Owned>> = const { RefCell::new(None) };
}

/// Uses this core's engine.
pub(crate) fn with_engine<R>(
    node: &Node,
    with: impl FnOnce(&mut LuaEngine) -> Result<R, CommandError>,
) -> Result<R, CommandError> {
    let flushes = node.scripting.cache().flushes();
    ENGINE.with(|slot| {
        let Ok(mut slot) = slot.try_borrow_mut() else {
            return Err(CommandError::Text("ERR a script cannot run inside of another"));
        };
        if slot.as_ref().is_none_or(|owned| owned.seed != node.seed || owned.flushes != flushes) {
            // The old one is gone before the new one is made.
            *slot = None;
            let engine = LuaEngine::new().map_err(|why| CommandError::Owned(format!("ERR no script engine: {why}")))?;
            *slot = Some(Owned { engine, seed: node.seed, flushes });
        }
        let owned = slot.as_mut().expect("it has just been made");
        with(&mut owned.engine)
    })
}
