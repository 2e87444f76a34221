//! Streams and consumer groups. Ids are given, so that both servers have the same; idle times are none or longer than any run.

use super::{Compare, Grammar, Words, words};
use crate::vocabulary::NOT_INTEGERS;

/// What is almost an id, or one of the ends.
const ODD_IDS: &[&str] = &[
    "0",
    "0-0",
    "-",
    "+",
    "$",
    ">",
    "5",
    "5-*",
    "(5-3",
    "(5",
    "(",
    "6-1",
    " 5-2",
    "+5-+2",
    "5--1",
    "5-",
    "-5",
    "05-02",
    "5-2\0",
    "18446744073709551615-18446744073709551615",
    "18446744073709551616",
    "(18446744073709551615-18446744073709551615",
    "(0-0",
    "",
    "abc",
];

impl Grammar {
    pub(super) fn stream(&mut self) -> (Words, Compare) {
        let all = match self.random.below(40) {
            0..10 => self.xadd(),
            10 => self.xtrim(),
            11 => words(&[b"XLEN", &self.stream_key()]),
            12..14 => self.xrange(),
            14 | 15 => self.xread(),
            16 => {
                let all = words(&[b"XDEL", &self.stream_key()]);
                self.ids_after(all)
            }
            17 => self.xsetid(),
            18 => {
                let all = words(&[b"XDELEX", &self.stream_key()]);
                self.counted_ids_after(all)
            }
            19 => {
                let all = words(&[b"XACKDEL", &self.stream_key(), &self.group()]);
                self.counted_ids_after(all)
            }
            20 => {
                let all = words(&[b"XACK", &self.stream_key(), &self.group()]);
                self.ids_after(all)
            }
            21..26 => self.xreadgroup(),
            26..30 => self.xgroup(),
            30 => self.xclaim(),
            31 => self.xautoclaim(),
            32..35 => return (self.xpending(), Compare::Moments),
            35 => words(&[b"XINFO", b"GROUPS", &self.stream_key()]),
            36 | 37 => return (self.xinfo(), Compare::Moments),
            38 => words(&[b"XRANGE", &self.stream_key(), b"-", b"+"]),
            _ => self.stream_as_a_value(),
        };
        (all, Compare::Bytes)
    }

    /// Streams under few keys, which no other type's commands make.
    fn own_stream_key(&mut self) -> Vec<u8> {
        self.from(&["x1", "x1", "x1", "x2", "x3"])
    }

    fn stream_key(&mut self) -> Vec<u8> {
        if self.random.one_in(12) { self.key() } else { self.own_stream_key() }
    }

    fn group(&mut self) -> Vec<u8> {
        self.from(&["g", "g", "g", "h", "h", "i"])
    }

    fn consumer(&mut self) -> Vec<u8> {
        self.from(&["c1", "c1", "c2", "c2", "c3", "Alice", ""])
    }

    fn id(&mut self) -> Vec<u8> {
        match self.random.below(12) {
            0 => self.from(ODD_IDS),
            1 => self.random.below(8).to_string().into_bytes(),
            _ => format!("5-{}", self.random.below(40)).into_bytes(),
        }
    }

    fn new_id(&mut self) -> Vec<u8> {
        match self.random.below(80) {
            0..8 => self.id(),
            8 => b"6-*".to_vec(),
            _ => b"5-*".to_vec(),
        }
    }

    fn count_option(&mut self, all: &mut Words) {
        if self.random.one_in(2) {
            let count = match self.random.below(10) {
                0 => self.integer_or_not(),
                1 => self.from(&["0", "-1"]),
                _ => (1 + self.random.below(6)).to_string().into_bytes(),
            };
            all.extend([b"COUNT".to_vec(), count]);
        }
    }

    /// What becomes of references. Redis 8.2.3 does not notice at once that a group which still had to be given entries is gone, and
    /// ACKED spares them: so no group goes but those of `x3`, whose entries nobody spares.
    fn references(&mut self, all: &mut Words) {
        if self.random.one_in(3) {
            let is_spared = all[1] != b"x3";
            all.push(self.from(if is_spared { &["KEEPREF", "DELREF", "ACKED"] } else { &["KEEPREF", "DELREF"] }));
        }
    }

    fn trim_options(&mut self, all: &mut Words) {
        let by_length = self.random.one_in(2);
        all.push(if by_length { b"MAXLEN".to_vec() } else { b"MINID".to_vec() });
        if self.random.one_in(2) {
            all.push(self.from(&["=", "~", "~"]));
        }
        all.push(match (self.random.below(10), by_length) {
            (0, true) => self.integer_or_not(),
            (_, true) => self.random.below(30).to_string().into_bytes(),
            (_, false) => self.id(),
        });
        if self.random.one_in(6) {
            all.extend([b"LIMIT".to_vec(), self.from(&["0", "1", "5", "100", "-1", "x"])]);
        }
    }

    fn xadd(&mut self) -> Words {
        let mut all = words(&[b"XADD", &self.own_stream_key()]);
        if self.random.one_in(12) {
            all.push(b"NOMKSTREAM".to_vec());
        }
        if self.random.one_in(8) {
            self.references(&mut all);
            self.trim_options(&mut all);
        }
        all.push(self.new_id());
        for _ in 0..=self.random.below(3) {
            all.extend([self.from(&["a", "b", "a", "field", "12"]), self.value()]);
        }
        all
    }

    fn xtrim(&mut self) -> Words {
        let mut all = words(&[b"XTRIM", &self.stream_key()]);
        self.trim_options(&mut all);
        self.references(&mut all);
        self.mix_options(&mut all);
        all
    }

    fn xrange(&mut self) -> Words {
        let mut all = words(&[self.from(&["XRANGE", "XREVRANGE"]).as_slice(), &self.stream_key()]);
        all.extend([self.id(), self.id()]);
        self.count_option(&mut all);
        self.mix_options(&mut all);
        all
    }

    fn xread(&mut self) -> Words {
        let mut all = words(&[b"XREAD"]);
        self.count_option(&mut all);
        self.streams(&mut all);
        all
    }

    /// `STREAMS`, some keys, as many ids.
    fn streams(&mut self, all: &mut Words) {
        all.push(b"STREAMS".to_vec());
        let count = 1 + self.random.below(2);
        (0..count).for_each(|_| all.push(self.stream_key()));
        for _ in 0..count {
            all.push(match self.random.below(3) {
                0 => b">".to_vec(),
                1 => b"0".to_vec(),
                _ => self.id(),
            });
        }
    }

    fn xreadgroup(&mut self) -> Words {
        let mut all = words(&[b"XREADGROUP", b"GROUP", &self.group(), &self.consumer()]);
        self.count_option(&mut all);
        if self.random.one_in(6) {
            all.push(b"NOACK".to_vec());
        }
        if self.random.one_in(3) {
            self.streams(&mut all);
        } else {
            all.extend(words(&[b"STREAMS", &self.own_stream_key(), b">"]));
        }
        all
    }

    fn ids_after(&mut self, mut all: Words) -> Words {
        (0..=self.random.below(3)).for_each(|_| all.push(self.id()));
        all
    }

    fn counted_ids_after(&mut self, mut all: Words) -> Words {
        self.references(&mut all);
        let count = 1 + self.random.below(3);
        let told = if self.random.one_in(12) { self.integer() } else { count.to_string().into_bytes() };
        all.extend([b"IDS".to_vec(), told]);
        (0..count).for_each(|_| all.push(self.id()));
        self.mix_options(&mut all);
        all
    }

    fn xsetid(&mut self) -> Words {
        let mut all = words(&[b"XSETID", &self.stream_key(), &self.id()]);
        if self.random.one_in(2) {
            all.extend([b"ENTRIESADDED".to_vec(), self.from(&["0", "5", "30", "100", "-1", "x"])]);
        }
        if self.random.one_in(3) {
            all.extend([b"MAXDELETEDID".to_vec(), self.id()]);
        }
        self.mix_options(&mut all);
        all
    }

    fn xgroup(&mut self) -> Words {
        let (key, group, consumer) = (self.stream_key(), self.group(), self.consumer());
        let mut all = match self.random.below(16) {
            0..8 => words(&[b"XGROUP", b"CREATE", &self.own_stream_key(), &group, &self.group_start()]),
            8..10 => words(&[b"XGROUP", b"SETID", &key, &group, &self.group_start()]),
            10 => return words(&[b"XGROUP", b"DESTROY", b"x3", &group]),
            11..14 => return words(&[b"XGROUP", b"CREATECONSUMER", &key, &group, &consumer]),
            14 => return words(&[b"XGROUP", b"DELCONSUMER", &key, &group, &consumer]),
            _ => return words(&[self.random.pick(&["XGROUP", "XINFO"]).as_bytes(), b"HELP"]),
        };
        if self.random.one_in(2) {
            all.push(b"MKSTREAM".to_vec());
        }
        if self.random.one_in(4) {
            all.extend([b"ENTRIESREAD".to_vec(), self.from(&["0", "3", "100", "-1", "-2", "x"])]);
        }
        all
    }

    fn group_start(&mut self) -> Vec<u8> {
        if self.random.one_in(2) { self.from(&["0", "$"]) } else { self.id() }
    }

    /// A least idle time that everything has, or nothing has.
    fn min_idle(&mut self) -> Vec<u8> {
        if self.random.one_in(16) {
            self.from(NOT_INTEGERS)
        } else {
            self.from(&["0", "0", "0", "-1", "50000", "999999999999"])
        }
    }

    fn xclaim(&mut self) -> Words {
        let mut all = words(&[b"XCLAIM", &self.stream_key(), &self.group(), &self.consumer(), &self.min_idle()]);
        all = self.ids_after(all);
        for _ in 0..self.random.below(3) {
            match self.random.below(7) {
                0 => all.extend(words(&[b"IDLE", &self.from(&["0", "100000", "900000", "-1", "x"])])),
                1 => all.extend(words(&[b"TIME", &self.from(&["0", "1000", "99999999999999", "x"])])),
                2 => all.extend(words(&[b"RETRYCOUNT", &self.from(&["0", "7", "-1", "x"])])),
                3 => all.extend(words(&[b"LASTID", &self.id()])),
                4 => all.push(b"JUSTID".to_vec()),
                _ => all.push(b"FORCE".to_vec()),
            }
        }
        all
    }

    fn xautoclaim(&mut self) -> Words {
        let (key, group, consumer) = (self.stream_key(), self.group(), self.consumer());
        let mut all = words(&[b"XAUTOCLAIM", &key, &group, &consumer, &self.min_idle(), &self.id()]);
        if self.random.one_in(2) {
            all.extend(words(&[b"COUNT", &self.from(&["1", "2", "5", "0", "-1", "x"])]));
        }
        if self.random.one_in(3) {
            all.push(b"JUSTID".to_vec());
        }
        all
    }

    fn xpending(&mut self) -> Words {
        let mut all = words(&[b"XPENDING", &self.stream_key(), &self.group()]);
        if self.random.one_in(4) {
            return all;
        }
        if self.random.one_in(3) {
            all.extend(words(&[b"IDLE", &self.min_idle()]));
        }
        let (start, end) = if self.random.one_in(2) { (b"-".to_vec(), b"+".to_vec()) } else { (self.id(), self.id()) };
        let count = if self.random.one_in(10) { self.integer() } else { b"10".to_vec() };
        all.extend([start, end, count]);
        if self.random.one_in(3) {
            all.push(self.consumer());
        }
        all
    }

    fn xinfo(&mut self) -> Words {
        let key = self.stream_key();
        match self.random.below(6) {
            0 => words(&[b"XINFO", b"CONSUMERS", &key, &self.group()]),
            1 => words(&[b"XINFO", b"STREAM", &key]),
            2 => words(&[b"XINFO", b"STREAM", &key, b"FULL"]),
            _ => {
                let count = self.from(&["0", "1", "3", "100", "-1", "x"]);
                words(&[b"XINFO", b"STREAM", &key, b"FULL", b"COUNT", &count])
            }
        }
    }

    /// What every type knows.
    fn stream_as_a_value(&mut self) -> Words {
        let key = self.own_stream_key();
        match self.random.below(8) {
            0 | 1 => words(&[b"DEL", &key]),
            2 => words(&[b"TYPE", &key]),
            3 => words(&[b"OBJECT", b"ENCODING", &key]),
            4 => words(&[b"COPY", b"x1", &self.from(&["x2", "x3"]), b"REPLACE"]),
            5 => words(&[b"RENAME", &self.from(&["x1", "x2"]), &key]),
            6 => words(&[b"APPEND", &key, b"x"]),
            _ => words(&[b"CONFIG", b"SET", b"stream-node-max-entries", &self.from(&["1", "2", "5", "100", "0"])]),
        }
    }
}
