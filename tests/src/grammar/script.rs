//! Scripts and functions: commands of all groups from inside one, what values become on the way out, errors, and what cannot run there.

use super::{Compare, Dialect, Grammar, Words, is_set_at, words};

/// Runs a command that comes as arguments.
const CALL: &str = "return redis.call(unpack(ARGV))";
/// The same with errors as values.
const PCALL: &str = "return redis.pcall(unpack(ARGV))";
/// [`CALL`] and [`PCALL`] by their sums, and one that nothing has.
const SUMS: &[&str] = &[
    "3c44b7a40779a5c68a6e3920550ff76660a813aa",
    "3C44B7A40779A5C68A6E3920550FF76660A813AA",
    "b72d50ecdcafd5e07f3fca2060a111de46c547f9",
    "0000000000000000000000000000000000000000",
    "not-a-sum",
];

/// What a script gets and says of a reply.
const LOOKS: &[&str] = &[
    "local r = redis.pcall(unpack(ARGV)) if type(r) == 'table' and r.err then return r.err end return {type(r), r}",
    "local r = redis.pcall(unpack(ARGV)) if type(r) == 'table' and r.err then return r end return tostring(r == false)",
    "local r = redis.call(unpack(ARGV)) return cjson.encode({r})",
    "redis.setresp(3) local r = redis.call(unpack(ARGV)) return type(r)",
    "redis.setresp(3) return redis.call(unpack(ARGV))",
    "local ok, e = pcall(redis.call, unpack(ARGV)) if ok then return 'fine' end return type(e)",
    "redis.pcall(unpack(ARGV)) return redis.call('EXISTS', KEYS[1])",
    "redis.call('SET', KEYS[1], 'before') redis.call(unpack(ARGV)) return redis.call('GET', KEYS[1])",
];

/// Values on their way out, by their own account.
const VALUES: &[&str] = &[
    "return {1, 3.7, -0.5, 'x', true, false, 2, nil, 3}",
    "return tonumber(ARGV[1])",
    "return tostring(tonumber(ARGV[1]))",
    "return ARGV[1] + 1",
    "return ARGV[1] .. '!'",
    "return {ok=ARGV[1]}",
    "return {err=ARGV[1]}",
    "return redis.status_reply(ARGV[1])",
    "return redis.error_reply('MY ' .. #ARGV[1])",
    "return {KEYS, ARGV, #KEYS}",
    "return {{}, {{}}, {1, {2, {3, {4}}}}}",
    "redis.setresp(3) return {double=tonumber(ARGV[1])}",
    "redis.setresp(3) return {map={a=1}}",
    "redis.setresp(3) return {set={a=true}}",
    "redis.setresp(3) return {true, false, {big_number='123456789012345678901234567890'}}",
    "return {verbatim_string={string=ARGV[1], format='txt'}}",
    "return redis.sha1hex(ARGV[1])",
    "return cjson.encode({ARGV[1], 1, 1.5, true})",
    "return cjson.decode('[1,\"a\",null,2.5,{}]')",
    "return cmsgpack.unpack(cmsgpack.pack({ARGV[1], 2, {3}}))",
    "return bit.tohex(bit.bxor(255, 15))",
    "return struct.pack('>I2', 258)",
    "return string.format('%5.2f|%q|%d', 3.14159, 'a\\nb', 42)",
    "return math.floor(-3.5) .. ' ' .. math.max(1, 2)",
    "return select('#', unpack({1, 2, 3}))",
    "error(ARGV[1])",
    "error({err=ARGV[1]})",
    "error()",
    "return nosuch",
    "nosuch = 1",
    "return (",
    "",
    "return nil",
    "return redis.call()",
    "return redis.call('NOSUCH')",
    "return redis.call('GET')",
    "return redis.call({})",
    "return redis.call('SET', KEYS[1], {})",
    "return redis.call('SET', KEYS[1], 12.5) and redis.call('GET', KEYS[1])",
    "return redis.log('x')",
    "return redis.acl_check_cmd('GET', 'a') and 1 or 0",
    "return redis.REDIS_VERSION_NUM > 0",
    "#!lua flags=no-writes\nreturn redis.call('SET', KEYS[1], 1)",
    "#!lua flags=allow-oom\nreturn redis.call('GET', KEYS[1])",
    "#!lua\nreturn redis.call('TYPE', KEYS[1])",
    "#!lua flags=unknown\nreturn 1",
    "#!python\nreturn 1",
];

/// A library whose functions run a command that comes as arguments.
const LIBRARY: &str = "#!lua name=made\n\
    redis.register_function('call', function(keys, args) return redis.call(unpack(args)) end)\n\
    redis.register_function{function_name='read', callback=function(keys, args) return redis.pcall(unpack(args)) end, \
    flags={'no-writes'}, description='reads'}\n\
    redis.register_function('tell', function(keys, args) return {keys, args} end)";
/// Others, most of them with a mistake.
const LIBRARIES: &[&str] = &[
    "#!lua name=other\nredis.register_function('one', function() return 1 end)",
    "#!lua name=other\nredis.register_function('call', function() return 1 end)",
    "#!lua name=other\nreturn 1",
    "#!lua name=bad-name\nredis.register_function('one', function() return 1 end)",
    "#!lua\nredis.register_function('one', function() return 1 end)",
    "redis.register_function('one', function() return 1 end)",
    "#!lua name=other\nredis.register_function('one')",
    "#!lua name=other\nredis.register_function('one', function( return 1 end)",
    "#!lua name=other\nredis.call('PING')",
];

impl Grammar {
    pub(super) fn script(&mut self) -> (Words, Compare) {
        match self.random.below(24) {
            0..5 => self.evaluated(CALL, false),
            5..8 => self.evaluated(PCALL, false),
            8..12 => {
                // Errors are worded otherwise by Valkey.
                let script = self.random.pick(if self.dialect == Dialect::Valkey91 { &LOOKS[1..] } else { LOOKS });
                self.evaluated(script, true)
            }
            12..16 => (self.values(), Compare::Bytes),
            16 => self.by_sum(),
            17 => (self.script_kept(), Compare::Bytes),
            18 | 19 => (self.function_kept(), Compare::Bytes),
            20 => (self.told_by_function(), Compare::Bytes),
            _ => self.called(),
        }
    }

    /// A command that may run inside of a script; of those whose replies differ in more than order and clock, none if `nested`.
    fn inner(&mut self, nested: bool) -> (Words, Compare) {
        loop {
            let (words, compare) = self.shared();
            let is_script = words[0].starts_with(b"EVAL") || words[0].starts_with(b"FCALL");
            if !is_script && !is_set_at(&words) && (!nested || compare == Compare::Bytes) {
                return (words, compare);
            }
        }
    }

    fn evaluator(&mut self) -> Vec<u8> {
        self.from(&["EVAL", "EVAL", "EVAL", "EVAL_RO"])
    }

    fn evaluated(&mut self, script: &str, nested: bool) -> (Words, Compare) {
        let (inner, compare) = self.inner(nested);
        let mut all = words(&[&self.evaluator(), script.as_bytes(), b"1", &self.key_of("s")]);
        all.extend(inner);
        (all, compare)
    }

    fn values(&mut self) -> Words {
        let script = self.from(VALUES);
        let mut all = words(&[&self.evaluator(), &script, b"1", &self.key_of("s"), &self.value()]);
        if all[4].iter().any(|byte| b"\r\n\0".contains(byte)) && String::from_utf8_lossy(&all[1]).contains("err") {
            // As an error's text it would break the protocol, and in Redis does.
            all[4] = b"MINE in one line".to_vec();
        }
        if self.random.one_in(20) {
            all[2] = self.integer();
        }
        all
    }

    fn by_sum(&mut self) -> (Words, Compare) {
        let (inner, compare) = self.inner(false);
        let sum = self.from(SUMS);
        let mut all = words(&[&self.from(&["EVALSHA", "EVALSHA_RO"]), &sum, b"0"]);
        all.extend(inner);
        (all, compare)
    }

    fn script_kept(&mut self) -> Words {
        match self.random.below(8) {
            0..3 => words(&[b"SCRIPT", b"LOAD", &self.from(&[CALL, PCALL, "return 1", "return ("])]),
            3..6 => words(&[b"SCRIPT", b"EXISTS", &self.from(SUMS), &self.from(SUMS)]),
            6 => words(&[b"SCRIPT", b"FLUSH", &self.from(&["SYNC", "ASYNC", "x"])]),
            _ => words(&[b"SCRIPT", &self.from(&["KILL", "x", "DEBUG", "LOAD"])]),
        }
    }

    fn function_kept(&mut self) -> Words {
        match self.random.below(12) {
            0..4 => words(&[b"FUNCTION", b"LOAD", b"REPLACE", LIBRARY.as_bytes()]),
            4 => words(&[b"FUNCTION", b"LOAD", LIBRARY.as_bytes()]),
            5 => words(&[b"FUNCTION", b"LOAD", b"REPLACE", &self.from(LIBRARIES)]),
            6 => words(&[b"FUNCTION", b"DELETE", &self.from(&["made", "other", "none"])]),
            7 => words(&[b"FUNCTION", b"LIST", b"LIBRARYNAME", &self.from(&["o*", "none"]), b"WITHCODE"]),
            8 => words(&[b"FUNCTION", b"FLUSH", &self.from(&["SYNC", "ASYNC", "x"])]),
            9 => words(&[b"FUNCTION", &self.from(&["KILL", "x", "LOAD", "DELETE"])]),
            10 => words(&[b"FUNCTION", b"RESTORE", &self.value(), &self.from(&["APPEND", "REPLACE", "x"])]),
            _ => words(&[b"FUNCTION", b"STATS"]),
        }
    }

    fn told_by_function(&mut self) -> Words {
        words(&[
            &self.from(&["FCALL", "FCALL_RO"]),
            b"tell",
            &self.from(&["0", "1", "2", "3", "-1", "x"]),
            b"a",
            &self.value(),
        ])
    }

    fn called(&mut self) -> (Words, Compare) {
        let (inner, compare) = self.inner(false);
        let name = self.from(&["call", "call", "read", "read", "CALL", "missing"]);
        let mut all = words(&[&self.from(&["FCALL", "FCALL", "FCALL_RO"]), &name, b"1", &self.key_of("s")]);
        all.extend(inner);
        (all, compare)
    }
}
