//! Sorted sets. What is picked at random must not change anything, or the two servers would go apart. Scores are few, so that they
//! meet; a comparison by members is asked of sets whose scores mostly differ too, but only small ones have an answer then.

use super::{Compare, Dialect, Grammar, Words, words};
use crate::vocabulary::{FLOATS, NOT_FLOATS};

impl Grammar {
    pub(super) fn sorted_set(&mut self) -> (Words, Compare) {
        let key = self.key_of("zset");
        let all = match self.random.below(40) {
            0..7 => self.zadd(key),
            7 => self.many_scored(key),
            8 => words(&[b"ZINCRBY", &key, &self.score(), &self.scored_member()]),
            9 | 10 => self.scored_members_after(words(&[b"ZREM", &key])),
            11 => words(&[b"ZCARD", &key]),
            12 => words(&[b"ZSCORE", &key, &self.scored_member()]),
            13 => self.scored_members_after(words(&[b"ZMSCORE", &key])),
            14 | 15 => self.zrank(key),
            16 => words(&[b"ZCOUNT", &key, &self.score_end(), &self.score_end()]),
            17 => words(&[b"ZLEXCOUNT", b"zsame", &self.member_end(), &self.member_end()]),
            18..23 => self.zrange(key),
            23 => self.zrangestore(key),
            24 => words(&[b"ZREMRANGEBYRANK", &key, &self.rank(), &self.rank()]),
            25 => words(&[b"ZREMRANGEBYSCORE", &key, &self.score_end(), &self.score_end()]),
            26 => words(&[b"ZREMRANGEBYLEX", b"zsame", &self.member_end(), &self.member_end()]),
            27 | 28 => self.zpop(key),
            29 => self.zmpop(),
            30..35 => self.combined(),
            35 => return self.random_members(key),
            36 => return self.zscan(key),
            37 => self.zadd_same(),
            38 => words(&[b"OBJECT", b"ENCODING", &key]),
            _ => words(&[self.from(&["DEL", "TYPE", "EXISTS"]).as_slice(), &key]),
        };
        (all, Compare::Bytes)
    }

    fn score(&mut self) -> Vec<u8> {
        match self.random.below(16) {
            0 => self.from(FLOATS),
            1 => self.from(&["inf", "-inf", "+inf", "0x10", "1e300", "5e22", "-0"]),
            2 if self.random.one_in(3) => self.from(NOT_FLOATS),
            3 => format!("{}.{}", self.random.below(1000), self.random.below(1_000_000_000)).into_bytes(),
            4..8 => (self.random.below(2000) as i64 - 1000).to_string().into_bytes(),
            _ => self.random.below(5).to_string().into_bytes(),
        }
    }

    fn scored_member(&mut self) -> Vec<u8> {
        match self.random.below(10) {
            0..4 => self.random.below(15).to_string().into_bytes(),
            4..8 => self.from(&["a", "b", "c", "d", "e", "", "07", "-0", "a\r\n"]),
            8 => self.from(&["x".repeat(64).as_str(), "x".repeat(65).as_str()]),
            _ => self.value(),
        }
    }

    fn scored_members_after(&mut self, mut all: Words) -> Words {
        for _ in 0..=self.random.below(4) {
            all.push(self.scored_member());
        }
        all
    }

    fn zadd(&mut self, key: Vec<u8>) -> Words {
        let mut all = words(&[b"ZADD", &key]);
        while self.random.one_in(3) {
            all.push(self.from(&["NX", "XX", "GT", "LT", "CH", "CH", "INCR"]));
        }
        for _ in 0..=self.random.below(5) {
            all.push(self.score());
            all.push(self.scored_member());
        }
        self.mix_options(&mut all);
        all
    }

    /// Members of one score, which may be compared by their bytes however many there are.
    fn zadd_same(&mut self) -> Words {
        let mut all = words(&[b"ZADD", b"zsame"]);
        for _ in 0..=self.random.below(8) {
            all.push(b"0".to_vec());
            all.push(self.scored_member());
        }
        all
    }

    /// Around the size at which a sorted set changes its representation.
    fn many_scored(&mut self, key: Vec<u8>) -> Words {
        let mut all = words(&[b"ZADD", &key]);
        let count = [127, 128, 129, 300][self.random.below(4) as usize];
        for number in 0..count {
            all.push(((number * 7) % 50).to_string().into_bytes());
            all.push(number.to_string().into_bytes());
        }
        all
    }

    fn zrank(&mut self, key: Vec<u8>) -> Words {
        let mut all = words(&[&self.from(&["ZRANK", "ZREVRANK"]), &key, &self.scored_member()]);
        if self.random.one_in(2) {
            all.push(self.from(&["WITHSCORE", "WITHSCORE", "WITHSCORES"]));
        }
        self.mix_options(&mut all);
        all
    }

    fn rank(&mut self) -> Vec<u8> {
        match self.random.below(10) {
            0 => self.integer(),
            _ => (self.random.below(12) as i64 - 6).to_string().into_bytes(),
        }
    }

    fn score_end(&mut self) -> Vec<u8> {
        let open = if self.random.one_in(3) { "(" } else { "" };
        let score = match self.random.below(6) {
            0 => self.from(&["-inf", "+inf", "inf", "", "1e400", "-1e400", "1e-400", "nan", "0x1", " 1"]),
            _ => self.score(),
        };
        [open.as_bytes(), &score].concat()
    }

    fn member_end(&mut self) -> Vec<u8> {
        match self.random.below(6) {
            0 => b"-".to_vec(),
            1 => b"+".to_vec(),
            2 => self.from(&["", "-x", "+x", "a", "[", "("]),
            _ => [self.from(&["[", "("]), self.scored_member()].concat(),
        }
    }

    fn ends(&mut self, by: &str) -> (Vec<u8>, Vec<u8>) {
        match by {
            "BYSCORE" => (self.score_end(), self.score_end()),
            "BYLEX" => (self.member_end(), self.member_end()),
            _ => (self.rank(), self.rank()),
        }
    }

    fn limit(&mut self, all: &mut Words) {
        if self.random.one_in(3) {
            let number = ["0", "1", "2", "5", "-1", "-2", "x"];
            all.extend(words(&[b"LIMIT", &self.from(&number), &self.from(&number)]));
        }
    }

    fn zrange(&mut self, key: Vec<u8>) -> Words {
        let (name, by) = [
            ("ZRANGE", ""),
            ("ZRANGE", "BYSCORE"),
            ("ZRANGE", "BYLEX"),
            ("ZREVRANGE", ""),
            ("ZRANGEBYSCORE", "BYSCORE"),
            ("ZREVRANGEBYSCORE", "BYSCORE"),
            ("ZRANGEBYLEX", "BYLEX"),
            ("ZREVRANGEBYLEX", "BYLEX"),
        ][self.random.below(8) as usize];
        let key = if by == "BYLEX" { b"zsame".to_vec() } else { key };
        let (first, second) = self.ends(by);
        let mut all = words(&[name.as_bytes(), &key, &first, &second]);
        if name == "ZRANGE" && !by.is_empty() {
            all.push(by.into());
        }
        if name == "ZRANGE" && self.random.one_in(2) {
            all.push(b"REV".to_vec());
        }
        self.limit(&mut all);
        if self.random.one_in(2) {
            all.push(b"WITHSCORES".to_vec());
        }
        self.mix_options(&mut all);
        all
    }

    fn zrangestore(&mut self, key: Vec<u8>) -> Words {
        let by = ["", "BYSCORE"][self.random.below(2) as usize];
        let (first, second) = self.ends(by);
        let mut all = words(&[b"ZRANGESTORE", &key, &self.key_of("zset"), &first, &second]);
        if !by.is_empty() {
            all.push(by.into());
            self.limit(&mut all);
        }
        if self.random.one_in(3) {
            all.push(self.from(&["REV", "REV", "WITHSCORES"]));
        }
        all
    }

    fn zpop(&mut self, key: Vec<u8>) -> Words {
        let name = self.from(&["ZPOPMIN", "ZPOPMAX"]);
        let mut all = words(&[&name, &key]);
        if self.random.one_in(2) {
            all.push(self.from(&["0", "1", "2", "5", "1000", "-1", "x"]));
        }
        all
    }

    fn zmpop(&mut self) -> Words {
        let mut all = self.numbered(words(&[b"ZMPOP"]));
        all.push(self.from(&["MIN", "MAX", "MIN", "MAX", "x"]));
        if self.random.one_in(2) {
            all.extend(words(&[b"COUNT", &self.from(&["1", "2", "10", "0", "x"])]));
        }
        all
    }

    /// A number and so many keys, of sorted sets and sometimes of a set.
    fn numbered(&mut self, mut all: Words) -> Words {
        let count = 1 + self.random.below(3);
        all.push(count.to_string().into_bytes());
        if self.random.one_in(15) {
            let last = all.len() - 1;
            all[last] = self.integer_or_not();
        }
        for _ in 0..count {
            let key = if self.random.one_in(6) { self.key_of("set") } else { self.key_of("zset") };
            all.push(key);
        }
        all
    }

    fn combined(&mut self) -> Words {
        let name = self.from(&["ZUNION", "ZINTER", "ZDIFF", "ZUNIONSTORE", "ZINTERSTORE", "ZDIFFSTORE", "ZINTERCARD"]);
        let mut all = words(&[&name]);
        if name.ends_with(b"STORE") {
            all.push(self.key_of("zset"));
        }
        let begin = all.len();
        let mut all = self.numbered(all);
        let keys = all.len() - begin - 1;
        if self.random.one_in(3) && name != b"ZINTERCARD" {
            all.push(b"WEIGHTS".to_vec());
            for _ in 0..keys {
                all.push(self.from(&["1", "2", "-1", "0", "0.5", "inf", "10", "x"]));
            }
        }
        if self.random.one_in(3) {
            all.extend(words(&[b"AGGREGATE", &self.from(&["SUM", "MIN", "MAX", "MIN", "MAX", "x"])]));
        }
        if self.random.one_in(2) && !name.ends_with(b"STORE") {
            all.push(b"WITHSCORES".to_vec());
        }
        if name == b"ZINTERCARD" && self.random.one_in(2) {
            all.extend(words(&[b"LIMIT", &self.from(&["0", "1", "3", "-1", "x"])]));
        }
        self.mix_options(&mut all);
        all
    }

    fn random_members(&mut self, key: Vec<u8>) -> (Words, Compare) {
        let mut all = words(&[b"ZRANDMEMBER", &key]);
        if self.random.one_in(3) {
            all.push(self.from(&["0", "1000", "9223372036854775807", "x", "-9223372036854775808"]));
            return (all, Compare::AnyOrder);
        }
        // Always with a count, so that a damaged command has one word too many and not a count of millions.
        all.push(self.from(&["1", "-3", "-20", "2"]));
        (all, Compare::Presence)
    }

    fn zscan(&mut self, key: Vec<u8>) -> (Words, Compare) {
        let mut all = words(&[b"ZSCAN", &key, &self.from(&["0", "0", "0", "x", "-1"])]);
        all.extend(self.scan_options());
        self.mix_options(&mut all);
        (all, Compare::Presence)
    }

    pub(super) fn sorted_set_810(&mut self) -> Words {
        debug_assert!(self.dialect == Dialect::Redis810);
        if self.random.one_in(2) {
            let key = self.key_of("zset");
            return self.zadd(key);
        }
        let name = self.from(&["ZUNION", "ZINTER"]);
        let mut all = self.numbered(words(&[&name]));
        all.extend(words(&[b"AGGREGATE", b"COUNT", b"WITHSCORES"]));
        all
    }
}
