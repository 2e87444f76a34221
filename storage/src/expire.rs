//! Expiry of keys: EXPIRE and its like, TTL and its like, PERSIST.
//!
//! Whatever a client wrote, the log gets the outcome: `PEXPIREAT key ms`, or `DEL key` when the time has passed already, so that
//! a replay a day later ends in the same state.

use crate::context::Context;
use crate::notify::Class;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};

/// The unit of a command's times, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Seconds,
    Milliseconds,
}

/// What the times of a command count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Now,
    Epoch,
}

/// `EXPIRE key seconds [NX|XX|GT|LT]`: 1, or 0 if the key is not there or the condition does not hold.
pub fn expire(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    set(cx, args, "expire", Unit::Seconds, Origin::Now)
}

/// `PEXPIRE key milliseconds [NX|XX|GT|LT]`.
pub fn pexpire(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    set(cx, args, "pexpire", Unit::Milliseconds, Origin::Now)
}

/// `EXPIREAT key unix-time-seconds [NX|XX|GT|LT]`.
pub fn expireat(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    set(cx, args, "expireat", Unit::Seconds, Origin::Epoch)
}

/// `PEXPIREAT key unix-time-milliseconds [NX|XX|GT|LT]`.
pub fn pexpireat(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    set(cx, args, "pexpireat", Unit::Milliseconds, Origin::Epoch)
}

/// When a new expiry is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Conditions {
    absent: bool,
    present: bool,
    later: bool,
    sooner: bool,
}

impl Conditions {
    /// Reads the options behind the time.
    fn parse(args: &Args<'_>) -> Result<Self, CommandError> {
        let mut conditions = Self::default();
        for option in args.from(3) {
            match option.to_ascii_uppercase().as_slice() {
                b"NX" => conditions.absent = true,
                b"XX" => conditions.present = true,
                b"GT" => conditions.later = true,
                b"LT" => conditions.sooner = true,
                _ => return Err(CommandError::repeats("ERR Unsupported option ", option, "")),
            }
        }
        if conditions.absent && (conditions.present || conditions.later || conditions.sooner) {
            return Err(CommandError::Text("ERR NX and XX, GT or LT options at the same time are not compatible"));
        }
        if conditions.later && conditions.sooner {
            return Err(CommandError::Text("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(conditions)
    }

    /// Whether an expiry at `new` may replace the present one. No expiry counts as one that never comes.
    fn hold(self, present: Option<i64>, new: i64) -> bool {
        !(self.absent && present.is_some()
            || self.present && present.is_none()
            || self.later && present.is_none_or(|at| new <= at)
            || self.sooner && present.is_some_and(|at| new >= at))
    }
}

/// A client's time as milliseconds of Unix time; `None` if it lies beyond what 64 bits hold.
fn absolute(time: i64, unit: Unit, origin: Origin, now_ms: i64) -> Option<i64> {
    let milliseconds = match unit {
        Unit::Seconds => time.checked_mul(1000)?,
        Unit::Milliseconds => time,
    };
    match origin {
        Origin::Now => milliseconds.checked_add(now_ms),
        Origin::Epoch => Some(milliseconds),
    }
}

/// What the four commands have in common.
fn set(
    cx: &mut Context<'_>,
    args: &Args<'_>,
    command: &'static str,
    unit: Unit,
    origin: Origin,
) -> Result<(), CommandError> {
    let conditions = Conditions::parse(args)?;
    let time = parse_i64(args.at(2)).ok_or(CommandError::NotAnInteger)?;
    let at = absolute(time, unit, origin, cx.now_ms).ok_or(CommandError::InvalidExpire(command))?;
    let key = cx.first_key(args);
    let present = cx.write(&key).map(|entry| entry.view().expires_at());
    let is_taken = present.is_some_and(|present| conditions.hold(present, at));
    if is_taken {
        set_or_remove(cx, args.at(1), at);
    }
    cx.reply.integer(i64::from(is_taken));
    Ok(())
}

/// Gives a key that is there its expiry, or removes it if that time has passed.
fn set_or_remove(cx: &mut Context<'_>, bytes: &[u8], at: i64) {
    let key = cx.key(bytes);
    if at <= cx.now_ms && !cx.replaying {
        cx.remove(&key);
        cx.log_instead(&[b"DEL", bytes]);
        cx.notify(Class::GENERIC, "del", &key);
    } else {
        cx.set_expiry(&key, Some(at));
        cx.log_instead(&[b"PEXPIREAT", bytes, itoa::Buffer::new().format(at).as_bytes()]);
        cx.notify(Class::GENERIC, "expire", &key);
    }
}

/// `PERSIST key`: 1 if an expiry was removed.
pub fn persist(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let has_expiry = cx.write(&key).is_some_and(|entry| entry.view().expires_at().is_some());
    if has_expiry {
        cx.set_expiry(&key, None);
        cx.notify(Class::GENERIC, "persist", &key);
    }
    cx.reply.integer(i64::from(has_expiry));
    Ok(())
}

/// `TTL key`: seconds left, -1 without an expiry, -2 without the key.
pub fn ttl(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let now_ms = cx.now_ms;
    tell(cx, args, |at| seconds(left(at, now_ms)))
}

/// `PTTL key`: as TTL, in milliseconds.
pub fn pttl(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let now_ms = cx.now_ms;
    tell(cx, args, |at| left(at, now_ms))
}

/// `EXPIRETIME key`: the Unix time in seconds, -1 without an expiry, -2 without the key.
pub fn expiretime(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    tell(cx, args, seconds)
}

/// `PEXPIRETIME key`: as EXPIRETIME, in milliseconds.
pub fn pexpiretime(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    tell(cx, args, |at| at)
}

fn tell(cx: &mut Context<'_>, args: &Args<'_>, of: impl FnOnce(i64) -> i64) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let answer = match cx.inspect(&key).map(|entry| entry.expires_at()) {
        None => -2,
        Some(None) => -1,
        Some(Some(at)) => of(at),
    };
    cx.reply.integer(answer);
    Ok(())
}

/// Milliseconds left, none once the time has come.
fn left(at: i64, now_ms: i64) -> i64 {
    at.saturating_sub(now_ms).max(0)
}

/// Milliseconds as seconds, rounded to the nearest.
fn seconds(milliseconds: i64) -> i64 {
    milliseconds / 1000 + (milliseconds % 1000 + 500) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, Handler};
    use crate::{generic, string};

    fn with_k() -> Fixture {
        let mut fixture = Fixture::new();
        fixture.reply(string::setnx, &["SETNX", "k", "v"]);
        fixture
    }

    /// Handler, request, reply, records.
    type Case = (Handler, &'static str, &'static str, &'static [&'static str]);

    fn check(fixture: &mut Fixture, cases: &[Case]) {
        for (handler, line, reply, log) in cases {
            let words: Vec<&str> = line.split(' ').collect();
            let expected = (format!("{reply} "), log.iter().map(ToString::to_string).collect());
            assert_eq!(fixture.run(*handler, &words), expected, "{line}");
        }
    }

    /// Redis 8.2.3 answered so.
    #[test]
    fn errors_come_in_redis_s_order() {
        let incompatible = "-ERR NX and XX, GT or LT options at the same time are not compatible";
        check(
            &mut with_k(),
            &[
                (expire, "EXPIRE k 10 NX XX", incompatible, &[]),
                (expire, "EXPIRE k 10 NX GT", incompatible, &[]),
                (expire, "EXPIRE k 10 GT LT", "-ERR GT and LT options at the same time are not compatible", &[]),
                (expire, "EXPIRE k abc foo", "-ERR Unsupported option foo", &[]),
                (expire, "EXPIRE nokey abc", "-ERR value is not an integer or out of range", &[]),
                (expire, "EXPIRE nokey 9223372036854775807", "-ERR invalid expire time in 'expire' command", &[]),
                (expire, "EXPIRE nokey 10", ":0", &[]),
            ],
        );
    }

    #[test]
    fn c11_times_at_the_boundaries_of_64_bits() {
        check(
            &mut with_k(),
            &[
                (expire, "EXPIRE k 9223372036854775807", "-ERR invalid expire time in 'expire' command", &[]),
                (expire, "EXPIRE k -9223372036854775808", "-ERR invalid expire time in 'expire' command", &[]),
                (expire, "EXPIRE k 9223372036854775", "-ERR invalid expire time in 'expire' command", &[]),
                (expire, "EXPIRE k 9223372036854775808", "-ERR value is not an integer or out of range", &[]),
                (pexpire, "PEXPIRE k 9223372036854775807", "-ERR invalid expire time in 'pexpire' command", &[]),
                (expireat, "EXPIREAT k 9223372036854775807", "-ERR invalid expire time in 'expireat' command", &[]),
                (pexpireat, "PEXPIREAT k 9223372036854775807", ":1", &["PEXPIREAT k 9223372036854775807"]),
                (pexpiretime, "PEXPIRETIME k", ":9223372036854775807", &[]),
                (expiretime, "EXPIRETIME k", ":9223372036854776", &[]),
                (pttl, "PTTL k", ":9223372036853775807", &[]),
                (ttl, "TTL k", ":9223372036853776", &[]),
                (pexpire, "PEXPIRE k -9223372036854775808", ":1", &["DEL k"]),
                (generic::exists, "EXISTS k", ":0", &[]),
            ],
        );
    }

    #[test]
    fn the_log_gets_the_outcome() {
        check(
            &mut with_k(),
            &[
                (expire, "EXPIRE k 100", ":1", &["PEXPIREAT k 1100000"]),
                (expireat, "EXPIREAT k 2000", ":1", &["PEXPIREAT k 2000000"]),
                (pexpire, "PEXPIRE k 100", ":1", &["PEXPIREAT k 1000100"]),
                (persist, "PERSIST k", ":1", &["PERSIST k"]),
                (persist, "PERSIST k", ":0", &[]),
                (persist, "PERSIST nokey", ":0", &[]),
                (pexpireat, "PEXPIREAT k 1000000", ":1", &["DEL k"]),
                (pexpireat, "PEXPIREAT k 1000000", ":0", &[]),
            ],
        );
    }

    #[test]
    fn conditions_compare_with_the_present_expiry() {
        check(
            &mut with_k(),
            &[
                (expire, "EXPIRE k 10 XX", ":0", &[]),
                (expire, "EXPIRE k 10 GT", ":0", &[]),
                (expire, "EXPIRE k 10 xx gt", ":0", &[]),
                (expire, "EXPIRE k 10 LT", ":1", &["PEXPIREAT k 1010000"]),
                (expire, "EXPIRE k 20 NX", ":0", &[]),
                (expire, "EXPIRE k 10 GT", ":0", &[]),
                (expire, "EXPIRE k 10 LT", ":0", &[]),
                (expire, "EXPIRE k 20 XX GT", ":1", &["PEXPIREAT k 1020000"]),
                (expire, "EXPIRE k 5 XX LT", ":1", &["PEXPIREAT k 1005000"]),
                (expire, "EXPIRE k -1 GT", ":0", &[]),
                (expire, "EXPIRE k -1 LT", ":1", &["DEL k"]),
            ],
        );
    }

    #[test]
    fn times_left_are_rounded() {
        let mut fixture = with_k();
        check(
            &mut fixture,
            &[
                (ttl, "TTL k", ":-1", &[]),
                (pttl, "PTTL nokey", ":-2", &[]),
                (expiretime, "EXPIRETIME k", ":-1", &[]),
                (pexpiretime, "PEXPIRETIME nokey", ":-2", &[]),
                (pexpire, "PEXPIRE k 1500", ":1", &["PEXPIREAT k 1001500"]),
                (ttl, "TTL k", ":2", &[]),
                (expiretime, "EXPIRETIME k", ":1002", &[]),
            ],
        );
        fixture.now_ms += 1;
        check(&mut fixture, &[(ttl, "TTL k", ":1", &[]), (pttl, "PTTL k", ":1499", &[])]);
        fixture.now_ms += 1499;
        check(&mut fixture, &[(ttl, "TTL k", ":-2", &["DEL k"]), (ttl, "TTL k", ":-2", &[])]);
    }

    #[test]
    fn a_replay_sets_what_has_passed_and_removes_nothing() {
        let mut fixture = with_k();
        fixture.replaying = true;
        check(
            &mut fixture,
            &[
                (pexpireat, "PEXPIREAT k 1", ":1", &["PEXPIREAT k 1"]),
                (pexpiretime, "PEXPIRETIME k", ":1", &[]),
                (pexpireat, "PEXPIREAT k 2000000", ":1", &["PEXPIREAT k 2000000"]),
                (string::get, "GET k", "$1 v", &[]),
            ],
        );
    }
}
