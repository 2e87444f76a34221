//! Clocks and sleeping. The monotonic clock measures durations and never steps; the wall clock says what a key's absolute
//! expiry is compared with and may step. Both are read here and handed down as plain numbers, because the floors below
//! never read a clock. In the simulator all of them are virtual and follow from the seed.

use std::time::Duration;

pub use tokio::time::sleep;

/// Nanoseconds since the process (or the simulation) began. Never goes backwards.
pub fn monotonic_ns() -> u64 {
    source::monotonic_ns()
}

/// Microseconds since the Unix epoch.
pub fn wall_us() -> i64 {
    source::wall_us()
}

/// Milliseconds since the Unix epoch: the unit of every expiry.
pub fn wall_ms() -> i64 {
    source::wall_us() / 1000
}

/// Sleeps until [`monotonic_ns`] reads at least `deadline_ns`; returns at once when it already does.
pub async fn sleep_until(deadline_ns: u64) {
    let now = monotonic_ns();
    if deadline_ns > now {
        sleep(Duration::from_nanos(deadline_ns - now)).await;
    }
}

/// The future did not finish in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("deadline passed")]
pub struct Elapsed;

/// Waits for `future`, at most for `limit`.
pub async fn timeout<F: Future>(limit: Duration, future: F) -> Result<F::Output, Elapsed> {
    tokio::time::timeout(limit, future).await.map_err(|_| Elapsed)
}

/// The processor's cycle counter: a few nanoseconds to read, for timing single commands. Only differences mean anything,
/// and only after [`ticks_to_ns`].
#[inline]
pub fn ticks() -> u64 {
    source::ticks()
}

/// How many nanoseconds lie between two readings of [`ticks`].
#[inline]
pub fn ticks_to_ns(start: u64, end: u64) -> u64 {
    source::ticks_to_ns(start, end)
}

/// Stops the calling thread for `duration`, with whatever it holds: DEBUG SLEEP. Whether it did: in the simulator, where all
/// nodes share one thread, nothing may stop, and the caller sleeps instead.
#[must_use]
pub fn stand_still(duration: Duration) -> bool {
    source::stand_still(duration)
}

/// Prepares the clocks, so that the first reading is not slower than the others (calibrating the cycle counter takes some
/// milliseconds). Call once when the process starts.
pub fn prepare() {
    let start = ticks();
    let _ = (ticks_to_ns(start, ticks()), monotonic_ns());
}

#[cfg(not(madsim))]
mod source {
    //! The operating system's clocks.
    #![allow(clippy::disallowed_methods, reason = "this is the seam that the ban points to")]

    use std::sync::LazyLock;
    use std::time::Duration;
    use std::time::{Instant, SystemTime, UNIX_EPOCH};

    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    static COUNTER: LazyLock<quanta::Clock> = LazyLock::new(quanta::Clock::new);

    pub fn monotonic_ns() -> u64 {
        u64::try_from(START.elapsed().as_nanos()).expect("a process lives less than 584 years")
    }

    pub fn wall_us() -> i64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX)
    }

    pub fn stand_still(duration: Duration) -> bool {
        std::thread::sleep(duration);
        true
    }

    #[inline]
    pub fn ticks() -> u64 {
        COUNTER.raw()
    }

    #[inline]
    pub fn ticks_to_ns(start: u64, end: u64) -> u64 {
        COUNTER.delta_as_nanos(start, end)
    }
}

#[cfg(madsim)]
mod source {
    //! The simulation's virtual time. Wall clocks are each machine's own: off, drifting, stepping.

    use std::cell::RefCell;
    use std::collections::BTreeMap;
    use std::time::{Duration, UNIX_EPOCH};

    use madsim::task::NodeId;
    use madsim::time::TimeHandle;

    /// How a machine's wall clock differs from the true time.
    #[derive(Clone, Copy)]
    struct Clock {
        offset_us: i64,
        /// Microseconds that it gains in a second.
        drift_ppm: i64,
        /// When it was last set.
        set_ns: u64,
    }

    impl Clock {
        fn error_us(self, now_ns: u64) -> i64 {
            let since_ms = i64::try_from((now_ns - self.set_ns) / 1_000_000).unwrap_or(i64::MAX);
            self.offset_us + since_ms * self.drift_ppm / 1000
        }
    }

    thread_local! {
        static CLOCKS: RefCell<BTreeMap<NodeId, Clock>> = const { RefCell::new(BTreeMap::new()) };
    }

    pub fn monotonic_ns() -> u64 {
        u64::try_from(TimeHandle::current().elapsed().as_nanos()).expect("a simulation is short")
    }

    pub fn wall_us() -> i64 {
        let leak_us = if crate::rehearsal::leaks(crate::rehearsal::Leak::Clock) { real_us() } else { 0 };
        wall_us_of(madsim::plugin::node()) + leak_us
    }

    /// The real machine's time within its second: what a clock that is not simulated would let in.
    #[cold]
    fn real_us() -> i64 {
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
        let hundredths = uptime.split(' ').next().and_then(|text| text.rsplit('.').next()?.parse::<i64>().ok());
        hundredths.unwrap_or(0) * 10_000
    }

    /// The wall clock of a machine.
    pub fn wall_us_of(machine: NodeId) -> i64 {
        let since_epoch = TimeHandle::current().now_time().duration_since(UNIX_EPOCH).unwrap_or_default();
        let true_us = i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX);
        true_us + CLOCKS.with_borrow(|clocks| clocks.get(&machine).map_or(0, |clock| clock.error_us(monotonic_ns())))
    }

    /// Steps a machine's wall clock by so much, and lets it drift from then on.
    pub fn step_clock(machine: NodeId, step_us: i64, drift_ppm: i64) {
        let set_ns = monotonic_ns();
        CLOCKS.with_borrow_mut(|clocks| {
            let offset_us = clocks.get(&machine).map_or(0, |clock| clock.error_us(set_ns)) + step_us;
            clocks.insert(machine, Clock { offset_us, drift_ppm, set_ns });
        });
    }

    pub fn stand_still(_duration: Duration) -> bool {
        false
    }

    pub fn ticks() -> u64 {
        monotonic_ns()
    }

    pub fn ticks_to_ns(start: u64, end: u64) -> u64 {
        end.saturating_sub(start)
    }
}

#[cfg(madsim)]
pub(crate) use source::{step_clock, wall_us_of};

#[cfg(all(test, not(madsim)))]
mod tests {
    use super::*;

    #[test]
    fn ticks_agree_with_the_monotonic_clock() {
        prepare();
        let (start_ns, start_ticks) = (monotonic_ns(), ticks());
        while monotonic_ns() - start_ns < 20_000_000 {
            std::hint::spin_loop();
        }
        let measured = ticks_to_ns(start_ticks, ticks());
        let elapsed = monotonic_ns() - start_ns;
        assert!(measured.abs_diff(elapsed) < elapsed / 10, "{measured} ns by ticks, {elapsed} ns by the clock");
    }

    #[test]
    fn wall_clock_is_in_milliseconds_of_this_century() {
        assert!(wall_ms() > 1_700_000_000_000 && wall_ms() < 4_100_000_000_000);
        assert!(wall_us() / 1000 - wall_ms() < 1000);
    }
}
