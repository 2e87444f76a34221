//! Zipmaps: what Redis before 2.6 kept small hashes in. Read only.
//!
//! ```text
//! [ count u8 ][ pair | pair ... ][ FF ]                count: 254 is unknown, to be counted by walking
//! pair: length field length unused value, and as many bytes more as `unused` (one byte) says, of no meaning
//! length: one byte up to 253, else FE and a u32, low byte first
//! ```

use crate::block::Malformed;

const END: u8 = 0xff;
/// What stands before a length of four bytes; as a count: unknown.
const LONG: u8 = 0xfe;

/// A zipmap of which every byte was checked. (That no field comes twice was not.)
#[derive(Clone, Copy, Debug)]
pub struct Zipmap<'a> {
    pairs: &'a [u8],
    len: usize,
}

impl<'a> Zipmap<'a> {
    /// Checks `bytes`, which must be a zipmap and nothing more. An empty one is a good one.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        Self::checked(bytes).ok_or(Malformed)
    }

    fn checked(bytes: &'a [u8]) -> Option<Self> {
        let [count @ 0..=LONG, pairs @ .., END] = bytes else { return None };
        let (mut rest, mut len) = (pairs, 0);
        while !rest.is_empty() {
            (_, rest) = read_pair(rest)?;
            len += 1;
        }
        (*count == LONG || usize::from(*count) == len).then_some(Self { pairs, len })
    }

    /// How many fields there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The fields, each with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone + use<'a> {
        let mut rest = self.pairs;
        std::iter::from_fn(move || {
            let (pair, behind) = read_pair(rest)?;
            rest = behind;
            Some(pair)
        })
    }
}

type Pair<'a> = (&'a [u8], &'a [u8]);

/// The pair at the front of `bytes`, and what is behind it.
fn read_pair(bytes: &[u8]) -> Option<(Pair<'_>, &[u8])> {
    let (length, rest) = read_length(bytes)?;
    let (field, rest) = rest.split_at_checked(length)?;
    let (length, rest) = read_length(rest)?;
    let (&unused, rest) = rest.split_first()?;
    let (value, rest) = rest.split_at_checked(length)?;
    Some(((field, value), rest.get(usize::from(unused)..)?))
}

fn read_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match *bytes {
        [LONG, a, b, c, d, ref rest @ ..] => {
            let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).ok()?;
            // A length that has a shorter form is refused, as Redis refuses it.
            (length >= usize::from(LONG)).then_some((length, rest))
        }
        [length @ 0..LONG, ref rest @ ..] => Some((length.into(), rest)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Redis 8.2.3 restored these, and answered `HGETALL` so.
    #[test]
    fn maps_are_read_as_redis_reads_them() {
        let two = Zipmap::read(b"\x02\x01a\x01\x00b\x02cc\x02\x03ddxxx\xff").unwrap();
        assert!(two.iter().eq([(&b"a"[..], &b"b"[..]), (b"cc", b"dd")]));
        assert_eq!((two.len(), two.is_empty()), (2, false));
        assert_eq!(Zipmap::read(b"\xfe\x01a\x01\x00b\xff").map(|map| map.len()), Ok(1));
        for (length, written) in [(253, &b"\xfd"[..]), (254, b"\xfe\xfe\0\0\0"), (300, b"\xfe\x2c\x01\0\0")] {
            let field = vec![b'f'; length];
            let bytes = [b"\x01", written, &field, b"\x02\x03vvxxx\xff"].concat();
            assert!(Zipmap::read(&bytes).unwrap().iter().eq([(&field[..], &b"vv"[..])]));
        }
    }

    /// All but the one that is marked are refused by Redis 8.2.3 too.
    #[test]
    fn damage_is_refused() {
        let cases: [(&str, &[u8]); 13] = [
            ("nothing", b""),
            ("no end", b"\x01\x01a\x01\x00b"),
            ("the end alone", b"\xff"),
            ("a count that is none", b"\xff\x01a\x01\x00b\xff"),
            ("too many counted", b"\x02\x01a\x01\x00b\xff"),
            ("too few counted", b"\x01\x01a\x01\x00b\x01c\x01\x00d\xff"),
            ("a length longer than need be", b"\x01\xfe\x01\x00\x00\x00a\x01\x00b\xff"),
            ("unused bytes over the end", b"\x01\x01a\x01\x05b\xff"),
            ("a value over the end", b"\x01\x01a\x02\x00b\xff"),
            ("a field without a value", b"\x01\x01a\xff"),
            ("a length that is none", b"\x01\x01a\xff\x00b\xff"),
            ("a field beyond all", b"\x01\xfe\xff\xff\xff\xffa\x01\x00b\xff"),
            ("bytes behind the end, which Redis ignores", b"\x01\x01a\x01\x00b\xff\xff"),
        ];
        for (name, bytes) in cases {
            assert_eq!(Zipmap::read(bytes).err(), Some(Malformed), "{name}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_or_harmless(bytes in prop::collection::vec(prop_oneof![3 => 0_u8..4, 1 => any::<u8>()], 0..40)) {
            let bytes = [b"\xfe", &bytes[..], b"\xff"].concat();
            if let Ok(map) = Zipmap::read(&bytes) {
                prop_assert_eq!(map.iter().count(), map.len());
                prop_assert_eq!(map.is_empty(), map.iter().next().is_none());
            }
        }
    }
}
