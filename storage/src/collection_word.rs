//! A collection as it lies in an entry: one word there, and its type in the entry's header.
//!
//! Every collection is one pointer already, whatever it leads to (`packed_or.rs`, a box); only the enum around it takes a second
//! word for the type, which an entry has room for among its bits. Those eight bytes decide which size class the entry of a small
//! hash falls into.
//!
//! All `unsafe` code is here: [`Pointer`] says of which values the word may be taken, and [`Collection::from_word`] asks for a type
//! and a word that belong together.
#![allow(unsafe_code)]

use crate::collection::Collection;
use crate::hash::Hash;
use crate::list::List;
use crate::set::Set;
use crate::sorted_set::SortedSet;
use crate::stream::Stream;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// Which type a collection has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Type {
    List,
    Hash,
    Set,
    SortedSet,
    Stream,
}

impl Type {
    /// All of them, each at the place of its number.
    pub const ALL: [Self; 5] = [Self::List, Self::Hash, Self::Set, Self::SortedSet, Self::Stream];

    /// The name, as `TYPE` gives it.
    pub fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Hash => "hash",
            Self::Set => "set",
            Self::SortedSet => "zset",
            Self::Stream => "stream",
        }
    }
}

/// A value that is nothing but a pointer.
///
/// # Safety
/// It has the size and layout of a `NonNull<u8>`: a transparent wrapper of one, or a box of something that has a size.
unsafe trait Pointer: Sized {
    fn into_word(self) -> NonNull<u8> {
        const { assert!(size_of::<Self>() == size_of::<NonNull<u8>>()) };
        let owned = ManuallyDrop::new(self);
        // SAFETY: the trait's promise. The original is not dropped, so the word is the only owner.
        unsafe { std::ptr::from_ref(&*owned).cast::<NonNull<u8>>().read() }
    }

    /// # Safety
    /// `word` comes from `into_word` of the same type. Of two values made of one word, one may be used and dropped.
    unsafe fn from_word(word: NonNull<u8>) -> Self {
        // SAFETY: the trait's promise, and the caller's.
        unsafe { std::ptr::from_ref(&word).cast::<Self>().read() }
    }
}

// SAFETY: a transparent wrapper of a `PackedOr`, which is one of a pointer.
unsafe impl Pointer for List {}
// SAFETY: as above.
unsafe impl Pointer for Hash {}
// SAFETY: as above.
unsafe impl Pointer for Set {}
// SAFETY: as above.
unsafe impl Pointer for SortedSet {}
// SAFETY: a box of a structure.
unsafe impl Pointer for Box<Stream> {}

impl Collection {
    /// Its type and its word, which is its owner from here on.
    pub(crate) fn into_word(self) -> (Type, NonNull<u8>) {
        let of_type = self.of_type();
        let word = match self {
            Self::List(value) => value.into_word(),
            Self::Hash(value) => value.into_word(),
            Self::Set(value) => value.into_word(),
            Self::SortedSet(value) => value.into_word(),
            Self::Stream(value) => value.into_word(),
        };
        (of_type, word)
    }

    /// The collection of a type and a word.
    ///
    /// # Safety
    /// Both come from one call of `into_word`. Of several collections made of one word, only one may be changed or dropped, and none
    /// used after that.
    pub(crate) unsafe fn from_word(of_type: Type, word: NonNull<u8>) -> Self {
        // SAFETY: the caller's promise, of which the type tells whose `into_word` it was.
        unsafe {
            match of_type {
                Type::List => Self::List(Pointer::from_word(word)),
                Type::Hash => Self::Hash(Pointer::from_word(word)),
                Type::Set => Self::Set(Pointer::from_word(word)),
                Type::SortedSet => Self::SortedSet(Pointer::from_word(word)),
                Type::Stream => Self::Stream(Pointer::from_word(word)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collection::Kind;

    #[test]
    fn every_type_goes_into_its_word_and_comes_back() {
        for (at, of_type) in Type::ALL.into_iter().enumerate() {
            assert_eq!(of_type as usize, at);
        }
        for collection in [List::empty(), Hash::empty(), Set::empty(), SortedSet::empty(), Stream::empty()] {
            let (name, bytes) = (collection.type_name(), collection.bytes());
            let (of_type, word) = collection.into_word();
            // SAFETY: of one call, and once.
            let back = unsafe { Collection::from_word(of_type, word) };
            assert_eq!((back.type_name(), back.bytes(), of_type.name()), (name, bytes, name));
        }
    }
}
