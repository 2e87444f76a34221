//! The few names of async-std that ractor uses, forwarded to madsim, so that ractor's actors run on the simulator's
//! executor and in its time. ractor can run on tokio or on async-std; tokio cannot be replaced (madsim itself uses its
//! channels), async-std can. Without `--cfg madsim` this crate is empty, and nothing uses it.
#![cfg(madsim)]

pub use madsim::test;

/// Futures.
pub mod future {
    pub use std::future::Future;

    pub use madsim::time::timeout;
}

/// Tasks.
pub mod task {
    use std::future::Future;
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll, ready};

    pub use madsim::time::sleep;

    /// A task's result; dropping it leaves the task running.
    #[derive(Debug)]
    pub struct JoinHandle<T>(madsim::task::JoinHandle<T>);

    impl<T> Future for JoinHandle<T> {
        type Output = T;

        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
            match ready!(Pin::new(&mut self.0).poll(cx)) {
                Ok(output) => Poll::Ready(output),
                // The task was killed with its node or panicked. async-std would unwind here as well; in the simulator a
                // panic has already failed the run, and a killed node's survivors are dropped, not polled.
                Err(_) => Poll::Pending,
            }
        }
    }

    /// Starts a task on the current node.
    pub fn spawn<F: Future<Output: Send + 'static> + Send + 'static>(future: F) -> JoinHandle<F::Output> {
        JoinHandle(madsim::task::spawn(future))
    }

    /// Starts a task that need not be `Send`.
    pub fn spawn_local<F: Future<Output: 'static> + 'static>(future: F) -> JoinHandle<F::Output> {
        JoinHandle(madsim::task::spawn_local(future))
    }

    /// There is nothing to block in a simulation, and ractor asks only for its own threads, which no one may start.
    pub fn block_on<F: Future>(_future: F) -> F::Output {
        panic!("a simulated task may not block its thread")
    }

    /// Starts a task with a name.
    #[derive(Debug, Default)]
    pub struct Builder {}

    impl Builder {
        /// A builder without a name.
        pub fn new() -> Self {
            Self {}
        }

        /// The name is for debuggers of real runtimes; the simulator numbers its tasks.
        pub fn name(self, _name: String) -> Self {
            self
        }

        /// Starts the task.
        pub fn spawn<F: Future<Output: Send + 'static> + Send + 'static>(
            self,
            future: F,
        ) -> io::Result<JoinHandle<F::Output>> {
            Ok(spawn(future))
        }
    }
}
