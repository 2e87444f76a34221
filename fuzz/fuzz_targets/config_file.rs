//! redis.conf: a rewritten file reads to the same settings, and rewriting it again changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use simurgh_protocol::config::{Settings, read_lines, rewrite};

/// The settings of a file; none if a line of it is refused.
fn read(text: &[u8]) -> Option<Settings> {
    let mut settings = Settings::default();
    for line in read_lines("redis.conf", text, &mut |_| Err("no files here".to_owned())) {
        settings.apply(&line.ok()?).ok()?;
    }
    Some(settings)
}

fuzz_target!(|text: &[u8]| {
    let Some(settings) = read(text) else { return };
    let rewritten = rewrite(text, &settings);
    let again = read(&rewritten).expect("a rewritten file is good");
    assert_eq!(again.get(&[b"*"]), settings.get(&[b"*"]));
    assert_eq!(rewrite(&rewritten, &again), rewritten);
});
