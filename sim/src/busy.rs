//! Busy shards. In a simulated node every connection runs on one thread and lets go of its shards before anyone else has a
//! turn, so nobody would ever meet one that is held. This task holds some now and then, over turns of others, so that
//! clients queue, travel and come back as they do between threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use simurgh_kernel::{core, time};
use simurgh_system::node::Node;

use crate::options::Busy;
use crate::random::Random;

/// Holds shards until the node is asked to end; `queued` counts the clients that met a busy one.
pub async fn hold_now_and_then(node: Arc<Node>, busy: Busy, seed: u64, queued: Arc<AtomicU64>) {
    let mut random = Random::of(seed, &format!("busy shards from {} on", time::monotonic_ns()));
    let mut counted = node.stats.queued_at_shard.get();
    while busy.hold_us_max > 0 && !node.shutdown.is_asked() {
        time::sleep(Duration::from_micros(random.below(busy.pause_us_max))).await;
        let some = random.bits() & random.bits() & node.shards.all();
        let all = random.chance(8).then(|| node.shards.all());
        let Some(held) = node.shards.try_hold(all.unwrap_or(some)) else { continue };
        if random.chance(2) {
            for _ in 0..random.below(20) {
                core::yield_now().await;
            }
        } else {
            time::sleep(Duration::from_micros(random.below(busy.hold_us_max))).await;
        }
        drop(held);
        let now = node.stats.queued_at_shard.get();
        queued.fetch_add(now - counted, Ordering::Relaxed);
        counted = now;
    }
}
