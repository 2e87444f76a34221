//! The way into a script and out of it again, and what scripts do most, by Lua's own interface instead of `mlua`'s.
//!
//! Most scripts are a call or two, and what `mlua` does around each of those (a protected call, a closure and a reference for every value
//! that crosses) costs several times what they do themselves. So the run of a script is one protected call of [`enter`], in which
//! its words become values, it runs, and its value becomes a reply; `redis.call` (`call.rs`) reads its arguments where they stand.
//!
//! # The contract of this directory
//!
//! A function of Lua's interface that allocates or calls may raise an error, which jumps over the frames between it and the nearest
//! protected call without dropping anything. So all that is marked *raises* here
//!
//! * is called in a protected call only: below [`enter`], or as a function of the state;
//! * has nothing to drop where it calls into Lua: what owns memory lives in the engine or in frames below the protected call;
//! * borrows no cell there.
//!
//! A C function finds twenty free places on its stack; whoever needs more asks for them.
#![allow(unsafe_code)]

pub(super) mod call;
pub(super) mod guard;
mod read;
mod write;

use super::Shared;
use super::raise::OF_COMMAND;
use crate::Run;
use mlua::ffi::{
    LUA_OK, LUA_REGISTRYINDEX, LUA_TFUNCTION, LUA_TTABLE, lua_State, lua_call, lua_createtable, lua_error, lua_gettop,
    lua_pcall, lua_pushboolean, lua_pushcclosure, lua_pushlightuserdata, lua_pushlstring_, lua_pushnumber,
    lua_pushvalue, lua_rawget_, lua_rawgeti_, lua_rawset, lua_rawseti_, lua_settop, lua_touserdata, lua_type,
    lua_upvalueindex,
};
use mlua::{Function, IntoLua, Lua, MultiValue, RegistryKey, Table, Value};
use simurgh_protocol::Reply;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::rc::Rc;

/// What [`enter`] has as upvalues: the tables first, then the names that values are looked up by.
#[derive(Clone, Copy)]
#[repr(i32)]
enum Upvalue {
    Globals = 1,
    Functions,
    Keys,
    Argv,
    Err,
    Ok,
    Double,
    Map,
    Set,
    BigNumber,
    Verbatim,
    Format,
    String,
    OfCommand,
}

const NAMES: [&str; 12] = [
    "KEYS",
    "ARGV",
    "err",
    "ok",
    "double",
    "map",
    "set",
    "big_number",
    "verbatim_string",
    "format",
    "string",
    OF_COMMAND,
];

impl Upvalue {
    fn index(self) -> c_int {
        lua_upvalueindex(self as c_int)
    }
}

/// What is to run.
#[derive(Clone, Copy)]
pub(super) enum Called<'a> {
    /// A script, by its place in the registry.
    Script(c_int),
    /// A library's function.
    Function {
        /// The library's number.
        library: u64,
        /// The function's name.
        name: &'a str,
    },
}

/// What [`enter`] is given.
struct Entry<'a> {
    called: Called<'a>,
    run: &'a Run<'a>,
    shared: &'a Shared,
    reply: *mut Reply,
}

/// The door to a state.
pub(super) struct Door {
    /// The state's main thread, on whose stack nothing stands between two runs.
    state: *mut lua_State,
    enter: RegistryKey,
    locate: RegistryKey,
}

impl Door {
    /// Of a state whose sandbox stands: what scripts see as `_G`, from behind, the functions of libraries, and what is told of errors.
    pub fn new(lua: &Lua, globals: &Table, functions: &Table, locate: Function) -> mlua::Result<Self> {
        let mut upvalues = vec![Value::Table(globals.clone()), Value::Table(functions.clone())];
        for name in NAMES {
            upvalues.push(name.into_lua(lua)?);
        }
        let count = upvalues.len() as c_int;
        let mut main = ptr::null_mut();
        let upvalues: MultiValue = upvalues.into_iter().collect();
        // SAFETY: the closure runs in a protected call, with `count` values on its stack that become the function's upvalues.
        let enter: Function = unsafe {
            lua.exec_raw(upvalues, |state| {
                main = state;
                lua_pushcclosure(state, enter, count);
            })?
        };
        let (enter, locate) = (lua.create_registry_value(enter)?, lua.create_registry_value(locate)?);
        Ok(Self { state: main, enter, locate })
    }

    /// Runs what is called and writes its reply.
    ///
    /// # Errors
    /// The value that was raised; what the handler made of it has been noted.
    pub fn run(
        &self,
        lua: &Lua,
        shared: &Shared,
        called: Called<'_>,
        run: &Run<'_>,
        reply: &mut Reply,
    ) -> Result<(), Value> {
        let mut entry = Entry { called, run, shared, reply };
        let state = self.state;
        // SAFETY: `lua` keeps the state, whose main thread it is, and nothing else uses that meanwhile. Its stack has room for three
        // values, none of which is allocated; all that may raise is inside of the protected call. `entry` outlives it.
        unsafe {
            let base = lua_gettop(state);
            lua_rawgeti_(state, LUA_REGISTRYINDEX, self.locate.id());
            lua_rawgeti_(state, LUA_REGISTRYINDEX, self.enter.id());
            lua_pushlightuserdata(state, (&raw mut entry).cast::<c_void>());
            let status = lua_pcall(state, 1, 0, base + 1);
            let outcome = if status == LUA_OK { Ok(()) } else { Err(lua.exec_raw_lua(|raw| raw.pop_value())) };
            lua_settop(state, base);
            outcome
        }
    }
}

/// A run: its one argument is an [`Entry`]. Raises.
unsafe extern "C-unwind" fn enter(state: *mut lua_State) -> c_int {
    // SAFETY: by the contract; `Door::run` is the only one that calls this, with an entry of its own that nobody else touches. The
    // stack has five values at most before the call.
    unsafe {
        let entry = &*lua_touserdata(state, 1).cast::<Entry<'_>>();
        lua_settop(state, 0);
        let words = match entry.called {
            Called::Script(place) => {
                lua_pushvalue(state, Upvalue::Keys.index());
                push_words(state, entry.run.keys);
                lua_rawset(state, Upvalue::Globals.index());
                lua_pushvalue(state, Upvalue::Argv.index());
                push_words(state, entry.run.args);
                lua_rawset(state, Upvalue::Globals.index());
                lua_rawgeti_(state, LUA_REGISTRYINDEX, place);
                0
            }
            Called::Function { library, name } => {
                push_function(state, library, name);
                push_words(state, entry.run.keys);
                push_words(state, entry.run.args);
                2
            }
        };
        lua_call(state, words, 1);
        let value = lua_gettop(state);
        write::write(state, value, &mut *entry.reply, entry.shared, 0);
        0
    }
}

/// The table of these words. Raises.
unsafe fn push_words(state: *mut lua_State, words: &[&[u8]]) {
    // SAFETY: by the contract; two values at most.
    unsafe {
        lua_createtable(state, c_int::try_from(words.len()).unwrap_or(0), 0);
        for (index, word) in (1..).zip(words) {
            push_bytes(state, word);
            lua_rawseti_(state, -2, index);
        }
    }
}

/// A library's function. Raises.
unsafe fn push_function(state: *mut lua_State, library: u64, name: &str) {
    // SAFETY: by the contract; two values at most.
    unsafe {
        lua_pushnumber(state, library as f64);
        lua_rawget_(state, Upvalue::Functions.index());
        if lua_type(state, -1) == LUA_TTABLE {
            push_bytes(state, name.as_bytes());
            lua_rawget_(state, -2);
        }
        if lua_type(state, -1) != LUA_TFUNCTION {
            push_bytes(state, b"Function not found");
            lua_error(state);
        }
    }
}

/// A string. Raises.
unsafe fn push_bytes(state: *mut lua_State, bytes: &[u8]) {
    // SAFETY: by the contract; Lua copies the bytes.
    unsafe { lua_pushlstring_(state, bytes.as_ptr().cast(), bytes.len()) }
}

/// `{name = text}`. Raises.
unsafe fn push_field(state: *mut lua_State, name: &[u8], text: &[u8]) {
    // SAFETY: by the contract; three values at most.
    unsafe {
        lua_createtable(state, 0, 1);
        push_bytes(state, name);
        push_bytes(state, text);
        lua_rawset(state, -3);
    }
}

/// The error of a command: besides its text it says that it has been counted, as Redis's do. Raises.
unsafe fn push_error(state: *mut lua_State, text: &[u8]) {
    // SAFETY: by the contract; three values at most.
    unsafe {
        push_field(state, b"err", text);
        push_bytes(state, OF_COMMAND.as_bytes());
        lua_pushboolean(state, 1);
        lua_rawset(state, -3);
    }
}

/// A function of a state, with what it shares with the engine and a flag as upvalues.
fn function(lua: &Lua, shared: &Rc<Shared>, flag: bool, code: mlua::lua_CFunction) -> mlua::Result<Function> {
    let shared = mlua::LightUserData(Rc::as_ptr(shared).cast_mut().cast::<c_void>());
    // SAFETY: the closure runs in a protected call, with two values on its stack.
    unsafe { lua.exec_raw((shared, flag), |state| lua_pushcclosure(state, code, 2)) }
}

#[cfg(test)]
mod tests;
