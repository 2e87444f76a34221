//! The simulated world's own side of the seam: machines that can be killed, paused and cut off, in a time and a schedule
//! that follow from a seed. Only the simulator uses it; a server never knows that it is there.

use std::net::IpAddr;
use std::ops::Range;
use std::time::Duration;

use madsim::net::NetSim;
use madsim::runtime::{Handle, Runtime};
use madsim::task::NodeId;

/// Runs `main` in a world of its own until it is done, and returns what it returns. Messages between machines take a time
/// from `latency`. At most one world per process is reproducible: state left by one changes the next.
///
/// # Panics
/// When a task panics, or when nothing can happen any more although `main` still waits.
pub fn run<F: Future>(seed: u64, latency: Range<Duration>, main: impl FnOnce() -> F) -> F::Output {
    let mut config = madsim::Config::default();
    config.net.send_latency = latency;
    Runtime::with_seed_and_config(seed, config).block_on(async move { main().await })
}

/// A computer of the simulated world.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    id: NodeId,
}

impl Machine {
    /// Builds a machine with an address.
    pub fn new(name: &str, address: IpAddr) -> Self {
        let node = Handle::current().create_node().name(name).ip(address).build();
        Self { id: node.id() }
    }

    /// Starts a task on it. Cores, listeners and connections that the task opens are the machine's.
    ///
    /// # Panics
    /// When the machine is not there (it always is, once built).
    pub fn spawn<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> Task<T> {
        let node = Handle::current().get_node(self.id).expect("a machine that was built");
        Task(node.spawn(task))
    }

    /// Ends all tasks at once and closes its connections, then lets it start new ones. What the tasks hold is dropped a
    /// little later, so nothing that a dead task's `drop` does may matter.
    pub fn kill(&self) {
        let handle = Handle::current();
        handle.kill(self.id);
        handle.restart(self.id);
    }

    /// Stops its tasks where they are.
    pub fn pause(&self) {
        Handle::current().pause(self.id);
    }

    /// Lets a paused machine go on.
    pub fn resume(&self) {
        Handle::current().resume(self.id);
    }

    /// Asks it to end, as SIGTERM does.
    pub fn terminate(&self) {
        Handle::current().send_ctrl_c(self.id);
    }

    /// Cuts it off the network: what others send waits until it is reconnected.
    pub fn disconnect(&self) {
        NetSim::current().clog_node(self.id);
    }

    /// Ends the cut.
    pub fn reconnect(&self) {
        NetSim::current().unclog_node(self.id);
    }
}

/// A task that was started on a machine.
#[derive(Debug)]
pub struct Task<T>(madsim::task::JoinHandle<T>);

impl<T> Task<T> {
    /// What it returned, or nothing when it was killed with its machine.
    pub async fn output(&mut self) -> Option<T> {
        (&mut self.0).await.ok()
    }

    /// Whether it has ended, by itself or not.
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}
