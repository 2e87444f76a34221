//! Scripts that run long or go too far, seen from outside: a server is started, and others want to be served meanwhile.

use simurgh_tests::client::Client;
use simurgh_tests::resp::Value;
use simurgh_tests::server::{Program, Server, is_ours_built};
use std::time::{Duration, Instant};

fn server(options: &[&str]) -> Option<Server> {
    is_ours_built().then(|| Server::start(&Program::Ours, options).expect("the server starts"))
}

fn connect(server: &Server) -> Client {
    Client::connect(server.address).expect("it listens")
}

/// A request's bytes, to be sent without waiting for the reply.
fn request(words: &[&str]) -> Vec<u8> {
    let words = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect::<Vec<_>>();
    format!("*{}\r\n{}", words.len(), words.concat()).into_bytes()
}

fn text(value: &Value) -> String {
    match value {
        Value::Error(text) | Value::Bulk(text) | Value::Simple(text) => String::from_utf8_lossy(text).into_owned(),
        other => format!("{other:?}"),
    }
}

fn ask(client: &mut Client, words: &[&str]) -> String {
    text(&client.ask(words).expect("a reply"))
}

fn read(client: &mut Client) -> String {
    text(&client.read().expect("a reply").expect("no end").value)
}

/// Asks until the answer begins so.
fn wait_for(client: &mut Client, words: &[&str], begin: &str) {
    let started = Instant::now();
    while !ask(client, words).starts_with(begin) {
        assert!(started.elapsed() < Duration::from_secs(30), "{words:?} never answered {begin}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

const BUSY: &str = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
const KILLED: &str = "ERR Script killed by user with SCRIPT KILL.";
const FOR_EVER: &str = "while true do end";

/// With one processor, so that everybody is on the script's core.
#[test]
fn a_script_for_ever_leaves_its_core_to_others_and_is_killed_from_there() {
    let Some(server) = server(&["--busy-reply-threshold", "200", "--threads", "1"]) else { return };
    let (mut script, mut waiting, mut client) = (connect(&server), connect(&server), connect(&server));
    script.send(&request(&["EVAL", FOR_EVER, "0"])).expect("it is sent");
    std::thread::sleep(Duration::from_millis(50));
    // Before the threshold what needs its shards waits; then it is refused like what comes now.
    waiting.send(&request(&["GET", "x"])).expect("it is sent");
    wait_for(&mut client, &["PING"], "BUSY");
    assert_eq!(read(&mut waiting), BUSY);
    assert_eq!(ask(&mut client, &["SET", "x", "1"]), BUSY);
    assert_eq!(ask(&mut client, &["EVAL", "return 1", "0"]), BUSY);
    assert!(ask(&mut client, &["NOSUCH"]).starts_with("ERR unknown command"));
    assert!(ask(&mut client, &["GET"]).starts_with("ERR wrong number of arguments"));
    assert_eq!(ask(&mut client, &["MULTI"]), "OK");
    assert_eq!(ask(&mut client, &["INCR", "x"]), BUSY);
    assert_eq!(ask(&mut client, &["SCRIPT", "KILL"]), "QUEUED");
    assert!(ask(&mut client, &["EXEC"]).starts_with("EXECABORT "));
    assert_eq!(ask(&mut client, &["SCRIPT", "KILL"]), "OK");
    assert!(read(&mut script).starts_with(KILLED));
    assert!(ask(&mut client, &["SCRIPT", "KILL"]).starts_with("NOTBUSY"));
    assert_eq!(ask(&mut client, &["INCR", "x"]), "Integer(1)");
}

#[test]
fn pcall_does_not_save_a_script_from_being_killed() {
    let Some(server) = server(&[]) else { return };
    let (mut script, mut client) = (connect(&server), connect(&server));
    let stubborn = "local f = function() while true do redis.pcall('get', 'x') end end while true do pcall(f) end";
    script.send(&request(&["EVAL", stubborn, "0"])).expect("it is sent");
    wait_for(&mut client, &["SCRIPT", "KILL"], "OK");
    assert!(read(&mut script).starts_with(KILLED));
}

#[test]
fn a_script_that_has_written_ends_only_with_the_node_and_leaves_nothing() {
    let Some(mut server) = server(&["--busy-reply-threshold", "50", "--appendonly", "yes"]) else { return };
    let (mut script, mut client) = (connect(&server), connect(&server));
    assert_eq!(ask(&mut client, &["SET", "kept", "1"]), "OK");
    script
        .send(&request(&["EVAL", "redis.call('set', KEYS[1], 1) while true do end", "1", "half"]))
        .expect("it is sent");
    wait_for(&mut client, &["GET", "half"], "BUSY");
    assert!(ask(&mut client, &["SCRIPT", "KILL"]).starts_with("UNKILLABLE"));
    let begun = Instant::now();
    client.send(&request(&["SHUTDOWN", "NOSAVE"])).expect("it is sent");
    while server.is_alive() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
    server.launch().expect("it starts again");
    let mut client = connect(&server);
    assert_eq!(
        (ask(&mut client, &["GET", "kept"]), ask(&mut client, &["EXISTS", "half"])),
        ("1".into(), "Integer(0)".into())
    );
}

#[test]
fn a_transaction_with_scripts_takes_turns_too() {
    let Some(server) = server(&["--busy-reply-threshold", "50"]) else { return };
    let (mut script, mut client) = (connect(&server), connect(&server));
    for words in [&["MULTI"][..], &["SET", "a", "1"], &["EVAL", FOR_EVER, "0"], &["INCR", "a"], &["EXEC"]] {
        script.send(&request(words)).expect("it is sent");
    }
    wait_for(&mut client, &["GET", "a"], "BUSY");
    wait_for(&mut client, &["SCRIPT", "KILL"], "OK");
    (0..4).for_each(|_| assert!(["OK", "QUEUED"].contains(&read(&mut script).as_str())));
    let reply = script.read().expect("a reply").expect("no end").value;
    let Value::Array(parts) = reply else { panic!("{reply:?}") };
    let parts: Vec<String> = parts.iter().map(text).collect();
    assert!(parts[0] == "OK" && parts[1].starts_with(KILLED) && parts[2] == "Integer(2)", "{parts:?}");
}

/// C6, C26: what a script may build, and how deep it may go, has an end; and then the node serves on.
#[test]
fn c6_c26_a_script_that_goes_too_far_ends_alone() {
    let Some(mut server) = server(&[]) else { return };
    let mut client = connect(&server);
    let nested = format!("return {}1{}", "(".repeat(5000), ")".repeat(5000));
    for source in [
        "local t = {} while true do t[#t + 1] = string.rep('x', 1000000) .. #t end",
        "local t = {} for i = 1, 1e9 do t[i] = {} end",
        "local s = string.rep('x', 512 * 1024 * 1024) return #s",
        "local s = 'x' while true do s = s .. s end",
        "local function f(n) return 1 + f(n + 1) end return f(1)",
        "local function f() pcall(f) error('x') end f()",
        "local s = string.rep('x', 100) local function f() return (s:gsub('x', f)) end return f()",
        "local t = setmetatable({}, {}) getmetatable(t).__index = function(_, k) return t[k] end return t.x",
        "return string.rep('(', 100000) .. loadstring('return ' .. string.rep('(', 100000))",
        "return cjson.decode(string.rep('[', 1000000))",
        "return cmsgpack.unpack(string.rep('\\145', 1000000))",
        "return ('x'):rep(100000):find(('x?'):rep(100000) .. 'y')",
        "return unpack({}, 0, 2147483647)",
        "return unpack({}, -2147483648, 2147483647)",
        "local t = {} t[1] = t return t",
        "return struct.pack('>I2147483647', 10)",
        "return bit.tohex(65535, -2147483648)",
        "return string.format('%99999999d', 1)",
        &nested,
    ] {
        let reply = ask(&mut client, &["EVAL", source, "0"]);
        assert!(server.is_alive(), "{source}");
        assert!(!reply.is_empty() && reply.len() < 300_000, "{source}");
        assert_eq!(ask(&mut client, &["PING"]), "PONG", "{source}");
    }
}

const C5_SOURCES: [&str; 10] = [
    "return redis.error_reply('a\\r\\n+b\\0c')",
    "return redis.status_reply('a\\r\\n+b\\0c')",
    "return {err = 'a\\r\\n:1'}",
    "return {ok = 'a\\n\\r:1'}",
    "error('a\\r\\n+b')",
    "error({err = 'a\\r\\n+b'})",
    "return redis.call('nosuch\\r\\n+b')",
    "return redis.call('incr', KEYS[1], 'a\\r\\n')",
    "return {big_number = '1\\r\\n+b'}",
    "return {double = 1, map = 'x\\r\\n'}",
];

/// C5: one reply for one request, whatever an error or a status holds.
#[test]
fn c5_line_ends_in_errors_and_statuses_are_no_line_ends() {
    let Some(server) = server(&[]) else { return };
    for (resp, source) in [2, 3].into_iter().flat_map(|resp| C5_SOURCES.map(|source| (resp, source))) {
        let mut client = Client::connect_as(server.address, resp).expect("it listens");
        let reply = client.ask(&["EVAL", source, "1", "k"]).expect("a reply");
        if !matches!(reply, Value::Bulk(_)) {
            assert!(!text(&reply).contains(['\r', '\n', '\0']), "{source}: {reply:?}");
        }
        assert_eq!(ask(&mut client, &["ECHO", "still here"]), "still here", "{source}");
    }
}

/// C7: what one script does to its surroundings no other one sees.
#[test]
fn c7_a_script_changes_nothing_for_others() {
    let Some(server) = server(&[]) else { return };
    let mut client = connect(&server);
    for source in [
        "string.rep = function() return 'evil' end",
        "getmetatable('').__index = function() return 'evil' end",
        "getmetatable('').__index.rep = function() return 'evil' end",
        "setmetatable(_G, {__index = function() return 'evil' end})",
        "rawset(_G, 'rep', 1)",
        "rawset(string, 'rep', 1)",
        "table.insert(string, 'evil')",
        "redis.call = function() return 'evil' end",
        "debug.sethook()",
        "math.random = nil",
        "_G._G.tostring = nil",
        "KEYS = 'evil' ARGV = nil",
    ] {
        ask(&mut client, &["EVAL", source, "0"]);
        let probe = "return {('ab'):rep(2), #string, tostring(type(KEYS)), redis.call('echo', ARGV[1]), tostring(1)}";
        let reply = client.ask(&["EVAL", probe, "1", "k", "v"]).expect("a reply");
        let Value::Array(parts) = reply else { panic!("{source}: {reply:?}") };
        let parts: Vec<String> = parts.iter().map(text).collect();
        assert_eq!(parts, ["abab", "Integer(0)", "table", "v", "1"], "{source}");
    }
}
