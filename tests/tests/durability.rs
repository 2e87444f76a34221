//! What one client is promised beyond the mode in force: CLIENT DURABILITY and WAITAOF, with a log.

use simurgh_tests::client::Client;
use simurgh_tests::everything::ask;
use simurgh_tests::resp::Value;
use simurgh_tests::server::{Program, Server, is_ours_built};
use std::time::{Duration, Instant};

fn start(mode: &str) -> (Server, Client) {
    let server = Server::start(&Program::Ours, &["--appendonly", "yes", "--appendfsync", mode]).expect("it starts");
    let client = Client::connect(server.address).expect("it listens");
    (server, client)
}

/// Up to which position the log's file says that it was synced, and how long the log is: of the last seal.
fn last_seal(server: &Server) -> (u64, u64) {
    let log = std::fs::read(server.folder().join("appendonlydir/appendonly.aof.1.incr.aof")).expect("the log is there");
    let text = String::from_utf8_lossy(&log).into_owned();
    let line = text.lines().rfind(|line| line.starts_with("#SUM:")).unwrap_or("#SUM:0:0:").to_owned();
    let mut fields = line[5..].split(':').map(|field| field.parse().unwrap_or(0));
    (fields.next().unwrap_or(0), fields.next().unwrap_or(0))
}

fn position(client: &mut Client, name: &str) -> u64 {
    let Value::Bulk(info) = ask(client, &["INFO", "persistence"]).expect("a reply") else { panic!("a text") };
    let info = String::from_utf8(info).expect("text");
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).expect("the field is there");
    line.parse().expect("a number")
}

fn pair(local: i64, replicas: i64) -> Value {
    Value::Array(vec![Value::Integer(local), Value::Integer(replicas)])
}

#[test]
fn waitaof_waits_for_the_disk_whatever_the_mode() {
    if !is_ours_built() {
        return;
    }
    for mode in ["always", "write", "everysec", "no"] {
        let (_server, mut client) = start(mode);
        let begin = Instant::now();
        for round in 0..20 {
            ask(&mut client, &["SET", "key", &round.to_string()]).expect("it is taken");
            assert_eq!(ask(&mut client, &["WAITAOF", "1", "0", "5000"]).expect("a reply"), pair(1, 0), "{mode}");
        }
        // A sync is asked for: nobody waits for the second that everysec may take.
        assert!(begin.elapsed() < Duration::from_secs(10), "{mode}: {:?}", begin.elapsed());
        assert_eq!(ask(&mut client, &["WAITAOF", "1", "1", "50"]).expect("a reply"), pair(1, 0), "{mode}: no replicas");
    }
}

/// A snapshot's cut in the middle of a hold: what came before it in the pipeline has joined the log by itself.
#[test]
fn waitaof_waits_for_what_a_cut_has_logged() {
    if !is_ours_built() {
        return;
    }
    let options = ["--appendonly", "yes", "--appendfsync", "no", "--shards", "1"];
    let server = Server::start(&Program::Ours, &options).expect("it starts");
    let mut client = Client::connect(server.address).expect("it listens");
    client.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n*1\r\n$6\r\nBGSAVE\r\n").expect("it is sent");
    for _ in 0..2 {
        client.read().expect("a reply");
    }
    let written = position(&mut client, "aof_position");
    assert_eq!(ask(&mut client, &["WAITAOF", "1", "0", "5000"]).expect("a reply"), pair(1, 0));
    assert!(position(&mut client, "aof_synced_position") >= written, "the change is not on the disk");
}

#[test]
fn a_stronger_choice_holds_replies_until_the_disk_has_them() {
    if !is_ours_built() {
        return;
    }
    for mode in ["no", "everysec", "write"] {
        let (server, mut client) = start(mode);
        ask(&mut client, &["CLIENT", "DURABILITY", "always"]).expect("it is known");
        assert_eq!(ask(&mut client, &["CLIENT", "DURABILITY"]).expect("a reply"), Value::Bulk(b"always".to_vec()));
        for round in 0..10 {
            ask(&mut client, &["SET", "key", &round.to_string()]).expect("it is taken");
            // What the reply told of was on the disk when it came.
            let end = position(&mut client, "aof_position");
            let synced = position(&mut client, "aof_synced_position");
            assert!(synced >= end, "{mode}: {synced} of {end}");
        }
        let (end, _) = last_seal(&server);
        assert!(end > 0, "{mode}: nothing was written");
    }
}

#[test]
fn a_choice_for_one_transaction_ends_with_it() {
    if !is_ours_built() {
        return;
    }
    let (_server, mut client) = start("no");
    ask(&mut client, &["CLIENT", "DURABILITY", "NEXT", "always"]).expect("it is known");
    ask(&mut client, &["GET", "a"]).expect("a read changes nothing");
    for request in [&["MULTI"][..], &["SET", "a", "1"], &["SET", "b", "1"], &["EXEC"]] {
        ask(&mut client, request).expect("it is taken");
    }
    let synced = position(&mut client, "aof_synced_position");
    assert_eq!(synced, position(&mut client, "aof_position"), "the transaction is on the disk");
    assert_eq!(ask(&mut client, &["CLIENT", "DURABILITY"]).expect("a reply"), Value::Bulk(b"default".to_vec()));
    for (request, text) in [
        (&["CLIENT", "DURABILITY", "sometimes"][..], "ERR durability must be always, write, everysec, no or default"),
        (&["CLIENT", "DURABILITY", "a", "b"], "ERR syntax error"),
    ] {
        assert_eq!(client.ask(request).expect("a reply"), Value::Error(text.as_bytes().to_vec()));
    }
    ask(&mut client, &["CLIENT", "DURABILITY", "write"]).expect("it is known");
    ask(&mut client, &["RESET"]).expect("it is known");
    assert_eq!(ask(&mut client, &["CLIENT", "DURABILITY"]).expect("a reply"), Value::Bulk(b"default".to_vec()));
}

#[test]
fn without_a_log_nothing_stronger_can_be_chosen() {
    if !is_ours_built() {
        return;
    }
    let server = Server::start(&Program::Ours, &["--appendonly", "no"]).expect("it starts");
    let mut client = Client::connect(server.address).expect("it listens");
    let refusal = Value::Error(b"ERR there is no log: appendonly is off".to_vec());
    assert_eq!(client.ask(&["CLIENT", "DURABILITY", "always"]).expect("a reply"), refusal);
    ask(&mut client, &["CLIENT", "DURABILITY", "no"]).expect("that promises nothing");
}
