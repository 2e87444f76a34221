//! cmsgpack: any bytes are unpacked or refused, and what was unpacked is packed and unpacked again.
#![no_main]

mod engine;

use libfuzzer_sys::fuzz_target;

const CLAIM: &str = "
local values = {pcall(cmsgpack.unpack, ARGV[1])}
if not values[1] then return type(values[2]) == 'string' end
local packed, bytes = pcall(cmsgpack.pack, values[2])
if not packed then return type(bytes) == 'string' end
local again, value = pcall(cmsgpack.unpack, bytes)
local one = {pcall(cmsgpack.unpack_one, ARGV[1])}
return again and type(value) == type(values[2]) and (not one[1] or one[2] == -1 or one[2] > 0)
";

fuzz_target!(|bytes: &[u8]| {
    // unpack() of nothing gives nothing, of which there is nothing to say.
    if !bytes.is_empty() {
        engine::holds(CLAIM, &[bytes]);
    }
});
