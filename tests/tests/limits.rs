//! Limits of memory, seen from outside: a server is started, and clients misbehave.

use simurgh_tests::client::Client;
use simurgh_tests::resp::Value;
use simurgh_tests::server::{Program, Server, is_ours_built};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn server(options: &[&str]) -> Option<Server> {
    is_ours_built().then(|| Server::start(&Program::Ours, options).expect("the server starts"))
}

fn stream(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout can be set");
    stream.set_write_timeout(Some(Duration::from_secs(2))).expect("a timeout can be set");
    stream
}

/// Whether the server closes within the time-out of reads; what it sent before is read.
fn is_closed(stream: &mut TcpStream) -> bool {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

fn clients(client: &mut Client) -> usize {
    match client.ask(&["CLIENT", "LIST"]).expect("a reply") {
        Value::Bulk(list) => list.iter().filter(|byte| **byte == b'\n').count(),
        other => panic!("CLIENT LIST is {other:?}"),
    }
}

fn is_oom(value: &Value) -> bool {
    matches!(value, Value::Error(text) if text.starts_with(b"OOM command not allowed when used memory > 'maxmemory'."))
}

#[test]
fn c2_who_never_reads_and_has_no_password_is_cut() {
    let Some(server) = server(&["--requirepass", "secret"]) else { return };
    let mut stream = stream(&server);
    let request = b"GET a\r\n".repeat(10_000);
    // About thirty megabytes of replies: more than the kernel's buffers take.
    let cut = (0..100).any(|_| stream.write_all(&request).is_err());
    assert!(cut || is_closed(&mut stream));
}

#[test]
fn output_limits_cut_whether_they_lie_below_or_above_the_pause() {
    for limit in ["normal 100000 0 0", "normal 20000000 0 0"] {
        let Some(server) = server(&["--client-output-buffer-limit", limit]) else { return };
        let mut client = Client::connect(server.address).expect("it listens");
        client.ask(&["SET", "big", &"x".repeat(100_000)]).expect("a reply");
        let mut stream = stream(&server);
        let cut = stream.write_all(&b"*2\r\n$3\r\nGET\r\n$3\r\nbig\r\n".repeat(1000)).is_err();
        // Nothing is read until the server has had all the time it wants: reading would help it.
        let begin = Instant::now();
        while !cut && clients(&mut client) > 1 && begin.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(cut || is_closed(&mut stream), "{limit}");
    }
}

#[test]
fn a_subscriber_that_does_not_read_is_cut_and_nobody_waits_for_it() {
    let Some(server) = server(&["--client-output-buffer-limit", "pubsub 1mb 0 0"]) else { return };
    let mut slow = stream(&server);
    slow.write_all(b"SUBSCRIBE news\r\n").expect("a request fits into the socket");
    let mut reader = Client::connect(server.address).expect("it listens");
    reader.ask(&["SUBSCRIBE", "news"]).expect("a reply");
    let mut client = Client::connect(server.address).expect("it listens");
    let message = "x".repeat(100_000);
    let mut receivers = Vec::new();
    for _ in 0..300 {
        receivers.push(client.ask(&["PUBLISH", "news", &message]).expect("a reply"));
        // The other one reads, and hears everything.
        let heard = reader.read().expect("a message").expect("no end");
        assert!(matches!(&heard.value, Value::Array(words) if words.len() == 3), "a message");
    }
    assert_eq!(receivers.first(), Some(&Value::Integer(2)));
    assert_eq!(receivers.last(), Some(&Value::Integer(1)));
    assert!(is_closed(&mut slow));
}

#[test]
fn a_long_pipeline_of_large_replies_is_answered_to_its_end() {
    let Some(server) = server(&[]) else { return };
    let mut client = Client::connect(server.address).expect("it listens");
    client.ask(&["SET", "big", &"x".repeat(100_000)]).expect("a reply");
    let mut stream = stream(&server);
    stream.write_all(&b"*2\r\n$3\r\nGET\r\n$3\r\nbig\r\n".repeat(500)).expect("requests fit into the socket");
    // Nothing more is sent: what waits in the server must go on by itself.
    let mut left = 500 * (b"$100000\r\n".len() + 100_002);
    let mut buffer = vec![0; 1 << 16];
    while left > 0 {
        left -= stream.read(&mut buffer).expect("the next piece");
    }
}

#[test]
fn an_unfinished_request_has_a_limit() {
    let Some(server) = server(&["--client-query-buffer-limit", "1mb"]) else { return };
    let mut stream = stream(&server);
    let _ = stream.write_all(b"*2\r\n$3\r\nGET\r\n$10000000\r\n");
    let _ = stream.write_all(&[b'x'; 3_000_000]);
    assert!(is_closed(&mut stream));
}

#[test]
fn without_eviction_commands_that_need_memory_are_refused() {
    let Some(server) = server(&["--maxmemory", "6mb", "--appendonly", "no"]) else { return };
    let mut client = Client::connect(server.address).expect("it listens");
    let value = "x".repeat(10_000);
    let mut set = |key: usize| client.ask(&["SET", &key.to_string(), &value]).expect("a reply");
    let refused = (0..1000).find(|key| is_oom(&set(*key))).expect("ten megabytes do not fit into six");
    assert!(refused > 100, "{refused}");
    assert!(matches!(client.ask(&["GET", "1"]).expect("a reply"), Value::Bulk(_)));
    client.ask(&["MULTI"]).expect("a reply");
    assert!(is_oom(&client.ask(&["SET", "a", "b"]).expect("a reply")));
    let executed = client.ask(&["EXEC"]).expect("a reply");
    assert!(matches!(executed, Value::Error(text) if text.starts_with(b"EXECABORT")));
}

#[test]
fn with_eviction_nothing_is_refused() {
    let options = ["--maxmemory", "6mb", "--maxmemory-policy", "allkeys-lru", "--appendonly", "no"];
    let Some(server) = server(&options) else { return };
    let mut client = Client::connect(server.address).expect("it listens");
    let value = "x".repeat(10_000);
    for key in 0..2000 {
        let reply = client.ask(&["SET", &key.to_string(), &value]).expect("a reply");
        assert!(!matches!(reply, Value::Error(_)), "{key}: {reply:?}");
    }
    let Value::Integer(keys) = client.ask(&["DBSIZE"]).expect("a reply") else { panic!("DBSIZE is a number") };
    assert!((100..600).contains(&keys), "{keys} keys of ten kilobytes in six megabytes");
}

/// While CLIENT PAUSE holds writes back nothing is evicted, neither by requests nor by the timer; afterwards it is.
#[test]
fn a_pause_of_writes_holds_eviction_back_too() {
    let options = ["--maxmemory-policy", "allkeys-lru", "--appendonly", "no"];
    let Some(server) = server(&options) else { return };
    let mut client = Client::connect(server.address).expect("it listens");
    for key in 0..1000 {
        client.ask(&["SET", &key.to_string(), &"x".repeat(10_000)]).expect("a reply");
    }
    client.ask(&["CLIENT", "PAUSE", "100000", "WRITE"]).expect("a reply");
    client.ask(&["CONFIG", "SET", "maxmemory", "6mb"]).expect("a reply");
    for key in 0..100 {
        client.ask(&["GET", &key.to_string()]).expect("a reply");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(client.ask(&["DBSIZE"]).expect("a reply"), Value::Integer(1000));
    client.ask(&["CLIENT", "UNPAUSE"]).expect("a reply");
    client.ask(&["GET", "1"]).expect("a reply");
    let begin = Instant::now();
    while client.ask(&["DBSIZE"]).expect("a reply") == Value::Integer(1000) {
        assert!(begin.elapsed() < Duration::from_secs(30), "nothing is evicted after the pause");
        std::thread::sleep(Duration::from_millis(20));
    }
}
