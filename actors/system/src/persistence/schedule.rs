//! When a snapshot or a rewrite is due, by Redis's rules. Times come in, a decision goes out.

use super::Job;
use super::state::{Record, State};
use simurgh_protocol::config::{Config, SavePoint};

/// After a snapshot that failed, so many seconds pass before save points ask for another.
const SAVE_RETRY_SECONDS: i64 = 5;
/// From so many failures in a row on, rewrites wait: a minute first, then twice as long each time.
const REWRITE_FAILURES_FREE: u64 = 3;
const REWRITE_DELAY_MINUTES_MAX: u64 = 60;

/// What is due now, with nothing under way.
pub(super) fn due(state: &State, config: &Config, changes: u64, log_bytes: (u64, u64), now_ms: i64) -> Option<Job> {
    let may_rewrite = !is_rewrite_limited(&state.rewrites, now_ms);
    if (state.rewrite_scheduled || state.log_starts) && may_rewrite {
        return Some(Job::Rewrite);
    }
    let since_save_s = now_ms / 1000 - state.last_save_s;
    let changes = changes.saturating_sub(state.changes_saved);
    let may_save = state.saves.is_ok || now_ms / 1000 - state.saves.tried_ms / 1000 > SAVE_RETRY_SECONDS;
    if may_save && (state.save_scheduled || is_save_due(&config.save_points, changes, since_save_s)) {
        return Some(Job::Save);
    }
    let (size, base) = log_bytes;
    let has_grown =
        config.append_only && has_grown(config.auto_rewrite_percentage, config.auto_rewrite_bytes_least, size, base);
    (has_grown && may_rewrite).then_some(Job::Rewrite)
}

fn is_save_due(points: &[SavePoint], changes: u64, since_save_s: i64) -> bool {
    let is_met =
        |point: &SavePoint| changes >= u64::try_from(point.changes).unwrap_or(0) && since_save_s > point.seconds;
    points.iter().any(is_met)
}

fn has_grown(percentage: u64, bytes_least: u64, size: u64, base: u64) -> bool {
    let base = base.max(1);
    let growth = (u128::from(size) * 100 / u128::from(base)).saturating_sub(100);
    percentage > 0 && size > bytes_least && growth >= u128::from(percentage)
}

fn is_rewrite_limited(rewrites: &Record, now_ms: i64) -> bool {
    let Some(beyond) = rewrites.failures.checked_sub(REWRITE_FAILURES_FREE) else { return false };
    let minutes = 1u64.checked_shl(beyond.min(32) as u32).unwrap_or(u64::MAX).min(REWRITE_DELAY_MINUTES_MAX);
    now_ms - rewrites.tried_ms < minutes as i64 * 60_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use simurgh_protocol::config::Settings;

    fn config(points: &[(i64, i64)]) -> Config {
        let save_points = points.iter().map(|&(seconds, changes)| SavePoint { seconds, changes }).collect();
        Config { save_points, ..Settings::default().config() }
    }

    #[test]
    fn save_points_are_met_by_changes_and_time() {
        let config = config(&[(60, 100), (300, 1)]);
        let state = State { last_save_s: 1000, changes_saved: 50, ..State::default() };
        for (changes, at_s, is_due) in [
            (50, 2000, false),
            (51, 1300, false),
            (51, 1301, true),
            (149, 1100, false),
            (150, 1061, true),
            (150, 1060, false),
        ] {
            let found = due(&state, &config, changes, (0, 0), at_s * 1000);
            assert_eq!(found, is_due.then_some(Job::Save), "{changes} changes at {at_s}");
        }
    }

    #[test]
    fn a_failed_snapshot_is_tried_again_after_a_while() {
        let config = config(&[(1, 1)]);
        let saves = Record { is_ok: false, tried_ms: 100_000, ..Record::default() };
        let state = State { saves, ..State::default() };
        assert_eq!(due(&state, &config, 1, (0, 0), 105_999), None);
        assert_eq!(due(&state, &config, 1, (0, 0), 106_000), Some(Job::Save));
    }

    #[test]
    fn the_log_is_rewritten_when_it_has_grown() {
        let mut config = config(&[]);
        (config.auto_rewrite_percentage, config.auto_rewrite_bytes_least) = (100, 1000);
        let state = State::default();
        for (size, base, is_due) in
            [(1000, 1, false), (1001, 1, true), (1999, 1000, false), (2000, 1000, true), (5000, 0, true)]
        {
            assert_eq!(due(&state, &config, 0, (size, base), 0).is_some(), is_due, "{size} {base}");
        }
        config.append_only = false;
        assert_eq!(due(&state, &config, 0, (5000, 0), 0), None);
        (config.append_only, config.auto_rewrite_percentage) = (true, 0);
        assert_eq!(due(&state, &config, 0, (5000, 0), 0), None);
    }

    /// D7: a rewrite that goes on failing does not fill the disk.
    #[test]
    fn d7_rewrites_that_fail_become_rare() {
        for (failures, minutes) in [(2, 0), (3, 1), (4, 2), (8, 32), (9, 60), (1000, 60)] {
            let record = Record { failures, ..Record::default() };
            assert!(minutes == 0 || is_rewrite_limited(&record, minutes * 60_000 - 1), "{failures}");
            assert!(!is_rewrite_limited(&record, minutes * 60_000), "{failures}");
        }
    }
}
