//! Scripts on this node: the cache of their texts, the one that runs, and the engines.
//!
//! A script holds the shards of the keys that it names, and gets others when it touches their keys (`reach.rs`). Each core has engines of its own, made
//! when scripts need them. A long script takes turns with everything else that its core does (`turns.rs`); what others may know of
//! it, and ask of it, is in a few atomics (`running.rs`).

mod cache;
mod execute;
mod functions;
mod host;
mod intent;
mod reach;
mod running;
mod turns;
mod wide;

pub(crate) use cache::Cache;
pub(crate) use execute::execute;
pub(crate) use functions::{Collision, Libraries, LibraryError, Patience, Policy, register};
pub(crate) use host::{Rules, ScriptHost};
pub(crate) use intent::may_write;
pub(crate) use running::{FunctionCall, Kind, NotKilled, Running, Watcher};
pub(crate) use turns::run_in_turns;

use crate::node::Node;
use simurgh_protocol::CommandError;
use simurgh_protocol::command::Command;
use simurgh_scripting::{LuaEngine, ScriptEngine};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the node knows of scripts.
#[derive(Debug, Default)]
pub struct Scripting {
    cache: Mutex<Cache>,
    /// The script that runs.
    pub(crate) running: Running,
    /// Scripts that take all shards.
    wide: wide::Wide,
    /// Memory of the engine that ran last, in bytes.
    pub(crate) engine_bytes: AtomicU64,
    /// The same of those that run functions.
    pub(crate) function_engine_bytes: AtomicU64,
    /// DEBUG SET-DISABLE-DENY-SCRIPTS: scripts may look at clients and the server.
    pub(crate) looks_at_server: AtomicBool,
    libraries: Mutex<Libraries>,
    next_library: AtomicU64,
}

/// Memory of scripts and functions in bytes, and how many functions there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub script_engine: u64,
    pub function_engine: u64,
    /// Texts of scripts.
    pub scripts: u64,
    /// Texts and names of libraries.
    pub libraries: u64,
    pub library_count: usize,
    pub function_count: usize,
}

impl Scripting {
    /// What scripts and functions take.
    pub(crate) fn figures(&self) -> Figures {
        let libraries = self.libraries();
        Figures {
            script_engine: self.engine_bytes.load(Relaxed),
            function_engine: self.function_engine_bytes.load(Relaxed),
            scripts: self.cache().bytes() as u64,
            libraries: libraries.memory() as u64,
            library_count: libraries.all().len(),
            function_count: libraries.function_count(),
        }
    }

    /// Whether tests have made an exception for a command that scripts may not call. What would change the script's own connection
    /// (MULTI, SUBSCRIBE) or run scripts in it stays forbidden.
    #[cold]
    pub(crate) fn may_call(&self, command: Command) -> bool {
        const ALLOWED: [&str; 6] = ["acl", "client", "config", "debug", "latency", "role"];
        let container = command.spec().name.split('|').next().unwrap_or_default();
        self.looks_at_server.load(Relaxed) && ALLOWED.contains(&container)
    }

    /// The scripts that are kept.
    pub(crate) fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The engines of a core: scripts and functions do not share one, as in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engines {
    Scripts,
    Functions,
}

/// An engine, for which node it is, and as of when it knows what there is to run.
struct Owned {
    /// In a place of its own: each script takes it out of the idle ones and puts it back.
    engine: Box<LuaEngine>,
    which: Engines,
    seed: u64,
    /// Of scripts, how many times their cache was flushed; of functions, how many times libraries have gone.
    as_of: u64,
}

thread_local! {
    /// The engines that run nothing now: one of each kind, but for scripts that take turns.
    static IDLE: RefCell<Vec<Owned>> = const { RefCell::new(Vec::new()) };
}

/// How many of them a core keeps.
const IDLE_MAX: usize = 4;

impl Owned {
    /// Whether the engine can go on, knowing what is known now. Scripts are forgotten with their engine; libraries one by one,
    /// since their functions may have a state.
    fn catch_up(&mut self, node: &Node, which: Engines, as_of: u64) -> bool {
        if self.seed != node.seed {
            return false;
        }
        if self.as_of == as_of {
            return true;
        }
        match which {
            Engines::Scripts => false,
            Engines::Functions => {
                let ids: BTreeSet<u64> = node.scripting.libraries().all().map(|library| library.id).collect();
                self.engine.keep_libraries(&ids);
                self.as_of = as_of;
                !ids.is_empty()
            }
        }
    }
}

/// An engine of this core that knows what is known now.
fn engine(node: &Node, which: Engines) -> Result<Owned, CommandError> {
    let as_of = match which {
        Engines::Scripts => node.scripting.cache().flushes(),
        Engines::Functions => node.scripting.libraries().generation,
    };
    let take = |idle: &mut Vec<Owned>| {
        let at = idle.iter().position(|owned| owned.which == which)?;
        Some(idle.swap_remove(at))
    };
    // One that cannot go on is gone before a new one is made.
    while let Some(mut owned) = IDLE.with_borrow_mut(take) {
        if owned.catch_up(node, which, as_of) {
            return Ok(owned);
        }
    }
    let engine = match which {
        Engines::Scripts => LuaEngine::new(),
        Engines::Functions => LuaEngine::for_functions(),
    };
    let engine = engine.map_err(|why| CommandError::Owned(format!("ERR no script engine: {why}")))?;
    Ok(Owned { engine: Box::new(engine), which, seed: node.seed, as_of })
}

/// Uses an engine of this core. A script that lets others have their turn keeps it meanwhile.
pub(crate) fn with_engine<R>(
    node: &Node,
    which: Engines,
    with: impl FnOnce(&mut LuaEngine) -> Result<R, CommandError>,
) -> Result<R, CommandError> {
    let mut owned = engine(node, which)?;
    let result = with(&mut owned.engine);
    IDLE.with_borrow_mut(|idle| {
        if idle.len() < IDLE_MAX {
            idle.push(owned);
        }
    });
    result
}
