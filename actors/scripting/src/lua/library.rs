//! Libraries: `redis.register_function`, and the functions that have been registered
//! (<https://redis.io/docs/latest/develop/programmability/functions-intro/>).
//!
//! A library is loaded by running its chunk once, with a `redis` that registers and does little else (`library.lua`). A
//! state that is asked for a function of a library that it does not know loads that first, so each core's state gets them
//! when it needs them.

use super::api::{self, text_of};
use super::raise::command_error;
use super::{LuaEngine, Shared};
use crate::library::{Function as Registered, Library, is_name};
use crate::{Host, ScriptFlags, Watch};
use mlua::{Function, Lua, MultiValue, Table, Value};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

const WRONG_COUNT: &str = "ERR wrong number of arguments to redis.register_function";
const NOT_A_TABLE: &str = "ERR calling redis.register_function with a single argument is only applicable to Lua table \
                           (representing named arguments).";
const FIRST_NO_STRING: &str = "ERR first argument to redis.register_function must be a string";
const SECOND_NO_FUNCTION: &str = "ERR second argument to redis.register_function must be a function";
const KEY_NO_STRING: &str = "ERR named argument key given to redis.register_function is not a string";
const UNKNOWN_ARGUMENT: &str = "ERR unknown argument given to redis.register_function";
const NAME_NO_STRING: &str = "ERR function_name argument given to redis.register_function must be a string";
const DESCRIPTION_NO_STRING: &str = "ERR description argument given to redis.register_function must be a string";
const CALLBACK_NO_FUNCTION: &str = "ERR callback argument given to redis.register_function must be a function";
const FLAGS_NO_TABLE: &str =
    "ERR flags argument to redis.register_function must be a table representing function flags";
const UNKNOWN_FLAG: &str = "ERR unknown flag given";
const NO_NAME: &str = "ERR redis.register_function must get a function name argument";
const NO_CALLBACK: &str = "ERR redis.register_function must get a callback argument";
const BAD_NAME: &str = "ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one \
                        character long";
const EXISTS: &str = "ERR Function already exists in the library";
const NO_MEMORY: &str = "ERR not enough memory";
const TOO_MANY: &str = "ERR too many functions in one library";
/// So many functions one library may have: a loop at load time must not fill the memory with names.
const FUNCTIONS_MAX: usize = 100_000;

const NOT_NOW: &str = "ERR redis.register_function can only be called on FUNCTION LOAD command";

/// What a library has registered so far.
struct Registering {
    infos: Vec<Registered>,
    /// The names in small letters.
    names: BTreeSet<String>,
    /// The functions by their names.
    callbacks: Table,
}

/// The functions that a state knows.
pub(super) struct Libraries {
    environment: Table,
    load: Function,
    settle: Function,
    /// The last load has ended in the middle: functions would not see what they are to see.
    is_unsettled: bool,
    /// While a library is loaded.
    registering: Rc<RefCell<Option<Registering>>>,
    /// The libraries that are known.
    loaded: BTreeSet<u64>,
    /// Their functions, by number and name: a table of the state, which has room for so few values that are held from outside.
    functions: Table,
}

impl Libraries {
    /// For a state whose sandbox stands.
    pub fn new(
        lua: &Lua,
        shared: &Rc<Shared>,
        (protect, globals, missing, locate): (&Function, &Table, Function, Function),
    ) -> mlua::Result<Self> {
        let registering = Rc::new(RefCell::new(None));
        let api = api::load_table(lua, shared)?;
        let into = registering.clone();
        api.raw_set(
            "register_function",
            lua.create_function(move |_, args: MultiValue| register(&into, &args).map_err(command_error))?,
        )?;
        let chunk = lua.load(include_str!("library.lua")).set_name("=sandbox").into_function()?;
        let (environment, load, settle) = chunk.call((protect, globals, missing, locate, api))?;
        let functions = lua.create_table()?;
        Ok(Self { environment, load, settle, is_unsettled: false, registering, loaded: BTreeSet::new(), functions })
    }

    /// Their functions: a table of tables, by number and name.
    pub fn functions(&self) -> &Table {
        &self.functions
    }

    /// Forgets those that are not among `ids`.
    pub fn keep(&mut self, ids: &BTreeSet<u64>) {
        let functions = &self.functions;
        // What cannot be set free goes with the state.
        self.loaded.retain(|id| ids.contains(id) || functions.raw_set(*id, Value::Nil).is_err());
    }
}

impl LuaEngine {
    /// Loads a library if it is not yet, and sees to it that its functions see what they are to see.
    pub(super) fn know(
        &mut self,
        library: &Library,
        watch: &Rc<dyn Watch>,
        host: &mut dyn Host,
    ) -> Result<(), Vec<u8>> {
        if !self.libraries.loaded.contains(&library.id) {
            self.load_library(library, watch.clone(), host)?;
        }
        if self.libraries.is_unsettled {
            self.libraries.settle.call::<()>(()).map_err(|_| NO_MEMORY.as_bytes())?;
            self.libraries.is_unsettled = false;
        }
        Ok(())
    }

    /// Runs a library's chunk and keeps what it registers.
    pub(super) fn load_library(
        &mut self,
        library: &Library,
        watch: Rc<dyn Watch>,
        host: &mut dyn Host,
    ) -> Result<Vec<Registered>, Vec<u8>> {
        let chunk = self
            .parse(library.body(), "@user_function", Some(&self.libraries.environment))
            .map_err(|fault| [b"ERR Error compiling function: ", &*fault].concat())?;
        let callbacks = self.lua.create_table().map_err(|error| error.to_string().into_bytes())?;
        self.prepare(watch, 0);
        *self.libraries.registering.borrow_mut() =
            Some(Registering { infos: Vec::new(), names: BTreeSet::new(), callbacks });
        let ended = self.libraries.load.call::<(bool, Value)>(chunk);
        self.libraries.is_unsettled |= ended.is_err();
        let fault = match ended {
            Ok((true, _)) => None,
            Ok((false, fault)) => Some(self.fault_text(|| super::raise::text_of(&fault))),
            Err(error) => Some(self.fault_text(|| format!("ERR {}", super::raise::first_line(&error)).into_bytes())),
        };
        let is_late = self.shared.is_killed.get();
        self.tidy_up(host);
        let registered = self.libraries.registering.borrow_mut().take();
        if let Some(fault) = fault {
            let fault = if is_late { b"ERR FUNCTION LOAD timeout".to_vec() } else { fault };
            return Err([b"ERR Error registering functions: ", &*fault].concat());
        }
        let Some(Registering { mut infos, callbacks, .. }) = registered.filter(|all| !all.infos.is_empty()) else {
            return Err(b"ERR No functions registered".to_vec());
        };
        let kept = self.libraries.functions.raw_set(library.id, callbacks);
        kept.map_err(|error| error.to_string().into_bytes())?;
        infos.sort_by(|a, b| a.name.cmp(&b.name));
        self.libraries.loaded.insert(library.id);
        Ok(infos)
    }
}

/// `redis.register_function(name, callback)` or `redis.register_function{function_name=..., callback=..., ...}`.
fn register(into: &RefCell<Option<Registering>>, args: &MultiValue) -> Result<(), &'static str> {
    let mut all = into.try_borrow_mut().map_err(|_| NOT_NOW)?;
    let all = all.as_mut().ok_or(NOT_NOW)?;
    let (info, callback) = match (args.front(), args.get(1), args.len()) {
        (Some(Value::Table(named)), None, 1) => read_named(named)?,
        (Some(_), None, 1) => return Err(NOT_A_TABLE),
        (Some(name), Some(callback), 2) => {
            let name = text_of(name).ok_or(FIRST_NO_STRING)?;
            let Value::Function(callback) = callback else { return Err(SECOND_NO_FUNCTION) };
            (function(&name, None, ScriptFlags::default())?, callback.clone())
        }
        _ => return Err(WRONG_COUNT),
    };
    if all.infos.len() >= FUNCTIONS_MAX {
        return Err(TOO_MANY);
    }
    // Names differ by more than the size of letters: FCALL does not tell those apart.
    if !all.names.insert(info.name.to_ascii_lowercase()) {
        return Err(EXISTS);
    }
    all.callbacks.raw_set(&*info.name, callback).map_err(|_| NO_MEMORY)?;
    all.infos.push(info);
    Ok(())
}

fn function(name: &[u8], description: Option<Vec<u8>>, flags: ScriptFlags) -> Result<Registered, &'static str> {
    let name = std::str::from_utf8(name).ok().filter(|name| is_name(name.as_bytes())).ok_or(BAD_NAME)?;
    // The rules for scripts with flags hold for every function.
    let flags = ScriptFlags { are_given: true, ..flags };
    Ok(Registered { name: name.into(), description: description.map(Into::into), flags })
}

fn read_named(named: &Table) -> Result<(Registered, Function), &'static str> {
    let (mut name, mut description, mut callback, mut flags) = (None, None, None, ScriptFlags::default());
    for pair in named.pairs::<Value, Value>() {
        let (key, value) = pair.map_err(|_| KEY_NO_STRING)?;
        let key = text_of(&key).ok_or(KEY_NO_STRING)?;
        match key.to_ascii_lowercase().as_slice() {
            b"function_name" => name = Some(text_of(&value).ok_or(NAME_NO_STRING)?),
            b"description" => description = Some(text_of(&value).ok_or(DESCRIPTION_NO_STRING)?),
            b"callback" => match value {
                Value::Function(value) => callback = Some(value),
                _ => return Err(CALLBACK_NO_FUNCTION),
            },
            b"flags" => match value {
                Value::Table(value) => flags = read_flags(&value)?,
                _ => return Err(FLAGS_NO_TABLE),
            },
            _ => return Err(UNKNOWN_ARGUMENT),
        }
    }
    let name = name.ok_or(NO_NAME)?;
    let callback = callback.ok_or(NO_CALLBACK)?;
    Ok((function(&name, description, flags)?, callback))
}

fn read_flags(list: &Table) -> Result<ScriptFlags, &'static str> {
    let mut flags = ScriptFlags::default();
    for index in 1.. {
        let flag: Value = list.raw_get(index).map_err(|_| UNKNOWN_FLAG)?;
        if flag.is_nil() {
            break;
        }
        let name = text_of(&flag).ok_or(UNKNOWN_FLAG)?.to_ascii_lowercase();
        let is_known = std::str::from_utf8(&name).is_ok_and(|name| flags.set(name));
        if !is_known {
            return Err(UNKNOWN_FLAG);
        }
    }
    Ok(flags)
}
