//! SET with all its options, SETEX, PSETEX, SETNX.

use super::compare::Condition;
use super::expiration::{Expiration, Form, Lifetime};
use super::reply_value_or_null;
use crate::context::{Context, Expiry};
use crate::key_hash::Key;
use crate::notify::Class;
use crate::string_value::Value;
use simurgh_protocol::{Args, CommandError};

/// The options of one SET, as they were typed.
#[derive(Debug, Default)]
struct Options<'a> {
    condition: Condition<'a>,
    answers_old: bool,
    lifetime: Lifetime<'a>,
}

impl<'a> Options<'a> {
    fn read(args: &Args<'a>) -> Result<Self, CommandError> {
        let (mut options, mut index) = (Self::default(), 3);
        while index < args.len() {
            index += options.read_one(args, index)?;
        }
        Ok(options)
    }

    /// Reads the option at `index`: how many arguments it takes.
    fn read_one(&mut self, args: &Args<'a>, index: usize) -> Result<usize, CommandError> {
        if args.is(index, "GET") {
            self.answers_old = true;
            return Ok(1);
        }
        if let Some(width) = self.lifetime.read(args, index)? {
            return Ok(width);
        }
        let (condition, width) = if args.is(index, "NX") {
            (Condition::Absent, 1)
        } else if args.is(index, "XX") {
            (Condition::Present, 1)
        } else {
            (Condition::comparison(args, index).ok_or(CommandError::Syntax)?, 2)
        };
        let is_same_kind = std::mem::discriminant(&condition) == std::mem::discriminant(&self.condition);
        if self.condition != Condition::Always && !is_same_kind {
            return Err(CommandError::Syntax);
        }
        self.condition = condition;
        Ok(width)
    }

    /// Whether the command means the same whenever it is replayed.
    fn is_plain(&self, expiry: Expiry) -> bool {
        self.condition == Condition::Always && !self.answers_old && !matches!(expiry, Expiry::At(_))
    }
}

/// `SET key value [NX | XX | IFEQ value | IFNE value | IFDEQ digest | IFDNE digest] [GET] [EX seconds | PX milliseconds |
/// EXAT seconds | PXAT milliseconds | KEEPTTL]`: OK or null, or with GET what was there before.
#[inline]
pub fn set(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    if args.len() == 3 {
        let key = cx.first_key(args);
        cx.store(&key, Value::from_bytes(args.at(2)), Expiry::Clear);
        cx.notify(Class::STRING, "set", &key);
        cx.reply.ok();
        return Ok(());
    }
    set_with_options(cx, args)
}

fn set_with_options(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let options = Options::read(args)?;
    let expiry = match options.lifetime {
        Lifetime::Unsaid => Expiry::Clear,
        Lifetime::Keep => Expiry::Keep,
        Lifetime::Expires(expiration) => Expiry::At(expiration.instant(cx.now_ms, "set")?),
    };
    let key = cx.first_key(args);
    if !answer(cx, &key, &options)? {
        return Ok(());
    }
    let value = args.at(2);
    cx.store(&key, Value::from_bytes(value), expiry);
    notify_set(cx, &key, expiry);
    if !options.is_plain(expiry) {
        log_set(cx, key.bytes, value, expiry);
    }
    Ok(())
}

/// Writes the reply; whether the condition holds.
fn answer(cx: &mut Context<'_>, key: &Key<'_>, options: &Options<'_>) -> Result<bool, CommandError> {
    if options.answers_old {
        let (entry, reply) = cx.lookup(key);
        let value = entry.map(|entry| entry.string()).transpose()?;
        let holds = options.condition.holds(value)?;
        reply_value_or_null(reply, value);
        return Ok(holds);
    }
    let condition = options.condition;
    let holds = condition == Condition::Always
        || match cx.write(key) {
            // A value of another type is there, or not, like a string.
            Some(_) if condition == Condition::Present => true,
            Some(_) if condition == Condition::Absent => false,
            Some(entry) => condition.holds(Some(entry.view().string()?))?,
            None => condition.holds(None)?,
        };
    if holds {
        cx.reply.ok();
    } else {
        cx.reply.null();
    }
    Ok(holds)
}

/// Tells of a SET.
fn notify_set(cx: &mut Context<'_>, key: &Key<'_>, expiry: Expiry) {
    cx.notify(Class::STRING, "set", key);
    if matches!(expiry, Expiry::At(_)) {
        cx.notify(Class::GENERIC, "expire", key);
    }
}

/// Records a SET by its outcome.
pub(super) fn log_set(cx: &mut Context<'_>, key: &[u8], value: &[u8], expiry: Expiry) {
    match expiry {
        Expiry::Clear => cx.log_instead(&[b"SET", key, value]),
        Expiry::Keep => cx.log_instead(&[b"SET", key, value, b"KEEPTTL"]),
        Expiry::At(at) => cx.log_instead(&[b"SET", key, value, b"PXAT", itoa::Buffer::new().format(at).as_bytes()]),
    }
}

/// `SETEX key seconds value`.
pub fn setex(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    set_expiring(cx, args, Form::Seconds, "setex")
}

/// `PSETEX key milliseconds value`.
pub fn psetex(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    set_expiring(cx, args, Form::Milliseconds, "psetex")
}

fn set_expiring(cx: &mut Context<'_>, args: &Args<'_>, form: Form, command: &'static str) -> Result<(), CommandError> {
    let expiry = Expiry::At(Expiration { form, amount: args.at(2) }.instant(cx.now_ms, command)?);
    let (key, value) = (cx.first_key(args), args.at(3));
    cx.store(&key, Value::from_bytes(value), expiry);
    notify_set(cx, &key, expiry);
    log_set(cx, key.bytes, value, expiry);
    cx.reply.ok();
    Ok(())
}

/// `SETNX key value`: 1 if the key was set, 0 if it was there.
pub fn setnx(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let is_new = cx.write(&key).is_none();
    if is_new {
        cx.store(&key, Value::from_bytes(args.at(2)), Expiry::Clear);
        cx.notify(Class::STRING, "set", &key);
    }
    cx.reply.integer(i64::from(is_new));
    Ok(())
}
