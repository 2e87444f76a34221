//! RDB files of other servers, with every type in every encoding, load here, and ours load there (RELIABILITY D10): Redis 7.0, 8.2, 8.10
//! and Valkey 9.1, as far as they are installed.

use simurgh_tests::client::Client;
use simurgh_tests::everything::{Abilities, VARIANTS, ask, fill, same};
use simurgh_tests::server::{Program, Server, is_oracle_installed, is_ours_built, our_tool};
use std::path::Path;

const ORACLES: [&str; 4] = ["redis-7.0", "redis-8.2", "redis-8.10", "valkey-9.1"];
const MANIFEST: &str = "file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n";

fn connect(server: &Server) -> Client {
    Client::connect(server.address).expect("it listens")
}

/// A folder that holds `rdb` as the base of a log.
fn make_base_of(rdb: &Path, folder: &Path) {
    let log = folder.join("appendonlydir");
    let _ = std::fs::remove_dir_all(&log);
    std::fs::create_dir_all(&log).expect("a folder");
    std::fs::copy(rdb, log.join("appendonly.aof.1.base.rdb")).expect("the file is there");
    std::fs::write(log.join("appendonly.aof.1.incr.aof"), "").expect("a file");
    std::fs::write(log.join("appendonly.aof.manifest"), MANIFEST).expect("a file");
}

fn filled(oracle: &str, variant: &[&str]) -> Server {
    let options = [&["--enable-debug-command", "yes"], variant].concat();
    let server = Server::start(&Program::parse(oracle).expect("a name"), &options).expect("it starts");
    let mut client = connect(&server);
    fill(&mut client, Abilities::of(oracle)).expect("it takes everything");
    ask(&mut client, &["SAVE"]).expect("it saves");
    server
}

fn ours_with(rdb: &Path) -> Server {
    let options = ["--appendonly", "yes", "--enable-debug-command", "yes"];
    let mut server = Server::start(&Program::Ours, &options).expect("it starts");
    server.kill();
    make_base_of(rdb, server.folder());
    server.launch().expect("it loads the file");
    server
}

fn from(oracle: &str) {
    if !is_ours_built() || !is_oracle_installed(oracle) {
        return;
    }
    for variant in VARIANTS {
        let theirs = filled(oracle, variant);
        let file = theirs.folder().join("dump.rdb");
        let (good, text) = our_tool(&["check-rdb", &file.to_string_lossy()]);
        assert!(good && text.contains("result: good"), "{oracle} {variant:?}: {text}");
        let ours = ours_with(&file);
        same(&mut connect(&ours), &mut connect(&theirs), Abilities::of(oracle))
            .unwrap_or_else(|error| panic!("{oracle} {variant:?}: {error}"));
    }
}

#[test]
fn d10_files_of_redis_7_0_load_here() {
    from(ORACLES[0]);
}

#[test]
fn d10_files_of_redis_8_2_load_here() {
    from(ORACLES[1]);
}

#[test]
fn d10_files_of_redis_8_10_load_here() {
    from(ORACLES[2]);
}

#[test]
fn d10_files_of_valkey_9_1_load_here() {
    from(ORACLES[3]);
}

#[test]
fn what_is_not_built_is_refused_with_its_name_and_place() {
    let oracle = ORACLES[2];
    if !is_ours_built() || !is_oracle_installed(oracle) {
        return;
    }
    for (request, what) in [
        (&["VADD", "v", "VALUES", "2", "1", "2", "x"][..], "a value of module vectorset at byte"),
        (&["ARSET", "a", "0", "x"][..], ": array"),
    ] {
        let theirs = Server::start(&Program::parse(oracle).expect("a name"), &[]).expect("it starts");
        ask(&mut connect(&theirs), request).expect("it has this type");
        ask(&mut connect(&theirs), &["SAVE"]).expect("it saves");
        let (good, text) = our_tool(&["check-rdb", &theirs.folder().join("dump.rdb").to_string_lossy()]);
        assert!(!good && text.contains(what), "{text}");
    }
}
