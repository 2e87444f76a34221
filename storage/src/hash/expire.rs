//! HEXPIRE, HPEXPIRE, HEXPIREAT, HPEXPIREAT and HPERSIST.
//!
//! Whatever a client wrote, the log gets the outcome: `HPEXPIREAT key ms FIELDS n field ...` with the fields whose expiry was set, or `HDEL`
//! with those that are gone because the time has passed.

use super::expired::forget_expired;
use super::field_list::{FieldList, Form, record};
use super::{Hash, field_clock};
use crate::context::Context;
use crate::key_hash::Key;
use crate::notify::Class;
use simurgh_protocol::{Args, CommandError};

/// What a field is answered with: there is none.
pub(super) const NO_FIELD: i64 = -2;
/// The field has no expiry.
pub(super) const NO_EXPIRY: i64 = -1;
/// The condition does not hold.
const UNMET: i64 = 0;
/// The expiry was set or removed.
const DONE: i64 = 1;
/// The time has passed, and the field is gone.
const DELETED: i64 = 2;

/// `HEXPIRE key seconds [NX | XX | GT | LT] FIELDS numfields field ...`: what became of each field.
pub fn hexpire(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    expire(cx, args, Form::Seconds, "hexpire")
}

/// `HPEXPIRE key milliseconds [NX | XX | GT | LT] FIELDS numfields field ...`.
pub fn hpexpire(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    expire(cx, args, Form::Milliseconds, "hpexpire")
}

/// `HEXPIREAT key unix-time-seconds [NX | XX | GT | LT] FIELDS numfields field ...`.
pub fn hexpireat(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    expire(cx, args, Form::AtSeconds, "hexpireat")
}

/// `HPEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT] FIELDS numfields field ...`.
pub fn hpexpireat(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    expire(cx, args, Form::AtMilliseconds, "hpexpireat")
}

/// When a new expiry is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Always,
    Absent,
    Present,
    Later,
    Sooner,
}

impl Condition {
    fn read(args: &Args<'_>, index: usize) -> Option<Self> {
        let words = [("NX", Self::Absent), ("XX", Self::Present), ("GT", Self::Later), ("LT", Self::Sooner)];
        words.into_iter().find(|(word, _)| args.is(index, word)).map(|(_, condition)| condition)
    }

    /// Whether an expiry at `new` may replace the present one. No expiry counts as one that never comes.
    fn holds(self, present: Option<i64>, new: i64) -> bool {
        match self {
            Self::Always => true,
            Self::Absent => present.is_none(),
            Self::Present => present.is_some(),
            Self::Later => present.is_some_and(|at| new > at),
            Self::Sooner => present.is_none_or(|at| new < at),
        }
    }
}

fn expire(cx: &mut Context<'_>, args: &Args<'_>, form: Form, command: &'static str) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let is_there = cx.edit::<Hash>(&key)?.is_some();
    let at = form.instant(args.at(2), cx.now_ms, command)?;
    let condition = Condition::read(args, 3);
    let index = if condition.is_some() { 4 } else { 3 };
    let fields = FieldList::read(args, index, "ERR Parameter `numFields` should be greater than 0")?;
    let condition = condition.unwrap_or(Condition::Always);
    if !is_there {
        reply_each(cx, std::iter::repeat_n(NO_FIELD, fields.len()));
        return Ok(());
    }
    forget_expired(cx, &key, fields.iter());
    let (mut touched, mut answers) = (Vec::new(), Vec::with_capacity(fields.len()));
    let mut change = Change::to(cx, Some(at));
    if let Some(mut hash) = cx.edit::<Hash>(&key)? {
        hash.make_expiring();
        for field in fields.iter() {
            let answer = match hash.find(field) {
                None => NO_FIELD,
                Some(row) if !condition.holds(row.expires_at, at) => UNMET,
                Some(_) => change.make(&mut hash, field),
            };
            if answer > UNMET {
                touched.push(field);
            }
            answers.push(answer);
        }
    } else {
        answers.resize(fields.len(), NO_FIELD);
    }
    reply_each(cx, answers.into_iter());
    change.tell(cx, &key, &touched);
    Ok(())
}

fn reply_each(cx: &mut Context<'_>, answers: impl ExactSizeIterator<Item = i64>) {
    cx.reply.array(answers.len());
    answers.for_each(|answer| cx.reply.integer(answer));
}

/// What a command does to the expiry of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It removes it.
    Persist,
    /// It sets it.
    Expire(i64),
    /// It sets it to a time that has passed, so the fields go.
    Delete,
}

impl Change {
    /// The change to this expiry, by the time at which the command runs.
    pub fn to(cx: &Context<'_>, expires_at: Option<i64>) -> Self {
        match expires_at {
            None => Self::Persist,
            Some(at) if at <= field_clock(cx) => Self::Delete,
            Some(at) => Self::Expire(at),
        }
    }

    /// Makes it to a field that is there, and gives what HEXPIRE answers.
    pub fn make(&mut self, hash: &mut Hash, field: &[u8]) -> i64 {
        match self {
            Self::Persist => hash.set_expiry(field, None),
            Self::Expire(at) => hash.set_expiry(field, Some(*at)),
            Self::Delete => {
                hash.remove(field);
                return DELETED;
            }
        }
        DONE
    }

    /// Logs that it was made to `fields`, and tells of it.
    pub fn tell(self, cx: &mut Context<'_>, key: &Key<'_>, fields: &[&[u8]]) {
        if fields.is_empty() {
            return;
        }
        cx.changed(key);
        let (mut count, mut at_text) = (itoa::Buffer::new(), itoa::Buffer::new());
        let count = count.format(fields.len());
        match self {
            Self::Persist => {
                cx.log_instead(&record(&[b"HPERSIST", key.bytes], count, fields));
                cx.notify(Class::HASH, "hpersist", key);
            }
            Self::Expire(at) => {
                let at = at_text.format(at).as_bytes();
                cx.log_instead(&record(&[b"HPEXPIREAT", key.bytes, at], count, fields));
                cx.notify(Class::HASH, "hexpire", key);
            }
            Self::Delete => {
                cx.log_instead(&[&[b"HDEL", key.bytes][..], fields].concat());
                cx.notify(Class::HASH, "hdel", key);
                cx.notify_if_gone(key);
            }
        }
    }
}

/// `HPERSIST key FIELDS numfields field ...`: for each field 1, -1 if it had no expiry, -2 if there is none.
pub fn hpersist(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    cx.edit::<Hash>(&key)?;
    let fields = FieldList::at(args, 2)?;
    forget_expired(cx, &key, fields.iter());
    let (mut touched, mut answers) = (Vec::new(), Vec::with_capacity(fields.len()));
    let mut hash = cx.edit::<Hash>(&key)?;
    for field in fields.iter() {
        let before = hash.as_deref().and_then(|hash| hash.find(field)).map(|row| row.expires_at);
        answers.push(match before {
            None => NO_FIELD,
            Some(None) => NO_EXPIRY,
            Some(Some(_)) => DONE,
        });
        if let (Some(Some(_)), Some(hash)) = (before, &mut hash) {
            hash.set_expiry(field, None);
            touched.push(field);
        }
    }
    drop(hash);
    reply_each(cx, answers.into_iter());
    Change::Persist.tell(cx, &key, &touched);
    Ok(())
}
