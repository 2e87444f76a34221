//! LZF: what unpacks has the length it claims.
#![no_main]

use libfuzzer_sys::fuzz_target;
use simurgh_storage::rdb::lzf::decompress;

fuzz_target!(|input: (u16, &[u8])| {
    let (length, packed) = input;
    if let Ok(unpacked) = decompress(packed, usize::from(length)) {
        assert_eq!(unpacked.len(), usize::from(length));
    }
});
