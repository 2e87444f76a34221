//! `cmsgpack`: MessagePack as lua-cmsgpack 0.4 reads and writes it (<https://github.com/msgpack/msgpack/blob/master/spec.md>).

use super::raise::{Raised, bad_argument, bad_type, fault};
use mlua::{Error, Lua, MultiValue, Table, Value};

/// Tables nested deeper are written as nil.
const ENCODE_DEPTH_MAX: usize = 16;
/// Input nested deeper is refused.
const DECODE_DEPTH_MAX: usize = 1000;

/// The library.
pub(super) fn table(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("_NAME", "cmsgpack")?;
    table.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    table.raw_set("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo")?;
    table.raw_set("_DESCRIPTION", "MessagePack C implementation for Lua")?;
    let pack = lua.create_function(|lua, args: MultiValue| {
        if args.is_empty() {
            return Err(bad_argument(lua, 0, "pack", "MessagePack pack needs input."));
        }
        let mut out = Vec::new();
        for value in &args {
            write(value, 0, &mut out)?;
        }
        lua.create_string(out)
    })?;
    table.raw_set("pack", pack)?;
    let unpack = lua.create_function(|lua, args: MultiValue| read(lua, &args, "unpack", None, 0))?;
    table.raw_set("unpack", unpack)?;
    let one = lua.create_function(|lua, args: MultiValue| {
        let offset = integer(lua, &args, 1, "unpack_one", Some(0))?;
        read(lua, &args, "unpack_one", Some(1), offset)
    })?;
    table.raw_set("unpack_one", one)?;
    let limited = lua.create_function(|lua, args: MultiValue| {
        let limit = integer(lua, &args, 1, "unpack_limit", None)?;
        let offset = integer(lua, &args, 2, "unpack_limit", Some(0))?;
        read(lua, &args, "unpack_limit", Some(limit), offset)
    })?;
    table.raw_set("unpack_limit", limited)?;
    Ok(table)
}

fn integer(lua: &Lua, args: &MultiValue, index: usize, function: &str, default: Option<i64>) -> mlua::Result<i64> {
    let value = args.get(index);
    match (value, default) {
        (None | Some(Value::Nil), Some(default)) => Ok(default),
        (Some(value), _) => match lua.coerce_number(value.clone())? {
            Some(number) => Ok(i64::from(number as i64 as i32)),
            None => Err(bad_type(lua, index + 1, function, "number", Some(value))),
        },
        (None, None) => Err(bad_type(lua, index + 1, function, "number", None)),
    }
}

/// Appends `value` behind the first byte `kind` in as many bytes as its type has.
macro_rules! tagged {
    ($out:expr, $kind:expr, $value:expr) => {{
        $out.push($kind);
        $out.extend_from_slice(&$value.to_be_bytes());
    }};
}

fn write(value: &Value, depth: usize, out: &mut Vec<u8>) -> mlua::Result<()> {
    match value {
        Value::String(text) => write_string(&text.as_bytes(), out),
        Value::Boolean(value) => out.push(if *value { 0xc3 } else { 0xc2 }),
        Value::Integer(number) => write_integer(*number, out),
        Value::Number(number) => write_number(*number, out),
        Value::Table(table) if depth < ENCODE_DEPTH_MAX => write_table(table, depth, out)?,
        _ => out.push(0xc0),
    }
    Ok(())
}

fn write_string(text: &[u8], out: &mut Vec<u8>) {
    match text.len() {
        length @ 0..32 => out.push(0xa0 | length as u8),
        length @ 32..0x100 => out.extend_from_slice(&[0xd9, length as u8]),
        length @ 0x100..0x1_0000 => tagged!(out, 0xda, (length as u16)),
        length => tagged!(out, 0xdb, (length as u32)),
    }
    out.extend_from_slice(text);
}

fn write_integer(number: i64, out: &mut Vec<u8>) {
    match number {
        0..0x80 => out.push(number as u8),
        0x80..0x100 => out.extend_from_slice(&[0xcc, number as u8]),
        0x100..0x1_0000 => tagged!(out, 0xcd, (number as u16)),
        0x1_0000..0x1_0000_0000 => tagged!(out, 0xce, (number as u32)),
        0x1_0000_0000.. => tagged!(out, 0xcf, (number as u64)),
        -32..0 => out.push(number as i8 as u8),
        -128..-32 => out.extend_from_slice(&[0xd0, number as i8 as u8]),
        -0x8000..-128 => tagged!(out, 0xd1, (number as i16)),
        -0x8000_0000..-0x8000 => tagged!(out, 0xd2, (number as i32)),
        _ => tagged!(out, 0xd3, number),
    }
}

fn write_number(number: f64, out: &mut Vec<u8>) {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if number.fract() == 0.0 && (-LIMIT..LIMIT).contains(&number) {
        return write_integer(number as i64, out);
    }
    let short = number as f32;
    if f64::from(short) == number { tagged!(out, 0xca, short) } else { tagged!(out, 0xcb, number) }
}

/// Whether all keys are whole numbers from 1 on without a gap; an empty table is an array.
fn array_length(table: &Table) -> mlua::Result<Option<usize>> {
    let (mut highest, mut count) = (0, 0);
    for pair in table.pairs::<Value, Value>() {
        match pair?.0 {
            Value::Integer(key) if key > 0 => {
                highest = highest.max(key as usize);
                count += 1;
            }
            _ => return Ok(None),
        }
    }
    Ok((highest == count).then_some(count))
}

fn write_table(table: &Table, depth: usize, out: &mut Vec<u8>) -> mlua::Result<()> {
    if let Some(length) = array_length(table)? {
        match length {
            0..16 => out.push(0x90 | length as u8),
            16..0x1_0000 => tagged!(out, 0xdc, (length as u16)),
            _ => tagged!(out, 0xdd, (length as u32)),
        }
        for index in 1..=length {
            write(&table.raw_get(index)?, depth + 1, out)?;
        }
        return Ok(());
    }
    // Counted first: values that are held all at once would need a place each.
    match table.pairs::<Value, Value>().count() {
        length @ 0..16 => out.push(0x80 | length as u8),
        length @ 16..0x1_0000 => tagged!(out, 0xde, (length as u16)),
        length => tagged!(out, 0xdf, (length as u32)),
    }
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair?;
        write(&key, depth + 1, out)?;
        write(&value, depth + 1, out)?;
    }
    Ok(())
}

/// Reads values: all there are, or with a `limit` so many, and then the offset behind them comes first.
fn read(lua: &Lua, args: &MultiValue, function: &str, limit: Option<i64>, offset: i64) -> mlua::Result<MultiValue> {
    let value = args.front();
    let text = match value {
        Some(value) => lua.coerce_string(value.clone())?,
        None => None,
    };
    let text = text.ok_or_else(|| bad_type(lua, 1, function, "string", value))?;
    let bytes = text.as_bytes();
    if offset < 0 || limit.is_some_and(|limit| limit < 0) {
        let text = format!("Invalid request to unpack with offset of {offset} and limit of {}.", bytes.len());
        return Err(fault(lua, &text));
    }
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    if start > bytes.len() {
        return Err(fault(lua, &format!("Start offset {offset} greater than input length {}.", bytes.len())));
    }
    let most =
        limit.filter(|limit| *limit > 0).map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let mut reader = Reader { lua, bytes: &bytes, at: start };
    let mut values = Vec::new();
    while reader.at < bytes.len() && values.len() < most {
        values.push(reader.value(0)?);
    }
    if limit.is_some_and(|limit| limit > 0) {
        let next = if reader.at == bytes.len() { -1 } else { i64::try_from(reader.at).unwrap_or(-1) };
        values.insert(0, Value::Number(next as f64));
    }
    Ok(values.into_iter().collect())
}

struct Reader<'a> {
    lua: &'a Lua,
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take(&mut self, length: usize) -> mlua::Result<&[u8]> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len());
        let Some(end) = end else { return Err(fault(self.lua, "Missing bytes in input.")) };
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn unsigned(&mut self, length: usize) -> mlua::Result<u64> {
        Ok(self.take(length)?.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn signed(&mut self, length: usize) -> mlua::Result<i64> {
        let unused = 64 - 8 * length as u32;
        Ok(((self.unsigned(length)? << unused) as i64) >> unused)
    }

    fn length(&mut self, bytes: usize) -> mlua::Result<usize> {
        Ok(usize::try_from(self.unsigned(bytes)?).unwrap_or(usize::MAX))
    }

    fn text(&mut self, length: usize) -> mlua::Result<Value> {
        let lua = self.lua;
        let text = self.take(length)?;
        lua.create_string(text).map(Value::String)
    }

    fn value(&mut self, depth: usize) -> mlua::Result<Value> {
        let kind = self.take(1)?[0];
        let number = match kind {
            0x00..=0x7f => f64::from(kind),
            0xe0..=0xff => f64::from(kind as i8),
            // Redis takes the largest ones for negative.
            0xcc..=0xcf => self.unsigned(1 << (kind - 0xcc))? as i64 as f64,
            0xd0..=0xd3 => self.signed(1 << (kind - 0xd0))? as f64,
            0xca => f64::from(f32::from_bits(self.unsigned(4)? as u32)),
            0xcb => f64::from_bits(self.unsigned(8)?),
            _ => return self.other(kind, depth),
        };
        Ok(Value::Number(number))
    }

    fn other(&mut self, kind: u8, depth: usize) -> mlua::Result<Value> {
        match kind {
            0xc0 => Ok(Value::Nil),
            0xc2 | 0xc3 => Ok(Value::Boolean(kind == 0xc3)),
            0xa0..=0xbf => self.text(usize::from(kind & 0x1f)),
            0xd9..=0xdb => {
                let length = self.length(1 << (kind - 0xd9))?;
                self.text(length)
            }
            0x90..=0x9f => self.array(usize::from(kind & 0xf), depth),
            0xdc | 0xdd => {
                let length = self.length(2 << (kind - 0xdc))?;
                self.array(length, depth)
            }
            0x80..=0x8f => self.map(usize::from(kind & 0xf), depth),
            0xde | 0xdf => {
                let length = self.length(2 << (kind - 0xde))?;
                self.map(length, depth)
            }
            _ => Err(fault(self.lua, "Bad data format in input.")),
        }
    }

    fn check(&self, depth: usize, what: &str) -> mlua::Result<()> {
        if depth < DECODE_DEPTH_MAX {
            return Ok(());
        }
        Err(fault(self.lua, &format!("stack overflow (in function mp_decode_to_lua_{what})")))
    }

    fn array(&mut self, length: usize, depth: usize) -> mlua::Result<Value> {
        self.check(depth, "array")?;
        let table = self.lua.create_table()?;
        for index in 1..=length {
            table.raw_set(index, self.value(depth + 1)?)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, length: usize, depth: usize) -> mlua::Result<Value> {
        self.check(depth, "hash")?;
        let table = self.lua.create_table()?;
        for _ in 0..length {
            let key = self.value(depth + 1)?;
            let value = self.value(depth + 1)?;
            if key.is_nil() {
                return Err(Error::external(Raised::Text(b"table index is nil".to_vec())));
            }
            table.raw_set(key, value)?;
        }
        Ok(Value::Table(table))
    }
}
