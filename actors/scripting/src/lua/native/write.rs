//! Values of Lua as replies (<https://redis.io/docs/latest/develop/programmability/lua-api/>, "Data type conversion").

use super::super::Shared;
use super::Upvalue;
use mlua::ffi::{
    LUA_TBOOLEAN, LUA_TNUMBER, LUA_TSTRING, LUA_TTABLE, lua_State, lua_checkstack, lua_gettop, lua_next, lua_pop,
    lua_pushnil, lua_pushvalue, lua_rawget_, lua_rawgeti_, lua_settop, lua_toboolean, lua_tolstring, lua_tonumber,
    lua_type,
};
use simurgh_protocol::Reply;
use simurgh_protocol::resp::Protocol;
use std::ffi::c_int;
use std::slice;

/// How deep a value may nest before its inside is answered with an error.
const DEPTH_MAX: usize = 1000;

/// Writes the value at `index`, counted from the bottom of the stack, which stays as it is. If the script has asked for RESP3, booleans are
/// booleans. Raises; [`super::enter`] runs, whose upvalues are used.
pub(super) unsafe fn write(state: *mut lua_State, index: c_int, reply: &mut Reply, shared: &Shared, depth: usize) {
    // SAFETY: by the contract.
    unsafe {
        if depth > DEPTH_MAX || (depth > 0 && lua_checkstack(state, 8) == 0) {
            let from = reply.len();
            reply.error("ERR reached lua stack limit");
            return note(shared, &reply.bytes()[from..], false);
        }
        match lua_type(state, index) {
            LUA_TSTRING => reply.bulk(text(state, index)),
            LUA_TBOOLEAN => match (shared.protocol.get(), lua_toboolean(state, index) != 0) {
                (Protocol::Resp3, value) => reply.boolean(value),
                (Protocol::Resp2, true) => reply.integer(1),
                (Protocol::Resp2, false) => reply.null(),
            },
            LUA_TNUMBER => reply.integer(truncated(lua_tonumber(state, index))),
            LUA_TTABLE => {
                let top = lua_gettop(state);
                write_table(state, index, reply, shared, depth);
                lua_settop(state, top);
            }
            _ => reply.null(),
        }
    }
}

/// Notes an error of the reply, by its line. Does not raise.
fn note(shared: &Shared, line: &[u8], of_command: bool) {
    shared.errors.borrow_mut().push((line.to_vec(), of_command));
}

/// A number as C casts it to `long long`.
fn truncated(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) { number as i64 } else { i64::MIN }
}

/// The bytes of a string, which must stand on the stack as long as they are used.
unsafe fn text<'a>(state: *mut lua_State, index: c_int) -> &'a [u8] {
    let mut length = 0;
    // SAFETY: it is a string, so that nothing is converted; nothing moves it while it stands on the stack.
    unsafe { slice::from_raw_parts(lua_tolstring(state, index, &mut length).cast(), length) }
}

/// The same as C sees it: up to the first zero byte.
unsafe fn line<'a>(state: *mut lua_State, index: c_int) -> &'a [u8] {
    // SAFETY: as the caller's.
    unsafe { text(state, index) }.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Pushes a field of a table, without asking its metatable, and tells its type.
unsafe fn field(state: *mut lua_State, table: c_int, name: Upvalue) -> c_int {
    // SAFETY: by the contract; one place.
    unsafe {
        lua_pushvalue(state, name.index());
        lua_rawget_(state, table);
        lua_type(state, -1)
    }
}

/// Leaves a value where it ends early. Raises.
unsafe fn write_table(state: *mut lua_State, table: c_int, reply: &mut Reply, shared: &Shared, depth: usize) {
    // SAFETY: by the contract: `write` has asked for eight places, or they are of the twenty; with those of what it calls no more than four are in use at once.
    unsafe {
        if field(state, table, Upvalue::Err) == LUA_TSTRING {
            let from = reply.len();
            reply.error_bytes(line(state, -1));
            let of_command = field(state, table, Upvalue::OfCommand) == LUA_TBOOLEAN && lua_toboolean(state, -1) != 0;
            return note(shared, &reply.bytes()[from..], of_command);
        }
        lua_pop(state, 1);
        if field(state, table, Upvalue::Ok) == LUA_TSTRING {
            return reply.simple_bytes(line(state, -1));
        }
        lua_pop(state, 1);
        if field(state, table, Upvalue::Double) == LUA_TNUMBER {
            return reply.double(lua_tonumber(state, -1));
        }
        lua_pop(state, 1);
        if field(state, table, Upvalue::Map) == LUA_TTABLE {
            return write_map(state, reply, shared, depth);
        }
        lua_pop(state, 1);
        if field(state, table, Upvalue::Set) == LUA_TTABLE {
            return write_set(state, reply, shared, depth);
        }
        lua_pop(state, 1);
        if field(state, table, Upvalue::BigNumber) == LUA_TSTRING {
            return write_big_number(line(state, -1), reply);
        }
        lua_pop(state, 1);
        if field(state, table, Upvalue::Verbatim) == LUA_TTABLE && write_verbatim(state, reply) {
            return;
        }
        lua_pop(state, 1);
        write_array(state, table, reply, shared, depth);
    }
}

/// Writes the verbatim string whose table is on top, if it is one.
unsafe fn write_verbatim(state: *mut lua_State, reply: &mut Reply) -> bool {
    // SAFETY: by the contract: two places.
    unsafe {
        let inner = lua_gettop(state);
        let is_whole =
            field(state, inner, Upvalue::Format) == LUA_TSTRING && field(state, inner, Upvalue::String) == LUA_TSTRING;
        if is_whole {
            let format = String::from_utf8_lossy(line(state, inner + 1)).into_owned();
            reply.verbatim(&format!("{format:<3.3}"), text(state, inner + 2));
        }
        lua_settop(state, inner);
        is_whole
    }
}

unsafe fn write_array(state: *mut lua_State, table: c_int, reply: &mut Reply, shared: &Shared, depth: usize) {
    let mark = reply.open_array();
    let mut length: c_int = 0;
    // SAFETY: by the contract: one place.
    unsafe {
        let value = lua_gettop(state) + 1;
        while length < c_int::MAX {
            lua_rawgeti_(state, table, length + 1);
            if lua_type(state, value) <= mlua::ffi::LUA_TNIL {
                break;
            }
            write(state, value, reply, shared, depth + 1);
            lua_settop(state, value - 1);
            length += 1;
        }
    }
    reply.close_array(mark, length as usize);
}

/// How many pairs the table on top has.
unsafe fn pair_count(state: *mut lua_State) -> usize {
    let mut count = 0;
    // SAFETY: by the contract: two places; the key is always that of the pair before.
    unsafe {
        let table = lua_gettop(state);
        lua_pushnil(state);
        while lua_next(state, table) != 0 {
            lua_settop(state, table + 1);
            count += 1;
        }
    }
    count
}

/// Writes the map whose table is on top.
unsafe fn write_map(state: *mut lua_State, reply: &mut Reply, shared: &Shared, depth: usize) {
    // SAFETY: by the contract: two places; as of `pair_count`.
    unsafe {
        let table = lua_gettop(state);
        reply.map(pair_count(state));
        lua_pushnil(state);
        while lua_next(state, table) != 0 {
            write(state, table + 1, reply, shared, depth + 1);
            write(state, table + 2, reply, shared, depth + 1);
            lua_settop(state, table + 1);
        }
    }
}

/// Writes the set whose table is on top.
unsafe fn write_set(state: *mut lua_State, reply: &mut Reply, shared: &Shared, depth: usize) {
    // SAFETY: by the contract: two places; as of `pair_count`.
    unsafe {
        let table = lua_gettop(state);
        reply.set(pair_count(state));
        lua_pushnil(state);
        while lua_next(state, table) != 0 {
            write(state, table + 1, reply, shared, depth + 1);
            lua_settop(state, table + 1);
        }
    }
}

fn write_big_number(digits: &[u8], reply: &mut Reply) {
    if reply.protocol() == Protocol::Resp2 {
        let plain = |byte: &u8| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte };
        return reply.bulk(&digits.iter().map(plain).collect::<Vec<u8>>());
    }
    let from = reply.len();
    reply.error_bytes(digits);
    reply.buffer()[from] = b'(';
}
