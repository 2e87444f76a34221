//! The sparse representation: runs of registers with the same value, each in one byte or two.
//!
//! | bytes | run |
//! | --- | --- |
//! | `00llllll` | up to 64 zeros |
//! | `01llllll llllllll` | up to 16384 zeros |
//! | `1vvvvvll` | up to 4 registers of a value up to 32 |
//!
//! Lengths and values are stored less one. How runs are split and merged decides the bytes, so it is done as Redis does it.

use super::{CORRUPT, REGISTERS, Registers};
use simurgh_protocol::CommandError;

/// The highest value that a run can have.
const VALUE_MAX: u8 = 32;
const VALUE_RUN_MAX: usize = 4;
const SHORT_RUN_MAX: usize = 64;
/// After a change, so many runs are looked at for two to merge.
const MERGE_LOOKS: usize = 5;

/// Registers of the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The value of each.
    pub value: u8,
    /// How many there are.
    pub length: usize,
    /// In how many bytes this is said.
    pub size: usize,
}

/// The run at the beginning of `bytes`, if there is one. A long run whose second byte is missing is read as if it were zero:
/// Redis finds the zero there that ends each of its strings.
fn first_run(bytes: &[u8]) -> Option<Run> {
    let byte = *bytes.first()?;
    let low = usize::from(byte & 63);
    Some(match byte >> 6 {
        0 => Run { value: 0, length: low + 1, size: 1 },
        1 => {
            let next = bytes.get(1).copied().unwrap_or(0);
            Run { value: 0, length: (low << 8 | usize::from(next)) + 1, size: 2 }
        }
        _ => Run { value: (byte >> 2 & 31) + 1, length: low % VALUE_RUN_MAX + 1, size: 1 },
    })
}

/// All runs.
pub fn runs(mut bytes: &[u8]) -> impl Iterator<Item = Run> {
    std::iter::from_fn(move || {
        let run = first_run(bytes)?;
        bytes = bytes.get(run.size..).unwrap_or_default();
        Some(run)
    })
}

/// All registers; there must be neither too few nor too many.
pub fn registers(bytes: &[u8]) -> Result<Box<Registers>, CommandError> {
    let mut registers = Box::new([0; REGISTERS]);
    let mut index = 0;
    for run in runs(bytes) {
        registers.get_mut(index..index + run.length).ok_or(CORRUPT)?.fill(run.value);
        index += run.length;
    }
    if index == REGISTERS { Ok(registers) } else { Err(CORRUPT) }
}

/// What came of a register to be raised.
#[derive(Debug, PartialEq, Eq)]
pub enum Raised {
    /// It was as high already.
    No,
    /// It is higher now.
    Yes,
    /// The sparse representation cannot say it, or not in so few bytes.
    TooLarge,
}

/// The run that holds a register.
struct Found {
    run: Run,
    /// Where its bytes begin.
    at: usize,
    /// Where the bytes of the run before it begin.
    before: usize,
    /// Its first register.
    first: usize,
}

fn find(bytes: &[u8], index: usize) -> Result<Found, CommandError> {
    let (mut at, mut before, mut first) = (0, 0, 0);
    loop {
        let run = bytes.get(at..).and_then(first_run).ok_or(CORRUPT)?;
        if index < first + run.length {
            return Ok(Found { run, at, before, first });
        }
        (before, at, first) = (at, at + run.size, first + run.length);
    }
}

/// Writes a run of `length` registers; the length fits the kind of run.
fn push(out: &mut Vec<u8>, value: u8, length: usize) {
    match (value, length) {
        (_, 0) => {}
        (0, ..=SHORT_RUN_MAX) => out.push((length - 1) as u8),
        (0, _) => out.extend([0x40 | ((length - 1) >> 8) as u8, (length - 1) as u8]),
        _ => out.push(0x80 | (value - 1) << 2 | (length - 1) as u8),
    }
}

/// Raises a register to `value`, which is at least 1. The bytes get no longer than `longest`, unless they are already.
pub fn raise(bytes: &mut Vec<u8>, index: usize, value: u8, longest: usize) -> Result<Raised, CommandError> {
    if value > VALUE_MAX {
        return Ok(Raised::TooLarge);
    }
    let Found { run, at, before, first } = find(bytes, index)?;
    if run.value >= value {
        return Ok(Raised::No);
    }
    if at + run.size > bytes.len() {
        return Err(CORRUPT);
    }
    // The run falls into three: what lies before the register, the register, what lies behind it.
    let mut split = Vec::with_capacity(5);
    push(&mut split, run.value, index - first);
    push(&mut split, value, 1);
    push(&mut split, run.value, first + run.length - 1 - index);
    if split.len() > run.size && bytes.len() + split.len() - run.size > longest {
        return Ok(Raised::TooLarge);
    }
    bytes.splice(at..at + run.size, split);
    merge(bytes, before);
    Ok(Raised::Yes)
}

/// Merges neighbouring runs of the same value, from the one at `at` on.
fn merge(bytes: &mut Vec<u8>, mut at: usize) {
    for _ in 0..MERGE_LOOKS {
        let Some(run) = bytes.get(at..).and_then(first_run) else { return };
        if run.value > 0
            && let Some(next) = first_run(&bytes[at + 1..])
            && next.value == run.value
            && run.length + next.length <= VALUE_RUN_MAX
        {
            bytes.remove(at);
            bytes[at] = 0x80 | (run.value - 1) << 2 | (run.length + next.length - 1) as u8;
        } else {
            at += run.size;
        }
    }
}
