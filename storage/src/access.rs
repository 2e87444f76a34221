//! The access field of an entry: when it was last used (LRU) or how often (LFU), as Redis keeps both in 24 bits.
//!
//! ```text
//! LRU: [ seconds of Unix time, low 24 bits ]
//! LFU: [ minutes of Unix time, low 16 bits, of the last decay ][ logarithmic counter, 8 bits ]
//! ```
//!
//! The counter grows with probability `1 / ((counter - 5) * lfu-log-factor + 1)` and loses one for every `lfu-decay-time`
//! minutes (<https://redis.io/docs/latest/develop/reference/eviction/>).

/// Bits of the access field.
const MASK: u32 = (1 << 24) - 1;
/// The counter that a fresh key starts with, so that it is not evicted at once.
const LFU_INITIAL: u32 = 5;

/// Which of the two the field holds, by `maxmemory-policy`, with LFU's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessPolicy {
    /// Least recently used.
    Lru,
    /// Least frequently used.
    Lfu {
        /// `lfu-log-factor`.
        log_factor: u32,
        /// `lfu-decay-time`, in minutes; 0 never decays.
        decay_minutes: u32,
    },
}

impl AccessPolicy {
    /// The field of a key written now.
    #[must_use]
    pub fn fresh(self, now_ms: i64) -> u32 {
        match self {
            Self::Lru => lru_clock(now_ms),
            Self::Lfu { .. } => minutes(now_ms) << 8 | LFU_INITIAL,
        }
    }

    /// The field of a key used now; `random` decides whether LFU's counter grows.
    #[must_use]
    pub fn used(self, access: u32, now_ms: i64, random: impl FnOnce() -> f64) -> u32 {
        match self {
            Self::Lru => lru_clock(now_ms),
            Self::Lfu { log_factor, .. } => {
                let counter = self.frequency(access, now_ms);
                let base = counter.saturating_sub(LFU_INITIAL);
                let grows = counter < 255 && random() < 1.0 / (f64::from(base) * f64::from(log_factor) + 1.0);
                minutes(now_ms) << 8 | (counter + u32::from(grows))
            }
        }
    }

    /// LFU's counter after the decay due by now.
    #[must_use]
    pub fn frequency(self, access: u32, now_ms: i64) -> u32 {
        let counter = access & 0xff;
        match self {
            Self::Lru | Self::Lfu { decay_minutes: 0, .. } => counter,
            Self::Lfu { decay_minutes, .. } => {
                let elapsed = minutes(now_ms).wrapping_sub(access >> 8) & 0xffff;
                counter.saturating_sub(elapsed / decay_minutes)
            }
        }
    }
}

/// Seconds that a key has not been used for, by its LRU field.
#[must_use]
pub fn idle_seconds(access: u32, now_ms: i64) -> u32 {
    lru_clock(now_ms).wrapping_sub(access) & MASK
}

/// The LRU field of a key last used `idle` seconds ago.
#[must_use]
pub fn lru_of_idle(idle: u32, now_ms: i64) -> u32 {
    lru_clock(now_ms).wrapping_sub(idle) & MASK
}

/// The LFU field with this counter, decayed last now.
#[must_use]
pub fn lfu_of_frequency(frequency: u8, now_ms: i64) -> u32 {
    minutes(now_ms) << 8 | u32::from(frequency)
}

fn lru_clock(now_ms: i64) -> u32 {
    (now_ms / 1000) as u32 & MASK
}

fn minutes(now_ms: i64) -> u32 {
    (now_ms / 60_000) as u32 & 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lfu_counts_logarithmically_and_decays() {
        let policy = AccessPolicy::Lfu { log_factor: 10, decay_minutes: 1 };
        let mut access = policy.fresh(0);
        access = policy.used(access, 0, || 0.99);
        assert_eq!(policy.frequency(access, 0), 6);
        access = policy.used(access, 0, || 0.5);
        assert_eq!(policy.frequency(access, 0), 6);
        assert_eq!(policy.frequency(access, 4 * 60_000), 2);
        assert_eq!(policy.frequency(access, 65_536 * 60_000), 6);
    }

    #[test]
    fn idle_time_wraps() {
        assert_eq!(idle_seconds(lru_of_idle(100, 5_000), 5_000), 100);
    }
}
