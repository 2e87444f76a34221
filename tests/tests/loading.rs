//! While data is loaded: what clients are told, and how it ends when somebody asks for that.

use simurgh_tests::client::Client;
use simurgh_tests::everything::ask;
use simurgh_tests::resp::Value;
use simurgh_tests::server::{Program, Server, is_ours_built};
use std::io::Write;
use std::time::{Duration, Instant};

/// Enough to be met while they are loaded, even by a release build.
const KEYS: u32 = 4_000_000;
const MANIFEST: &str = "file appendonly.aof.1.base.rdb seq 1 type b\n";

/// A server that has begun to load many keys.
fn loading() -> (Server, Client) {
    let mut server = Server::start(&Program::Ours, &["--appendonly", "yes"]).expect("it starts");
    server.terminate().expect("it ends");
    let log = server.folder().join("appendonlydir");
    std::fs::remove_dir_all(&log).expect("it was there");
    std::fs::create_dir_all(&log).expect("a folder");
    let base = std::fs::File::create(log.join("appendonly.aof.1.base.rdb")).expect("a file");
    let mut base = std::io::BufWriter::new(base);
    base.write_all(b"REDIS0010\xfe\x00").expect("room");
    for number in 0..KEYS {
        write!(base, "\0\x0bkey:{number:07}\x05value").expect("room");
    }
    // The sum is switched off.
    base.write_all(b"\xff\0\0\0\0\0\0\0\0").expect("room");
    base.into_inner().expect("room");
    std::fs::write(log.join("appendonly.aof.manifest"), MANIFEST).expect("a file");
    server.spawn().expect("it starts");
    let begin = Instant::now();
    let client = loop {
        match Client::connect(server.address) {
            Ok(client) => break client,
            Err(error) => assert!(begin.elapsed() < Duration::from_secs(20), "{error}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    (server, client)
}

fn field(info: &str, name: &str) -> u64 {
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let line = line.unwrap_or_else(|| panic!("{name} in {info}"));
    line.trim_end_matches('%').parse::<f64>().unwrap_or_else(|_| panic!("{name}: {line}")) as u64
}

#[test]
fn clients_are_told_of_loading_and_a_signal_ends_it_at_once() {
    if !is_ours_built() {
        return;
    }
    let (mut server, mut client) = loading();
    for request in [&["PING"][..], &["GET", "a"], &["SET", "a", "b"], &["DBSIZE"]] {
        let expected = Value::Error(b"LOADING Redis is loading the dataset in memory".to_vec());
        assert_eq!(client.ask(request).expect("a reply"), expected, "{request:?}");
    }
    let Value::Bulk(info) = ask(&mut client, &["INFO", "persistence"]).expect("it is allowed") else {
        panic!("a text")
    };
    let info = String::from_utf8(info).expect("text");
    assert_eq!((field(&info, "loading"), field(&info, "async_loading")), (1, 0));
    assert!(field(&info, "loading_total_bytes") > u64::from(KEYS));
    assert!(field(&info, "loading_loaded_bytes") < field(&info, "loading_total_bytes"));
    assert!(field(&info, "loading_loaded_perc") < 100);
    assert!(field(&info, "loading_start_time") > 0);
    field(&info, "loading_eta_seconds");
    let begin = Instant::now();
    let status = server.terminate().expect("it ends");
    assert!(status.success(), "{status}");
    assert!(begin.elapsed() < Duration::from_secs(3), "it took {:?}", begin.elapsed());
    assert!(server.has_logged("Received shutdown signal during loading, exiting now."), "{}", server.log());
}

#[test]
fn shutdown_ends_loading_too_and_the_next_start_has_everything() {
    if !is_ours_built() {
        return;
    }
    let (mut server, mut client) = loading();
    client.send(b"SHUTDOWN NOSAVE\r\n").expect("sent");
    let begin = Instant::now();
    while server.is_alive() {
        assert!(begin.elapsed() < Duration::from_secs(5), "SHUTDOWN does not end it:\n{}", server.log());
        std::thread::sleep(Duration::from_millis(5));
    }
    server.launch().expect("it loads");
    let keys = ask(&mut Client::connect(server.address).expect("it listens"), &["DBSIZE"]).expect("a number");
    assert_eq!(keys, Value::Integer(i64::from(KEYS)));
}
