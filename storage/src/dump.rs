//! DUMP and RESTORE: a value as a payload of bytes and back. The payload's format is in `rdb/dump.rs`.
//!
//! What a RESTORE did is recorded as `SET key value [PXAT ms]`, or as a RESTORE with a payload of ours: the one that came may be from a
//! server whose version the next reader of the log refuses (Redis and Valkey refuse each other's newest), and a time to live must
//! become a time. `IDLETIME` and
//! `FREQ` are lost in a replay, as every other access is.

use crate::access::{AccessPolicy, lfu_of_frequency, lru_of_idle};
use crate::context::Context;
use crate::key_hash::Key;
use crate::notify::Class;
use crate::rdb::dump::{dump as write_payload, restore as read_payload};
use crate::rdb::value::Loading;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};

/// The longest idle time that the access field can tell from none.
const IDLE_SECONDS_MAX: i64 = (1 << 24) - 2;

/// `DUMP key`: the payload, or null.
pub fn dump(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let mut payload = Vec::new();
    let Some(entry) = cx.read(&key) else {
        cx.reply.null();
        return Ok(());
    };
    write_payload(&mut payload, entry);
    cx.reply.bulk(&payload);
    Ok(())
}

/// The options behind a payload.
#[derive(Default)]
struct Options {
    replace: bool,
    is_absolute: bool,
    idle_seconds: Option<i64>,
    frequency: Option<u8>,
}

impl Options {
    fn parse(args: &Args<'_>) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut index = 4;
        while index < args.len() {
            let value = args.get(index + 1);
            if args.is(index, "REPLACE") {
                options.replace = true;
            } else if args.is(index, "ABSTTL") {
                options.is_absolute = true;
            } else if args.is(index, "IDLETIME")
                && options.frequency.is_none()
                && let Some(value) = value
            {
                let seconds = parse_i64(value).ok_or(CommandError::NotAnInteger)?;
                if seconds < 0 {
                    return Err(CommandError::Text("ERR Invalid IDLETIME value, must be >= 0"));
                }
                options.idle_seconds = Some(seconds);
                index += 1;
            } else if args.is(index, "FREQ")
                && options.idle_seconds.is_none()
                && let Some(value) = value
            {
                let frequency = parse_i64(value).ok_or(CommandError::NotAnInteger)?;
                let out_of_range = CommandError::Text("ERR Invalid FREQ value, must be >= 0 and <= 255");
                options.frequency = Some(u8::try_from(frequency).map_err(|_| out_of_range)?);
                index += 1;
            } else {
                return Err(CommandError::Syntax);
            }
            index += 1;
        }
        Ok(options)
    }

    /// The access field of the restored key; an option that does not fit the policy is of no use and ignored.
    fn access(&self, policy: AccessPolicy, now_ms: i64) -> u32 {
        match (policy, self.idle_seconds, self.frequency) {
            (AccessPolicy::Lru, Some(seconds), _) => lru_of_idle(seconds.min(IDLE_SECONDS_MAX) as u32, now_ms),
            (AccessPolicy::Lfu { .. }, _, Some(frequency)) => lfu_of_frequency(frequency, now_ms),
            (AccessPolicy::Lru, None, _) | (AccessPolicy::Lfu { .. }, _, None) => policy.fresh(now_ms),
        }
    }
}

/// When a key restored with this time to live expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deadline {
    Never,
    At(i64),
    /// It has passed: the key does not even come to be.
    Passed,
}

/// The expiry that a time to live of RESTORE means; 0 is none.
fn deadline(cx: &Context<'_>, ttl_ms: i64, is_absolute: bool) -> Deadline {
    if ttl_ms == 0 {
        return Deadline::Never;
    }
    // A sum beyond 64 bits counts as passed, as Redis's, which wraps around to the distant past, does.
    let at = if is_absolute { Some(ttl_ms) } else { ttl_ms.checked_add(cx.now_ms) };
    match at {
        Some(at) if at > cx.now_ms || cx.replaying => Deadline::At(at),
        Some(_) | None => Deadline::Passed,
    }
}

/// `RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]`.
pub fn restore(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let options = Options::parse(args)?;
    let key = cx.first_key(args);
    if !options.replace && cx.touch(&key) {
        return Err(CommandError::BusyKey);
    }
    let ttl_ms = parse_i64(args.at(2)).ok_or(CommandError::NotAnInteger)?;
    if ttl_ms < 0 {
        return Err(CommandError::Text("ERR Invalid TTL value, must be >= 0"));
    }
    let bytes_max = usize::try_from(cx.settings.bulk_max).unwrap_or(usize::MAX);
    let loading = Loading { packing: &cx.settings.packing, hasher: &cx.layout.hasher, string_bytes_max: bytes_max };
    let loaded = read_payload(args.at(3), &loading).map_err(|error| CommandError::Owned(error.to_string()))?;
    let expires_at = match deadline(cx, ttl_ms, options.is_absolute) {
        Deadline::Never => None,
        Deadline::At(at) => Some(at),
        Deadline::Passed => {
            if cx.remove(&key) {
                cx.log_instead(&[b"DEL", key.bytes]);
                cx.notify(Class::GENERIC, "del", &key);
            }
            cx.reply.ok();
            return Ok(());
        }
    };
    let access = options.access(cx.settings.access, cx.now_ms);
    let entry = loaded.into_entry(key.bytes, expires_at, access);
    let new_type = entry.view().type_name();
    let old_type = cx.put(&key, entry);
    cx.notify(Class::GENERIC, "restore", &key);
    cx.notify_overwritten(&key, old_type, new_type);
    cx.effects.change();
    log_restored(cx, &key);
    cx.reply.ok();
    Ok(())
}

/// Records what is under a key now: a string as SET, anything else as RESTORE with a payload of ours.
fn log_restored(cx: &mut Context<'_>, key: &Key<'_>) {
    let Some(entry) = cx.peek(key) else { return };
    let (mut digits, expires_at) = (itoa::Buffer::new(), entry.expires_at());
    let at = digits.format(expires_at.unwrap_or(0)).as_bytes();
    match (entry.string(), expires_at) {
        (Ok(value), None) => {
            let text = value.to_vec();
            cx.log_instead(&[b"SET", key.bytes, &text]);
        }
        (Ok(value), Some(_)) => {
            let text = value.to_vec();
            cx.log_instead(&[b"SET", key.bytes, &text, b"PXAT", at]);
        }
        (Err(_), _) => {
            let mut payload = Vec::new();
            write_payload(&mut payload, entry);
            cx.log_instead(&[b"RESTORE", key.bytes, at, &payload, b"REPLACE", b"ABSTTL"]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expire;
    use crate::fixture::Fixture;
    use crate::object;
    use crate::string;

    /// `v`, as Redis 8.2.3 dumps it.
    const PAYLOAD: &[u8] = b"\x00\x01v\x0c\x00Z~\xfar\xe3\x12\x14\x87";

    fn run(fixture: &mut Fixture, key: &str, ttl: &str, payload: &[u8], options: &str) -> (String, Vec<String>) {
        let mut words = vec![&b"RESTORE"[..], key.as_bytes(), ttl.as_bytes(), payload];
        words.extend(options.split_whitespace().map(str::as_bytes));
        let (reply, log) = fixture.run_bytes(restore, &words);
        (String::from_utf8(reply).unwrap().trim_end().to_owned(), log)
    }

    /// Redis 8.2.3 answered so, case for case.
    #[test]
    fn errors_come_in_redis_s_order() {
        let mut fixture = Fixture::new();
        fixture.reply(string::setnx, &["SETNX", "d", "v"]);
        let busy = "-BUSYKEY Target key name already exists.";
        let damaged = "-ERR DUMP payload version or checksum are wrong";
        for (key, ttl, payload, options, reply) in [
            ("d", "0", PAYLOAD, "", busy),
            ("d", "abc", b"bad", "", busy),
            ("d", "-1", b"bad", "", busy),
            ("d", "abc", b"bad", "foo", "-ERR syntax error"),
            ("d", "0", b"bad", "REPLACE", damaged),
            ("f", "-1", PAYLOAD, "ABSTTL", "-ERR Invalid TTL value, must be >= 0"),
            ("f", "x", PAYLOAD, "", "-ERR value is not an integer or out of range"),
            ("f", "5000", b"bad", "", damaged),
            ("h", "0", PAYLOAD, "FREQ 5 IDLETIME 5", "-ERR syntax error"),
            ("h", "0", PAYLOAD, "IDLETIME 5 FREQ 5", "-ERR syntax error"),
            ("h", "0", PAYLOAD, "IDLETIME", "-ERR syntax error"),
            ("h", "0", PAYLOAD, "IDLETIME -1", "-ERR Invalid IDLETIME value, must be >= 0"),
            ("h", "0", PAYLOAD, "IDLETIME x", "-ERR value is not an integer or out of range"),
            ("h", "0", PAYLOAD, "FREQ -1", "-ERR Invalid FREQ value, must be >= 0 and <= 255"),
            ("h", "0", PAYLOAD, "FREQ 256", "-ERR Invalid FREQ value, must be >= 0 and <= 255"),
        ] {
            assert_eq!(run(&mut fixture, key, ttl, payload, options), (reply.into(), vec![]), "{key} {ttl} {options}");
        }
    }

    #[test]
    fn a_restore_is_recorded_as_what_came_of_it() {
        let mut fixture = Fixture::new();
        let mut check = |key: &str, ttl: &str, options: &str, log: &[&str]| {
            let expected = ("+OK".into(), log.iter().map(ToString::to_string).collect());
            assert_eq!(run(&mut fixture, key, ttl, PAYLOAD, options), expected, "{key} {ttl} {options}");
        };
        check("e", "0", "", &["SET e v"]);
        check("e", "5000", "replace", &["SET e v PXAT 1005000"]);
        check("e", "2000000", "REPLACE ABSTTL", &["SET e v PXAT 2000000"]);
        check("e", "0", "REPLACE ABSTTL", &["SET e v"]);
        check("e", "1000000", "REPLACE ABSTTL", &["DEL e"]);
        check("e", "1000000", "ABSTTL", &[]);
        // C11: the sum is beyond 64 bits. Redis's wraps around, so the key is gone at once.
        check("e", "9223372036854775807", "", &[]);
        check("e", "9223372036854775807", "ABSTTL", &["SET e v PXAT 9223372036854775807"]);
        assert_eq!(fixture.reply(string::get, &["GET", "e"]), "$1 v ");
        assert_eq!(fixture.reply(expire::pexpiretime, &["PEXPIRETIME", "e"]), ":9223372036854775807 ");
    }

    #[test]
    fn idle_time_and_frequency_are_restored_where_they_fit_the_policy() {
        let mut fixture = Fixture::new();
        run(&mut fixture, "i", "0", PAYLOAD, "IDLETIME 5");
        assert_eq!(fixture.reply(object::idletime, &["OBJECT", "IDLETIME", "i"]), ":5 ");
        run(&mut fixture, "i", "0", PAYLOAD, "IDLETIME 9223372036854775807 REPLACE");
        assert_eq!(fixture.reply(object::idletime, &["OBJECT", "IDLETIME", "i"]), ":16777214 ");
        run(&mut fixture, "i", "0", PAYLOAD, "FREQ 9 REPLACE");
        assert_eq!(fixture.reply(object::idletime, &["OBJECT", "IDLETIME", "i"]), ":0 ");
        fixture.settings.access = AccessPolicy::Lfu { log_factor: 10, decay_minutes: 1 };
        run(&mut fixture, "i", "0", PAYLOAD, "FREQ 9 REPLACE");
        assert_eq!(fixture.reply(object::freq, &["OBJECT", "FREQ", "i"]), ":9 ");
        run(&mut fixture, "i", "0", PAYLOAD, "IDLETIME 9 REPLACE");
        assert_eq!(fixture.reply(object::freq, &["OBJECT", "FREQ", "i"]), ":5 ");
    }

    #[test]
    fn what_is_dumped_is_restored() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.reply(dump, &["DUMP", "nokey"]), "$-1 ");
        for (name, value) in [("n", "12"), ("s", "text"), ("l", "0123456789".repeat(50).as_str())] {
            fixture.reply(string::setnx, &["SETNX", name, value]);
            let (reply, log) = fixture.run_bytes(dump, &[b"DUMP", name.as_bytes()]);
            assert_eq!(log, Vec::<String>::new());
            let start = reply.iter().position(|byte| *byte == b'\n').unwrap() + 1;
            let payload = &reply[start..reply.len() - 2];
            run(&mut fixture, "copy", "0", payload, "REPLACE");
            let encodings = ["copy", name].map(|name| fixture.reply(object::encoding, &["OBJECT", "ENCODING", name]));
            assert_eq!(fixture.reply(string::get, &["GET", "copy"]), format!("${} {value} ", value.len()));
            assert_eq!(encodings[0], encodings[1]);
        }
    }
}
