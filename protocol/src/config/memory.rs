//! Numbers of bytes as redis.conf writes them: `1k` is 1000, `1kb` is 1024, units in any case, no unit means bytes.

/// Why a text is no number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemoryError {
    /// It has a sign, a fraction, blanks or an unknown unit.
    Malformed,
    /// It is more than `i64::MAX` bytes.
    TooLarge,
}

/// Reads a number of bytes. No digits at all mean zero, as Redis has it: `CONFIG SET maxmemory ""` lifts the limit.
pub(super) fn parse_memory(text: &[u8]) -> Result<i64, MemoryError> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = text.split_at(digits);
    let factor = unit_factor(unit).ok_or(MemoryError::Malformed)?;
    let mut bytes: i64 = 0;
    for digit in number {
        bytes = bytes
            .checked_mul(10)
            .and_then(|bytes| bytes.checked_add(i64::from(digit - b'0')))
            .ok_or(MemoryError::TooLarge)?;
    }
    bytes.checked_mul(factor).ok_or(MemoryError::TooLarge)
}

/// The number of bytes that a text says, if it is one.
#[must_use]
pub fn memory_of(text: &[u8]) -> Option<u64> {
    parse_memory(text).ok().and_then(|bytes| u64::try_from(bytes).ok())
}

fn unit_factor(unit: &[u8]) -> Option<i64> {
    let factor = match unit.to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    Some(factor)
}

/// The shortest exact form, as `CONFIG REWRITE` writes it: `3mb`, `16kb`, `2000000`.
pub(super) fn format_memory(bytes: i64) -> String {
    for (factor, unit) in [(1 << 30, "gb"), (1 << 20, "mb"), (1 << 10, "kb")] {
        if bytes >= factor && bytes % factor == 0 {
            return format!("{}{unit}", bytes / factor);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn units_are_decimal_or_binary() {
        for (text, bytes) in [
            ("0", 0),
            ("007", 7),
            ("1b", 1),
            ("1k", 1000),
            ("1KB", 1024),
            ("1m", 1_000_000),
            ("1Mb", 1 << 20),
            ("1g", 1_000_000_000),
            ("1GB", 1 << 30),
            ("", 0),
            ("kb", 0),
            ("9223372036854775807", i64::MAX),
        ] {
            assert_eq!(parse_memory(text.as_bytes()), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn signs_blanks_fractions_and_overflow_are_refused() {
        for text in ["-1", "+5", " 1", "1 ", "1 mb", "1.5mb", "0x10", "1tb", "1kbx", "10%", "1e3"] {
            assert_eq!(parse_memory(text.as_bytes()), Err(MemoryError::Malformed), "{text}");
        }
        for text in ["9223372036854775808", "17179869184gb", "99999999999999999999999"] {
            assert_eq!(parse_memory(text.as_bytes()), Err(MemoryError::TooLarge), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(bytes in 0..=i64::MAX) {
            prop_assert_eq!(parse_memory(format_memory(bytes).as_bytes()), Ok(bytes));
        }
    }
}
