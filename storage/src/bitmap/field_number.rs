//! Integers of any width inside a string, and what happens when one does not fit.

use simurgh_protocol::number::parse_i64;

/// The longest that a number may reach into: 64 bits that begin in the middle of a byte.
const WINDOW: usize = 9;

/// `u8`, `i16`...: unsigned up to 63 bits, signed up to 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldType {
    /// Whether negative numbers fit.
    pub signed: bool,
    /// The width in bits, at least 1.
    pub bits: u32,
}

/// What becomes of a number that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// Only its lowest bits are kept.
    Wrap,
    /// It becomes the nearest that fits.
    Saturate,
    /// Nothing is written.
    Fail,
}

/// Which way a number leaves the range.
enum Beyond {
    Above,
    Below,
}

impl FieldType {
    /// The type that a word names.
    pub fn parse(word: &[u8]) -> Option<Self> {
        let (sign, width) = word.split_first()?;
        let signed = match sign {
            b'i' => true,
            b'u' => false,
            _ => return None,
        };
        let bits = u32::try_from(parse_i64(width)?).ok()?;
        (1..=if signed { 64 } else { 63 }).contains(&bits).then_some(Self { signed, bits })
    }

    /// The smallest and the largest number.
    fn limits(self) -> (i64, i64) {
        let largest = (u64::MAX >> (64 - self.bits)) as i64;
        if self.signed {
            let largest = i64::MAX >> (64 - self.bits);
            (-largest - 1, largest)
        } else {
            (0, largest)
        }
    }

    /// The number whose lowest bits are those of `raw`.
    fn wrap(self, raw: u64) -> i64 {
        let shift = 64 - self.bits;
        let top = raw << shift;
        if self.signed { (top as i64) >> shift } else { (top >> shift) as i64 }
    }

    /// The number to write for `value + increment`; `None` if that does not fit and must not be written.
    pub fn fit(self, value: i64, increment: i64, overflow: Overflow) -> Option<i64> {
        let beyond =
            if self.signed { self.beyond_signed(value, increment) } else { self.beyond_unsigned(value, increment) };
        let Some(beyond) = beyond else { return Some(value.wrapping_add(increment)) };
        let (least, largest) = self.limits();
        match (overflow, beyond) {
            (Overflow::Fail, _) => None,
            (Overflow::Wrap, _) => Some(self.wrap(value.wrapping_add(increment) as u64)),
            (Overflow::Saturate, Beyond::Above) => Some(largest),
            (Overflow::Saturate, Beyond::Below) => Some(least),
        }
    }

    /// A negative value to set counts as a large one, as in Redis.
    fn beyond_unsigned(self, value: i64, increment: i64) -> Option<Beyond> {
        let (_, largest) = self.limits();
        let sum = i128::from(value as u64) + i128::from(increment);
        if value as u64 > largest as u64 || sum > i128::from(largest) {
            Some(Beyond::Above)
        } else {
            (sum < 0).then_some(Beyond::Below)
        }
    }

    /// The distances to the limits wrap around: a value to set that is far below counts as above, as in Redis.
    fn beyond_signed(self, value: i64, increment: i64) -> Option<Beyond> {
        let (least, largest) = self.limits();
        let (up, down) = (largest.wrapping_sub(value), least.wrapping_sub(value));
        if value > largest || (increment > up && (self.bits < 64 || (value >= 0 && increment > 0))) {
            Some(Beyond::Above)
        } else if value < least || (increment < down && (self.bits < 64 || (value < 0 && increment < 0))) {
            Some(Beyond::Below)
        } else {
            None
        }
    }

    /// Reads the number that begins at bit `offset`; beyond the end of the string there are zeros.
    pub fn read(self, bytes: &[u8], offset: u64) -> i64 {
        let first = usize::try_from(offset / 8).unwrap_or(usize::MAX).min(bytes.len());
        let present = &bytes[first..bytes.len().min(first.saturating_add(WINDOW))];
        let mut window = [0; 16];
        window[..present.len()].copy_from_slice(present);
        self.wrap((u128::from_be_bytes(window) >> self.shift(offset)) as u64)
    }

    /// Writes the number at bit `offset`, up to which and beyond the string must be long enough.
    pub fn write(self, bytes: &mut [u8], offset: u64, number: i64) {
        let first = usize::try_from(offset / 8).unwrap_or(usize::MAX);
        let length = self.end(offset) - first;
        let target = &mut bytes[first..first + length];
        let mut window = [0; 16];
        window[..length].copy_from_slice(target);
        let (shift, mask) = (self.shift(offset), u128::from(u64::MAX >> (64 - self.bits)));
        let number = u128::from(number as u64) & mask;
        let changed = u128::from_be_bytes(window) & !(mask << shift) | number << shift;
        target.copy_from_slice(&changed.to_be_bytes()[..length]);
    }

    /// How far a number at bit `offset` stands from the lowest bit of a window that begins with the number's first byte.
    fn shift(self, offset: u64) -> u32 {
        u128::BITS - (offset % 8) as u32 - self.bits
    }

    /// The length of the shortest string that holds a number at bit `offset`.
    pub fn end(self, offset: u64) -> usize {
        usize::try_from((offset + u64::from(self.bits)).div_ceil(8)).unwrap_or(usize::MAX)
    }
}
