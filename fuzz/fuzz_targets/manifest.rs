//! The manifest's reader: what it accepts is written and read back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use simurgh_storage::aof::manifest::Manifest;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(manifest) = Manifest::parse(bytes) {
        let formatted = manifest.format();
        if !formatted.is_empty() && formatted.split(|&byte| byte == b'\n').all(|line| line.len() < 1024) {
            assert_eq!(Manifest::parse(&formatted), Ok(manifest));
        }
    }
});
