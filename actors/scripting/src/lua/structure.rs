//! `struct`: values to and from the bytes of C structures (the library of Roberto Ierusalimschy, in Redis's version).

use super::raise::{bad_argument, bad_type, fault};
use mlua::{Lua, MultiValue, Table, Value};

/// The largest integer that is packed, in bytes.
const INTEGER_MAX: usize = 32;
/// Alignment that `!` alone asks for.
const ALIGNMENT_MAX: usize = 8;
/// A number in a format, and so a size, stays below this.
const SIZE_MAX: usize = i32::MAX as usize;

/// The library.
pub(super) fn table(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("pack", lua.create_function(|lua, args: MultiValue| pack(lua, &args))?)?;
    table.raw_set("unpack", lua.create_function(|lua, args: MultiValue| unpack(lua, &args))?)?;
    table.raw_set("size", lua.create_function(|lua, args: MultiValue| size(lua, &args))?)?;
    Ok(table)
}

fn string(lua: &Lua, args: &MultiValue, index: usize, function: &str) -> mlua::Result<mlua::String> {
    let value = args.get(index);
    let text = match value {
        Some(value) => lua.coerce_string(value.clone())?,
        None => None,
    };
    text.ok_or_else(|| bad_type(lua, index + 1, function, "string", value))
}

fn number(lua: &Lua, args: &MultiValue, index: usize, function: &str) -> mlua::Result<f64> {
    let value = args.get(index);
    let number = match value {
        Some(value) => lua.coerce_number(value.clone())?,
        None => None,
    };
    number.ok_or_else(|| bad_type(lua, index + 1, function, "number", Some(value.unwrap_or(&Value::Nil))))
}

/// A format being read.
struct Format<'a> {
    lua: &'a Lua,
    function: &'static str,
    text: &'a [u8],
    is_little: bool,
    align: usize,
}

/// One item of a format: its letter, its size, and the padding before it.
struct Item {
    letter: u8,
    size: usize,
    padding: usize,
}

impl<'a> Format<'a> {
    fn new(lua: &'a Lua, function: &'static str, text: &'a [u8]) -> Self {
        Self { lua, function, text, is_little: cfg!(target_endian = "little"), align: 1 }
    }

    fn number(&mut self, default: usize) -> mlua::Result<usize> {
        let digits = self.text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return Ok(default);
        }
        let (read, rest) = self.text.split_at(digits);
        self.text = rest;
        let value = std::str::from_utf8(read).ok().and_then(|text| text.parse().ok());
        match value.filter(|value| *value <= SIZE_MAX) {
            Some(value) => Ok(value),
            None => Err(fault(self.lua, "integral size overflow")),
        }
    }

    /// The next item, at `position` of the structure; options between are obeyed.
    fn next(&mut self, position: usize) -> mlua::Result<Option<Item>> {
        while let Some((&letter, rest)) = self.text.split_first() {
            self.text = rest;
            let size = match letter {
                b'b' | b'B' | b'x' => 1,
                b'h' | b'H' => 2,
                b'f' => 4,
                b'l' | b'L' | b'T' | b'd' => 8,
                b's' => 0,
                b'c' => self.number(1)?,
                b'i' | b'I' => self.integer_size()?,
                _ => {
                    self.option(letter)?;
                    continue;
                }
            };
            return Ok(Some(Item { letter, size, padding: self.padding(letter, size, position) }));
        }
        Ok(None)
    }

    fn integer_size(&mut self) -> mlua::Result<usize> {
        let size = self.number(4)?;
        if size > INTEGER_MAX {
            let text = format!("integral size {size} is larger than limit of {INTEGER_MAX}");
            return Err(fault(self.lua, &text));
        }
        Ok(size)
    }

    fn option(&mut self, letter: u8) -> mlua::Result<()> {
        match letter {
            b' ' => {}
            b'<' => self.is_little = true,
            b'>' => self.is_little = false,
            b'!' => {
                let align = self.number(ALIGNMENT_MAX)?;
                if !align.is_power_of_two() {
                    return Err(fault(self.lua, &format!("alignment {align} is not a power of 2")));
                }
                self.align = align;
            }
            // Nobody asks what an unknown letter would take.
            _ if self.function == "size" => {}
            _ => {
                let text = format!("invalid format option '{}'", char::from(letter));
                return Err(bad_argument(self.lua, 1, self.function, &text));
            }
        }
        Ok(())
    }

    fn padding(&self, letter: u8, size: usize, position: usize) -> usize {
        if size == 0 || letter == b'c' {
            return 0;
        }
        let size = size.min(self.align);
        if size < 2 { 0 } else { (size - (position & (size - 1))) & (size - 1) }
    }

    fn ordered(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        if !self.is_little {
            bytes.reverse();
        }
        bytes
    }
}

fn pack(lua: &Lua, args: &MultiValue) -> mlua::Result<mlua::String> {
    let text = string(lua, args, 0, "pack")?;
    let text = text.as_bytes();
    let mut format = Format::new(lua, "pack", &text);
    let mut out = Vec::new();
    let mut index = 1;
    while let Some(item) = format.next(out.len())? {
        out.resize(out.len() + item.padding, 0);
        match item.letter {
            b'x' => {
                out.push(0);
                continue;
            }
            b'f' => {
                let value = number(lua, args, index, "pack")? as f32;
                out.extend(format.ordered(value.to_le_bytes().to_vec()));
            }
            b'd' => {
                let value = number(lua, args, index, "pack")?;
                out.extend(format.ordered(value.to_le_bytes().to_vec()));
            }
            b'c' | b's' => {
                let value = string(lua, args, index, "pack")?;
                let value = value.as_bytes();
                let size = if item.size == 0 { value.len() } else { item.size };
                if value.len() < size {
                    return Err(bad_argument(lua, index + 2, "pack", "string too short"));
                }
                out.extend_from_slice(&value[..size]);
                if item.letter == b's' {
                    out.push(0);
                }
            }
            _ => {
                let value = number(lua, args, index, "pack")?;
                let word = if value < 0.0 { value as i64 as u64 } else { value as u64 };
                let mut bytes = word.to_le_bytes().to_vec();
                bytes.resize(item.size, 0);
                out.extend(format.ordered(bytes));
            }
        }
        index += 1;
    }
    lua.create_string(out)
}

/// An integer of `bytes`, lowest first.
fn read_integer(bytes: &[u8], is_signed: bool) -> f64 {
    let word = bytes.iter().take(8).rev().fold(0_u64, |word, byte| word << 8 | u64::from(*byte));
    if !is_signed {
        return word as f64;
    }
    let unused = 64 - 8 * bytes.len().min(8) as u32;
    if unused == 64 { 0.0 } else { (((word << unused) as i64) >> unused) as f64 }
}

fn unpack(lua: &Lua, args: &MultiValue) -> mlua::Result<MultiValue> {
    let text = string(lua, args, 0, "unpack")?;
    let data = string(lua, args, 1, "unpack")?;
    let start = if args.get(2).is_none_or(Value::is_nil) { 1.0 } else { number(lua, args, 2, "unpack")? };
    if start == 0.0 {
        return Err(bad_argument(lua, 3, "unpack", "offset must be 1 or greater"));
    }
    let (text, data) = (text.as_bytes(), data.as_bytes());
    let mut format = Format::new(lua, "unpack", &text);
    // What is below wraps round in C, far behind the end.
    let mut at = if start < 0.0 { usize::MAX } else { start as usize - 1 };
    let mut values: Vec<Value> = Vec::new();
    let short = || bad_argument(lua, 2, "unpack", "data string too short");
    while let Some(mut item) = format.next(at)? {
        at = at.saturating_add(item.padding);
        if item.letter == b'c' && item.size == 0 {
            let Some(size) = values.pop().and_then(|value| value.as_f64()) else {
                return Err(fault(lua, "format 'c0' needs a previous size"));
            };
            item.size = size as usize;
        }
        let end = at.checked_add(item.size).filter(|end| *end <= data.len()).ok_or_else(short)?;
        let bytes = &data[at..end];
        at = end;
        let value = match item.letter {
            b'x' => continue,
            b'c' => Value::String(lua.create_string(bytes)?),
            b's' => {
                let Some(length) = data[at..].iter().position(|byte| *byte == 0) else {
                    return Err(fault(lua, "unfinished string in data"));
                };
                at += length + 1;
                Value::String(lua.create_string(&data[at - length - 1..at - 1])?)
            }
            letter => {
                let bytes = format.ordered(bytes.to_vec());
                let number = match (letter, bytes.as_slice()) {
                    (b'f', &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
                    (b'd', _) => f64::from_bits(bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))),
                    _ => read_integer(&bytes, letter.is_ascii_lowercase()),
                };
                Value::Number(number)
            }
        };
        values.push(value);
    }
    values.push(Value::Number((at + 1) as f64));
    Ok(values.into_iter().collect())
}

fn size(lua: &Lua, args: &MultiValue) -> mlua::Result<f64> {
    let text = string(lua, args, 0, "size")?;
    let text = text.as_bytes();
    let mut format = Format::new(lua, "size", &text);
    let mut position = 0_usize;
    while let Some(item) = format.next(position)? {
        match item.letter {
            b's' => return Err(bad_argument(lua, 1, "size", "option 's' has no fixed size")),
            b'c' if item.size == 0 => return Err(bad_argument(lua, 1, "size", "option 'c0' has no fixed size")),
            _ => {}
        }
        position = position.saturating_add(item.padding).saturating_add(item.size);
    }
    Ok(position as f64)
}
