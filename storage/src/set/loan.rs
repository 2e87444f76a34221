//! Several sets at once, wherever their keys lie (`loan.rs`).

use super::Set;
use crate::collection::{Collection, Kind};
use crate::context::Context;
use crate::loan;
use simurgh_protocol::CommandError;

/// Calls `with` with the sets under `keys`, in order; a key that is named twice gives the same set twice. `with` must not look at the
/// keys themselves, under which there is nothing of meaning until it ends.
pub(super) fn with_sets<'k, R>(
    cx: &mut Context<'_>,
    keys: impl Iterator<Item = &'k [u8]> + Clone,
    with: impl FnOnce(&mut Context<'_>, &[Option<&Set>]) -> R,
) -> Result<R, CommandError> {
    // All are looked at before the first is taken, so that a key of another type leaves everything in its place.
    loan::inspect(cx, keys.clone(), |found| matches!(found, Collection::Set(_)))?;
    Ok(loan::lend(cx, keys, |cx, collections| {
        let sets: Vec<Option<&Set>> = collections.iter().map(|found| found.and_then(Set::of)).collect();
        with(cx, &sets)
    }))
}
