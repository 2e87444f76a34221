//! The elements of large sets and hashes, each in a block of its own.
//!
//! ```text
//! member, tag 0:      [ length ][ bytes ]
//! member, tag 1..7:   [ bytes ], of the length that the tag stands for: one that fills a size class
//! field:              [ field length ][ value length ][ field ][ value ][ expiry i64, if tag 1 ]
//! ```
//!
//! Lengths take a byte up to 127 and one more for each seven bits.
#![allow(unsafe_code)]

use crate::database::size_class;
use crate::element::Element;
use crate::entry::LENGTH_MAX;
use crate::tagged_block::{BlockElement, TaggedBlock, length_width};
use std::marker::PhantomData;

/// The lengths that tags 1 to 7 stand for.
const FILLING: [usize; 7] = [8, 16, 32, 48, 64, 80, 96];

const EXPIRY: usize = size_of::<i64>();
const EXPIRES: u8 = 1;

/// A set's member.
#[derive(Debug)]
pub struct Member(TaggedBlock);

impl Member {
    /// A member of these bytes, at most [`LENGTH_MAX`] of them.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        assert!(bytes.len() <= LENGTH_MAX, "a member is below 2 GiB");
        let tag = Self::tag_of(bytes.len());
        let block = TaggedBlock::allocate(Self::size(bytes.len()), tag);
        // SAFETY: a new block with room for the length, where it is written, and the bytes.
        unsafe {
            let offset = if tag == 0 { block.write_length(0, bytes.len()) } else { 0 };
            block.write(offset, bytes);
        }
        Self(block)
    }

    fn tag_of(length: usize) -> u8 {
        FILLING.iter().position(|filling| *filling == length).map_or(0, |index| index as u8 + 1)
    }

    fn size(length: usize) -> usize {
        if Self::tag_of(length) == 0 { length_width(length) + length } else { length }
    }

    /// The member's bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: borrowed with the member, which owns the block.
        unsafe { <Self as Element>::view(self.0.into_raw()) }
    }
}

impl Clone for Member {
    fn clone(&self) -> Self {
        Self::new(self.bytes())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let size = Self::size(self.bytes().len());
        // SAFETY: the member owned the block, which was allocated for this size.
        unsafe { self.0.free(size) }
    }
}

// SAFETY: the raw pointer is the block's, with its tag; the bytes are never written again.
unsafe impl BlockElement for Member {
    type View<'a> = &'a [u8];

    fn block(&self) -> TaggedBlock {
        self.0
    }

    fn of_block(block: TaggedBlock) -> Self {
        Self(block)
    }

    #[inline]
    unsafe fn view_block<'a>(block: TaggedBlock) -> &'a [u8] {
        // SAFETY: the tag says where the length is, and as many bytes were written.
        unsafe {
            let (length, offset) = match block.tag() {
                0 => block.length(0),
                tag => (FILLING[usize::from(tag) - 1], 0),
            };
            block.bytes(offset, length)
        }
    }

    #[inline]
    fn key_of(view: Self::View<'_>) -> &[u8] {
        view
    }

    fn size_of(view: Self::View<'_>) -> usize {
        Self::size(view.len())
    }
}

/// A hash's field with its value.
#[derive(Debug)]
pub struct Field(TaggedBlock);

/// A borrowed field.
#[derive(Clone, Copy, Debug)]
pub struct FieldRef<'a> {
    block: TaggedBlock,
    owner: PhantomData<&'a Field>,
}

impl<'a> FieldRef<'a> {
    /// The lengths of field and value, and the offset behind them.
    #[inline]
    fn lengths(&self) -> (usize, usize, usize) {
        // SAFETY: every field begins with its two lengths.
        unsafe {
            let (field, offset) = self.block.length(0);
            let (value, offset) = self.block.length(offset);
            (field, value, offset)
        }
    }

    #[inline]
    fn slice(&self, offset: usize, length: usize) -> &'a [u8] {
        // SAFETY: callers pass ranges made of the block's own lengths, and the block is borrowed for `'a`.
        unsafe { self.block.bytes(offset, length) }
    }

    fn has_expiry(&self) -> bool {
        self.block.tag() & EXPIRES != 0
    }

    /// The field's name.
    #[must_use]
    #[inline]
    pub fn field(&self) -> &'a [u8] {
        let (field, _, offset) = self.lengths();
        self.slice(offset, field)
    }

    /// The field's value.
    #[must_use]
    #[inline]
    pub fn value(&self) -> &'a [u8] {
        let (field, value, offset) = self.lengths();
        self.slice(offset + field, value)
    }

    /// When the field expires, in milliseconds of Unix time.
    #[must_use]
    #[inline]
    pub fn expires_at(&self) -> Option<i64> {
        if !self.has_expiry() {
            return None;
        }
        let (field, value, offset) = self.lengths();
        let bytes = self.slice(offset + field + value, EXPIRY);
        Some(i64::from_ne_bytes(bytes.try_into().expect("an expiry takes eight bytes")))
    }

    fn size(&self) -> usize {
        let (field, value, _) = self.lengths();
        Field::size(field, value, self.has_expiry())
    }
}

impl Field {
    /// A field with its value, each at most [`LENGTH_MAX`] bytes long.
    #[must_use]
    pub fn new(field: &[u8], value: &[u8], expires_at: Option<i64>) -> Self {
        assert!(field.len() <= LENGTH_MAX && value.len() <= LENGTH_MAX, "a field's parts are below 2 GiB");
        let size = Self::size(field.len(), value.len(), expires_at.is_some());
        let block = TaggedBlock::allocate(size, if expires_at.is_some() { EXPIRES } else { 0 });
        // SAFETY: a new block with room for all of it.
        unsafe {
            let mut offset = block.write_length(0, field.len());
            offset = block.write_length(offset, value.len());
            offset = block.write(offset, field);
            offset = block.write(offset, value);
            if let Some(at) = expires_at {
                block.write(offset, &at.to_ne_bytes());
            }
        }
        Self(block)
    }

    fn size(field: usize, value: usize, expires: bool) -> usize {
        length_width(field) + length_width(value) + field + value + if expires { EXPIRY } else { 0 }
    }

    /// A view of the field.
    #[must_use]
    pub fn view(&self) -> FieldRef<'_> {
        FieldRef { block: self.0, owner: PhantomData }
    }

    /// Replaces the value; the expiry stays.
    pub fn set_value(&mut self, value: &[u8]) {
        self.replace(value, self.view().expires_at());
    }

    /// Sets or removes the expiry.
    pub fn set_expiry(&mut self, expires_at: Option<i64>) {
        let view = self.view();
        match (view.has_expiry(), expires_at) {
            (false, None) => {}
            (true, Some(at)) => {
                let offset = view.size() - EXPIRY;
                // SAFETY: where the expiry is, and `&mut self` is exclusive.
                unsafe { self.0.write(offset, &at.to_ne_bytes()) };
            }
            (true, None) | (false, Some(_)) => *self = Self::new(view.field(), view.value(), expires_at),
        }
    }

    /// Replaces value and expiry.
    pub fn replace(&mut self, value: &[u8], expires_at: Option<i64>) {
        let view = self.view();
        let (field, old, offset) = view.lengths();
        let size = Self::size(field, value.len(), expires_at.is_some());
        if size_class(size) != size_class(view.size()) || length_width(old) != length_width(value.len()) {
            *self = Self::new(view.field(), value, expires_at);
            return;
        }
        // SAFETY: the lengths keep their widths and all of it fits the class; `&mut self` is exclusive.
        unsafe {
            self.0.write_length(length_width(field), value.len());
            let offset = self.0.write(offset + field, value);
            if let Some(at) = expires_at {
                self.0.write(offset, &at.to_ne_bytes());
            }
        }
        self.0 = self.0.with_tag(if expires_at.is_some() { EXPIRES } else { 0 });
    }
}

impl Clone for Field {
    fn clone(&self) -> Self {
        let view = self.view();
        Self::new(view.field(), view.value(), view.expires_at())
    }
}

impl Drop for Field {
    fn drop(&mut self) {
        // SAFETY: the field owned the block, which was allocated for this size's class.
        unsafe { self.0.free(self.view().size()) }
    }
}

// SAFETY: the raw pointer is the block's, with its tag; only what lies behind the field's name is written again.
unsafe impl BlockElement for Field {
    type View<'a> = FieldRef<'a>;

    fn block(&self) -> TaggedBlock {
        self.0
    }

    fn of_block(block: TaggedBlock) -> Self {
        Self(block)
    }

    #[inline]
    unsafe fn view_block<'a>(block: TaggedBlock) -> FieldRef<'a> {
        FieldRef { block, owner: PhantomData }
    }

    #[inline]
    fn key_of(view: Self::View<'_>) -> &[u8] {
        view.field()
    }

    fn size_of(view: Self::View<'_>) -> usize {
        view.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_every_length_read_back() {
        for length in (0..300).chain([16_383, 16_384, 1 << 21]) {
            let bytes: Vec<u8> = (0..length).map(|index| index as u8).collect();
            let member = Member::new(&bytes);
            assert_eq!(member.bytes(), bytes);
            assert!(<Member as Element>::bytes(member.bytes()) >= length);
        }
        assert_eq!(<Member as Element>::bytes(Member::new(&[0; 16]).bytes()), 16, "no byte for the length");
    }

    #[test]
    fn fields_survive_every_change() {
        let lengths = [0, 1, 11, 13, 14, 29, 30, 126, 127, 128, 129, 200, 16_383, 16_384];
        let mut field = Field::new(b"name", b"", None);
        for (step, length) in lengths.iter().chain(lengths.iter().rev()).cycle().take(200).enumerate() {
            let value = vec![step as u8; *length];
            let expires_at = [None, Some(-1), Some(i64::MAX)][step % 3];
            match step % 4 {
                0 => field.replace(&value, expires_at),
                1 => {
                    field.set_value(&value);
                    field.set_expiry(expires_at);
                }
                2 => {
                    field.set_expiry(expires_at);
                    field.set_value(&value);
                }
                _ => field = Field::new(b"name", &value, expires_at),
            }
            let view = field.view();
            assert_eq!((view.field(), view.value(), view.expires_at()), (&b"name"[..], &value[..], expires_at));
        }
    }

    #[test]
    fn a_value_that_stays_in_its_size_class_stays_where_it_is() {
        let mut field = Field::new(b"name", &[1; 20], None);
        let block = field.0;
        for length in [12, 26, 20] {
            field.set_value(&vec![2; length]);
            assert_eq!((field.0, field.view().value()), (block, &vec![2; length][..]));
        }
    }
}
