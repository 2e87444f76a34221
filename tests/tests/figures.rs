//! What the server tells of itself must be so: sizes that INFO gives are those of the files, what takes long is an event of LATENCY.

use simurgh_tests::client::Client;
use simurgh_tests::resp::Value;
use simurgh_tests::server::{Program, Server, is_ours_built};
use std::time::{Duration, Instant};

fn server(options: &[&str]) -> Option<Server> {
    is_ours_built().then(|| Server::start(&Program::Ours, options).expect("the server starts"))
}

fn info(client: &mut Client, field: &str) -> u64 {
    let Value::Bulk(text) = client.ask(&["INFO", "everything"]).expect("a reply") else { panic!("INFO is text") };
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {field} in {text}")).trim().parse().expect("a number")
}

/// The files of the log together.
fn log_bytes(server: &Server) -> u64 {
    let folder = server.folder().join("appendonlydir");
    let lengths = folder.read_dir().expect("it is there").map(|entry| {
        let entry = entry.expect("an entry");
        let is_data = !entry.file_name().to_string_lossy().ends_with(".manifest");
        if is_data { entry.metadata().expect("it is there").len() } else { 0 }
    });
    lengths.sum()
}

#[test]
fn the_sizes_of_the_log_are_those_of_its_files() {
    let Some(mut server) = server(&["--appendonly", "yes", "--appendfsync", "always"]) else { return };
    let mut client = Client::connect(server.address).expect("it listens");
    let empty = info(&mut client, "aof_base_size");
    assert_eq!(empty, log_bytes(&server));
    client.ask(&["SET", "a", &"x".repeat(1000)]).expect("a reply");
    let begin = Instant::now();
    while info(&mut client, "aof_current_size") != log_bytes(&server) {
        assert!(begin.elapsed() < Duration::from_secs(30), "the size does not settle");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(info(&mut client, "aof_current_size") > empty + 1000);
    assert_eq!(info(&mut client, "aof_base_size"), empty);
    server.terminate().expect("it ends");
    server.launch().expect("it starts");
    let mut client = Client::connect(server.address).expect("it listens");
    assert_eq!(info(&mut client, "aof_base_size"), log_bytes(&server));
}

#[test]
fn what_a_flush_frees_off_the_path_is_counted() {
    let Some(server) = server(&["--appendonly", "no", "--enable-debug-command", "yes"]) else { return };
    let mut client = Client::connect(server.address).expect("it listens");
    client.ask(&["DEBUG", "POPULATE", "5000"]).expect("a reply");
    client.ask(&["FLUSHALL", "ASYNC"]).expect("a reply");
    let begin = Instant::now();
    while info(&mut client, "lazyfree_pending_objects") > 0 {
        assert!(begin.elapsed() < Duration::from_secs(30), "it is never freed");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(info(&mut client, "lazyfreed_objects"), 5000);
    client.ask(&["CONFIG", "RESETSTAT"]).expect("a reply");
    assert_eq!(info(&mut client, "lazyfreed_objects"), 0);
}

fn events(client: &mut Client) -> Vec<String> {
    let Value::Array(events) = client.ask(&["LATENCY", "LATEST"]).expect("a reply") else { panic!("a list") };
    let name = |event: &Value| match event {
        Value::Array(fields) => match &fields[0] {
            Value::Bulk(name) => String::from_utf8_lossy(name).into_owned(),
            other => panic!("a name is {other:?}"),
        },
        other => panic!("an event is {other:?}"),
    };
    events.iter().map(name).collect()
}

/// Thirty megabytes take the disk longer than a millisecond.
#[test]
fn slow_writes_and_syncs_of_the_log_are_events() {
    for (mode, expected) in [("always", "aof-fsync-always"), ("no", "aof-write-alone")] {
        let options = ["--appendonly", "yes", "--appendfsync", mode, "--latency-monitor-threshold", "1"];
        let Some(server) = server(&options) else { return };
        let mut client = Client::connect(server.address).expect("it listens");
        client.ask(&["SET", "large", &"x".repeat(30 << 20)]).expect("a reply");
        let begin = Instant::now();
        loop {
            let events = events(&mut client);
            if events.iter().any(|event| event == expected) && events.iter().any(|event| event == "aof-write") {
                break;
            }
            assert!(begin.elapsed() < Duration::from_secs(30), "{mode}: {events:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
