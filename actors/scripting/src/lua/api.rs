//! `redis.*`: what a script may ask of the server (<https://redis.io/docs/latest/develop/programmability/lua-api/>).

use super::Shared;
use super::native::call::{self, NO_ARGUMENT, NOT_WORDS};
use super::number::format_g;
use super::raise::{command_error, error_table};
use crate::{LogLevel, sha1_hex};
use mlua::{Lua, MultiValue, Table, Value};
use simurgh_protocol::command::{Lookup, lookup};
use simurgh_protocol::resp::Protocol;
use std::rc::Rc;

/// The version of the contract that scripts are shown.
const VERSION: &str = "8.2.3";
const VERSION_NUMBER: i64 = 0x0008_0203;

const BAD_REPLICATION: &str = "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.";

/// What a library may use while it is loaded, but for what registers functions.
pub(super) fn load_table(lua: &Lua, shared: &Rc<Shared>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("REDIS_VERSION", VERSION)?;
    table.raw_set("REDIS_VERSION_NUM", VERSION_NUMBER)?;
    for (level, name) in ["LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"].into_iter().enumerate() {
        table.raw_set(name, level)?;
    }
    let state = shared.clone();
    table.raw_set("log", lua.create_function(move |lua, args: MultiValue| log(lua, &state, &args))?)?;
    Ok(table)
}

/// The library.
pub(super) fn table(lua: &Lua, shared: &Rc<Shared>) -> mlua::Result<Table> {
    let table = load_table(lua, shared)?;
    let targets = [("REPL_NONE", 0), ("REPL_AOF", 1), ("REPL_SLAVE", 2), ("REPL_REPLICA", 2), ("REPL_ALL", 3)];
    for (name, value) in targets {
        table.raw_set(name, value)?;
    }
    let (call, pcall) = call::functions(lua, shared)?;
    table.raw_set("call", call)?;
    table.raw_set("pcall", pcall)?;
    table.raw_set("sha1hex", lua.create_function(|_, args: MultiValue| sha1hex(&args))?)?;
    table.raw_set("error_reply", lua.create_function(|lua, args: MultiValue| error_reply(lua, &args))?)?;
    table.raw_set("status_reply", lua.create_function(|lua, args: MultiValue| status_reply(lua, &args))?)?;
    table.raw_set("set_repl", lua.create_function(|lua, args: MultiValue| set_repl(lua, &args))?)?;
    table.raw_set("acl_check_cmd", lua.create_function(|_, args: MultiValue| acl_check_cmd(&args))?)?;
    table.raw_set("replicate_commands", lua.create_function(|_, ()| Ok(true))?)?;
    // Outside of the debugger, which there is not, Redis's own do nothing either.
    table.raw_set("breakpoint", lua.create_function(|_, _: MultiValue| Ok(false))?)?;
    table.raw_set("debug", lua.create_function(|_, _: MultiValue| Ok(()))?)?;
    let state = shared.clone();
    table.raw_set("setresp", lua.create_function(move |lua, args: MultiValue| setresp(lua, &state, &args))?)?;
    Ok(table)
}

/// A string or a number as text.
pub(super) fn text_of(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        Value::Integer(number) => Some(number.to_string().into_bytes()),
        Value::Number(number) => Some(format_g(*number, 14).into_bytes()),
        _ => None,
    }
}

fn sha1hex(args: &MultiValue) -> mlua::Result<String> {
    match args.front() {
        Some(value) if args.len() == 1 => Ok(sha1_hex(&text_of(value).unwrap_or_default())),
        _ => Err(command_error("ERR wrong number of arguments")),
    }
}

/// The one argument of `error_reply` and `status_reply`.
fn one_string(args: &MultiValue) -> Option<Vec<u8>> {
    match args.front() {
        Some(Value::String(text)) if args.len() == 1 => Some(text.as_bytes().to_vec()),
        _ => None,
    }
}

const WRONG_REPLY: &[u8] = b"ERR wrong number or type of arguments";

fn error_reply(lua: &Lua, args: &MultiValue) -> mlua::Result<Table> {
    let Some(text) = one_string(args) else { return error_table(lua, WRONG_REPLY) };
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let text = text.strip_prefix(b"-").unwrap_or(text);
    if text.contains(&b' ') {
        return error_table(lua, text);
    }
    error_table(lua, &[b"ERR ", text].concat())
}

fn status_reply(lua: &Lua, args: &MultiValue) -> mlua::Result<Table> {
    let Some(text) = one_string(args) else { return error_table(lua, WRONG_REPLY) };
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set("ok", lua.create_string(text)?)?;
    Ok(table)
}

/// Checked, and no more: what a script changes is always in the log.
fn set_repl(lua: &Lua, args: &MultiValue) -> mlua::Result<()> {
    let Some(value) = args.front().filter(|_| args.len() == 1) else {
        return Err(command_error("ERR redis.set_repl() requires one argument."));
    };
    let flags = lua.coerce_number(value.clone())?.unwrap_or(0.0) as i64;
    if flags & !3 != 0 { Err(command_error(BAD_REPLICATION)) } else { Ok(()) }
}

fn setresp(lua: &Lua, shared: &Shared, args: &MultiValue) -> mlua::Result<()> {
    let Some(value) = args.front().filter(|_| args.len() == 1) else {
        return Err(command_error("ERR redis.setresp() requires one argument."));
    };
    let version = lua.coerce_number(value.clone())?.unwrap_or(0.0) as i64;
    shared.protocol.set(match version {
        2 => Protocol::Resp2,
        3 => Protocol::Resp3,
        _ => return Err(command_error("ERR RESP version must be 2 or 3.")),
    });
    Ok(())
}

fn log(lua: &Lua, shared: &Shared, args: &MultiValue) -> mlua::Result<()> {
    let Some(level) = args.front().filter(|_| args.len() > 1) else {
        return Err(command_error("ERR redis.log() requires two arguments or more."));
    };
    let Some(level) = lua.coerce_number(level.clone())? else {
        return Err(command_error("ERR First argument must be a number (log level)."));
    };
    let level = match level as i64 {
        0 => LogLevel::Debug,
        1 => LogLevel::Verbose,
        2 => LogLevel::Notice,
        3 => LogLevel::Warning,
        _ => return Err(command_error("ERR Invalid log level.")),
    };
    let words: Vec<Vec<u8>> = args.iter().skip(1).filter_map(text_of).collect();
    shared.log.borrow_mut().push((level, words.join(&b' ')));
    Ok(())
}

/// There are no users yet who may less than all.
fn acl_check_cmd(args: &MultiValue) -> mlua::Result<bool> {
    let Some(name) = args.front() else { return Err(command_error(NO_ARGUMENT)) };
    let name = text_of(name).ok_or_else(|| command_error(NOT_WORDS))?;
    let second = args.get(1).and_then(text_of);
    match lookup(&name, second.as_deref()) {
        Lookup::Found(_) | Lookup::MissingSubcommand(_) => Ok(true),
        Lookup::UnknownCommand | Lookup::UnknownSubcommand(_) => {
            Err(command_error("ERR Invalid command passed to redis.acl_check_cmd()"))
        }
    }
}
