//! The unsafe part of the engine with arguments, errors and limits that it does not expect. `valgrind` finds nothing to say of these.

use super::super::tests::Patience;
use crate::{CallError, Callable, Host, LogLevel, LuaEngine, Run, Script, ScriptEngine, sha1_hex};
use simurgh_protocol::resp::Protocol;
use simurgh_protocol::{Args, Reply};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Answers what a test asks for.
struct Server;

impl Host for Server {
    fn call(&mut self, args: &Args<'_>, reply: &mut Reply) -> Result<(), CallError> {
        match args.at(0) {
            b"words" => {
                reply.array(args.len() - 1);
                args.from(1).for_each(|word| reply.bulk(word));
            }
            b"raw" => reply.buffer().extend_from_slice(args.at(1)),
            b"many" => {
                let mut word = vec![b'x'; 100_000];
                reply.array(100);
                for number in 0..100 {
                    word[..4]
                        .copy_from_slice(&(number + 1000 * u32::try_from(args.at(1).len()).unwrap_or(0)).to_le_bytes());
                    reply.bulk(&word);
                }
            }
            b"ends" => return Err(CallError::Ends),
            _ => return Err(CallError::Refused(format!("ERR no {}", String::from_utf8_lossy(args.at(0))))),
        }
        Ok(())
    }

    fn note_error(&mut self, line: &[u8], of_command: bool) {
        let line = String::from_utf8_lossy(line).trim_end().to_owned();
        NOTED.with_borrow_mut(|noted| noted.push((line, of_command)));
    }

    fn log(&mut self, _level: LogLevel, _text: &[u8]) {}
}

thread_local! {
    /// What the server of this thread was told of errors in replies.
    static NOTED: RefCell<Vec<(String, bool)>> = const { RefCell::new(Vec::new()) };
}

fn run_in(engine: &mut LuaEngine, source: &str, protocol: Protocol) -> String {
    let script = Script::new(source.as_bytes()).expect("a script");
    let digest = sha1_hex(source.as_bytes());
    let mut reply = Reply::new(protocol);
    reply.integer(7);
    let run = Run {
        callable: Callable::Script { digest: &digest, script: &script },
        keys: &[b"k", b""],
        args: &[b"a\0b"],
        seed: 7,
        watch: Rc::new(Patience(Cell::new(1000))),
    };
    let text = match engine.run(&run, &mut Server, &mut reply) {
        Ok(()) => reply.bytes()[4..].to_vec(),
        Err(fault) => {
            assert_eq!(reply.bytes(), b":7\r\n", "half a reply of {source}");
            fault.text
        }
    };
    String::from_utf8_lossy(&text).replace(&digest, "SHA").replace("\r\n", " ").trim_end().to_owned()
}

#[track_caller]
fn check_in(protocol: Protocol, cases: &[(&str, &str)]) {
    let mut engine = LuaEngine::new().expect("an engine");
    for (source, expected) in cases {
        let text = run_in(&mut engine, source, protocol);
        assert_eq!(text.strip_suffix(" script: SHA, on @user_script:1.").unwrap_or(&text), *expected, "{source}");
        assert_eq!(run_in(&mut engine, "return redis.call('words', KEYS[1])", protocol), "*1 $1 k", "after {source}");
    }
}

const NOT_WORDS: &str = "ERR Lua redis lib command arguments must be strings or integers";

#[test]
fn arguments_of_every_kind_are_read_or_refused() {
    check_in(
        Protocol::Resp2,
        &[
            (
                "return redis.call('words', '', ARGV[1], KEYS[2], -0.0, 1e300, -1.5)",
                "*6 $0  $3 a\0b $0  $1 0 $6 1e+300 $4 -1.5",
            ),
            ("return redis.call('words', 1/0, -1/0)", "*2 $3 inf $4 -inf"),
            ("return #redis.call('words', string.rep('x', 1e6))[1]", ":1000000"),
            ("local t = {} for i = 1, 7999 do t[i] = i end return #redis.call('words', 'k', unpack(t))", ":8000"),
            ("redis.call('words', nil)", NOT_WORDS),
            ("redis.call('words', true)", NOT_WORDS),
            ("redis.call('words', 'x', {})", NOT_WORDS),
            ("redis.call(print)", "ERR user_script:1: Script attempted to access nonexistent global variable 'print'"),
            ("redis.call(coroutine.create(function() end))", NOT_WORDS),
            ("return redis.pcall('words', redis)", &format!("-{NOT_WORDS}")),
            ("redis.call()", "ERR Please specify at least one argument for this redis lib call"),
            ("redis.call('no\\0such')", "ERR no no\0such"),
            ("return redis.pcall('no\\r\\nsuch')", "-ERR no no  such"),
            ("local c, p = redis.call, redis.pcall return {c('words', 'x'), p('words', 'y')}", "*2 *1 $1 x *1 $1 y"),
        ],
    );
}

#[test]
fn errors_leave_nothing_behind_wherever_they_are_raised() {
    check_in(
        Protocol::Resp2,
        &[
            ("return {pcall(redis.call, 'x')}", "*2 $-1 $8 ERR no x"),
            ("local f = coroutine.wrap(function() redis.call('x') end) f()", "ERR no x"),
            (
                "local c = coroutine.create(function() redis.call('x') end) return {coroutine.resume(c)}",
                "*2 $-1 -ERR no x",
            ),
            ("local c = coroutine.wrap(function() return redis.call('words', 'in') end) return c()", "*1 $2 in"),
            ("table.sort({1, 2, 3}, function() redis.call('x') end)", "ERR no x"),
            ("return string.gsub('abc', '.', function(c) return redis.call('words', c)[1]:upper() end)", "$3 ABC"),
            ("string.gsub('abc', '.', function(c) redis.call('x') end)", "ERR no x"),
            (
                "return tostring(setmetatable({}, {__tostring = function() return redis.call('words', 'z')[1] end}))",
                "$1 z",
            ),
            ("local t = setmetatable({}, {__index = function(_, k) return redis.call(k) end}) return t.x", "ERR no x"),
            (
                "local r = {} for i = 1, 1000 do r[i] = select(2, pcall(redis.call, 'x' .. i)) end return {r[1], r[1000]}",
                "*2 $9 ERR no x1 $12 ERR no x1000",
            ),
            (
                "local _, e = xpcall(function() redis.call('x') end, function(e) return redis.call('y') end) return tostring(e)",
                "$23 error in error handling",
            ),
        ],
    );
}

#[test]
fn a_script_that_is_to_end_ends_whatever_it_does() {
    let killed = "ERR Script killed by user with SCRIPT KILL...";
    check_in(
        Protocol::Resp2,
        &[
            ("redis.call('ends')", killed),
            ("redis.pcall('ends') return 1", killed),
            ("while true do pcall(redis.call, 'ends') end", killed),
            ("local a = xpcall(function() redis.call('ends') end, function() return 1 end) return a", killed),
            ("local a = coroutine.resume(coroutine.create(function() redis.call('ends') end)) return a", killed),
            ("coroutine.wrap(function() redis.call('ends') end)()", killed),
        ],
    );
}

#[test]
fn replies_of_every_kind_are_values_and_what_is_no_reply_is_an_error() {
    let unreadable = "-ERR the command's reply cannot be read";
    check_in(
        Protocol::Resp2,
        &[
            (
                "return redis.call('raw', '*3\\r\\n:-5\\r\\n-ERR a\\r\\n*2\\r\\n+s\\r\\n$-1\\r\\n')",
                "*3 :-5 -ERR a *2 +s $-1",
            ),
            ("return redis.call('raw', '*-1\\r\\n')", "$-1"),
            ("return redis.pcall('raw', '!3\\r\\nE a\\r\\n').err", "$3 E a"),
            ("return redis.call('raw', '#t\\r\\n')", ":1"),
            ("return redis.call('raw', ',1.5\\r\\n').double * 2", ":3"),
            ("return redis.call('raw', '=5\\r\\ntxt:x\\r\\n').verbatim_string.format", "$3 txt"),
            (
                "return redis.call('raw', '(123456789012345678901234567890\\r\\n').big_number",
                "$30 123456789012345678901234567890",
            ),
            ("return redis.call('raw', '%1\\r\\n$1\\r\\na\\r\\n:1\\r\\n').map.a", ":1"),
            ("return tostring(redis.call('raw', '~2\\r\\n:1\\r\\n:2\\r\\n').set[2])", "$4 true"),
            ("return redis.call('raw', '_\\r\\n')", "$-1"),
            ("return #redis.call('raw', string.rep('*1\\r\\n', 60) .. ':1\\r\\n')", ":1"),
            ("return redis.pcall('raw', string.rep('*1\\r\\n', 100) .. ':1\\r\\n')", unreadable),
            ("return redis.pcall('raw', '')", unreadable),
            ("return redis.pcall('raw', '$5\\r\\nabc')", unreadable),
            ("return redis.pcall('raw', '$9223372036854775807\\r\\n')", unreadable),
            ("return redis.pcall('raw', '*2\\r\\n:1\\r\\n')", unreadable),
            ("return redis.pcall('raw', ':x\\r\\n')", unreadable),
            ("return redis.pcall('raw', '=2\\r\\nab\\r\\n')", unreadable),
            ("return redis.pcall('raw', '?\\r\\n')", unreadable),
            ("return redis.pcall('raw', '-')", unreadable),
            ("return redis.pcall('raw', '$')", unreadable),
        ],
    );
}

#[test]
fn values_of_every_kind_are_replies() {
    check_in(
        Protocol::Resp3,
        &[
            ("return {double = 1.5}", ",1.5"),
            ("return {map = {a = 1}}", "%1 $1 a :1"),
            ("return {set = {x = true}}", "~1 $1 x"),
            ("return {big_number = '12\\r\\n3'}", "(12  3"),
            ("return {verbatim_string = {format = 'mdown', string = 'x'}}", "=5 mdo:x"),
            ("return {verbatim_string = {format = 1}}", "*0"),
            ("redis.setresp(3) return {true, false, {map = {}}}", "*3 #t #f %0"),
            ("return setmetatable({}, {__index = function() return 'x' end})", "*0"),
            ("return {print = 1, redis.call, coroutine.create(function() end), 3}", "*3 _ _ :3"),
            ("return 1, 2, 3", ":1"),
        ],
    );
}

#[test]
fn the_guard_of_table_insert_is_in_nobodys_way() {
    let refused = "ERR Attempt to modify a readonly table";
    check_in(
        Protocol::Resp2,
        &[
            ("local t = {} for i = 1, 3 do table.insert(t, i) end table.insert(t, 1, 0) return t", "*4 :0 :1 :2 :3"),
            ("local t = setmetatable({}, {__index = error}) table.insert(t, 'a') return t", "*1 $1 a"),
            ("table.insert(redis, 1)", refused),
            ("table.insert(_G, '1', 1)", refused),
            ("table.insert(getmetatable(''), 1)", refused),
            ("return {pcall(table.insert, string, 1)}", "*2 $-1 $34 Attempt to modify a readonly table"),
            ("table.insert(redis)", "ERR user_script:1: wrong number of arguments to 'insert'"),
            (
                "table.insert(redis, 'x', 'y')",
                "ERR user_script:1: bad argument #2 to 'insert' (number expected, got string)",
            ),
            ("table.insert()", "ERR user_script:1: bad argument #1 to 'insert' (table expected, got no value)"),
            ("table.insert('x', 1)", "ERR user_script:1: bad argument #1 to 'insert' (table expected, got string)"),
            (
                "coroutine.wrap(function() table.insert(redis, 1) end)()",
                "ERR user_script:1: Attempt to modify a readonly table",
            ),
            ("table.remove(redis) table.sort(redis) return {#redis, next({})}", "*1 :0"),
        ],
    );
}

/// On a stack as the server's threads have it.
#[test]
fn limits_are_met_in_the_middle_of_calls_and_the_next_script_runs() {
    let thread = std::thread::Builder::new().stack_size(8 << 20).spawn(meet_limits).expect("a thread");
    thread.join().expect("nothing breaks");
}

fn meet_limits() {
    check_in(
        Protocol::Resp2,
        &[
            (
                "local t = {} for i = 1, 1e9 do t[i] = redis.call('many', string.rep('x', i)) end",
                "ERR not enough memory script: SHA",
            ),
            (
                "local t = {} while true do t[#t + 1] = redis.pcall('no' .. string.rep('x', 1e6) .. #t) end",
                "ERR not enough memory script: SHA",
            ),
            (
                "local function f() redis.call('words', 'x') return 1 + f() end return f()",
                "ERR user_script:1: stack overflow",
            ),
            ("local t = {} for i = 1, 5000 do t = {t} end return #cjson.encode(redis.call('words', 'x'))", ":5"),
        ],
    );
    let mut engine = LuaEngine::new().expect("an engine");
    for source in [
        "local t = {} for i = 1, 5000 do t = {t} end return t",
        "local t = {} for i = 1, 5000 do t = {map = {x = t}} end return t",
        "local function f() return coroutine.wrap(f)() end return f()",
        "local function f() local _, e = pcall(f) redis.call('x') end f()",
        "local t = setmetatable({}, {}) getmetatable(t).__index = function(_, k) return redis.call('words', t[k]) end return t.x",
        "local t = {} for i = 1, 1e9 do t[i] = string.rep('x', 1e6) .. i pcall(redis.call, t[i]) end",
    ] {
        let text = run_in(&mut engine, source, Protocol::Resp2);
        assert!(text.contains("ERR "), "{source}: {}", &text[..text.len().min(200)]);
        assert_eq!(run_in(&mut engine, "return 1", Protocol::Resp2), ":1", "after {source}");
    }
}

#[test]
fn the_collector_works_again_after_a_script_that_stopped_it() {
    let mut engine = LuaEngine::new().expect("an engine");
    for stop in ["collectgarbage('stop')", "collectgarbage('setpause', 1e9)", "pcall(loadstring, 'x', {})"] {
        run_in(&mut engine, &format!("{stop} return 1"), Protocol::Resp2);
        let before = engine.memory();
        for _ in 0..2000 {
            run_in(&mut engine, "local t = {} for i = 1, 100 do t[i] = {} end return 1", Protocol::Resp2);
        }
        assert!(engine.memory() < before + (4 << 20), "after {stop}: {} bytes, {before} before", engine.memory());
    }
}

/// Errors of commands were counted when they failed; a script says which of its errors those are, however they are handed on.
#[test]
fn each_error_in_a_reply_is_noted_once_and_whose_it_is() {
    let mut engine = LuaEngine::new().expect("an engine");
    for (source, expected) in [
        ("return redis.error_reply('A b')", &[("-A b", false)][..]),
        ("return {1, redis.error_reply('A b'), {redis.pcall('nosuch')}}", &[("-A b", false), ("-ERR no nosuch", true)]),
        ("local e = redis.pcall('raw', '-W x\\r\\n') e.err = 'other' return {map = {a = e}}", &[("-other", true)]),
        ("return redis.call('raw', '*2\\r\\n-W x\\r\\n:1\\r\\n')", &[("-W x", true)]),
        ("return redis.pcall()", &[("-ERR Please specify at least one argument for this redis lib call", false)]),
        ("return {{err = 'a\\nb', ignore_error_stats_update = 1}}", &[("-a b", false)]),
        ("redis.pcall('nosuch') return 1", &[]),
        ("return {redis.error_reply('A b'), setmetatable({}, {__index = error})} .. 1", &[]),
    ] {
        run_in(&mut engine, source, Protocol::Resp2);
        let noted = NOTED.take();
        let noted: Vec<(&str, bool)> = noted.iter().map(|(line, of_command)| (line.as_str(), *of_command)).collect();
        assert_eq!(noted, expected, "{source}");
    }
}

#[test]
fn an_error_that_ends_a_script_says_whose_it_is() {
    let mut engine = LuaEngine::new().expect("an engine");
    for (source, expected) in [
        ("redis.call('nosuch')", true),
        ("error(redis.pcall('nosuch'))", true),
        ("error(select(2, xpcall(function() redis.call('nosuch') end, function(e) return e end)))", true),
        ("error(select(2, pcall(redis.call, 'nosuch')))", false),
        ("error('x')", false),
        ("redis.call()", false),
        ("redis.sha1hex()", false),
        ("x = 1", false),
    ] {
        let script = Script::new(source.as_bytes()).expect("a script");
        let run = Run {
            callable: Callable::Script { digest: &sha1_hex(source.as_bytes()), script: &script },
            keys: &[],
            args: &[],
            seed: 7,
            watch: Rc::new(Patience(Cell::new(1000))),
        };
        let ended = engine.run(&run, &mut Server, &mut Reply::new(Protocol::Resp2));
        assert_eq!(ended.expect_err("an error").of_command, expected, "{source}");
    }
}
