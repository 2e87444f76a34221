//! Sets. What is picked at random must not change anything, or the two servers would go apart: SPOP takes nothing or all.

use super::{Compare, Grammar, Words, words};

impl Grammar {
    pub(super) fn set_group(&mut self) -> (Words, Compare) {
        let key = self.key_of("set");
        let all = match self.random.below(32) {
            0..6 => self.members_after(words(&[b"SADD", &key])),
            6..9 => self.members_after(words(&[b"SREM", &key])),
            9 => self.many_members(key),
            10 => words(&[b"SCARD", &key]),
            11 => words(&[b"SISMEMBER", &key, &self.member()]),
            12 => self.members_after(words(&[b"SMISMEMBER", &key])),
            13..15 => return (words(&[b"SMEMBERS", &key]), Compare::AnyOrder),
            15 | 16 => words(&[b"SMOVE", &key, &self.key_of("set"), &self.member()]),
            17..20 => {
                let name = self.from(&["SINTER", "SUNION", "SDIFF"]);
                return (self.sets_after(words(&[&name])), Compare::AnyOrder);
            }
            20..25 => {
                let name = self.from(&["SINTERSTORE", "SUNIONSTORE", "SDIFFSTORE"]);
                self.sets_after(words(&[&name, &key]))
            }
            25 => self.counting("SINTERCARD"),
            26 | 27 => words(&[b"OBJECT", b"ENCODING", &key]),
            28 => return self.all_at_random(key),
            29 => return self.some_at_random(key),
            30 => return self.sscan(key),
            _ => words(&[self.from(&["DEL", "TYPE", "EXISTS"]).as_slice(), &key]),
        };
        (all, Compare::Bytes)
    }

    pub(super) fn set_810(&mut self) -> Words {
        match self.random.below(4) {
            0 => {
                let key = self.key_of("set");
                self.members_after(words(&[b"SADD", &key]))
            }
            1 | 2 => self.counting("SDIFFCARD"),
            _ => self.counting("SUNIONCARD"),
        }
    }

    fn member(&mut self) -> Vec<u8> {
        match self.random.below(10) {
            0..4 => self.random.below(12).to_string().into_bytes(),
            4..7 => self.from(&["a", "b", "c", "d", "", "07", "-0", "+1", "a\r\n"]),
            7 => self.from(&["x".repeat(64).as_str(), "x".repeat(65).as_str()]),
            _ => self.value(),
        }
    }

    fn members_after(&mut self, mut all: Words) -> Words {
        for _ in 0..=self.random.below(5) {
            all.push(self.member());
        }
        all
    }

    /// Around the sizes at which a set changes its representation.
    fn many_members(&mut self, key: Vec<u8>) -> Words {
        let mut all = words(&[b"SADD", &key]);
        let prefix = self.from(&["", "", "m"]);
        let count = [127, 128, 129, 511, 512, 513][self.random.below(if prefix.is_empty() { 6 } else { 3 }) as usize];
        all.extend((0..count).map(|number: u32| [&prefix[..], number.to_string().as_bytes()].concat()));
        all
    }

    fn sets_after(&mut self, mut all: Words) -> Words {
        for _ in 0..=self.random.below(5) {
            all.push(self.key_of("set"));
        }
        all
    }

    fn counting(&mut self, name: &str) -> Words {
        let mut all = self.sets_after(words(&[name.as_bytes(), b""]));
        all[1] = (all.len() - 2).to_string().into_bytes();
        if self.random.one_in(10) {
            all[1] = self.integer_or_not();
        }
        if self.random.one_in(2) {
            all.extend(words(&[b"LIMIT", &self.from(&["0", "1", "3", "100", "-1", "x"])]));
        }
        if name == "SUNIONCARD" && self.random.one_in(8) {
            all.push(b"APPROX".to_vec());
        }
        self.mix_options(&mut all);
        all
    }

    fn all_at_random(&mut self, key: Vec<u8>) -> (Words, Compare) {
        let name = self.from(&["SPOP", "SRANDMEMBER", "SRANDMEMBER"]);
        let count =
            self.from(&["0", "1000", "9223372036854775807", "9223372036854775808", "x", "-9223372036854775808"]);
        (words(&[&name, &key, &count]), Compare::AnyOrder)
    }

    fn some_at_random(&mut self, key: Vec<u8>) -> (Words, Compare) {
        let mut all = words(&[b"SRANDMEMBER", &key]);
        if self.random.one_in(2) {
            all.push(self.from(&["1", "-3", "-20", "2"]));
        }
        (all, Compare::Presence)
    }

    fn sscan(&mut self, key: Vec<u8>) -> (Words, Compare) {
        let mut all = words(&[b"SSCAN", &key, &self.from(&["0", "0", "0", "x", "-1"])]);
        all.extend(self.scan_options());
        self.mix_options(&mut all);
        (all, Compare::Presence)
    }
}
