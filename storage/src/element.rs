//! What the hash table holds: elements that are one pointer wide. The keyspace's entries are such elements, and so are the
//! members of sets, the fields of hashes and the members of sorted sets.
#![allow(unsafe_code)]

use crate::entry::{Entry, EntryRef};
use std::ptr::NonNull;

/// Something with a key, owned through one pointer.
///
/// # Safety
/// The raw pointer has at most 48 bits, `view` and `from_raw` read back what `into_raw` gave out, the key stays the same for the
/// element's life, and nothing in an element is tied to a thread.
pub unsafe trait Element: Sized {
    /// A borrowed element.
    type View<'a>: Copy;

    /// How many elements to a bucket of seven a table may have before it doubles. More than seven saves memory: the fuller the
    /// buckets, the less the last doubling has left empty; fewer saves a second cache line on a lookup.
    const LOAD: usize;

    /// Whether what is asked for lies behind the key, so that the line behind the first is wanted too.
    const IS_LONG: bool;

    /// Gives the element away.
    fn into_raw(self) -> NonNull<u8>;

    /// Takes the element back.
    ///
    /// # Safety
    /// `raw` comes from `into_raw`, and is turned back once (more than once, if all but one are only read and never dropped).
    unsafe fn from_raw(raw: NonNull<u8>) -> Self;

    /// Looks at an element that has been given away.
    ///
    /// # Safety
    /// `raw` comes from `into_raw`, is not turned back during `'a`, and the element is not changed during it.
    unsafe fn view<'a>(raw: NonNull<u8>) -> Self::View<'a>;

    /// Looks at an element that is owned.
    fn view_of(&self) -> Self::View<'_>;

    /// The element's key.
    fn key(view: Self::View<'_>) -> &[u8];

    /// What the allocator spends on the element.
    fn bytes(view: Self::View<'_>) -> usize;

    /// Frees the element.
    fn free(self);
}

// SAFETY: an entry's raw pointer is its allocation, which it owns alone; its key is never written again.
unsafe impl Element for Entry {
    type View<'a> = EntryRef<'a>;
    const LOAD: usize = 8;
    const IS_LONG: bool = true;

    #[inline]
    fn into_raw(self) -> NonNull<u8> {
        Self::into_raw(self)
    }

    #[inline]
    unsafe fn from_raw(raw: NonNull<u8>) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::from_raw(raw) }
    }

    #[inline]
    unsafe fn view<'a>(raw: NonNull<u8>) -> EntryRef<'a> {
        // SAFETY: the caller's promise.
        unsafe { EntryRef::from_raw(raw) }
    }

    #[inline]
    fn view_of(&self) -> EntryRef<'_> {
        self.view()
    }

    #[inline]
    fn key(view: Self::View<'_>) -> &[u8] {
        // The inherent method borrows for as long as the entry.
        EntryRef::key(&view)
    }

    fn bytes(view: EntryRef<'_>) -> usize {
        crate::database::size_class(view.size())
    }

    fn free(self) {
        Self::free(self);
    }
}
