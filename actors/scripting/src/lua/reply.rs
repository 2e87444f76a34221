//! Values of Lua as replies, and replies as values of Lua
//! (<https://redis.io/docs/latest/develop/programmability/lua-api/>, "Data type conversion").

use super::raise::error_table;
use mlua::{Lua, Table, Value};
use simurgh_protocol::Reply;
use simurgh_protocol::number::{parse_f64, parse_i64};
use simurgh_protocol::resp::{Protocol, decode::Value as Answer};

/// How deep a value may nest before its inside is answered with an error.
const DEPTH_MAX: usize = 1000;

/// Writes a script's value. `protocol` is what the script has asked for with `setresp`: in RESP3 booleans are booleans.
pub(super) fn write(value: &Value, reply: &mut Reply, protocol: Protocol) {
    write_nested(value, reply, protocol, 0);
}

fn write_nested(value: &Value, reply: &mut Reply, protocol: Protocol, depth: usize) {
    if depth > DEPTH_MAX {
        return reply.error("ERR reached lua stack limit");
    }
    match value {
        Value::String(text) => reply.bulk(&text.as_bytes()),
        Value::Boolean(value) if protocol == Protocol::Resp3 => reply.boolean(*value),
        Value::Boolean(true) => reply.integer(1),
        Value::Integer(number) => reply.integer(*number),
        Value::Number(number) => reply.integer(truncated(*number)),
        Value::Table(table) => write_table(table, reply, protocol, depth),
        _ => reply.null(),
    }
}

/// A number as C casts it to `long long`.
fn truncated(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) { number as i64 } else { i64::MIN }
}

/// A field of a table, without asking its metatable.
fn field(table: &Table, name: &str) -> Value {
    table.raw_get(name).unwrap_or(Value::Nil)
}

/// A line's text as C sees it: up to the first zero byte.
fn line(text: &mlua::String) -> Vec<u8> {
    text.as_bytes().split(|byte| *byte == 0).next().unwrap_or_default().to_vec()
}

fn write_table(table: &Table, reply: &mut Reply, protocol: Protocol, depth: usize) {
    if let Value::String(text) = field(table, "err") {
        return reply.error_bytes(&line(&text));
    }
    if let Value::String(text) = field(table, "ok") {
        let from = reply.len();
        reply.error_bytes(&line(&text));
        reply.buffer()[from] = b'+';
        return;
    }
    match field(table, "double") {
        Value::Number(number) => return reply.double(number),
        Value::Integer(number) => return reply.double(number as f64),
        _ => {}
    }
    if let Value::Table(map) = field(table, "map") {
        return write_map(&map, reply, protocol, depth);
    }
    if let Value::Table(set) = field(table, "set") {
        return write_set(&set, reply, protocol, depth);
    }
    if let Value::String(digits) = field(table, "big_number") {
        return write_big_number(&line(&digits), reply);
    }
    if let Value::Table(text) = field(table, "verbatim_string")
        && let (Value::String(format), Value::String(text)) = (field(&text, "format"), field(&text, "string"))
    {
        let format = String::from_utf8_lossy(&line(&format)).into_owned();
        return reply.verbatim(&format!("{format:<3.3}"), &text.as_bytes());
    }
    write_array(table, reply, protocol, depth);
}

fn write_array(table: &Table, reply: &mut Reply, protocol: Protocol, depth: usize) {
    let mark = reply.open_array();
    let mut length = 0;
    while let Ok(value) = table.raw_get::<Value>(length + 1) {
        if value.is_nil() {
            break;
        }
        write_nested(&value, reply, protocol, depth + 1);
        length += 1;
    }
    reply.close_array(mark, length);
}

/// The pairs of a table, one by one: values that are held all at once would need a place each.
fn pairs(table: &Table) -> impl Iterator<Item = (Value, Value)> {
    table.pairs().flatten()
}

fn write_map(map: &Table, reply: &mut Reply, protocol: Protocol, depth: usize) {
    reply.map(pairs(map).count());
    for (key, value) in pairs(map) {
        write_nested(&key, reply, protocol, depth + 1);
        write_nested(&value, reply, protocol, depth + 1);
    }
}

fn write_set(set: &Table, reply: &mut Reply, protocol: Protocol, depth: usize) {
    reply.set(pairs(set).count());
    pairs(set).for_each(|(member, _)| write_nested(&member, reply, protocol, depth + 1));
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

/// The value of the commonest replies, read without a detour: bulk strings, integers and statuses. Their bytes are a
/// handler's own, so what they say of their lengths is so.
pub(super) fn read_short(lua: &Lua, bytes: &[u8]) -> Option<mlua::Result<Value>> {
    let (kind, rest) = bytes.split_first()?;
    let end = rest.iter().position(|byte| *byte == b'\r')?;
    let (line, rest) = (&rest[..end], &rest[end..]);
    match kind {
        b':' if rest.len() == 2 => Some(Ok(Value::Number(parse_i64(line)? as f64))),
        b'$' => {
            let length = usize::try_from(parse_i64(line)?).ok()?;
            let is_whole = length.checked_add(4)? == rest.len();
            is_whole.then(|| lua.create_string(&rest[2..2 + length]).map(Value::String))
        }
        b'+' if rest.len() == 2 => {
            Some(lua.create_string(line).and_then(|text| single(lua, "ok", Value::String(text))))
        }
        _ => None,
    }
}

/// A reply as the script sees it.
pub(super) fn read(lua: &Lua, answer: &Answer, protocol: Protocol) -> mlua::Result<Value> {
    let string = |text: &[u8]| lua.create_string(text).map(Value::String);
    Ok(match answer {
        Answer::Bulk(text) => string(text)?,
        Answer::Integer(number) => Value::Number(*number as f64),
        Answer::Null if protocol == Protocol::Resp3 => Value::Nil,
        Answer::Null => Value::Boolean(false),
        Answer::Boolean(value) => Value::Boolean(*value),
        Answer::Simple(text) => single(lua, "ok", string(text)?)?,
        Answer::Error(text) => Value::Table(error_table(lua, text)?),
        Answer::Double(text) => {
            let number = if text == b"nan" { f64::NAN } else { parse_f64(text).unwrap_or(f64::NAN) };
            single(lua, "double", Value::Number(number))?
        }
        Answer::BigNumber(digits) => single(lua, "big_number", string(digits)?)?,
        Answer::Verbatim(format, text) => {
            let inner = lua.create_table()?;
            inner.raw_set("format", string(format)?)?;
            inner.raw_set("string", string(text)?)?;
            single(lua, "verbatim_string", Value::Table(inner))?
        }
        Answer::Array(items) | Answer::Push(items) => {
            let table = lua.create_table_with_capacity(items.len(), 0)?;
            for (at, item) in items.iter().enumerate() {
                table.raw_set(at + 1, read(lua, item, protocol)?)?;
            }
            Value::Table(table)
        }
        Answer::Map(pairs) => {
            let table = lua.create_table_with_capacity(0, pairs.len())?;
            for (key, value) in pairs {
                table.raw_set(read(lua, key, protocol)?, read(lua, value, protocol)?)?;
            }
            single(lua, "map", Value::Table(table))?
        }
        Answer::Set(members) => {
            let table = lua.create_table_with_capacity(0, members.len())?;
            for member in members {
                table.raw_set(read(lua, member, protocol)?, true)?;
            }
            single(lua, "set", Value::Table(table))?
        }
    })
}

fn single(lua: &Lua, name: &str, value: Value) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set(name, value)?;
    Ok(Value::Table(table))
}
