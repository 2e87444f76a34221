//! Large hashes: a hash table of fields, and an index of those that expire.
//!
//! The index holds `(when, hash of the field)` in order of time, as that of the keyspace does, so that what is due is found by time.
//! Fields without an expiry have no part in it.

use super::{Row, expiry_after};
use crate::context::Expiry;
use crate::dict::Dict;
use crate::key_hash::KeyHasher;
use crate::listpack::Item;
use crate::member::{Field, FieldRef};
use crate::snapshot::{Large, Record};
use std::collections::BTreeSet;

/// What an expiry costs in the index: two words, and the share of a B-tree's slack.
const INDEX_BYTES: usize = 24;

/// A large hash.
#[derive(Clone, Debug)]
pub(super) struct Table {
    fields: Dict<Field>,
    expiries: BTreeSet<(i64, u64)>,
}

impl<'a> From<FieldRef<'a>> for Row<'a> {
    fn from(field: FieldRef<'a>) -> Self {
        Self { field: Item::Bytes(field.field()), value: Item::Bytes(field.value()), expires_at: field.expires_at() }
    }
}

impl Table {
    /// An empty one.
    pub fn new(hasher: &KeyHasher) -> Self {
        Self { fields: Dict::new(hasher), expiries: BTreeSet::new() }
    }

    /// One of these rows, whose fields differ.
    pub fn of<'a>(rows: impl Iterator<Item = Row<'a>>, hasher: &KeyHasher) -> Self {
        let mut table = Self::new(hasher);
        for row in rows {
            row.field.with_text(|field| {
                row.value.with_text(|value| table.set(field, value, row.expires_at.map_or(Expiry::Clear, Expiry::At)));
            });
        }
        table
    }

    pub fn len(&self) -> usize {
        self.fields.len()
    }

    pub fn bytes(&self) -> usize {
        crate::size_class(size_of::<Self>()) - size_of::<Dict<Field>>()
            + self.fields.bytes()
            + self.expiries.len() * INDEX_BYTES
    }

    /// When the next field expires.
    pub fn next_expiry(&self) -> Option<i64> {
        self.expiries.first().map(|(at, _)| *at)
    }

    pub fn find(&self, field: &[u8]) -> Option<Row<'_>> {
        self.fields.get(field).map(Row::from)
    }

    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        self.fields.iter().map(Row::from)
    }

    pub fn random(&self, random: &mut crate::Random) -> Option<Row<'_>> {
        self.fields.random(random).map(Row::from)
    }

    pub fn scan(&self, cursor: u64, mut with: impl FnMut(Row<'_>)) -> u64 {
        self.fields.scan(cursor, |field| with(Row::from(field)))
    }

    /// Sets a field; whether it is new.
    pub fn set(&mut self, field: &[u8], value: &[u8], expiry: Expiry) -> bool {
        let change = self.fields.change(field, |old| {
            let before = old.view().expires_at();
            let after = expiry_after(expiry, before);
            old.replace(value, after);
            (before, after)
        });
        if let Some((before, after)) = change {
            self.index(field, before, after);
            return false;
        }
        let after = expiry_after(expiry, None);
        self.fields.insert(Field::new(field, value, after));
        self.index(field, None, after);
        true
    }

    /// Gives a field that is there another expiry, or none.
    pub fn set_expiry(&mut self, field: &[u8], expires_at: Option<i64>) {
        let before = self.fields.change(field, |old| {
            let before = old.view().expires_at();
            old.set_expiry(expires_at);
            before
        });
        if let Some(before) = before {
            self.index(field, before, expires_at);
        }
    }

    /// Removes a field; whether it was there.
    pub fn remove(&mut self, field: &[u8]) -> bool {
        let Some(element) = self.fields.remove(field) else { return false };
        self.index(field, element.view().expires_at(), None);
        true
    }

    /// Moves a field in the index of expiries.
    fn index(&mut self, field: &[u8], before: Option<i64>, after: Option<i64>) {
        if before == after {
            return;
        }
        let hash = self.fields.hash(field);
        if let Some(at) = before {
            self.expiries.remove(&(at, hash));
        }
        if let Some(at) = after {
            self.expiries.insert((at, hash));
        }
    }

    /// A snapshot begins with it.
    pub fn owe(&mut self, mut record: Record) {
        record.form.soonest = self.next_expiry();
        self.fields.owe(record);
    }

    /// Its fields, if a snapshot has begun with them and not come to their end.
    pub fn owing(&mut self) -> Option<&mut dyn Large> {
        self.fields.owing()
    }

    /// The field that expires first, if its time has come. (Two that share hash and moment share their place in the index.)
    pub fn due(&self, now_ms: i64) -> Option<Vec<u8>> {
        let (at, hash) = *self.expiries.first()?;
        if at > now_ms {
            return None;
        }
        let mut found = None;
        self.fields.with_hash(hash, |field| {
            if field.expires_at() == Some(at) {
                found = Some(field.field().to_vec());
            }
        });
        found
    }
}
