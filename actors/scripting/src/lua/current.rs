//! The server that the run under way asks: functions of the state reach it, which outlive every run.
//!
//! To make those functions anew for each run would cost more than most scripts do.
#![allow(unsafe_code)]

use crate::Host;
use std::cell::Cell;
use std::ptr::NonNull;

/// Where the host of the run is, while there is one and nobody uses it.
#[derive(Default)]
pub(super) struct CurrentHost(Cell<Option<NonNull<dyn Host>>>);

/// Puts back what was there before.
struct Restore<'a>(&'a Cell<Option<NonNull<dyn Host>>>, Option<NonNull<dyn Host>>);

impl Drop for Restore<'_> {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}

impl CurrentHost {
    /// Runs `run`, in which [`CurrentHost::with`] gives `host`.
    pub fn enter<R>(&self, host: &mut dyn Host, run: impl FnOnce() -> R) -> R {
        let pointer = NonNull::from(host);
        // SAFETY: only the lifetime changes, and the pointer is taken back before that ends, also by a panic.
        let pointer = unsafe { std::mem::transmute::<NonNull<dyn Host + '_>, NonNull<dyn Host + 'static>>(pointer) };
        let _restore = Restore(&self.0, self.0.replace(Some(pointer)));
        run()
    }

    /// Gives the host of the run, unless it is in use further up the stack.
    pub fn with<R>(&self, with: impl FnOnce(&mut dyn Host) -> R) -> Option<R> {
        let mut pointer = self.0.take()?;
        let _restore = Restore(&self.0, Some(pointer));
        // SAFETY: `enter` is under way and has the only reference, which it does not use meanwhile; while this one lives, the place
        // is empty, so nobody makes another.
        Some(with(unsafe { pointer.as_mut() }))
    }
}
