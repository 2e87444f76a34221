//! RESTORE: the payload of any body with a good footer is safe, and what restores dumps to the same value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use simurgh_storage::rdb::crc64::crc64;
use simurgh_storage::rdb::dump::{Restored, dump_string, restore};
use simurgh_storage::rdb::string::STRING_BYTES_MAX;

fuzz_target!(|body: &[u8]| {
    let mut payload = [body, &10u16.to_le_bytes()].concat();
    let sum = crc64(0, &payload);
    payload.extend_from_slice(&sum.to_le_bytes());
    if let Ok(Restored::String(value)) = restore(&payload, STRING_BYTES_MAX) {
        let mut dumped = Vec::new();
        dump_string(&mut dumped, &value);
        assert_eq!(restore(&dumped, STRING_BYTES_MAX), Ok(Restored::String(value)));
        dumped[body.len() % 7] ^= 1;
        assert!(restore(&dumped, STRING_BYTES_MAX).is_err());
    }
});
