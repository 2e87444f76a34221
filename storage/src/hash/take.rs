//! HGETEX and HGETDEL: commands that answer values and change what they read.

use super::expire::Change;
use super::expired::forget_expired;
use super::field_list::{FieldList, Form};
use super::read::reply_value;
use super::{Hash, field_clock};
use crate::context::Context;
use crate::key_hash::Key;
use simurgh_protocol::{Args, CommandError};

/// `HGETDEL key FIELDS numfields field ...`: the values, whose fields are gone afterwards; null where there is none.
pub fn hgetdel(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    cx.edit::<Hash>(&key)?;
    let fields = FieldList::at(args, 2)?;
    answer_and_change(cx, &key, &fields, Some(Change::Delete))
}

/// `HGETEX key [EX seconds | PX milliseconds | EXAT seconds | PXAT milliseconds | PERSIST] FIELDS numfields field ...`: the values, null
/// where there is none.
pub fn hgetex(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    cx.edit::<Hash>(&key)?;
    let (change, index) = if let Some(form) = Form::read(args, 2) {
        let at = form.instant(args.at(3), cx.now_ms, "hgetex")?;
        (Some(Change::to(cx, Some(at))), 4)
    } else if args.is(2, "PERSIST") {
        (Some(Change::Persist), 3)
    } else {
        (None, 2)
    };
    if index + 1 >= args.len() {
        return Err(CommandError::WrongArity("hgetex"));
    }
    let fields = FieldList::at(args, index)?;
    if let (Some(_), Some(mut hash)) = (change, cx.edit::<Hash>(&key)?) {
        hash.make_expiring();
    }
    answer_and_change(cx, &key, &fields, change)
}

/// Answers the value of each field, and makes the change to each in turn (so that a field named twice may be gone the second time).
fn answer_and_change(
    cx: &mut Context<'_>,
    key: &Key<'_>,
    fields: &FieldList<'_>,
    change: Option<Change>,
) -> Result<(), CommandError> {
    forget_expired(cx, key, fields.iter());
    let Some(mut change) = change else { return answer(cx, key, fields) };
    let mut reply = std::mem::take(cx.reply);
    let mut touched = Vec::new();
    reply.array(fields.len());
    // Its type has been seen to.
    let mut hash = cx.edit::<Hash>(key).ok().flatten();
    for field in fields.iter() {
        let row = hash.as_deref().and_then(|hash| hash.find(field));
        reply_value(&mut reply, row);
        let is_changed = row.is_some_and(|row| change != Change::Persist || row.expires_at.is_some());
        if let (true, Some(hash)) = (is_changed, &mut hash) {
            change.make(hash, field);
            touched.push(field);
        }
    }
    drop(hash);
    *cx.reply = reply;
    change.tell(cx, key, &touched);
    Ok(())
}

fn answer(cx: &mut Context<'_>, key: &Key<'_>, fields: &FieldList<'_>) -> Result<(), CommandError> {
    let now_ms = field_clock(cx);
    let (hash, reply) = cx.look::<Hash>(key)?;
    reply.array(fields.len());
    for field in fields.iter() {
        reply_value(reply, hash.as_deref().and_then(|hash| hash.get(field, now_ms)));
    }
    Ok(())
}
