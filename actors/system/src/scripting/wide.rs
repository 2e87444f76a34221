//! Which scripts take all shards though they name keys: those that have wanted keys that they had not named, and could not
//! have their shards at once.
//!
//! A script is known here by the hash of its text, digest or name, as the request has it. To take one for another costs
//! nothing but parallel work.

use super::Scripting;
use crate::request::Incoming;
use simurgh_protocol::Args;
use simurgh_storage::Layout;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Above this number they are forgotten together, and learned again.
const WIDE_MAX: usize = 10_000;

/// The scripts that take all shards.
#[derive(Debug, Default)]
pub(crate) struct Wide {
    hashes: Mutex<BTreeSet<u64>>,
    has_any: AtomicBool,
}

impl Wide {
    /// A script has wanted more than it had named.
    pub fn learn(&self, args: &Args<'_>, layout: &Layout) {
        let mut hashes = self.hashes.lock().unwrap_or_else(PoisonError::into_inner);
        if hashes.len() >= WIDE_MAX {
            hashes.clear();
        }
        hashes.insert(layout.hasher.key(args.at(1)).hash);
        self.has_any.store(true, Ordering::Release);
    }

    fn has(&self, args: &Args<'_>, layout: &Layout) -> bool {
        let hashes = self.hashes.lock().unwrap_or_else(PoisonError::into_inner);
        args.get(1).is_some_and(|name| hashes.contains(&layout.hasher.key(name).hash))
    }
}

impl Scripting {
    /// The script of this request has wanted more than it had named.
    pub(crate) fn learn_wide(&self, args: &Args<'_>, layout: &Layout) {
        self.wide.learn(args, layout);
    }

    /// Gives requests with such scripts all shards.
    #[inline]
    pub(crate) fn widen(&self, incoming: &mut Incoming, layout: &Layout) {
        if self.wide.has_any.load(Ordering::Acquire) {
            incoming.widen(layout, |args| self.wide.has(args, layout));
        }
    }
}
