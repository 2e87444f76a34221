//! The hash table: buckets of one cache line, each with seven elements. Each slot of the keyspace has one, and each large
//! collection a directory of them (`dict.rs`).
//!
//! ```text
//! bucket, 64 bytes:  [ tag 0 .. tag 6 ][ used bits 0..7 | chained bit 7 ][ word 0 ] .. [ word 6 ]
//! word, 64 bits:     [ low 16 bits of the hash ][ 48-bit pointer to the element ]
//! ```
//!
//! A lookup reads one cache line and compares seven tags at once; it touches an element only when eight bits of tag and sixteen
//! of hash agree. When a bucket is full, its last word points to a further bucket instead. Sizes are powers of two and elements
//! are placed by the low bits of the hash, so `SCAN`'s reverse-binary cursor keeps its promise over any growth or shrinking
//! (every element present throughout is returned at least once). The hash bits kept in the word let a table grow without
//! touching an element.
//!
//! A slot's table stays small (a sixteen-thousandth of the keyspace), so growing one is never a stall.
#![allow(unsafe_code)]

use crate::element::Element;
use crate::entry::Entry;
use crate::key_hash::tag_of;
use crate::prefetch::{CACHE_LINE, prefetch};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ptr::NonNull;

#[path = "slot_table_walk.rs"]
mod walk;
pub(crate) use walk::Elements;

const WAYS: usize = 7;
const CHAINED: u8 = 1 << 7;
const ADDRESS: u64 = (1 << 48) - 1;
/// Words keep sixteen bits of hash, so a table has at most this many buckets and chains beyond.
const BUCKETS_MAX: usize = 1 << 16;

/// Elements are in so many groups, by the lowest bits of their hash: those of one group are in few buckets, whatever the size.
pub(crate) const GROUPS: u32 = 64;

/// The group of an element with this hash.
pub(crate) fn group_of(hash: u64) -> u32 {
    (hash & u64::from(GROUPS - 1)) as u32
}

#[repr(C, align(64))]
struct Bucket {
    /// Seven tags, then which ways are used and whether the last word leads on.
    head: [u8; 8],
    words: [u64; WAYS],
}

impl Bucket {
    #[inline]
    fn state(&self) -> u8 {
        self.head[WAYS]
    }

    #[inline]
    fn is_chained(&self) -> bool {
        self.state() & CHAINED != 0
    }

    /// How many words hold elements rather than the way to the next bucket.
    #[inline]
    fn ways(&self) -> usize {
        WAYS - usize::from(self.is_chained())
    }

    /// The ways that hold elements, as bits.
    #[inline]
    fn used(&self) -> u8 {
        self.state() & if self.is_chained() { 0x3f } else { 0x7f }
    }

    #[inline]
    fn next(&self) -> *mut Bucket {
        if !self.is_chained() { std::ptr::null_mut() } else { self.words[WAYS - 1] as *mut Bucket }
    }

    #[inline]
    fn is_used(&self, way: usize) -> bool {
        self.state() & (1 << way) != 0
    }

    /// The used ways whose tag is `tag`, as bits 0..7. All seven are compared in one word: a byte of `differences` is zero where a
    /// tag agrees, and only such a byte has its high bit set in `zeros` (the test of Mycroft, exact for the lowest such byte and
    /// above it wrong only towards "agrees", which the full comparison of hash and key corrects).
    #[inline]
    fn matches(&self, tag: u8) -> u8 {
        const LOW: u64 = 0x0101_0101_0101_0101;
        const HIGH: u64 = 0x8080_8080_8080_8080;
        /// Gathers the high bits of eight bytes into one.
        const GATHER: u64 = 0x0102_0408_1020_4080;
        let differences = u64::from_le_bytes(self.head) ^ (LOW * u64::from(tag));
        let zeros = differences.wrapping_sub(LOW) & !differences & HIGH;
        let found = ((zeros >> 7).wrapping_mul(GATHER) >> 56) as u8;
        found & self.used()
    }
}

/// A place in a table that holds an element. Valid until the table changes in any other way than through it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    bucket: NonNull<u8>,
    way: u8,
}

/// The elements of one slot, or of one part of a collection.
pub(crate) struct SlotTable<E: Element = Entry> {
    buckets: *mut Bucket,
    len: u32,
    /// Number of buckets less one; meaningless while `buckets` is null.
    mask: u16,
    /// Number of chained buckets (65,535 stands for more, which only hashes that nobody can choose could bring about).
    chained: u16,
    elements: PhantomData<E>,
}

// SAFETY: the table owns its buckets and elements; nothing in them is tied to a thread.
unsafe impl<E: Element> Send for SlotTable<E> {}
// SAFETY: `&SlotTable` only reads.
unsafe impl<E: Element> Sync for SlotTable<E> {}

impl<E: Element> Default for SlotTable<E> {
    fn default() -> Self {
        Self { buckets: std::ptr::null_mut(), len: 0, mask: 0, chained: 0, elements: PhantomData }
    }
}

fn pack(hash: u64, element: NonNull<u8>) -> u64 {
    let address = element.as_ptr() as u64;
    assert!(address & !ADDRESS == 0, "user addresses have 48 bits");
    hash << 48 | address
}

fn element_of(word: u64) -> NonNull<u8> {
    NonNull::new((word & ADDRESS) as *mut u8).expect("a used word holds an address")
}

fn allocate(count: usize) -> *mut Bucket {
    let layout = Layout::array::<Bucket>(count).expect("at most 2^16 buckets");
    // SAFETY: the size is not zero, and all-zero bytes are an empty bucket.
    let buckets = unsafe { alloc_zeroed(layout) }.cast::<Bucket>();
    if buckets.is_null() {
        handle_alloc_error(layout);
    }
    buckets
}

fn deallocate(buckets: *mut Bucket, count: usize) {
    // SAFETY: made by `allocate(count)`.
    unsafe { dealloc(buckets.cast(), Layout::array::<Bucket>(count).expect("as allocated")) }
}

impl<E: Element> SlotTable<E> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Number of buckets, chained ones not counted; a power of two, or none.
    pub fn bucket_count(&self) -> usize {
        if self.buckets.is_null() { 0 } else { self.mask as usize + 1 }
    }

    /// Bytes of the buckets.
    pub fn bytes(&self) -> usize {
        (self.bucket_count() + usize::from(self.chained)) * size_of::<Bucket>()
    }

    /// A table that `count` elements fill without its growing.
    pub fn with_room(count: usize) -> Self {
        let buckets = count.div_ceil(E::LOAD).next_power_of_two().min(BUCKETS_MAX);
        let mut table = Self::default();
        (table.buckets, table.mask) = (allocate(buckets), (buckets - 1) as u16);
        table
    }

    fn first_bucket(&self, hash: u64) -> *mut Bucket {
        // SAFETY: callers have checked that the array is there; the mask keeps the index inside.
        unsafe { self.buckets.add(usize::from(hash as u16 & self.mask)) }
    }

    /// The address of the bucket that `hash` leads to, to be prefetched.
    #[inline]
    pub fn bucket_address(&self, hash: u64) -> *const u8 {
        if self.buckets.is_null() { std::ptr::null() } else { self.first_bucket(hash) as *const u8 }
    }

    /// The address of the first element whose tag and hash bits agree, to be prefetched. Touches no element.
    #[inline]
    pub fn likely_entry(&self, hash: u64) -> *const u8 {
        if self.buckets.is_null() {
            return std::ptr::null();
        }
        // SAFETY: a bucket of this table.
        let bucket = unsafe { &*self.first_bucket(hash) };
        match bucket.matches(tag_of(hash)) {
            0 => std::ptr::null(),
            matches => (bucket.words[matches.trailing_zeros() as usize] & ADDRESS) as *const u8,
        }
    }

    /// Finds the element of a key.
    #[inline]
    pub fn find(&self, hash: u64, key: &[u8]) -> Option<Place> {
        if self.buckets.is_null() {
            return None;
        }
        let tag = tag_of(hash);
        let mut at = self.first_bucket(hash);
        while !at.is_null() {
            // SAFETY: buckets in a chain live as long as the table.
            let bucket = unsafe { &*at };
            let mut matches = bucket.matches(tag);
            while matches != 0 {
                let way = matches.trailing_zeros() as usize;
                matches &= matches - 1;
                let word = bucket.words[way];
                if E::IS_LONG {
                    // The value lies behind the key, often on the next line: it is on its way while the key is compared.
                    prefetch(((word & ADDRESS) as *const u8).wrapping_add(CACHE_LINE));
                }
                // SAFETY: a used word holds a live element of this table.
                if word >> 48 == hash & 0xffff && E::key(unsafe { E::view(element_of(word)) }) == key {
                    return Some(Place { bucket: NonNull::new(at.cast()).expect("not null"), way: way as u8 });
                }
            }
            at = bucket.next();
        }
        None
    }

    fn bucket(&self, place: Place) -> &Bucket {
        // SAFETY: places come from this table and are not kept across changes of its buckets.
        unsafe { &*place.bucket.as_ptr().cast::<Bucket>() }
    }

    #[expect(clippy::needless_pass_by_ref_mut, reason = "exclusive access is what makes the borrow sound")]
    fn bucket_mut(&mut self, place: Place) -> &mut Bucket {
        // SAFETY: as `bucket`, and `&mut self` is exclusive.
        unsafe { &mut *place.bucket.as_ptr().cast::<Bucket>() }
    }

    /// The element at a place.
    #[inline]
    pub fn view(&self, place: Place) -> E::View<'_> {
        // SAFETY: a used word holds a live element, borrowed with the table.
        unsafe { E::view(element_of(self.bucket(place).words[place.way as usize])) }
    }

    /// Changes the element at a place; it may move.
    pub fn change<R>(&mut self, place: Place, with: impl FnOnce(&mut E) -> R) -> R {
        let word = &mut self.bucket_mut(place).words[place.way as usize];
        // SAFETY: the word owns the element; ownership goes back into it below. A panic in `with` would leave a stale word, which is
        // why a panic in a shard stops the node.
        let mut element = unsafe { E::from_raw(element_of(*word)) };
        let result = with(&mut element);
        let hash = *word >> 48;
        *word = pack(hash, element.into_raw());
        result
    }

    /// Adds an element whose key is not in the table.
    pub fn insert(&mut self, hash: u64, element: E) -> Place {
        if self.buckets.is_null() {
            (self.buckets, self.mask, self.chained) = (allocate(1), 0, 0);
        } else if self.len as usize >= self.bucket_count() * E::LOAD && self.bucket_count() < BUCKETS_MAX {
            self.resize(self.bucket_count() * 2);
        }
        self.len += 1;
        self.place(tag_of(hash), pack(hash, element.into_raw()))
    }

    /// Puts a word into the first free way of its chain, lengthening the chain when there is none.
    fn place(&mut self, tag: u8, word: u64) -> Place {
        let mut at = self.first_bucket(word >> 48);
        loop {
            // SAFETY: a bucket of this table, held exclusively.
            let bucket = unsafe { &mut *at };
            let ways = bucket.ways();
            if let Some(way) = (0..ways).find(|way| !bucket.is_used(*way)) {
                bucket.head[way] = tag;
                bucket.words[way] = word;
                bucket.head[WAYS] |= 1 << way;
                return Place { bucket: NonNull::new(at.cast()).expect("not null"), way: way as u8 };
            }
            if !bucket.is_chained() {
                let next = allocate(1);
                self.chained = self.chained.saturating_add(1);
                // SAFETY: just allocated.
                let child = unsafe { &mut *next };
                child.head[0] = bucket.head[WAYS - 1];
                child.words[0] = bucket.words[WAYS - 1];
                child.head[WAYS] = 1;
                bucket.words[WAYS - 1] = next as u64;
                bucket.head[WAYS] = (bucket.state() & 0x3f) | CHAINED;
            }
            at = bucket.next();
        }
    }

    /// Takes the element at a place out of the table.
    pub fn remove(&mut self, place: Place) -> E {
        let bucket = self.bucket_mut(place);
        bucket.head[WAYS] &= !(1 << place.way);
        let base = element_of(bucket.words[place.way as usize]);
        self.len -= 1;
        if self.len == 0 {
            self.release_buckets();
        } else if self.bucket_count() > 1 && (self.len as usize) < self.bucket_count() * E::LOAD / 6 {
            self.resize(self.bucket_count() / 2);
        }
        // SAFETY: the word that owned the element is gone.
        unsafe { E::from_raw(base) }
    }

    fn resize(&mut self, count: usize) {
        let mut old = std::mem::take(self);
        self.buckets = allocate(count);
        self.mask = (count - 1) as u16;
        self.len = old.len;
        for (tag, word) in old.words() {
            self.place(tag, word);
        }
        old.release_buckets();
    }

    /// Frees the buckets, not the elements.
    fn release_buckets(&mut self) {
        for index in 0..self.bucket_count() {
            // SAFETY: inside the array.
            let mut at = unsafe { (*self.buckets.add(index)).next() };
            while !at.is_null() {
                // SAFETY: a chained bucket, read before it is freed.
                let next = unsafe { (*at).next() };
                deallocate(at, 1);
                at = next;
            }
        }
        if !self.buckets.is_null() {
            deallocate(self.buckets, self.bucket_count());
        }
        (self.buckets, self.mask, self.chained, self.len) = (std::ptr::null_mut(), 0, 0, 0);
    }
}

impl<E: Element> Drop for SlotTable<E> {
    fn drop(&mut self) {
        for (_, word) in self.words() {
            // SAFETY: each word owns its element, and nothing reads the words afterwards.
            unsafe { E::from_raw(element_of(word)) }.free();
        }
        self.release_buckets();
    }
}

#[cfg(test)]
#[path = "slot_table_tests.rs"]
mod tests;
