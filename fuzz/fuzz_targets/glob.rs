//! Glob patterns: plain bytes match themselves only, and stars around anything that matches match too.
#![no_main]

use libfuzzer_sys::fuzz_target;
use simurgh_protocol::glob::matches;

fuzz_target!(|input: (&[u8], &[u8])| {
    let (pattern, text) = input;
    if !pattern.iter().any(|byte| b"*?[\\".contains(byte)) {
        assert_eq!(matches(pattern, text), pattern == text);
    }
    // No pattern with a star but `*` itself matches the empty text, in Redis too.
    if matches(pattern, text) && !text.is_empty() {
        assert!(matches(&[b"*", pattern].concat(), text));
    }
    assert!(matches(b"*", text));
});
