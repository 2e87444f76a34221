//! FUNCTION RESTORE: the payload of any body with a good footer is safe, and what restores dumps to what restores to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use simurgh_storage::rdb::crc64::crc64;
use simurgh_storage::rdb::functions::{dump, restore};

fuzz_target!(|body: &[u8]| {
    let _ = restore(body);
    let mut payload = [body, &10u16.to_le_bytes()].concat();
    let sum = crc64(0, &payload);
    payload.extend_from_slice(&sum.to_le_bytes());
    if let Ok(sources) = restore(&payload) {
        let mut dumped = dump(sources.iter().map(|source| &**source));
        assert_eq!(restore(&dumped).as_ref(), Ok(&sources));
        let at = body.len() % dumped.len();
        dumped[at] ^= 1;
        assert!(restore(&dumped).is_err());
    }
});
