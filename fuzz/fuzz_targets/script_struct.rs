//! struct: whatever the format says, what is read lies within the bytes.
#![no_main]

mod engine;

use libfuzzer_sys::fuzz_target;

// pcall is left with one value: see script_cmsgpack.rs.
const CLAIM: &str = "
local function list(...) return {struct.unpack(...)} end
pcall(struct.pack, ARGV[1], 1, 'a', 2.5, 'text', -1)
local sized, size = pcall(struct.size, ARGV[1])
if sized and size < 0 then return false end
local unpacked, values = pcall(list, ARGV[1], ARGV[2])
if not unpacked then return type(values) == 'string' end
local stopped = values[#values]
return type(stopped) == 'number' and stopped >= 1 and stopped <= #ARGV[2] + 1
";

fuzz_target!(|input: (&[u8], &[u8])| engine::holds(CLAIM, &[input.0, input.1]));
