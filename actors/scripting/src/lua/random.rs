//! `math.random` with the generator that Redis uses, so that a script that seeds it draws the same numbers.

use super::Shared;
use super::raise::{bad_argument, bad_type, fault};
use mlua::{Lua, MultiValue, Table};
use std::rc::Rc;

/// The state of `lrand48` before anybody seeds it.
pub(super) const FIRST: u64 = 0x1234_ABCD_330E;
const MASK: u64 = (1 << 48) - 1;

/// The state after `srand48`.
pub(super) fn seeded(seed: u32) -> u64 {
    u64::from(seed) << 16 | 0x330E
}

/// The next state, and a number from 0 on and below 1.
fn next(state: u64) -> (u64, f64) {
    let state = state.wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB) & MASK;
    let number = (state >> 17) % 0x7FFF_FFFF;
    (state, number as f64 / f64::from(0x7FFF_FFFF))
}

/// An argument as a C `int`: what does not fit is cut.
fn int(lua: &Lua, args: &MultiValue, index: usize, function: &str) -> mlua::Result<i32> {
    let value = args.get(index);
    let number = match value {
        Some(value) => lua.coerce_number(value.clone())?,
        None => None,
    };
    let number = number.ok_or_else(|| bad_type(lua, index + 1, function, "number", value))?;
    Ok(number as i64 as i32)
}

/// Adds `random` and `randomseed`.
pub(super) fn add(lua: &Lua, shared: &Rc<Shared>, table: &Table) -> mlua::Result<()> {
    let state = shared.clone();
    let random = lua.create_function(move |lua, args: MultiValue| {
        let (after, drawn) = next(state.random.get());
        state.random.set(after);
        let (low, high, at) = match args.len() {
            0 => return Ok(drawn),
            1 => (1, int(lua, &args, 0, "random")?, 1),
            2 => (int(lua, &args, 0, "random")?, int(lua, &args, 1, "random")?, 2),
            _ => return Err(fault(lua, "wrong number of arguments")),
        };
        if low > high {
            return Err(bad_argument(lua, at, "random", "interval is empty"));
        }
        let (low, high) = (f64::from(low), f64::from(high));
        Ok((drawn * (high - low + 1.0)).floor() + low)
    })?;
    table.raw_set("random", random)?;
    let state = shared.clone();
    let seed = lua.create_function(move |lua, args: MultiValue| {
        state.random.set(seeded(int(lua, &args, 0, "randomseed")? as u32));
        Ok(())
    })?;
    table.raw_set("randomseed", seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_that_redis_draws() {
        assert_eq!(format!("{:.14}", next(FIRST).1), "0.39646477363839");
        let (state, first) = next(seeded(7));
        assert_eq!(
            (format!("{first:.14}"), format!("{:.14}", next(state).1)),
            ("0.26644419658298".into(), "0.68203523041775".into())
        );
    }
}
