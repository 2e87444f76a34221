//! What clients do. Each workload is a story whose truth is easy to judge:
//!
//! | workload | what it does | what must hold |
//! | --- | --- | --- |
//! | [`ledger`] | pipelined writes of a client to its own keys, numbered | after a crash a prefix is there, at least what was promised |
//! | [`register`] | SET and GET of shared keys | one order explains all that was seen |
//! | [`counter`] | INCR of one key | no number twice, none lost |
//! | [`bank`] | transfers in MULTI/EXEC | the sum never changes |
//! | [`expiry`] | keys with a time to live | none gone early, none there late, the moment never moves |
//! | [`queue`] | items pushed to lists, waited for and taken or moved | each taken once, in order, by who came first; none lost |
//! | [`kinds`] | changes of a client's own keys of every type, in and out of MULTI | a prefix of the changes is there |
//! | [`mirror`] | one change of several types at once, by all clients | whoever looks finds them equal |
//! | [`rewriter`] | snapshots and rewrites of the log | what the others find |
//! | [`pubsub`] | numbered messages | heard in order, once, none invented, none missed between others |

pub mod bank;
pub mod counter;
pub mod expiry;
pub mod kinds;
pub mod ledger;
pub mod mirror;
pub mod pubsub;
pub mod queue;
pub mod register;
pub mod rewriter;

use std::time::Duration;

use simurgh_kernel::time;

use crate::random::Random;

/// Lets some virtual time pass, so that clients meet in ever other ways.
pub async fn think(random: &mut Random) {
    let us_max = *random.pick(&[0, 2000, 20_000]);
    if us_max > 0 {
        time::sleep(Duration::from_micros(random.below(us_max))).await;
    }
}
