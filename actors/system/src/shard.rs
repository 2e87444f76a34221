//! The shard actor: a part of the keyspace, and the jobs that come to it.
//!
//! State is [`simurgh_storage::Shard`]; the one message is a client with requests to execute, so a busy shard's queue holds
//! whole connections' batches. Whoever holds a shard runs what has queued before letting go (see the kernel's mailbox). A panic
//! while a shard is held stops the node: a shard that lost half a change must not be read again.

use crate::client::Client;
use simurgh_kernel::core::AbortOnUnwind;
use simurgh_kernel::mailbox::{Held, Job};
use simurgh_storage::{Shard, Shards};

/// Shards held for a job, as commands see them.
pub(crate) struct HeldShards<'a, 'b>(pub &'a mut Held<'b, Shard, Client>);

impl Shards for HeldShards<'_, '_> {
    #[inline]
    fn shard(&mut self, index: usize) -> &mut Shard {
        self.0.get(index)
    }
}

/// For commands that run without any shard.
pub(crate) struct NoShards;

impl Shards for NoShards {
    fn shard(&mut self, index: usize) -> &mut Shard {
        panic!("shard {index} is used by a command whose row says that it needs none")
    }
}

impl Job<Shard> for Client {
    fn run(mut self: Box<Self>, held: &mut Held<'_, Shard, Self>) {
        {
            let _guard = AbortOnUnwind::new();
            self.run_held(held);
        }
        self.node.stats.queued_at_shard.add(1);
        let shared = self.shared.clone();
        shared.inbox.give_back(self);
    }
}
