//! What a file of the log that is written once must be: as long, and with the same sum, as it was when it was named in the manifest. A
//! base of commands has no end of its own, and an empty file reads as one, so a disk that lost what it said was synced would
//! otherwise go unnoticed.
//!
//! The sum is another than the one that an RDB file ends in: a CRC of bytes and of that CRC of them is the same number whatever the
//! bytes are, so that any two snapshots of one length would do for each other.

use crc_fast::{CrcAlgorithm, Digest};

/// Length and CRC-64 (NVMe's) of all bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Whole {
    /// Bytes.
    pub bytes: u64,
    /// Their sum.
    pub sum: u64,
}

impl Whole {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut whole = Self::default();
        whole.absorb(bytes);
        whole
    }

    /// Takes in the next bytes.
    pub fn absorb(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        // A sum is the state to go on from, with all bits turned over: so this one begins and ends.
        let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc64Nvme, !self.sum);
        digest.update(bytes);
        self.sum = digest.finalize();
    }

    /// As a word of the manifest.
    pub(super) fn word(&self) -> String {
        format!("{}:{:016x}", self.bytes, self.sum)
    }

    pub(super) fn parse(word: &[u8]) -> Option<Self> {
        let (bytes, sum) = std::str::from_utf8(word).ok()?.split_once(':')?;
        let plain = bytes.bytes().all(|byte| byte.is_ascii_digit()) && sum.len() == 16;
        let whole = Self { bytes: bytes.parse().ok()?, sum: u64::from_str_radix(sum, 16).ok()? };
        plain.then_some(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d18_files_of_one_length_that_end_in_their_own_sum_are_told_apart() {
        let snapshot = |content: &[u8]| [content, &crate::rdb::crc64::crc64(0, content).to_le_bytes()].concat();
        assert_ne!(Whole::of(&snapshot(b"REDIS0010 100")), Whole::of(&snapshot(b"REDIS0010 050")));
    }

    #[test]
    fn a_word_and_back() {
        let mut pieces = Whole::of(b"12345");
        pieces.absorb(b"6789");
        assert_eq!(pieces, Whole::of(b"123456789"));
        assert_eq!(pieces.word(), "9:ae8b14860a799888");
        assert_eq!(Whole::parse(pieces.word().as_bytes()), Some(pieces));
        for wrong in [
            "",
            "9",
            "9:",
            "9:e9",
            "+9:ae8b14860a799888",
            "9:ae8b14860a799888g",
            "99999999999999999999:ae8b14860a799888",
        ] {
            assert_eq!(Whole::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
