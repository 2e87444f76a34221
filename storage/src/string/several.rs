//! MSET, MSETNX, MSETEX: several strings at one instant.

use super::compare::Condition;
use super::expiration::Lifetime;
use super::set::log_set;
use crate::context::{Context, Expiry};
use crate::notify::Class;
use crate::string_value::Value;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};

/// `MSET key value [key value ...]`: OK. Of a key that is named twice the last value stays.
pub fn mset(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    if args.len().is_multiple_of(2) {
        return Err(CommandError::WrongArity("mset"));
    }
    store_pairs(cx, args, 1, args.len(), Expiry::Clear);
    cx.reply.ok();
    Ok(())
}

/// `MSETNX key value [key value ...]`: 1 if all keys were set, 0 if one of them was there.
pub fn msetnx(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    if args.len().is_multiple_of(2) {
        return Err(CommandError::WrongArity("msetnx"));
    }
    let are_new = count_present(cx, args, 1, args.len()) == 0;
    if are_new {
        store_pairs(cx, args, 1, args.len(), Expiry::Clear);
    }
    cx.reply.integer(i64::from(are_new));
    Ok(())
}

/// `MSETEX numkeys key value [key value ...] [NX | XX] [EX seconds | PX milliseconds | EXAT seconds | PXAT milliseconds |
/// KEEPTTL]`: 1 if all keys were set, 0 if none.
pub fn msetex(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let end = end_of_pairs(args)?;
    let (condition, lifetime) = read_options(args, end)?;
    let expiry = match lifetime {
        Lifetime::Unsaid => Expiry::Clear,
        Lifetime::Keep => Expiry::Keep,
        Lifetime::Expires(expiration) => Expiry::At(expiration.instant(cx.now_ms, "msetex")?),
    };
    let pairs = (end - 2) / 2;
    let holds = match condition {
        Condition::Absent => count_present(cx, args, 2, end) == 0,
        Condition::Present => count_present(cx, args, 2, end) == pairs,
        Condition::Always
        | Condition::Equals(_)
        | Condition::Differs(_)
        | Condition::DigestEquals(_)
        | Condition::DigestDiffers(_) => true,
    };
    if holds {
        store_pairs(cx, args, 2, end, expiry);
        log_pairs(cx, args, end, expiry);
    }
    cx.reply.integer(i64::from(holds));
    Ok(())
}

/// The index behind MSETEX's last pair.
fn end_of_pairs(args: &Args<'_>) -> Result<usize, CommandError> {
    let pairs = parse_i64(args.at(1))
        .and_then(|count| i32::try_from(count).ok())
        .and_then(|count| usize::try_from(count).ok())
        .filter(|count| *count > 0)
        .ok_or(CommandError::Text("ERR invalid numkeys value"))?;
    let end = pairs.checked_mul(2).and_then(|width| width.checked_add(2)).filter(|end| *end <= args.len());
    end.ok_or(CommandError::Text("ERR wrong number of key-value pairs"))
}

fn read_options<'a>(args: &Args<'a>, end: usize) -> Result<(Condition<'a>, Lifetime<'a>), CommandError> {
    let (mut condition, mut lifetime, mut index) = (Condition::Always, Lifetime::Unsaid, end);
    while index < args.len() {
        if let Some(width) = lifetime.read(args, index)? {
            index += width;
            continue;
        }
        let said = match () {
            () if args.is(index, "NX") => Condition::Absent,
            () if args.is(index, "XX") => Condition::Present,
            () => return Err(CommandError::Syntax),
        };
        if condition != Condition::Always && condition != said {
            return Err(CommandError::Syntax);
        }
        condition = said;
        index += 1;
    }
    Ok((condition, lifetime))
}

/// Number of pairs whose key is there.
fn count_present(cx: &mut Context<'_>, args: &Args<'_>, from: usize, end: usize) -> usize {
    (from..end).step_by(2).filter(|index| cx.write(&cx.key(args.at(*index))).is_some()).count()
}

fn store_pairs(cx: &mut Context<'_>, args: &Args<'_>, from: usize, end: usize, expiry: Expiry) {
    for index in (from..end).step_by(2) {
        let key = cx.key(args.at(index));
        cx.store(&key, Value::from_bytes(args.at(index + 1)), expiry);
        if matches!(expiry, Expiry::At(_)) {
            cx.notify(Class::GENERIC, "expire", &key);
        }
        cx.notify(Class::STRING, "set", &key);
    }
}

/// Records what MSETEX did in commands that Redis 8.2 knows.
fn log_pairs(cx: &mut Context<'_>, args: &Args<'_>, end: usize, expiry: Expiry) {
    if expiry == Expiry::Clear {
        let words: Vec<&[u8]> = std::iter::once(b"MSET".as_slice()).chain(args.from(2).take(end - 2)).collect();
        cx.log_instead(&words);
        return;
    }
    for index in (2..end).step_by(2) {
        log_set(cx, args.at(index), args.at(index + 1), expiry);
    }
}
