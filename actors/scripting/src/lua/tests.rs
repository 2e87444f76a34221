//! The engine through its seam: replies, errors, the sandbox and its limits.

use super::*;
use crate::{CallError, ScriptEngine, sha1_hex};
use simurgh_protocol::Args;

/// A server that knows ECHO and fails at everything else.
#[derive(Default)]
struct Server {
    lines: Vec<String>,
}

impl Host for Server {
    fn call(&mut self, args: &Args<'_>, reply: &mut Reply) -> Result<(), CallError> {
        match args.at(0) {
            b"echo" => reply.bulk(args.at(1)),
            b"ok" => reply.ok(),
            b"null" => reply.null(),
            b"map" => {
                reply.map(1);
                reply.bulk(b"a");
                reply.integer(1);
            }
            b"wrong" => reply.error("WRONGTYPE no"),
            _ => return Err("ERR Unknown Redis command called from script".into()),
        }
        Ok(())
    }

    fn log(&mut self, level: LogLevel, text: &[u8]) {
        self.lines.push(format!("{level:?} {}", String::from_utf8_lossy(text)));
    }
}

/// Kills after so many looks.
pub(super) struct Patience(pub Cell<u32>);

impl Watch for Patience {
    fn is_killed(&self) -> bool {
        self.0.set(self.0.get().saturating_sub(1));
        self.0.get() == 0
    }

    fn clock_seconds(&self) -> f64 {
        1.5
    }
}

fn run_on(engine: &mut LuaEngine, server: &mut Server, source: &str, protocol: Protocol) -> String {
    let script = Script::new(source.as_bytes()).expect("a script");
    let digest = sha1_hex(source.as_bytes());
    let mut reply = Reply::new(protocol);
    let run = Run {
        callable: Callable::Script { digest: &digest, script: &script },
        keys: &[b"k1", b"k2"],
        args: &[b"a1"],
        seed: 7,
        watch: Rc::new(Patience(Cell::new(30))),
    };
    let text = match engine.run(&run, server, &mut reply) {
        Ok(()) => reply.bytes().to_vec(),
        Err(fault) => fault.text,
    };
    String::from_utf8_lossy(&text).replace(&digest, "SHA").replace("\r\n", " ").trim_end().to_owned()
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    let (mut engine, mut server) = (LuaEngine::new().expect("an engine"), Server::default());
    for (source, expected) in cases {
        assert_eq!(run_on(&mut engine, &mut server, source, Protocol::Resp2), *expected, "{source}");
    }
}

#[test]
fn values_become_replies() {
    check(&[
        ("return {KEYS[1], KEYS[2], ARGV[1]}", "*3 $2 k1 $2 k2 $2 a1"),
        ("return {1.9, -1.9, 'a', true, false, {}, nil, 5}", "*6 :1 :-1 $1 a :1 $-1 *0"),
        ("return {ok='y\\r\\n-z'}", "+y  -z"),
        ("return redis.error_reply('a\\r\\nb\\0c d')", "-ERR a  b"),
        ("return 0/0", ":-9223372036854775808"),
        ("return {double=3.5}", "$3 3.5"),
        ("redis.setresp(3) return false", ":0"),
        ("return redis.call('ok')", "+OK"),
        ("return type(redis.call('null'))", "$7 boolean"),
        ("redis.setresp(3) return type(redis.call('null'))", "$3 nil"),
        ("redis.setresp(3) return redis.call('map').map.a", ":1"),
        ("return redis.call('echo', 1.5)", "$3 1.5"),
        ("return redis.call('echo', 1e20)", "$5 1e+20"),
        ("return os.clock()", ":1"),
        ("", "$-1"),
    ]);
}

#[test]
fn errors_tell_where_they_were_raised() {
    check(&[
        ("return error('x')", "ERR user_script:1: x script: SHA, on @user_script:1."),
        (
            "\n\nlocal a = nil a.b = 1",
            "ERR user_script:3: attempt to index local 'a' (a nil value) script: SHA, on @user_script:3.",
        ),
        ("error({err='My err'})", "My err script: SHA, on @user_script:1."),
        ("error({})", "ERR unknown error script: SHA, on @user_script:1."),
        ("error()", "ERR nil script: SHA, on @user_script:1."),
        ("redis.call('wrong')", "WRONGTYPE no script: SHA, on @user_script:1."),
        ("return redis.pcall('wrong')", "-WRONGTYPE no"),
        (
            "redis.call()",
            "ERR Please specify at least one argument for this redis lib call script: SHA, on @user_script:1.",
        ),
        (
            "redis.call('echo', {})",
            "ERR Lua redis lib command arguments must be strings or integers script: SHA, on @user_script:1.",
        ),
        ("local ok, e = pcall(redis.call, 'wrong') return {type(e), e}", "*2 $6 string $12 WRONGTYPE no"),
        (
            "local _, e = xpcall(function() redis.call('wrong') end, function(e) return type(e) .. e.err end) return e",
            "$17 tableWRONGTYPE no",
        ),
        ("local _, e = pcall(error, {err='x'}) return e", "$1 x"),
        (
            "local c = coroutine.create(function() redis.call('wrong') end) local _, e = coroutine.resume(c) return e",
            "-WRONGTYPE no",
        ),
        (
            "return x",
            "ERR user_script:1: Script attempted to access nonexistent global variable 'x' script: SHA, on @user_script:1.",
        ),
        (
            "local function f() return f() + 1 end return f()",
            "ERR user_script:1: stack overflow script: SHA, on @user_script:1.",
        ),
        (
            "return cjson.decode('{')",
            "ERR user_script:1: Expected object key string but found T_END at character 2 script: SHA, on @user_script:1.",
        ),
        ("error('\\0located\\0x', 0)", "ERR \0located\0x script: SHA, on @user_script:1."),
    ]);
}

#[test]
fn nothing_that_scripts_share_can_be_changed() {
    let refused = "ERR user_script:1: Attempt to modify a readonly table script: SHA, on @user_script:1.";
    let (mut engine, mut server) = (LuaEngine::new().expect("an engine"), Server::default());
    for source in [
        "x = 1",
        "KEYS = 1",
        "redis.call = 1",
        "string.upper = 1",
        "server.call = 1",
        "_G._G = 1",
        "getmetatable('').__index = nil",
        "getmetatable(_G).__index = nil",
        "for _, v in pairs(_G) do if type(v) == 'table' then v.x = 1 end end",
        "local _, t = next({_G}) t.y = 1",
    ] {
        let text = run_on(&mut engine, &mut server, source, Protocol::Resp2);
        assert!(text == refused || source.starts_with("for") && text.contains("readonly"), "{source}: {text}");
    }
    check(&[
        ("return tostring(pcall(rawset, _G, 'a', 1))", "$5 false"),
        ("return tostring(pcall(setmetatable, redis, {}))", "$5 false"),
        ("return tostring(getmetatable(redis))", "$3 nil"),
        ("local _, s = pairs(redis) return tostring(rawequal(s, redis))", "$4 true"),
        ("table.insert(redis, 'left')", "ERR Attempt to modify a readonly table script: SHA, on @user_script:1."),
        ("return redis[1]", "$-1"),
        ("cjson.encode_max_depth(1) return 1", ":1"),
        ("return cjson.encode_max_depth()", ":1000"),
        ("return tostring(pcall(loadstring, 'x = 1'))", "$4 true"),
        ("local f = loadstring('x = 1') return tostring(pcall(f))", "$5 false"),
        ("return tostring(loadstring(string.dump(function() end)))", "$3 nil"),
    ]);
}

/// The host's references to values are few; libraries are many.
#[test]
fn ten_thousand_libraries_are_loaded() {
    let (mut engine, mut server) = (LuaEngine::for_functions().expect("an engine"), Server::default());
    let source = b"#!lua name=l\nredis.register_function('f', function(keys, args) return args[1] end)";
    let watch: Rc<dyn Watch> = Rc::new(Patience(Cell::new(u32::MAX)));
    for id in 1..=10_000 {
        let library = Library::new(id, source).expect("a library");
        let functions = engine.load(&library, watch.clone(), &mut server).expect("it loads");
        assert_eq!(functions.iter().map(|function| &*function.name).collect::<Vec<_>>(), ["f"]);
    }
    engine.keep_libraries(&BTreeSet::from([9_999]));
    let library = Library::new(9_999, source).expect("a library");
    let mut reply = Reply::new(Protocol::Resp2);
    let callable = Callable::Function { library: &library, name: "f", request: &[] };
    let run = Run { callable, keys: &[], args: &[b"it"], seed: 7, watch };
    engine.run(&run, &mut server, &mut reply).expect("a reply");
    assert_eq!(reply.bytes(), b"$2\r\nit\r\n");
}

/// As Redis words it; a library that has kept `redis` from its loading has no other way to get there.
#[test]
fn nothing_is_registered_but_while_a_library_loads() {
    let (mut engine, mut server) = (LuaEngine::for_functions().expect("an engine"), Server::default());
    let source =
        b"#!lua name=l\nlocal r = redis\nr.register_function('f', function() r.register_function('g', r.log) end)";
    let library = Library::new(1, source).expect("a library");
    let watch: Rc<dyn Watch> = Rc::new(Patience(Cell::new(1000)));
    let callable = Callable::Function { library: &library, name: "f", request: &[] };
    let run = Run { callable, keys: &[], args: &[], seed: 7, watch };
    let ended = engine.run(&run, &mut server, &mut Reply::new(Protocol::Resp2));
    let text =
        "ERR redis.register_function can only be called on FUNCTION LOAD command script: f, on @user_function:3.";
    assert_eq!(ended.map_err(|fault| String::from_utf8_lossy(&fault.text).into_owned()), Err(text.into()));
}

#[test]
fn the_globals_are_those_of_redis() {
    let names = "ARGV KEYS _G _VERSION assert bit cjson cmsgpack collectgarbage coroutine error gcinfo getmetatable ipairs \
                 load loadstring math next os pairs pcall rawequal rawget rawset redis select server setmetatable string \
                 struct table tonumber tostring type unpack xpcall";
    let source = "local n = {} for k in pairs(_G) do n[#n + 1] = k end table.sort(n) return table.concat(n, ' ')";
    check(&[(source, &format!("${} {names}", names.len()))]);
}

/// On a stack as the server's threads and fibers have it, since that of a test is small for code that is not optimized.
#[test]
fn what_goes_too_far_is_ended() {
    let thread = std::thread::Builder::new().stack_size(8 << 20).spawn(go_too_far).expect("a thread");
    thread.join().expect("nothing breaks");
}

fn go_too_far() {
    let killed = "ERR Script killed by user with SCRIPT KILL... script: SHA, on @user_script:1.";
    check(&[
        ("while true do end", killed),
        ("while true do pcall(function() while true do end end) end", killed),
        ("xpcall(function() while true do end end, function() while true do end end) while true do end", killed),
    ]);
    let (mut engine, mut server) = (LuaEngine::new().expect("an engine"), Server::default());
    for source in [
        "local t = {} for i = 1, 1e9 do t[i] = string.rep('x', 1e6) .. i end",
        "return string.rep('x', 2^30)",
        "return unpack({}, -2^31, 2^31 - 1)",
        "return string.match(string.rep('a', 220000), string.rep('a?', 220000))",
        "local t = {} for i = 1, 1e5 do t = {t} end return cjson.encode(t)",
        "cjson.decode_max_depth(1e9) return cjson.decode(string.rep('[', 1e6))",
        "return cmsgpack.unpack(string.rep('\\145', 1e6))",
        "return loadstring(string.rep('(', 1e5))()",
    ] {
        let text = run_on(&mut engine, &mut server, source, Protocol::Resp2);
        assert!(text.starts_with("ERR ") || text == "$-1", "{source}: {}", &text[..text.len().min(200)]);
        assert_eq!(run_on(&mut engine, &mut server, "return 1", Protocol::Resp2), ":1", "after {source}");
    }
}

#[test]
fn a_value_without_end_is_one_reply() {
    let (mut engine, mut server) = (LuaEngine::new().expect("an engine"), Server::default());
    let text = run_on(&mut engine, &mut server, "local t = {} t[1] = t return t", Protocol::Resp2);
    assert!(text.ends_with("-ERR reached lua stack limit"));
}

#[test]
fn lines_of_the_log_reach_the_server() {
    let (mut engine, mut server) = (LuaEngine::new().expect("an engine"), Server::default());
    run_on(&mut engine, &mut server, "redis.log(redis.LOG_WARNING, 'a', 1, {})", Protocol::Resp2);
    assert_eq!(server.lines, ["Warning a 1"]);
}

#[test]
fn libraries_answer_as_redis_does() {
    check(&[
        ("return cjson.encode({1, 2, nil, 4})", "$12 [1,2,null,4]"),
        ("return cjson.encode({a={}}) .. cjson.encode({[1.5]=1})", "$17 {\"a\":{}}{\"1.5\":1}"),
        ("return cjson.encode({0.1, 1e100, 1/3})", "$29 [0.1,1e+100,0.33333333333333]"),
        ("return cjson.decode('\"\\\\u00e9\\\\ud83d\\\\ude00\"')", "$6 é😀"),
        ("return tostring(cjson.decode('0x10'))", "$2 16"),
        ("return bit.tohex(255, -4)", "$4 00FF"),
        ("return bit.bswap(1)", ":16777216"),
        ("return cmsgpack.unpack(cmsgpack.pack({1, 'a', {true, 1.5}}))[3][2] * 2", ":3"),
        ("return struct.unpack('>I2', struct.pack('>I2', 258))", ":258"),
        ("local t = {} for i = 1, 70000 do t['a' .. i] = i end return #cmsgpack.pack(t)", ":697447"),
        ("math.randomseed(7) return tostring(math.random())", "$16 0.26644419658298"),
    ]);
}
