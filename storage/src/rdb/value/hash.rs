//! Hashes, with and without fields that expire.
//!
//! Redis keeps the soonest expiry in front and each field's beyond it; Valkey keeps each field's as it is.

use super::{Loading, kind, read_listpack, read_ziplist};
use crate::context::Expiry;
use crate::hash::{Hash, Limits, Row};
use crate::listpack::Listpack;
use crate::member::{Field, FieldRef};
use crate::rdb::cursor::{Cursor, Fault};
use crate::rdb::length::{read_length, write_length};
use crate::rdb::string::{Sink, read_string};
use crate::rdb::zipmap::Zipmap;
use crate::snapshot::{Form, Saved};

/// Valkey's expiry of a field that has none.
const NEVER: i64 = -1;

struct Builder<'a> {
    hash: Hash,
    limits: Limits<'a>,
}

impl Builder<'_> {
    fn add(&mut self, field: &[u8], value: &[u8], expires_at: Option<i64>) -> Result<(), Fault> {
        let expiry = expires_at.map_or(Expiry::Clear, Expiry::At);
        if self.hash.set(field, value, expiry, &self.limits) { Ok(()) } else { Err(Fault::Repeated) }
    }

    /// Rows of `stride` items: field, value and, if there is a third, the expiry.
    fn add_rows(&mut self, list: &Listpack, stride: usize) -> Result<(), Fault> {
        let mut items = list.iter();
        while let Some(field) = items.next() {
            let value = items.next().ok_or(Fault::Packed)?;
            let expires_at = match stride {
                3 => items
                    .next()
                    .and_then(|item| item.to_i64())
                    .ok_or(Fault::Packed)
                    .map(|at| (at != 0).then_some(at))?,
                _ => None,
            };
            field.with_text(|field| value.with_text(|value| self.add(field, value, expires_at)))?;
        }
        Ok(())
    }
}

pub(super) fn read(kind: u8, cursor: &mut Cursor<'_>, loading: &Loading<'_>) -> Result<Hash, Fault> {
    let mut builder = Builder { hash: Hash::default(), limits: Limits::new(loading.packing, loading.hasher) };
    match kind {
        kind::HASH_LISTPACK => builder.add_rows(&read_listpack(cursor, loading)?, 2)?,
        kind::HASH_ZIPLIST => builder.add_rows(&read_ziplist(cursor, loading)?, 2)?,
        kind::HASH_LISTPACK_EX => {
            cursor.array::<8>()?;
            builder.add_rows(&read_listpack(cursor, loading)?, 3)?;
        }
        kind::HASH_ZIPMAP => {
            let bytes = read_string(cursor, loading.string_bytes_max)?;
            for (field, value) in Zipmap::read(&bytes)?.iter() {
                builder.add(field, value, None)?;
            }
        }
        _ => read_fields(kind, cursor, loading, &mut builder)?,
    }
    Ok(builder.hash)
}

/// Fields one by one, with an expiry behind each (Valkey), or before it (Redis), or none.
fn read_fields(
    kind: u8,
    cursor: &mut Cursor<'_>,
    loading: &Loading<'_>,
    builder: &mut Builder<'_>,
) -> Result<(), Fault> {
    let soonest = if kind == kind::HASH_METADATA { i64::from_le_bytes(cursor.array()?) } else { 0 };
    for _ in 0..read_length(cursor)? {
        // Beyond the soonest, from one on; zero is none.
        let beyond = if kind == kind::HASH_METADATA { read_length(cursor)? } else { 0 };
        let field = read_string(cursor, loading.string_bytes_max)?;
        let value = read_string(cursor, loading.string_bytes_max)?;
        let expires_at = match kind {
            kind::HASH_2 => Some(i64::from_le_bytes(cursor.array()?)).filter(|at| *at != NEVER),
            _ if beyond > 0 => {
                let beyond = i64::try_from(beyond - 1).map_err(|_| Fault::Length)?;
                Some(soonest.checked_add(beyond).ok_or(Fault::Length)?)
            }
            _ => None,
        };
        builder.add(&field, &value, expires_at)?;
    }
    Ok(())
}

pub(super) fn kind_of(hash: &Hash) -> u8 {
    match hash.as_packed() {
        Some((list, _)) if !list.is_portable() => of_rows(hash),
        Some((_, false)) => kind::HASH_LISTPACK,
        // One whose expiries have all gone is an ordinary hash to others.
        Some((_, true)) if hash.next_field_expiry().is_some() => kind::HASH_LISTPACK_EX,
        Some((_, true)) | None => of_rows(hash),
    }
}

fn of_rows(hash: &Hash) -> u8 {
    if hash.next_field_expiry().is_some() { kind::HASH_METADATA } else { kind::HASH }
}

pub(super) fn write(out: &mut Sink<'_>, hash: &Hash) {
    let soonest = hash.next_field_expiry();
    let kind = kind_of(hash);
    match hash.as_packed() {
        Some((list, _)) if kind == kind::HASH_LISTPACK || kind == kind::HASH_LISTPACK_EX => {
            if kind == kind::HASH_LISTPACK_EX {
                out.extend_from_slice(&soonest.unwrap_or(0).to_le_bytes());
            }
            out.string(list.as_bytes());
        }
        Some(_) | None => {
            write_front(out, hash);
            hash.each_row(|row| write_row(out, row, soonest));
        }
    }
}

/// What stands before the rows of a hash that is written row by row.
pub(super) fn write_front(out: &mut Vec<u8>, hash: &Hash) {
    if let Some(soonest) = hash.next_field_expiry() {
        out.extend_from_slice(&soonest.to_le_bytes());
    }
    write_length(out, hash.len() as u64);
}

impl Saved for Field {
    const COMMAND: &'static [u8] = b"HSET";

    fn save(field: FieldRef<'_>, form: &Form, out: &mut Sink<'_>) {
        write_row(out, Row::from(field), form.soonest);
    }

    fn words(field: FieldRef<'_>, with: &mut dyn FnMut(&[u8])) {
        with(field.field());
        with(field.value());
    }

    fn expires_at(field: FieldRef<'_>) -> Option<i64> {
        field.expires_at()
    }
}

/// In the form with expiries if there is a soonest one.
fn write_row(out: &mut Sink<'_>, row: Row<'_>, soonest: Option<i64>) {
    if let Some(soonest) = soonest {
        let beyond = row.expires_at.map_or(0, |at| at.saturating_sub(soonest).saturating_add(1));
        write_length(out, u64::try_from(beyond).unwrap_or(0));
    }
    row.field.with_text(|field| out.string(field));
    row.value.with_text(|value| out.string(value));
}
