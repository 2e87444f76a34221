//! The words that [`crate::grammar`] makes commands of: boundary numbers, what is almost a number, times that no run meets.
//!
//! `\u{ff}` stands for the byte 255.

/// Few keys, the first of them often.
pub const KEYS: &[&str] =
    &["a", "a", "b", "b", "c", "c", "d", "e", "f", "g", "{t}1", "{t}2", "", "key:with:a:longer:name", "\0\u{ff}"];

/// Integers, and what lies just beyond 64 bits.
pub const INTEGERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "5",
    "10",
    "-1",
    "-2",
    "-3",
    "100",
    "1000",
    "2000",
    "-100",
    "255",
    "256",
    "32767",
    "-32768",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775806",
    "-9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "4611686018427387904",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999",
    "536870912",
    "4294967296",
    "2147483648",
    "-2147483649",
];

/// What looks like an integer and is none.
pub const NOT_INTEGERS: &[&str] =
    &["", " 1", "1 ", "+1", "01", "-0", "00", "1.0", "1e3", "0x10", "abc", "nan", "inf", "-", "--1", "1\0", "\u{ff}"];

/// Numbers with and without a fraction. None is too large for a long double: reading one leaves an error number behind in Redis 8.2 on
/// which its SORT stumbles much later.
pub const FLOATS: &[&str] = &[
    "0",
    "1",
    "-1",
    "0.1",
    "0.2",
    "1.5",
    "-2.5",
    "3.0",
    "1e3",
    "1e-3",
    "1e17",
    "-1e17",
    "1.23456789012345678",
    "0.30",
    "100000000000000000000",
    "5e-324",
    "1e300",
    "-0",
    "-0.0",
    ".5",
    "5.",
    "1e-18",
    "123456789.987654321",
    "3.3333333333",
    "9007199254740993",
    "0.00001",
    "1e4000",
];

/// What looks like a number and is none, or is not finite.
pub const NOT_FLOATS: &[&str] =
    &["", "abc", "1.1.1", " 1", "1 ", "nan", "inf", "-inf", "+inf", "infinity", "1e", "0x", "e1", "--1"];

/// Instants that are over, and instants that come long after the run; in seconds.
pub const SECONDS_AT: &[&str] =
    &["1", "1000", "0", "-1", "99999999999", "88888888888", "33333333333", "9223372036854775"];
/// The same in milliseconds.
pub const MILLISECONDS_AT: &[&str] =
    &["1", "1000", "0", "-1", "99999999999123", "88888888888456", "33333333333789", "9223370000000000000"];

/// Spans that are over when they begin.
pub const SPANS_OVER: &[&str] = &["0", "-1", "-100"];

/// Globs.
pub const PATTERNS: &[&str] =
    &["*", "a", "a*", "?", "[a-c]", "[^a-c]", "{t}*", "", "**", "\\a", "[", "[a", "key:*:na[m]e", "z"];
