//! An entry that is there, to be read, changed or removed: every way in which a key's entry changes keeps the database's counts of
//! memory, keys and expiries true.

use crate::collection::Collection;
use crate::database::{Database, GROUP};
use crate::entry::{Encoding, Entry, EntryRef};
use crate::key_sizes::bin_of;
use crate::slot_table::Place;
use crate::string_value::Value;

/// An entry that is there, to be read, changed or removed.
pub struct Occupied<'a> {
    pub(crate) database: &'a mut Database,
    pub(crate) slot: usize,
    pub(crate) place: Place,
    pub(crate) hash: u64,
}

impl<'a> Occupied<'a> {
    /// The entry.
    #[must_use]
    #[inline]
    pub fn view(&self) -> EntryRef<'_> {
        self.database.tables[self.slot].view(self.place)
    }

    /// The entry is about to be another: a snapshot that has not seen it takes what it is now.
    #[inline]
    fn hand_over(&mut self) {
        if self.database.cut.is_some() {
            self.database.hand_over(self.slot, self.place);
        }
    }

    fn change<R>(&mut self, with: impl FnOnce(&mut Entry) -> R) -> R {
        self.hand_over();
        self.exchange(with)
    }

    /// Changes the entry, or takes a part of it out that will be put back as it was.
    fn exchange<R>(&mut self, with: impl FnOnce(&mut Entry) -> R) -> R {
        let (before, bin_before) = (self.view().memory(), bin_of(self.view()));
        let result = self.database.tables[self.slot].change(self.place, with);
        let (after, bin_after) = (self.view().memory(), bin_of(self.view()));
        self.database.bytes = self.database.bytes + after - before;
        self.database.recount(bin_before, bin_after);
        result
    }

    /// Replaces the value; expiry and access field stay.
    #[inline]
    pub fn set_value(&mut self, value: Value<'_>, encoding: Encoding) {
        self.change(|entry| entry.set_value(value, encoding));
    }

    /// Replaces value and expiry; the access field stays.
    #[inline]
    pub fn replace(&mut self, value: Value<'_>, encoding: Encoding, expires_at: Option<i64>) {
        let before = self.view().expires_at();
        self.change(|entry| entry.replace(value, encoding, expires_at));
        if before != expires_at {
            self.index_expiry(before, expires_at);
        }
    }

    /// Puts a string in place of what is there, with its expiry and access field. A collection that was there comes back.
    #[inline]
    pub(crate) fn store(
        &mut self,
        value: Value<'_>,
        encoding: Encoding,
        expires_at: Option<i64>,
        access: u32,
    ) -> Option<Collection> {
        if let (Value::Bytes(bytes), None) = (value, expires_at)
            && self.view().is_plain(bytes.len())
        {
            self.hand_over();
            self.database.tables[self.slot].change(self.place, |entry| entry.overwrite(bytes, encoding, access));
            return None;
        }
        let is_collection = self.view().encoding() == Encoding::Collection;
        let collection = if is_collection { self.take_collection() } else { None };
        self.replace(value, encoding, expires_at);
        self.set_access(access);
        collection
    }

    /// Grows a value that is bytes to `length` (zeros behind) and gives its bytes to `with`.
    pub fn edit_value<R>(&mut self, length: usize, with: impl FnOnce(&mut [u8]) -> R) -> R {
        self.change(|entry| {
            let length = length.max(entry.view().string().map_or(0, |value| value.text_length()));
            entry.grow_value(length);
            with(entry.value_bytes_mut())
        })
    }

    /// Sets or removes the expiry.
    pub fn set_expiry(&mut self, expires_at: Option<i64>) {
        let before = self.view().expires_at();
        if before == expires_at {
            return;
        }
        self.change(|entry| entry.set_expiry(expires_at));
        self.index_expiry(before, expires_at);
    }

    /// Moves the key in the index of expiries.
    fn index_expiry(&mut self, before: Option<i64>, after: Option<i64>) {
        if let Some(at) = before {
            self.database.expiries.remove(&(at, self.hash));
            self.database.count_expiring(self.slot, false);
        }
        if let Some(at) = after {
            self.database.expiries.insert((at, self.hash));
            self.database.count_expiring(self.slot, true);
        }
    }

    /// Takes the collection out to be changed, if there is one, leaving a string of no meaning.
    pub(crate) fn take_collection(&mut self) -> Option<Collection> {
        self.hand_over();
        self.borrow_collection()
    }

    /// Takes the collection out to be read, if there is one; it goes back as it was before anybody else sees the entry.
    pub(crate) fn borrow_collection(&mut self) -> Option<Collection> {
        let collection = self.exchange(Entry::take_collection)?;
        if let Some(at) = collection.next_field_expiry() {
            self.database.field_expiries.remove(&(at, self.hash));
        }
        Some(collection)
    }

    /// Puts a collection in place of the value, which is none.
    pub(crate) fn put_collection(&mut self, collection: Collection) {
        if let Some(at) = collection.next_field_expiry() {
            self.database.field_expiries.insert((at, self.hash));
        }
        self.exchange(|entry| entry.put_collection(collection));
    }

    /// Notes the access.
    #[inline]
    pub fn set_access(&mut self, access: u32) {
        self.database.tables[self.slot].change(self.place, |entry| entry.set_access(access));
    }

    /// Removes the key.
    pub fn remove(self) {
        self.take().free();
    }

    /// Takes the entry out of the table.
    pub(crate) fn take(mut self) -> Entry {
        self.hand_over();
        let Self { database, slot, place, hash } = self;
        let table = &mut database.tables[slot];
        let before = table.bytes();
        let entry = table.remove(place);
        database.bytes = database.bytes + table.bytes() - before - entry.view().memory();
        database.recount(bin_of(entry.view()), None);
        database.len -= 1;
        database.groups[slot / GROUP] -= 1;
        if let Some(at) = entry.view().expires_at() {
            database.expiries.remove(&(at, hash));
            database.count_expiring(slot, false);
        }
        if let Some(at) = entry.view().collection().and_then(|collection| collection.next_field_expiry()) {
            database.field_expiries.remove(&(at, hash));
        }
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_overwritten_in_place() {
        let mut entry = Entry::new(b"key", Value::Bytes(&[1; 50]), Encoding::Raw, None, 3);
        entry.set_parity(true);
        entry.overwrite(&[2; 50], Encoding::Raw, 9);
        let view = entry.view();
        assert_eq!((view.key(), view.access(), view.parity()), (&b"key"[..], 9, true));
        assert_eq!(view.string().unwrap(), Value::Bytes(&[2; 50]));
        assert!(!view.is_plain(49) && view.is_plain(50));
        entry.set_expiry(Some(1));
        assert!(!entry.view().is_plain(50));
        entry.free();
    }
}
