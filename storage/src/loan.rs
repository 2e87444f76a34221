//! Several collections at once, wherever their keys lie.
//!
//! A context lends one shard at a time, and collections of several shards must be compared element by element. So a command takes
//! those that it names out of their entries, a type and a word each, and puts them back when it has looked: nothing is copied.

use crate::collection::Collection;
use crate::context::Context;
use crate::key_hash::Key;
use simurgh_protocol::CommandError;
use std::collections::BTreeMap;

/// Looks at `keys` in order, as a read does; one that holds something else than `is_fitting` accepts is an error.
pub(crate) fn inspect<'k>(
    cx: &mut Context<'_>,
    keys: impl Iterator<Item = &'k [u8]>,
    is_fitting: impl Fn(&Collection) -> bool,
) -> Result<(), CommandError> {
    for bytes in keys {
        if let Some(entry) = cx.read(&cx.key(bytes)) {
            let collection = entry.collection().ok_or(CommandError::WrongType)?;
            if !is_fitting(&collection) {
                return Err(CommandError::WrongType);
            }
        }
    }
    Ok(())
}

/// Calls `with` with the collections under `keys`, in order; a key that is named twice gives the same collection twice. `with` must not
/// look at the keys themselves, under which there is nothing of meaning until it ends. [`inspect`] comes first.
pub(crate) fn lend<'k, R>(
    cx: &mut Context<'_>,
    keys: impl Iterator<Item = &'k [u8]> + Clone,
    with: impl FnOnce(&mut Context<'_>, &[Option<&Collection>]) -> R,
) -> R {
    let (mut places, mut taken) = (BTreeMap::new(), Vec::new());
    for bytes in keys.clone() {
        places.entry(bytes).or_insert_with(|| {
            let key: Key<'k> = cx.key(bytes);
            let collection = cx.database_of(&key).occupied(&key)?.borrow_collection()?;
            taken.push((key, collection));
            Some(taken.len() - 1)
        });
    }
    let place = |bytes| places.get(bytes).copied().flatten();
    let collections: Vec<Option<&Collection>> = keys.map(|bytes| place(bytes).map(|at: usize| &taken[at].1)).collect();
    let result = with(cx, &collections);
    for (key, collection) in taken {
        let mut entry = cx.database_of(&key).occupied(&key).expect("nobody removed it meanwhile");
        entry.put_collection(collection);
    }
    result
}
