//! A real file that cannot grow (RELIABILITY D4, D6): writes are refused and nothing half written is left, reads go on, writes
//! are taken again once there is room, and whatever was acknowledged is there after a crash.

use simurgh_tests::client::Client;
use simurgh_tests::resp::Value;
use simurgh_tests::server::{Program, Server, is_ours_built};
use std::time::{Duration, Instant};

/// More than the server's own log takes, less than the writes.
const ROOM: u64 = 256 << 10;

fn is_refused(reply: &Value) -> bool {
    matches!(reply, Value::Error(text) if text.starts_with(b"MISCONF Errors writing to the AOF file"))
}

fn set(client: &mut Client, key: usize) -> Value {
    client.ask(&["SET", &format!("key:{key}"), &"x".repeat(1000)]).expect("a reply")
}

/// Writes until one is refused; how many were taken.
fn fill(client: &mut Client) -> usize {
    let begin = Instant::now();
    for key in 0.. {
        let reply = set(client, key);
        if is_refused(&reply) {
            return key;
        }
        assert_eq!(reply, Value::Simple(b"OK".to_vec()));
        assert!(begin.elapsed() < Duration::from_secs(60), "{key} writes were taken, and none refused");
        // The log is written every 50 ms: what comes meanwhile is taken.
        std::thread::sleep(Duration::from_millis(1));
    }
    unreachable!("it returns")
}

#[test]
fn d6_a_full_disk_refuses_writes_and_loses_nothing() {
    if !is_ours_built() {
        return;
    }
    let options = ["--appendonly", "yes", "--appendfsync", "everysec"];
    let mut server = Server::start_on_full_disk(&Program::Ours, &options, ROOM).expect("it starts");
    let mut client = Client::connect(server.address).expect("it listens");
    let taken = fill(&mut client);
    assert!(taken > 100, "{taken} writes were taken");
    assert!(matches!(client.ask(&["GET", "key:0"]).expect("reads go on"), Value::Bulk(_)));
    assert!(is_refused(&set(&mut client, taken)));
    server.make_room().expect("there is room");
    let begin = Instant::now();
    while is_refused(&set(&mut client, taken)) {
        assert!(begin.elapsed() < Duration::from_secs(60), "writes stay refused although there is room");
        std::thread::sleep(Duration::from_millis(20));
    }
    server.terminate().expect("it ends");
    server.launch().expect("it comes back");
    let mut client = Client::connect(server.address).expect("it listens");
    assert_eq!(client.ask(&["DBSIZE"]).expect("a reply"), Value::Integer(taken as i64 + 1));
}

/// In `always` mode a reply waits until its write fits: it is not answered, and so not lost, when the server is killed meanwhile.
#[test]
fn d6_on_a_full_disk_always_acknowledges_only_what_is_on_it() {
    if !is_ours_built() {
        return;
    }
    let options = ["--appendonly", "yes", "--appendfsync", "always"];
    let mut server = Server::start_on_full_disk(&Program::Ours, &options, ROOM).expect("it starts");
    let address = server.address;
    let mut writer = Client::connect(address).expect("it listens");
    let acknowledged = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for key in 0.. {
                let request = format!("SET key:{key} {}\r\n", "x".repeat(1000));
                let sent = writer.send(request.as_bytes());
                let Ok(Some(reply)) = sent.and_then(|()| writer.read()) else { return };
                assert_eq!(reply.value, Value::Simple(b"OK".to_vec()));
                acknowledged.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
        });
        let begin = Instant::now();
        while !server.has_logged("the log cannot be written") {
            assert!(begin.elapsed() < Duration::from_secs(60), "nothing is refused");
            std::thread::sleep(Duration::from_millis(10));
        }
        server.kill();
    });
    server.launch().expect("it comes back");
    let mut client = Client::connect(address).expect("it listens");
    let acknowledged = acknowledged.into_inner();
    assert!(acknowledged > 100, "{acknowledged}");
    for key in 0..acknowledged {
        let reply = client.ask(&["STRLEN", &format!("key:{key}")]).expect("a reply");
        assert_eq!(reply, Value::Integer(1000), "key:{key} of {acknowledged} was acknowledged");
    }
}
