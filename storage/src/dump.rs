//! DUMP and RESTORE: a value as a payload of bytes and back. The payload's format is in `rdb/dump.rs`.
//!
//! What a RESTORE did is recorded as `SET key value [PXAT ms]`: the payload may come from a server whose version the next reader
//! of the log refuses (Redis and Valkey refuse each other's newest), and a time to live must become a time. `IDLETIME` and
//! `FREQ` are lost in a replay, as every other access is.

use crate::access::{AccessPolicy, lfu_of_frequency, lru_of_idle};
use crate::context::Context;
use crate::entry::{Entry, Value};
use crate::rdb::dump::{Restored, dump_string, restore as read_payload};
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};

/// The longest idle time that the access field can tell from none.
const IDLE_SECONDS_MAX: i64 = (1 << 24) - 2;

/// `DUMP key`: the payload, or null.
pub fn dump(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let mut payload = Vec::new();
    let found = cx.read(&key).map(|entry| entry.value().with_text(|text| dump_string(&mut payload, text)));
    match found {
        Some(()) => cx.reply.bulk(&payload),
        None => cx.reply.null(),
    }
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
    let Restored::String(bytes) =
        read_payload(args.at(3), bytes_max).map_err(|error| CommandError::Owned(error.to_string()))?;
    let expires_at = match deadline(cx, ttl_ms, options.is_absolute) {
        Deadline::Never => None,
        Deadline::At(at) => Some(at),
        Deadline::Passed => {
            if cx.remove(&key) {
                cx.log_instead(&[b"DEL", key.bytes]);
            }
            cx.reply.ok();
            return Ok(());
        }
    };
    let (value, access) = (Value::from_bytes(&bytes), options.access(cx.settings.access, cx.now_ms));
    cx.put(&key, Entry::new(key.bytes, value, value.encoding(), expires_at, access));
    cx.effects.change();
    match expires_at {
        None => cx.log_instead(&[b"SET", key.bytes, &bytes]),
        Some(at) => {
            cx.log_instead(&[b"SET", key.bytes, &bytes, b"PXAT", itoa::Buffer::new().format(at).as_bytes()]);
        }
    }
    cx.reply.ok();
    Ok(())
}
