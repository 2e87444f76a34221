//! From registers to an estimate, by the method of Otmar Ertl, "New cardinality estimation algorithms for HyperLogLog sketches"
//! (2017), section 4: no table of corrections, and right from zero on.

use super::{REGISTER_BITS, REGISTERS};

/// One more than the highest value of a register.
pub const VALUES: usize = 64;
/// Bits of the hash that are left for a register's value.
const VALUE_BITS: usize = 64 - REGISTER_BITS as usize;
/// 1 / (2 ln 2).
const ALPHA: f64 = 0.721_347_520_444_481_7;

/// Larger than every number of 63 bits.
const BEYOND: f64 = 9_223_372_036_854_775_808.0;

/// How many elements it takes to leave registers so: `histogram` counts the registers of each value.
pub fn estimate(histogram: &[u32; VALUES]) -> u64 {
    let all = REGISTERS as f64;
    let mut sum = all * tau((all - f64::from(histogram[VALUE_BITS + 1])) / all);
    for count in histogram[1..=VALUE_BITS].iter().rev() {
        sum = (sum + f64::from(*count)) * 0.5;
    }
    sum += all * sigma(f64::from(histogram[0]) / all);
    let estimate = (ALPHA * all * all / sum).round();
    // Only registers that no elements lead to ask for so many; this is what C makes of them.
    if estimate < BEYOND { estimate as u64 } else { 1 << 63 }
}

/// The share of the registers that are full.
fn tau(x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut x, mut weight, mut sum) = (x, 1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        weight *= 0.5;
        let before = sum;
        sum -= (1.0 - x) * (1.0 - x) * weight;
        if sum == before {
            return sum / 3.0;
        }
    }
}

/// The share of the registers that are empty.
fn sigma(x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut x, mut weight, mut sum) = (x, 1.0, x);
    loop {
        x *= x;
        let before = sum;
        sum += x * weight;
        if sum == before {
            return sum;
        }
        weight += weight;
    }
}
