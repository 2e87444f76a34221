//! Natural numbers of any size, with the few operations that reading and writing floats takes.

use std::cmp::Ordering;

/// A natural number: digits of 32 bits, the lowest first, no zero at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Natural(Vec<u32>);

impl From<u64> for Natural {
    fn from(value: u64) -> Self {
        Natural(vec![low(value), low(value >> 32)]).trimmed()
    }
}

impl Natural {
    /// The number that these decimal digits write.
    pub(super) fn from_decimal(digits: &[u8]) -> Self {
        let mut number = Natural(Vec::new());
        digits.iter().for_each(|digit| number.multiply_add(10, u32::from(digit - b'0')));
        number
    }

    /// The number times 10^count.
    pub(super) fn times_power_of_ten(mut self, count: u32) -> Self {
        (0..count / 9).for_each(|_| self.multiply_add(1_000_000_000, 0));
        (0..count % 9).for_each(|_| self.multiply_add(10, 0));
        self
    }

    fn multiply_add(&mut self, factor: u32, mut carry: u32) {
        for digit in &mut self.0 {
            let product = u64::from(*digit) * u64::from(factor) + u64::from(carry);
            (*digit, carry) = (low(product), low(product >> 32));
        }
        if carry > 0 {
            self.0.push(carry);
        }
    }

    /// How many bits it takes.
    pub(super) fn bits(&self) -> u32 {
        let top = self.0.last().map_or(0, |digit| 32 - digit.leading_zeros());
        top + 32 * u32::try_from(self.0.len().saturating_sub(1)).unwrap_or(u32::MAX / 32)
    }

    /// The number times 2^count.
    pub(super) fn shifted_left(&self, count: u32) -> Self {
        let mut digits = vec![0; count as usize / 32];
        let mut carry = 0;
        for digit in &self.0 {
            let shifted = u64::from(*digit) << (count % 32);
            digits.push(low(shifted) | carry);
            carry = low(shifted >> 32);
        }
        digits.push(carry);
        Natural(digits).trimmed()
    }

    /// `self * 2^shift / divisor` with a quotient of 66 or 67 bits, the `shift` that makes it so, and whether anything
    /// remains. Bit by bit: the numbers are short and this is the rare case.
    pub(super) fn divide(&self, divisor: &Self) -> (u128, i32, bool) {
        let by = |bits: u32| i32::try_from(bits).unwrap_or(i32::MAX / 2);
        let shift = 66 - (by(self.bits()) - by(divisor.bits()));
        let mut rest = self.shifted_left(shift.max(0).unsigned_abs());
        let mut subtrahend = divisor.shifted_left(shift.min(0).unsigned_abs() + 67);
        let mut quotient = 0;
        for _ in 0..68 {
            quotient <<= 1;
            if rest.compare(&subtrahend).is_ge() {
                rest.subtract(&subtrahend);
                quotient |= 1;
            }
            subtrahend.halve();
        }
        (quotient, shift, !rest.0.is_empty())
    }

    fn compare(&self, other: &Self) -> Ordering {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    /// Takes away a number that is not larger.
    fn subtract(&mut self, other: &Self) {
        let mut borrow = false;
        let others = other.0.iter().copied().chain(std::iter::repeat(0));
        for (digit, other) in self.0.iter_mut().zip(others) {
            let (once, first) = digit.overflowing_sub(other);
            let (twice, second) = once.overflowing_sub(u32::from(borrow));
            (*digit, borrow) = (twice, first || second);
        }
        debug_assert!(!borrow, "the smaller number is taken from the larger");
        self.trim();
    }

    fn halve(&mut self) {
        let mut carry = 0;
        for digit in self.0.iter_mut().rev() {
            let next = *digit << 31;
            *digit = *digit >> 1 | carry;
            carry = next;
        }
        self.trim();
    }

    /// Its decimal digits.
    pub(super) fn to_decimal(&self) -> String {
        let mut rest = self.clone();
        let mut groups = Vec::new();
        while !rest.0.is_empty() {
            groups.push(rest.divide_small(1_000_000_000));
        }
        let mut text = groups.pop().unwrap_or(0).to_string();
        groups.iter().rev().for_each(|group| text.push_str(&format!("{group:09}")));
        text
    }

    /// Divides by a small number and returns what remains.
    fn divide_small(&mut self, divisor: u32) -> u32 {
        let mut rest = 0_u64;
        for digit in self.0.iter_mut().rev() {
            let value = rest << 32 | u64::from(*digit);
            *digit = low(value / u64::from(divisor));
            rest = value % u64::from(divisor);
        }
        self.trim();
        low(rest)
    }

    fn trimmed(mut self) -> Self {
        self.trim();
        self
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }
}

/// The lower 32 bits.
fn low(value: u64) -> u32 {
    (value & 0xFFFF_FFFF) as u32
}
