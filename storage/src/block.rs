//! A packed value's memory: one allocation behind a thin pointer, whose size the bytes themselves tell.
//!
//! Listpacks and intsets begin with a header from which their length follows, and must keep that header anyway, because DUMP and
//! RDB copy them as they are. So neither length nor capacity is stored beside the pointer: the allocation is always the size
//! class of the length. A change within the class asks the allocator for nothing, and the classes are at least an eighth apart,
//! which keeps growth amortised.
//!
//! All `unsafe` code of the packed values is here. The invariant behind it: a [`Block`] points to a live allocation of exactly
//! `size_class(header().size())` bytes, owned by that `Block` alone, of which the first `header().size()` are initialised. Safe
//! code cannot break it, since the header is written by this file only.
#![allow(unsafe_code)]

use crate::database::size_class;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error, realloc};
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;

/// Bytes that are not what they claim to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed packed data")]
pub struct Malformed;

/// What a packed value begins with.
///
/// # Safety
/// `read` must give back what `write` wrote, `write` must fill `BYTES` bytes, and `size` must depend on nothing but the header and
/// be at least `BYTES`.
pub(crate) unsafe trait Header: Copy {
    /// The length of the header.
    const BYTES: usize;
    /// Reads it from the front of `bytes`.
    fn read(bytes: &[u8]) -> Self;
    /// Writes it to the front of `bytes`.
    fn write(self, bytes: &mut [u8]);
    /// The length of the whole value.
    fn size(self) -> usize;
}

/// The part of a listpack's header that tells its length: the length itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListpackHeader(pub(crate) u32);

// SAFETY: four bytes out, the same four in; no length below them can be made, as `Block::new` and `splice` check.
unsafe impl Header for ListpackHeader {
    const BYTES: usize = 4;

    #[inline]
    fn read(bytes: &[u8]) -> Self {
        Self(u32::from_le_bytes(*bytes.first_chunk().expect("a header is in every block")))
    }

    fn write(self, bytes: &mut [u8]) {
        bytes[..4].copy_from_slice(&self.0.to_le_bytes());
    }

    #[inline]
    fn size(self) -> usize {
        self.0 as usize
    }
}

/// An intset's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IntsetHeader {
    /// Bytes of a member: 2, 4 or 8.
    pub(crate) width: u32,
    /// Members.
    pub(crate) count: u32,
}

// SAFETY: eight bytes out, the same eight in, and the size is at least theirs.
unsafe impl Header for IntsetHeader {
    const BYTES: usize = 8;

    #[inline]
    fn read(bytes: &[u8]) -> Self {
        let word = u64::from_le_bytes(*bytes.first_chunk().expect("a header is in every block"));
        Self { width: word as u32, count: (word >> 32) as u32 }
    }

    fn write(self, bytes: &mut [u8]) {
        bytes[..4].copy_from_slice(&self.width.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.count.to_le_bytes());
    }

    #[inline]
    fn size(self) -> usize {
        Self::BYTES + self.width as usize * self.count as usize
    }
}

/// A self-sized buffer. See the file's head.
#[repr(transparent)]
pub(crate) struct Block<H: Header> {
    base: NonNull<u8>,
    header: PhantomData<H>,
}

// SAFETY: the allocation is owned and is plain bytes.
unsafe impl<H: Header> Send for Block<H> {}
// SAFETY: a shared block is only read.
unsafe impl<H: Header> Sync for Block<H> {}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size_class(size), 4).expect("a block's size fits its header")
}

impl<H: Header> Block<H> {
    /// A block of `header` and, behind it, `body`.
    pub(crate) fn new(header: H, body: &[u8]) -> Self {
        let size = H::BYTES + body.len();
        assert!(header.size() == size, "the header tells the block's length");
        // SAFETY: the size is not zero.
        let base = unsafe { alloc(layout(size)) };
        let Some(base) = NonNull::new(base) else { handle_alloc_error(layout(size)) };
        // SAFETY: all `size` bytes of a fresh allocation are written before anything reads them; `body` cannot overlap it.
        unsafe {
            std::ptr::write_bytes(base.as_ptr(), 0, H::BYTES);
            std::ptr::copy_nonoverlapping(body.as_ptr(), base.as_ptr().add(H::BYTES), body.len());
        }
        let mut block = Self { base, header: PhantomData };
        block.set_header(header);
        block
    }

    /// The header.
    #[inline]
    pub(crate) fn header(&self) -> H {
        // SAFETY: every block begins with a header.
        H::read(unsafe { std::slice::from_raw_parts(self.base.as_ptr(), H::BYTES) })
    }

    fn set_header(&mut self, header: H) {
        // SAFETY: every block has room for a header, and `&mut self` is exclusive.
        header.write(unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), H::BYTES) });
    }

    /// Everything, header included.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: the invariant: so many bytes are initialised.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.header().size()) }
    }

    /// What is behind the header.
    pub(crate) fn body_mut(&mut self) -> &mut [u8] {
        let length = self.header().size() - H::BYTES;
        // SAFETY: the invariant, and `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().add(H::BYTES), length) }
    }

    /// What the allocator spends on the block.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        size_class(self.header().size())
    }

    fn reallocate(&mut self, from: usize, to: usize) {
        let (from, to) = (layout(from), layout(to));
        if from == to {
            return;
        }
        // SAFETY: `from` is the layout of the allocation, `to` is not empty and differs from it in size alone.
        let base = unsafe { realloc(self.base.as_ptr(), from, to.size()) };
        let Some(base) = NonNull::new(base) else { handle_alloc_error(to) };
        self.base = base;
    }

    /// Puts `length` bytes in the place of those in `range` (counted from the front of the block), moving what is behind them once,
    /// and returns the place for the caller to fill. `header` is the one of the block as it then is.
    pub(crate) fn splice(&mut self, range: Range<usize>, length: usize, header: H) -> &mut [u8] {
        let old = self.header().size();
        assert!(H::BYTES <= range.start && range.start <= range.end && range.end <= old, "a range of the body");
        let new = (old - (range.end - range.start)).checked_add(length).expect("a block's size fits its header");
        assert!(header.size() == new, "the header tells the block's length");
        let (gap_end, tail) = (range.start + length, old - range.end);
        if new > old {
            self.reallocate(old, new);
        }
        // SAFETY: the allocation holds `max(old, new)` bytes here. The tail's source ends at `old`, its target at `new`. Bytes that
        // were never written, from `old` on, are in the moved tail or are zeroed before the gap is handed out.
        unsafe {
            let base = self.base.as_ptr();
            if gap_end != range.end {
                std::ptr::copy(base.add(range.end), base.add(gap_end), tail);
            }
            if gap_end > old {
                std::ptr::write_bytes(base.add(old), 0, gap_end - old);
            }
        }
        self.set_header(header);
        if new < old {
            self.reallocate(old, new);
        }
        &mut self.body_mut()[range.start - H::BYTES..gap_end - H::BYTES]
    }
}

impl<H: Header> Clone for Block<H> {
    fn clone(&self) -> Self {
        Self::new(self.header(), &self.as_slice()[H::BYTES..])
    }
}

impl<H: Header> Drop for Block<H> {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and `self` was its only owner.
        unsafe { dealloc(self.base.as_ptr(), layout(self.header().size())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn block(body: &[u8]) -> Block<ListpackHeader> {
        Block::new(ListpackHeader(4 + body.len() as u32), body)
    }

    #[test]
    fn it_is_a_thin_pointer() {
        assert_eq!(size_of::<Option<Block<ListpackHeader>>>(), 8);
    }

    #[test]
    fn a_change_within_the_size_class_stays_in_place() {
        let mut block = block(&[1; 60]);
        let base = block.base;
        block.splice(10..30, 10, ListpackHeader(54)).fill(2);
        block.splice(54..54, 10, ListpackHeader(64)).fill(3);
        assert_eq!((block.base, block.bytes()), (base, 64));
        assert_eq!(block.as_slice()[4..], [&[1; 6][..], &[2; 10], &[1; 34], &[3; 10]].concat());
    }

    #[test]
    #[should_panic(expected = "a range of the body")]
    fn the_header_is_not_spliced() {
        block(&[1; 4]).splice(3..4, 1, ListpackHeader(8));
    }

    #[test]
    #[should_panic(expected = "the header tells the block's length")]
    fn a_header_that_lies_is_refused() {
        block(&[1; 4]).splice(4..4, 1, ListpackHeader(8));
    }

    proptest! {
        #[test]
        fn splices_do_what_a_vectors_do(steps in prop::collection::vec((any::<u16>(), any::<u16>(), 0usize..300), 0..40)) {
            let mut model = vec![7_u8; 3];
            let mut block = block(&model);
            for (index, (start, end, length)) in steps.into_iter().enumerate() {
                let (start, end) = (start as usize % (model.len() + 1), end as usize % (model.len() + 1));
                let range = start.min(end)..start.max(end);
                let size = 4 + model.len() - range.len() + length;
                let gap = block.splice(4 + range.start..4 + range.end, length, ListpackHeader(size as u32));
                prop_assert_eq!(gap.len(), length);
                gap.fill(index as u8);
                model.splice(range, std::iter::repeat_n(index as u8, length));
                prop_assert_eq!(&block.as_slice()[4..], &model[..]);
                let copy = block.clone();
                prop_assert_eq!(copy.as_slice(), block.as_slice());
                prop_assert_eq!(block.bytes(), size_class(size));
            }
        }
    }
}
