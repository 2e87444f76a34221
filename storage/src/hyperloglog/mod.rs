//! HyperLogLog: strings that estimate how many distinct elements they were given.
//!
//! | file | what |
//! | --- | --- |
//! | `commands` | PFADD PFCOUNT PFMERGE |
//! | `inspect` | PFDEBUG PFSELFTEST |
//! | `sketch` | the string as a whole: header, cached count, the two representations |
//! | `dense` | 16384 registers of six bits |
//! | `sparse` | runs of registers with the same value |
//! | `estimate` | from registers to a number |
//! | `murmur` | the hash of an element |
//!
//! Commands: <https://redis.io/docs/latest/commands/?group=hyperloglog>. A sketch is a string like any other, which clients read
//! with GET, write with SET and move between servers, so its bytes are those of Redis: the same hash, the same registers, the
//! same runs split and merged in the same way. For the same reason its bytes may be anything, and are trusted in nothing.

mod commands;
mod dense;
mod estimate;
mod inspect;
mod murmur;
mod sketch;
mod sparse;
#[cfg(test)]
mod tests;

pub use commands::{pfadd, pfcount, pfmerge};
pub use inspect::{pfdebug, pfselftest};

use simurgh_protocol::CommandError;

/// How many registers there are; the lowest bits of an element's hash choose one.
const REGISTERS: usize = 1 << REGISTER_BITS;
const REGISTER_BITS: u32 = 14;

/// A string that is no sketch.
const NOT_A_SKETCH: CommandError = CommandError::Text("WRONGTYPE Key is not a valid HyperLogLog string value.");
/// A string that begins like a sketch and goes on wrongly.
const CORRUPT: CommandError = CommandError::Text("INVALIDOBJ Corrupted HLL object detected");

/// All registers, a byte each.
type Registers = [u8; REGISTERS];

/// The register that an element falls to, and the value it asks for: the place of the lowest set bit of the hash's rest.
fn place(element: &[u8]) -> (usize, u8) {
    let hash = murmur::hash(element);
    let index = (hash % REGISTERS as u64) as usize;
    let rest = hash >> REGISTER_BITS | 1 << (64 - REGISTER_BITS);
    (index, rest.trailing_zeros() as u8 + 1)
}
