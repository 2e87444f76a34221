//! The place to cut a log at a moment: within the file, the same whatever the pieces, and what is before it parses as it did.
#![no_main]

use libfuzzer_sys::fuzz_target;
use simurgh_storage::aof::until::{Finder, Place, Until, UntilError};

fn find(bytes: &[u8], until: Until, piece: usize) -> Result<Place, UntilError> {
    let mut finder = Finder::new(until, 0);
    for piece in bytes.chunks(piece) {
        if let Some(place) = finder.feed(piece)? {
            return Ok(place);
        }
    }
    Ok(finder.place())
}

fuzz_target!(|input: (u8, u64, &[u8])| {
    let (piece, moment, bytes) = input;
    for until in [Until::Second(moment), Until::Position(moment)] {
        let place = find(bytes, until, usize::MAX);
        assert_eq!(place, find(bytes, until, usize::from(piece) + 1));
        if let Ok(place) = place {
            assert!(place.from <= place.keep && place.keep <= bytes.len() as u64);
            let again = find(&bytes[..place.keep as usize], until, usize::MAX).expect("it was read before");
            assert_eq!(again.keep, place.keep);
        }
    }
});
