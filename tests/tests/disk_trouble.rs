//! A disk that fails a real process (RELIABILITY D3 to D7): what is refused, what goes on, and the way back without a restart, as
//! docs/durability.md has it. Errors come from a library before libc, a full disk from a file system of two megabytes where that may be
//! mounted. Files that cannot grow are in `full_disk.rs`.

use simurgh_tests::client::Client;
use simurgh_tests::everything::ask;
use simurgh_tests::failing_disk::shim;
use simurgh_tests::resp::Value;
use simurgh_tests::server::{Program, Server, is_ours_built};
use std::process::Command;
use std::time::{Duration, Instant};

const EIO: &str = "5";
const EACCES: &str = "13";
const EMFILE: &str = "24";
const EROFS: &str = "30";
const MISCONF_LOG: &[u8] = b"MISCONF Errors writing to the AOF file";
const MISCONF_SAVE: &[u8] = b"MISCONF Redis is configured to save RDB snapshots";

fn start(options: &[&str]) -> (Server, Client) {
    let server =
        Server::start_on_failing_disk(&Program::Ours, options, &shim().expect("a library")).expect("it starts");
    let client = Client::connect(server.address).expect("it listens");
    (server, client)
}

fn set(client: &mut Client, key: usize) -> Value {
    client.ask(&["SET", &format!("key:{key}"), "value"]).expect("a reply")
}

fn is_refused(reply: &Value, how: &[u8]) -> bool {
    matches!(reply, Value::Error(text) if text.starts_with(how))
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}: not in a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn field(client: &mut Client, name: &str) -> String {
    let Ok(Value::Bulk(info)) = client.ask(&["INFO", "persistence"]) else { panic!("INFO is text") };
    let info = String::from_utf8(info).expect("text");
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("{name} in {info}")).to_owned()
}

fn run_to_its_end(client: &mut Client, command: &str) {
    ask(client, &[command]).expect("it begins");
    wait_for(command, || {
        field(client, "rdb_bgsave_in_progress") == "0" && field(client, "aof_rewrite_in_progress") == "0"
    });
}

/// Writes to a log that cannot be written are refused, reads go on, and it comes back by itself.
#[test]
fn d4_a_log_that_cannot_be_written_refuses_writes_until_it_can() {
    if !is_ours_built() {
        return;
    }
    for errno in [EIO, EROFS] {
        let (mut server, mut client) = start(&["--appendonly", "yes", "--appendfsync", "everysec"]);
        assert_eq!(set(&mut client, 0), Value::Simple(b"OK".to_vec()));
        server.fail(&format!("write {errno}")).expect("it is told");
        let mut taken = 1;
        wait_for("a refusal", || {
            let reply = set(&mut client, taken);
            taken += usize::from(reply == Value::Simple(b"OK".to_vec()));
            is_refused(&reply, MISCONF_LOG)
        });
        assert_eq!(field(&mut client, "aof_last_write_status"), "err");
        assert_eq!(ask(&mut client, &["GET", "key:0"]).expect("reads go on"), Value::Bulk(b"value".to_vec()));
        server.fail("").expect("it is told");
        wait_for("the way back", || !is_refused(&set(&mut client, taken), MISCONF_LOG));
        assert_eq!(field(&mut client, "aof_last_write_status"), "ok");
        server.terminate().expect("it ends");
        server.launch().expect("it comes back");
        let mut client = Client::connect(server.address).expect("it listens");
        assert_eq!(ask(&mut client, &["DBSIZE"]).expect("a reply"), Value::Integer(taken as i64 + 1));
    }
}

/// In the modes in which replies wait, that of a write to a disk that takes none does, and whoever reads what it changed waits too;
/// whoever asks how the server does is told.
#[test]
fn d4_figures_are_told_while_replies_wait_for_the_disk() {
    if !is_ours_built() {
        return;
    }
    for mode in ["always", "write"] {
        let (server, mut client) = start(&["--appendonly", "yes", "--appendfsync", mode]);
        let mut writer = Client::connect(server.address).expect("it listens");
        assert_eq!(set(&mut writer, 0), Value::Simple(b"OK".to_vec()));
        server.fail(&format!("write {EIO}")).expect("it is told");
        writer.send(b"SET key:1 value\r\n").expect("it is sent");
        wait_for("the failure", || field(&mut client, "aof_last_write_status") == "err");
        assert!(is_refused(&set(&mut client, 2), MISCONF_LOG), "{mode}");
        server.fail("").expect("it is told");
        let reply = writer.read().expect("a reply").expect("it is still open");
        assert_eq!(reply.value, Value::Simple(b"OK".to_vec()), "{mode}: what waited fits now");
        wait_for("the way back", || field(&mut client, "aof_last_write_status") == "ok");
    }
}

/// Nobody can know what is on the disk: nothing is acknowledged, the server ends, and what was acknowledged before is there.
#[test]
fn d3_a_failed_sync_ends_the_server_before_it_acknowledges_anything() {
    if !is_ours_built() {
        return;
    }
    for mode in ["always", "everysec"] {
        let (mut server, mut client) = start(&["--appendonly", "yes", "--appendfsync", mode]);
        for key in 0..10 {
            assert_eq!(set(&mut client, key), Value::Simple(b"OK".to_vec()));
        }
        assert!(matches!(ask(&mut client, &["WAITAOF", "1", "0", "10000"]), Ok(Value::Array(_))));
        server.fail(&format!("sync {EIO}")).expect("it is told");
        let reply = client.ask(&["SET", "key:10", "value"]);
        assert!(mode != "always" || reply.is_err(), "a sync failed, and this was acknowledged: {reply:?}");
        wait_for("the end", || !server.is_alive());
        server.fail("").expect("it is told");
        server.launch().expect("it comes back");
        let mut client = Client::connect(server.address).expect("it listens");
        let Ok(Value::Integer(keys)) = client.ask(&["DBSIZE"]) else { panic!("a number") };
        assert!((10..=11).contains(&keys), "{mode}: {keys}");
    }
}

/// Without descriptors, without the right to write, on a disk that became read-only, with a rename that fails: a snapshot fails and
/// writes are refused until one succeeds; a rewrite fails and the log goes on.
#[test]
fn d6_snapshots_and_rewrites_that_fail_leave_what_there_was() {
    if !is_ours_built() {
        return;
    }
    for how in [format!("open {EMFILE}"), format!("open {EACCES}"), format!("open {EROFS}"), format!("rename {EIO}")] {
        let (mut server, mut client) =
            start(&["--appendonly", "yes", "--appendfsync", "always", "--save", "3600 1000000"]);
        assert_eq!(set(&mut client, 0), Value::Simple(b"OK".to_vec()));
        run_to_its_end(&mut client, "BGSAVE");
        let before = std::fs::read(server.folder().join("dump.rdb")).expect("it is there");
        server.fail(&how).expect("it is told");
        run_to_its_end(&mut client, "BGREWRITEAOF");
        assert_eq!(field(&mut client, "aof_last_bgrewrite_status"), "err", "{how}");
        assert_eq!(set(&mut client, 1), Value::Simple(b"OK".to_vec()), "{how}: the log goes on");
        run_to_its_end(&mut client, "BGSAVE");
        assert_eq!(field(&mut client, "rdb_last_bgsave_status"), "err", "{how}");
        assert!(is_refused(&set(&mut client, 2), MISCONF_SAVE), "{how}");
        assert_eq!(std::fs::read(server.folder().join("dump.rdb")).expect("it is there"), before, "{how}");
        server.fail("").expect("it is told");
        run_to_its_end(&mut client, "BGSAVE");
        assert_eq!(set(&mut client, 2), Value::Simple(b"OK".to_vec()), "{how}: the way back");
        run_to_its_end(&mut client, "BGREWRITEAOF");
        assert_eq!(field(&mut client, "aof_last_bgrewrite_status"), "ok", "{how}");
        server.kill();
        server.launch().expect("it comes back");
        let mut client = Client::connect(server.address).expect("it listens");
        assert_eq!(ask(&mut client, &["DBSIZE"]).expect("a reply"), Value::Integer(3), "{how}");
    }
}

#[test]
fn a_log_that_must_not_be_written_is_a_start_that_fails_with_its_path() {
    if !is_ours_built() {
        return;
    }
    let (mut server, mut client) = start(&["--appendonly", "yes"]);
    set(&mut client, 0);
    server.terminate().expect("it ends");
    for (how, words) in [(EACCES, "Permission denied"), (EROFS, "Read-only file system")] {
        server.fail(&format!("open {how}")).expect("it is told");
        let text = format!("{:#}", server.launch().expect_err("it does not start"));
        assert!(text.contains(words) && text.contains("appendonly"), "{text}");
    }
    server.fail("").expect("it is told");
    server.launch().expect("it starts");
    let mut client = Client::connect(server.address).expect("it listens");
    assert_eq!(ask(&mut client, &["DBSIZE"]).expect("a reply"), Value::Integer(1));
}

/// A file system of its own, gone with it.
struct Mounted(std::path::PathBuf);

impl Mounted {
    /// Nothing where mounts are not permitted.
    fn new(name: &str, size: &str) -> Option<Self> {
        let folder = std::env::temp_dir().join(format!("simurgh-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", size, "tmpfs"]).arg(&folder).output();
        if !mounted.is_ok_and(|mounted| mounted.status.success()) {
            eprintln!("not run: no mounts are permitted here");
            let _ = std::fs::remove_dir(&folder);
            return None;
        }
        Some(Self(folder))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// A real file system that is full: the data folder is a mount of its own, with log, snapshots and what they are renamed from.
#[test]
fn d6_a_full_file_system_refuses_writes_and_has_a_way_back() {
    if !is_ours_built() {
        return;
    }
    let Some(disk) = Mounted::new("full", "size=2m") else { return };
    let folder = disk.0.to_string_lossy().into_owned();
    let options = ["--dir", &folder, "--appendonly", "yes", "--appendfsync", "everysec"];
    let mut server = Server::start(&Program::Ours, &options).expect("it starts");
    let mut client = Client::connect(server.address).expect("it listens");
    run_to_its_end(&mut client, "BGSAVE");
    std::fs::write(disk.0.join("others"), vec![1; 1 << 20]).expect("room");
    let value = "x".repeat(10_000);
    let mut acknowledged = 0;
    wait_for("a refusal", || {
        let reply = client.ask(&["SET", &format!("key:{acknowledged}"), &value]).expect("a reply");
        acknowledged += usize::from(reply == Value::Simple(b"OK".to_vec()));
        is_refused(&reply, MISCONF_LOG)
    });
    assert_eq!(field(&mut client, "aof_last_write_status"), "err");
    // It begins when what is waiting for the old file has fitted.
    ask(&mut client, &["BGREWRITEAOF"]).expect("it is taken");
    assert_eq!(field(&mut client, "aof_rewrite_in_progress"), "1");
    std::fs::remove_file(disk.0.join("others")).expect("it is there");
    wait_for("the way back", || ask(&mut client, &["SET", "last", "1"]).is_ok());
    assert!(matches!(ask(&mut client, &["WAITAOF", "1", "0", "10000"]), Ok(Value::Array(_))));
    wait_for("the end of the rewrite", || field(&mut client, "aof_rewrite_in_progress") == "0");
    server.kill();
    server.launch().expect("it comes back");
    let mut client = Client::connect(server.address).expect("it listens");
    assert_eq!(ask(&mut client, &["DBSIZE"]).expect("a reply"), Value::Integer(acknowledged as i64 + 1));
    for key in 0..acknowledged {
        let length = ask(&mut client, &["STRLEN", &format!("key:{key}")]).expect("a reply");
        assert_eq!(length, Value::Integer(10_000), "key:{key} of {acknowledged} was acknowledged");
    }
    drop(server);
}
