//! `bit`: operations on 32-bit words (the interface of LuaBitOp, <https://bitop.luajit.org/api.html>).

use super::raise::bad_type;
use mlua::{Lua, MultiValue, Table};

/// An argument as a word: rounded to an integer, of which the low 32 bits count.
fn word(lua: &Lua, args: &MultiValue, index: usize, function: &str) -> mlua::Result<u32> {
    let value = args.get(index);
    let number = match value {
        Some(value) => lua.coerce_number(value.clone())?,
        None => None,
    };
    let number = number.ok_or_else(|| bad_type(lua, index + 1, function, "number", value))?;
    // Adding 2^52 + 2^51 leaves the integer's low bits in the low bits of the sum.
    Ok((number + 6_755_399_441_055_744.0).to_bits() as u32)
}

fn signed(word: u32) -> f64 {
    f64::from(word as i32)
}

type Map = fn(u32) -> u32;
type Fold = fn(u32, u32) -> u32;
type Shift = fn(u32, u32) -> u32;

const FOLDS: [(&str, Fold); 3] = [("band", |a, b| a & b), ("bor", |a, b| a | b), ("bxor", |a, b| a ^ b)];
const SHIFTS: [(&str, Shift); 5] = [
    ("lshift", |word, by| word << by),
    ("rshift", |word, by| word >> by),
    ("arshift", |word, by| ((word as i32) >> by) as u32),
    ("rol", u32::rotate_left),
    ("ror", u32::rotate_right),
];
const MAPS: [(&str, Map); 3] = [("tobit", |word| word), ("bnot", |word| !word), ("bswap", u32::swap_bytes)];

/// The library.
pub(super) fn table(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    for (name, map) in MAPS {
        table.raw_set(
            name,
            lua.create_function(move |lua, args: MultiValue| Ok(signed(map(word(lua, &args, 0, name)?))))?,
        )?;
    }
    for (name, fold) in FOLDS {
        let function = lua.create_function(move |lua, args: MultiValue| {
            let mut result = word(lua, &args, 0, name)?;
            for index in 1..args.len() {
                result = fold(result, word(lua, &args, index, name)?);
            }
            Ok(signed(result))
        })?;
        table.raw_set(name, function)?;
    }
    for (name, shift) in SHIFTS {
        let function = lua.create_function(move |lua, args: MultiValue| {
            let (left, by) = (word(lua, &args, 0, name)?, word(lua, &args, 1, name)?);
            Ok(signed(shift(left, by & 31)))
        })?;
        table.raw_set(name, function)?;
    }
    let tohex = lua.create_function(|lua, args: MultiValue| {
        let number = word(lua, &args, 0, "tohex")?;
        let digits = if args.len() > 1 { word(lua, &args, 1, "tohex")? as i32 } else { 8 };
        let text = if digits < 0 { format!("{number:08X}") } else { format!("{number:08x}") };
        Ok(text[8 - digits.unsigned_abs().min(8) as usize..].to_owned())
    })?;
    table.raw_set("tohex", tohex)?;
    Ok(table)
}
