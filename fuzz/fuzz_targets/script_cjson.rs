//! cjson: any text is read or refused, and what is written from what was read is read again.
#![no_main]

mod engine;

use libfuzzer_sys::fuzz_target;

const CLAIM: &str = "
local succeeded, value = pcall(cjson.decode, ARGV[1])
if not succeeded then return type(value) == 'string' end
local written, text = pcall(cjson.encode, value)
if not written then return type(text) == 'string' end
return pcall(cjson.decode, text)
";

fuzz_target!(|text: &[u8]| engine::holds(CLAIM, &[text]));
