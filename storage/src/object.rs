//! OBJECT: how a value is stored and how it has been used. Looking here leaves no trace on the access field.

use crate::access::{AccessPolicy, idle_seconds};
use crate::context::Context;
use crate::entry::EntryRef;
use simurgh_protocol::{Args, CommandError};

const HELP: [&str; 15] = [
    "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ENCODING <key>",
    "    Return the kind of internal representation used in order to store the value",
    "    associated with a <key>.",
    "FREQ <key>",
    "    Return the access frequency index of the <key>. The returned integer is",
    "    proportional to the logarithm of the recent access frequency of the key.",
    "IDLETIME <key>",
    "    Return the idle time of the <key>, that is the approximated number of",
    "    seconds elapsed since the last access to the key.",
    "REFCOUNT <key>",
    "    Return the number of references of the value associated with the specified",
    "    <key>.",
    "HELP",
    "    Print this help.",
];

/// `OBJECT HELP`.
pub fn help(cx: &mut Context<'_>, _args: &Args<'_>) -> Result<(), CommandError> {
    cx.reply.array(HELP.len());
    for line in HELP {
        cx.reply.simple(line);
    }
    Ok(())
}

/// What `of` says of the entry that argument 2 names.
fn describe<T>(cx: &mut Context<'_>, args: &Args<'_>, of: impl FnOnce(EntryRef<'_>) -> T) -> Option<T> {
    let key = cx.key(args.at(2));
    cx.inspect_untold(&key).map(of)
}

/// `OBJECT ENCODING key`: the name of the representation, or null.
pub fn encoding(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    match describe(cx, args, |entry| entry.encoding_name()) {
        Some(name) => cx.reply.bulk(name.as_bytes()),
        None => cx.reply.null(),
    }
    Ok(())
}

/// `OBJECT REFCOUNT key`: 1, since no value is shared, or null.
pub fn refcount(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    match describe(cx, args, |_| ()) {
        Some(()) => cx.reply.integer(1),
        None => cx.reply.null(),
    }
    Ok(())
}

/// `OBJECT IDLETIME key`: seconds since the last use, or null.
pub fn idletime(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (policy, now_ms) = (cx.settings.access, cx.now_ms);
    match (describe(cx, args, |entry| entry.access()), policy) {
        (None, _) => cx.reply.null(),
        (Some(access), AccessPolicy::Lru) => cx.reply.integer(i64::from(idle_seconds(access, now_ms))),
        (Some(_), AccessPolicy::Lfu { .. }) => {
            return Err(CommandError::Text(
                "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between \
                 policies at runtime LRU and LFU data will take some time to adjust.",
            ));
        }
    }
    Ok(())
}

/// `OBJECT FREQ key`: how often it is used, on a logarithmic scale, or null.
pub fn freq(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (policy, now_ms) = (cx.settings.access, cx.now_ms);
    match (describe(cx, args, |entry| entry.access()), policy) {
        (None, _) => cx.reply.null(),
        (Some(access), AccessPolicy::Lfu { .. }) => {
            cx.reply.integer(i64::from(policy.frequency(access, now_ms)));
        }
        (Some(_), AccessPolicy::Lru) => {
            return Err(CommandError::Text(
                "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when \
                 switching between policies at runtime LRU and LFU data will take some time to adjust.",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;
    use crate::{expire, string};

    #[test]
    fn what_is_known_of_a_value() {
        let mut fixture = Fixture::new();
        let long = "x".repeat(41);
        for (name, value, encoding_name) in
            [("n", "123", "$3 int "), ("e", &long[1..], "$6 embstr "), ("r", &long, "$3 raw ")]
        {
            fixture.reply(string::setnx, &["SETNX", name, value]);
            assert_eq!(fixture.reply(encoding, &["OBJECT", "ENCODING", name]), encoding_name);
        }
        fixture.reply(expire::expire, &["EXPIRE", "e", "100"]);
        assert_eq!(fixture.reply(encoding, &["OBJECT", "ENCODING", "e"]), "$3 raw ");
        // Redis 8.2.3: it stays so when the expiry goes, until the value is replaced.
        fixture.reply(expire::persist, &["PERSIST", "e"]);
        assert_eq!(fixture.reply(encoding, &["OBJECT", "ENCODING", "e"]), "$3 raw ");
        fixture.reply(string::getset, &["GETSET", "e", &long[1..]]);
        assert_eq!(fixture.reply(encoding, &["OBJECT", "ENCODING", "e"]), "$6 embstr ");
        assert_eq!(fixture.reply(refcount, &["OBJECT", "REFCOUNT", "n"]), ":1 ");
        fixture.now_ms += 7_999;
        assert_eq!(fixture.reply(idletime, &["OBJECT", "IDLETIME", "n"]), ":7 ");
        fixture.reply(string::get, &["GET", "n"]);
        assert_eq!(fixture.reply(idletime, &["OBJECT", "IDLETIME", "n"]), ":0 ");
        for handler in [encoding, refcount, idletime, freq] {
            assert_eq!(fixture.reply(handler, &["OBJECT", "?", "nokey"]), "$-1 ");
        }
        assert!(fixture.reply(freq, &["OBJECT", "FREQ", "n"]).starts_with(
            "-ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching \
             between policies at runtime LRU and LFU data will take some time to adjust."
        ));
        fixture.settings.access = AccessPolicy::Lfu { log_factor: 10, decay_minutes: 1 };
        fixture.reply(string::setnx, &["SETNX", "f", "1"]);
        assert_eq!(fixture.reply(freq, &["OBJECT", "FREQ", "f"]), ":5 ");
        fixture.reply(string::get, &["GET", "f"]);
        assert_eq!(fixture.reply(freq, &["OBJECT", "FREQ", "f"]), ":6 ");
        assert!(
            fixture
                .reply(idletime, &["OBJECT", "IDLETIME", "f"])
                .starts_with("-ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that")
        );
    }
}
