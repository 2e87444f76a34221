//! Packed lists: Redis's listpack, byte for byte, behind one thin pointer.
//!
//! ```text
//! 0             4               6                       total - 1
//! [ total u32 ][ count u16    ][ element | element ... ][ FF ]      little endian; `wire.rs` has the elements
//!                65535: unknown, to be counted by walking
//! ```
//!
//! Small lists, hashes, sets and sorted sets are kept so, and so are the nodes of large lists: an element costs two bytes beside
//! its text, and DUMP and RDB copy the bytes as they are.
//!
//! A position (`at`) is an element's offset in bytes. It is good until the list changes; a change returns the one to go on from.
//! Every change of one place, of however many elements, is one [`Listpack::splice`]: one move of the bytes behind it, and a call
//! to the allocator only where the size class changes. Positions that are none give nonsense or panic, never more than that.

mod item;
#[cfg(test)]
mod tests;
mod wire;

pub use item::Item;

use crate::block::{Block, Header, ListpackHeader, Malformed};
use std::ops::Range;
use wire::END;

/// Where the first element is.
const FRONT: usize = 6;
const EMPTY: [u8; FRONT + 1] = [7, 0, 0, 0, 0, 0, END];
/// The count that means that there are this many elements or more, or fewer since.
const COUNT_UNKNOWN: u16 = u16::MAX;
/// The shortest element of which servers differ.
const DISPUTED_MIN: usize = 16_383;
/// The longest list that [`Listpack::fits`] allows.
const BYTES_MAX: usize = 1 << 30;

/// A packed list of texts and integers. See the module's head.
#[derive(Clone)]
#[repr(transparent)]
pub struct Listpack(Block<ListpackHeader>);

impl Default for Listpack {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Listpack {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

impl Listpack {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        Self(Block::new(ListpackHeader(EMPTY.len() as u32), &EMPTY[ListpackHeader::BYTES..]))
    }

    /// A list of `items`, in one allocation.
    #[must_use]
    pub fn of(items: &[Item<'_>]) -> Self {
        let mut list = Self::new();
        list.splice(FRONT, 0, items);
        list
    }

    /// Takes bytes from elsewhere, of which every one is checked. An empty list is a good one.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        let Checked { count, is_ours } = check(bytes).ok_or(Malformed)?;
        let total = u32::try_from(bytes.len()).map_err(|_| Malformed)?;
        if !is_ours {
            return rewritten(bytes);
        }
        let mut list = Self(Block::new(ListpackHeader(total), &bytes[ListpackHeader::BYTES..]));
        list.set_count(Some(count));
        Ok(list)
    }

    /// Whether every server reads the bytes as they are. Of elements of 16383 bytes and two other lengths (head included) Redis up
    /// to 8.2 writes something else than newer servers, and neither takes the other's: a list that holds one must be given away in
    /// another form. Walks, but only a list that is long enough for one.
    #[must_use]
    pub fn is_portable(&self) -> bool {
        let mut at = if self.end() > DISPUTED_MIN { FRONT } else { self.end() };
        while at < self.end() {
            let length = wire::length(&self.as_bytes()[at..]).expect("a position is an element's");
            if wire::is_disputed(length) {
                return false;
            }
            at += length + wire::backlen_length(length);
        }
        true
    }

    /// The list as DUMP and RDB have it.
    #[must_use]
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_slice()
    }

    /// What the allocator spends on the list, the pointer not counted.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Whether the list may grow by elements of `additional` bytes ([`Item::packed_length`]) and stay below 1 GiB. Whoever lets it
    /// grow without asking must know that it is small.
    #[must_use]
    pub fn fits(&self, additional: usize) -> bool {
        self.end().saturating_add(additional) < BYTES_MAX
    }

    fn count(&self) -> Option<usize> {
        let bytes = self.as_bytes();
        let count = u16::from_le_bytes([bytes[4], bytes[5]]);
        (count != COUNT_UNKNOWN).then_some(count.into())
    }

    fn set_count(&mut self, count: Option<usize>) {
        let count = count.and_then(|count| u16::try_from(count).ok()).unwrap_or(COUNT_UNKNOWN);
        self.0.body_mut()[..2].copy_from_slice(&count.to_le_bytes());
    }

    /// How many elements there are: at once up to 65534, by walking beyond (as in a list that once was beyond).
    #[must_use]
    pub fn len(&self) -> usize {
        self.count().unwrap_or_else(|| self.iter().count())
    }

    /// Whether there are none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.end() == FRONT
    }

    /// Behind the last element: a position to insert at, not to read.
    #[must_use]
    #[inline]
    pub fn end(&self) -> usize {
        self.as_bytes().len() - 1
    }

    /// The first element's position.
    #[must_use]
    #[inline]
    pub fn first(&self) -> Option<usize> {
        (!self.is_empty()).then_some(FRONT)
    }

    /// The last element's position.
    #[must_use]
    pub fn last(&self) -> Option<usize> {
        self.prev(self.end())
    }

    /// The position behind the element at `at`; it may be the end.
    #[inline]
    fn after(&self, at: usize) -> usize {
        let length = wire::length(&self.as_bytes()[at..]).expect("a position is an element's");
        at + length + wire::backlen_length(length)
    }

    /// The position behind a run of `count` elements from `at` on, and how many there were before the list's end.
    fn after_run(&self, at: usize, count: usize) -> (usize, usize) {
        let mut iter = self.iter_from(at);
        let passed = iter.skip_elements(count);
        (iter.position(), passed)
    }

    fn unless_end(&self, at: usize) -> Option<usize> {
        (at < self.end()).then_some(at)
    }

    /// The position of the element behind the one at `at`.
    #[must_use]
    #[inline]
    pub fn next(&self, at: usize) -> Option<usize> {
        self.unless_end(self.after(at))
    }

    /// The position of the element before the one at `at`, which may be the end.
    #[must_use]
    #[inline]
    pub fn prev(&self, at: usize) -> Option<usize> {
        (at > FRONT).then(|| wire::start_of_last(&self.as_bytes()[..at]).expect("a position is an element's"))
    }

    /// The position of the element with this number; negative ones count from the back, -1 being the last. Walks from the nearer
    /// end.
    #[must_use]
    pub fn seek(&self, index: isize) -> Option<usize> {
        let distance = index.unsigned_abs();
        let Some(count) = self.count() else {
            return if index < 0 { self.backward(distance) } else { self.forward(distance) };
        };
        let from_front = if index < 0 { count.checked_sub(distance)? } else { distance };
        let from_back = count.checked_sub(from_front)?;
        if from_front <= from_back { self.forward(from_front) } else { self.backward(from_back) }
    }

    /// The element that is the `distance`-th from the back, 1 being the last.
    fn backward(&self, distance: usize) -> Option<usize> {
        (distance > 0).then_some(())?;
        (0..distance).try_fold(self.end(), |at, _| self.prev(at))
    }

    fn forward(&self, index: usize) -> Option<usize> {
        let first = self.first()?;
        (0..index).try_fold(first, |at, _| self.next(at))
    }

    /// The element at `at`.
    #[must_use]
    #[inline]
    pub fn get(&self, at: usize) -> Item<'_> {
        wire::read(&self.as_bytes()[at..]).expect("a position is an element's").0
    }

    /// All elements, from either end.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        self.iter_from(FRONT)
    }

    /// The elements from the one at `at` on; `at` may be the end.
    #[must_use]
    pub fn iter_from(&self, at: usize) -> Iter<'_> {
        Iter { bytes: self.as_bytes(), front: at, back: self.end() }
    }

    /// The position of the first element that is `text`, looking at every `stride`-th from the first on: 1 looks at all, 2 at the
    /// fields of a hash, 3 at those of one whose fields expire.
    #[must_use]
    pub fn find(&self, text: &[u8], stride: usize) -> Option<usize> {
        self.find_from(FRONT, text, stride)
    }

    /// As [`Listpack::find`], from the element at `at` on; `at` may be the end.
    #[must_use]
    pub fn find_from(&self, at: usize, text: &[u8], stride: usize) -> Option<usize> {
        let wanted = Item::from(text);
        let mut iter = self.iter_from(at);
        loop {
            let at = iter.position();
            if iter.next()?.same(&wanted) {
                return Some(at);
            }
            iter.skip_elements(stride.saturating_sub(1));
        }
    }

    /// Puts `items` in the place of `removed` elements from `at` on (fewer if the list ends), and returns the position behind the new
    /// ones, which may be the end. `at` may be the end. The other changes are short names for this one.
    pub fn splice(&mut self, at: usize, removed: usize, items: &[Item<'_>]) -> usize {
        let (after, removed) = self.after_run(at, removed);
        let length = items.iter().map(Item::packed_length).sum();
        let count = self.count().map(|count| count - removed + items.len());
        let mut gap = self.open(at..after, length, count);
        for item in items {
            gap = wire::write(*item, gap);
        }
        at + length
    }

    /// Opens a gap of `length` bytes in the place of `range`, in a list that will have `count` elements.
    fn open(&mut self, range: Range<usize>, length: usize, count: Option<usize>) -> &mut [u8] {
        self.set_count(count);
        let total = self.as_bytes().len() - range.len() + length;
        let total = u32::try_from(total).expect("whoever lets a list grow asks whether it fits");
        self.0.splice(range, length, ListpackHeader(total))
    }

    /// Puts an element behind the last.
    pub fn push_back<'a>(&mut self, item: impl Into<Item<'a>>) {
        self.splice(self.end(), 0, &[item.into()]);
    }

    /// Puts an element before the first.
    pub fn push_front<'a>(&mut self, item: impl Into<Item<'a>>) {
        self.splice(FRONT, 0, &[item.into()]);
    }

    /// Puts an element before the one at `at`, where it is then itself.
    pub fn insert_before<'a>(&mut self, at: usize, item: impl Into<Item<'a>>) {
        self.splice(at, 0, &[item.into()]);
    }

    /// Puts an element behind the one at `at`, and returns its position.
    pub fn insert_after<'a>(&mut self, at: usize, item: impl Into<Item<'a>>) -> usize {
        let after = self.after(at);
        self.splice(after, 0, &[item.into()]);
        after
    }

    /// Puts an element in the place of the one at `at`, which then is its position.
    pub fn replace<'a>(&mut self, at: usize, item: impl Into<Item<'a>>) {
        self.splice(at, 1, &[item.into()]);
    }

    /// Removes the element at `at`, and returns the position of the one that was behind it.
    pub fn remove(&mut self, at: usize) -> Option<usize> {
        self.remove_run(at, 1)
    }

    /// Removes up to `count` elements from the one at `at` on, and returns the position of the one that was behind them.
    pub fn remove_run(&mut self, at: usize, count: usize) -> Option<usize> {
        let at = self.splice(at, count, &[]);
        self.unless_end(at)
    }

    /// Removes up to `count` elements from the one with the number `index` on, which counts from the back if negative, as
    /// [`Listpack::seek`] does.
    pub fn remove_range(&mut self, index: isize, count: usize) {
        if let Some(at) = self.seek(index) {
            self.splice(at, count, &[]);
        }
    }

    /// Keeps the first `count` elements.
    pub fn truncate(&mut self, count: usize) {
        if let Some(at) = isize::try_from(count).ok().and_then(|index| self.seek(index)) {
            self.open(at..self.end(), 0, Some(count));
        }
    }

    /// Puts the elements of `other` behind the last.
    pub fn append(&mut self, other: &Self) {
        let count = self.count().zip(other.count()).map(|(own, theirs)| own + theirs);
        let elements = &other.as_bytes()[FRONT..other.end()];
        self.open(self.end()..self.end(), elements.len(), count).copy_from_slice(elements);
    }

    /// Takes the elements from the one at `at` on away and into a list of their own; `at` may be the end.
    pub fn split_off(&mut self, at: usize) -> Self {
        let mut tail = Self::new();
        let elements = &self.as_bytes()[at..self.end()];
        let (removed, kept) = (self.iter_from(at).count(), self.count());
        tail.open(FRONT..FRONT, elements.len(), Some(removed)).copy_from_slice(elements);
        self.open(at..self.end(), 0, kept.map(|count| count - removed));
        tail
    }
}

/// What is known of bytes that are a listpack in every part.
struct Checked {
    count: usize,
    /// Whether every backlen is as we write it.
    is_ours: bool,
}

fn check(bytes: &[u8]) -> Option<Checked> {
    let (header, rest) = bytes.split_first_chunk::<FRONT>()?;
    let [a, b, c, d, e, f] = *header;
    let (&end, mut rest) = rest.split_last()?;
    let is_whole = usize::try_from(u32::from_le_bytes([a, b, c, d])) == Ok(bytes.len()) && end == END;
    is_whole.then_some(())?;
    let mut checked = Checked { count: 0, is_ours: true };
    while !rest.is_empty() {
        let element = wire::read_checked(rest)?;
        rest = &rest[element.length..];
        checked.count += 1;
        checked.is_ours &= element.is_ours;
    }
    let count = u16::from_le_bytes([e, f]);
    (count == COUNT_UNKNOWN || usize::from(count) == checked.count).then_some(checked)
}

/// Bytes that were checked, as we write them.
fn rewritten(bytes: &[u8]) -> Result<Listpack, Malformed> {
    let (mut list, mut rest) = (Listpack::new(), &bytes[FRONT..bytes.len() - 1]);
    while !rest.is_empty() {
        let element = wire::read_checked(rest).ok_or(Malformed)?;
        if !list.fits(element.item.packed_length()) {
            return Err(Malformed);
        }
        list.push_back(element.item);
        rest = &rest[element.length..];
    }
    Ok(list)
}

/// The elements of a list, from either end.
#[derive(Clone)]
pub struct Iter<'a> {
    bytes: &'a [u8],
    front: usize,
    back: usize,
}

impl Iter<'_> {
    /// The position of the element that comes next; the end, if none does.
    #[must_use]
    #[inline]
    pub fn position(&self) -> usize {
        self.front
    }

    /// Passes over up to `count` elements without reading them, and returns over how many.
    #[inline]
    pub fn skip_elements(&mut self, count: usize) -> usize {
        for passed in 0..count {
            if self.front >= self.back {
                return passed;
            }
            let length = wire::length(&self.bytes[self.front..]).expect("a position is an element's");
            self.front += length + wire::backlen_length(length);
        }
        count
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<Item<'a>> {
        (self.front < self.back).then_some(())?;
        let (item, length) = wire::read(&self.bytes[self.front..]).expect("a position is an element's");
        self.front += length + wire::backlen_length(length);
        Some(item)
    }

    fn count(mut self) -> usize {
        self.skip_elements(usize::MAX)
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        (self.front < self.back).then_some(())?;
        self.back = wire::start_of_last(&self.bytes[..self.back]).expect("a position is an element's");
        wire::read(&self.bytes[self.back..]).map(|(item, _)| item)
    }
}

impl std::iter::FusedIterator for Iter<'_> {}

impl<'a> IntoIterator for &'a Listpack {
    type Item = Item<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}
