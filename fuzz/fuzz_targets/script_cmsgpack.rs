//! cmsgpack: any bytes are unpacked or refused, and what was unpacked is packed and unpacked again.
#![no_main]

mod engine;

use libfuzzer_sys::fuzz_target;

// pcall is left with one value: with twenty or more it steps on its stack's reserve, as Lua 5.1's own does, which the API's
// checks of a build for fuzzing take for a mistake.
const CLAIM: &str = "
local function list(call, bytes) return {call(bytes)} end
local unpacked, values = pcall(list, cmsgpack.unpack, ARGV[1])
if not unpacked then return type(values) == 'string' end
local packed, bytes = pcall(cmsgpack.pack, values[1])
if not packed then return type(bytes) == 'string' end
local again, value = pcall(list, cmsgpack.unpack, bytes)
local first, one = pcall(list, cmsgpack.unpack_one, ARGV[1])
if first and one[1] ~= -1 and one[1] <= 0 then return false end
-- What is nested too deeply is packed as nil, which is no key.
if not again then return type(value) == 'string' end
return type(value[1]) == type(values[1])
";

fuzz_target!(|bytes: &[u8]| {
    // unpack() of nothing gives nothing, of which there is nothing to say.
    if !bytes.is_empty() {
        engine::holds(CLAIM, &[bytes]);
    }
});
