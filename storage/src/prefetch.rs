//! Asks the processor to load a cache line before it is needed. A dependent load from memory takes as long as a hundred
//! instructions or more; sixteen of them in flight take hardly longer than one, which is why a batch is looked at before it is
//! executed.
#![allow(unsafe_code)]

/// Bytes that the processor loads at once.
pub const CACHE_LINE: usize = 64;

/// Begins to load the line at `address`. Any address will do: nothing is read from it.
#[inline]
pub fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect but on the caches, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch(address.cast(), std::arch::x86_64::_MM_HINT_T0);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
