//! CRC-64 as Redis computes it (Jones polynomial, reflected, initial value and final xor zero): the sum of RDB files, of
//! DUMP payloads and of our log's seals.
//!
//! With nothing mixed in at the start or the end, a sum is also the state to go on from, so sums of consecutive pieces
//! chain without any extra bookkeeping. `crc-fast` computes it with carry-less multiplication (tens of GB/s on pieces of
//! some KiB), so a sum costs far less than the copy of the same bytes into the page cache.

use crc_fast::{CrcAlgorithm, Digest};

/// The sum of what `state` already covers (0 for nothing) followed by `bytes`.
pub fn crc64(state: u64, bytes: &[u8]) -> u64 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc64Redis, state);
    digest.update(bytes);
    digest.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bit by bit, from the definition.
    fn slow(mut state: u64, bytes: &[u8]) -> u64 {
        for &byte in bytes {
            state ^= u64::from(byte);
            for _ in 0..8 {
                state = if state & 1 == 1 { (state >> 1) ^ 0x95ac_9329_ac4b_c9b5 } else { state >> 1 };
            }
        }
        state
    }

    #[test]
    fn check_value() {
        assert_eq!(crc64(0, b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        assert_eq!(crc64(7, b""), 7);
    }

    proptest! {
        #[test]
        fn equals_the_definition_and_chains(state: u64, bytes in prop::collection::vec(any::<u8>(), 0..700), cut in 0usize..700) {
            let cut = cut.min(bytes.len());
            prop_assert_eq!(crc64(state, &bytes), slow(state, &bytes));
            prop_assert_eq!(crc64(crc64(state, &bytes[..cut]), &bytes[cut..]), slow(state, &bytes));
        }
    }
}
