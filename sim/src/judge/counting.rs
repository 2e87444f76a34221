//! A counter's increments: replies are its values, so each appears once, an increment that began after another was
//! answered has the larger one, and in the end the counter stands between what was answered and what was sent.

use crate::workload::counter::Increment;

/// Judges increments among which no crash may have lost any. Returns what is wrong, if anything.
pub fn judge(increments: &[Increment]) -> Option<String> {
    let mut answered: Vec<(u64, u64, i64)> =
        increments.iter().filter_map(|one| one.answer.map(|(ns, value)| (one.invoked_ns, ns, value))).collect();
    answered.sort_unstable_by_key(|(_, _, value)| *value);
    if let Some(pair) = answered.windows(2).find(|pair| pair[0].2 == pair[1].2) {
        return Some(format!("{} was answered twice", pair[0].2));
    }
    // Going up in value, no later one may have been answered before an earlier one was sent.
    let mut latest_invoked = (0, 0);
    for (invoked, completed, value) in answered {
        if completed < latest_invoked.0 {
            return Some(format!("{value} was answered before the request for {} was sent", latest_invoked.1));
        }
        latest_invoked = latest_invoked.max((invoked, value));
    }
    None
}

/// Judges where the counter stands in the end, when nothing may have been lost.
pub fn judge_end(increments: &[Increment], end: i64) -> Option<String> {
    let answered = increments.iter().filter(|one| one.answer.is_some()).count();
    let possible = i64::try_from(answered).unwrap_or(i64::MAX)..=i64::try_from(increments.len()).unwrap_or(i64::MAX);
    let largest = increments.iter().filter_map(|one| one.answer.map(|(_, value)| value)).max().unwrap_or(0);
    (!possible.contains(&end) || end < largest)
        .then(|| format!("ends at {end}, not in {possible:?} or below the {largest} that was answered"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(invoked_ns: u64, completed_ns: u64, value: i64) -> Increment {
        Increment { invoked_ns, answer: Some((completed_ns, value)), is_undone: false }
    }

    #[test]
    fn doubled_lost_and_reordered_increments_are_found() {
        let good = [
            answered(0, 5, 2),
            answered(1, 6, 1),
            answered(7, 8, 3),
            Increment { invoked_ns: 9, answer: None, is_undone: false },
        ];
        assert_eq!(judge(&good), None);
        assert_eq!(judge_end(&good, 3), None);
        assert_eq!(judge_end(&good, 4), None);
        assert!(judge_end(&good, 2).is_some() && judge_end(&good, 5).is_some());
        assert!(judge(&[answered(0, 1, 1), answered(2, 3, 1)]).is_some(), "twice");
        assert!(judge(&[answered(0, 1, 2), answered(2, 3, 1)]).is_some(), "backwards");
    }
}
