//! Walks over the hash table: every element, the n-th, the step of a scan, and a probe at a random bucket.

use super::{Bucket, Element, GROUPS, SlotTable, WAYS, element_of, group_of, pack, tag_of};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;

/// The buckets of a table, each with its chain behind it.
struct Buckets<'a, E: Element> {
    table: &'a SlotTable<E>,
    /// The next array bucket to go to when the chain ends.
    index: usize,
    chain: *const Bucket,
}

impl<'a, E: Element> Iterator for Buckets<'a, E> {
    type Item = &'a Bucket;

    #[inline]
    fn next(&mut self) -> Option<&'a Bucket> {
        if self.chain.is_null() {
            if self.index == self.table.bucket_count() {
                return None;
            }
            // SAFETY: inside the array.
            self.chain = unsafe { self.table.buckets.add(self.index) };
            self.index += 1;
        }
        // SAFETY: buckets live as long as the table, which is borrowed.
        let bucket = unsafe { &*self.chain };
        self.chain = bucket.next();
        Some(bucket)
    }
}

/// The tags and words of a table.
pub(super) struct Words<'a, E: Element> {
    buckets: Buckets<'a, E>,
    bucket: Option<&'a Bucket>,
    /// The ways of `bucket` that are still to come, as bits.
    ways: u8,
}

impl<E: Element> Iterator for Words<'_, E> {
    type Item = (u8, u64);

    #[inline]
    fn next(&mut self) -> Option<(u8, u64)> {
        while self.ways == 0 {
            let bucket = self.buckets.next()?;
            (self.bucket, self.ways) = (Some(bucket), bucket.used());
        }
        let way = self.ways.trailing_zeros() as usize;
        self.ways &= self.ways - 1;
        self.bucket.map(|bucket| (bucket.head[way], bucket.words[way]))
    }
}

/// The elements of a table, in no particular order.
pub(crate) struct Elements<'a, E: Element> {
    words: Words<'a, E>,
    elements: PhantomData<&'a E>,
}

impl<'a, E: Element> Iterator for Elements<'a, E> {
    type Item = E::View<'a>;

    #[inline]
    fn next(&mut self) -> Option<E::View<'a>> {
        // SAFETY: a used word holds a live element, borrowed with the table.
        self.words.next().map(|(_, word)| unsafe { E::view(element_of(word)) })
    }
}

impl<E: Element> SlotTable<E> {
    fn buckets(&self) -> Buckets<'_, E> {
        Buckets { table: self, index: 0, chain: std::ptr::null() }
    }

    /// The bucket at `index`, wrapped into the array, with its chain; nothing when there is no array.
    fn chain(&self, index: usize) -> impl Iterator<Item = &Bucket> {
        let count = self.bucket_count();
        // SAFETY: the index is wrapped into the array.
        let first = if count == 0 { std::ptr::null() } else { unsafe { self.buckets.add(index % count) } };
        Buckets { table: self, index: count, chain: first }
    }

    pub(super) fn words(&self) -> Words<'_, E> {
        Words { buckets: self.buckets(), bucket: None, ways: 0 }
    }

    /// The elements, in no particular order.
    pub fn iter(&self) -> Elements<'_, E> {
        Elements { words: self.words(), elements: PhantomData }
    }

    /// Gives every element to `with` and leaves the table empty.
    pub fn drain(&mut self, mut with: impl FnMut(E)) {
        let mut old = std::mem::take(self);
        for (_, word) in old.words() {
            // SAFETY: each word owns its element; the words are gone before anything else reads them.
            with(unsafe { E::from_raw(element_of(word)) });
        }
        old.release_buckets();
    }

    /// The elements whose tag and hash bits are those of `hash`.
    pub fn scan_hash(&self, hash: u64, mut with: impl FnMut(E::View<'_>)) {
        for bucket in self.chain(usize::from(hash as u16)) {
            let matches = bucket.matches(tag_of(hash));
            for way in (0..WAYS).filter(|way| matches & (1 << way) != 0) {
                if bucket.words[way] >> 48 == hash & 0xffff {
                    // SAFETY: a used word holds a live element.
                    with(unsafe { E::view(element_of(bucket.words[way])) });
                }
            }
        }
    }

    /// The elements of one group.
    pub fn for_group<'a>(&'a self, group: u32, mut with: impl FnMut(E::View<'a>)) {
        let first = if self.buckets.is_null() { 0 } else { group as usize & usize::from(self.mask) };
        for index in (first..self.bucket_count()).step_by(GROUPS as usize) {
            for bucket in self.chain(index) {
                for way in (0..WAYS).filter(|way| bucket.used() & (1 << way) != 0) {
                    if group_of(bucket.words[way] >> 48) == group {
                        // SAFETY: a used word holds a live element.
                        with(unsafe { E::view(element_of(bucket.words[way])) });
                    }
                }
            }
        }
    }

    /// Every element, in no particular order.
    pub fn for_each(&self, with: impl FnMut(E::View<'_>)) {
        self.iter().for_each(with);
    }

    /// Lends every element as it is owned, to be copied.
    pub fn for_each_owned(&self, mut with: impl FnMut(&E)) {
        for (_, word) in self.words() {
            // SAFETY: the word goes on owning the element: what is taken back here is lent for reading and never dropped.
            let element = ManuallyDrop::new(unsafe { E::from_raw(element_of(word)) });
            with(&element);
        }
    }

    /// The element that has `rank` others before it in the table's present order.
    pub fn nth(&self, rank: usize) -> Option<E::View<'_>> {
        nth_of(self.buckets(), rank)
            // SAFETY: a used word holds a live element, borrowed with the table.
            .map(|word| unsafe { E::view(element_of(word)) })
    }

    /// As `nth`, among the elements for which `is_counted` holds.
    pub fn nth_where(&self, rank: usize, is_counted: impl Fn(E::View<'_>) -> bool) -> Option<E::View<'_>> {
        self.iter().filter(|element| is_counted(*element)).nth(rank)
    }

    /// How many elements are in the bucket at `index` (wrapped into the array) and its chain.
    pub fn count_at(&self, index: usize) -> usize {
        self.chain(index).map(|bucket| bucket.used().count_ones() as usize).sum()
    }

    /// The element that has `rank` others before it in the bucket at `index` and its chain.
    pub fn nth_at(&self, index: usize, rank: usize) -> Option<E::View<'_>> {
        nth_of(self.chain(index), rank)
            // SAFETY: a used word holds a live element, borrowed with the table.
            .map(|word| unsafe { E::view(element_of(word)) })
    }

    /// One step of a scan: calls `with` for the elements of the bucket that `cursor` names and returns the next cursor, 0 at the
    /// end. The cursor counts in reversed binary, so that a bucket visited stays visited when the table doubles or halves.
    pub fn scan(&self, cursor: u64, mut with: impl FnMut(E::View<'_>)) -> u64 {
        if self.buckets.is_null() {
            return 0;
        }
        let mask = u64::from(self.mask);
        for bucket in self.chain((cursor & mask) as usize) {
            for way in (0..WAYS).filter(|way| bucket.used() & (1 << way) != 0) {
                // SAFETY: a used word holds a live element.
                with(unsafe { E::view(element_of(bucket.words[way])) });
            }
        }
        (cursor | !mask).reverse_bits().wrapping_add(1).reverse_bits()
    }
}

impl<E: Element> SlotTable<E> {
    /// One step of a scan, as [`SlotTable::scan`], in which elements may be changed.
    pub fn scan_mut(&mut self, cursor: u64, mut with: impl FnMut(&mut E)) -> u64 {
        if self.buckets.is_null() {
            return 0;
        }
        let mask = u64::from(self.mask);
        // SAFETY: inside the array.
        let mut at = unsafe { self.buckets.add((cursor & mask) as usize) };
        while !at.is_null() {
            // SAFETY: a bucket of this table, which is held exclusively.
            let bucket = unsafe { &mut *at };
            let used = bucket.used();
            for way in (0..WAYS).filter(|way| used & (1 << way) != 0) {
                let word = &mut bucket.words[way];
                // SAFETY: the word owns the element; ownership goes back into it below.
                let mut element = unsafe { E::from_raw(element_of(*word)) };
                with(&mut element);
                *word = pack(*word >> 48, element.into_raw());
            }
            at = bucket.next();
        }
        (cursor | !mask).reverse_bits().wrapping_add(1).reverse_bits()
    }
}

/// The word that has `rank` used ones before it. Whole buckets are counted by their bits.
fn nth_of<'a>(buckets: impl Iterator<Item = &'a Bucket>, mut rank: usize) -> Option<u64> {
    for bucket in buckets {
        let (mut used, count) = (bucket.used(), bucket.used().count_ones() as usize);
        if rank >= count {
            rank -= count;
            continue;
        }
        for _ in 0..rank {
            used &= used - 1;
        }
        return Some(bucket.words[used.trailing_zeros() as usize]);
    }
    None
}
