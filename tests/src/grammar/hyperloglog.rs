//! HyperLogLog: sketches grow from empty to dense, are merged, read and written as the strings they are, and damaged.

use super::{Compare, Grammar, Words, value_of, words};

/// What begins like a sketch. Redis reads a byte behind the string when the last run is cut off; such a one is not here.
const STRANGE: &[&str] = &[
    "HYLL",
    "HYLL\u{1}\0\0\0\0\0\0\0\0\0\0\0",
    "HYLL\u{1}\0\0\0\0\0\0\0\0\0\0\0\u{7f}\u{ff}",
    "HYLL\u{1}\0\0\0\0\0\0\0\0\0\0\u{80}\u{7f}\u{fe}\0",
    "HYLL\u{1}\0\0\0\0\0\0\0\0\0\0\u{80}\u{7f}\u{fb}\0\u{87}",
    "HYLL\u{1}\0\0\0\0\0\0\0\0\0\0\u{80}\u{7f}\u{fb}\u{87}",
    "HYLL\u{1}\0\0\0\u{5}\0\0\0\0\0\0\0\u{7f}\u{ff}\u{7f}\u{ff}",
    "HYLL\u{1}abc\0\0\0\0\0\0\0\u{80}\u{7f}\u{ff}",
    "HYLL\0\0\0\0\0\0\0\0\0\0\0\u{80}",
    "HYLL\u{2}\0\0\0\0\0\0\0\0\0\0\u{80}\u{7f}\u{ff}",
    "hyll\u{1}\0\0\0\0\0\0\0\0\0\0\u{80}\u{7f}\u{ff}",
];

impl Grammar {
    pub(super) fn hyperloglog(&mut self) -> (Words, Compare) {
        let key = self.key_of("hll");
        let all = match self.random.below(16) {
            0..6 => self.pfadd(key),
            6..9 => self.sketches_after("PFCOUNT"),
            9 | 10 => self.sketches_after("PFMERGE"),
            11 | 12 => words(&[b"GET", &key]),
            13 if self.random.one_in(3) => words(&[b"SET", &key, &value_of(self.random.pick(STRANGE))]),
            13 => words(&[b"PFDEBUG", &self.from(&["DECODE", "ENCODING", "decode", "FOO", "GETREG"]), &key]),
            14 if self.random.one_in(3) => words(&[b"PFDEBUG", b"TODENSE", &key]),
            _ => words(&[b"DEL", &key]),
        };
        (all, Compare::Bytes)
    }

    /// Few elements or many, of few different ones or ever new ones.
    fn pfadd(&mut self, key: Vec<u8>) -> Words {
        let mut all = words(&[b"PFADD", &key]);
        let count = if self.random.one_in(8) { self.random.below(600) } else { self.random.below(5) };
        let most = if self.random.one_in(2) { 30 } else { 1_000_000 };
        for _ in 0..count {
            all.push(self.random.below(most).to_string().into_bytes());
        }
        if self.random.one_in(10) {
            all.push(self.value());
        }
        all
    }

    fn sketches_after(&mut self, name: &str) -> Words {
        let mut all = words(&[name.as_bytes()]);
        for _ in 0..=[0, 0, 1, 2][self.random.below(4) as usize] {
            all.push(self.key_of("hll"));
        }
        all
    }
}
