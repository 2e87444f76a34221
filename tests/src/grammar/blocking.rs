//! Commands that wait: by themselves for a hundredth of a second, and several at once while another client brings what they wait for.

use super::{Compare, Grammar, Operation, Words, words};

impl Grammar {
    /// A command that finds something, or waits for a moment and gives up.
    pub(super) fn waiting_briefly(&mut self) -> (Words, Compare) {
        let timeout = self.from(&["0.01", "0.01", "0.01", "0.001", "0.001", "-1", "x", "1e400", "-0.5", ""]);
        let milliseconds = self.from(&["1", "1", "1", "-1", "x"]);
        (self.waiting(&timeout, &milliseconds), Compare::Bytes)
    }

    /// One to three that wait without end, and what another client does then. What waits at last is unblocked.
    pub(super) fn woken(&mut self) -> Operation {
        let waiting = (0..=self.random.below(3)).map(|_| self.waiting(b"0", b"0")).collect();
        let mut actions = Vec::new();
        for _ in 0..=self.random.below(4) {
            actions.push(match self.random.below(12) {
                0 => self.shared_as_told(),
                1 => words(&[b"DEL", &self.wakeable()]),
                2 => words(&[b"RENAME", &self.wakeable(), &self.wakeable()]),
                3 => words(&[b"SET", &self.wakeable(), b"v"]),
                4 => words(&[b"COPY", &self.wakeable(), &self.wakeable(), b"REPLACE"]),
                5..8 => {
                    let mut all = words(&[&self.from(&["LPUSH", "RPUSH"]), &self.wakeable()]);
                    (0..=self.random.below(4)).for_each(|number| all.push(number.to_string().into_bytes()));
                    all
                }
                8 | 9 => words(&[b"ZADD", &self.wakeable(), b"1", b"a", b"2", &self.value()]),
                10 => words(&[b"XADD", &self.wakeable(), b"5-*", b"f", b"v"]),
                _ => words(&[b"XGROUP", &self.from(&["CREATE", "DESTROY"]), &self.wakeable(), b"g", b"$", b"MKSTREAM"]),
            });
        }
        if self.random.one_in(3) {
            actions.insert(0, words(&[b"MULTI"]));
            actions.push(words(&[b"EXEC"]));
        }
        Operation::Wake { client: self.client, waiting, actions }
    }

    /// Few, so that waiters meet; one of each type's own.
    fn wakeable(&mut self) -> Vec<u8> {
        self.from(&["w1", "w1", "w2", "w3", "w4", "zset1", "x1"])
    }

    fn wakeables_after(&mut self, mut all: Words) -> Words {
        (0..=self.random.below(3)).for_each(|_| all.push(self.wakeable()));
        all
    }

    fn counted_wakeables_after(&mut self, mut all: Words) -> Words {
        let keys = 1 + self.random.below(2);
        all.push(keys.to_string().into_bytes());
        (0..keys).for_each(|_| all.push(self.wakeable()));
        all
    }

    fn waiting(&mut self, timeout: &[u8], milliseconds: &[u8]) -> Words {
        let mut all = match self.random.below(14) {
            0..4 => self.wakeables_after(words(&[self.random.clone().pick(&["BLPOP", "BRPOP"]).as_bytes()])),
            4 | 5 => {
                let name = self.from(&["BZPOPMIN", "BZPOPMAX"]);
                self.wakeables_after(words(&[&name]))
            }
            6 => {
                let ends = [self.from(&["LEFT", "RIGHT"]), self.from(&["LEFT", "RIGHT"])];
                words(&[b"BLMOVE", &self.wakeable(), &self.wakeable(), &ends[0], &ends[1]])
            }
            7 => words(&[b"BRPOPLPUSH", &self.wakeable(), &self.wakeable()]),
            8 | 9 => {
                let mut all = self.counted_wakeables_after(words(&[b"BLMPOP", timeout]));
                all.push(self.from(&["LEFT", "RIGHT", "LEFT", "RIGHT", "x"]));
                return self.with_count(all);
            }
            10 => {
                let mut all = self.counted_wakeables_after(words(&[b"BZMPOP", timeout]));
                all.push(self.from(&["MIN", "MAX", "MIN", "MAX", "x"]));
                return self.with_count(all);
            }
            11 => {
                let streams = [self.wakeable(), self.wakeable()];
                return words(&[b"XREAD", b"BLOCK", milliseconds, b"STREAMS", &streams[0], &streams[1], b"$", b"5-2"]);
            }
            12 => {
                return words(&[b"XREAD", b"BLOCK", milliseconds, b"COUNT", b"1", b"STREAMS", &self.wakeable(), b"$"]);
            }
            _ => {
                let stream = self.wakeable();
                return words(&[
                    b"XREADGROUP",
                    b"GROUP",
                    b"g",
                    b"c1",
                    b"BLOCK",
                    milliseconds,
                    b"STREAMS",
                    &stream,
                    b">",
                ]);
            }
        };
        all.push(timeout.to_vec());
        all
    }

    fn with_count(&mut self, mut all: Words) -> Words {
        if self.random.one_in(2) {
            all.extend(words(&[b"COUNT", &self.from(&["1", "2", "10", "0"])]));
        }
        all
    }
}
