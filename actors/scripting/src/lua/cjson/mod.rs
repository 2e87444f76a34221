//! `cjson`: JSON as lua-cjson 2.1 reads and writes it in Redis, with its settings and limits.

mod decode;
mod encode;

use super::raise::{bad_argument, bad_type};
use mlua::{Lua, MultiValue, Table, Value};
use std::cell::Cell;
use std::rc::Rc;

/// What is done with numbers that JSON does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Invalid {
    Refused,
    Allowed,
    /// Written as `null`.
    Null,
}

/// The settings, as `cjson.encode_max_depth` and its kin change them.
#[derive(Clone, Copy, Debug)]
struct Settings {
    sparse_convert: bool,
    sparse_ratio: i64,
    sparse_safe: i64,
    encode_depth_max: i64,
    decode_depth_max: i64,
    precision: i64,
    keeps_buffer: bool,
    encode_invalid: Invalid,
    decode_invalid: bool,
}

const FIRST: Settings = Settings {
    sparse_convert: false,
    sparse_ratio: 2,
    sparse_safe: 10,
    encode_depth_max: 1000,
    decode_depth_max: 1000,
    precision: 14,
    keeps_buffer: true,
    encode_invalid: Invalid::Refused,
    decode_invalid: true,
};

/// The deepest nesting that the settings allow in truth: each level takes of the thread's stack.
const DEPTH_MAX: i64 = 2000;

/// The settings of a library, so that what one script sets is not what the next one finds.
#[derive(Clone)]
pub(super) struct Shared(Rc<Cell<Settings>>);

impl Shared {
    pub(super) fn new() -> Self {
        Self(Rc::new(Cell::new(FIRST)))
    }

    /// As at first.
    pub(super) fn reset(&self) {
        self.0.set(FIRST);
    }

    fn get(&self) -> Settings {
        self.0.get()
    }

    fn set(&self, settings: Settings) {
        self.0.set(settings);
    }
}

/// The library.
pub(super) fn table(lua: &Lua, settings: &Shared) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("_NAME", "cjson")?;
    table.raw_set("_VERSION", "2.1.0")?;
    table.raw_set("null", Value::NULL)?;
    table.raw_set("new", lua.create_function(|lua, ()| self::table(lua, &Shared::new()))?)?;
    let of = settings.clone();
    let encode = lua.create_function(move |lua, args: MultiValue| {
        let Some(value) = args.front().filter(|_| args.len() == 1) else {
            return Err(bad_argument(lua, 1, "encode", "expected 1 argument"));
        };
        encode::encode(lua, value, &of.get())
    })?;
    table.raw_set("encode", encode)?;
    let of = settings.clone();
    let decode = lua.create_function(move |lua, args: MultiValue| {
        let Some(value) = args.front().filter(|_| args.len() == 1) else {
            return Err(bad_argument(lua, 1, "decode", "expected 1 argument"));
        };
        match lua.coerce_string(value.clone())? {
            Some(text) => decode::decode(lua, &text.as_bytes(), &of.get()),
            None => Err(bad_type(lua, 1, "decode", "string", Some(value))),
        }
    })?;
    table.raw_set("decode", decode)?;
    add_numbers(lua, &table, settings)?;
    add_switches(lua, &table, settings)?;
    Ok(table)
}

/// An integer option: the argument if there is one, else what is set.
fn integer(
    lua: &Lua,
    args: &MultiValue,
    index: usize,
    name: &str,
    most: i64,
    now: i64,
    least: i64,
) -> mlua::Result<i64> {
    let Some(value) = args.get(index).filter(|value| !value.is_nil()) else { return Ok(now) };
    let Some(number) = lua.coerce_number(value.clone())? else {
        return Err(bad_type(lua, index + 1, name, "number", Some(value)));
    };
    let number = number as i64;
    if (least..=most).contains(&number) {
        return Ok(number);
    }
    Err(bad_argument(lua, index + 1, name, &format!("expected integer between {least} and {most}")))
}

/// A switch: `true`, `false`, `on`, `off`, or `null` where there is a third state.
fn switch(lua: &Lua, args: &MultiValue, name: &str, now: Invalid, has_null: bool) -> mlua::Result<Invalid> {
    match args.front() {
        None | Some(Value::Nil) => Ok(now),
        Some(Value::Boolean(value)) => Ok(if *value { Invalid::Allowed } else { Invalid::Refused }),
        Some(value) => match lua.coerce_string(value.clone())? {
            None => Err(bad_type(lua, 1, name, "string", Some(value))),
            Some(text) => match &*text.as_bytes() {
                b"off" => Ok(Invalid::Refused),
                b"on" => Ok(Invalid::Allowed),
                b"null" if has_null => Ok(Invalid::Null),
                other => {
                    let option = String::from_utf8_lossy(other);
                    Err(bad_argument(lua, 1, name, &format!("invalid option '{option}'")))
                }
            },
        },
    }
}

fn shown(value: Invalid, lua: &Lua) -> mlua::Result<Value> {
    Ok(match value {
        Invalid::Refused => Value::Boolean(false),
        Invalid::Allowed => Value::Boolean(true),
        Invalid::Null => Value::String(lua.create_string("null")?),
    })
}

type Field = fn(&mut Settings) -> &mut i64;

fn add_numbers(lua: &Lua, table: &Table, settings: &Shared) -> mlua::Result<()> {
    let fields: [(&'static str, Field, i64); 3] = [
        ("encode_max_depth", |settings| &mut settings.encode_depth_max, i64::from(i32::MAX)),
        ("decode_max_depth", |settings| &mut settings.decode_depth_max, i64::from(i32::MAX)),
        ("encode_number_precision", |settings| &mut settings.precision, 14),
    ];
    for (name, field, most) in fields {
        let of = settings.clone();
        let function = lua.create_function(move |lua, args: MultiValue| {
            let mut changed = of.get();
            let number = integer(lua, &args, 0, name, most, *field(&mut changed), 1)?;
            *field(&mut changed) = number;
            of.set(changed);
            Ok(number)
        })?;
        table.raw_set(name, function)?;
    }
    Ok(())
}

fn add_switches(lua: &Lua, table: &Table, settings: &Shared) -> mlua::Result<()> {
    let of = settings.clone();
    let sparse = lua.create_function(move |lua, args: MultiValue| {
        let name = "encode_sparse_array";
        let mut changed = of.get();
        let now = if changed.sparse_convert { Invalid::Allowed } else { Invalid::Refused };
        changed.sparse_convert = switch(lua, &args, name, now, false)? == Invalid::Allowed;
        changed.sparse_ratio = integer(lua, &args, 1, name, i64::from(i32::MAX), changed.sparse_ratio, 0)?;
        changed.sparse_safe = integer(lua, &args, 2, name, i64::from(i32::MAX), changed.sparse_safe, 0)?;
        of.set(changed);
        Ok((changed.sparse_convert, changed.sparse_ratio, changed.sparse_safe))
    })?;
    table.raw_set("encode_sparse_array", sparse)?;
    let of = settings.clone();
    let keep = lua.create_function(move |lua, args: MultiValue| {
        let mut changed = of.get();
        let now = if changed.keeps_buffer { Invalid::Allowed } else { Invalid::Refused };
        changed.keeps_buffer = switch(lua, &args, "encode_keep_buffer", now, false)? == Invalid::Allowed;
        of.set(changed);
        Ok(changed.keeps_buffer)
    })?;
    table.raw_set("encode_keep_buffer", keep)?;
    let of = settings.clone();
    let encode = lua.create_function(move |lua, args: MultiValue| {
        let mut changed = of.get();
        changed.encode_invalid = switch(lua, &args, "encode_invalid_numbers", changed.encode_invalid, true)?;
        of.set(changed);
        shown(changed.encode_invalid, lua)
    })?;
    table.raw_set("encode_invalid_numbers", encode)?;
    let of = settings.clone();
    let decode = lua.create_function(move |lua, args: MultiValue| {
        let mut changed = of.get();
        let now = if changed.decode_invalid { Invalid::Allowed } else { Invalid::Refused };
        changed.decode_invalid = switch(lua, &args, "decode_invalid_numbers", now, false)? == Invalid::Allowed;
        of.set(changed);
        Ok(changed.decode_invalid)
    })?;
    table.raw_set("decode_invalid_numbers", decode)
}
