//! PFADD, PFCOUNT, PFMERGE.

use super::sketch::{Draft, Encoding, Sketch, add_dense, count, set_cache};
use super::{REGISTERS, place};
use crate::context::{Context, Expiry};
use crate::entry;
use crate::key_hash::Key;
use crate::notify::Class;
use crate::string_value::Value;
use simurgh_protocol::{Args, CommandError};

const CHANGED: &str = "pfadd";

/// `hll-sparse-max-bytes`.
pub(super) fn longest(cx: &Context<'_>) -> usize {
    usize::try_from(cx.settings.packing.hyperloglog_sparse_bytes).unwrap_or(usize::MAX)
}

/// Stores a sketch in place of the one that was there, and tells of it.
fn store(cx: &mut Context<'_>, key: &Key<'_>, bytes: &[u8]) {
    cx.store_as(key, Value::Bytes(bytes), entry::Encoding::Raw, Expiry::Keep);
    cx.notify(Class::STRING, CHANGED, key);
}

/// `PFADD key [element ...]`: 1 if the estimate may have changed or the key was created, else 0. Where one element finds the
/// sketch corrupt, none is added.
pub fn pfadd(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (key, longest) = (cx.first_key(args), longest(cx));
    let (mut draft, exists) = match cx.write(&key) {
        Some(mut entry) => {
            let sketch = Sketch::of(entry.view().string()?)?;
            if sketch.encoding() == Encoding::Dense {
                let raised = entry.edit_value(0, |bytes| add_dense(bytes, args.from(2)));
                if raised {
                    cx.changed(&key);
                    cx.notify(Class::STRING, CHANGED, &key);
                }
                cx.reply.integer(i64::from(raised));
                return Ok(());
            }
            (Draft::copy(sketch, longest), true)
        }
        None => (Draft::empty(longest), false),
    };
    let mut raised = false;
    for element in args.from(2) {
        let (index, value) = place(element);
        raised |= draft.raise(index, value)?;
    }
    let changed = raised || !exists;
    if changed {
        store(cx, &key, &draft.finish(true));
    }
    cx.reply.integer(i64::from(changed));
    Ok(())
}

/// `PFCOUNT key [key ...]`: the estimate, of several keys that of their union. Of one key it is kept in the key.
pub fn pfcount(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    if args.len() > 2 {
        let mut all = Box::new([0; REGISTERS]);
        for bytes in args.from(1) {
            join(cx, &cx.key(bytes), &mut all)?;
        }
        reply_count(cx, count(&all));
        return Ok(());
    }
    let key = cx.first_key(args);
    let Some(entry) = cx.read(&key) else {
        cx.reply.integer(0);
        return Ok(());
    };
    let sketch = Sketch::of(entry.string()?)?;
    if let Some(count) = sketch.cached() {
        reply_count(cx, count);
        return Ok(());
    }
    let count = sketch.count()?;
    let mut entry = cx.database_of(&key).occupied(&key).expect("it was read just now");
    entry.edit_value(0, |bytes| set_cache(bytes, count));
    cx.changed(&key);
    reply_count(cx, count);
    Ok(())
}

/// A cached count is whatever somebody has written there.
fn reply_count(cx: &mut Context<'_>, count: u64) {
    cx.reply.integer(count as i64);
}

/// Raises registers to those of a key, if it is there; how its registers are stored.
fn join(cx: &mut Context<'_>, key: &Key<'_>, all: &mut [u8; REGISTERS]) -> Result<Option<Encoding>, CommandError> {
    let Some(entry) = cx.read(key) else { return Ok(None) };
    let sketch = Sketch::of(entry.string()?)?;
    let registers = sketch.registers()?;
    all.iter_mut().zip(&*registers).for_each(|(all, register)| *all = (*all).max(*register));
    Ok(Some(sketch.encoding()))
}

/// `PFMERGE destkey [sourcekey ...]`: the union of all of them, `destkey` included.
pub fn pfmerge(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (target, longest) = (cx.first_key(args), longest(cx));
    let mut all = Box::new([0; REGISTERS]);
    let mut dense = false;
    for bytes in args.from(1) {
        dense |= join(cx, &cx.key(bytes), &mut all)? == Some(Encoding::Dense);
    }
    let mut draft = match cx.peek(&target) {
        Some(entry) => Draft::copy(Sketch::of(entry.string()?)?, longest),
        None => Draft::empty(longest),
    };
    if dense {
        draft.make_dense()?;
    }
    for (index, value) in all.iter().enumerate().filter(|(_, value)| **value > 0) {
        draft.raise(index, *value)?;
    }
    store(cx, &target, &draft.finish(true));
    cx.reply.ok();
    Ok(())
}
