//! The dense representation: registers of six bits, four in three bytes, the lowest bits first.

use super::{REGISTERS, Registers};

/// The length of all registers.
pub const BYTES: usize = REGISTERS * 6 / 8;

/// Spreads four registers over four bytes.
fn unpack(packed: [u8; 3]) -> [u8; 4] {
    let word = u32::from_le_bytes([packed[0], packed[1], packed[2], 0]);
    [word, word >> 6, word >> 12, word >> 18].map(|register| (register & 63) as u8)
}

fn pack(registers: [u8; 4]) -> [u8; 3] {
    let word = registers.iter().rev().fold(0, |word, register| word << 6 | u32::from(*register));
    let [first, second, third, _] = word.to_le_bytes();
    [first, second, third]
}

/// All registers; `bytes` is as long as they are.
pub fn registers(bytes: &[u8]) -> Box<Registers> {
    let mut registers = Box::new([0; REGISTERS]);
    let (packed, _) = bytes.as_chunks::<3>();
    let (spread, _) = registers.as_chunks_mut::<4>();
    spread.iter_mut().zip(packed).for_each(|(four, packed)| *four = unpack(*packed));
    registers
}

/// All registers, packed.
pub fn bytes(registers: &Registers) -> Vec<u8> {
    registers.as_chunks::<4>().0.iter().flat_map(|four| pack(*four)).collect()
}

/// Raises a register to `value`; whether it was lower.
pub fn raise(bytes: &mut [u8], index: usize, value: u8) -> bool {
    let packed = &mut bytes.as_chunks_mut::<3>().0[index / 4];
    let mut four = unpack(*packed);
    let register = &mut four[index % 4];
    if *register >= value {
        return false;
    }
    *register = value;
    *packed = pack(four);
    true
}
