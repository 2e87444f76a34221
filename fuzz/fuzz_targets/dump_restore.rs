//! RESTORE: the payload of any body with a good footer is safe, and what restores dumps to a value that restores again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use simurgh_protocol::config::Settings;
use simurgh_storage::KeyHasher;
use simurgh_storage::rdb::crc64::crc64;
use simurgh_storage::rdb::dump::{dump_loaded, restore};
use simurgh_storage::rdb::string::STRING_BYTES_MAX;
use simurgh_storage::rdb::value::Loading;
use std::sync::LazyLock;

static SETTINGS: LazyLock<simurgh_protocol::config::Config> = LazyLock::new(|| Settings::default().config());
static HASHER: LazyLock<KeyHasher> = LazyLock::new(|| KeyHasher::new(1));

fuzz_target!(|body: &[u8]| {
    let mut payload = [body, &10u16.to_le_bytes()].concat();
    let sum = crc64(0, &payload);
    payload.extend_from_slice(&sum.to_le_bytes());
    let loading = Loading { packing: &SETTINGS.packing, hasher: &HASHER, string_bytes_max: STRING_BYTES_MAX };
    if let Ok(value) = restore(&payload, &loading) {
        let mut dumped = Vec::new();
        dump_loaded(&mut dumped, value);
        restore(&dumped, &loading).expect("what was dumped here is restored here");
        dumped[body.len() % 7] ^= 1;
        assert!(restore(&dumped, &loading).is_err());
    }
});
