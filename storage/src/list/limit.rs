//! `list-max-listpack-size`: how large a node may be.
//!
//! A negative setting, -1 to -5, limits a node's bytes to 4, 8, 16, 32 or 64 KiB. A positive one limits its elements, and its bytes
//! to 8 KiB all the same, so that a change of one element never moves more than that.

use simurgh_protocol::config::Packing;

/// A node's largest size in bytes when its elements are limited.
const BYTES_MAX: usize = 8192;
/// The limits that -1 to -5 stand for.
const BYTES: [usize; 5] = [4096, 8192, 16384, 32768, 65536];
/// What the head and the backlen of an element are taken to be before it is packed.
const ELEMENT_OVERHEAD: usize = 8;
/// What a listpack has beside its elements.
const LISTPACK_OVERHEAD: usize = 7;

/// The limit of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Bytes.
    pub(super) bytes: usize,
    /// Elements.
    pub(super) count: usize,
    /// Bytes from which on an element is a node of its own.
    pub(super) plain: usize,
}

impl Default for Limit {
    /// The default setting's: 8 KiB.
    fn default() -> Self {
        Self::of(-2)
    }
}

impl Limit {
    /// The limit that the configuration says.
    #[must_use]
    pub fn new(packing: &Packing) -> Self {
        let limit = Self::of(packing.list_size);
        let plain = packing.list_plain.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        Self { plain: plain.unwrap_or(limit.plain), ..limit }
    }

    /// The limit that a setting of `list-max-listpack-size` means.
    #[must_use]
    pub fn of(setting: i32) -> Self {
        match usize::try_from(setting) {
            // A node must have room for one element.
            Ok(count) => Self { bytes: BYTES_MAX, count: count.max(1), plain: BYTES_MAX + 1 },
            Err(_) => {
                let level = (setting.unsigned_abs() as usize - 1).min(BYTES.len() - 1);
                Self { bytes: BYTES[level], count: usize::MAX, plain: BYTES[level] + 1 }
            }
        }
    }

    /// Whether a node of this size is too large.
    pub(super) fn is_exceeded(self, bytes: usize, count: usize) -> bool {
        bytes > self.bytes || count > self.count
    }

    /// Whether an element of this length is a node of its own.
    pub(super) fn is_large(self, length: usize) -> bool {
        length >= self.plain
    }

    /// Whether a packed node of this size has room for one more element of this length.
    pub(super) fn has_room(self, bytes: usize, count: usize, length: usize) -> bool {
        !self.is_large(length) && !self.is_exceeded(bytes.saturating_add(length + ELEMENT_OVERHEAD), count + 1)
    }

    /// Whether two packed nodes may be one.
    pub(super) fn may_merge(self, one: (usize, usize), other: (usize, usize)) -> bool {
        !self.is_exceeded(one.0 + other.0 - LISTPACK_OVERHEAD, one.1 + other.1)
    }

    /// Whether a large list of one node of this size is to be packed. One that shrinks must come down to half, lest it go back and
    /// forth. Where elements are limited, bytes are not.
    pub(super) fn packs(self, (bytes, count): (usize, usize), is_shrinking: bool) -> bool {
        let share = if is_shrinking { 2 } else { 1 };
        if self.count == usize::MAX { bytes <= self.bytes / share } else { count <= self.count / share }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_mean_what_they_mean_to_redis() {
        for (setting, bytes, count) in [
            (-1, 4096, usize::MAX),
            (-2, 8192, usize::MAX),
            (-5, 65536, usize::MAX),
            (-6, 65536, usize::MAX),
            (i32::MIN, 65536, usize::MAX),
            (0, 8192, 1),
            (1, 8192, 1),
            (128, 8192, 128),
            (i32::MAX, 8192, 2_147_483_647),
        ] {
            assert_eq!(Limit::of(setting), Limit { bytes, count, plain: bytes + 1 }, "{setting}");
        }
        assert!(Limit::of(-2).packs((4096, 9999), true) && !Limit::of(-2).packs((4097, 1), true));
        assert!(Limit::of(-2).packs((8192, 9999), false) && !Limit::of(-2).packs((8193, 1), false));
        assert!(Limit::of(100).packs((1 << 20, 50), true) && !Limit::of(100).packs((10, 51), true));
    }
}
