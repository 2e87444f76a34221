//! Asking for the memory that a batch will touch before any of it is executed, so that the loads overlap.

use crate::client::Client;
use crate::request::{Incoming, Prepared};
use simurgh_kernel::mailbox::Held;
use simurgh_storage::Shard;

impl Client {
    /// The first pass over a batch when there are several shards: all are held for as long as it takes to ask for the memory
    /// that the batch will touch; those that are busy are left out.
    pub(crate) fn prefetch_shared(&mut self) {
        if self.node.shards.count() == 1 || self.incoming.waiting().len() < 4 {
            return;
        }
        let wanted = self.incoming.waiting().iter().fold(0, |set, next| set | next.shards);
        let node = self.node.clone();
        if let Some(mut held) = node.shards.try_hold(wanted) {
            self.prefetch(&self.incoming, &mut held);
        }
    }

    /// Asks for the memory that the waiting requests will touch: buckets, then entries, each for all of them before the next,
    /// so that the loads overlap.
    pub(crate) fn prefetch(&self, incoming: &Incoming, held: &mut Held<'_, Shard, Self>) {
        let set = held.set();
        let is_held = move |next: &&Prepared| next.shards & !set == 0;
        let keys =
            || incoming.waiting().iter().filter(is_held).filter_map(|next| Some((next.shards, next.first_hash?)));
        for (shards, hash) in keys() {
            held.get(shards.trailing_zeros() as usize).database(self.database).prefetch_bucket(hash);
        }
        for (shards, hash) in keys() {
            held.get(shards.trailing_zeros() as usize).database(self.database).prefetch_entry(hash);
        }
    }
}
