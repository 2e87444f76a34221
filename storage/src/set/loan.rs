//! Several sets at once, wherever their keys lie.
//!
//! A context lends one shard at a time, and sets of several shards must be compared member by member. So a command takes the sets
//! that it names out of their entries, two words each, and puts them back when it has looked: no member is copied, and no
//! key is looked for twice.

use super::Set;
use crate::collection::{Collection, Kind};
use crate::context::Context;
use crate::key_hash::Key;
use simurgh_protocol::CommandError;
use std::collections::BTreeMap;

/// A set on loan, and whose it is.
struct Taken<'a> {
    key: Key<'a>,
    collection: Collection,
}

/// Calls `with` with the sets under `keys`, in order; a key that is named twice gives the same set twice. `with` must not look at the
/// keys themselves, under which there is nothing of meaning until it ends.
pub(super) fn with_sets<'k, R>(
    cx: &mut Context<'_>,
    keys: impl Iterator<Item = &'k [u8]> + Clone,
    with: impl FnOnce(&mut Context<'_>, &[Option<&Set>]) -> R,
) -> Result<R, CommandError> {
    // All are looked at before the first is taken, so that a key of another type leaves everything in its place.
    for bytes in keys.clone() {
        cx.look::<Set>(&cx.key(bytes))?;
    }
    let (mut places, mut taken) = (BTreeMap::new(), Vec::new());
    for bytes in keys.clone() {
        places.entry(bytes).or_insert_with(|| {
            let key = cx.key(bytes);
            let collection = cx.database_of(&key).occupied(&key)?.take_collection()?;
            taken.push(Taken { key, collection });
            Some(taken.len() - 1)
        });
    }
    let sets: Vec<Option<&Set>> = keys
        .map(|bytes| places.get(bytes).copied().flatten().and_then(|place| Set::of(&taken[place].collection)))
        .collect();
    let result = with(cx, &sets);
    for Taken { key, collection } in taken {
        let mut entry = cx.database_of(&key).occupied(&key).expect("nobody removed it meanwhile");
        entry.put_collection(collection);
    }
    Ok(result)
}
