//! LZF, the compression of strings in RDB files and DUMP payloads: unpacking only. We write strings as they are, which
//! every reader takes.
//!
//! ```text
//! 000nnnnn                          n + 1 bytes follow as they are
//! lllooooo oooooooo                 l + 2 bytes (l of 1 to 6) again from o + 1 bytes back
//! 111ooooo llllllll oooooooo        l + 9 bytes again from o + 1 bytes back
//! ```

use super::cursor::{Cursor, Fault};

/// Three bytes can stand for at most so many.
const COPY_BYTES_MAX: usize = 264;

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

    proptest! {
        #[test]
        fn any_bytes_are_safe(packed in prop::collection::vec(any::<u8>(), 0..80), length in 0usize..6000) {
            if let Ok(out) = decompress(&packed, length) {
                prop_assert_eq!(out.len(), length);
            }
        }
    }
}
