//! The 80-bit extended float of x86, in software: what `INCRBYFLOAT` computes with, so that its answers are Redis's to the
//! last digit, on every processor.
//!
//! ```text
//!  value = mantissa * 2^exponent        mantissa: 64 bits, the top one set unless the number is zero or subnormal
//! ```
//!
//! Reading, adding and writing each round once, to nearest and to even in a tie, as the hardware and the C library do. What
//! fits in 128 bits (numbers of up to 19 digits and 17 decimals do) takes no allocation but the text that is written;
//! the rest goes through [`Natural`].

mod natural;
mod read;

use natural::Natural;

/// Exponent of the smallest subnormal number, which is 2 to this power.
const EXPONENT_MIN: i32 = -16445;
/// Exponent of the mantissa in the largest finite number.
const EXPONENT_MAX: i32 = 16383 - 63;
/// Digits that are written after the point.
const DECIMALS: u32 = 17;
const SCALE: u128 = 10_u128.pow(DECIMALS);

/// A number of Redis's `long double`; never "not a number".
#[derive(Clone, Copy, Debug)]
pub struct LongDouble {
    negative: bool,
    size: Size,
}

/// A number without its sign, ordered by value: a larger exponent with the mantissa's top bit set is a larger number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Size {
    Finite { exponent: i32, mantissa: u64 },
    Infinite,
}

const ZERO: Size = Size::Finite { exponent: EXPONENT_MIN, mantissa: 0 };

impl LongDouble {
    /// Zero.
    pub const ZERO: Self = Self { negative: false, size: ZERO };
    /// The largest finite number.
    pub const LARGEST: Self =
        Self { negative: false, size: Size::Finite { exponent: EXPONENT_MAX, mantissa: u64::MAX } };

    /// Reads a number as Redis does: decimal or hexadecimal with optional exponent, or `inf`; no blanks, not `nan`. A number
    /// too large, or too close to zero to differ from it, is refused.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        read::read(text)
    }

    /// Whether it is neither infinity.
    #[must_use]
    pub fn is_finite(self) -> bool {
        self.size != Size::Infinite
    }

    /// The nearest double; `None` if the number is finite but too large for one, or would become zero.
    #[must_use]
    pub fn to_f64(self) -> Option<f64> {
        let size = match self.size {
            Size::Infinite => f64::INFINITY,
            Size::Finite { mantissa: 0, .. } => 0.0,
            Size::Finite { exponent, mantissa } => {
                // In two steps, for 2^exponent alone may lie outside what a double holds.
                let half = exponent / 2;
                let size = mantissa as f64 * 2_f64.powi(half) * 2_f64.powi(exponent - half);
                if size == 0.0 || size.is_infinite() {
                    return None;
                }
                size
            }
        };
        Some(if self.negative { -size } else { size })
    }

    /// The sum, rounded once. `None` for infinities that cancel each other.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let (large, small) = if self.size >= other.size { (self, other) } else { (other, self) };
        match (large.size, small.size) {
            (Size::Infinite, Size::Infinite) if large.negative != small.negative => None,
            (Size::Infinite, _) => Some(large),
            (
                Size::Finite { exponent, mantissa },
                Size::Finite { exponent: small_exponent, mantissa: small_mantissa },
            ) => {
                // 62 bits below the mantissa for what is shifted out of it, one above for the carry. What falls out even
                // there is remembered in the lowest bit: it can only break a tie.
                let distance = exponent.abs_diff(small_exponent);
                let wide = u128::from(small_mantissa) << 62;
                let shifted = wide.checked_shr(distance).unwrap_or(0);
                let lost = distance > 62 && shifted.checked_shl(distance) != Some(wide) && wide != 0;
                let (large_wide, small_wide) = (u128::from(mantissa) << 62, shifted | u128::from(lost));
                let sum =
                    if large.negative == small.negative { large_wide + small_wide } else { large_wide - small_wide };
                Some(LongDouble { negative: large.negative && sum != 0, size: round(sum, exponent - 62, false) })
            }
            (Size::Finite { .. }, Size::Infinite) => Some(small),
        }
    }

    /// As Redis answers and stores it: up to 17 decimals, no exponent, no needless zeros, no negative zero.
    #[must_use]
    pub fn format(self) -> String {
        let Size::Finite { exponent, mantissa } = self.size else {
            return if self.negative { "-inf".into() } else { "inf".into() };
        };
        let mut text = match scaled(mantissa, exponent) {
            Some(scaled) => {
                let (whole, decimals) = (scaled / SCALE, scaled % SCALE);
                let text = format!("{whole}.{decimals:017}");
                text.trim_end_matches('0').trim_end_matches('.').to_string()
            }
            None => Natural::from(mantissa).shifted_left(exponent.unsigned_abs()).to_decimal(),
        };
        if self.negative && text != "0" {
            text.insert(0, '-');
        }
        text
    }
}

impl std::ops::Neg for LongDouble {
    type Output = Self;

    fn neg(self) -> Self {
        Self { negative: !self.negative, ..self }
    }
}

impl PartialEq for LongDouble {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for LongDouble {}

impl PartialOrd for LongDouble {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for LongDouble {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        match (self.negative && self.size != ZERO, other.negative && other.size != ZERO) {
            (false, false) => self.size.cmp(&other.size),
            (true, true) => other.size.cmp(&self.size),
            (true, false) => std::cmp::Ordering::Less,
            (false, true) => std::cmp::Ordering::Greater,
        }
    }
}

/// The number times 10^17, rounded; `None` if that is an integer too large for 128 bits.
fn scaled(mantissa: u64, exponent: i32) -> Option<u128> {
    let wide = u128::from(mantissa) * SCALE;
    match u32::try_from(exponent) {
        Ok(0) => Some(wide),
        Ok(up) if up <= wide.leading_zeros() => Some(wide << up),
        Ok(_) => None,
        Err(_) => Some(shift_right_rounding(wide, exponent.unsigned_abs(), false)),
    }
}

/// `value / 2^count`, to nearest and to even in a tie; `sticky`: the true value is a little above `value`.
fn shift_right_rounding(value: u128, count: u32, sticky: bool) -> u128 {
    let Some(kept) = value.checked_shr(count) else {
        return 0; // Only values below 2^127 come here, and half of 2^128 is more than any of them.
    };
    if count == 0 {
        return kept;
    }
    let rest = value & ((1 << count) - 1);
    let half = 1_u128 << (count - 1);
    let up = rest > half || (rest == half && (sticky || kept & 1 == 1));
    kept + u128::from(up)
}

/// `value * 2^exponent` as the nearest number there is; `sticky`: the true value is a little above.
fn round(value: u128, exponent: i32, sticky: bool) -> Size {
    if value == 0 {
        return ZERO;
    }
    let excess = 64 - i32::try_from(value.leading_zeros()).unwrap_or(0);
    let up = excess.max(EXPONENT_MIN - exponent);
    let mut exponent = exponent + up;
    let mut kept = match u32::try_from(up) {
        Ok(up) => shift_right_rounding(value, up, sticky),
        Err(_) => value << up.unsigned_abs(),
    };
    if kept > u128::from(u64::MAX) {
        kept >>= 1;
        exponent += 1;
    }
    match u64::try_from(kept) {
        Ok(0) => ZERO,
        Ok(mantissa) if exponent <= EXPONENT_MAX => Size::Finite { exponent, mantissa },
        _ => Size::Infinite,
    }
}

#[cfg(test)]
mod tests;
