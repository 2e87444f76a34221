//! The allocator: jemalloc on huge pages. A node never forks, so nothing speaks against them, and a random load over a large
//! keyspace costs less than half on two-megabyte pages.
#![allow(unsafe_code)]

use tikv_jemalloc_ctl::{epoch, stats};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Read by jemalloc before `main`.
// SAFETY: the name is jemalloc's own and the value is a NUL-terminated string that lives for ever, as it asks.
#[unsafe(export_name = "_rjem_malloc_conf")]
pub static MALLOC_CONF: Option<&'static std::ffi::c_char> = Some(CONF.first());

struct Conf(&'static std::ffi::CStr);

const CONF: Conf = Conf(c"thp:always,metadata_thp:auto,narenas:2,background_thread:false");

impl Conf {
    const fn first(&self) -> &'static std::ffi::c_char {
        // SAFETY: a C string has at least its NUL byte.
        unsafe { &*self.0.as_ptr() }
    }
}

/// Bytes that the process has allocated and not freed.
pub fn allocated() -> usize {
    let _ = epoch::advance();
    stats::allocated::read().unwrap_or(0)
}
