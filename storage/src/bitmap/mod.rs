//! Bitmaps: strings seen as bits, of which the first is the highest of the first byte.
//!
//! | file | commands |
//! | --- | --- |
//! | `bit` | GETBIT SETBIT |
//! | `count` | BITCOUNT |
//! | `position` | BITPOS |
//! | `combine` | BITOP |
//! | `field` | BITFIELD BITFIELD_RO |
//! | `field_number` | the numbers inside a string and their overflow |
//! | `range` | which bits a start, an end and a unit mean |
//!
//! Commands: <https://redis.io/docs/latest/commands/?group=bitmap>. There is no type of its own: what the string commands
//! write, these read, and the other way round.

mod bit;
mod combine;
mod count;
mod field;
mod field_number;
mod position;
mod range;
#[cfg(test)]
mod tests;

pub use bit::{getbit, setbit};
pub use combine::bitop;
pub use count::bitcount;
pub use field::{bitfield, bitfield_ro};
pub use position::bitpos;

use crate::context::Context;
use simurgh_protocol::CommandError;

const BAD_OFFSET: CommandError = CommandError::Text("ERR bit offset is not an integer or out of range");

/// A bit's offset that lies in a string as long as strings may be.
fn checked_offset(cx: &Context<'_>, offset: i64) -> Result<u64, CommandError> {
    let offset = u64::try_from(offset).map_err(|_| BAD_OFFSET)?;
    if offset / 8 >= cx.settings.bulk_max { Err(BAD_OFFSET) } else { Ok(offset) }
}
