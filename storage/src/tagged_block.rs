//! Tagged blocks: the allocations of a collection's elements, each behind a pointer whose low three bits say something about it.
//!
//! A block is asked for in whole size classes and is aligned to eight bytes, so three bits of its pointer are free. They hold
//! what would cost a byte in it: at sixteen bytes a member, that byte would double the allocation.
//!
//! The invariant behind the unsafe code of the elements: a [`TaggedBlock`] points to a live allocation of `size_class(size)` bytes
//! owned by one element, which knows `size` from the pointer's bits and the block's own first bytes.
#![allow(unsafe_code)]

use crate::database::size_class;
use crate::element::Element;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

const ALIGNMENT: usize = 8;
const TAG: usize = ALIGNMENT - 1;

/// A pointer to a block, with three bits of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaggedBlock(NonNull<u8>);

// SAFETY: a block is plain memory.
unsafe impl Send for TaggedBlock {}
// SAFETY: as above; a shared block is only read.
unsafe impl Sync for TaggedBlock {}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size_class(size), ALIGNMENT).expect("lengths are below 2^31 each")
}

impl TaggedBlock {
    /// A new block for `size` bytes, to be filled in.
    pub fn allocate(size: usize, tag: u8) -> Self {
        debug_assert!(size > 0 && usize::from(tag) <= TAG);
        // SAFETY: the size is not zero.
        let base = unsafe { alloc(layout(size)) };
        let Some(base) = NonNull::new(base) else { handle_alloc_error(layout(size)) };
        Self(base).with_tag(tag)
    }

    /// Frees the block.
    ///
    /// # Safety
    /// It was allocated for `size` bytes (or others of the same class), and is not used afterwards.
    pub unsafe fn free(self, size: usize) {
        // SAFETY: the caller's promise.
        unsafe { dealloc(self.base(), layout(size)) }
    }

    pub fn from_raw(raw: NonNull<u8>) -> Self {
        Self(raw)
    }

    pub fn into_raw(self) -> NonNull<u8> {
        self.0
    }

    /// The pointer's own bits.
    #[inline]
    pub fn tag(self) -> u8 {
        (self.0.as_ptr() as usize & TAG) as u8
    }

    /// The same block with other bits.
    pub fn with_tag(self, tag: u8) -> Self {
        let pointer = self.base().wrapping_add(usize::from(tag));
        Self(NonNull::new(pointer).expect("a block is not at zero"))
    }

    #[inline]
    fn base(self) -> *mut u8 {
        self.0.as_ptr().wrapping_sub(usize::from(self.tag()))
    }

    /// Bytes of the block.
    ///
    /// # Safety
    /// The range lies inside what was written, and the block is neither freed nor changed during `'a`.
    #[inline]
    pub unsafe fn bytes<'a>(self, offset: usize, length: usize) -> &'a [u8] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.base().add(offset), length) }
    }

    /// Writes into the block and returns the offset behind.
    ///
    /// # Safety
    /// The range lies inside the allocation, and nobody reads the block meanwhile.
    pub unsafe fn write(self, offset: usize, bytes: &[u8]) -> usize {
        // SAFETY: the caller's promise; `bytes` cannot overlap a block that nobody reads.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base().add(offset), bytes.len()) }
        offset + bytes.len()
    }

    /// Writes a length, seven bits to a byte, and returns the offset behind.
    ///
    /// # Safety
    /// As [`TaggedBlock::write`], for [`length_width`] bytes.
    pub unsafe fn write_length(self, mut offset: usize, mut length: usize) -> usize {
        while length > 0x7f {
            // SAFETY: the caller's promise.
            offset = unsafe { self.write(offset, &[length as u8 | 0x80]) };
            length >>= 7;
        }
        // SAFETY: the caller's promise.
        unsafe { self.write(offset, &[length as u8]) }
    }

    /// A length and the offset behind it.
    ///
    /// # Safety
    /// One was written at `offset`.
    #[inline]
    pub unsafe fn length(self, mut offset: usize) -> (usize, usize) {
        let (mut length, mut shift) = (0, 0);
        loop {
            // SAFETY: a length ends with a byte below 128, inside what was written.
            let byte = unsafe { *self.base().add(offset) };
            length |= usize::from(byte & 0x7f) << shift;
            offset += 1;
            if byte < 0x80 {
                return (length, offset);
            }
            shift += 7;
        }
    }
}

/// How many bytes a length takes.
pub(crate) fn length_width(length: usize) -> usize {
    let bits = usize::BITS - length.leading_zeros();
    bits.div_ceil(7).max(1) as usize
}

/// An element that is a tagged block.
///
/// # Safety
/// It is a block and nothing else, which it owns; `view_block` reads back what was written into it, the key stays the same for the
/// element's life, and `size_of` is the size that the block was allocated for, or another of its class.
pub unsafe trait BlockElement: Sized {
    /// A borrowed element.
    type View<'a>: Copy;

    /// The element's block.
    fn block(&self) -> TaggedBlock;

    /// The element of a block, which it owns from here on.
    fn of_block(block: TaggedBlock) -> Self;

    /// Looks at an element.
    ///
    /// # Safety
    /// The block is that of an element which is neither freed nor changed during `'a`.
    unsafe fn view_block<'a>(block: TaggedBlock) -> Self::View<'a>;

    /// The element's key.
    fn key_of(view: Self::View<'_>) -> &[u8];

    /// The bytes of its block that it fills.
    fn size_of(view: Self::View<'_>) -> usize;
}

// SAFETY: the raw pointer is the block's, with its tag; the rest is what `BlockElement` promises.
unsafe impl<B: BlockElement> Element for B {
    type View<'a> = B::View<'a>;
    const LOAD: usize = 10;
    const IS_LONG: bool = false;

    fn into_raw(self) -> NonNull<u8> {
        let block = self.block();
        std::mem::forget(self);
        block.into_raw()
    }

    unsafe fn from_raw(raw: NonNull<u8>) -> Self {
        B::of_block(TaggedBlock::from_raw(raw))
    }

    #[inline]
    unsafe fn view<'a>(raw: NonNull<u8>) -> B::View<'a> {
        // SAFETY: the caller's promise.
        unsafe { B::view_block(TaggedBlock::from_raw(raw)) }
    }

    #[inline]
    fn view_of(&self) -> B::View<'_> {
        // SAFETY: the view borrows the element.
        unsafe { B::view_block(self.block()) }
    }

    #[inline]
    fn key(view: B::View<'_>) -> &[u8] {
        B::key_of(view)
    }

    fn bytes(view: B::View<'_>) -> usize {
        size_class(B::size_of(view))
    }

    fn free(self) {}
}
