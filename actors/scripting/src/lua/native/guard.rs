//! `table.insert`, which would write past the guards of what scripts share: it alone of Lua's own functions sets a field of a table
//! without asking its metatable. (`table.remove` and `table.sort` find nothing to change in a table that stays empty.)

use super::push_bytes;
use mlua::ffi::{
    LUA_TNIL, lua_State, lua_error, lua_getmetatable, lua_gettop, lua_isnumber, lua_pop, lua_pushcclosure,
    lua_pushvalue, lua_rawget_, lua_settop, lua_tocfunction, lua_type, lua_upvalueindex,
};
use mlua::{Function, Lua, MultiValue};
use std::ffi::c_int;

/// Makes a version of the first value, a C function such as `table.insert`, that refuses the tables that are keys of the second.
pub(in super::super) fn maker(lua: &Lua) -> mlua::Result<Function> {
    lua.create_function(|lua, parts: MultiValue| -> mlua::Result<Function> {
        if parts.len() != 2 {
            return Err(mlua::Error::runtime("a function and a table"));
        }
        // SAFETY: the closure runs in a protected call, with two values on its stack.
        unsafe { lua.exec_raw(parts, |state| lua_pushcclosure(state, insert, 2)) }
    })
}

/// The upvalues are Lua's own `table.insert` and the table of the tables that are guarded. Raises.
unsafe extern "C-unwind" fn insert(state: *mut lua_State) -> c_int {
    // SAFETY: by the contract; nothing here is to be dropped. Lua's own function is called as the machine would call it: in a frame
    // of its own with its arguments, and has no upvalues that ours could be taken for.
    unsafe {
        let count = lua_gettop(state);
        if count > 0 && lua_getmetatable(state, 1) != 0 {
            lua_pushvalue(state, 1);
            lua_rawget_(state, lua_upvalueindex(2));
            let is_guarded = lua_type(state, -1) != LUA_TNIL;
            lua_pop(state, 2);
            if is_guarded && (count == 2 || count == 3 && lua_isnumber(state, 2) != 0) {
                push_bytes(state, b"Attempt to modify a readonly table");
                lua_error(state);
            }
        }
        match lua_tocfunction(state, lua_upvalueindex(1)) {
            Some(original) => original(state),
            None => {
                lua_settop(state, 0);
                0
            }
        }
    }
}
