//! Snapshots and rewrites of the log in real processes: where exactly the cut is, what stops a server, and what is left behind.

use simurgh_tests::client::Client;
use simurgh_tests::resp::Value;
use simurgh_tests::server::{Program, Server, is_ours_built};
use std::time::{Duration, Instant};

fn start(options: &[&str]) -> (Server, Client) {
    let server = Server::start(&Program::Ours, options).expect("it starts");
    let client = Client::connect(server.address).expect("it listens");
    (server, client)
}

fn ask(client: &mut Client, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    match client.ask(&words).expect("a reply") {
        Value::Simple(text) | Value::Bulk(text) | Value::Error(text) => String::from_utf8_lossy(&text).into_owned(),
        Value::Integer(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

/// Waits until INFO persistence says so.
fn wait_for(client: &mut Client, field: &str) {
    let begin = Instant::now();
    while !ask(client, "INFO persistence").lines().any(|line| line == field) {
        assert!(begin.elapsed() < Duration::from_secs(60), "{field} does not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// One shard, so that all of a pipeline runs in one hold: what comes before the cut is in the base and not in the new increment, what
/// comes behind it the other way round.
#[test]
fn a_cut_lies_between_two_commands_of_a_pipeline() {
    if !is_ours_built() {
        return;
    }
    for (options, request) in
        [(&["--appendonly", "yes"], "BGREWRITEAOF"), (&["--appendonly", "no"], "CONFIG SET appendonly yes")]
    {
        let mut all = vec!["--threads", "1", "--shards", "1", "--enable-debug-command", "yes"];
        all.extend(options.iter());
        let (_server, mut client) = start(&all);
        client
            .send(format!("RPUSH l a\r\nINCR n\r\n{request}\r\nRPUSH l b\r\nINCR n\r\n").as_bytes())
            .expect("it is sent");
        for _ in 0..5 {
            client.read().expect("a reply").expect("the connection stays");
        }
        wait_for(&mut client, "aof_rewrite_in_progress:0");
        assert_eq!(ask(&mut client, "DEBUG LOADAOF"), "OK", "{request}");
        assert_eq!(ask(&mut client, "LLEN l"), "2", "{request}");
        assert_eq!(ask(&mut client, "GET n"), "2", "{request}");
    }
}

#[test]
fn who_counts_on_snapshots_gets_the_last_one_when_the_server_is_asked_to_end() {
    if !is_ours_built() {
        return;
    }
    let (mut server, mut client) = start(&["--appendonly", "no", "--save", "3600 1"]);
    assert_eq!(ask(&mut client, "SET a 1"), "OK");
    server.terminate().expect("it ends");
    server.launch().expect("it starts again");
    let mut client = Client::connect(server.address).expect("it listens");
    assert_eq!(ask(&mut client, "GET a"), "1");
    assert_eq!(ask(&mut client, "SET a 2"), "OK");
    server.shut_down().expect("it ends");
    server.launch().expect("it starts again");
    let mut client = Client::connect(server.address).expect("it listens");
    assert_eq!(ask(&mut client, "GET a"), "1", "NOSAVE saves nothing");
}

#[test]
fn d6_a_snapshot_that_does_not_fit_stops_writes_and_leaves_nothing() {
    if !is_ours_built() {
        return;
    }
    let mut options = vec!["--appendonly", "no", "--save", "3600 1000000", "--enable-debug-command", "yes"];
    options.extend(["--rdbcompression", "no"]);
    let mut server = Server::start_on_full_disk(&Program::Ours, &options, 300_000).expect("it starts");
    let mut client = Client::connect(server.address).expect("it listens");
    assert_eq!(ask(&mut client, "SET small 1"), "OK");
    assert_eq!(ask(&mut client, "SAVE"), "OK");
    assert_eq!(ask(&mut client, "DEBUG POPULATE 10000 k 100"), "OK");
    assert_eq!(ask(&mut client, "BGSAVE"), "Background saving started");
    wait_for(&mut client, "rdb_last_bgsave_status:err");
    assert!(ask(&mut client, "SET b 1").starts_with("MISCONF Redis is configured to save RDB snapshots"));
    assert_eq!(ask(&mut client, "GET small"), "1");
    let temporary = server.folder().join("temp-dump.rdb");
    assert!(!temporary.exists(), "what did not fit is removed");
    assert_eq!(ask(&mut client, "CONFIG SET stop-writes-on-bgsave-error no"), "OK");
    assert_eq!(ask(&mut client, "SET b 1"), "OK");
    assert_eq!(ask(&mut client, "CONFIG SET stop-writes-on-bgsave-error yes"), "OK");
    server.make_room().expect("there is room");
    assert_eq!(ask(&mut client, "SAVE"), "OK");
    assert_eq!(ask(&mut client, "SET b 2"), "OK");
    server.terminate().expect("it ends");
    server.launch().expect("it starts again");
    let mut client = Client::connect(server.address).expect("it listens");
    assert_eq!(ask(&mut client, "DBSIZE"), "10002");
}

#[test]
fn what_a_killed_rewrite_leaves_is_removed_at_the_next_start() {
    if !is_ours_built() {
        return;
    }
    let (mut server, mut client) = start(&["--appendonly", "yes", "--appendfsync", "always"]);
    assert_eq!(ask(&mut client, "SET a 1"), "OK");
    server.kill();
    let folder = server.folder().join("appendonlydir");
    let leftovers = [
        "temp-appendonly.aof.2.base.rdb",
        "temp-appendonly.aof.manifest",
        "appendonly.aof.2.base.rdb",
        "appendonly.aof.2.incr.aof",
    ];
    for name in leftovers.iter().chain(&["mine.txt"]) {
        std::fs::write(folder.join(name), "left behind").expect("it can be written");
    }
    server.launch().expect("it starts again");
    let mut client = Client::connect(server.address).expect("it listens");
    assert_eq!(ask(&mut client, "GET a"), "1");
    for name in leftovers {
        assert!(!folder.join(name).exists(), "{name} is still there");
    }
    assert!(folder.join("mine.txt").exists(), "what is not ours stays");
}

/// D7: rewrites by growth alone, killed at any moment; everything acknowledged is there.
#[test]
fn d7_rewrites_by_growth_lose_nothing_to_kills() {
    if !is_ours_built() {
        return;
    }
    let mut options = vec!["--appendonly", "yes", "--appendfsync", "write", "--auto-aof-rewrite-min-size", "4kb"];
    options.extend(["--auto-aof-rewrite-percentage", "20"]);
    let (mut server, mut client) = start(&options);
    let mut expected = 0u64;
    for round in 0..8 {
        let end = Instant::now() + Duration::from_millis(250 + round * 37);
        while Instant::now() < end {
            for _ in 0..50 {
                expected += 1;
                assert_eq!(ask(&mut client, "INCR n"), expected.to_string());
            }
            ask(&mut client, &format!("SET k{} {}", expected % 100, "x".repeat(200)));
        }
        server.kill();
        server.launch().expect("it starts again");
        client = Client::connect(server.address).expect("it listens");
        assert_eq!(ask(&mut client, "GET n"), expected.to_string());
    }
    let path = server.folder().join("appendonlydir/appendonly.aof.manifest");
    let begin = Instant::now();
    while std::fs::read_to_string(&path).expect("it is there").contains("appendonly.aof.1.base.rdb") {
        assert!(begin.elapsed() < Duration::from_secs(60), "no rewrite takes place");
        ask(&mut client, &format!("SET k {}", "x".repeat(200)));
    }
}

/// A snapshot under way would bring back what FLUSHALL took away; who counts on snapshots gets one of nothing.
#[test]
fn flushall_gives_up_the_snapshot_under_way_and_saves_that_there_is_nothing() {
    if !is_ours_built() {
        return;
    }
    let (mut server, mut client) = start(&["--appendonly", "no", "--save", "3600 1000000"]);
    ask(&mut client, "SET key value");
    ask(&mut client, "BGSAVE");
    wait_for(&mut client, "rdb_bgsave_in_progress:0");
    ask(&mut client, "CONFIG SET rdb-key-save-delay 10000000");
    ask(&mut client, "BGSAVE");
    wait_for(&mut client, "rdb_bgsave_in_progress:1");
    ask(&mut client, "FLUSHALL");
    ask(&mut client, "CONFIG SET rdb-key-save-delay 0");
    wait_for(&mut client, "rdb_saves:2");
    wait_for(&mut client, "rdb_last_bgsave_status:ok");
    server.kill();
    server.launch().expect("it comes back");
    let mut client = Client::connect(server.address).expect("it listens");
    assert_eq!(ask(&mut client, "DBSIZE"), "0");
}
