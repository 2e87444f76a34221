//! A node that runs, and how it stops: first no new requests, then the log, then the end.

use crate::node::Node;
use simurgh_kernel::core::Core;
use simurgh_kernel::disk::DirectoryLock;
use simurgh_kernel::sync::Notify;
use simurgh_kernel::time;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Stopping: first no new requests, then the log, then the end.
#[derive(Debug, Default)]
pub struct Shutdown {
    asked: AtomicBool,
    connections_gone: AtomicBool,
    changed: Notify,
    finished: Notify,
}

impl Shutdown {
    /// Asks the node to stop.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Release);
        self.changed.notify_one();
    }

    /// Whether it has been asked to.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    /// Every connection has stopped executing: what the log holds now is all there will be.
    #[must_use]
    pub fn connections_gone(&self) -> bool {
        self.connections_gone.load(Ordering::Acquire)
    }

    /// Ends only with the node.
    pub async fn finished(&self) {
        self.finished.notified().await;
    }
}

/// A node that runs. Dropping it does not stop it.
pub struct Running {
    /// The node.
    pub node: Arc<Node>,
    pub(crate) cores: Arc<Vec<Core>>,
    pub(crate) listeners: Core,
    pub(crate) log_core: Core,
    pub(crate) snapshot_core: Core,
    pub(crate) _lock: DirectoryLock,
}

impl Running {
    /// Waits until somebody asks the node to stop, then stops it with every acknowledged write on the disk.
    pub async fn until_shutdown(self) {
        while !self.node.shutdown.is_asked() {
            self.node.shutdown.changed.notified().await;
        }
        self.stop().await;
    }

    /// Stops: no new connections, no more requests, everything in the log on the disk.
    async fn stop(self) {
        tracing::info!("stopping: no more requests");
        // Listeners turn connections away from now on. They end last: with them goes the supervisor, and with that the log
        // writer, which still has work to do.
        for client in self.node.clients.all() {
            client.kill();
        }
        let patience = time::monotonic_ns() + 5_000_000_000;
        while !self.node.clients.is_empty() && time::monotonic_ns() < patience {
            time::sleep(Duration::from_millis(1)).await;
        }
        self.node.shutdown.connections_gone.store(true, Ordering::Release);
        self.node.log.writer.notify_one();
        self.node.log_closed.notified().await;
        tracing::info!("stopped: everything acknowledged is on the disk");
        self.listeners.stop();
        for core in self.cores.iter() {
            core.stop();
        }
        self.log_core.stop();
        self.snapshot_core.stop();
    }
}
