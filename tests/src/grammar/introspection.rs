//! What a server tells of itself and of a client, as far as two servers can tell the same.

use super::{Compare, Dialect, Grammar, Words, words};

/// Settings that both servers begin with alike, and globs that find some.
const SETTINGS: &[&str] = &[
    "maxmemory",
    "maxmemory-policy",
    "hash-max-listpack-entries",
    "set-max-intset-entries",
    "zset-max-listpack-value",
    "list-max-listpack-size",
    "stream-node-max-entries",
    "appendfsync",
    "timeout",
    "databases",
    "hz",
    "nosuch",
    "slowlog-max-len",
    "lfu-log-factor",
    "proto-max-bulk-len",
];

impl Grammar {
    pub(super) fn introspection(&mut self) -> (Words, Compare) {
        let all = match self.random.below(20) {
            0..5 => {
                let mut all = words(&[b"COMMAND", &self.from(&["GETKEYS", "GETKEYS", "GETKEYSANDFLAGS"])]);
                all.extend(self.shared().0);
                if !has_a_count(&all[2..]) {
                    all.truncate(2);
                }
                all
            }
            5 => words(&[b"CONFIG", b"GET", &self.from(SETTINGS)]),
            6 => return self.acl(),
            7 | 8 => self.about_the_client(),
            9 => words(&[b"MEMORY", &self.from(&["x", "USAGE", "PURGE"])]),
            10 => words(&[b"OBJECT", &self.from(&["FREQ", "IDLETIME", "x"])]),
            11 => words(&[b"LATENCY", &self.from(&["LATEST", "x", "RESET", "HISTORY", "GRAPH"])]),
            12 => words(&[b"SLOWLOG", &self.from(&["RESET", "x", "LEN", "GET"])]),
            13 => {
                return (
                    words(&[b"COMMAND", b"LIST", b"FILTERBY", b"PATTERN", &self.from(&["z*", "x*d", "get", "n"])]),
                    Compare::AnyOrder,
                );
            }
            14 if self.random.one_in(2) => {
                // Containers list what they contain in no order, and notes are prose.
                let names = ["GET", "zadd", "lmpop", "hsetex", "zunionstore", "client|list", "x|y", "get|x"];
                words(&[b"COMMAND", b"INFO", &self.from(&names), &self.from(&names)])
            }
            14 => words(&[b"COMMAND", &self.from(&["x", "GETKEYS", "DOCS"]), b"x"]),
            15 => {
                words(&[&self.from(&["AUTH", "QUIT x", "SHUTDOWN", "ROLE", "WAIT", "HELLO"]), &self.from(&["x", "1"])])
            }
            16 if self.random.one_in(2) => words(&[b"MODULE", &self.from(&["LIST", "x"]), b"a"]),
            16 => words(&[b"WAIT", b"0", &self.from(&["0", "1", "-1", "x"])]),
            17 => words(&[b"WAITAOF", &self.from(&["0", "0", "x", "2"]), b"0", &self.from(&["0", "1", "-1", "x"])]),
            18 => return (words(&[b"TIME"]), Compare::Presence),
            _ => words(&[b"ROLE"]),
        };
        (all, Compare::Bytes)
    }

    fn acl(&mut self) -> (Words, Compare) {
        if self.random.one_in(3) {
            let category = self.from(&["read", "write", "geo", "dangerous", "nosuch", "STRING"]);
            // Commands of one server alone are in some.
            let compare = if self.dialect == Dialect::Redis82 { Compare::Presence } else { Compare::AnyOrder };
            return (words(&[b"ACL", b"CAT", &category]), compare);
        }
        let all = match self.random.below(9) {
            6 => words(&[b"ACL", b"DELUSER", &self.from(&["nosuch", "default", ""])]),
            7 => words(&[b"ACL", b"LOG", &self.from(&["RESET", "1", "x", "-1"])]),
            8 => words(&[b"ACL", b"GENPASS", &self.from(&["x", "0", "-1", "4097"])]),
            0 => words(&[b"ACL", b"WHOAMI"]),
            1 => words(&[b"ACL", b"USERS"]),
            2 => words(&[b"ACL", b"LIST"]),
            3 => words(&[b"ACL", b"GETUSER", &self.from(&["default", "nosuch"])]),
            4 => words(&[b"ACL", b"DRYRUN", &self.from(&["default", "nosuch"]), &self.from(&["GET", "nosuch"]), b"a"]),
            _ => words(&[b"ACL", &self.from(&["x", "GENPASS x", "WHOAMI x"])]),
        };
        (all, Compare::Bytes)
    }

    fn about_the_client(&mut self) -> Words {
        match self.random.below(10) {
            0 => words(&[b"CLIENT", b"GETREDIR"]),
            1 => words(&[b"CLIENT", b"TRACKINGINFO"]),
            2 => words(&[b"CLIENT", &self.from(&["NO-EVICT", "NO-TOUCH"]), &self.from(&["on", "off", "x"])]),
            3 => words(&[
                b"CLIENT",
                b"SETINFO",
                &self.from(&["LIB-NAME", "LIB-VER", "x"]),
                &self.from(&["a", "a b", ""]),
            ]),
            4 => words(&[
                b"CLIENT",
                b"UNBLOCK",
                &self.from(&["999999999", "x", "-1"]),
                &self.from(&["TIMEOUT", "ERROR", "x"]),
            ]),
            5 => words(&[
                b"CLIENT",
                b"KILL",
                &self.from(&["ID", "TYPE", "x", "SKIPME"]),
                &self.from(&["999999999", "x", "pubsub"]),
            ]),
            6 => words(&[b"CLIENT", &self.from(&["x", "KILL", "PAUSE", "REPLY"])]),
            7 => words(&[
                b"CLIENT",
                b"LIST",
                &self.from(&["TYPE", "ID", "x"]),
                &self.from(&["x", "replica", "999999999"]),
            ]),
            8 if self.random.one_in(2) => {
                words(&[&self.from(&["CLIENT", "CONFIG"]), &self.from(&["UNPAUSE", "RESETSTAT"])])
            }
            8 => words(&[b"CLIENT", b"CACHING", &self.from(&["yes", "no", "x"])]),
            _ => words(&[b"CLIENT", b"TRACKING", &self.from(&["off", "x"])]),
        }
    }
}

/// Whether a word that tells how many keys follow is a number. Redis finds keys behind anything else that begins with one, too.
fn has_a_count(words: &[Vec<u8>]) -> bool {
    let name = words[0].to_ascii_uppercase();
    let is = |names: &[&str]| names.iter().any(|one| name == one.as_bytes());
    let at = match () {
        () if is(&["ZDIFF", "ZUNION", "ZINTER", "ZINTERCARD", "SINTERCARD", "LMPOP", "ZMPOP"]) => 1,
        () if is(&["ZDIFFSTORE", "ZUNIONSTORE", "ZINTERSTORE", "BLMPOP", "BZMPOP"]) => 2,
        () if name.starts_with(b"EVAL") || name.starts_with(b"FCALL") => 2,
        () => return true,
    };
    words.get(at).is_some_and(|word| {
        std::str::from_utf8(word).is_ok_and(|text| text.parse::<i32>().is_ok_and(|number| number.to_string() == text))
    })
}
