//! An entry: a key, its value and what is known of both, in one allocation.
//!
//! ```text
//! 0         4             8               12        12+key        12+key+value
//! [ meta u32 ][ key_length u32 ][ value_length u32 ][ key bytes ][ value bytes ][ expiry i64, if bit 31 of key_length ]
//! meta: bits 0..4 encoding, 4 parity (whether a snapshot has seen it), 8..32 access (LRU clock or LFU counter, as Redis keeps them)
//! encoding: 0..3 of a string, 3..8 a collection's type
//! ```
//!
//! The value of a string is its bytes or eight bytes of integer; that of any other type is the word of a [`Collection`], which leads to
//! everything else and is not aligned (`collection_word.rs`).
//!
//! One pointer leads from the table to everything a GET needs, and a key without an expiry pays nothing for those that have
//! one. What is asked of the allocator is a whole size class, so a value may change its length within the class without a call
//! to it; the classes are at least an eighth apart, so appending stays amortised without a capacity field.
//!
//! This file, `slot_table.rs` and `block.rs` hold the crate's only `unsafe` code. The invariant behind what is here: an [`Entry`]
//! points to a live allocation of exactly `size_class(size())` bytes with the header above, owned by that `Entry` alone.
#![allow(unsafe_code)]

use crate::collection::{Collection, CollectionRef};
use crate::collection_word::Type;
use crate::database::size_class;
use crate::string_value::Value;
use crate::string_value::encoding_beside;
use simurgh_protocol::CommandError;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error, realloc};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

const HEADER: usize = 12;
pub(crate) const EXPIRY: usize = 8;
const EXPIRY_FLAG: u32 = 1 << 31;
const PARITY: u32 = 1 << 4;
/// The longest key or value, in bytes.
pub const LENGTH_MAX: usize = (1 << 31) - 1;

/// How a value is represented, as `OBJECT ENCODING` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Encoding {
    /// A string that was built up in place, or is longer than 44 bytes.
    Raw = 0,
    /// A string that is a 64-bit integer, kept as one.
    Int = 1,
    /// A string of at most 44 bytes.
    Embstr = 2,
    /// No string: the representation is the collection's own affair.
    Collection = 3,
}

impl Encoding {
    fn from_bits(bits: u32) -> Self {
        match bits {
            0 => Self::Raw,
            1 => Self::Int,
            2 => Self::Embstr,
            _ => Self::Collection,
        }
    }
}

/// The bits of the encoding; the one above it is the parity, and three are free.
const ENCODING: u32 = 0xf;
/// A collection's encoding is this and its type.
const FIRST_TYPE: u32 = Encoding::Collection as u32;
/// Bytes of a collection's word in the value area.
const COLLECTION: usize = size_of::<NonNull<u8>>();

/// An owned entry. Freed by [`Entry::free`], not by `Drop`: the table that owns it keeps it as a packed word.
#[derive(Debug)]
pub struct Entry(NonNull<u8>);

/// A borrowed entry.
#[derive(Clone, Copy, Debug)]
pub struct EntryRef<'a> {
    base: NonNull<u8>,
    owner: std::marker::PhantomData<&'a [u8]>,
}

impl<'a> EntryRef<'a> {
    /// # Safety
    /// `base` must come from [`Entry::into_raw`] of an entry that outlives `'a` and is not changed during it.
    pub(crate) unsafe fn from_raw(base: NonNull<u8>) -> Self {
        Self { base, owner: std::marker::PhantomData }
    }

    #[inline]
    fn word(&self, index: usize) -> u32 {
        // SAFETY: every entry begins with three u32 words and is aligned for them.
        unsafe { self.base.cast::<u32>().add(index).read() }
    }

    #[inline]
    fn slice(&self, offset: usize, length: usize) -> &'a [u8] {
        // SAFETY: callers pass ranges made of the header's own lengths, which lie inside the allocation.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(offset), length) }
    }

    #[inline]
    fn key_length(&self) -> usize {
        (self.word(1) & !EXPIRY_FLAG) as usize
    }

    #[inline]
    fn value_length(&self) -> usize {
        self.word(2) as usize
    }

    #[inline]
    fn has_expiry(&self) -> bool {
        self.word(1) & EXPIRY_FLAG != 0
    }

    /// The key.
    #[must_use]
    #[inline]
    pub fn key(&self) -> &'a [u8] {
        self.slice(HEADER, self.key_length())
    }

    /// The value, if it is a string; the error is the client's.
    #[inline]
    pub fn string(&self) -> Result<Value<'a>, CommandError> {
        let bytes = self.slice(HEADER + self.key_length(), self.value_length());
        match self.encoding() {
            Encoding::Int => {
                Ok(Value::Int(i64::from_ne_bytes(bytes.try_into().expect("an integer takes eight bytes"))))
            }
            Encoding::Raw | Encoding::Embstr => Ok(Value::Bytes(bytes)),
            Encoding::Collection => Err(CommandError::WrongType),
        }
    }

    /// The value, if it is no string.
    #[must_use]
    pub fn collection(&self) -> Option<CollectionRef<'a>> {
        let of_type = self.collection_type()?;
        let word = self.slice(HEADER + self.key_length(), COLLECTION).as_ptr().cast::<NonNull<u8>>();
        // SAFETY: the encoding says that the value area holds the word of a collection of this type. What is made of it is not dropped
        // and does not outlive `'a`, during which the entry, which owns what it leads to, is not changed.
        let collection = unsafe { Collection::from_word(of_type, word.read_unaligned()) };
        Some(CollectionRef::new(ManuallyDrop::new(collection)))
    }

    fn collection_type(&self) -> Option<Type> {
        Type::ALL.get((self.word(0) & ENCODING).checked_sub(FIRST_TYPE)? as usize).copied()
    }

    /// How the value is represented.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        Encoding::from_bits(self.word(0) & ENCODING)
    }

    /// The representation as clients know it.
    #[must_use]
    pub fn encoding_name(&self) -> &'static str {
        match (self.encoding(), self.collection()) {
            (_, Some(collection)) => collection.encoding_name(),
            (Encoding::Int, None) => "int",
            (Encoding::Embstr, None) => "embstr",
            (Encoding::Raw | Encoding::Collection, None) => "raw",
        }
    }

    /// The name of the value's type, as `TYPE` gives it.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        self.collection_type().map_or("string", Type::name)
    }

    /// The access field: LRU clock or LFU counter, 24 bits.
    #[must_use]
    pub fn access(&self) -> u32 {
        self.word(0) >> 8
    }

    /// One of two marks, by which a snapshot knows what it has seen (`snapshot/`).
    #[must_use]
    #[inline]
    pub(crate) fn parity(&self) -> bool {
        self.word(0) & PARITY != 0
    }

    /// When the key expires, in milliseconds of Unix time.
    #[must_use]
    #[inline]
    pub fn expires_at(&self) -> Option<i64> {
        if !self.has_expiry() {
            return None;
        }
        let bytes = self.slice(HEADER + self.key_length() + self.value_length(), EXPIRY);
        Some(i64::from_ne_bytes(bytes.try_into().expect("an expiry takes eight bytes")))
    }

    /// Whether the value is so many bytes and the key has no expiry.
    #[inline]
    pub(crate) fn is_plain(&self, length: usize) -> bool {
        let is_bytes = matches!(self.encoding(), Encoding::Raw | Encoding::Embstr);
        is_bytes && !self.has_expiry() && self.value_length() == length
    }

    /// Bytes that the entry fills of its allocation.
    #[must_use]
    pub fn size(&self) -> usize {
        HEADER + self.key_length() + self.value_length() + if self.has_expiry() { EXPIRY } else { 0 }
    }

    /// Bytes that the key takes with all that belongs to it, in the allocator's size classes.
    #[must_use]
    #[inline]
    pub fn memory(&self) -> usize {
        let beyond =
            if self.encoding() == Encoding::Collection { self.collection().map_or(0, |it| it.bytes()) } else { 0 };
        size_class(self.size()) + beyond
    }
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size_class(size), 4).expect("lengths are below 2^31 each")
}

impl Entry {
    /// A new entry. Key and value must be at most [`LENGTH_MAX`] bytes long, which the parser's limits see to.
    #[must_use]
    pub fn new(key: &[u8], value: Value<'_>, encoding: Encoding, expires_at: Option<i64>, access: u32) -> Self {
        assert!(key.len() <= LENGTH_MAX && value.stored_length() <= LENGTH_MAX, "an entry's parts are below 2 GiB");
        let size = HEADER + key.len() + value.stored_length() + if expires_at.is_some() { EXPIRY } else { 0 };
        // SAFETY: the size is not zero.
        let base = unsafe { alloc(layout(size)) };
        let Some(base) = NonNull::new(base) else { handle_alloc_error(layout(size)) };
        let mut entry = Self(base);
        let encoding = encoding_beside(key.len(), value, encoding, expires_at.is_some());
        entry.set_word(0, encoding as u32 | access << 8);
        entry.set_word(1, key.len() as u32 | if expires_at.is_some() { EXPIRY_FLAG } else { 0 });
        entry.set_word(2, value.stored_length() as u32);
        entry.write(HEADER, key);
        entry.write_value(value);
        if let Some(at) = expires_at {
            entry.write(size - EXPIRY, &at.to_ne_bytes());
        }
        entry
    }

    /// A new entry that holds a collection.
    #[must_use]
    pub fn of_collection(key: &[u8], collection: Collection, expires_at: Option<i64>, access: u32) -> Self {
        let mut entry = Self::new(key, Value::Bytes(&[0; COLLECTION]), Encoding::Raw, expires_at, access);
        entry.put_collection(collection);
        entry
    }

    /// A copy of an entry, under another key.
    #[must_use]
    pub fn copy_of(source: EntryRef<'_>, key: &[u8], access: u32) -> Self {
        match (source.collection(), source.string()) {
            (Some(collection), _) => Self::of_collection(key, (*collection).clone(), source.expires_at(), access),
            (None, Ok(value)) => Self::new(key, value, source.encoding(), source.expires_at(), access),
            (None, Err(_)) => unreachable!("what holds no collection is a string"),
        }
    }

    /// The same under another key.
    #[must_use]
    pub fn under(mut self, key: &[u8]) -> Self {
        let (collection, view) = (self.take_collection(), self.view());
        let (expires_at, access) = (view.expires_at(), view.access());
        let renamed = match (collection, view.string()) {
            (Some(collection), _) => Self::of_collection(key, collection, expires_at, access),
            (None, Ok(value)) => Self::new(key, value, view.encoding(), expires_at, access),
            (None, Err(_)) => unreachable!("what holds no collection is a string"),
        };
        self.free();
        renamed
    }

    /// Takes the collection out, if there is one, leaving a string of no meaning.
    pub fn take_collection(&mut self) -> Option<Collection> {
        let collection = self.view().collection()?.into_collection();
        self.set_encoding(Encoding::Raw as u32);
        // From here on the entry owns no collection: its word is bytes.
        Some(ManuallyDrop::into_inner(collection))
    }

    /// Puts a collection in place of the value.
    pub fn put_collection(&mut self, collection: Collection) {
        if self.view().encoding() != Encoding::Raw || self.view().value_length() != COLLECTION {
            self.set_value(Value::Bytes(&[0; COLLECTION]), Encoding::Raw);
        }
        let offset = HEADER + self.view().key_length();
        let (of_type, word) = collection.into_word();
        // SAFETY: the value area has room for the word, which need not be aligned; what lay there was bytes.
        unsafe { self.0.as_ptr().add(offset).cast::<NonNull<u8>>().write_unaligned(word) }
        self.set_encoding(FIRST_TYPE + of_type as u32);
    }

    /// Takes ownership of a pointer given out by [`Entry::into_raw`].
    ///
    /// # Safety
    /// Each raw pointer may be turned back once.
    pub(crate) unsafe fn from_raw(base: NonNull<u8>) -> Self {
        Self(base)
    }

    /// Gives the allocation away.
    pub(crate) fn into_raw(self) -> NonNull<u8> {
        self.0
    }

    /// A view of the entry.
    #[must_use]
    #[inline]
    pub fn view(&self) -> EntryRef<'_> {
        // SAFETY: the view borrows `self`, which owns the allocation.
        unsafe { EntryRef::from_raw(self.0) }
    }

    /// Frees the allocation, and a collection.
    pub(crate) fn free(mut self) {
        drop(self.take_collection());
        let size = self.view().size();
        // SAFETY: allocated with this layout, and `self` was its only owner.
        unsafe { dealloc(self.0.as_ptr(), layout(size)) }
    }

    fn set_word(&mut self, index: usize, word: u32) {
        debug_assert!(index < 3);
        // SAFETY: as `EntryRef::word`, and `&mut self` is exclusive.
        unsafe { self.0.cast::<u32>().add(index).write(word) }
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        // SAFETY: callers write inside the size they allocated; `bytes` cannot overlap an exclusively held entry.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.as_ptr().add(offset), bytes.len()) }
    }

    fn write_value(&mut self, value: Value<'_>) {
        let offset = HEADER + self.view().key_length();
        match value {
            Value::Int(number) => self.write(offset, &number.to_ne_bytes()),
            Value::Bytes(bytes) => self.write(offset, bytes),
        }
    }

    fn reallocate(&mut self, from: usize, to: usize) {
        let (from, to) = (layout(from), layout(to));
        if from == to {
            return;
        }
        // SAFETY: `from` is the layout of the allocation, `to` is not empty and differs from it in size alone.
        let base = unsafe { realloc(self.0.as_ptr(), from, to.size()) };
        let Some(base) = NonNull::new(base) else { handle_alloc_error(to) };
        self.0 = base;
    }

    /// Replaces access field.
    pub fn set_access(&mut self, access: u32) {
        let word = self.view().word(0);
        self.set_word(0, word & 0xff | access << 8);
    }

    /// Marks the entry.
    #[inline]
    pub(crate) fn set_parity(&mut self, parity: bool) {
        let word = self.view().word(0) & !PARITY;
        self.set_word(0, if parity { word | PARITY } else { word });
    }

    fn set_encoding(&mut self, encoding: u32) {
        let word = self.view().word(0);
        self.set_word(0, word & !ENCODING | encoding);
    }

    /// Replaces the value; key, expiry and access field stay.
    pub fn set_value(&mut self, value: Value<'_>, encoding: Encoding) {
        self.replace(value, encoding, self.view().expires_at());
    }

    /// Replaces value and expiry; key and access field stay.
    pub fn replace(&mut self, value: Value<'_>, encoding: Encoding, expires_at: Option<i64>) {
        let (size, key_length, length) = (self.view().size(), self.view().key_length(), value.stored_length());
        assert!(length <= LENGTH_MAX, "a value is below 2 GiB");
        drop(self.take_collection());
        self.reallocate(size, HEADER + key_length + length + if expires_at.is_some() { EXPIRY } else { 0 });
        self.set_encoding(encoding_beside(key_length, value, encoding, expires_at.is_some()) as u32);
        self.set_word(1, key_length as u32 | if expires_at.is_some() { EXPIRY_FLAG } else { 0 });
        self.set_word(2, length as u32);
        self.write_value(value);
        self.restore_expiry(expires_at);
    }

    /// Puts bytes in place of as many, where there is no expiry: nothing of what is counted changes.
    #[inline]
    pub(crate) fn overwrite(&mut self, bytes: &[u8], encoding: Encoding, access: u32) {
        assert!(self.view().is_plain(bytes.len()), "only as many bytes fit");
        let key_length = self.view().key_length();
        self.set_encoding(encoding_beside(key_length, Value::Bytes(bytes), encoding, false) as u32);
        self.set_access(access);
        self.write(HEADER + key_length, bytes);
    }

    /// Makes room for a value of `length` bytes; the expiry behind the value has to be written again.
    fn resize_allocation(&mut self, length: usize) {
        let (size, old) = (self.view().size(), self.view().value_length());
        self.reallocate(size, size - old + length);
        self.set_word(2, length as u32);
    }

    fn restore_expiry(&mut self, expires_at: Option<i64>) {
        if let Some(at) = expires_at {
            let size = self.view().size();
            self.write(size - EXPIRY, &at.to_ne_bytes());
        }
    }

    /// Grows a value that is bytes to `length`, zeros behind what was there, and marks it `raw`.
    pub fn grow_value(&mut self, length: usize) {
        assert!(length <= LENGTH_MAX, "a value is below 2 GiB");
        let (old, expires_at) = (self.view().value_length(), self.view().expires_at());
        assert!(matches!(self.view().encoding(), Encoding::Raw | Encoding::Embstr), "only bytes grow");
        debug_assert!(length >= old);
        let key_length = self.view().key_length();
        self.resize_allocation(length);
        // SAFETY: the allocation now has room for `length` bytes of value.
        unsafe { std::ptr::write_bytes(self.0.as_ptr().add(HEADER + key_length + old), 0, length - old) }
        self.set_encoding(Encoding::Raw as u32);
        self.restore_expiry(expires_at);
    }

    /// The bytes of a value that is not an integer, to be changed in place.
    pub fn value_bytes_mut(&mut self) -> &mut [u8] {
        let view = self.view();
        assert!(matches!(view.encoding(), Encoding::Raw | Encoding::Embstr), "only bytes are edited");
        let (offset, length) = (HEADER + view.key_length(), view.value_length());
        // SAFETY: inside the allocation, and `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_ptr().add(offset), length) }
    }

    /// Sets or removes the expiry.
    pub fn set_expiry(&mut self, expires_at: Option<i64>) {
        let (size, had) = (self.view().size(), self.view().has_expiry());
        let key_word = self.view().word(1) & !EXPIRY_FLAG;
        match (had, expires_at) {
            (false, Some(_)) => self.reallocate(size, size + EXPIRY),
            (true, None) => self.reallocate(size, size - EXPIRY),
            (false, None) | (true, Some(_)) => {}
        }
        self.set_word(1, key_word | if expires_at.is_some() { EXPIRY_FLAG } else { 0 });
        self.restore_expiry(expires_at);
        let view = self.view();
        if let Ok(value) = view.string() {
            let encoding = encoding_beside(view.key_length(), value, view.encoding(), expires_at.is_some());
            self.set_encoding(encoding as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_survive_every_change() {
        let mut entry = Entry::new(b"key", Value::Bytes(b"hello"), Encoding::Embstr, None, 7);
        entry.set_expiry(Some(-5));
        entry.set_value(Value::Int(i64::MIN), Encoding::Int);
        assert_eq!(entry.view().string().unwrap(), Value::Int(i64::MIN));
        assert_eq!(entry.view().expires_at(), Some(-5));
        entry.set_value(Value::Bytes(b""), Encoding::Embstr);
        entry.grow_value(100);
        entry.value_bytes_mut()[99] = b'x';
        assert_eq!(entry.view().expires_at(), Some(-5));
        entry.set_expiry(None);
        let view = entry.view();
        assert_eq!((view.key(), view.expires_at(), view.access()), (&b"key"[..], None, 7));
        assert_eq!(view.string().unwrap(), Value::Bytes(&[&[0; 99][..], b"x"].concat()));
        assert_eq!(view.encoding(), Encoding::Raw);
        assert_eq!(view.size(), HEADER + 3 + 100);
        entry.free();
    }

    #[test]
    fn a_value_that_stays_in_its_size_class_stays_where_it_is() {
        let mut entry = Entry::new(b"key", Value::Bytes(&[1; 40]), Encoding::Embstr, None, 0);
        let base = entry.0;
        for length in [34, 49, 40] {
            entry.set_value(Value::Bytes(&vec![2; length]), Encoding::Raw);
            assert_eq!((entry.0, entry.view().string().unwrap()), (base, Value::Bytes(&vec![2; length])));
        }
        entry.replace(Value::Int(-1), Encoding::Int, Some(i64::MAX));
        assert_eq!((entry.view().string().unwrap(), entry.view().expires_at()), (Value::Int(-1), Some(i64::MAX)));
        entry.free();
    }
}
