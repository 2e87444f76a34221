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

/// A script holds the shards of its keys, however long it runs, and no other.
#[test]
fn a_long_script_on_its_own_keys_stops_nobody_elsewhere() {
    let Some(server) = server(&["--busy-reply-threshold", "50", "--shards", "8", "--threads", "2"]) else { return };
    let (mut script, mut other, mut client) = (connect(&server), connect(&server), connect(&server));
    let source = "redis.call('set', KEYS[1], 1) while redis.call('get', KEYS[1]) do end";
    script.send(&request(&["EVAL", source, "1", "own"])).expect("it is sent");
    wait_for(&mut client, &["GET", "own"], "BUSY");
    assert_eq!(ask(&mut client, &["PING"]), "PONG");
    let (mut served, mut refused) = (0, 0);
    for number in 0..200 {
        match ask(&mut client, &["SET", &format!("key{number}"), "1"]).as_str() {
            "OK" => served += 1,
            BUSY => refused += 1,
            reply => panic!("{reply}"),
        }
    }
    assert!(served > 100 && refused > 0, "{served} served, {refused} refused");
    // Scripts that may write come one by one, those that only read do not, and nobody has all keys.
    assert_eq!(ask(&mut other, &["EVAL", "return 1", "1", "key0"]), BUSY);
    assert_eq!(ask(&mut client, &["DBSIZE"]), BUSY);
    let reads =
        (0..50).filter(|number| ask(&mut other, &["EVAL_RO", "return 1", "1", &format!("key{number}")]) != BUSY);
    assert!(reads.count() > 20);
}

/// Transfers between accounts, one of which the script names too late: no sum is ever wrong, and nobody waits for ever.
#[test]
fn undeclared_keys_are_reached_without_a_deadlock_and_without_being_seen_half_done() {
    const ACCOUNTS: usize = 24;
    let Some(server) = server(&["--shards", "8", "--threads", "3"]) else { return };
    let name = |number: usize| format!("account{}", number % ACCOUNTS);
    let names: Vec<String> = (0..ACCOUNTS).map(name).collect();
    let mut client = connect(&server);
    names.iter().for_each(|name| assert_eq!(ask(&mut client, &["SET", name, "100"]), "OK"));
    let address = server.address;
    let movers: Vec<_> = (0..4usize)
        .map(|mover| {
            std::thread::spawn(move || {
                let mut client = Client::connect(address).expect("it listens");
                for step in 0..300usize {
                    let (from, to) = (name(mover * 7 + step), name(mover * 5 + step * 11 + 1));
                    // Each time another text: what has been learned of one script says nothing of it.
                    let source = format!(
                        "redis.call('decrby', KEYS[1], 1) redis.call('incrby', ARGV[1], 1) return {}",
                        mover * 1000 + step
                    );
                    let pipelined = [request(&["EVAL", &source, "1", &from, &to]), request(&["GET", &from])].concat();
                    client.send(&pipelined).expect("it is sent");
                    let reply = client.read().expect("a reply").expect("no end").value;
                    assert_eq!(reply, Value::Integer((mover * 1000 + step) as i64));
                    client.read().expect("a reply").expect("no end");
                }
            })
        })
        .collect();
    let sum = |client: &mut Client| -> i64 {
        let words: Vec<&str> = ["MGET"].into_iter().chain(names.iter().map(String::as_str)).collect();
        let Value::Array(values) = client.ask(&words).expect("a reply") else { panic!("MGET") };
        values.iter().map(|value| text(value).parse::<i64>().expect("a number")).sum()
    };
    while !movers.iter().all(std::thread::JoinHandle::is_finished) {
        assert_eq!(sum(&mut client), 100 * ACCOUNTS as i64);
    }
    movers.into_iter().for_each(|mover| mover.join().expect("it moves"));
    assert_eq!(sum(&mut client), 100 * ACCOUNTS as i64);
}

/// Whoever waits for a key is served when the script ends, first come first, and sees all of it.
#[test]
fn who_waits_is_served_when_the_script_ends() {
    let Some(server) = server(&["--shards", "8"]) else { return };
    let mut client = connect(&server);
    let mut waiting: Vec<Client> = (0..3).map(|_| connect(&server)).collect();
    for (at, other) in waiting.iter_mut().enumerate() {
        other.send(&request(&["BLPOP", "list", "elsewhere", "30"])).expect("it is sent");
        wait_for(&mut client, &["INFO", "clients"], "");
        let blocked = format!("blocked_clients:{}", at + 1);
        while !ask(&mut client, &["INFO", "clients"]).contains(&blocked) {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    let source = "redis.call('rpush', KEYS[1], 'a', 'b') redis.call('rpush', 'elsewhere', 'c') \
                  redis.call('lset', KEYS[1], 0, 'A') return redis.call('llen', KEYS[1])";
    assert_eq!(ask(&mut client, &["EVAL", source, "1", "list"]), "Integer(2)");
    let first = |client: &mut Client| match client.read().expect("a reply").expect("no end").value {
        Value::Array(parts) => text(&parts[1]),
        other => panic!("{other:?}"),
    };
    let got: Vec<String> = waiting.iter_mut().map(first).collect();
    assert_eq!(got, ["A", "b", "c"]);
}

/// A script says whether it writes; one that says nothing may.
#[test]
fn a_pause_of_writes_holds_scripts_back_unless_they_say_that_they_do_not_write() {
    let Some(server) = server(&[]) else { return };
    let mut client = connect(&server);
    let library = "#!lua name=l\nredis.register_function('writes', function() return 1 end)\n\
                   redis.register_function{function_name='reads', callback=function() return 1 end, flags={'no-writes'}}";
    assert_eq!(ask(&mut client, &["FUNCTION", "LOAD", library]), "l");
    let reads = ask(&mut client, &["SCRIPT", "LOAD", "#!lua flags=no-writes\nreturn 1"]);
    let writes = ask(&mut client, &["SCRIPT", "LOAD", "#!lua\nreturn 1"]);
    let held: [&[&str]; 8] = [
        &["EVAL", "return 1", "0"],
        &["EVAL", "#!lua\nreturn 1", "0"],
        &["EVAL_RO", "#!lua\nreturn 1", "0"],
        &["EVALSHA", &writes, "0"],
        &["EVALSHA", "0123456789012345678901234567890123456789", "0"],
        &["FCALL", "writes", "0"],
        &["FCALL_RO", "writes", "0"],
        &["FCALL", "nosuch", "0"],
    ];
    assert_eq!(ask(&mut client, &["CLIENT", "PAUSE", "600000", "WRITE"]), "OK");
    let runs: [&[&str]; 4] = [
        &["EVAL", "#!lua flags=no-writes\nreturn 1", "0"],
        &["EVAL_RO", "return 1", "0"],
        &["EVALSHA", &reads, "0"],
        &["FCALL", "reads", "0"],
    ];
    for words in runs {
        assert_eq!(ask(&mut client, words), "Integer(1)", "{words:?}");
    }
    let mut others: Vec<Client> = held.iter().map(|_| connect(&server)).collect();
    for (other, words) in others.iter_mut().zip(held) {
        other.send(&request(words)).expect("it is sent");
    }
    let begun = Instant::now();
    while !ask(&mut client, &["INFO", "clients"]).contains("\nblocked_clients:8\r") {
        assert!(begun.elapsed() < Duration::from_secs(30), "not all of them are held back");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(ask(&mut client, &["CLIENT", "UNPAUSE"]), "OK");
    let replies: Vec<String> = others.iter_mut().map(read).collect();
    assert_eq!(replies[..2], ["Integer(1)", "Integer(1)"]);
    assert!(
        replies[2].starts_with("ERR Can not execute a script with write flag") && replies[4].starts_with("NOSCRIPT")
    );
    assert_eq!(replies[7], "ERR Function not found");
}

/// C6, C26: whatever scripts do to the node, it stays up, and what was acknowledged meanwhile is there after a crash.
#[test]
fn c6_c26_what_was_acknowledged_outlives_scripts_that_go_too_far() {
    let options = ["--appendonly", "yes", "--appendfsync", "always", "--busy-reply-threshold", "50"];
    let Some(mut server) = server(&options) else { return };
    let (mut script, mut client) = (connect(&server), connect(&server));
    let mut acknowledged = Vec::new();
    for (name, source) in [
        ("loops", "while true do end"),
        ("allocates", "local t = {} while true do t[#t + 1] = {#t} end"),
        ("recurses", "local function f(n) return 1 + f(n + 1) end return f(1)"),
        ("builds", "return #string.rep('x', 512 * 1024 * 1024)"),
        ("sets", "return redis.call('set', KEYS[1], string.rep('x', 512 * 1024 * 1024))"),
    ] {
        script.send(&request(&["EVAL", source, "1", name])).expect("it is sent");
        // Keys of other shards can be written all the while; those of its own once it has ended.
        for number in 0..20 {
            let key = format!("{name}:{number}");
            if ask(&mut client, &["SET", &key, name]) == "OK" {
                acknowledged.push((key, name));
            }
        }
        while name == "loops" && ask(&mut client, &["SCRIPT", "KILL"]) != "OK" {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(read(&mut script).starts_with("ERR "), "{name}");
        assert_eq!(ask(&mut client, &["SET", name, name]), "OK");
        acknowledged.push((name.to_owned(), name));
    }
    // An error does not undo what a script has written before it, and it was told so.
    let source = "redis.call('set', KEYS[1], 'half') return #string.rep('x', 512 * 1024 * 1024)";
    assert!(ask(&mut script, &["EVAL", source, "1", "half"]).starts_with("ERR not enough memory"));
    acknowledged.push(("half".to_owned(), "half"));
    assert!(server.is_alive() && acknowledged.len() > 5);
    server.kill();
    server.launch().expect("it starts again");
    let mut client = connect(&server);
    for (key, value) in acknowledged {
        assert_eq!(ask(&mut client, &["GET", &key]), value, "{key}");
    }
}

/// C8: what takes the keys, the scripts or the libraries away while a script uses them waits for its end or is refused. (Redis
/// freed the script's own state when a full copy from its primary arrived in the middle; here keys are loaded anew by
/// DEBUG RELOAD, and nothing takes an engine from the script that runs on it.)
#[test]
fn c8_keys_and_libraries_do_not_go_from_under_a_script_that_runs() {
    let Some(mut server) = server(&["--busy-reply-threshold", "50", "--enable-debug-command", "yes"]) else { return };
    let (mut script, mut client) = (connect(&server), connect(&server));
    let library =
        "#!lua name=l\nredis.register_function('f', function(keys) while true do redis.call('get', keys[1]) end end)";
    let takers: [&[&str]; 7] = [
        &["DEBUG", "RELOAD"],
        &["FLUSHALL"],
        &["SWAPDB", "0", "1"],
        &["SCRIPT", "FLUSH"],
        &["FUNCTION", "FLUSH"],
        &["FUNCTION", "DELETE", "l"],
        &["FUNCTION", "LOAD", "REPLACE", library],
    ];
    let calls: [(&[&str], &str); 2] = [
        (&["EVAL", "while true do redis.call('get', KEYS[1]) end", "1", "x"], "SCRIPT"),
        (&["FCALL", "f", "1", "x"], "FUNCTION"),
    ];
    for (call, kill) in calls {
        for taker in takers {
            assert_eq!(ask(&mut client, &["FUNCTION", "LOAD", "REPLACE", library]), "l");
            assert_eq!(ask(&mut client, &["SET", "x", "1"]), "OK");
            script.send(&request(call)).expect("it is sent");
            // At once, before the script counts as slow, and again when it does.
            let mut others: Vec<Client> = (0..2).map(|_| connect(&server)).collect();
            others[0].send(&request(taker)).expect("it is sent");
            wait_for(&mut client, &["GET", "x"], "BUSY");
            others[1].send(&request(taker)).expect("it is sent");
            wait_for(&mut client, &[kill, "KILL"], "OK");
            assert!(read(&mut script).contains("killed by user"), "{taker:?}");
            for other in &mut others {
                let reply = read(other);
                assert!(["OK", "l"].contains(&reply.as_str()) || reply.starts_with("BUSY"), "{taker:?}: {reply}");
            }
            assert_eq!(ask(&mut client, &["PING"]), "PONG", "{taker:?}");
        }
    }
    assert!(server.is_alive());
}
