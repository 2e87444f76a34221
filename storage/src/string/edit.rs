//! APPEND and SETRANGE: commands that change a string where it lies.

use super::{checked_length, longest};
use crate::context::{Context, Expiry};
use crate::entry::Encoding;
use crate::key_hash::Key;
use crate::notify::Class;
use crate::occupied::Occupied;
use crate::string_value::Value;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};

/// Turns an integer into its text, so that its bytes can be changed.
fn make_editable(entry: &mut Occupied<'_>) {
    if let Ok(Value::Int(number)) = entry.view().string() {
        entry.set_value(Value::Bytes(itoa::Buffer::new().format(number).as_bytes()), Encoding::Raw);
    }
}

/// Gives `with` the bytes of a string to change in place, grown to at least `length` with zeros behind; a key that is not there
/// is created. `with` says beside its result whether it changed anything; growing is a change too. A change is noted, and told
/// of as `event`.
pub(crate) fn edit_bytes<R>(
    cx: &mut Context<'_>,
    key: &Key<'_>,
    length: usize,
    event: &'static str,
    with: impl FnOnce(&mut [u8]) -> (R, bool),
) -> Result<R, CommandError> {
    let Some(mut entry) = cx.write(key) else {
        cx.store_as(key, Value::Bytes(b""), Encoding::Raw, Expiry::Clear);
        let mut entry = cx.database_of(key).occupied(key).expect("it was stored just now");
        let (result, _) = entry.edit_value(length, with);
        cx.notify(Class::STRING, event, key);
        return Ok(result);
    };
    make_editable(&mut entry);
    let grows = length > entry.view().string()?.text_length();
    let (result, changed) = entry.edit_value(length, with);
    if grows || changed {
        cx.changed(key);
        cx.notify(Class::STRING, event, key);
    }
    Ok(result)
}

/// Writes `bytes` at `offset`, with zeros between the end and there.
fn overwrite(entry: &mut Occupied<'_>, offset: usize, bytes: &[u8]) -> usize {
    make_editable(entry);
    entry.edit_value(offset + bytes.len(), |value| {
        value[offset..offset + bytes.len()].copy_from_slice(bytes);
        value.len()
    })
}

/// `APPEND key value`: the new length.
pub fn append(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (key, bytes, longest) = (cx.first_key(args), args.at(2), longest(cx));
    let Some(mut entry) = cx.write(&key) else {
        cx.store(&key, Value::from_bytes(bytes), Expiry::Clear);
        cx.notify(Class::STRING, "append", &key);
        cx.reply.count(bytes.len());
        return Ok(());
    };
    let old = entry.view().string()?.text_length();
    checked_length(old, bytes.len(), longest)?;
    let length = overwrite(&mut entry, old, bytes);
    cx.changed(&key);
    cx.notify(Class::STRING, "append", &key);
    cx.reply.count(length);
    Ok(())
}

/// `SETRANGE key offset value`: the length afterwards. An empty value changes nothing and creates nothing.
pub fn setrange(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (key, bytes) = (cx.first_key(args), args.at(3));
    let offset = parse_i64(args.at(2)).ok_or(CommandError::NotAnInteger)?;
    let offset = usize::try_from(offset).map_err(|_| CommandError::OffsetOutOfRange)?;
    let longest = longest(cx);
    let old = cx.write(&key);
    if bytes.is_empty() {
        let length = old.map_or(Ok(0), |entry| entry.view().string().map(|value| value.text_length()))?;
        cx.reply.count(length);
        return Ok(());
    }
    if let Some(entry) = &old {
        entry.view().string()?;
    }
    checked_length(offset, bytes.len(), longest)?;
    let length = match old {
        Some(mut entry) => {
            let length = overwrite(&mut entry, offset, bytes);
            cx.changed(&key);
            length
        }
        None => {
            cx.store_as(&key, Value::Bytes(b""), Encoding::Raw, Expiry::Clear);
            let mut entry = cx.database_of(&key).occupied(&key).expect("it was stored just now");
            overwrite(&mut entry, offset, bytes)
        }
    };
    cx.notify(Class::STRING, "setrange", &key);
    cx.reply.count(length);
    Ok(())
}
