//! Replies as values of Lua (<https://redis.io/docs/latest/develop/programmability/lua-api/>, "Data type conversion").

use super::{push_bytes, push_error, push_field};
use mlua::ffi::{
    lua_State, lua_checkstack, lua_createtable, lua_insert, lua_pop, lua_pushboolean, lua_pushnil, lua_pushnumber,
    lua_rawset, lua_rawseti_,
};
use simurgh_protocol::number::{parse_f64, parse_i64};
use simurgh_protocol::resp::Protocol;
use std::ffi::c_int;

/// How deep replies nest at most.
const DEPTH_MAX: usize = 64;

/// What a reply is.
pub(super) enum Read<'a> {
    /// A value, which has been pushed.
    Value,
    /// An error, of which nothing has been pushed.
    Error(&'a [u8]),
    /// No reply, or one that nests too deep. What has been pushed of it is nothing to go by.
    Nothing,
}

/// Pushes a reply as the script sees it. Raises.
pub(super) unsafe fn read(state: *mut lua_State, bytes: &[u8], protocol: Protocol) -> Read<'_> {
    let mut reader = Reader { bytes, at: 0, protocol };
    if matches!(bytes.first(), Some(b'-' | b'!')) {
        return reader.error().map_or(Read::Nothing, Read::Error);
    }
    // SAFETY: by the contract.
    match unsafe { reader.push(state, 0) } {
        Some(()) => Read::Value,
        None => Read::Nothing,
    }
}

/// Where in a reply we are. It has nothing to drop.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    protocol: Protocol,
}

impl<'a> Reader<'a> {
    fn line(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let end = rest.iter().position(|byte| *byte == b'\r')?;
        self.at += end + 2;
        Some(&rest[..end])
    }

    fn number(&mut self) -> Option<i64> {
        parse_i64(self.line()?)
    }

    /// The inside of a string whose length is told, but for one that is none.
    fn string(&mut self) -> Option<Option<&'a [u8]>> {
        let Ok(length) = usize::try_from(self.number()?) else { return Some(None) };
        let text = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length + 2;
        Some(Some(text))
    }

    fn error(&mut self) -> Option<&'a [u8]> {
        let kind = *self.bytes.get(self.at)?;
        self.at += 1;
        if kind == b'!' { self.string()? } else { self.line() }
    }

    /// Pushes one value. Raises.
    unsafe fn push(&mut self, state: *mut lua_State, depth: usize) -> Option<()> {
        let kind = *self.bytes.get(self.at)?;
        // SAFETY: by the contract; each of these pushes one value and uses four places at most, which are there for the outermost.
        unsafe {
            if depth > 0 && (depth > DEPTH_MAX || lua_checkstack(state, 8) == 0) {
                return None;
            }
            if matches!(kind, b'-' | b'!') {
                push_error(state, self.error()?);
                return Some(());
            }
            self.at += 1;
            match kind {
                b':' => lua_pushnumber(state, self.number()? as f64),
                b'$' => match self.string()? {
                    Some(text) => push_bytes(state, text),
                    None => self.push_null(state),
                },
                b'+' => push_field(state, b"ok", self.line()?),
                b'(' => push_field(state, b"big_number", self.line()?),
                b'#' => lua_pushboolean(state, c_int::from(self.line()? == b"t")),
                b'_' => {
                    self.line()?;
                    self.push_null(state);
                }
                b',' => self.push_double(state)?,
                b'=' => self.push_verbatim(state)?,
                b'*' | b'>' => self.push_array(state, depth)?,
                b'%' => self.push_map(state, depth)?,
                b'~' => self.push_set(state, depth)?,
                b'|' => self.push_without_attributes(state, depth)?,
                _ => return None,
            }
            Some(())
        }
    }

    /// Pushes what is none.
    unsafe fn push_null(&self, state: *mut lua_State) {
        // SAFETY: by the contract.
        unsafe {
            match self.protocol {
                Protocol::Resp2 => lua_pushboolean(state, 0),
                Protocol::Resp3 => lua_pushnil(state),
            }
        }
    }

    unsafe fn push_double(&mut self, state: *mut lua_State) -> Option<()> {
        let text = self.line()?;
        let number = if text == b"nan" { f64::NAN } else { parse_f64(text).unwrap_or(f64::NAN) };
        // SAFETY: by the contract.
        unsafe {
            lua_pushnumber(state, number);
            wrap(state, b"double");
        }
        Some(())
    }

    unsafe fn push_verbatim(&mut self, state: *mut lua_State) -> Option<()> {
        let text = self.string()??;
        let (format, text) = (text.get(..3)?, text.get(4..)?);
        // SAFETY: by the contract.
        unsafe {
            push_field(state, b"format", format);
            push_bytes(state, b"string");
            push_bytes(state, text);
            lua_rawset(state, -3);
            wrap(state, b"verbatim_string");
        }
        Some(())
    }

    /// Pushes the value behind attributes, which scripts are not shown.
    unsafe fn push_without_attributes(&mut self, state: *mut lua_State, depth: usize) -> Option<()> {
        // SAFETY: by the contract; one place at a time.
        unsafe {
            for _ in 0..self.count()?.unwrap_or(0) {
                self.push(state, depth + 1)?;
                self.push(state, depth + 1)?;
                lua_pop(state, 2);
            }
            self.push(state, depth + 1)
        }
    }

    /// How many there are in what follows; nothing for an array that is none.
    fn count(&mut self) -> Option<Option<c_int>> {
        let count = self.number()?;
        if count < 0 { Some(None) } else { c_int::try_from(count).ok().map(Some) }
    }

    unsafe fn push_array(&mut self, state: *mut lua_State, depth: usize) -> Option<()> {
        // SAFETY: by the contract.
        unsafe {
            let Some(count) = self.count()? else {
                self.push_null(state);
                return Some(());
            };
            lua_createtable(state, count, 0);
            for index in 1..=count {
                self.push(state, depth + 1)?;
                lua_rawseti_(state, -2, index);
            }
        }
        Some(())
    }

    unsafe fn push_map(&mut self, state: *mut lua_State, depth: usize) -> Option<()> {
        let count = self.count()?.unwrap_or(0);
        // SAFETY: by the contract.
        unsafe {
            // It grows as it does in Redis: the order of `pairs` follows from that.
            lua_createtable(state, 0, 0);
            for _ in 0..count {
                self.push(state, depth + 1)?;
                self.push(state, depth + 1)?;
                lua_rawset(state, -3);
            }
            wrap(state, b"map");
        }
        Some(())
    }

    unsafe fn push_set(&mut self, state: *mut lua_State, depth: usize) -> Option<()> {
        let count = self.count()?.unwrap_or(0);
        // SAFETY: by the contract.
        unsafe {
            lua_createtable(state, 0, 0);
            for _ in 0..count {
                self.push(state, depth + 1)?;
                lua_pushboolean(state, 1);
                lua_rawset(state, -3);
            }
            wrap(state, b"set");
        }
        Some(())
    }
}

/// Puts the value on top into a table, as its one field. Raises.
unsafe fn wrap(state: *mut lua_State, name: &[u8]) {
    // SAFETY: by the contract; two places.
    unsafe {
        lua_createtable(state, 0, 1);
        lua_insert(state, -2);
        push_bytes(state, name);
        lua_insert(state, -2);
        lua_rawset(state, -3);
    }
}
