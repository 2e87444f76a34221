//! Lists and SORT. Some elements are so long that a few of them fill a node, some are longer than one, and `OBJECT ENCODING` asks
//! often, so that nodes have to come and go as they do in Redis.

use super::{Compare, Grammar, Words, words};
use crate::vocabulary::NOT_INTEGERS;

impl Grammar {
    pub(super) fn list(&mut self) -> (Words, Compare) {
        (self.list_words(), Compare::Bytes)
    }

    fn list_words(&mut self) -> Words {
        let (key, other) = (self.key_of("lst"), self.key_of("lst"));
        let (from, to) = (self.end(), self.end());
        match self.random.below(32) {
            0..5 => self.list_push(key),
            5..7 => self.list_pop(key),
            7 => words(&[b"LLEN", &key]),
            8..10 => words(&[b"LINDEX", &key, &self.index()]),
            10..12 => words(&[b"LRANGE", &key, &self.index(), &self.index()]),
            12..14 => words(&[b"LSET", &key, &self.small_index(), &self.element()]),
            14 => self.list_trim(key),
            15..17 => words(&[b"LREM", &key, &self.list_count(), &self.element()]),
            17..20 => {
                let side = self.from(&["BEFORE", "AFTER", "BEFORE", "AFTER", "BESIDE"]);
                words(&[b"LINSERT", &key, &side, &self.element(), &self.element()])
            }
            20..22 => self.lpos(key),
            22 | 23 => words(&[b"LMOVE", &key, &other, &from, &to]),
            24 => words(&[b"RPOPLPUSH", &key, &other]),
            25 | 26 => self.lmpop(),
            27..29 => words(&[b"OBJECT", b"ENCODING", &key]),
            29 => words(&[b"RPUSH", &self.key_of("num"), &self.number(), &self.number(), &self.number()]),
            _ => self.sort(),
        }
    }

    fn end(&mut self) -> Vec<u8> {
        if self.random.one_in(20) { self.value() } else { self.from(&["LEFT", "RIGHT", "left", "Right"]) }
    }

    fn index(&mut self) -> Vec<u8> {
        if self.random.one_in(12) { self.integer() } else { self.small_index() }
    }

    /// Of an index that LSET does not find, Redis takes the lowest 32 bits.
    fn small_index(&mut self) -> Vec<u8> {
        match self.random.below(30) {
            0 => self.from(NOT_INTEGERS),
            _ => (self.random.below(30) as i64 - 15).to_string().into_bytes(),
        }
    }

    fn list_count(&mut self) -> Vec<u8> {
        match self.random.below(12) {
            0 => self.integer(),
            1..4 => b"0".to_vec(),
            _ => (self.random.below(9) as i64 - 4).to_string().into_bytes(),
        }
    }

    /// Few different ones, so that they are found.
    fn element(&mut self) -> Vec<u8> {
        match self.random.below(16) {
            0 => self.value(),
            1..6 => self.from(&["1", "2", "3", "-1", "127", "5000", "9223372036854775807"]),
            6..11 => self.from(&["a", "b", "c", "", "01", "-0"]),
            11..14 => self.long_element(&[500, 1000, 2000, 2600]),
            14 => self.long_element(&[4000, 4080, 8000, 8170]),
            _ => self.long_element(&[8192, 8193, 9000]),
        }
    }

    fn long_element(&mut self, lengths: &[usize]) -> Vec<u8> {
        let length = lengths[self.random.below(lengths.len() as u64) as usize];
        vec![if self.random.one_in(2) { b'x' } else { b'y' }; length]
    }

    fn list_push(&mut self, key: Vec<u8>) -> Words {
        let mut all = words(&[&self.from(&["LPUSH", "RPUSH", "LPUSH", "RPUSH", "LPUSHX", "RPUSHX"]), &key]);
        for _ in 0..=self.random.below(8) {
            all.push(self.element());
        }
        all
    }

    fn list_pop(&mut self, key: Vec<u8>) -> Words {
        let mut all = words(&[&self.from(&["LPOP", "RPOP"]), &key]);
        if self.random.one_in(2) {
            all.push(if self.random.one_in(8) { self.integer() } else { self.from(&["0", "1", "2", "5", "20"]) });
        }
        all
    }

    /// Mostly a few elements off an end: lists should live for a while.
    fn list_trim(&mut self, key: Vec<u8>) -> Words {
        match self.random.below(4) {
            0 => words(&[b"LTRIM", &key, &self.index(), &self.index()]),
            _ => words(&[b"LTRIM", &key, &self.from(&["0", "1", "2"]), &self.from(&["-1", "-2", "-3", "30"])]),
        }
    }

    fn lpos(&mut self, key: Vec<u8>) -> Words {
        let mut all = words(&[b"LPOS", &key, &self.element()]);
        for _ in 0..self.random.below(3) {
            all.push(self.from(&["RANK", "COUNT", "MAXLEN", "COUNT", "LEN"]));
            all.push(self.list_count());
        }
        self.mix_options(&mut all);
        all
    }

    fn lmpop(&mut self) -> Words {
        let keys = 1 + self.random.below(3);
        let count = if self.random.one_in(12) { self.integer() } else { keys.to_string().into_bytes() };
        let mut all = words(&[b"LMPOP", &count]);
        for _ in 0..keys {
            all.push(self.key_of("lst"));
        }
        all.push(self.end());
        for _ in 0..self.random.below(8) / 5 {
            all.extend(words(&[b"COUNT", &self.list_count()]));
        }
        all
    }

    fn number(&mut self) -> Vec<u8> {
        if self.random.one_in(20) { self.float() } else { self.from(&["1", "2", "3", "10", "-1", "1.5", "2e3", "007"]) }
    }

    /// Texts by BY are left out: what compares equal there stands in no order in Redis.
    fn sort(&mut self) -> Words {
        // Not any key: SORT unpacks a sorted set in Redis, and here it does not.
        let prefix = if self.random.one_in(4) { "lst" } else { "num" };
        let key = format!("{prefix}{}", 1 + self.random.below(3)).into_bytes();
        let mut all = words(&[&self.from(&["SORT", "SORT", "SORT", "SORT_RO"]), &key]);
        if self.random.one_in(3) {
            all.push(b"ALPHA".to_vec());
        } else if self.random.one_in(2) {
            all.extend(words(&[b"BY", &self.from(&["s*", "none*", "nosort", "#", "h*->f", "*", "s*->f", "num*"])]));
        }
        for _ in 0..self.random.below(4) {
            match self.random.below(5) {
                0 => all.extend(words(&[b"GET", &self.from(&["#", "s*", "none*", "h*->f", "nostar", "*", "s1"])])),
                1 => all.extend(words(&[b"LIMIT", &self.index(), &self.list_count()])),
                2 => all.push(b"DESC".to_vec()),
                3 => all.push(b"ASC".to_vec()),
                _ => all.extend(words(&[b"STORE", &self.key_of("num")])),
            }
        }
        self.mix_case(&mut all[0]);
        all
    }

    /// What Redis 8.10 adds.
    pub(super) fn lmovem(&mut self) -> Words {
        if self.random.one_in(3) {
            let key = self.key_of("lst");
            return if self.random.one_in(4) { words(&[b"LRANGE", &key, b"0", b"-1"]) } else { self.list_push(key) };
        }
        let mut all = words(&[b"LMOVEM", &self.key_of("lst"), &self.key_of("lst"), &self.end(), &self.end()]);
        if !self.random.one_in(4) {
            all.push(self.from(&["COUNT", "EXACTLY", "COUNT", "EXACTLY", "ALL"]));
            all.push(self.list_count());
            all.push(self.from(&["OBO", "BULK", "OBO", "BULK", "ALL"]));
        }
        if self.random.one_in(4) {
            all[0] = b"BLMOVEM".to_vec();
            all.insert(5, self.from(&["0.001", "0.001", "0.001", "-1", "x"]));
        }
        all
    }
}
