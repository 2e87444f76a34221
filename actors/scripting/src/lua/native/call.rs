//! `redis.call` and `redis.pcall`.

use super::super::Shared;
use super::super::number::push_argument;
use super::{function, push_bytes, push_error, push_field, read};
use crate::CallError;
use mlua::ffi::{
    LUA_TNUMBER, LUA_TSTRING, lua_State, lua_error, lua_gettop, lua_settop, lua_toboolean, lua_tolstring, lua_tonumber,
    lua_touserdata, lua_type, lua_upvalueindex,
};
use mlua::{Function, Lua};
use simurgh_protocol::resp::Range;
use simurgh_protocol::{Args, Reply};
use std::ffi::c_int;
use std::rc::Rc;
use std::slice;

const INSIDE_ITSELF: &[u8] = b"ERR redis.call inside of itself";
const UNREADABLE: &[u8] = b"ERR the command's reply cannot be read";
pub(in super::super) const NO_ARGUMENT: &str = "ERR Please specify at least one argument for this redis lib call";
pub(in super::super) const NOT_WORDS: &str = "ERR Lua redis lib command arguments must be strings or integers";

/// Memory of a buffer that is kept for the next script.
const KEPT_MAX: usize = 64 << 10;

/// A request in the making; its memory is used again by the next.
#[derive(Default)]
pub(in super::super) struct Request {
    buffer: Vec<u8>,
    ranges: Vec<Range>,
}

impl Request {
    /// The arguments that a function has.
    ///
    /// # Safety
    /// `state` runs a function. Nothing raises.
    unsafe fn fill(&mut self, state: *mut lua_State) -> Result<Args<'_>, &'static str> {
        self.buffer.clear();
        self.ranges.clear();
        // SAFETY: these only look at what stands on the stack.
        let count = unsafe { lua_gettop(state) };
        if count == 0 {
            return Err(NO_ARGUMENT);
        }
        for index in 1..=count {
            let start = self.buffer.len();
            // SAFETY: as above.
            match unsafe { lua_type(state, index) } {
                LUA_TSTRING => {
                    let mut length = 0;
                    // SAFETY: what is a string already is not converted, so that nothing is allocated; it stands on the stack as long
                    // as its bytes are looked at.
                    let text =
                        unsafe { slice::from_raw_parts(lua_tolstring(state, index, &mut length).cast(), length) };
                    self.buffer.extend_from_slice(text);
                }
                // SAFETY: as above.
                LUA_TNUMBER => push_argument(&mut self.buffer, unsafe { lua_tonumber(state, index) }),
                _ => return Err(NOT_WORDS),
            }
            let length = u32::try_from(self.buffer.len() - start);
            let (Ok(start), Ok(length)) = (u32::try_from(start), length) else { return Err(NOT_WORDS) };
            self.ranges.push(Range { start, length });
        }
        Ok(Args::new(&self.buffer, &self.ranges))
    }
}

/// Lets go of the memory that a long request or reply has taken.
pub(in super::super) fn tidy_up(shared: &Shared) {
    let mut request = shared.request.borrow_mut();
    if request.buffer.capacity() > KEPT_MAX || request.ranges.capacity() > KEPT_MAX {
        *request = Request::default();
    }
    let mut answer = shared.answer.borrow_mut();
    if answer.capacity() > KEPT_MAX {
        *answer = Reply::default();
    }
}

/// What has become of a call.
#[derive(Clone, Copy)]
#[repr(C)]
enum Outcome {
    /// The answer is a reply.
    Answered,
    /// The answer is the text of an error of the command.
    Refused,
    /// The answer is the text of an error in the call, which names no command.
    Misused,
    /// There is none: the engine is in the middle of a call.
    Inside,
    /// The script ends here.
    Ends,
}

/// `redis.call` and `redis.pcall`.
pub(in super::super) fn functions(lua: &Lua, shared: &Rc<Shared>) -> mlua::Result<(Function, Function)> {
    Ok((function(lua, shared, true, call)?, function(lua, shared, false, call)?))
}

/// Calls a command; the upvalues are a [`Shared`], and whether errors are raised. Raises.
unsafe extern "C-unwind" fn call(state: *mut lua_State) -> c_int {
    // SAFETY: the engine owns the state as well as what is shared, and runs nothing in a state whose other half is gone. The
    // answer changes only in `ask`, so it stands still while it is read. The rest is by the contract.
    unsafe {
        let shared = &*lua_touserdata(state, lua_upvalueindex(1)).cast::<Shared>();
        let raises = lua_toboolean(state, lua_upvalueindex(2)) != 0;
        let outcome = ask(state, shared);
        lua_settop(state, 0);
        let answer = (*shared.answer.as_ptr()).bytes();
        let text = match outcome {
            Outcome::Answered => match read::read(state, answer, shared.protocol.get()) {
                read::Read::Value => return 1,
                read::Read::Error(text) => text,
                read::Read::Nothing => UNREADABLE,
            },
            Outcome::Refused | Outcome::Misused => answer,
            Outcome::Inside => INSIDE_ITSELF,
            Outcome::Ends => {
                push_bytes(state, b"the script ends");
                lua_error(state);
            }
        };
        match outcome {
            Outcome::Answered | Outcome::Refused => push_error(state, text),
            Outcome::Misused | Outcome::Inside | Outcome::Ends => push_field(state, b"err", text),
        }
        if raises { lua_error(state) } else { 1 }
    }
}

/// Sends the arguments to the server and keeps its answer. Does not raise, and a panic ends the process: it would not find its way
/// through the interpreter.
extern "C" fn ask(state: *mut lua_State, shared: &Shared) -> Outcome {
    let (Ok(mut request), Ok(mut answer)) = (shared.request.try_borrow_mut(), shared.answer.try_borrow_mut()) else {
        return Outcome::Inside;
    };
    answer.truncate(0);
    // SAFETY: `call` runs.
    let args = match unsafe { request.fill(state) } {
        Ok(args) => args,
        Err(text) => {
            answer.buffer().extend_from_slice(text.as_bytes());
            return Outcome::Misused;
        }
    };
    answer.set_protocol(shared.protocol.get());
    match shared.host.with(|host| host.call(&args, &mut answer)) {
        Some(Ok(())) => Outcome::Answered,
        Some(Err(CallError::Refused(text))) => {
            answer.truncate(0);
            answer.buffer().extend_from_slice(text.as_bytes());
            Outcome::Refused
        }
        Some(Err(CallError::Ends)) => {
            shared.is_killed.set(true);
            Outcome::Ends
        }
        None => Outcome::Inside,
    }
}
