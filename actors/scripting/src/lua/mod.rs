//! Plain Lua 5.1, sandboxed as Redis does it.
//!
//! One state serves many scripts, one after the other: what a script can reach it cannot change (`sandbox.lua`), so none
//! finds traces of another but in what it was given. The server's functions raise [`Raised`], which is no Lua value; `pcall`
//! and its kin turn it into one when a script catches it.

#![expect(clippy::wildcard_enum_match_arm, reason = "the kinds of Lua's values and errors are not our enum")]

mod api;
mod bit;
mod cjson;
mod cmsgpack;
mod current;
mod library;
mod native;
mod number;
mod raise;
mod random;
mod structure;

use crate::library::{Function as Registered, Library};
use crate::{Callable, Fault, Host, LogLevel, MEMORY_MAX, Run, Script, ScriptEngine, Watch};
use mlua::{ChunkMode, Error, Function, HookTriggers, Lua, LuaOptions, RegistryKey, StdLib, Table, Value, VmState};
use native::Called;
use raise::Raised;
use simurgh_protocol::Reply;
use simurgh_protocol::resp::Protocol;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_int;
use std::rc::Rc;

/// Instructions between two looks at the watch.
const INSTRUCTIONS_PER_LOOK: u32 = 100_000;
/// Compiled scripts above this number are forgotten together: the server still has their texts.
const COMPILED_MAX: usize = 4096;

/// How the collector works: it waits until memory has doubled, and goes twice as fast as memory is taken.
const COLLECTOR_PAUSE: c_int = 200;
const COLLECTOR_STEP: c_int = 200;

/// The error that ended what ran.
struct Ended {
    text: Vec<u8>,
    /// The line of the script.
    place: Option<String>,
    of_command: bool,
}

/// What the state's functions share.
pub(super) struct Shared {
    watch: RefCell<Option<Rc<dyn Watch>>>,
    /// The server, for the run under way.
    host: current::CurrentHost,
    /// The command that is called; its memory is used again by the next.
    request: RefCell<native::call::Request>,
    /// What it is answered: the reply, or the text of an error.
    answer: RefCell<Reply>,
    is_killed: Cell<bool>,
    /// The script has changed how the collector works.
    has_set_collector: Cell<bool>,
    /// The text of the error that ended the script, and where it was raised.
    error: RefCell<Option<Ended>>,
    /// The errors in the script's reply, by their lines, and which of them are of commands.
    pub errors: RefCell<Vec<(Vec<u8>, bool)>>,
    /// The protocol of the replies that the script sees.
    pub protocol: Cell<Protocol>,
    pub random: Cell<u64>,
    pub log: RefCell<Vec<(LogLevel, Vec<u8>)>>,
}

/// Lua 5.1.
pub struct LuaEngine {
    lua: Lua,
    shared: Rc<Shared>,
    /// What scripts see as `redis`, from behind.
    redis: Table,
    door: native::Door,
    /// The settings of `cjson`.
    json: cjson::Shared,
    libraries: library::Libraries,
    /// Scripts that have been read, by their digests.
    compiled: BTreeMap<String, RegistryKey>,
}

impl std::fmt::Debug for LuaEngine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "LuaEngine({} scripts)", self.compiled.len())
    }
}

impl LuaEngine {
    /// An engine that has run nothing yet.
    ///
    /// # Errors
    /// The text of what failed: there is no memory for it.
    pub fn new() -> Result<Self, String> {
        Self::build().map_err(|error| error.to_string())
    }

    /// An engine for functions: there are some parts of `redis` that only scripts have.
    ///
    /// # Errors
    /// As of [`LuaEngine::new`].
    pub fn for_functions() -> Result<Self, String> {
        let engine = Self::new()?;
        for name in ["breakpoint", "debug", "replicate_commands"] {
            engine.redis.raw_set(name, Value::Nil).map_err(|error| error.to_string())?;
        }
        Ok(engine)
    }

    fn build() -> mlua::Result<Self> {
        let libraries = StdLib::STRING | StdLib::TABLE | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::default())?;
        lua.set_memory_limit(MEMORY_MAX)?;
        let shared = Rc::new(Shared {
            watch: RefCell::new(None),
            host: current::CurrentHost::default(),
            request: RefCell::default(),
            answer: RefCell::default(),
            is_killed: Cell::new(false),
            has_set_collector: Cell::new(false),
            error: RefCell::new(None),
            errors: RefCell::default(),
            protocol: Cell::new(Protocol::Resp2),
            random: Cell::new(random::FIRST),
            log: RefCell::new(Vec::new()),
        });
        let redis = api::table(&lua, &shared)?;
        let json = cjson::Shared::new();
        let known = lua.create_table()?;
        known.raw_set("redis", &redis)?;
        known.raw_set("bit", bit::table(&lua)?)?;
        known.raw_set("cjson", cjson::table(&lua, &json)?)?;
        known.raw_set("cmsgpack", cmsgpack::table(&lua)?)?;
        known.raw_set("struct", structure::table(&lua)?)?;
        known.raw_set("os", clock(&lua, &shared)?)?;
        random::add(&lua, &shared, &known)?;
        let arguments = (
            missing(&lua)?,
            repair(&lua, &shared, false)?,
            repair(&lua, &shared, true)?,
            native::guard::maker(&lua)?,
            collector_set(&lua, &shared)?,
            known,
        );
        let sandbox = lua.load(include_str!("sandbox.lua")).set_name("=sandbox").into_function()?;
        let (outer, globals, protect): (Table, Table, Function) = sandbox.call(arguments)?;
        let parts = (&protect, &globals, missing(&lua)?, locate(&lua, &shared)?);
        let libraries = library::Libraries::new(&lua, &shared, parts)?;
        let door = native::Door::new(&lua, &globals, libraries.functions(), locate(&lua, &shared)?)?;
        lua.set_globals(outer)?;
        let watching = shared.clone();
        lua.set_global_hook(HookTriggers::new().every_nth_instruction(INSTRUCTIONS_PER_LOOK), move |_, _| {
            let is_killed = watching.watch.borrow().as_ref().is_some_and(|watch| watch.is_killed());
            watching.is_killed.set(watching.is_killed.get() || is_killed);
            if watching.is_killed.get() { Err(Error::external(Raised::Killed)) } else { Ok(VmState::Continue) }
        })?;
        Ok(Self { lua, shared, redis, door, json, libraries, compiled: BTreeMap::new() })
    }

    /// The place of a script in the registry; it is read if it is not there yet.
    fn script(&mut self, digest: &str, script: &Script) -> Result<c_int, Vec<u8>> {
        if let Some(known) = self.compiled.get(digest) {
            return Ok(known.id());
        }
        if self.compiled.len() >= COMPILED_MAX {
            self.compiled.clear();
            self.lua.expire_registry_values();
        }
        let chunk = self.parse(script.body(), "@user_script", None)?;
        let key = self.lua.create_registry_value(chunk).map_err(|error| error.to_string().into_bytes())?;
        let place = key.id();
        self.compiled.insert(digest.to_owned(), key);
        Ok(place)
    }

    /// Reads a text without running it.
    fn parse(&self, text: &[u8], name: &str, environment: Option<&Table>) -> Result<Function, Vec<u8>> {
        if text.starts_with(b"\x1b") {
            return Err(format!("{}:1: unexpected symbol near 'char(27)'", name.trim_start_matches('@')).into_bytes());
        }
        // In Lua 5.1 the collector could take what the parser still holds (CVE-2025-49844).
        self.lua.gc_stop();
        let mut chunk = self.lua.load(text).set_name(name).set_mode(ChunkMode::Text);
        if let Some(environment) = environment {
            chunk = chunk.set_environment(environment.clone());
        }
        let chunk = chunk.into_function();
        self.lua.gc_restart();
        chunk.map_err(|error| match error {
            Error::SyntaxError { message, .. } => message.into_bytes(),
            other => other.to_string().into_bytes(),
        })
    }

    fn prepare(&self, watch: Rc<dyn Watch>, seed: u32) {
        let shared = &self.shared;
        *shared.watch.borrow_mut() = Some(watch);
        self.json.reset();
        shared.is_killed.set(false);
        *shared.error.borrow_mut() = None;
        shared.protocol.set(Protocol::Resp2);
        shared.random.set(random::seeded(seed));
    }

    fn tidy_up(&self, host: &mut dyn Host) {
        for (level, text) in self.shared.log.borrow_mut().drain(..) {
            host.log(level, &text);
        }
        *self.shared.watch.borrow_mut() = None;
        native::call::tidy_up(&self.shared);
        if self.shared.has_set_collector.take() {
            self.lua.gc_restart();
            self.lua.gc_inc(COLLECTOR_PAUSE, COLLECTOR_STEP, 0);
        }
        if self.lua.used_memory() > MEMORY_MAX / 4 {
            let _ = self.lua.gc_collect();
        }
    }

    /// The text of the error that ended what ran, without its place.
    fn fault_text(&self, fault: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
        self.shared.error.borrow_mut().take().map_or_else(fault, |ended| ended.text)
    }

    /// The line that tells of the error that ended a script: its text, the script, the place. Where nothing could be noted
    /// (no memory), `fault` is all there is.
    fn describe(&self, digest: &str, fault: impl FnOnce() -> Vec<u8>) -> Fault {
        let nothing_noted = || Ended { text: fault(), place: None, of_command: false };
        let Ended { text, place, of_command } = self.shared.error.borrow_mut().take().unwrap_or_else(nothing_noted);
        let place = place.map_or_else(String::new, |place| format!(", on {place}."));
        Fault { text: [&text, format!(" script: {digest}{place}").as_bytes()].concat(), of_command }
    }
}

impl ScriptEngine for LuaEngine {
    fn compile(&mut self, digest: &str, script: &Script) -> Result<(), Vec<u8>> {
        self.script(digest, script).map(|_| ())
    }

    fn load(
        &mut self,
        library: &Library,
        watch: Rc<dyn Watch>,
        host: &mut dyn Host,
    ) -> Result<Vec<Registered>, Vec<u8>> {
        self.load_library(library, watch, host)
    }

    fn keep_libraries(&mut self, ids: &BTreeSet<u64>) {
        self.libraries.keep(ids);
    }

    fn run(&mut self, run: &Run<'_>, host: &mut dyn Host, reply: &mut Reply) -> Result<(), Fault> {
        let (name, called) = match run.callable {
            Callable::Script { digest, script } => (digest, Called::Script(self.script(digest, script)?)),
            Callable::Function { library, name, .. } => {
                self.know(library, &run.watch, host)?;
                (name, Called::Function { library: library.id, name })
            }
        };
        self.prepare(run.watch.clone(), run.seed);
        let written = reply.len();
        let ended = self.shared.host.enter(host, || self.door.run(&self.lua, &self.shared, called, run, reply));
        let outcome = ended.map_err(|fault| {
            reply.truncate(written);
            self.shared.errors.borrow_mut().clear();
            self.describe(name, || raise::text_of(&fault))
        });
        for (line, of_command) in self.shared.errors.borrow_mut().drain(..) {
            host.note_error(&line, of_command);
        }
        self.tidy_up(host);
        outcome
    }

    fn memory(&self) -> usize {
        self.lua.used_memory()
    }
}

/// A global that there is not.
fn missing(lua: &Lua) -> mlua::Result<Function> {
    lua.create_function(|lua, (_, name): (Value, Value)| -> mlua::Result<()> {
        if !matches!(name, Value::String(_) | Value::Integer(_) | Value::Number(_)) {
            return Err(raise::fault(lua, "Second argument to luaProtectedTableError must be a string or number"));
        }
        let name = name.to_string().unwrap_or_default();
        Err(raise::fault(lua, &format!("Script attempted to access nonexistent global variable '{name}'")))
    })
}

/// Notes an error's text and where it was raised, while the stack still stands.
fn locate(lua: &Lua, shared: &Rc<Shared>) -> mlua::Result<Function> {
    let shared = shared.clone();
    lua.create_function(move |lua, fault: Value| {
        let place = raise::place_of_error(lua);
        // What ended a script that is to end may have been raised by anything, also by what handles errors.
        let text = if shared.is_killed.get() {
            raise::KILLED.to_vec()
        } else {
            raise::relocate(raise::text_of(&fault), place.as_deref())
        };
        *shared.error.borrow_mut() = Some(Ended { text, place, of_command: raise::is_of_command(&fault) });
        Ok(())
    })
}

/// What a script sees of an error that it has caught. `as_table`: errors of commands are tables, as `xpcall` shows them.
fn repair(lua: &Lua, shared: &Rc<Shared>, as_table: bool) -> mlua::Result<Function> {
    let shared = shared.clone();
    lua.create_function(move |lua, fault: Value| {
        if shared.is_killed.get() {
            return Err(Error::external(Raised::Killed));
        }
        raise::as_value(lua, fault, as_table)
    })
}

/// Notes that the collector does not work as it did.
fn collector_set(lua: &Lua, shared: &Rc<Shared>) -> mlua::Result<Function> {
    let shared = shared.clone();
    lua.create_function(move |_, ()| {
        shared.has_set_collector.set(true);
        Ok(())
    })
}

fn clock(lua: &Lua, shared: &Rc<Shared>) -> mlua::Result<Table> {
    let shared = shared.clone();
    let table = lua.create_table()?;
    let clock = lua
        .create_function(move |_, ()| Ok(shared.watch.borrow().as_ref().map_or(0.0, |watch| watch.clock_seconds())))?;
    table.raw_set("clock", clock)?;
    Ok(table)
}

#[cfg(test)]
mod tests;
