//! A small set as one word: an intset or a listpack, told apart by what they begin with.
//!
//! An intset begins with its width, which is 2, 4 or 8; a listpack with its length, which is 7 or at least 9, since its head takes
//! six bytes, its end one and an element two or more. So nothing beside the block needs to say which it is.
//!
//! All `unsafe` code is here. The invariant behind it: the word is the bytes of a live `Intset` or `Listpack` owned by this value,
//! and both are a pointer to a block that begins with such a number (`block.rs`).
#![allow(unsafe_code)]

use crate::intset::Intset;
use crate::listpack::Listpack;
use crate::packed_or::Thin;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

#[repr(C)]
union Word {
    ints: ManuallyDrop<Intset>,
    list: ManuallyDrop<Listpack>,
    head: NonNull<u32>,
}

/// An intset or a listpack. See the file's head.
#[repr(transparent)]
pub(crate) struct PackedSet(Word);

const _: () = assert!(size_of::<PackedSet>() == size_of::<NonNull<u8>>());

// SAFETY: a transparent wrapper of a pointer to a block, which is aligned to four bytes.
unsafe impl Thin for PackedSet {}
// SAFETY: it owns an `Intset` or a `Listpack`, both of which may be sent.
unsafe impl Send for PackedSet {}
// SAFETY: as above; a shared one is only read.
unsafe impl Sync for PackedSet {}

/// Which of the two it is.
#[derive(Debug)]
pub(crate) enum Which<I, L> {
    /// An intset.
    Ints(I),
    /// A listpack.
    List(L),
}

impl PackedSet {
    #[inline]
    fn is_ints(&self) -> bool {
        // SAFETY: the invariant: whichever it is, the word points to a block of at least four bytes, aligned to four.
        let head = unsafe { self.0.head.read() };
        matches!(u32::from_le(head), 2 | 4 | 8)
    }

    /// The set, to be read.
    #[inline]
    pub fn get(&self) -> Which<&Intset, &Listpack> {
        if self.is_ints() {
            // SAFETY: the block begins as only an intset's does.
            Which::Ints(unsafe { &self.0.ints })
        } else {
            // SAFETY: the block begins as no intset's does.
            Which::List(unsafe { &self.0.list })
        }
    }

    /// The set, to be changed.
    #[inline]
    pub fn get_mut(&mut self) -> Which<&mut Intset, &mut Listpack> {
        if self.is_ints() {
            // SAFETY: as in `get`; whatever is written there is an intset again.
            Which::Ints(unsafe { &mut self.0.ints })
        } else {
            // SAFETY: as in `get`; whatever is written there is a listpack again.
            Which::List(unsafe { &mut self.0.list })
        }
    }
}

impl From<Intset> for PackedSet {
    fn from(set: Intset) -> Self {
        Self(Word { ints: ManuallyDrop::new(set) })
    }
}

impl From<Listpack> for PackedSet {
    fn from(list: Listpack) -> Self {
        Self(Word { list: ManuallyDrop::new(list) })
    }
}

impl Default for PackedSet {
    fn default() -> Self {
        Self::from(Intset::new())
    }
}

impl Drop for PackedSet {
    fn drop(&mut self) {
        if self.is_ints() {
            // SAFETY: it is an intset, and is not used again.
            unsafe { ManuallyDrop::drop(&mut self.0.ints) }
        } else {
            // SAFETY: it is a listpack, and is not used again.
            unsafe { ManuallyDrop::drop(&mut self.0.list) }
        }
    }
}

impl Clone for PackedSet {
    fn clone(&self) -> Self {
        match self.get() {
            Which::Ints(set) => Self::from(set.clone()),
            Which::List(list) => Self::from(list.clone()),
        }
    }
}

impl std::fmt::Debug for PackedSet {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_known_at_every_size_and_width() {
        let mut ints = PackedSet::default();
        for (bits, count) in (0..63).flat_map(|bits| [(bits, 2 * bits), (bits, 2 * bits + 1)]) {
            let Which::Ints(set) = ints.get_mut() else { panic!("an intset stays one") };
            assert_eq!(set.len(), count);
            set.insert((1 << bits) * if count % 2 == 0 { 1 } else { -1 });
        }
        let mut list = PackedSet::from(Listpack::new());
        for count in 0..300_i64 {
            let Which::List(inner) = list.clone().get_mut().into_list() else { panic!("a listpack stays one") };
            assert_eq!(inner, count as usize);
            let Which::List(inner) = list.get_mut() else { panic!("a listpack stays one") };
            inner.push_back(count);
        }
        list = PackedSet::from(Intset::new());
        assert!(matches!(list.get(), Which::Ints(_)));
    }

    impl Which<&mut Intset, &mut Listpack> {
        fn into_list(self) -> Which<(), usize> {
            match self {
                Self::Ints(_) => Which::Ints(()),
                Self::List(list) => Which::List(list.len()),
            }
        }
    }
}
