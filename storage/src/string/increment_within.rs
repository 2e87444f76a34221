//! INCREX: a number is added to within bounds, and the key's expiry changes in the same step (a rate limiter in one command).
//!
//! Its record is the outcome: a SET or a DEL. Commands: <https://redis.io/docs/latest/commands/increx/>.

use super::expiration::Expiration;
use super::increment::as_integer;
use super::set::log_set;
use crate::context::{Context, Expiry};
use crate::entry::Encoding;
use crate::key_hash::Key;
use crate::notify::Class;
use crate::string_value::Value;
use simurgh_protocol::long_double::LongDouble;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::resp::Protocol;
use simurgh_protocol::{Args, CommandError, Reply};
use std::cmp::Ordering;

/// A number of the kind that the increment has.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Integer(i64),
    Float(LongDouble),
}

impl Number {
    /// The smallest and the largest number of the same kind.
    fn limits(self) -> (Self, Self) {
        match self {
            Self::Integer(_) => (Self::Integer(i64::MIN), Self::Integer(i64::MAX)),
            Self::Float(_) => (Self::Float(-LongDouble::LARGEST), Self::Float(LongDouble::LARGEST)),
        }
    }

    /// Nothing, of the same kind.
    fn zero(self) -> Self {
        match self {
            Self::Integer(_) => Self::Integer(0),
            Self::Float(_) => Self::Float(LongDouble::ZERO),
        }
    }

    /// The bound `name` that was typed, as a number of the same kind.
    fn bound(self, text: &[u8], name: BoundName) -> Result<Self, CommandError> {
        match self {
            Self::Integer(_) => {
                parse_i64(text).map(Self::Integer).ok_or(CommandError::ArgumentNotAnInteger(name.text()))
            }
            Self::Float(_) => LongDouble::parse(text).map(Self::Float).ok_or(CommandError::Text(name.not_a_float())),
        }
    }

    /// A stored value as a number of the same kind.
    fn stored(self, value: Value<'_>) -> Result<Self, CommandError> {
        match self {
            Self::Integer(_) => as_integer(value).map(Self::Integer),
            Self::Float(_) => {
                let number = value.with_text(LongDouble::parse).ok_or(CommandError::NotAFloat)?;
                if !number.is_finite() {
                    return Err(CommandError::Text("ERR value cannot be Infinity"));
                }
                Ok(Self::Float(number))
            }
        }
    }

    fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Integer(one), Self::Integer(other)) => one.cmp(&other),
            (Self::Float(one), Self::Float(other)) => one.cmp(&other),
            (Self::Integer(_), Self::Float(_)) | (Self::Float(_), Self::Integer(_)) => {
                unreachable!("all numbers of one command are of one kind")
            }
        }
    }

    fn reply(self, reply: &mut Reply) {
        match self {
            Self::Integer(number) => reply.integer(number),
            Self::Float(number) => reply_float(reply, &number.format()),
        }
    }
}

/// A float's text: a double in RESP3, where the protocol's own writer would round it to 64 bits.
fn reply_float(reply: &mut Reply, text: &str) {
    match reply.protocol() {
        Protocol::Resp2 => reply.bulk(text.as_bytes()),
        Protocol::Resp3 => {
            let out = reply.buffer();
            out.push(b',');
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BoundName {
    Lower,
    Upper,
}

impl BoundName {
    fn text(self) -> &'static str {
        match self {
            Self::Lower => "LBOUND",
            Self::Upper => "UBOUND",
        }
    }

    fn not_a_float(self) -> &'static str {
        match self {
            Self::Lower => "ERR LBOUND is not a valid float",
            Self::Upper => "ERR UBOUND is not a valid float",
        }
    }
}

/// What INCREX does to the expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change<'a> {
    Persist,
    Set(Expiration<'a>),
}

/// The options as they were typed; each may be given once.
#[derive(Debug, Default)]
struct Typed<'a> {
    increment: Option<Number>,
    lower: Option<&'a [u8]>,
    upper: Option<&'a [u8]>,
    saturates: Option<()>,
    change: Option<Change<'a>>,
    only_without_expiry: Option<()>,
}

/// Sets an option that was not given yet.
fn once<T>(option: &mut Option<T>, value: T) -> Result<(), CommandError> {
    match option.replace(value) {
        None => Ok(()),
        Some(_) => Err(CommandError::Syntax),
    }
}

impl<'a> Typed<'a> {
    fn read(args: &Args<'a>) -> Result<Self, CommandError> {
        let (mut typed, mut index) = (Self::default(), 2);
        while index < args.len() {
            index += typed.read_one(args, index)?;
            // Told at once, before a wrong number further on.
            if typed.change == Some(Change::Persist) && typed.only_without_expiry.is_some() {
                return Err(CommandError::Syntax);
            }
        }
        Ok(typed)
    }

    /// Reads the option at `index`: how many arguments it takes.
    fn read_one(&mut self, args: &Args<'a>, index: usize) -> Result<usize, CommandError> {
        if args.is(index, "SATURATE") {
            return once(&mut self.saturates, ()).map(|()| 1);
        }
        if args.is(index, "ENX") {
            return once(&mut self.only_without_expiry, ()).map(|()| 1);
        }
        if args.is(index, "PERSIST") {
            return once(&mut self.change, Change::Persist).map(|()| 1);
        }
        let operand = args.get(index + 1).ok_or(CommandError::Syntax)?;
        if args.is(index, "LBOUND") {
            once(&mut self.lower, operand)?;
        } else if args.is(index, "UBOUND") {
            once(&mut self.upper, operand)?;
        } else if args.is(index, "BYINT") || args.is(index, "BYFLOAT") {
            if self.increment.is_some() {
                return Err(CommandError::Syntax);
            }
            let is_float = args.is(index, "BYFLOAT");
            self.increment = Some(if is_float { increment_float(operand)? } else { increment_integer(operand)? });
        } else {
            let expiration = Expiration::read(args, index).ok_or(CommandError::Syntax)?;
            once(&mut self.change, Change::Set(expiration))?;
        }
        Ok(2)
    }
}

fn increment_integer(text: &[u8]) -> Result<Number, CommandError> {
    parse_i64(text).map(Number::Integer).ok_or(CommandError::ArgumentNotAnInteger("Increment"))
}

fn increment_float(text: &[u8]) -> Result<Number, CommandError> {
    let number = LongDouble::parse(text).ok_or(CommandError::Text("ERR Increment is not a valid float"))?;
    if !number.is_finite() {
        return Err(CommandError::Text("ERR BYFLOAT increment cannot be Infinity"));
    }
    Ok(Number::Float(number))
}

/// What is to be added, and within which bounds.
#[derive(Clone, Copy, Debug)]
struct Step {
    increment: Number,
    lower: Number,
    upper: Number,
    saturates: bool,
}

impl Step {
    fn new(typed: &Typed<'_>) -> Result<Self, CommandError> {
        let increment = typed.increment.unwrap_or(Number::Integer(1));
        let (mut lower, mut upper) = increment.limits();
        if let Some(text) = typed.lower {
            lower = increment.bound(text, BoundName::Lower)?;
        }
        if let Some(text) = typed.upper {
            upper = increment.bound(text, BoundName::Upper)?;
        }
        if lower.compare(upper).is_gt() {
            return Err(CommandError::Text("ERR LBOUND can't be greater than UBOUND"));
        }
        Ok(Self { increment, lower, upper, saturates: typed.saturates.is_some() })
    }

    /// The number afterwards and what was really added; none if the bounds forbid the step.
    fn apply(&self, before: Number) -> Result<Option<(Number, Number)>, CommandError> {
        let Some(after) = self.sum_within(before) else { return Ok(None) };
        let added = match (before, after) {
            (Number::Integer(before), Number::Integer(after)) => {
                let added = after.checked_sub(before);
                Number::Integer(added.ok_or(CommandError::Text("ERR applied increment would overflow"))?)
            }
            (Number::Float(before), Number::Float(after)) => {
                let added = after.checked_add(-before).filter(|added| added.is_finite());
                Number::Float(added.ok_or(CommandError::Text("ERR applied increment would be Infinity"))?)
            }
            (Number::Integer(_), Number::Float(_)) | (Number::Float(_), Number::Integer(_)) => return Ok(None),
        };
        Ok(Some((after, added)))
    }

    /// The sum, or the bound that it would pass.
    fn sum_within(&self, before: Number) -> Option<Number> {
        let (sum, overflows) = match (before, self.increment) {
            (Number::Integer(before), Number::Integer(increment)) => {
                let sum = before.saturating_add(increment);
                (Number::Integer(sum), before.checked_add(increment).is_none())
            }
            (Number::Float(before), Number::Float(increment)) => {
                let sum = before.checked_add(increment)?;
                (Number::Float(sum), !sum.is_finite())
            }
            (Number::Integer(_), Number::Float(_)) | (Number::Float(_), Number::Integer(_)) => return None,
        };
        let (is_low, is_high) = (sum.compare(self.lower).is_lt(), sum.compare(self.upper).is_gt());
        match (is_low, is_high) {
            (false, false) if !overflows => Some(sum),
            _ if !self.saturates => None,
            (true, _) => Some(self.lower),
            (_, true) => Some(self.upper),
            // An integer is at its type's limit already; a float is infinite, as its bound is, which `apply` refuses.
            (false, false) => Some(sum),
        }
    }
}

/// `INCREX key [BYINT increment | BYFLOAT increment] [LBOUND bound] [UBOUND bound] [SATURATE] [EX seconds | PX milliseconds |
/// EXAT seconds | PXAT milliseconds | PERSIST] [ENX]`: the number afterwards, and what was really added.
pub fn increx(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let typed = Typed::read(args)?;
    let step = Step::new(&typed)?;
    let expiry = match typed.change {
        None if typed.only_without_expiry.is_some() => {
            return Err(CommandError::Text("ERR ENX flag requires an expiration"));
        }
        None => Expiry::Keep,
        Some(Change::Persist) => Expiry::Clear,
        Some(Change::Set(expiration)) => Expiry::At(expiration.instant(cx.now_ms, "increx")?),
    };
    let key = cx.first_key(args);
    let (before, expires) = match cx.write(&key) {
        Some(entry) => (step.increment.stored(entry.view().string()?)?, entry.view().expires_at().is_some()),
        None => (step.increment.zero(), false),
    };
    let outcome = step.apply(before)?;
    if let Some((after, _)) = outcome {
        let keeps = expires && typed.only_without_expiry.is_some();
        let expiry = if keeps { Expiry::Keep } else { expiry };
        store(cx, &key, after, expiry);
        match expiry {
            Expiry::At(at) if at > cx.now_ms => cx.notify(Class::GENERIC, "expire", &key),
            Expiry::Clear if expires => cx.notify(Class::GENERIC, "persist", &key),
            Expiry::At(_) | Expiry::Clear | Expiry::Keep => {}
        }
    }
    let (after, added) = outcome.unwrap_or((before, before.zero()));
    cx.reply.array(2);
    after.reply(cx.reply);
    added.reply(cx.reply);
    Ok(())
}

/// Stores and records the number; with an expiry in the past, the key's end.
fn store(cx: &mut Context<'_>, key: &Key<'_>, number: Number, expiry: Expiry) {
    if matches!(expiry, Expiry::At(at) if at <= cx.now_ms) {
        if cx.remove(key) {
            cx.log_instead(&[b"DEL", key.bytes]);
            cx.notify(Class::GENERIC, "del", key);
        }
        return;
    }
    match number {
        Number::Integer(number) => {
            cx.store_update(key, Value::Int(number), Encoding::Int, expiry);
            cx.notify(Class::STRING, "incrby", key);
            log_set(cx, key.bytes, itoa::Buffer::new().format(number).as_bytes(), expiry);
        }
        Number::Float(number) => {
            let text = number.format();
            let value = Value::Bytes(text.as_bytes());
            cx.store_update(key, value, value.encoding(), expiry);
            cx.notify(Class::STRING, "incrbyfloat", key);
            log_set(cx, key.bytes, text.as_bytes(), expiry);
        }
    }
}
