//! The floating-point numbers that INCRBYFLOAT and INCREX compute with, and their text: 17 decimals, trailing zeros cut off.

use std::cmp::Ordering;

/// A number that is not NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Float(f64);

impl Float {
    pub const ZERO: Self = Self(0.0);

    /// Reads a whole text; what is too large to be represented is no number.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let number: f64 = text.parse().ok()?;
        let says_infinite = text.trim_start_matches(['+', '-']).starts_with(['i', 'I']);
        (!number.is_nan() && (number.is_finite() || says_infinite)).then_some(Self(number))
    }

    /// The largest finite number.
    pub fn largest() -> Self {
        Self(f64::MAX)
    }

    /// The smallest finite number.
    pub fn smallest() -> Self {
        Self(f64::MIN)
    }

    pub fn is_finite(self) -> bool {
        self.0.is_finite()
    }

    pub fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    pub fn subtract(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }

    pub fn compare(self, other: Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }

    pub fn text(self) -> String {
        let text = format!("{:.17}", self.0);
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        if text == "-0" { "0".into() } else { text.into() }
    }
}
