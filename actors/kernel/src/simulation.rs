//! The simulated world's own side of the seam: machines that can be killed, paused and cut off, in a time and a schedule
//! that follow from a seed. Only the simulator uses it; a server never knows that it is there.

use std::net::IpAddr;

use madsim::runtime::{Handle, Runtime};
use madsim::task::NodeId;

use crate::net::faults::Faults;
use crate::net::wires;
use crate::time;

/// Runs `main` in a world of its own until it is done, and returns what it returns. The network behaves as told. At most one
/// world per process is reproducible: state left by one changes the next.
///
/// # Panics
/// When a task panics, or when nothing can happen any more although `main` still waits.
pub fn run<F: Future>(seed: u64, network: Faults, main: impl FnOnce() -> F) -> F::Output {
    wires::begin(seed, network);
    Runtime::with_seed_and_config(seed, madsim::Config::default()).block_on(async move { main().await })
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
        wires::register(node.id(), address);
        Self { id: node.id() }
    }

    /// Starts a task on it. Cores, listeners and connections that the task opens are the machine's.
    ///
    /// # Panics
    /// When the machine is not there (it always is, once built).
    pub fn spawn<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> Task<T> {
        let node = Handle::current().get_node(self.id).expect("a machine that was built");
        Task(node.spawn(crate::core::abort_on_panic(task)))
    }

    /// Ends all tasks at once and closes its connections, then lets it start new ones. What the tasks hold is dropped a
    /// little later, so nothing that a dead task's `drop` does may matter.
    pub fn kill(&self) {
        wires::process_ended(self.id);
        self.end_tasks();
    }

    /// The same, but its connections' peers hear nothing of it until it is up again.
    pub fn lose_power(&self) {
        wires::power_lost(self.id);
        self.end_tasks();
    }

    fn end_tasks(&self) {
        let handle = Handle::current();
        handle.kill(self.id);
        handle.restart(self.id);
    }

    /// Its wall clock, in milliseconds of Unix time.
    #[must_use]
    pub fn wall_ms(&self) -> i64 {
        time::wall_us_of(self.id) / 1000
    }

    /// Steps its wall clock by so many microseconds, and lets it gain so many in each second from then on.
    pub fn step_clock(&self, step_us: i64, drift_ppm: i64) {
        time::step_clock(self.id, step_us, drift_ppm);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::{self, Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
    use crate::net::{Listener, ReadExt, WriteExt, connect_tcp};
    use crate::{core, random, time};
    use std::net::SocketAddr;
    use std::time::Duration;

    fn calm() -> Faults {
        Faults { latency_ns: 1_000_000..5_000_000, ..Faults::default() }
    }

    fn machine(name: &str, last: u8) -> Machine {
        Machine::new(name, IpAddr::from([10, 0, 0, last]))
    }

    fn server() -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], 1))
    }

    struct Doubler;

    impl Actor for Doubler {
        type Msg = (u64, RpcReplyPort<u64>);
        type State = ();
        type Arguments = ();

        async fn pre_start(&self, _myself: ActorRef<Self::Msg>, (): ()) -> Result<(), ActorProcessingErr> {
            Ok(())
        }

        async fn handle(
            &self,
            _myself: ActorRef<Self::Msg>,
            (number, reply): Self::Msg,
            _state: &mut (),
        ) -> Result<(), ActorProcessingErr> {
            time::sleep(Duration::from_secs(3600)).await;
            let _ = reply.send(number * 2);
            Ok(())
        }
    }

    /// The patched async-std: ractor's tasks and sleeps are the simulation's.
    #[test]
    fn actors_run_in_virtual_time() {
        run(1, calm(), || async {
            let (doubler, _) = Actor::spawn(None, Doubler, ()).await.unwrap();
            let hour = 3_600_000_000_000;
            let answer = actor::call!(doubler, |reply| (21, reply)).unwrap();
            assert_eq!(answer, 42);
            assert!((hour..2 * hour).contains(&time::monotonic_ns()));
            let late = actor::call_t!(doubler, |reply| (21, reply), 100);
            assert!(late.is_err(), "the call's deadline is virtual, too");
        });
    }

    #[test]
    fn a_stream_writes_without_a_flush_and_shows_its_end() {
        run(2, calm(), || async {
            let serve = machine("server", 1).spawn(async {
                let listener = Listener::bind_tcp(server(), 1).unwrap();
                let (incoming, _) = listener.accept().await.unwrap();
                let mut stream = incoming.open().unwrap();
                stream.write_all(&[7; 10_000]).await.unwrap();
                stream.shutdown().await.unwrap();
            });
            let mut read = machine("client", 2).spawn(async {
                time::sleep(Duration::from_millis(100)).await;
                let mut bytes = Vec::new();
                connect_tcp(server()).await.unwrap().read_to_end(&mut bytes).await.unwrap();
                bytes
            });
            assert_eq!(read.output().await.unwrap(), vec![7; 10_000]);
            drop(serve);
        });
    }

    #[test]
    fn a_killed_machine_drops_its_tasks_and_starts_anew() {
        run(3, calm(), || async {
            let machine = machine("server", 1);
            let (alive, mut heard) = tokio::sync::mpsc::unbounded_channel();
            let mut task = machine.spawn(async move {
                let core = core::Core::start("core", 0).unwrap();
                core.spawn(async move {
                    loop {
                        time::sleep(Duration::from_millis(10)).await;
                        alive.send(()).unwrap();
                    }
                });
                std::future::pending::<()>().await;
            });
            heard.recv().await.unwrap();
            machine.kill();
            assert_eq!(task.output().await, None);
            while heard.recv().await.is_some() {}
            assert_eq!(machine.spawn(async { 5 }).output().await, Some(5));
        });
    }

    #[test]
    fn a_node_that_stops_itself_takes_its_machine_down_and_no_other() {
        run(6, calm(), || async {
            let stopping = machine("server", 1);
            let mut other_task = stopping.spawn(std::future::pending::<()>());
            let mut bystander = machine("client", 2).spawn(async {
                time::sleep(Duration::from_secs(1)).await;
                7
            });
            let mut task = stopping.spawn(async { core::abort_node() });
            assert_eq!(task.output().await, None::<()>);
            assert_eq!(other_task.output().await, None);
            assert_eq!(bystander.output().await, Some(7));
            stopping.kill();
            assert_eq!(stopping.spawn(async { 5 }).output().await, Some(5));
        });
    }

    #[test]
    fn the_same_seed_gives_the_same_entropy_and_time() {
        let draw = |seed| {
            run(seed, calm(), || async {
                time::sleep(Duration::from_millis(random::entropy_u64() % 50)).await;
                core::yield_now().await;
                (random::entropy_u64(), time::monotonic_ns(), time::wall_us())
            })
        };
        assert_eq!(draw(4), draw(4));
        assert_ne!(draw(4), draw(5));
    }
}
