//! How a client tracks. Others look at it when they invalidate, so it is a set of bits and two numbers without a lock.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The switches of CLIENT TRACKING.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode(u8);

impl Mode {
    /// It tracks.
    pub const ON: Self = Self(1);
    /// It hears of all keys, or of those with certain prefixes, read or not.
    pub const BCAST: Self = Self(1 << 1);
    /// Only what is read right behind CLIENT CACHING YES is tracked.
    pub const OPTIN: Self = Self(1 << 2);
    /// What is read right behind CLIENT CACHING NO is not.
    pub const OPTOUT: Self = Self(1 << 3);
    /// It does not hear of what it changes itself.
    pub const NOLOOP: Self = Self(1 << 4);
    /// The client that was to hear in its place has gone.
    pub const BROKEN: Self = Self(1 << 5);

    /// Whether all of `other` is set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// This and `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A client's mode, as others may read it.
#[derive(Debug, Default)]
pub struct TrackingMode {
    bits: AtomicU8,
    redirect: AtomicU64,
    /// What its prefixes take.
    prefix_bytes: AtomicUsize,
}

/// What a prefix costs beside its bytes, about: its place in the table, and its client's place there.
const PREFIX_BYTES: usize = 64;

impl TrackingMode {
    /// The switches.
    #[must_use]
    #[inline]
    pub fn get(&self) -> Mode {
        Mode(self.bits.load(Relaxed))
    }

    /// The number of the client that hears in its place; 0 where there is none.
    #[must_use]
    pub fn redirect(&self) -> u64 {
        self.redirect.load(Relaxed)
    }

    /// The number as CLIENT LIST and CLIENT GETREDIR tell it: -1 without tracking.
    #[must_use]
    pub fn redirect_told(&self) -> i64 {
        if self.get().has(Mode::ON) { i64::try_from(self.redirect()).unwrap_or(i64::MAX) } else { -1 }
    }

    /// Memory that its prefixes take, about.
    pub(crate) fn memory(&self) -> usize {
        self.prefix_bytes.load(Relaxed)
    }

    /// A prefix has been added for it.
    pub(super) fn add_prefix(&self, prefix: &[u8]) {
        self.prefix_bytes.fetch_add(PREFIX_BYTES + prefix.len(), Relaxed);
    }

    /// It has no prefixes any more.
    pub(super) fn forget_prefixes(&self) {
        self.prefix_bytes.store(0, Relaxed);
    }

    pub(super) fn set(&self, mode: Mode, redirect: u64) {
        self.redirect.store(redirect, Relaxed);
        self.bits.store(mode.0, Relaxed);
    }

    /// The client that was to hear has gone.
    pub(super) fn set_broken(&self) {
        self.bits.fetch_or(Mode::BROKEN.0, Relaxed);
    }
}
