//! GETBIT and SETBIT: one bit.

use super::{BAD_OFFSET, checked_offset};
use crate::context::Context;
use crate::string::edit_bytes;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};

/// The byte that holds the bit, and the bit's place in it.
fn place(cx: &Context<'_>, word: &[u8]) -> Result<(usize, u8), CommandError> {
    let offset = checked_offset(cx, parse_i64(word).ok_or(BAD_OFFSET)?)?;
    let byte = usize::try_from(offset / 8).map_err(|_| BAD_OFFSET)?;
    Ok((byte, 0x80 >> (offset % 8)))
}

/// `GETBIT key offset`: the bit; beyond the end bits are 0.
pub fn getbit(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (byte, mask) = place(cx, args.at(2))?;
    let key = cx.first_key(args);
    let (entry, reply) = cx.lookup(&key);
    let is_set = |text: &[u8]| text.get(byte).is_some_and(|byte| byte & mask != 0);
    let bit = match entry {
        Some(entry) => entry.string()?.with_text(is_set),
        None => false,
    };
    reply.integer(i64::from(bit));
    Ok(())
}

/// `SETBIT key offset value`: what the bit was. Writing the bit that is there already is no change.
pub fn setbit(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (byte, mask) = place(cx, args.at(2))?;
    let on = match parse_i64(args.at(3)) {
        Some(0) => false,
        Some(1) => true,
        Some(_) | None => return Err(CommandError::Text("ERR bit is not an integer or out of range")),
    };
    let key = cx.first_key(args);
    let before = edit_bytes(cx, &key, byte + 1, "setbit", |bytes| {
        let before = bytes[byte] & mask != 0;
        if on {
            bytes[byte] |= mask;
        } else {
            bytes[byte] &= !mask;
        }
        (before, before != on)
    })?;
    cx.reply.integer(i64::from(before));
    Ok(())
}
