//! Bitmaps. Offsets stay small, or so large that they are refused, so that no stream makes a large string.

use super::{Compare, Grammar, Words, words};
use crate::vocabulary::{INTEGERS, NOT_INTEGERS};

impl Grammar {
    pub(super) fn bitmap(&mut self) -> (Words, Compare) {
        let key = self.key_of("bits");
        let all = match self.random.below(16) {
            0..4 => words(&[b"SETBIT", &key, &self.bit_offset(), &self.bit()]),
            4 | 5 => words(&[b"GETBIT", &key, &self.bit_offset()]),
            6 | 7 => self.bit_range(words(&[b"BITCOUNT", &key])),
            8 | 9 => {
                let bit = self.bit();
                self.bit_range(words(&[b"BITPOS", &key, &bit]))
            }
            10..13 => self.bitop(),
            13 => self.bitfield_ro(key),
            14 => words(&[b"GET", &key]),
            _ => self.bitfield(key),
        };
        (all, Compare::Bytes)
    }

    fn bit(&mut self) -> Vec<u8> {
        self.from(&["0", "1", "1", "1", "0", "1", "2", "-1", "x", ""])
    }

    fn bit_offset(&mut self) -> Vec<u8> {
        match self.random.below(12) {
            0 => self.from(NOT_INTEGERS),
            1 => self.from(&["4294967296", "-1", "9223372036854775807", "9223372036854775808"]),
            _ => self.random.below(200).to_string().into_bytes(),
        }
    }

    /// Nothing, a start, or start and end with or without a unit.
    fn bit_range(&mut self, mut all: Words) -> Words {
        for _ in 0..[0, 1, 2, 2, 2, 2][self.random.below(6) as usize] {
            all.push(match self.random.below(8) {
                0 => self.integer(),
                _ => (self.random.below(60) as i64 - 30).to_string().into_bytes(),
            });
        }
        if self.random.one_in(2) {
            all.push(self.from(&["BIT", "BIT", "BIT", "BYTE", "BYTES"]));
        }
        self.mix_options(&mut all);
        all
    }

    fn bitop(&mut self) -> Words {
        let operation = self.from(&["AND", "OR", "XOR", "NOT", "DIFF", "DIFF1", "ANDOR", "ONE", "NAND"]);
        let mut all = words(&[b"BITOP", &operation, &self.key_of("bits")]);
        let keys = if operation == b"NOT" && !self.random.one_in(8) { 1 } else { 1 + self.random.below(5) };
        for _ in 0..keys {
            all.push(self.key_of("bits"));
        }
        all
    }

    fn bitfield(&mut self, key: Vec<u8>) -> Words {
        let mut all = words(&[b"BITFIELD", &key]);
        for _ in 0..self.random.below(5) {
            match self.random.below(5) {
                0 => all.extend(words(&[b"GET", &self.field_type(), &self.field_offset()])),
                1 => all.extend(words(&[b"OVERFLOW", &self.from(&["WRAP", "SAT", "FAIL", "SAT", "FAIL", "x"])])),
                which => {
                    let name = if which == 2 { "SET" } else { "INCRBY" };
                    all.extend(words(&[
                        name.as_bytes(),
                        &self.field_type(),
                        &self.field_offset(),
                        &self.field_value(),
                    ]));
                }
            }
        }
        all
    }

    fn bitfield_ro(&mut self, key: Vec<u8>) -> Words {
        let mut all = words(&[b"BITFIELD_RO", &key]);
        for _ in 0..self.random.below(4) {
            let name = if self.random.one_in(12) { "SET" } else { "GET" };
            all.extend(words(&[name.as_bytes(), &self.field_type(), &self.field_offset()]));
        }
        all
    }

    fn field_type(&mut self) -> Vec<u8> {
        match self.random.below(12) {
            0 => self.from(&["u64", "i65", "u0", "i0", "x8", "u", "", "u-1", "u08", "i 8"]),
            1 => self.from(&["i64", "u63"]),
            _ => {
                let sign = if self.random.one_in(2) { 'u' } else { 'i' };
                format!("{sign}{}", 1 + self.random.below(20)).into_bytes()
            }
        }
    }

    fn field_offset(&mut self) -> Vec<u8> {
        match self.random.below(12) {
            0 => self.from(NOT_INTEGERS),
            1 => self.from(&["4294967296", "-1", "#-1", "#", "#x", "9223372036854775808", "#9223372036854775807"]),
            2..6 => format!("#{}", self.random.below(12)).into_bytes(),
            _ => self.random.below(150).to_string().into_bytes(),
        }
    }

    fn field_value(&mut self) -> Vec<u8> {
        match self.random.below(4) {
            0 => self.integer(),
            1 => self.from(INTEGERS),
            _ => (self.random.below(600) as i64 - 300).to_string().into_bytes(),
        }
    }
}
