//! Hashes and the expiry of their fields. Long values and many fields at once make tables; times are over or far away.

use super::{Compare, Grammar, Words, words};
use crate::vocabulary::{MILLISECONDS_AT, NOT_INTEGERS, PATTERNS, SECONDS_AT};

/// Few fields, so that commands meet.
const FIELDS: &[&str] = &["f", "f", "g", "g", "h", "i", "j", "1", "2", "-1", "01", "", "\0\u{ff}", "field:with:a:name"];

impl Grammar {
    pub(super) fn hash(&mut self) -> (Words, Compare) {
        let key = self.key_of("h");
        let field = self.field();
        let all = match self.random.below(32) {
            0..4 => self.hash_pairs(key),
            4 => words(&[b"HSETNX", &key, &field, &self.hash_value()]),
            5 | 6 => words(&[b"HGET", &key, &field]),
            7 => self.hash_fields(words(&[b"HMGET", &key])),
            8 => return (words(&[b"HGETALL", &key]), Compare::AnyOrder),
            9 => return (words(&[self.from(&["HKEYS", "HVALS"]).as_slice(), &key]), Compare::AnyOrder),
            10 => words(&[b"HLEN", &key]),
            11 => words(&[self.from(&["HSTRLEN", "HEXISTS"]).as_slice(), &key, &field]),
            12 | 13 => self.hash_fields(words(&[b"HDEL", &key])),
            14 | 15 => words(&[b"HINCRBY", &key, &field, &self.integer()]),
            16 => words(&[b"HINCRBYFLOAT", &key, &field, &self.float()]),
            17 => return self.hash_random(key),
            18 => return self.hash_scan(key),
            19 => words(&[b"OBJECT", b"ENCODING", &key]),
            20..24 => self.hash_expire(key),
            24 => self.field_list(words(&[b"HPERSIST", &key])),
            25 => self.field_list(words(&[b"HGETDEL", &key])),
            26 => self.hash_getex(key),
            27 | 28 => self.hash_setex(key),
            which => return self.hash_ttl(key, which),
        };
        (all, Compare::Bytes)
    }

    fn field(&mut self) -> Vec<u8> {
        match self.random.below(200) {
            0 => vec![b'f'; 65],
            _ => self.from(FIELDS),
        }
    }

    fn hash_value(&mut self) -> Vec<u8> {
        match self.random.below(200) {
            0 => vec![b'v'; 65],
            1 => vec![b'v'; 64],
            _ => self.value(),
        }
    }

    fn hash_pairs(&mut self, key: Vec<u8>) -> Words {
        let mut all = words(&[self.from(&["HSET", "HSET", "HSET", "HMSET"]).as_slice(), &key]);
        for _ in 0..=self.random.below(5) {
            all.push(self.field());
            all.push(self.hash_value());
        }
        if self.random.one_in(30) {
            all.pop();
        }
        if self.random.one_in(400) {
            for field in 0..513 {
                all.push(format!("many{field}").into_bytes());
                all.push(self.hash_value());
            }
        }
        all
    }

    fn hash_fields(&mut self, mut all: Words) -> Words {
        for _ in 0..=self.random.below(4) {
            all.push(self.field());
        }
        all
    }

    /// `FIELDS numfields field ...`, now and then with another count.
    fn field_list(&mut self, mut all: Words) -> Words {
        let count = 1 + self.random.below(3);
        all.push(self.from(&["FIELDS", "FIELDS", "FIELDS", "FIELDS", "fields", "Fields", "FIELD"]));
        all.push(match self.random.below(15) {
            0 => self.integer(),
            1 => self.from(NOT_INTEGERS),
            _ => count.to_string().into_bytes(),
        });
        for _ in 0..count {
            all.push(self.field());
        }
        all
    }

    fn hash_expire(&mut self, key: Vec<u8>) -> Words {
        let (name, at) = match self.random.below(4) {
            0 => ("HEXPIRE", self.span()),
            1 => ("HPEXPIRE", self.milliseconds_span()),
            2 => ("HEXPIREAT", self.from(SECONDS_AT)),
            _ => ("HPEXPIREAT", self.milliseconds_at()),
        };
        let mut all = words(&[name.as_bytes(), &key, &at]);
        if self.random.one_in(2) {
            all.push(self.from(&["NX", "XX", "GT", "LT", "gt", "lt", "N", ""]));
        }
        self.field_list(all)
    }

    fn milliseconds_at(&mut self) -> Vec<u8> {
        match self.random.below(3) {
            0 => self.from(MILLISECONDS_AT),
            1 => self.from(&["70368744177663", "70368744177664"]),
            _ => self.from(&["50000000000000", "50000000000001", "50000000000999", "50000000001000"]),
        }
    }

    fn field_expiry(&mut self, all: &mut Words) {
        let (word, at) = match self.random.below(4) {
            0 => ("EX", self.span()),
            1 => ("PX", self.milliseconds_span()),
            2 => ("EXAT", self.from(SECONDS_AT)),
            _ => ("PXAT", self.milliseconds_at()),
        };
        all.extend(words(&[word.as_bytes(), &at]));
    }

    fn hash_getex(&mut self, key: Vec<u8>) -> Words {
        let mut all = words(&[b"HGETEX", &key]);
        match self.random.below(8) {
            0 => {}
            1 | 2 => all.push(self.from(&["PERSIST", "persist", "KEEPTTL"])),
            _ => self.field_expiry(&mut all),
        }
        self.field_list(all)
    }

    fn hash_setex(&mut self, key: Vec<u8>) -> Words {
        let mut all = words(&[b"HSETEX", &key]);
        for _ in 0..self.random.below(3) {
            match self.random.below(4) {
                0 => all.push(self.from(&["FNX", "FXX", "fnx", "fxx", "NX"])),
                1 => all.push(self.from(&["KEEPTTL", "keepttl", "PERSIST"])),
                _ => self.field_expiry(&mut all),
            }
        }
        let count = 1 + self.random.below(3);
        all.push(b"FIELDS".to_vec());
        all.push(if self.random.one_in(15) { self.integer() } else { count.to_string().into_bytes() });
        for _ in 0..count {
            all.push(self.field());
            all.push(self.hash_value());
        }
        all
    }

    fn hash_ttl(&mut self, key: Vec<u8>, which: u64) -> (Words, Compare) {
        let (name, compare) = match which {
            29 => ("HTTL", Compare::Seconds),
            30 => ("HPTTL", Compare::Milliseconds),
            _ if self.random.one_in(2) => ("HEXPIRETIME", Compare::Seconds),
            _ => ("HPEXPIRETIME", Compare::Milliseconds),
        };
        (self.field_list(words(&[name.as_bytes(), &key])), compare)
    }

    /// Never many with repetition: the oracle would send them all.
    fn hash_random(&mut self, key: Vec<u8>) -> (Words, Compare) {
        let mut all = words(&[b"HRANDFIELD", &key]);
        let which = self.random.below(8);
        match which {
            0 => return (all, Compare::Presence),
            1 => all.push(self.from(NOT_INTEGERS)),
            2 => all.push(self.from(&["0", "1", "2", "-1", "-3", "-10", "-9223372036854775808"])),
            _ => all.push(self.from(&["1000", "9223372036854775807", "4611686018427387903", "4611686018427387904"])),
        }
        if self.random.one_in(3) {
            all.push(self.from(&["WITHVALUES", "withvalues", "WITHVALUES", "WITHSCORES"]));
        }
        (all, if which == 2 { Compare::Presence } else { Compare::AnyOrder })
    }

    fn hash_scan(&mut self, key: Vec<u8>) -> (Words, Compare) {
        let mut all = words(&[b"HSCAN", &key, &self.from(&["0", "0", "0", "5", "x", "-1", ""])]);
        for _ in 0..self.random.below(3) {
            match self.random.below(4) {
                0 => all.push(b"NOVALUES".to_vec()),
                1 => all.extend(words(&[b"MATCH", &self.from(PATTERNS)])),
                2 => all.extend(words(&[b"COUNT", &self.from(&["1", "10", "1000", "0", "x"])])),
                _ => all.push(self.from(&["TYPE", "x", "novalues"])),
            }
        }
        (all, Compare::Presence)
    }
}
