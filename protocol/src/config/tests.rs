//! The table against itself, and `CONFIG GET` and `CONFIG SET` against what Redis 8.2.3 answered.

use super::*;
use crate::config::settings::default_value;
use proptest::prelude::*;

/// `CONFIG SET` of one value on the defaults.
fn set(name: &str, value: &str) -> Result<String, String> {
    let change = Settings::default().change(&[name.as_bytes(), value.as_bytes()], false);
    let settings = change.map_err(|error| error.to_string())?.settings;
    Ok(get(&settings, name))
}

fn get(settings: &Settings, name: &str) -> String {
    let found = settings.get(&[name.as_bytes()]);
    String::from_utf8(found[0].1.clone()).unwrap()
}

/// The reason in the error of `CONFIG SET`.
fn refused(name: &str, value: &str) -> String {
    let error = set(name, value).unwrap_err();
    let shape = format!("ERR CONFIG SET failed (possibly related to argument '{name}') - ");
    error.strip_prefix(&shape).unwrap_or(&error).to_owned()
}

#[test]
fn every_directive_of_redis_is_in_the_table_and_gives_its_default() {
    // Names and defaults as Redis 8.2.3 answers `CONFIG GET *`; where ours differ on purpose the row stands below.
    let differing = ["appendonly", "dir", "save"];
    let defaults = include_str!("defaults_redis_8_2_3.txt");
    assert_eq!(defaults.lines().count(), 205);
    let settings = Settings::default();
    for line in defaults.lines() {
        let (name, default) = line.split_once('=').unwrap();
        assert!(Key::named(name.as_bytes()).is_some(), "{name} is missing");
        if !differing.contains(&name) {
            assert_eq!(get(&settings, name), default, "{name}");
        }
    }
}

#[test]
fn names_are_unique_and_rows_are_documented() {
    let mut names: Vec<&str> = TABLE.iter().flat_map(Row::names).chain(DIRECTIVES.iter().map(|one| one.name)).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(TABLE.iter().all(|row| row.summary.ends_with('.')));
    assert_eq!(TABLE.len(), Key::ALL.len());
}

#[test]
fn both_ends_of_all_bounds_fit_the_typed_fields() {
    for &key in Key::ALL {
        let (Kind::Integer(bounds) | Kind::Memory(bounds)) = key.row().kind else { continue };
        for number in [bounds.least, bounds.largest] {
            let mut settings = Settings::default();
            let put = settings.put(key, Given::Whole(number.to_string().as_bytes()), Origin::Client);
            if put.is_ok() {
                let _ = settings.config();
            }
        }
    }
}

#[test]
fn typed_defaults() {
    let config = Settings::default().config();
    assert_eq!(config.port, 6379);
    assert_eq!(config.bind, ["*", "-::*"]);
    assert_eq!(config.append_fsync, AppendFsync::EverySecond);
    assert_eq!(config.max_memory_policy, MaxMemoryPolicy::NoEviction);
    assert_eq!(config.log_level.name(), "notice");
    assert_eq!(config.slowlog_microseconds_least, Some(10000));
    assert_eq!(config.latency_monitor_milliseconds_least, None);
    assert_eq!(config.client_output_buffer_limits.pubsub.hard_bytes, 32 << 20);
    assert_eq!(config.require_pass, None);
    assert_eq!(config.max_memory_clients, Share::Bytes(0));
    assert!(config.append_only);
    for (at, name) in table::POLICIES.iter().enumerate() {
        let settings = Settings::default().change(&[b"maxmemory-policy", name.as_bytes()], false).unwrap().settings;
        assert_eq!(settings.config().max_memory_policy.name(), *name, "{at}");
    }
}

#[test]
fn values_in_the_forms_that_redis_gives_back() {
    for (name, value, text) in [
        ("maxmemory", "1kb", "1024"),
        ("maxmemory", "", "0"),
        ("maxmemory-clients", "10%", "10%"),
        ("maxmemory-clients", "0%", "0"),
        ("maxmemory-clients", "5mb", "5242880"),
        ("activedefrag", "YES", "yes"),
        ("maxmemory-policy", "AllKeys-LRU", "allkeys-lru"),
        ("appendfsync", "WRITE", "write"),
        ("shutdown-on-sigint", "SAVE NOW FORCE", "save now force"),
        ("shutdown-on-sigint", "default save", "save"),
        ("shutdown-on-sigint", "default", "default"),
        ("save", "60 1 300 10", "60 1 300 10"),
        ("save", "60 0", "60 0"),
        ("save", "", ""),
        (
            "client-output-buffer-limit",
            "Normal 1mb 2mb 3",
            "normal 1048576 2097152 3 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
        ),
        ("client-output-buffer-limit", "replica 4 5 6 pubsub 1 1 1", "normal 0 0 0 slave 4 5 6 pubsub 1 1 1"),
        ("oom-score-adj-values", "-2000 0 2000", "-2000 0 2000"),
        ("latency-tracking-info-percentiles", "100 0.0", "100 0"),
        ("latency-tracking-info-percentiles", "99.123456789 5e1", "99.123457 50"),
        ("latency-tracking-info-percentiles", "", ""),
        ("hz", "0", "1"),
        ("hz", "1000", "500"),
        ("repl-backlog-size", "100", "16384"),
        ("bind", "::1 127.0.0.1", "::1 127.0.0.1"),
        ("bind", "", ""),
        ("lua-time-limit", "7", "7"),
        ("TimeOut", "7", "7"),
    ] {
        assert_eq!(set(name, value).as_deref(), Ok(text), "{name} {value}");
    }
}

#[test]
fn bad_values_get_the_texts_of_redis() {
    for (name, value, text) in [
        ("timeout", "007", "argument couldn't be parsed into an integer"),
        ("timeout", "", "argument couldn't be parsed into an integer"),
        ("timeout", "-1", "argument must be between 0 and 2147483647 inclusive"),
        ("maxclients", "-1", "argument must be greater or equal to 0"),
        ("maxclients", "0", "argument must be between 1 and 4294967295 inclusive"),
        ("hash-max-listpack-entries", "-1", "argument must be greater or equal to 0"),
        ("maxmemory", "1.5mb", "argument must be a memory value"),
        ("maxmemory", "18446744073709551615", "argument must be greater or equal to 0"),
        (
            "proto-max-bulk-len",
            "9223372036854775808",
            "argument must be between 1048576 and 9223372036854775807 inclusive",
        ),
        ("proto-max-bulk-len", "512kb", "argument must be between 1048576 and 9223372036854775807 inclusive"),
        ("maxmemory-clients", "101%", "percentage argument must be less or equal to 100"),
        ("maxmemory-clients", "-1%", "argument must be a memory or percent value"),
        ("activedefrag", "1", "argument must be 'yes' or 'no'"),
        ("loglevel", "loud", "argument(s) must be one of the following: debug, verbose, notice, warning, nothing"),
        (
            "shutdown-on-sigint",
            "save  now",
            "argument(s) must be one of the following: default, save, nosave, now, force",
        ),
        ("shutdown-on-sigint", "save nosave", "shutdown options SAVE and NOSAVE can't be used simultaneously"),
        ("save", "60", "Invalid save parameters"),
        ("save", " 60  1 ", "Invalid save parameters"),
        ("save", "0 1", "Invalid save parameters"),
        ("client-output-buffer-limit", "normal 1 2", "Wrong number of arguments in buffer limit configuration."),
        ("client-output-buffer-limit", "master 1 2 3", "Invalid client class specified in buffer limit configuration."),
        (
            "client-output-buffer-limit",
            "normal 1 2 -3",
            "Error in hard, soft or soft_seconds setting in buffer limit configuration.",
        ),
        ("oom-score-adj-values", "1 2", "wrong number of arguments"),
        ("oom-score-adj-values", "2001 0 0", "Invalid oom-score-adj-values, elements must be between -2000 and 2000."),
        ("latency-tracking-info-percentiles", "a", "Invalid latency-tracking-info-percentiles parameters"),
        (
            "latency-tracking-info-percentiles",
            "101",
            "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]",
        ),
        ("notify-keyspace-events", "q", "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."),
        ("cluster-announce-hostname", "a b", "Hostnames may only contain alphanumeric characters, hyphens or dots"),
        ("daemonize", "yes", "can't set immutable config"),
        ("dir", "/tmp", "can't set protected config"),
        ("tls-port", "1", "TLS is not built yet"),
        ("min-replicas-to-write", "1", "replication is not built yet, so no write would ever be accepted"),
        ("nope", "1", "ERR Unknown option or number of arguments for CONFIG SET - 'nope'"),
        ("tim*", "1", "ERR Unknown option or number of arguments for CONFIG SET - 'tim*'"),
    ] {
        assert_eq!(refused(name, value), text, "{name} {value}");
    }
}

#[test]
fn start_only_values_are_checked_by_the_same_kinds() {
    let error = |key: Key, words: &[&str]| {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        Settings::default().put(key, Given::Words(&words), Origin::CommandLine).unwrap_err().to_string()
    };
    assert_eq!(error(Key::UnixSocketPerm, &["999"]), "argument couldn't be parsed as an octal number");
    assert_eq!(error(Key::UnixSocketPerm, &["2000"]), "argument must be between 0 and 777 inclusive");
    assert_eq!(error(Key::AppendFileName, &["a/b"]), "appendfilename can't be a path, just a filename");
    assert_eq!(error(Key::AppendDirName, &["a/b"]), "appenddirname can't be a path, just a dirname");
    assert_eq!(error(Key::AppendDirName, &[""]), "appenddirname can't be empty");
    assert_eq!(error(Key::DbFileName, &["a/b"]), "dbfilename can't be a path, just a filename");
    assert_eq!(error(Key::Port, &["1", "2"]), "wrong number of arguments");
    assert_eq!(error(Key::Port, &[]), "wrong number of arguments");
    assert_eq!(error(Key::ReplicaOf, &["host"]), "wrong number of arguments");
    assert_eq!(error(Key::ReplicaOf, &["host", "b"]), "Invalid master port");
    assert_eq!(error(Key::ReplicaOf, &["host", "6379"]), "replication is not built yet");
    assert_eq!(error(Key::Bind, &["1"; 17]), "Too many bind addresses specified.");
    assert_eq!(error(Key::Save, &["60 1", "2"]), "Invalid save parameters");
}

#[test]
fn a_change_is_all_or_nothing_and_names_come_first() {
    let settings = Settings::default();
    let error = |words: &[&str]| {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        settings.change(&words, false).unwrap_err().to_string()
    };
    assert_eq!(
        error(&["timeout", "5", "port", "zz", "nope", "1"]),
        "ERR Unknown option or number of arguments for CONFIG SET - 'nope'"
    );
    assert!(
        error(&["timeout", "5", "daemonize", "yes", "nope", "1"])
            .ends_with("'daemonize') - can't set immutable config")
    );
    assert!(error(&["timeout", "1", "Timeout", "2"]).ends_with("'Timeout') - duplicate parameter"));
    assert!(error(&["timeout", "1", "timeout", "2", "nope", "1"]).ends_with("'timeout') - duplicate parameter"));
    assert_eq!(error(&["timeout", "1", "maxclients"]), "ERR syntax error");

    let change = settings.change(&[b"timeout", b"5", b"hz", b"10", b"slowlog-max-len", b"1"], false).unwrap();
    assert_eq!(change.changed, [Key::Timeout, Key::SlowlogMaxLen]);
    assert_eq!(*change.settings.origin(Key::Hz), Origin::Client);
    // Two names of one key are two parameters, and the later one wins.
    let change = settings.change(&[b"replica-priority", b"5", b"slave-priority", b"6"], false).unwrap();
    assert_eq!(get(&change.settings, "replica-priority"), "6");
}

#[test]
fn protected_keys_follow_the_permission() {
    let mut settings = Settings::default();
    settings.put(Key::EnableProtectedConfigs, Given::Whole(b"local"), Origin::CommandLine).unwrap();
    assert!(settings.change(&[b"dir", b"/tmp"], true).is_ok());
    assert!(settings.change(&[b"dir", b"/tmp"], false).is_err());
}

#[test]
fn get_knows_patterns_aliases_and_duplicates() {
    let settings = Settings::default();
    let names = |patterns: &[&str]| {
        let patterns: Vec<&[u8]> = patterns.iter().map(|pattern| pattern.as_bytes()).collect();
        settings.get(&patterns).into_iter().map(|(name, _)| String::from_utf8(name).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(names(&["TIMEOUT"]), ["TIMEOUT"]);
    assert_eq!(names(&["timeout", "tim*", "time?ut"]), ["timeout"]);
    assert_eq!(names(&["TIM*"]), ["timeout"]);
    assert_eq!(names(&["[t]imeout"]), ["timeout"]);
    assert_eq!(names(&["slave-priority"]), ["slave-priority"]);
    assert_eq!(names(&["*-priority"]), ["replica-priority", "slave-priority"]);
    assert_eq!(names(&["nope", "include"]), Vec::<String>::new());
    assert_eq!(names(&["*"]).len(), TABLE.iter().filter(|row| !row.hidden).flat_map(Row::names).count());
    assert_eq!(names(&["rdb-key-save-dela*", "rdb-key-save-delay"]), ["rdb-key-save-delay"]);
}

#[test]
fn save_lines_of_one_source_add_up_and_an_empty_one_clears() {
    let file = |line| Origin::File { file: "a".into(), line };
    let mut settings = Settings::default();
    settings.put(Key::Save, Given::Words(&[b"60 1".to_vec()]), file(1)).unwrap();
    settings.put(Key::Save, Given::Words(&[b"5".to_vec(), b"2".to_vec()]), file(2)).unwrap();
    assert_eq!(settings.text(Key::Save), b"60 1 5 2");
    settings.put(Key::Save, Given::Words(&[b"7".to_vec(), b"7".to_vec()]), Origin::CommandLine).unwrap();
    assert_eq!(settings.text(Key::Save), b"7 7");
    settings.put(Key::RdbDelSyncFiles, Given::Whole(b"yes"), Origin::CommandLine).unwrap();
    assert_eq!(settings.without_meaning().map(|(key, _)| key).collect::<Vec<_>>(), [Key::RdbDelSyncFiles]);
    settings.put(Key::Save, Given::Words(&[b"".to_vec()]), Origin::CommandLine).unwrap();
    assert_eq!(settings.text(Key::Save), b"");
}

proptest! {
    #[test]
    fn any_value_of_any_key_is_taken_or_refused(at in 0..Key::ALL.len(), value in proptest::collection::vec(any::<u8>(), 0..30)) {
        let key = Key::ALL[at];
        let mut settings = Settings::default();
        if settings.put(key, Given::Whole(&value), Origin::Client).is_ok() {
            let text = settings.text(key);
            let again = settings.change(&[key.row().name.as_bytes(), &text], true);
            if key.row().mutability == Mutability::Runtime && key != Key::ReplicaOf {
                prop_assert_eq!(again.unwrap().changed, Vec::<Key>::new());
            }
        }
        let fresh = Settings::default();
        prop_assert_eq!(fresh.value(key), &default_value(key));
    }
}
