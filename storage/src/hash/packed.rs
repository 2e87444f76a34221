//! Small hashes: one packed list, as Redis's own `listpack` and `listpackex`.
//!
//! ```text
//! without expiries:  [ field ][ value ] ...
//! with expiries:     [ field ][ value ][ when, 0: never ] ...   soonest first, those that never expire last
//! ```
//!
//! In the second form the first row tells when the next field expires, and what is due is a prefix. A row that gets an expiry goes
//! before those of the same moment, one that loses it goes to the end; clients see that order in HGETALL.

use super::{Row, expiry_after};
use crate::context::Expiry;
use crate::listpack::{Item, Listpack};

/// Items of a row without an expiry.
pub(super) const PAIR: usize = 2;
/// Items of a row with one.
pub(super) const TRIPLE: usize = 3;

/// The rows of a packed list, `stride` items each.
pub(super) struct Rows<'a> {
    items: crate::listpack::Iter<'a>,
    stride: usize,
}

/// All rows, in order.
pub(super) fn rows(list: &Listpack, stride: usize) -> Rows<'_> {
    Rows { items: list.iter(), stride }
}

impl<'a> Iterator for Rows<'a> {
    type Item = Row<'a>;

    fn next(&mut self) -> Option<Row<'a>> {
        let (field, value) = (self.items.next()?, self.items.next()?);
        let expires_at = if self.stride == TRIPLE { expiry_of(self.items.next()?) } else { None };
        Some(Row { field, value, expires_at })
    }
}

/// An expiry as it is kept in a row.
fn expiry_of(item: Item<'_>) -> Option<i64> {
    item.to_i64().filter(|at| *at != 0)
}

/// Number of rows.
pub(super) fn len(list: &Listpack, stride: usize) -> usize {
    list.len() / stride
}

/// The row at a position.
fn row_at(list: &Listpack, at: usize, stride: usize) -> Option<Row<'_>> {
    Rows { items: list.iter_from(at), stride }.next()
}

/// The row of a field.
pub(super) fn find<'a>(list: &'a Listpack, field: &[u8], stride: usize) -> Option<Row<'a>> {
    row_at(list, list.find(field, stride)?, stride)
}

/// The row with this number.
pub(super) fn nth(list: &Listpack, rank: usize, stride: usize) -> Option<Row<'_>> {
    let index = isize::try_from(rank * stride).ok()?;
    row_at(list, list.seek(index)?, stride)
}

/// Sets a field; whether it is new. In the form without expiries, `expiry` must not bring one.
pub(super) fn set(list: &mut Listpack, field: &[u8], value: Item<'_>, expiry: Expiry, stride: usize) -> bool {
    let Some(at) = list.find(field, stride) else {
        insert(list, Item::from(field), value, expiry_after(expiry, None), stride);
        return true;
    };
    let before = row_at(list, at, stride).and_then(|row| row.expires_at);
    if expiry_after(expiry, before) == before && (before.is_none() || expiry == Expiry::Keep) {
        let value_at = list.next(at).expect("a value follows each field");
        list.replace(value_at, value);
    } else {
        list.remove_run(at, stride);
        insert(list, Item::from(field), value, expiry_after(expiry, before), stride);
    }
    false
}

/// Gives a field that is there another expiry, or none.
pub(super) fn set_expiry(list: &mut Listpack, field: &[u8], expires_at: Option<i64>) {
    let Some(at) = list.find(field, TRIPLE) else { return };
    let Some(value) = row_at(list, at, TRIPLE).map(|row| row.value.to_vec()) else { return };
    list.remove_run(at, TRIPLE);
    insert(list, Item::from(field), Item::from(&value), expires_at, TRIPLE);
}

/// Puts a new row where it belongs.
fn insert(list: &mut Listpack, field: Item<'_>, value: Item<'_>, expires_at: Option<i64>, stride: usize) {
    let at = expires_at.map_or(list.end(), |at| place(list, at));
    let row = [field, value, Item::Int(expires_at.unwrap_or(0))];
    list.splice(at, 0, &row[..stride]);
}

/// Before the first row that does not expire sooner.
fn place(list: &Listpack, expires_at: i64) -> usize {
    let mut rows = rows(list, TRIPLE);
    loop {
        let at = rows.items.position();
        if rows.next().is_none_or(|row| row.expires_at.is_none_or(|other| other >= expires_at)) {
            return at;
        }
    }
}

/// Removes a field; whether it was there.
pub(super) fn remove(list: &mut Listpack, field: &[u8], stride: usize) -> bool {
    let found = list.find(field, stride);
    if let Some(at) = found {
        list.remove_run(at, stride);
    }
    found.is_some()
}

/// The same rows, with room for expiries.
pub(super) fn with_expiries(list: &Listpack) -> Listpack {
    let items: Vec<Item<'_>> = rows(list, PAIR).flat_map(|row| [row.field, row.value, Item::Int(0)]).collect();
    Listpack::of(&items)
}
