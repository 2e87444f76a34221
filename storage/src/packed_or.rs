//! One word that is a packed value or a box: what a collection is before and after it has outgrown its packed form.
//!
//! A collection in its entry is a type and one word (`collection.rs`). A packed value is a pointer to a block aligned to four
//! bytes, a box of a structure one to eight; so the lowest bit tells them apart, and neither costs an allocation for saying
//! which it is.
//!
//! All `unsafe` code is here. The invariant behind it: with the lowest bit clear, the word is the bytes of a live `P` owned by
//! this value; with it set, the word is one byte behind a `Box<L>` owned by this value.
#![allow(unsafe_code)]

use crate::intset::Intset;
use crate::listpack::Listpack;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// A value that is nothing but a pointer to a block.
///
/// # Safety
/// It has the size and layout of a `NonNull<u8>` (`repr(transparent)`), and the pointer in it is aligned to at least two bytes.
pub(crate) unsafe trait Thin {}

// SAFETY: a transparent wrapper of a `Block`, which is one of a pointer to an allocation aligned to four bytes.
unsafe impl Thin for Listpack {}
// SAFETY: as above.
unsafe impl Thin for Intset {}

/// One of two forms.
#[derive(Debug)]
pub(crate) enum Form<P, L> {
    /// The packed one.
    Packed(P),
    /// The large one.
    Large(L),
}

/// A packed `P` or a large `L`. See the file's head.
#[repr(transparent)]
pub(crate) struct PackedOr<P: Thin, L> {
    word: NonNull<u8>,
    owns: PhantomData<(P, Box<L>)>,
}

// SAFETY: it owns what a `P` or a `Box<L>` owns, and nothing else.
unsafe impl<P: Thin + Send, L: Send> Send for PackedOr<P, L> {}
// SAFETY: as above.
unsafe impl<P: Thin + Sync, L: Sync> Sync for PackedOr<P, L> {}

const LARGE: usize = 1;

impl<P: Thin, L> PackedOr<P, L> {
    const FIT: () = assert!(size_of::<P>() == size_of::<NonNull<u8>>() && align_of::<L>() > LARGE);

    /// The packed form.
    pub fn packed(value: P) -> Self {
        let () = Self::FIT;
        // SAFETY: `Thin` promises that the value is a pointer; from here on this is its only owner.
        let word = unsafe { std::ptr::from_ref(&*ManuallyDrop::new(value)).cast::<NonNull<u8>>().read() };
        debug_assert!(word.addr().get() & LARGE == 0, "a block is aligned");
        Self { word, owns: PhantomData }
    }

    /// The large form.
    pub fn large(value: Box<L>) -> Self {
        let () = Self::FIT;
        let word = NonNull::from(Box::leak(value)).cast::<u8>();
        // SAFETY: one byte behind the start of a box is in it or at its end, since its alignment is at least two; an `L` without
        // a size has a pointer that is never followed.
        Self { word: unsafe { NonNull::new_unchecked(word.as_ptr().wrapping_add(LARGE)) }, owns: PhantomData }
    }

    fn is_large(&self) -> bool {
        self.word.addr().get() & LARGE != 0
    }

    fn large_pointer(&self) -> *mut L {
        self.word.as_ptr().wrapping_sub(LARGE).cast()
    }

    /// The form that it has.
    #[inline]
    pub fn get(&self) -> Form<&P, &L> {
        if self.is_large() {
            // SAFETY: the invariant; the box lives as long as `self` is borrowed.
            Form::Large(unsafe { &*self.large_pointer() })
        } else {
            // SAFETY: the invariant: the word is a `P`.
            Form::Packed(unsafe { &*std::ptr::from_ref(&self.word).cast::<P>() })
        }
    }

    /// The form that it has, to be changed.
    #[inline]
    pub fn get_mut(&mut self) -> Form<&mut P, &mut L> {
        if self.is_large() {
            // SAFETY: the invariant, and `&mut self` is exclusive.
            Form::Large(unsafe { &mut *self.large_pointer() })
        } else {
            // SAFETY: the invariant; whatever is written there is a `P` again, whose lowest bit is clear.
            Form::Packed(unsafe { &mut *std::ptr::from_mut(&mut self.word).cast::<P>() })
        }
    }

    /// Takes it apart.
    pub fn into_form(self) -> Form<P, Box<L>> {
        let this = ManuallyDrop::new(self);
        if this.is_large() {
            // SAFETY: the invariant; `this` is not dropped, so that the box has one owner.
            Form::Large(unsafe { Box::from_raw(this.large_pointer()) })
        } else {
            // SAFETY: as above.
            Form::Packed(unsafe { std::ptr::from_ref(&this.word).cast::<P>().read() })
        }
    }
}

impl<P: Thin, L> Drop for PackedOr<P, L> {
    fn drop(&mut self) {
        // SAFETY: `self` is not used again; the copy is its only owner from here on.
        drop(Self { word: self.word, owns: PhantomData }.into_form());
    }
}

impl<P: Thin + Clone, L: Clone> Clone for PackedOr<P, L> {
    fn clone(&self) -> Self {
        match self.get() {
            Form::Packed(value) => Self::packed(value.clone()),
            Form::Large(value) => Self::large(Box::new(value.clone())),
        }
    }
}

impl<P: Thin + Default, L> Default for PackedOr<P, L> {
    fn default() -> Self {
        Self::packed(P::default())
    }
}

impl<P: Thin + std::fmt::Debug, L: std::fmt::Debug> std::fmt::Debug for PackedOr<P, L> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.get() {
            Form::Packed(value) => value.fmt(formatter),
            Form::Large(value) => value.fmt(formatter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    type Either = PackedOr<Listpack, Rc<u32>>;

    #[test]
    fn it_is_one_word_and_gives_back_what_was_put_in() {
        assert_eq!(size_of::<Option<Either>>(), 8);
        let counted = Rc::new(7);
        let mut either = Either::large(Box::new(counted.clone()));
        let copy = either.clone();
        assert_eq!(Rc::strong_count(&counted), 3);
        assert!(matches!(either.get(), Form::Large(value) if **value == 7));
        either = Either::default();
        assert_eq!(Rc::strong_count(&counted), 2);
        drop(copy);
        assert_eq!(Rc::strong_count(&counted), 1);
        let Form::Packed(list) = either.get_mut() else { panic!("the empty one is packed") };
        (0..100_i64).for_each(|number| list.push_back(number));
        let copy = either.clone();
        let (Form::Packed(list), Form::Packed(same)) = (either.into_form(), copy.get()) else { panic!("still packed") };
        assert_eq!((list.len(), list.as_bytes()), (100, same.as_bytes()));
        let Form::Large(value) = Either::large(Box::new(counted.clone())).into_form() else { panic!("large") };
        assert_eq!(Rc::strong_count(&value), 2);
    }
}
