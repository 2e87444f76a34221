//! The allocator: jemalloc on huge pages. A node never forks, so nothing speaks against them, and a random load over a large
//! keyspace costs less than half on two-megabyte pages.
#![allow(unsafe_code)]

use simurgh_system::memory::{Allocator, AllocatorFigures};
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
fn allocated() -> usize {
    let _ = epoch::advance();
    stats::allocated::read().unwrap_or(0)
}

/// The allocator as the node uses it.
pub const HOOKS: Allocator = Allocator { allocated, figures, report, purge };

fn figures() -> AllocatorFigures {
    let _ = epoch::advance();
    AllocatorFigures {
        allocated: stats::allocated::read().unwrap_or(0),
        active: stats::active::read().unwrap_or(0),
        resident: stats::resident::read().unwrap_or(0),
        muzzy: 0,
    }
}

fn report() -> String {
    let mut report = Vec::new();
    match tikv_jemalloc_ctl::stats_print::stats_print(&mut report, Default::default()) {
        Ok(()) => String::from_utf8_lossy(&report).into_owned(),
        Err(error) => format!("no statistics: {error}"),
    }
}

fn purge() {
    // MALLCTL_ARENAS_ALL, as in <https://jemalloc.net/jemalloc.3.html#arena.i.purge>.
    // SAFETY: this control reads and writes nothing, so it takes no value of any type.
    let _ = unsafe {
        tikv_jemalloc_sys::mallctl(
            c"arena.4096.purge".as_ptr(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            0,
        )
    };
}
