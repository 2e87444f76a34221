//! A snapshot is the log up to its position, and the log's manifest knows its files (RELIABILITY D18): another base in the place of the
//! right one is refused, however good it is, and so is a manifest that is no longer what was written.

use simurgh_tests::client::Client;
use simurgh_tests::everything::ask;
use simurgh_tests::resp::Value;
use simurgh_tests::server::{Program, Server, is_ours_built, our_tool};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const LOG: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "write"];
const MANIFEST: &str = "appendonly.aof.manifest";

fn log_of(server: &Server) -> PathBuf {
    server.folder().join("appendonlydir")
}

fn connect(server: &Server) -> Client {
    Client::connect(server.address).expect("it listens")
}

fn info(client: &mut Client) -> String {
    match ask(client, &["INFO", "persistence"]) {
        Ok(Value::Bulk(text)) => String::from_utf8(text).expect("text"),
        other => panic!("{other:?}"),
    }
}

fn run_to_its_end(client: &mut Client, command: &str) {
    let begin = Instant::now();
    ask(client, &[command]).expect("it begins");
    loop {
        let now = info(client);
        if !["rdb_bgsave_in_progress:1", "aof_rewrite_in_progress:1", "aof_rewrite_scheduled:1"]
            .iter()
            .any(|field| now.contains(field))
        {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{command} does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn base_of(server: &Server) -> PathBuf {
    let manifest = std::fs::read_to_string(log_of(server).join(MANIFEST)).expect("it is there");
    let name = manifest.split(' ').nth(1).expect("a base comes first");
    assert!(name.ends_with(".base.rdb"), "{manifest}");
    log_of(server).join(name)
}

fn refusal(server: &mut Server) -> String {
    format!("{:#}", server.launch().expect_err("it is refused"))
}

#[test]
fn d18_a_good_base_in_the_place_of_another_is_refused() {
    if !is_ours_built() {
        return;
    }
    let mut server = Server::start(&Program::Ours, &LOG).expect("it starts");
    let mut client = connect(&server);
    ask(&mut client, &["SET", "balance", "100"]).expect("it is taken");
    run_to_its_end(&mut client, "BGREWRITEAOF");
    let earlier = std::fs::read(base_of(&server)).expect("it is there");
    ask(&mut client, &["SET", "balance", "50"]).expect("it is taken");
    run_to_its_end(&mut client, "BGREWRITEAOF");
    server.terminate().expect("it ends");
    let base = base_of(&server);
    let right = std::fs::read(&base).expect("it is there");
    std::fs::write(&base, earlier).expect("it can be written");
    let path = base.to_string_lossy().into_owned();
    assert!(our_tool(&["check-rdb", &path]).0, "by itself it is a good file");
    let text = refusal(&mut server);
    assert!(text.contains("simurgh-whole"), "{text}");
    let manifest = log_of(&server).join(MANIFEST).to_string_lossy().into_owned();
    let (good, text) = our_tool(&["check-aof", &manifest]);
    assert!(!good && text.contains("simurgh-whole"), "{text}");
    std::fs::write(&base, right).expect("it can be written");
    assert!(our_tool(&["check-aof", &manifest]).0);
    server.launch().expect("with the right one it starts");
    assert_eq!(ask(&mut connect(&server), &["GET", "balance"]).expect("a reply"), Value::Bulk(b"50".to_vec()));
}

/// One bit makes the increment history, which is deleted at the start.
#[test]
fn d18_a_manifest_that_is_not_what_was_written_is_refused_and_nothing_deleted() {
    if !is_ours_built() {
        return;
    }
    let mut server = Server::start(&Program::Ours, &LOG).expect("it starts");
    ask(&mut connect(&server), &["SET", "key", "value"]).expect("it is taken");
    server.terminate().expect("it ends");
    let path = log_of(&server).join(MANIFEST);
    let text = std::fs::read_to_string(&path).expect("it is there");
    std::fs::write(&path, text.replace("seq 1 type i", "seq 1 type h")).expect("it can be written");
    let said = refusal(&mut server);
    assert!(said.contains("The AOF manifest file is damaged or was edited"), "{said}");
    assert!(log_of(&server).join("appendonly.aof.1.incr.aof").exists());
    std::fs::write(&path, text).expect("it can be written");
    server.launch().expect("with the right one it starts");
    assert_eq!(ask(&mut connect(&server), &["GET", "key"]).expect("a reply"), Value::Bulk(b"value".to_vec()));
}

/// Changes to all kinds of keys, of which the outcome depends on all that came before.
fn change(client: &mut Client, writer: usize, number: usize) {
    let (key, element) = (format!("{}:{writer}", number % 7), number.to_string());
    let request: &[&str] = match number % 7 {
        0 => &["INCRBY", &key, &element],
        1 => &["APPEND", &key, &element],
        2 => &["RPUSH", &key, &element, "x"],
        3 if number.is_multiple_of(2) => &["HSET", &key, &element, "1", "f", &element],
        3 => &["HDEL", &key, "f"],
        4 => &["SADD", &key, &element],
        5 => &["ZINCRBY", &key, &element, "member"],
        _ => &["LMPOP", "1", &key.replace("6:", "2:"), "LEFT"],
    };
    ask(client, request).expect("it is taken");
}

fn position_of(dump: &Path) -> String {
    let bytes = std::fs::read(dump).expect("it is there");
    let name = b"simurgh-log-position";
    let at = bytes.windows(name.len()).position(|window| window == name).expect("the field") + name.len();
    // A small number is an integer of one, two or four bytes, a large one text.
    let number = match bytes[at] {
        0xc0 => u64::from(bytes[at + 1]),
        0xc1 => u64::from(u16::from_le_bytes([bytes[at + 1], bytes[at + 2]])),
        0xc2 => u64::from(u32::from_le_bytes([bytes[at + 1], bytes[at + 2], bytes[at + 3], bytes[at + 4]])),
        length => {
            let text = &bytes[at + 1..at + 1 + usize::from(length)];
            std::str::from_utf8(text).expect("digits").parse().expect("a number")
        }
    };
    number.to_string()
}

fn digest(options: &[&str], place: impl FnOnce(&Path)) -> Value {
    let mut server = Server::start(&Program::Ours, options).expect("it starts");
    server.terminate().expect("it ends");
    let _ = std::fs::remove_dir_all(log_of(&server));
    place(server.folder());
    server.launch().expect("it loads what it finds");
    ask(&mut connect(&server), &["DEBUG", "DIGEST"]).expect("a reply")
}

#[test]
fn d18_a_snapshot_is_the_log_up_to_its_position() {
    if !is_ours_built() {
        return;
    }
    let options = [&LOG[..], &["--enable-debug-command", "yes"]].concat();
    let server = Server::start(&Program::Ours, &options).expect("it starts");
    let (address, stop) = (server.address, AtomicBool::new(false));
    let mut snapshots = Vec::new();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let stop = &stop;
            scope.spawn(move || {
                let mut client = Client::connect(address).expect("it listens");
                (0..)
                    .take_while(|_| !stop.load(Ordering::Relaxed))
                    .for_each(|number| change(&mut client, writer, number));
            });
        }
        let mut client = connect(&server);
        for round in 0..4 {
            std::thread::sleep(Duration::from_millis(100));
            run_to_its_end(&mut client, "BGSAVE");
            let copy = server.folder().join(format!("{round}.rdb"));
            std::fs::copy(server.folder().join("dump.rdb"), &copy).expect("it is there");
            snapshots.push(copy);
        }
        stop.store(true, Ordering::Relaxed);
    });
    let source = log_of(&server).to_string_lossy().into_owned();
    let debug = ["--enable-debug-command", "yes"];
    let mut digests = Vec::new();
    for snapshot in &snapshots {
        let position = position_of(snapshot);
        let target = snapshot.with_extension("log");
        let (good, text) = our_tool(&["restore", "--to", &format!("@{position}"), &source, &target.to_string_lossy()]);
        assert!(good, "{text}");
        let of_log = digest(&options, |folder| {
            std::fs::rename(&target, folder.join("appendonlydir")).expect("it can be moved");
        });
        let of_snapshot = digest(&debug, |folder| {
            std::fs::copy(snapshot, folder.join("dump.rdb")).expect("it can be copied");
        });
        assert_eq!(of_log, of_snapshot, "at {position}");
        digests.push(of_log);
    }
    digests.dedup();
    assert_eq!(digests.len(), snapshots.len(), "something was written between the snapshots");
}
