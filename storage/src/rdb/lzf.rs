//! LZF, the compression of strings in RDB files and DUMP payloads.
//!
//! ```text
//! 000nnnnn                          n + 1 bytes follow as they are
//! lllooooo oooooooo                 l + 2 bytes (l of 1 to 6) again from o + 1 bytes back
//! 111ooooo llllllll oooooooo        l + 9 bytes again from o + 1 bytes back
//! ```

use super::cursor::{Cursor, Fault};

/// Three bytes can stand for at most so many.
const COPY_BYTES_MAX: usize = 264;

/// What a copy can reach back to, and the longest one.
const BACK_MAX: usize = 1 << 13;
const RUN_MAX: usize = 32;
/// The shortest copy that pays.
const COPY_BYTES_LEAST: usize = 3;
/// Packing that saves less is not worth the unpacking.
const SAVED_BYTES_LEAST: usize = 4;
/// Entries of the table of places at which three bytes were seen last.
const TABLE_MAX: usize = 1 << 12;

/// Packs `bytes`, if that makes them shorter.
#[must_use]
pub fn compress(bytes: &[u8]) -> Option<Vec<u8>> {
    let length_max = bytes.len().checked_sub(SAVED_BYTES_LEAST)?;
    // Places are one more than they are, as 0 is none. A short string needs no large table.
    let mut table = vec![0u32; bytes.len().next_power_of_two().clamp(64, TABLE_MAX)];
    let shift = u32::BITS - table.len().trailing_zeros();
    let mut out = Vec::with_capacity(length_max);
    let (mut at, mut plain_from) = (0, 0);
    while let Some(&[one, two, three]) = bytes.get(at..at + COPY_BYTES_LEAST).and_then(|three| three.first_chunk()) {
        let hash = u32::from_le_bytes([one, two, three, 0]).wrapping_mul(0x9e37_79b1) >> shift;
        let before = std::mem::replace(&mut table[hash as usize], u32::try_from(at + 1).ok()?) as usize;
        let from = before.wrapping_sub(1);
        if before == 0 || at - from > BACK_MAX || bytes[from..from + COPY_BYTES_LEAST] != [one, two, three] {
            at += 1;
            continue;
        }
        write_plain(&mut out, &bytes[plain_from..at]);
        let same = bytes[at..].iter().zip(&bytes[from..]).take(COPY_BYTES_MAX).take_while(|(one, other)| one == other);
        let length = same.count();
        write_copy(&mut out, at - from - 1, length - 2);
        at += length;
        plain_from = at;
        if out.len() > length_max {
            return None;
        }
    }
    write_plain(&mut out, &bytes[plain_from..]);
    (out.len() <= length_max).then_some(out)
}

fn write_plain(out: &mut Vec<u8>, bytes: &[u8]) {
    for run in bytes.chunks(RUN_MAX) {
        out.push((run.len() - 1) as u8);
        out.extend_from_slice(run);
    }
}

/// `back` is one less than the distance, `length` two less than the bytes.
fn write_copy(out: &mut Vec<u8>, back: usize, length: usize) {
    if length < 7 {
        out.push((length << 5 | back >> 8) as u8);
    } else {
        out.push((7 << 5 | back >> 8) as u8);
        out.push((length - 7) as u8);
    }
    out.push(back as u8);
}

/// Unpacks `packed`, which must come to exactly `length` bytes.
pub fn decompress(packed: &[u8], length: usize) -> Result<Vec<u8>, Fault> {
    // Before anything is allocated: so much cannot come out.
    if length > packed.len().saturating_mul(COPY_BYTES_MAX / 3 + 1) {
        return Err(Fault::Lzf);
    }
    let mut out = Vec::with_capacity(length);
    let mut cursor = Cursor::new(packed);
    while cursor.consumed() < packed.len() {
        step(&mut cursor, &mut out, length).map_err(|_| Fault::Lzf)?;
    }
    if out.len() == length { Ok(out) } else { Err(Fault::Lzf) }
}

/// One run of plain bytes, or one copy.
fn step(cursor: &mut Cursor<'_>, out: &mut Vec<u8>, length: usize) -> Result<(), Fault> {
    let control = usize::from(cursor.byte()?);
    if control < 32 {
        out.extend_from_slice(cursor.take(control + 1)?);
    } else {
        let mut count = control >> 5;
        if count == 7 {
            count += usize::from(cursor.byte()?);
        }
        let back = (control & 0x1f) << 8 | usize::from(cursor.byte()?);
        let from = out.len().checked_sub(back + 1).ok_or(Fault::Lzf)?;
        // Source and target may overlap: a copied byte may be copied again.
        for at in from..from + count + 2 {
            out.push(out[at]);
        }
    }
    if out.len() > length { Err(Fault::Lzf) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What Redis 8.2.3 makes of `a` twenty-one and a hundred times.
    #[test]
    fn unpacks_what_redis_packs() {
        assert_eq!(decompress(b"\x01aa\xe0\n\x00", 21), Ok(vec![b'a'; 21]));
        assert_eq!(decompress(b"\x01aa\xe0\x57\x00\x01aa", 100), Ok(vec![b'a'; 100]));
        assert_eq!(decompress(b"", 0), Ok(vec![]));
    }

    #[test]
    fn refuses_what_does_not_fit() {
        let good = b"\x01aa\xe0\n\x00";
        for cut in 0..good.len() {
            assert_eq!(decompress(&good[..cut], 21), Err(Fault::Lzf), "cut {cut}");
        }
        for length in [0, 20, 22, usize::MAX] {
            assert_eq!(decompress(good, length), Err(Fault::Lzf), "length {length}");
        }
        assert_eq!(decompress(b"\x00a\x20\x01", 4), Err(Fault::Lzf));
        assert_eq!(decompress(b"\x20\x00", 3), Err(Fault::Lzf));
    }

    #[test]
    fn packs_what_repeats_and_nothing_else() {
        assert_eq!(compress(&[b'a'; 100]).map(|packed| packed.len() < 10), Some(true));
        assert_eq!(compress(b"abcdefghijklmnopqrstuvwxyz0123456789"), None);
        assert_eq!(compress(b""), None);
        assert_eq!(compress(b"aaaa"), None);
        // Copies as long, and as far back, as there are.
        for (length, gap) in [(264, 0), (265, 0), (263, 8192), (10, 8191), (10, 8192), (10, 8193), (600, 3)] {
            let mut bytes: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
            bytes.extend(std::iter::repeat_n(b'x', gap));
            bytes.extend_from_within(..length);
            let packed = compress(&bytes).expect("it repeats");
            assert_eq!(decompress(&packed, bytes.len()), Ok(bytes), "{length} {gap}");
        }
    }

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(words in prop::collection::vec(0u8..4, 0..3000), wide in 1u8..60) {
            let bytes: Vec<u8> = words.iter().map(|word| word.wrapping_mul(wide)).collect();
            if let Some(packed) = compress(&bytes) {
                prop_assert!(packed.len() + SAVED_BYTES_LEAST <= bytes.len());
                prop_assert_eq!(decompress(&packed, bytes.len()), Ok(bytes));
            }
        }

        #[test]
        fn any_bytes_are_safe(packed in prop::collection::vec(any::<u8>(), 0..80), length in 0usize..6000) {
            if let Ok(out) = decompress(&packed, length) {
                prop_assert_eq!(out.len(), length);
            }
        }
    }
}
