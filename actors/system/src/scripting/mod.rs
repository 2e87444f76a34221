//! Scripts on this node: the cache of their texts, the one that runs, and the engines.
//!
//! A script holds every shard while it runs, so at most one runs at a time and it may touch any key, declared or not. Each
//! core has an engine of its own, made when its first script comes. What others may know of the script that runs, and ask of
//! it, is in a few atomics: its core has no time for messages.

mod cache;
mod execute;
mod functions;
mod host;
mod running;

pub(crate) use cache::Cache;
pub(crate) use execute::execute;
pub(crate) use functions::{Collision, Libraries, LibraryError, Patience, Policy};
pub(crate) use host::{Rules, ScriptHost};
pub(crate) use running::{NotKilled, Running, Watcher};

use crate::node::Node;
use simurgh_protocol::CommandError;
use simurgh_scripting::{LuaEngine, ScriptEngine};
use std::cell::RefCell;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the node knows of scripts.
#[derive(Debug, Default)]
pub struct Scripting {
    cache: Mutex<Cache>,
    /// The script that runs.
    pub(crate) running: Running,
    /// Memory of the engine that ran last, in bytes.
    pub(crate) engine_bytes: AtomicU64,
    /// The same of those that run functions.
    pub(crate) function_engine_bytes: AtomicU64,
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
    engine: LuaEngine,
    seed: u64,
    /// Of scripts, how many times their cache was flushed; of functions, their generation.
    as_of: u64,
}

type Slot = RefCell<Option<Owned>>;

thread_local! {
    static SCRIPTS: Slot = const { RefCell::new(None) };
    static FUNCTIONS: Slot = const { RefCell::new(None) };
}

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
                let ids: Vec<u64> = node.scripting.libraries().all().map(|library| library.id).collect();
                self.engine.keep_libraries(&ids);
                self.as_of = as_of;
                !ids.is_empty()
            }
        }
    }
}

/// Uses this core's engine.
pub(crate) fn with_engine<R>(
    node: &Node,
    which: Engines,
    with: impl FnOnce(&mut LuaEngine) -> Result<R, CommandError>,
) -> Result<R, CommandError> {
    let (slot, as_of) = match which {
        Engines::Scripts => (&SCRIPTS, node.scripting.cache().flushes()),
        Engines::Functions => (&FUNCTIONS, node.scripting.libraries().generation),
    };
    slot.with(|slot| {
        let Ok(mut slot) = slot.try_borrow_mut() else {
            return Err(CommandError::Text("ERR a script cannot run inside of another"));
        };
        if !slot.as_mut().is_some_and(|owned| owned.catch_up(node, which, as_of)) {
            // The old one is gone before the new one is made.
            *slot = None;
            let engine = match which {
                Engines::Scripts => LuaEngine::new(),
                Engines::Functions => LuaEngine::for_functions(),
            };
            let engine = engine.map_err(|why| CommandError::Owned(format!("ERR no script engine: {why}")))?;
            *slot = Some(Owned { engine, seed: node.seed, as_of });
        }
        let owned = slot.as_mut().expect("it has just been made");
        with(&mut owned.engine)
    })
}
