//! Reading a [`LongDouble`] as `strtold` does under Redis's checks.

use super::natural::Natural;
use super::{LongDouble, Size, ZERO, round};

/// The buffer into which Redis copies a number before it reads it.
const LENGTH_MAX: usize = 5 * 1024 - 1;
/// Beyond this power of ten a number is infinite, below its negative it is zero, whatever its digits.
const POWER_MAX: i64 = 5000;

/// A mantissa as written: its significant digits and the power of the base by which their integer is to be multiplied.
struct Written {
    digits: Vec<u8>,
    power: i64,
}

pub(super) fn read(text: &[u8]) -> Option<LongDouble> {
    if text.len() > LENGTH_MAX {
        return None;
    }
    let (negative, unsigned) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if unsigned.eq_ignore_ascii_case(b"inf") || unsigned.eq_ignore_ascii_case(b"infinity") {
        return Some(LongDouble { negative, size: Size::Infinite });
    }
    let (written, size) = match unsigned {
        [b'0', b'x' | b'X', rest @ ..] => {
            let written = split(rest, u8::is_ascii_hexdigit, b'p', 4)?;
            let size = hexadecimal(&written);
            (written, size)
        }
        _ => {
            let written = split(unsigned, u8::is_ascii_digit, b'e', 1)?;
            let size = decimal(&written);
            (written, size)
        }
    };
    // The C library says "out of range" for both, and Redis refuses what is.
    let out_of_range = size == Size::Infinite || (size == ZERO && !written.digits.is_empty());
    (!out_of_range).then_some(LongDouble { negative, size })
}

/// Takes digits, point and exponent apart; leading and trailing zeros fall away. `weight`: what one digit behind the point
/// is worth in the exponent (four bits in a hexadecimal number).
fn split(text: &[u8], is_digit: fn(&u8) -> bool, mark: u8, weight: i64) -> Option<Written> {
    let (mantissa, power) = match text.iter().position(|byte| byte.to_ascii_lowercase() == mark && !is_digit(byte)) {
        Some(at) => (&text[..at], exponent(&text[at + 1..])?),
        None => (text, 0),
    };
    let point = mantissa.iter().position(|&byte| byte == b'.').unwrap_or(mantissa.len());
    let fraction = mantissa.get(point + 1..).unwrap_or_default();
    let mut digits = [&mantissa[..point], fraction].concat();
    if digits.is_empty() || !digits.iter().all(is_digit) {
        return None;
    }
    let mut power = power - weight * i64::try_from(fraction.len()).ok()?;
    while digits.last() == Some(&b'0') {
        digits.pop();
        power += weight;
    }
    let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
    digits.drain(..zeros);
    Some(Written { digits, power })
}

/// Digits of an exponent, with or without sign; a ridiculous one stops growing, which changes no result.
fn exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0, |value: i64, digit| (value * 10 + i64::from(digit - b'0')).min(1_000_000));
    Some(if negative { -value } else { value })
}

fn decimal(written: &Written) -> Size {
    let Written { digits, power } = written;
    let magnitude = power + i64::try_from(digits.len()).unwrap_or(i64::MAX / 2);
    if digits.is_empty() || magnitude < -POWER_MAX {
        return ZERO;
    }
    if magnitude > POWER_MAX {
        return Size::Infinite;
    }
    let count = u32::try_from(power.unsigned_abs()).unwrap_or(u32::MAX);
    if digits.len() <= 19 && count <= 27 {
        return short_decimal(digits, *power < 0, count);
    }
    let number = Natural::from_decimal(digits);
    let one = Natural::from(1);
    let (number, divisor) =
        if *power < 0 { (number, one.times_power_of_ten(count)) } else { (number.times_power_of_ten(count), one) };
    let (quotient, shift, rest) = number.divide(&divisor);
    round(quotient, -shift, rest)
}

/// Up to 19 digits and a power of ten up to 27: both fit in 64 bits (the power without its factors of two), so that their
/// product or quotient is exact in 128 bits but for a remainder.
fn short_decimal(digits: &[u8], divide: bool, count: u32) -> Size {
    let integer = digits.iter().fold(0, |value: u128, digit| value * 10 + u128::from(digit - b'0'));
    let (five, twos) = (5_u128.pow(count), i32::try_from(count).unwrap_or(0));
    if !divide {
        return round(integer * five, twos, false);
    }
    let shift = integer.leading_zeros();
    let (quotient, rest) = ((integer << shift) / five, (integer << shift) % five);
    round(quotient, -twos - i32::try_from(shift).unwrap_or(0), rest != 0)
}

fn hexadecimal(written: &Written) -> Size {
    let mut value = 0_u128;
    let mut power = written.power;
    let mut sticky = false;
    for digit in &written.digits {
        let digit = char::from(*digit).to_digit(16).unwrap_or(0);
        if value >> 120 == 0 {
            value = value << 4 | u128::from(digit);
        } else {
            power += 4;
            sticky |= digit != 0;
        }
    }
    match i32::try_from(power.clamp(-100_000, 100_000)) {
        Ok(power) => round(value, power, sticky),
        Err(_) => ZERO,
    }
}
