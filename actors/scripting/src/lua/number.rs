//! Numbers as C prints and reads them.

/// `%.<precision>g`.
pub(super) fn format_g(value: f64, precision: usize) -> String {
    if !value.is_finite() {
        let sign = if value.is_sign_negative() { "-" } else { "" };
        return format!("{sign}{}", if value.is_nan() { "nan" } else { "inf" });
    }
    let scientific = format!("{value:.*e}", precision - 1);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let width = i32::try_from(precision).unwrap_or(i32::MAX);
    if exponent < -4 || exponent >= width {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", without_zeros(digits), exponent.abs());
    }
    let places = usize::try_from(width - 1 - exponent).unwrap_or(0);
    without_zeros(&format!("{value:.places$}")).to_owned()
}

/// Whole numbers below this are written as such; from here on as others are.
const WHOLE: f64 = 4_611_686_018_427_387_904.0;

/// Appends a number as a command is given it.
pub(super) fn push_argument(out: &mut Vec<u8>, value: f64) {
    if value.fract() == 0.0 && value.abs() < WHOLE {
        out.extend_from_slice(itoa::Buffer::new().format(value as i64).as_bytes());
    } else {
        out.extend_from_slice(format_argument(value).as_bytes());
    }
}

/// A number as a command is given it: in as few digits as tell it from its neighbours, written as Redis's `fpconv` does.
fn format_argument(value: f64) -> String {
    if !value.is_finite() {
        return format_g(value, 17);
    }
    let scientific = format!("{:e}", value.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits = mantissa.replace('.', "");
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let shift = exponent + 1 - count;
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    let sign = if value < 0.0 { "-" } else { "" };
    if shift >= 0 && exponent < count + 7 {
        return format!("{sign}{digits}{}", zeros(shift));
    }
    if shift < 0 && (shift > -7 || exponent.abs() < 4) {
        let before = count + shift;
        if before <= 0 {
            return format!("{sign}0.{}{digits}", zeros(-before));
        }
        let (whole, rest) = digits.split_at(usize::try_from(before).unwrap_or(0));
        return format!("{sign}{whole}.{rest}");
    }
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    format!("{sign}{first}{point}{rest}e{exponent:+}")
}

fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

/// The number at the start of `bytes` and its length, as `strtod` reads it (but for blanks).
pub(super) fn read_f64(bytes: &[u8]) -> Option<(f64, usize)> {
    let signed = usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
    let sign = if bytes.first() == Some(&b'-') { -1.0 } else { 1.0 };
    let rest = &bytes[signed..];
    for (name, value) in [("infinity", f64::INFINITY), ("inf", f64::INFINITY), ("nan", f64::NAN)] {
        if rest.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes())) {
            return Some((if value.is_nan() { value } else { sign * value }, signed + name.len()));
        }
    }
    if let [b'0', b'x' | b'X', digits @ ..] = rest
        && digits.first().is_some_and(u8::is_ascii_hexdigit)
    {
        let count = digits.iter().take_while(|digit| digit.is_ascii_hexdigit()).count();
        let hex = |digit: &u8| f64::from(char::from(*digit).to_digit(16).unwrap_or(0));
        let value = digits[..count].iter().fold(0.0, |value, digit| value * 16.0 + hex(digit));
        return Some((sign * value, signed + 2 + count));
    }
    let length = signed + decimal_length(rest)?;
    let text = std::str::from_utf8(&bytes[..length]).ok()?;
    text.parse().ok().map(|value| (value, length))
}

fn decimal_length(bytes: &[u8]) -> Option<usize> {
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(0);
    let mut length = whole;
    let mut count = whole;
    if bytes.get(length) == Some(&b'.') {
        count += digits(length + 1);
        length += 1 + digits(length + 1);
    }
    if count == 0 {
        return None;
    }
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'-' | b'+')));
        if bytes.len() > length + 1 + sign && digits(length + 1 + sign) > 0 {
            length += 1 + sign + digits(length + 1 + sign);
        }
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_c_prints_them() {
        for (value, precision, text) in [
            (0.1, 14, "0.1"),
            (1e100, 14, "1e+100"),
            (123_456_789_012_345_680.0, 14, "1.2345678901235e+17"),
            (-0.0, 14, "-0"),
            (1.0 / 3.0, 14, "0.33333333333333"),
            (9_007_199_254_740_992.0, 14, "9.007199254741e+15"),
            (0.1, 17, "0.10000000000000001"),
            (1e20, 17, "1e+20"),
            (0.00001, 14, "1e-05"),
            (99999.5, 1, "1e+05"),
            (100.0, 14, "100"),
            (f64::NEG_INFINITY, 14, "-inf"),
        ] {
            assert_eq!(format_g(value, precision), text);
        }
    }

    /// As Redis 8.2.3 gives them to SET.
    #[test]
    fn arguments_are_written_with_few_digits() {
        for (value, text) in [
            (0.1, "0.1"),
            (-0.0, "0"),
            (1e-5, "0.00001"),
            (-1.5e-7, "-1.5e-7"),
            (0.00012345, "1.2345e-4"),
            (1_234_567.125, "1234567.125"),
            (123_456_789.123_456_79, "1.2345678912345679e+8"),
            (4.6e18, "4600000000000000000"),
            (4.7e18, "4.7e+18"),
            (9_223_372_036_854_775_808.0, "9223372036854776000"),
            (1e19, "1e+19"),
            (1.5e300, "1.5e+300"),
            (5e-324, "5e-324"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            let mut written = Vec::new();
            push_argument(&mut written, value);
            assert_eq!(String::from_utf8_lossy(&written), text);
        }
    }

    #[test]
    fn numbers_are_read_as_far_as_they_go() {
        for (text, value, length) in [
            ("1e5,", 1e5, 3),
            ("1e", 1.0, 1),
            ("0x10", 16.0, 4),
            ("-1.5.2", -1.5, 4),
            ("-Inf", f64::NEG_INFINITY, 4),
            ("1e+", 1.0, 1),
        ] {
            assert_eq!(read_f64(text.as_bytes()), Some((value, length)), "{text}");
        }
        assert_eq!(read_f64(b"-"), None);
        assert_eq!(read_f64(b"."), None);
    }
}
