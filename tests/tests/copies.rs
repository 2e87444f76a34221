//! The tools that copy and convert: a backup of a server that runs, a log as it was at a moment, and both ways between RDB file and log.

use simurgh_tests::client::Client;
use simurgh_tests::everything::{Abilities, ask, contents, fill, same};
use simurgh_tests::resp::Value;
use simurgh_tests::server::{Program, Server, is_oracle_installed, is_ours_built, our_tool};
use std::path::{Path, PathBuf};
use std::time::Duration;

const OPTIONS: [&str; 4] = ["--appendonly", "yes", "--aof-timestamp-enabled", "yes"];

fn connect(server: &Server) -> Client {
    Client::connect(server.address).expect("it listens")
}

fn log_of(server: &Server) -> PathBuf {
    server.folder().join("appendonlydir")
}

fn tool(words: &[&str], paths: &[&Path]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = words.iter().copied().chain(paths.iter().map(String::as_str)).collect();
    let (good, text) = our_tool(&words);
    assert!(good, "{words:?}: {text}");
    text
}

/// Ours with a copy of a log.
fn started_with(log: &Path) -> Server {
    let mut server = Server::start(&Program::Ours, &OPTIONS).expect("it starts");
    server.terminate().expect("it ends");
    std::fs::remove_dir_all(log_of(&server)).expect("it was there");
    std::fs::rename(log, log_of(&server)).expect("it can be moved");
    server.launch().expect("it loads the copy");
    server
}

fn get(server: &Server, key: &str) -> Value {
    ask(&mut connect(server), &["GET", key]).expect("a reply")
}

fn seconds() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs()
}

#[test]
fn a_backup_of_a_running_server_is_sound_and_holds_what_was_acknowledged() {
    if !is_ours_built() {
        return;
    }
    let options = [&OPTIONS[..], &["--appendfsync", "write"]].concat();
    let server = Server::start(&Program::Ours, &options).expect("it starts");
    let mut client = connect(&server);
    ask(&mut client, &["SET", "before", "1"]).expect("it is taken");
    let address = server.address;
    let writer = std::thread::spawn(move || {
        let mut client = Client::connect(address).expect("it listens");
        for number in 0..5000 {
            ask(&mut client, &["SET", "meanwhile", &number.to_string()]).expect("it is taken");
        }
    });
    for round in 0..5 {
        ask(&mut client, &["SET", "round", &round.to_string()]).expect("it is taken");
        let copy = server.folder().join(format!("copy-{round}"));
        tool(&["backup"], &[&log_of(&server), &copy]);
        let restored = started_with(&copy);
        assert_eq!(get(&restored, "before"), Value::Bulk(b"1".to_vec()));
        assert_eq!(get(&restored, "round"), Value::Bulk(round.to_string().into_bytes()));
    }
    writer.join().expect("it wrote");
}

#[test]
fn a_log_is_restored_as_it_was_at_a_second_and_at_a_position() {
    if !is_ours_built() {
        return;
    }
    let server = Server::start(&Program::Ours, &OPTIONS).expect("it starts");
    let mut client = connect(&server);
    ask(&mut client, &["SET", "key", "early"]).expect("it is taken");
    let early = seconds();
    // Until the next second has begun, nothing more is written.
    while seconds() <= early + 1 {
        std::thread::sleep(Duration::from_millis(20));
    }
    ask(&mut client, &["MULTI"]).expect("it is known");
    ask(&mut client, &["SET", "key", "late"]).expect("it is queued");
    ask(&mut client, &["SET", "other", "late"]).expect("it is queued");
    ask(&mut client, &["EXEC"]).expect("it is taken");
    ask(&mut client, &["WAITAOF", "1", "0", "5000"]).expect("it is on the disk");
    let copies = [
        ("second", early.to_string(), "early"),
        ("now", seconds().to_string(), "late"),
        ("position", "@100".into(), "early"),
    ];
    for (name, moment, expected) in copies {
        let copy = server.folder().join(name);
        tool(&["restore", "--to", &moment], &[&log_of(&server), &copy]);
        let restored = started_with(&copy);
        assert_eq!(get(&restored, "key"), Value::Bulk(expected.into()), "{name}");
        assert_eq!(get(&restored, "other") == Value::Nil, expected == "early", "{name}: a transaction was cut");
    }
    let target = server.folder().join("too-early").to_string_lossy().into_owned();
    let source = log_of(&server).to_string_lossy().into_owned();
    let (good, text) = our_tool(&["restore", "--to", "1000", &source, &target]);
    assert!(!good && text.contains("the base was written at"), "{text}");
    assert!(!Path::new(&target).exists(), "what failed leaves nothing");
}

/// From a server's file to a log of ours, on to a file of ours, and back to that server: all of it is there.
#[test]
fn d10_files_go_both_ways() {
    if !is_ours_built() {
        return;
    }
    for oracle in ["redis-8.2", "valkey-9.1", "redis-7.0"] {
        if !is_oracle_installed(oracle) {
            continue;
        }
        let program = Program::parse(oracle).expect("a name");
        let mut abilities = Abilities::of(oracle);
        // The expiry of fields is written in Redis's form, which Valkey does not read.
        abilities.field_expiry &= oracle.starts_with("redis");
        let mut theirs = Server::start(&program, &[]).expect("it starts");
        fill(&mut connect(&theirs), abilities).expect("it takes everything");
        ask(&mut connect(&theirs), &["SAVE"]).expect("it saves");
        let before = contents(&mut connect(&theirs), abilities).expect("it tells");
        let folder = theirs.folder().to_owned();
        tool(&["convert"], &[&folder.join("dump.rdb"), &folder.join("log")]);
        tool(&["convert"], &[&folder.join("log"), &folder.join("ours.rdb")]);
        let ours = started_with(&folder.join("log"));
        same(&mut connect(&ours), &mut connect(&theirs), abilities).unwrap_or_else(|error| panic!("{oracle}: {error}"));
        theirs.kill();
        std::fs::rename(folder.join("ours.rdb"), folder.join("dump.rdb")).expect("it can be moved");
        theirs.launch().expect("it loads our file");
        let after = contents(&mut connect(&theirs), abilities).expect("it tells");
        assert!(before == after, "{oracle}: what it wrote and what it read differ");
    }
}
