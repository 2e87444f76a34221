//! A command's name as three numbers, in lower case, so that comparing names is comparing numbers.
//!
//! The build script lays out the lookup table with these very functions, so this file names nothing of the crate.
//! The first and the last eight bytes overlap in a name shorter than sixteen:
//!
//! ```text
//!  INCRBYFLOAT (11 bytes)      head  i n c r b y f l
//!                              tail        r b y f l o a t     length and container make the third number
//! ```
//!
//! Up to sixteen bytes the numbers say everything; for a longer name the caller compares the middle too.

/// A name in lower case; equal numbers are equal names up to [`WHOLE`] bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Folded {
    /// The first eight bytes; all of a shorter name, overlapping halves of it.
    pub head: u64,
    /// The last eight bytes; zero for a shorter name.
    pub tail: u64,
    /// Length, and above it the number of the container under which the name stands (0: none).
    pub tag: u32,
}

/// Names up to this length are given in full by their numbers.
#[allow(dead_code, reason = "the build script needs only the hash")]
pub const WHOLE: usize = 16;

/// Folds a name that stands under a container (0: none).
#[inline]
pub fn fold(container: u8, name: &[u8]) -> Folded {
    let tag = (u32::from(container) << 16) | (name.len().min(0xFFFF) as u32);
    let (head, tail) = match (name.first_chunk::<8>(), name.last_chunk::<8>()) {
        (Some(head), Some(tail)) => (u64::from_le_bytes(*head), u64::from_le_bytes(*tail)),
        _ => (short(name), 0),
    };
    Folded { head: lower(head), tail: lower(tail), tag }
}

/// A name of fewer than eight bytes in one number.
#[inline]
fn short(name: &[u8]) -> u64 {
    match (name.first_chunk::<4>(), name.last_chunk::<4>()) {
        (Some(head), Some(tail)) => u64::from(u32::from_le_bytes(*head)) | (u64::from(u32::from_le_bytes(*tail)) << 32),
        _ => match *name {
            [] => 0,
            [one] => u64::from(one),
            [one, two] => u64::from(one) | (u64::from(two) << 8),
            [one, two, three, ..] => u64::from(one) | (u64::from(two) << 8) | (u64::from(three) << 16),
        },
    }
}

/// Eight bytes with `A` to `Z` in lower case and everything else as it is, at once: bit 7 of each byte of `from_a`
/// says "at least A", of `past_z` "beyond Z"; where they differ the byte is a capital, and 0x20 makes it small.
#[inline]
fn lower(bytes: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let low = bytes & (0x7F * ONES);
    let from_a = low + (0x80 - 0x41) * ONES;
    let past_z = low + (0x80 - 0x5B) * ONES;
    let capital = (from_a ^ past_z) & !bytes & (0x80 * ONES);
    bytes | (capital >> 2)
}

/// Where to begin looking in a table of `size` (a power of two) slots: the top bits of the product, which depend on all
/// bits of the name.
#[inline]
pub fn place(name: Folded, seed: u64, size: usize) -> usize {
    let mixed = (name.head ^ name.tail.rotate_left(29) ^ u64::from(name.tag).rotate_left(13)).wrapping_mul(seed);
    (mixed >> (64 - size.trailing_zeros())) as usize
}
