//! Classes of failure that only a whole process shows: no descriptors left, requests in pieces, clients that vanish while they
//! wait, panics (RELIABILITY C3, C4, C16, C27). Runs on the binary that `SIMURGH_BINARY` names, else on the release build.

use simurgh_tests::client::Client;
use simurgh_tests::resp::Value;
use simurgh_tests::server::{Program, Server, is_ours_built};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

fn server(options: &[&str]) -> Server {
    Server::start(&Program::Ours, options).expect("the server starts")
}

fn stream(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout can be set");
    stream.set_nodelay(true).expect("an option can be set");
    stream
}

/// CVE-2025-48367: while nobody can be accepted, those who are connected are served; afterwards everybody is.
#[test]
fn c3_without_descriptors_other_clients_go_on() {
    if !is_ours_built() {
        return;
    }
    let server =
        Server::start_limited(&Program::Ours, &["--appendonly", "no", "--threads", "1"], 48).expect("it starts");
    let mut client = Client::connect(server.address).expect("it listens");
    client.ask(&["PING"]).expect("a reply");
    let storm: Vec<TcpStream> = (0..200).map(|_| stream(server.address)).collect();
    let mut slowest = Duration::ZERO;
    for _ in 0..200 {
        let begin = Instant::now();
        assert_eq!(client.ask(&["PING"]).expect("a reply amid the storm"), Value::Simple(b"PONG".to_vec()));
        slowest = slowest.max(begin.elapsed());
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(slowest < Duration::from_secs(5), "a PING took {slowest:?}");
    assert!(server.has_logged("cannot accept connections"), "it never ran out of descriptors: {}", server.log());
    drop(storm);
    for _ in 0..500 {
        drop(TcpStream::connect(server.address).expect("it listens"));
    }
    let mut late = Client::connect(server.address).expect("it listens");
    assert_eq!(late.ask(&["PING"]).expect("a reply after the storm"), Value::Simple(b"PONG".to_vec()));
}

/// Requests of every kind after each other, the last of which ends the connection.
const PIPELINE: &[&[u8]] = &[
    b"FLUSHALL\r\n",
    b"*0\r\n",
    b"\r\n",
    b"*-1\r\n",
    b"*3\r\n$3\r\nSET\r\n$2\r\nc4\r\n$6\r\na\r\nb\r\n\r\n",
    b"  GET  c4\r\n",
    b"*1\r\n$3\r\nFOO\r\n",
    b"*1\r\n$3\r\nGET\r\n",
    b"*1\r\n$5\r\nMULTI\r\n",
    b"INCR c4n\n",
    b"nonsense\r\n",
    b"*1\r\n$4\r\nEXEC\r\n",
    b"MULTI\r\n*2\r\n$4\r\nINCR\r\n$3\r\nc4n\r\n*0\r\nGET c4\r\nINCR c4\r\nEXEC\r\n",
    b"CLIENT REPLY SKIP\r\nPING\r\n",
    b"*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$3\r\nOFF\r\nPING\r\nFOO\r\n",
    b"CLIENT REPLY ON\r\n",
    b"SET c4 \"a\\x00b \\\"c\"\r\n",
    b"*2\r\n$3\r\nGET\r\n$2\r\nc4\r\n",
    b"*2\r\n$3\r\nGET\r\n$0\r\n\r\n",
    b"WATCH c4\r\nSET c4 1\r\nMULTI\r\nPING\r\nEXEC\r\n",
    b"DISCARD\r\n",
    b"*1\r\n$-5\r\n",
];

/// Everything that is answered to pieces sent one after the other.
fn answers(address: SocketAddr, pieces: &[&[u8]]) -> Vec<u8> {
    let mut stream = stream(address);
    for (number, piece) in pieces.iter().enumerate() {
        if number > 0 {
            std::thread::sleep(Duration::from_micros(300));
        }
        stream.write_all(piece).expect("it reads until the last request");
    }
    let mut answers = Vec::new();
    stream.read_to_end(&mut answers).expect("it closes after a protocol error");
    answers
}

/// CVE-2026-27623: what a request leaves behind in the parser must not change the next.
#[test]
fn c4_a_pipeline_split_at_any_byte_is_answered_as_if_it_were_whole() {
    if !is_ours_built() {
        return;
    }
    let server = server(&["--appendonly", "no"]);
    let pipeline = PIPELINE.concat();
    let whole = answers(server.address, &[&pipeline]);
    let text = String::from_utf8_lossy(&whole);
    for expected in ["+QUEUED", "-EXECABORT", "$6\r\na\r\nb\r\n", "*-1\r\n", "-ERR Protocol error: invalid bulk length"]
    {
        assert!(text.contains(expected), "{expected} is missing in {text}");
    }
    assert_eq!(text.matches("PONG").count(), 0, "replies that were switched off");
    for at in 1..pipeline.len() {
        let (first, second) = pipeline.split_at(at);
        let split = answers(server.address, &[first, second]);
        assert!(split == whole, "split at byte {at}: {} instead of {text}", String::from_utf8_lossy(&split));
    }
    let bytes: Vec<&[u8]> = pipeline.chunks(1).collect();
    assert!(answers(server.address, &bytes) == whole, "byte by byte");
}

/// CVE-2026-23479: a client that goes, or is killed, while it waits for a busy shard.
#[test]
fn c16_clients_that_vanish_while_they_wait_for_a_shard() {
    if !is_ours_built() {
        return;
    }
    let server = server(&["--appendonly", "no", "--threads", "2", "--shards", "2"]);
    let address = server.address;
    let mut client = Client::connect(address).expect("it listens");
    for key in 0..100 {
        let words: Vec<String> = (0..2000).map(|index| format!("key:{key}:{}", index / 2)).collect();
        let request: Vec<&str> = std::iter::once("MSET").chain(words.iter().map(String::as_str)).collect();
        client.ask(&request).expect("a reply");
    }
    let end = Instant::now() + Duration::from_secs(3);
    let vanished = std::thread::scope(|scope| {
        for pattern in ["nothing*", "*nothing"] {
            let mut busy = Client::connect(address).expect("it listens");
            // It has done something before the killer looks for those who have not.
            busy.ask(&["PING"]).expect("a reply");
            scope.spawn(move || {
                while Instant::now() < end {
                    assert_eq!(busy.ask(&["KEYS", pattern]).expect("a reply"), Value::Array(Vec::new()));
                }
            });
        }
        scope.spawn(move || {
            let mut killer = Client::connect(address).expect("it listens");
            while Instant::now() < end {
                for id in doomed_ids(&mut killer) {
                    killer.ask(&["CLIENT", "KILL", "ID", &id]).expect("a reply");
                }
            }
        });
        let mut vanished = 0;
        while Instant::now() < end {
            let mut doomed = stream(address);
            let _ = doomed.write_all(&b"INCR counter\r\nMGET key:1:1 key:2:2 key:3:3\r\n".repeat(20));
            vanished += 1;
        }
        vanished
    });
    assert!(vanished > 20, "{vanished} clients");
    let begin = Instant::now();
    while clients(&mut client) > 1 {
        assert!(begin.elapsed() < Duration::from_secs(60), "clients stay although they are gone");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(client.ask(&["DBSIZE"]).expect("a reply"), Value::Integer(100_001));
}

fn list(client: &mut Client) -> String {
    match client.ask(&["CLIENT", "LIST"]).expect("a reply") {
        Value::Bulk(list) => String::from_utf8(list).expect("CLIENT LIST is text"),
        other => panic!("CLIENT LIST is {other:?}"),
    }
}

fn clients(client: &mut Client) -> usize {
    list(client).lines().count()
}

/// The ids of clients that were about to do what those do that vanish.
fn doomed_ids(client: &mut Client) -> Vec<String> {
    let list = list(client);
    let doomed =
        list.lines().filter(|line| ["incr", "mget", "NULL"].iter().any(|name| line.contains(&format!(" cmd={name} "))));
    doomed.filter_map(|line| Some(line.strip_prefix("id=")?.split(' ').next()?.to_owned())).collect()
}

/// A panic in a connection costs nobody else anything: not the other clients, not what was acknowledged, and the process still
/// ends when it is asked to.
#[test]
fn c27_after_a_panic_in_a_connection_sigterm_ends_the_process() {
    if !is_ours_built() {
        return;
    }
    for threads in ["1", "2"] {
        let options = ["--appendonly", "yes", "--enable-debug-command", "yes", "--threads", threads];
        let mut server = server(&options);
        let mut other = Client::connect(server.address).expect("it listens");
        assert_eq!(other.ask(&["SET", "before", "1"]).expect("a reply"), Value::Simple(b"OK".to_vec()));
        for _ in 0..4 {
            let mut doomed = Client::connect(server.address).expect("it listens");
            doomed.ask(&["WATCH", "before"]).expect("a reply");
            doomed.send(b"SET during 1\r\nDEBUG PANIC-CONNECTION\r\nSET after 1\r\n").expect("it reads");
            while let Ok(Some(_)) = doomed.read() {}
        }
        assert!(server.has_logged("a client asked for it"), "nothing panicked: {}", server.log());
        assert_eq!(other.ask(&["INCR", "before"]).expect("the others go on"), Value::Integer(2));
        let status = server.terminate().expect("it ends");
        assert!(status.success(), "{status}: {}", server.log());
        server.launch().expect("it comes back");
        let mut client = Client::connect(server.address).expect("it listens");
        assert_eq!(client.ask(&["GET", "before"]).expect("a reply"), Value::Bulk(b"2".to_vec()));
        assert_eq!(client.ask(&["EXISTS", "during", "after"]).expect("a reply"), Value::Integer(1));
    }
}

/// How often another client counts up while KEYS walks through the whole database: what the counter says before and after it,
/// read in the same pipeline.
fn counted_during_keys(address: SocketAddr) -> i64 {
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let mut other = Client::connect(address).expect("it listens");
    let mut walker = Client::connect(address).expect("it listens");
    other.ask(&["SET", "counter", "0"]).expect("a reply");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                other.ask(&["INCR", "counter"]).expect("a reply");
            }
        });
        walker.send(b"GET counter\r\nKEYS nothing*\r\nGET counter\r\n").expect("it reads");
        let mut read = || walker.read().expect("a reply").expect("a reply").value;
        let (before, none, after) = (read(), read(), read());
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(none, Value::Array(Vec::new()));
        let number = |value| match value {
            Value::Bulk(text) => String::from_utf8(text).expect("text").parse::<i64>().expect("a number"),
            other => panic!("the counter is {other:?}"),
        };
        number(after) - number(before)
    })
}

/// A walk through the whole keyspace leaves others their turns, on the one core that there is.
#[test]
fn c24_others_are_served_while_keys_walks() {
    if !is_ours_built() {
        return;
    }
    let options = ["--appendonly", "no", "--threads", "1", "--enable-debug-command", "yes"];
    let server = server(&options);
    let mut client = Client::connect(server.address).expect("it listens");
    client.ask(&["DEBUG", "POPULATE", "400000"]).expect("a reply");
    // A busy machine may give the other client no processor during one walk, but hardly during all of them.
    let most = (0..30).map(|_| counted_during_keys(server.address)).max();
    assert!(most > Some(2), "at most {most:?} requests were answered during KEYS");
}
