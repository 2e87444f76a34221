//! Ziplists: what Redis before 7.0 kept small lists, hashes and sorted sets in. Read only; a new file has listpacks.
//!
//! ```text
//! [ total u32 ][ tail u32 ][ count u16 ][ entry | entry ... ][ FF ]          little endian; tail: the last entry's offset
//! count: 65535 is unknown, to be counted by walking
//! entry: length of the entry before it: one byte up to 253, or FE and a u32; then
//!        00llllll text                     a text of up to 63 bytes
//!        01llllll llllllll text            up to 16383, high byte first
//!        10------ llllllll (4 bytes) text  longer, high byte first
//!        C0 | F0 | D0 | E0 | FE            an integer of 16, 24, 32, 64 or 8 bits, signed, low byte first
//!        F1 to FD                          the integers 0 to 12
//! ```

use crate::block::Malformed;
use crate::listpack::{Item, Listpack};

const HEADER: usize = 10;
const END: u8 = 0xff;
/// What stands before a length of four bytes.
const LONG: u8 = 0xfe;
const COUNT_UNKNOWN: u16 = u16::MAX;

/// A ziplist of which every byte was checked.
#[derive(Clone, Copy, Debug)]
pub struct Ziplist<'a> {
    entries: &'a [u8],
    len: usize,
}

impl<'a> Ziplist<'a> {
    /// Checks `bytes`, which must be a ziplist and nothing more. An empty one is a good one.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        Self::checked(bytes).ok_or(Malformed)
    }

    fn checked(bytes: &'a [u8]) -> Option<Self> {
        let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
        let [a, b, c, d, e, f, g, h, i, j] = *header;
        let (&end, entries) = rest.split_last()?;
        let is_whole = usize::try_from(u32::from_le_bytes([a, b, c, d])) == Ok(bytes.len()) && end == END;
        is_whole.then_some(())?;
        let (mut rest, mut len, mut before) = (entries, 0, 0);
        while !rest.is_empty() {
            let entry = Entry::read(rest)?;
            (entry.before == before).then_some(())?;
            (rest, len, before) = (&rest[entry.length..], len + 1, entry.length);
        }
        let tail = HEADER + entries.len() - before;
        let count = u16::from_le_bytes([i, j]);
        let fits = usize::try_from(u32::from_le_bytes([e, f, g, h])) == Ok(tail)
            && (count == COUNT_UNKNOWN || usize::from(count) == len);
        fits.then_some(Self { entries, len })
    }

    /// How many elements there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements.
    pub fn iter(&self) -> impl Iterator<Item = Item<'a>> + Clone + use<'a> {
        let mut rest = self.entries;
        std::iter::from_fn(move || {
            let entry = Entry::read(rest)?;
            rest = &rest[entry.length..];
            Some(entry.item)
        })
    }

    /// The elements as a listpack, unless it would be longer than a listpack may be.
    #[must_use]
    pub fn to_listpack(&self) -> Option<Listpack> {
        let mut list = Listpack::new();
        for item in self.iter() {
            // Texts that are integers may be kept as texts here, as the oldest versions did with long ones.
            let item = match item {
                Item::Int(_) => item,
                Item::Bytes(text) => Item::from(text),
            };
            list.fits(item.packed_length()).then(|| list.push_back(item))?;
        }
        Some(list)
    }
}

/// An entry, and what it says of the one before it.
struct Entry<'a> {
    before: usize,
    item: Item<'a>,
    length: usize,
}

impl<'a> Entry<'a> {
    /// The entry at the front of `bytes`.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (before, rest) = match *bytes {
            [LONG, a, b, c, d, ref rest @ ..] => (usize::try_from(u32::from_le_bytes([a, b, c, d])).ok()?, rest),
            [before @ 0..LONG, ref rest @ ..] => (before.into(), rest),
            _ => return None,
        };
        let (item, rest) = read_item(rest)?;
        Some(Self { before, item, length: bytes.len() - rest.len() })
    }
}

/// The element at the front of `bytes`, and what is behind it.
fn read_item(bytes: &[u8]) -> Option<(Item<'_>, &[u8])> {
    match *bytes {
        [length @ 0..=0x3f, ref rest @ ..] => text(rest, length.into()),
        [high @ 0x40..=0x7f, low, ref rest @ ..] => text(rest, u16::from_be_bytes([high & 0x3f, low]).into()),
        [0x80..=0xbf, a, b, c, d, ref rest @ ..] => text(rest, usize::try_from(u32::from_be_bytes([a, b, c, d])).ok()?),
        [0xc0, a, b, ref rest @ ..] => Some((Item::Int(i16::from_le_bytes([a, b]).into()), rest)),
        [0xd0, a, b, c, d, ref rest @ ..] => Some((Item::Int(i32::from_le_bytes([a, b, c, d]).into()), rest)),
        [0xe0, ref rest @ ..] => {
            let (number, rest) = rest.split_first_chunk::<8>()?;
            Some((Item::Int(i64::from_le_bytes(*number)), rest))
        }
        [0xf0, a, b, c, ref rest @ ..] => Some((Item::Int((i32::from_le_bytes([0, a, b, c]) >> 8).into()), rest)),
        [number @ 0xf1..=0xfd, ref rest @ ..] => Some((Item::Int(i64::from(number & 0xf) - 1), rest)),
        [0xfe, number, ref rest @ ..] => Some((Item::Int(i8::from_le_bytes([number]).into()), rest)),
        _ => None,
    }
}

fn text(bytes: &[u8], length: usize) -> Option<(Item<'_>, &[u8])> {
    let (text, rest) = bytes.split_at_checked(length)?;
    Some((Item::Bytes(text), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A ziplist of `entries` (without what they say of the one before), of which `long` ones say it in four bytes without need.
    fn ziplist(entries: &[Vec<u8>], long: &[usize]) -> Vec<u8> {
        let (mut body, mut before, mut tail) = (Vec::new(), 0, HEADER);
        for (index, entry) in entries.iter().enumerate() {
            let start = body.len();
            if before < 254 && !long.contains(&index) {
                body.push(before as u8);
            } else {
                body.push(LONG);
                body.extend_from_slice(&(before as u32).to_le_bytes());
            }
            body.extend_from_slice(entry);
            (before, tail) = (body.len() - start, HEADER + start);
        }
        let total = (HEADER + body.len() + 1) as u32;
        let header = [&total.to_le_bytes()[..], &(tail as u32).to_le_bytes(), &(entries.len() as u16).to_le_bytes()];
        [header.concat(), body, vec![END]].concat()
    }

    fn long_text(head: &[u8], length: usize) -> Vec<u8> {
        [head, &vec![b'x'; length]].concat()
    }

    /// Redis 8.2.3 restored a list of these, and answered `LRANGE` so.
    #[test]
    fn lists_are_read_as_redis_reads_them() {
        let x = |length| "x".repeat(length);
        let cases = [
            (b"\x01a".to_vec(), "a".into()),
            (b"\x00".to_vec(), String::new()),
            (long_text(b"\x3f", 63), x(63)),
            (long_text(b"\x40\x40", 64), x(64)),
            (long_text(b"\x41\x2c", 300), x(300)),
            (b"\x02hi".to_vec(), "hi".into()),
            (b"\x80\x00\x00\x00\x02hi".to_vec(), "hi".into()),
            (b"\xf1".to_vec(), "0".into()),
            (b"\xfd".to_vec(), "12".into()),
            (b"\xfe\x80".to_vec(), "-128".into()),
            (b"\xfe\x7f".to_vec(), "127".into()),
            (b"\xc0\x80\xff".to_vec(), "-128".into()),
            (b"\xc0\x00\x80".to_vec(), "-32768".into()),
            (b"\xf0\xff\xff\x7f".to_vec(), "8388607".into()),
            (b"\xf0\x00\x00\x80".to_vec(), "-8388608".into()),
            (b"\xd0\x00\x00\x00\x80".to_vec(), "-2147483648".into()),
            (b"\xe0\x00\x00\x00\x00\x00\x00\x00\x80".to_vec(), "-9223372036854775808".into()),
            (b"\x017".to_vec(), "7".into()),
            (b"\xbf\x00\x00\x00\x01x".to_vec(), "x".into()),
        ];
        let (entries, texts): (Vec<_>, Vec<_>) = cases.into_iter().unzip();
        let mut bytes = ziplist(&entries, &[0, 3]);
        for count in [entries.len() as u16, COUNT_UNKNOWN] {
            bytes[8..10].copy_from_slice(&count.to_le_bytes());
            let list = Ziplist::read(&bytes).unwrap();
            let read: Vec<_> = list.iter().map(|item| String::from_utf8(item.to_vec()).unwrap()).collect();
            assert_eq!((&read, list.len(), list.is_empty()), (&texts, 19, false));
            let packed = list.to_listpack().unwrap();
            let items: Vec<_> = texts.iter().map(|text| Item::from(text.as_bytes())).collect();
            assert_eq!(packed.as_bytes(), Listpack::of(&items).as_bytes());
        }
    }

    /// Redis 8.2.3 refuses these too, but the empty one only because no key may be empty.
    #[test]
    fn damage_is_refused() {
        let good = ziplist(&[b"\x01a".to_vec(), b"\x01b".to_vec()], &[]);
        assert_eq!(good, b"\x11\0\0\0\r\0\0\0\x02\0\0\x01a\x03\x01b\xff");
        assert!(Ziplist::read(&ziplist(&[], &[])).unwrap().is_empty());
        for length in 0..good.len() {
            assert_eq!(Ziplist::read(&good[..length]).err(), Some(Malformed));
        }
        for (name, place, byte) in [
            ("a total that lies", 0, 0x10),
            ("a tail that lies", 4, 10),
            ("too many counted", 8, 3),
            ("too few counted", 8, 1),
            ("a length before the first", 10, 1),
            ("a length before that lies", 13, 4),
            ("a length before that is none", 13, END),
            ("a text over the end", 14, 2),
            ("no end", 16, 0),
        ] {
            let mut bad = good.clone();
            bad[place] = byte;
            assert_eq!(Ziplist::read(&bad).err(), Some(Malformed), "{name}");
        }
        for entry in [&b"\xff"[..], b"\xc1\0\0", b"\xfe", b"\x05ab", b"\x80\xff\xff\xff\xff", b""] {
            assert_eq!(Ziplist::read(&ziplist(&[entry.to_vec()], &[])).err(), Some(Malformed), "{entry:?}");
        }
        assert_eq!(Ziplist::read(&[&good[..], b"\xff"].concat()).err(), Some(Malformed));
    }

    proptest! {
        #[test]
        fn damaged_bytes_are_refused_or_harmless(
            words in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..63), 0..8),
            damage in prop::collection::vec((any::<usize>(), any::<u8>()), 0..3),
        ) {
            let entries: Vec<_> = words.iter().map(|word| [&[word.len() as u8], &word[..]].concat()).collect();
            let mut bytes = ziplist(&entries, &[]);
            for (place, byte) in &damage {
                let place = place % bytes.len();
                bytes[place] = *byte;
            }
            match Ziplist::read(&bytes) {
                Ok(list) => {
                    prop_assert_eq!(list.iter().count(), list.len());
                    prop_assert_eq!(list.to_listpack().unwrap().len(), list.len());
                }
                Err(Malformed) => prop_assert!(!damage.is_empty()),
            }
        }
    }
}
