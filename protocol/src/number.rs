//! Numbers as Redis reads and writes them.

mod grisu;

use grisu::Decimal;
use std::fmt::Write;

/// Reads a whole slice as a signed 64-bit decimal integer, by Redis's `string2ll` rules: no sign but `-`, no leading zeros, no
/// blanks, no `-0`.
#[must_use]
pub fn parse_i64(bytes: &[u8]) -> Option<i64> {
    let (negative, digits) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, bytes),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut value: u64 = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
    }
    if negative { 0i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() }
}

/// Reads a whole slice as an unsigned 64-bit decimal integer, by the same rules.
#[must_use]
pub fn parse_u64(bytes: &[u8]) -> Option<u64> {
    match bytes {
        b"0" => return Some(0),
        [b'1'..=b'9', ..] if bytes.len() <= 20 => {}
        _ => return None,
    }
    bytes.iter().try_fold(0_u64, |value, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

/// Reads a whole slice as a double, as Redis reads scores: decimal or hexadecimal, with or without exponent, or `inf`; no
/// blanks, not `nan`. Numbers too large, or so small that they would become zero, are refused.
#[must_use]
pub fn parse_f64(bytes: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(bytes).ok()?;
    let digits = text.trim_start_matches(['+', '-']);
    if digits.starts_with("0x") || digits.starts_with("0X") {
        return crate::long_double::LongDouble::parse(bytes)?.to_f64();
    }
    let value: f64 = text.parse().ok()?;
    let named = digits.starts_with(['i', 'I']);
    let mantissa = digits.split(['e', 'E']).next().unwrap_or_default();
    let vanished = value == 0.0 && mantissa.bytes().any(|digit| matches!(digit, b'1'..=b'9'));
    (!value.is_nan() && (named || value.is_finite()) && !vanished).then_some(value)
}

/// A text that reads back as `value`, as Redis writes doubles: integers of up to 62 bits in full, all else with few
/// digits ([`grisu`]), and with an exponent once the plain form grows long.
#[must_use]
pub fn format_f64(value: f64) -> String {
    const WHOLE_MAX: f64 = (i64::MAX / 2) as f64;
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    if value.fract() == 0.0 && value.abs() <= WHOLE_MAX {
        return format!("{value:.0}");
    }
    let Decimal { mut digits, power } = grisu::digits(value.abs());
    let length = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let exponent = power + length - 1;
    let plain = if power >= 0 { exponent.abs() < length + 7 } else { power > -7 || exponent.abs() < 4 };
    if plain {
        place_point(&mut digits, power);
    } else if length > 1 {
        digits.insert(1, b'.');
    }
    if value < 0.0 {
        digits.insert(0, b'-');
    }
    let mut text = String::from_utf8_lossy(&digits).into_owned();
    if !plain {
        let _ = write!(text, "e{exponent:+}");
    }
    text
}

/// Puts zeros behind or before digits of which the last is of this power of ten, and the point between them.
fn place_point(digits: &mut Vec<u8>, power: i32) {
    let places = usize::try_from(power.unsigned_abs()).unwrap_or(usize::MAX);
    if power >= 0 {
        digits.resize(digits.len() + places, b'0');
        return;
    }
    if digits.len() <= places {
        let zeros = places + 1 - digits.len();
        digits.splice(0..0, std::iter::repeat_n(b'0', zeros));
    }
    digits.insert(digits.len() - places, b'.');
}

/// `value` with 17 digits, as C's `%.17g` writes it: what Redis answers to ZSCAN of a skip list.
#[must_use]
pub fn format_f64_17(value: f64) -> String {
    const DIGITS: i32 = 17;
    if !value.is_finite() || value == 0.0 {
        return format_f64(value);
    }
    let scientific = format!("{value:.16e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let without_zeros = |text: &str| text.trim_end_matches('0').trim_end_matches('.').to_owned();
    if (-4..DIGITS).contains(&exponent) {
        let decimals = usize::try_from(DIGITS - 1 - exponent).unwrap_or(0);
        let plain = format!("{value:.decimals$}");
        return if decimals == 0 { plain } else { without_zeros(&plain) };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Observed from Redis 8.2.3: a score of a skip list, the answer of ZSCAN.
    #[test]
    fn doubles_with_17_digits() {
        for (value, expected) in [
            (0.1, "0.10000000000000001"),
            (5e22, "4.9999999999999996e+22"),
            (3.0, "3"),
            (1e20, "1e+20"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (123_456_789.25, "123456789.25"),
            (0.0001, "0.0001"),
            (0.00001, "1.0000000000000001e-05"),
            (1e-300, "1e-300"),
            (-2.5, "-2.5"),
            (-0.0, "-0"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(format_f64_17(value), expected);
        }
    }

    #[test]
    fn integers_are_read_as_redis_reads_them() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-0", None),
            ("+1", None),
            ("01", None),
            ("", None),
            ("-", None),
            (" 1", None),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("-9223372036854775808", Some(i64::MIN)),
            ("-9223372036854775809", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(parse_i64(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn unsigned_integers_too() {
        for (text, expected) in [
            ("0", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("-1", None),
            ("00", None),
            ("1a", None),
            ("", None),
        ] {
            assert_eq!(parse_u64(text.as_bytes()), expected, "{text}");
        }
    }

    /// Observed from Redis 8.2.3: the argument as a score for ZADD, the answer of ZSCORE from a skip list.
    #[test]
    fn doubles_are_read_and_written_as_redis_does() {
        for (text, expected) in [
            ("95e-8", "9.5e-7"),
            ("0.000059838", "5.9838e-5"),
            ("0.001", "0.001"),
            ("967334542.168417827", "9.673345421684178e+8"),
            ("-712541250912661691", "-712541250912661632"),
            ("-7549286503805293819765173", "-7.549286503805294e+24"),
            ("24e30", "2.4e+31"),
            ("1e20", "1e+20"),
            ("5e22", "49999999999999996000000"),
            ("-0.0", "-0"),
            (".5", "0.5"),
            ("5.", "5"),
            ("+1", "1"),
            ("0x10", "16"),
            ("0x1p-3", "0.125"),
            ("-Infinity", "-inf"),
            ("4.9e-324", "5e-324"),
        ] {
            assert_eq!(parse_f64(text.as_bytes()).map(format_f64).as_deref(), Some(expected), "{text}");
        }
        for text in ["", ".", "nan", "1e", "1e400", "1e-400", " 1", "1 ", "1_0", "infi", "0x", "--1"] {
            assert_eq!(parse_f64(text.as_bytes()), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn doubles_read_back(bits: u64) {
            let value = f64::from_bits(bits);
            if value.is_finite() {
                proptest::prop_assert_eq!(parse_f64(format_f64(value).as_bytes()), Some(value));
            }
        }
    }
}
