//! One function for each group of commands: a random one of them, well formed or nearly so.

use super::{Compare, Grammar, Words, value_of, words};
use crate::vocabulary::{MILLISECONDS_AT, NOT_INTEGERS, PATTERNS, SECONDS_AT};

impl Grammar {
    /// Enough of the old commands to give the new ones something to meet.
    pub(super) fn basic(&mut self) -> Words {
        let (key, value) = (self.key(), self.value());
        match self.random.below(7) {
            0..3 => words(&[b"SET", &key, &value]),
            3 => words(&[b"SET", &key, &value, b"EXAT", b"99999999999"]),
            4 => words(&[b"GET", &key]),
            5 => words(&[b"EXPIRETIME", &key]),
            _ => words(&[b"DEL", &key]),
        }
    }

    pub(super) fn string(&mut self) -> (Words, Compare) {
        (self.string_words(), Compare::Bytes)
    }

    fn string_words(&mut self) -> Words {
        let (key, other, value) = (self.key_of("s"), self.key_of("s"), self.value());
        match self.random.below(26) {
            0..5 => self.set(),
            5 | 6 => words(&[b"GET", &key]),
            7 => words(&[b"SETNX", &key, &value]),
            8 => words(&[self.random.pick(&["SETEX", "PSETEX"]).as_bytes(), &key, &self.span(), &value]),
            9 => words(&[self.random.pick(&["GETSET", "APPEND", "APPEND"]).as_bytes(), &key, &value]),
            10 => words(&[b"GETDEL", &key]),
            11 | 12 => self.getex(),
            13 => {
                words(&[self.random.pick(&["GETRANGE", "SUBSTR"]).as_bytes(), &key, &self.integer(), &self.integer()])
            }
            14 => words(&[b"SETRANGE", &key, &self.offset(), &value]),
            15 => words(&[b"STRLEN", &key]),
            16 | 17 => words(&[self.random.pick(&["INCR", "DECR"]).as_bytes(), &key]),
            18 | 19 => words(&[self.random.pick(&["INCRBY", "DECRBY"]).as_bytes(), &key, &self.integer()]),
            20 | 21 => words(&[b"INCRBYFLOAT", &key, &self.float()]),
            22 => self.keys_after("MGET"),
            23 => self.pairs_after("MSET"),
            24 => self.pairs_after("MSETNX"),
            _ => self.lcs(key, other),
        }
    }

    fn set(&mut self) -> Words {
        let mut all = words(&[b"SET", &self.key_of("s"), &self.value()]);
        for _ in 0..self.random.below(3) {
            match self.random.below(7) {
                0 => all.push(b"NX".to_vec()),
                1 => all.push(b"XX".to_vec()),
                2 => all.push(b"GET".to_vec()),
                3 => all.push(b"KEEPTTL".to_vec()),
                _ => self.expiry_option(&mut all),
            }
        }
        self.mix_options(&mut all);
        all
    }

    fn getex(&mut self) -> Words {
        let mut all = words(&[b"GETEX", &self.key_of("s")]);
        match self.random.below(4) {
            0 => {}
            1 => all.push(b"PERSIST".to_vec()),
            _ => self.expiry_option(&mut all),
        }
        self.mix_options(&mut all);
        all
    }

    fn expiry_option(&mut self, all: &mut Words) {
        let (word, at) = match self.random.below(4) {
            0 => ("EX", self.span()),
            1 => ("PX", self.milliseconds_span()),
            2 => ("EXAT", self.from(SECONDS_AT)),
            _ => ("PXAT", self.from(MILLISECONDS_AT)),
        };
        all.push(word.into());
        all.push(at);
    }

    fn lcs(&mut self, key: Vec<u8>, other: Vec<u8>) -> Words {
        let mut all = words(&[b"LCS", &key, &other]);
        for word in ["LEN", "IDX", "WITHMATCHLEN"] {
            if self.random.one_in(3) {
                all.push(word.into());
            }
        }
        if self.random.one_in(3) {
            all.extend(words(&[b"MINMATCHLEN", &self.integer()]));
        }
        self.mix_options(&mut all);
        all
    }

    pub(super) fn generic(&mut self) -> (Words, Compare) {
        let (key, other, db) = (self.key(), self.key(), self.database());
        let all = match self.random.below(20) {
            0..3 => self.keys_after(self.random.clone().pick(&["DEL", "UNLINK", "EXISTS", "TOUCH"])),
            3 => words(&[b"TYPE", &key]),
            4 | 5 => self.copy(key, other, db),
            6 => words(&[b"RENAME", &key, &other]),
            7 => words(&[b"RENAMENX", &key, &other]),
            8 => words(&[b"MOVE", &key, &db]),
            9 => return (words(&[b"KEYS", &self.from(PATTERNS)]), Compare::AnyOrder),
            10 => return (words(&[b"RANDOMKEY"]), Compare::Presence),
            11 | 12 => words(&[b"DBSIZE"]),
            13 => words(&[b"SWAPDB", &db, &self.database()]),
            14 if self.random.one_in(8) => words(&[b"FLUSHALL"]),
            14 if self.random.one_in(4) => words(&[b"FLUSHDB", self.random.pick(&["SYNC", "ASYNC", "x"]).as_bytes()]),
            // Not REFCOUNT: in a transaction the oracle counts its queue's arguments as well.
            15 => words(&[b"OBJECT", self.random.pick(&["ENCODING", "FREQ", "x"]).as_bytes(), &key]),
            16 => {
                let all = words(&[b"SCAN", &self.from(NOT_INTEGERS), b"COUNT", &self.integer()]);
                return (all, Compare::Presence);
            }
            17 => words(&[b"RESTORE", &key, &self.span(), &value_of("\0\u{3}abc\u{b}\0")]),
            _ => words(&[b"SELECT", &db]),
        };
        (all, Compare::Bytes)
    }

    fn copy(&mut self, key: Vec<u8>, other: Vec<u8>, db: Vec<u8>) -> Words {
        let mut all = words(&[b"COPY", &key, &other]);
        if self.random.one_in(2) {
            all.extend(words(&[b"DB", &db]));
        }
        if self.random.one_in(2) {
            all.push(b"REPLACE".to_vec());
        }
        self.mix_options(&mut all);
        all
    }

    pub(super) fn expiry(&mut self) -> (Words, Compare) {
        let key = self.key();
        let mut all = match self.random.below(9) {
            0 => words(&[b"EXPIRE", &key, &self.span()]),
            1 => words(&[b"PEXPIRE", &key, &self.milliseconds_span()]),
            2 | 3 => words(&[b"EXPIREAT", &key, &self.from(SECONDS_AT)]),
            4 => words(&[b"PEXPIREAT", &key, &self.from(MILLISECONDS_AT)]),
            5 => return (words(&[b"PERSIST", &key]), Compare::Bytes),
            6 => return (words(&[self.random.pick(&["TTL", "EXPIRETIME"]).as_bytes(), &key]), Compare::Seconds),
            7 => return (words(&[self.random.pick(&["PTTL", "PEXPIRETIME"]).as_bytes(), &key]), Compare::Milliseconds),
            _ => words(&[b"EXPIRE", &key, &self.integer_or_not()]),
        };
        for _ in 0..self.random.below(3) {
            all.push(self.from(&["NX", "XX", "GT", "LT", "FOO"]));
        }
        self.mix_options(&mut all);
        (all, Compare::Bytes)
    }

    pub(super) fn transaction(&mut self) -> (Words, Compare) {
        let queueing = self.queueing[self.client];
        let all = match self.random.below(10) {
            0..4 if queueing => words(&[b"EXEC"]),
            0..4 => words(&[b"MULTI"]),
            4 => words(&[b"DISCARD"]),
            5 | 6 => self.keys_after("WATCH"),
            7 => words(&[b"UNWATCH"]),
            8 => words(&[b"EXEC"]),
            9 if self.random.one_in(10) => words(&[b"RESET"]),
            _ => words(&[b"MULTI"]),
        };
        (all, Compare::Bytes)
    }

    pub(super) fn server(&mut self) -> (Words, Compare) {
        let all = match self.random.below(8) {
            0 => words(&[b"PING"]),
            1 => words(&[b"PING", &self.value()]),
            2 => words(&[b"ECHO", &self.value()]),
            3 => words(&[b"NoSuchCommand", &self.value(), &self.value()]),
            // Not "hello" alone, which is a command: it tells of modules and of the connection's number.
            4 => words(&[&self.from(&["world", "", "a b", "1", "\0\u{ff}"])]),
            5 => words(&[b"CLIENT", b"GETNAME"]),
            6 => words(&[b"CLIENT", b"SETNAME", &self.from(&["a", "b", "", "a b", "\n"])]),
            _ => {
                let mut all = words(&[b"COMMAND", b"GETKEYS"]);
                all.extend(self.string_words());
                all
            }
        };
        (all, Compare::Bytes)
    }

    pub(super) fn redis_810(&mut self) -> Words {
        let (key, value) = (self.key(), self.value());
        let mut all = match self.random.below(7) {
            5 | 6 => return self.lmovem(),
            0 => words(&[b"DIGEST", &key]),
            1 => self.compared(words(&[b"DELEX", &key])),
            2 => self.compared(words(&[b"SET", &key, &value])),
            3 => return self.msetex(),
            _ => return self.increx(key),
        };
        if all[0] == b"SET" && self.random.one_in(3) {
            self.expiry_option(&mut all);
        }
        self.mix_options(&mut all);
        all
    }

    fn compared(&mut self, mut all: Words) -> Words {
        match self.random.below(6) {
            0..4 => {
                all.push(self.from(&["IFEQ", "IFNE"]));
                all.push(self.value());
            }
            4 => {
                all.push(self.from(&["IFDEQ", "IFDNE"]));
                all.push(self.from(&["0000000000000000", "44bc2cf5ad770999", "78AF5F94892F3950", "abc", ""]));
            }
            _ => {}
        }
        all
    }

    fn msetex(&mut self) -> Words {
        let pairs = self.pairs_after("");
        let count = ((pairs.len() - 1) / 2).to_string().into_bytes();
        let count = if self.random.one_in(12) { self.integer_or_not() } else { count };
        let mut all = words(&[b"MSETEX", &count]);
        all.extend_from_slice(&pairs[1..]);
        for _ in 0..self.random.below(3) {
            match self.random.below(4) {
                0 => all.push(self.from(&["NX", "XX", "KEEPTTL"])),
                _ => self.expiry_option(&mut all),
            }
        }
        all
    }

    fn increx(&mut self, key: Vec<u8>) -> Words {
        let mut all = words(&[b"INCREX", &key]);
        let float = self.random.one_in(3);
        match self.random.below(4) {
            0 => {}
            _ if float => all.extend(words(&[b"BYFLOAT", &self.float()])),
            _ => all.extend(words(&[b"BYINT", &self.integer()])),
        }
        for bound in ["LBOUND", "UBOUND"] {
            if self.random.one_in(3) {
                all.push(bound.into());
                all.push(if float { self.float() } else { self.integer() });
            }
        }
        match self.random.below(6) {
            0 => all.push(b"SATURATE".to_vec()),
            1 => self.expiry_option(&mut all),
            2 => {
                self.expiry_option(&mut all);
                all.push(b"ENX".to_vec());
            }
            3 => all.push(b"PERSIST".to_vec()),
            _ => {}
        }
        all
    }
}
