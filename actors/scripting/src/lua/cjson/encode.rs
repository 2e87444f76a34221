//! Values to JSON: what is an array, what is an object, and which tables are neither, is decided as lua-cjson does it.

use super::super::number::format_g;
use super::super::raise::{fault, type_name};
use super::{DEPTH_MAX, Invalid, Settings};
use mlua::{Lua, Table, Value};

/// A value as JSON text.
pub(super) fn encode(lua: &Lua, value: &Value, settings: &Settings) -> mlua::Result<mlua::String> {
    let mut writer = Writer { lua, settings, out: Vec::new() };
    writer.value(value, 0)?;
    lua.create_string(writer.out)
}

struct Writer<'a> {
    lua: &'a Lua,
    settings: &'a Settings,
    out: Vec<u8>,
}

/// What a table is written as.
enum Shape {
    Array(i64),
    Object,
}

impl Writer<'_> {
    fn refuse<T>(&self, value: &Value, reason: &str) -> mlua::Result<T> {
        Err(fault(self.lua, &format!("Cannot serialise {}: {reason}", type_name(value))))
    }

    fn value(&mut self, value: &Value, depth: i64) -> mlua::Result<()> {
        match value {
            Value::String(text) => self.string(&text.as_bytes()),
            Value::Integer(number) => self.number(*number as f64)?,
            Value::Number(number) => self.number(*number)?,
            Value::Boolean(true) => self.out.extend_from_slice(b"true"),
            Value::Boolean(false) => self.out.extend_from_slice(b"false"),
            Value::Nil => self.out.extend_from_slice(b"null"),
            Value::LightUserData(pointer) if pointer.0.is_null() => self.out.extend_from_slice(b"null"),
            Value::Table(table) => self.table(value, table, depth + 1)?,
            _ => return self.refuse(value, "type not supported"),
        }
        Ok(())
    }

    fn number(&mut self, number: f64) -> mlua::Result<()> {
        if !number.is_finite() {
            match self.settings.encode_invalid {
                Invalid::Refused => return self.refuse(&Value::Number(number), "must not be NaN or Inf"),
                Invalid::Null => {
                    self.out.extend_from_slice(b"null");
                    return Ok(());
                }
                Invalid::Allowed if number.is_nan() => {
                    self.out.extend_from_slice(b"nan");
                    return Ok(());
                }
                Invalid::Allowed => {}
            }
        }
        self.out.extend_from_slice(format_g(number, self.settings.precision as usize).as_bytes());
        Ok(())
    }

    fn number_key(&mut self, number: f64) -> mlua::Result<()> {
        self.out.push(b'"');
        self.number(number)?;
        self.out.push(b'"');
        Ok(())
    }

    fn string(&mut self, text: &[u8]) {
        self.out.reserve(text.len() + 2);
        self.out.push(b'"');
        for byte in text {
            match byte {
                b'"' | b'\\' | b'/' => self.out.extend_from_slice(&[b'\\', *byte]),
                8 => self.out.extend_from_slice(b"\\b"),
                9 => self.out.extend_from_slice(b"\\t"),
                10 => self.out.extend_from_slice(b"\\n"),
                12 => self.out.extend_from_slice(b"\\f"),
                13 => self.out.extend_from_slice(b"\\r"),
                0..32 | 127 => self.out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
                _ => self.out.push(*byte),
            }
        }
        self.out.push(b'"');
    }

    fn table(&mut self, value: &Value, table: &Table, depth: i64) -> mlua::Result<()> {
        if depth > self.settings.encode_depth_max.min(DEPTH_MAX) {
            return Err(fault(self.lua, &format!("Cannot serialise, excessive nesting ({depth})")));
        }
        match self.shape(value, table)? {
            Shape::Array(length) => self.array(table, length, depth),
            Shape::Object => self.object(table, depth),
        }
    }

    /// An array has only whole numbers above 0 as keys, and not too few of them for the highest.
    fn shape(&self, value: &Value, table: &Table) -> mlua::Result<Shape> {
        let (mut highest, mut items) = (0_i64, 0_i64);
        for pair in table.pairs::<Value, Value>() {
            match pair?.0 {
                // What is no C int is no index.
                Value::Integer(key) if key >= 1 && key <= i64::from(i32::MAX) => {
                    highest = highest.max(key);
                    items += 1;
                }
                _ => return Ok(Shape::Object),
            }
        }
        let Settings { sparse_convert, sparse_ratio, sparse_safe, .. } = *self.settings;
        if sparse_ratio > 0 && highest > items.saturating_mul(sparse_ratio) && highest > sparse_safe {
            if !sparse_convert {
                return self.refuse(value, "excessively sparse array");
            }
            return Ok(Shape::Object);
        }
        Ok(if highest > 0 { Shape::Array(highest) } else { Shape::Object })
    }

    fn array(&mut self, table: &Table, length: i64, depth: i64) -> mlua::Result<()> {
        self.out.push(b'[');
        for index in 1..=length {
            if index > 1 {
                self.out.push(b',');
            }
            self.value(&table.raw_get::<Value>(index)?, depth)?;
        }
        self.out.push(b']');
        Ok(())
    }

    fn object(&mut self, table: &Table, depth: i64) -> mlua::Result<()> {
        self.out.push(b'{');
        for (at, pair) in table.pairs::<Value, Value>().enumerate() {
            let (key, value) = pair?;
            if at > 0 {
                self.out.push(b',');
            }
            match &key {
                Value::String(text) => self.string(&text.as_bytes()),
                Value::Integer(number) => self.number_key(*number as f64)?,
                Value::Number(number) => self.number_key(*number)?,
                _ => return self.refuse(&key, "table key must be a number or string"),
            }
            self.out.push(b':');
            self.value(&value, depth)?;
        }
        self.out.push(b'}');
        Ok(())
    }
}
