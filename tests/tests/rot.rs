//! Rot in the last group of a log, the one behind which no later group tells that it was synced (RELIABILITY D2, D14): once the
//! server had nothing to do, or was asked to end, it must be refused like rot anywhere else, not cut like a torn write.

use simurgh_tests::client::Client;
use simurgh_tests::resp::Value;
use simurgh_tests::server::{Program, Server, is_ours_built};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const VALUE: &[u8] = b"what-the-last-group-holds";

fn log_of(server: &Server) -> PathBuf {
    server.folder().join("appendonlydir/appendonly.aof.1.incr.aof")
}

/// Whether the last line of the log says that all of it was synced: `#SUM:<position>:<the same>:...`.
fn ends_vouched_for(log: &[u8]) -> bool {
    let text = String::from_utf8_lossy(log);
    let Some(line) = text.lines().last().and_then(|line| line.strip_prefix("#SUM:")) else { return false };
    let mut fields = line.split(':');
    fields.next() == fields.next()
}

fn wait_for_the_idle_seal(server: &Server) {
    let begin = Instant::now();
    while !ends_vouched_for(&std::fs::read(log_of(server)).expect("the log is there")) {
        assert!(begin.elapsed() < Duration::from_secs(30), "nothing says that the last group was synced");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Flips a bit in the last group's value, and gives what the server says at its start.
fn start_with_rot(server: &mut Server) -> Result<(), String> {
    let path = log_of(server);
    let mut log = std::fs::read(&path).expect("the log is there");
    let at = log.windows(VALUE.len()).rposition(|window| window == VALUE).expect("the value was logged");
    log[at] ^= 1;
    std::fs::write(&path, log).expect("it can be written");
    server.launch().map_err(|error| format!("{error:#}"))
}

fn server_with_a_burst(mode: &str) -> Server {
    let server = Server::start(&Program::Ours, &["--appendonly", "yes", "--appendfsync", mode]).expect("it starts");
    let mut client = Client::connect(server.address).expect("it listens");
    for key in ["a", "b", "c"] {
        let reply = client.ask(&[b"SET".as_slice(), key.as_bytes(), VALUE]).expect("a reply");
        assert_eq!(reply, Value::Simple(b"OK".to_vec()));
    }
    server
}

#[test]
fn d14_rot_in_the_last_group_is_refused_after_a_moment_of_rest() {
    if !is_ours_built() {
        return;
    }
    for mode in ["always", "write", "everysec"] {
        let mut server = server_with_a_burst(mode);
        wait_for_the_idle_seal(&server);
        let length = std::fs::metadata(log_of(&server)).expect("it is there").len();
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(std::fs::metadata(log_of(&server)).expect("it is there").len(), length, "one seal is enough");
        server.kill();
        let refusal = start_with_rot(&mut server).expect_err("rot is not loaded and not cut");
        assert!(refusal.contains("damaged append-only file at byte"), "{mode}: {refusal}");
    }
}

#[test]
fn d14_rot_in_the_last_group_is_refused_after_a_shutdown() {
    if !is_ours_built() {
        return;
    }
    for mode in ["always", "write", "everysec", "no"] {
        let mut server = server_with_a_burst(mode);
        server.terminate().expect("it ends");
        assert!(ends_vouched_for(&std::fs::read(log_of(&server)).expect("the log is there")), "{mode}");
        let refusal = start_with_rot(&mut server).expect_err("rot is not loaded and not cut");
        assert!(refusal.contains("damaged append-only file at byte"), "{mode}: {refusal}");
    }
}

/// What a killed server left behind is made safe by the next start, and is vouched for from then on.
#[test]
fn d14_rot_in_the_last_group_is_refused_after_a_restart() {
    if !is_ours_built() {
        return;
    }
    let mut server = server_with_a_burst("no");
    // Written within 50 ms, never synced.
    std::thread::sleep(Duration::from_millis(500));
    server.kill();
    assert!(!ends_vouched_for(&std::fs::read(log_of(&server)).expect("the log is there")));
    server.launch().expect("it starts");
    server.kill();
    assert!(ends_vouched_for(&std::fs::read(log_of(&server)).expect("the log is there")));
    let refusal = start_with_rot(&mut server).expect_err("rot is not loaded and not cut");
    assert!(refusal.contains("damaged append-only file at byte"), "{refusal}");
}

/// A base that is empty, cut between two commands, or has a wrong byte in a value reads well as commands, and an empty one as nothing at all.
#[test]
fn a_base_that_is_not_what_was_written_is_refused() {
    if !is_ours_built() {
        return;
    }
    for preamble in ["yes", "no"] {
        for damage in ["empty", "cut", "flipped"] {
            let arguments = ["--appendonly", "yes", "--appendfsync", "always", "--aof-use-rdb-preamble", preamble];
            let mut server = Server::start(&Program::Ours, &arguments).expect("it starts");
            let mut client = Client::connect(server.address).expect("it listens");
            for key in ["a", "b"] {
                client.ask(&[b"SET".as_slice(), key.as_bytes(), VALUE]).expect("a reply");
            }
            client.ask(&[b"BGREWRITEAOF".as_slice()]).expect("a reply");
            let kind = if preamble == "yes" { "rdb" } else { "aof" };
            let path = server.folder().join(format!("appendonlydir/appendonly.aof.2.base.{kind}"));
            let manifest = server.folder().join("appendonlydir/appendonly.aof.manifest");
            let begin = Instant::now();
            while !std::fs::read_to_string(&manifest)
                .is_ok_and(|text| text.contains(".2.base.") && !text.contains("type h"))
            {
                assert!(begin.elapsed() < Duration::from_secs(30), "the log was not rewritten");
                std::thread::sleep(Duration::from_millis(20));
            }
            server.kill();
            let mut base = std::fs::read(&path).expect("the base is there");
            let value = base.windows(VALUE.len()).rposition(|window| window == VALUE).expect("the value is in it");
            let last = base.windows(9).rposition(|window| window == b"*3\r\n$3\r\nS").unwrap_or(value);
            match damage {
                "empty" => base.clear(),
                "cut" => base.truncate(last),
                _ => base[value] ^= 1,
            }
            std::fs::write(&path, &base).expect("it can be written");
            let refusal = server.launch().map_err(|error| format!("{error:#}")).expect_err("damage is not served");
            assert!(refusal.contains(&format!("2.base.{kind}")), "{preamble} {damage}: {refusal}");
        }
    }
}
