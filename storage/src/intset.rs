//! Sets of integers: Redis's intset, byte for byte, behind one thin pointer.
//!
//! ```text
//! [ width u32: 2, 4 or 8 ][ count u32 ][ member | member ... ]      little endian, ascending
//! ```
//!
//! A small set of integers is kept so: a member costs its width alone, is found by halving, and DUMP and RDB copy the bytes as
//! they are. The width is that of the widest member there ever was; as in Redis it does not shrink again.

use crate::block::{Block, Header, IntsetHeader, Malformed};

const HEADER: usize = IntsetHeader::BYTES;

/// A sorted set of integers without duplicates. See the file's head.
#[derive(Clone)]
#[repr(transparent)]
pub struct Intset(Block<IntsetHeader>);

impl Default for Intset {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Intset {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_set().entries(self.iter()).finish()
    }
}

/// The least width that holds `value`.
fn width_of(value: i64) -> u32 {
    match value {
        -0x8000..=0x7fff => 2,
        -0x8000_0000..=0x7fff_ffff => 4,
        _ => 8,
    }
}

fn read(bytes: &[u8]) -> i64 {
    match *bytes {
        [a, b] => i16::from_le_bytes([a, b]).into(),
        [a, b, c, d] => i32::from_le_bytes([a, b, c, d]).into(),
        [a, b, c, d, e, f, g, h] => i64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => unreachable!("a width is 2, 4 or 8"),
    }
}

fn write(value: i64, place: &mut [u8]) {
    let width = place.len();
    place.copy_from_slice(&value.to_le_bytes()[..width]);
}

impl Intset {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Self(Block::new(IntsetHeader { width: 2, count: 0 }, &[]))
    }

    /// Takes bytes from elsewhere, of which every one is checked. An empty set is a good one.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        let (header, body) = bytes.split_at_checked(HEADER).ok_or(Malformed)?;
        let header = IntsetHeader::read(header);
        let size = u64::from(header.width) * u64::from(header.count);
        if !matches!(header.width, 2 | 4 | 8) || usize::try_from(size) != Ok(body.len()) {
            return Err(Malformed);
        }
        let set = Self(Block::new(header, body));
        if set.iter().is_sorted_by(|one, next| one < next) { Ok(set) } else { Err(Malformed) }
    }

    /// The set as DUMP and RDB have it.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_slice()
    }

    /// What the allocator spends on the set, the pointer not counted.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// How many members there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.header().count as usize
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn width(&self) -> usize {
        self.0.header().width as usize
    }

    fn member(&self, index: usize) -> i64 {
        let width = self.width();
        let at = HEADER + index * width;
        read(&self.as_bytes()[at..at + width])
    }

    /// The member with this number, in ascending order.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<i64> {
        (index < self.len()).then(|| self.member(index))
    }

    /// The least member.
    #[must_use]
    pub fn first(&self) -> Option<i64> {
        self.get(0)
    }

    /// The greatest member.
    #[must_use]
    pub fn last(&self) -> Option<i64> {
        self.get(self.len().checked_sub(1)?)
    }

    /// The members, ascending.
    #[must_use]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = i64> + ExactSizeIterator + Clone + '_ {
        self.0.as_slice()[HEADER..].chunks_exact(self.width()).map(read)
    }

    /// Where `value` is, or else where it belongs.
    fn search(&self, value: i64) -> Result<usize, usize> {
        match (self.first(), self.last()) {
            (Some(first), _) if value < first => return Err(0),
            (_, Some(last)) if value > last => return Err(self.len()),
            _ => {}
        }
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.member(middle).cmp(&value) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// The number of the member `value`.
    #[must_use]
    pub fn position(&self, value: i64) -> Option<usize> {
        self.search(value).ok()
    }

    /// Whether `value` is a member.
    #[must_use]
    pub fn contains(&self, value: i64) -> bool {
        self.search(value).is_ok()
    }

    /// Adds `value`; false if it is there already.
    pub fn insert(&mut self, value: i64) -> bool {
        let Err(index) = self.search(value) else { return false };
        self.widen(width_of(value));
        let IntsetHeader { width, count } = self.0.header();
        let count = count.checked_add(1).expect("a set of four thousand millions is no small one");
        let at = HEADER + index * width as usize;
        write(value, self.0.splice(at..at, width as usize, IntsetHeader { width, count }));
        true
    }

    /// Writes all members in `wide` bytes each, unless they are as wide already.
    fn widen(&mut self, wide: u32) {
        let IntsetHeader { width, count } = self.0.header();
        if wide <= width {
            return;
        }
        let end = self.as_bytes().len();
        self.0.splice(end..end, (wide - width) as usize * count as usize, IntsetHeader { width: wide, count });
        let (narrow, wide) = (width as usize, wide as usize);
        let body = self.0.body_mut();
        // From the back, so that what is written lies behind what is still to be read.
        for index in (0..count as usize).rev() {
            let value = read(&body[index * narrow..(index + 1) * narrow]);
            write(value, &mut body[index * wide..(index + 1) * wide]);
        }
    }

    /// Removes `value`; false if it is not there.
    pub fn remove(&mut self, value: i64) -> bool {
        self.search(value).is_ok_and(|index| self.remove_at(index).is_some())
    }

    /// Removes the member with this number and returns it.
    pub fn remove_at(&mut self, index: usize) -> Option<i64> {
        let value = self.get(index)?;
        let IntsetHeader { width, count } = self.0.header();
        let at = HEADER + index * width as usize;
        self.0.splice(at..at + width as usize, 0, IntsetHeader { width, count: count - 1 });
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::size_class;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn set(members: &[i64]) -> Intset {
        let mut set = Intset::new();
        for member in members {
            set.insert(*member);
        }
        set
    }

    /// `SADD` and `DUMP` without the frame, by Redis 8.2.3.
    #[test]
    fn bytes_are_redis_s() {
        let cases: [(&[i64], &[u8]); 3] = [
            (&[5, -6], b"\x02\x00\x00\x00\x02\x00\x00\x00\xfa\xff\x05\x00"),
            (
                &[1, -2, 40_000, 3],
                b"\x04\x00\x00\x00\x04\x00\x00\x00\xfe\xff\xff\xff\x01\x00\x00\x00\x03\x00\x00\x00@\x9c\x00\x00",
            ),
            (
                &[5, -6, i64::MAX],
                b"\x08\x00\x00\x00\x03\x00\x00\x00\xfa\xff\xff\xff\xff\xff\xff\xff\x05\x00\x00\x00\x00\x00\x00\x00\
                \xff\xff\xff\xff\xff\xff\xff\x7f",
            ),
        ];
        for (members, dumped) in cases {
            assert_eq!(set(members).as_bytes(), dumped);
            assert!(Intset::from_bytes(dumped).unwrap().iter().eq(set(members).iter()));
        }
    }

    #[test]
    fn damage_is_refused() {
        let good = set(&[1, 2, 3]);
        for length in 0..good.as_bytes().len() {
            assert_eq!(Intset::from_bytes(&good.as_bytes()[..length]).err(), Some(Malformed));
        }
        let cases: [(&str, &[u8]); 7] = [
            ("no width", b"\x00\x00\x00\x00\x00\x00\x00\x00"),
            ("a width that is none", b"\x03\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00"),
            ("a count too small", b"\x02\x00\x00\x00\x01\x00\x00\x00\x01\x00\x02\x00"),
            ("a count too great", b"\x02\x00\x00\x00\x03\x00\x00\x00\x01\x00\x02\x00"),
            ("a count beyond all", b"\x08\x00\x00\x00\xff\xff\xff\xff\x01\x00\x02\x00"),
            ("a member twice", b"\x02\x00\x00\x00\x02\x00\x00\x00\x01\x00\x01\x00"),
            ("not ascending", b"\x02\x00\x00\x00\x02\x00\x00\x00\x01\x00\xff\xff"),
        ];
        for (name, bytes) in cases {
            assert_eq!(Intset::from_bytes(bytes).err(), Some(Malformed), "{name}");
        }
    }

    fn member() -> impl Strategy<Value = i64> {
        prop_oneof![
            8 => -20_i64..20,
            2 => any::<i16>().prop_map(i64::from),
            1 => (any::<i64>(), 0_u32..64).prop_map(|(number, bits)| number >> bits),
            1 => prop::sample::select(vec![-0x8000, 0x7fff, -0x8001, 0x8000, i32::MIN.into(), i32::MAX.into(), i64::MIN, i64::MAX]),
        ]
    }

    fn check(set: &Intset, model: &BTreeSet<i64>) {
        assert!(set.iter().eq(model.iter().copied()) && set.iter().rev().eq(model.iter().rev().copied()));
        assert_eq!((set.len(), set.iter().len(), set.is_empty()), (model.len(), model.len(), model.is_empty()));
        assert_eq!((set.first(), set.last()), (model.first().copied(), model.last().copied()));
        for (index, member) in model.iter().enumerate() {
            assert_eq!((set.get(index), set.position(*member)), (Some(*member), Some(index)));
            assert_eq!(set.contains(member.wrapping_add(1)), model.contains(&member.wrapping_add(1)));
        }
        assert_eq!((set.get(model.len()), set.bytes()), (None, size_class(set.as_bytes().len())));
        assert_eq!(Intset::from_bytes(set.as_bytes()).unwrap().as_bytes(), set.as_bytes());
    }

    proptest! {
        #[test]
        fn a_set_does_what_a_tree_does(steps in prop::collection::vec((0..4, member()), 0..80)) {
            let (mut set, mut model) = (Intset::new(), BTreeSet::new());
            for (what, member) in steps {
                match what {
                    0 => prop_assert_eq!(set.remove(member), model.remove(&member)),
                    1 => {
                        let removed = set.remove_at(member.unsigned_abs() as usize % 8);
                        prop_assert!(removed.is_none_or(|member| model.remove(&member)));
                    }
                    _ => prop_assert_eq!(set.insert(member), model.insert(member)),
                }
                check(&set, &model);
            }
            check(&set.clone(), &model);
        }

        #[test]
        fn any_bytes_are_refused_or_harmless(width in 0_u32..10, count in 0_u32..5, body in prop::collection::vec(0_u8..4, 0..40)) {
            let bytes = [&width.to_le_bytes()[..], &count.to_le_bytes(), &body].concat();
            if let Ok(set) = Intset::from_bytes(&bytes) {
                prop_assert_eq!(set.iter().collect::<BTreeSet<_>>().len(), count as usize);
            }
        }
    }
}
