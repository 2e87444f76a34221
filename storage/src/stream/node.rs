//! One node of a stream: up to some hundred entries in one listpack, in Redis's own format, so that DUMP and RDB copy it.
//!
//! ```text
//! master: [ valid ][ deleted ][ fields n ][ name 1 ] ... [ name n ][ 0 ]
//! entry:  [ flags ][ ms ][ seq ]              [ value 1 ] ... [ value n ]            [ elements: n + 3 ]   flag SAME_FIELDS
//!    or:  [ flags ][ ms ][ seq ][ fields m ][ name 1 ][ value 1 ] ... [ value m ]    [ elements: 2m + 4 ]
//! ```
//!
//! The master holds the field names of the first entry; entries with the same names in the same order leave them out. Times and
//! numbers are kept as differences from the node's own id, the one under which the stream keeps it. A deleted entry stays, with a
//! flag, until the last valid one of its node goes. The count behind an entry is for those who walk backwards.

use super::id::StreamId;
use crate::block::Malformed;
use crate::listpack::{Item, Iter, Listpack};

/// The entry is deleted.
const DELETED: i64 = 1;
/// The entry has the master's field names.
const SAME_FIELDS: i64 = 2;
/// Elements of an entry that are neither names nor values: flags, time, number.
const FIXED: usize = 3;

/// How many entries a node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    /// Those that are there.
    pub valid: u64,
    /// Those that are deleted and still take their place.
    pub deleted: u64,
}

/// The master entry.
struct Master<'a> {
    counts: Counts,
    fields: usize,
    names: Iter<'a>,
    /// Where the first entry is.
    first: usize,
}

/// The next element, which is an integer.
fn integer(iter: &mut Iter<'_>) -> i64 {
    iter.next().and_then(|item| item.to_i64()).expect("a node is checked when it comes from elsewhere")
}

/// As [`integer`], of a count.
fn count(iter: &mut Iter<'_>) -> usize {
    usize::try_from(integer(iter)).expect("a node is checked when it comes from elsewhere")
}

impl<'a> Master<'a> {
    fn of(node: &'a Listpack) -> Self {
        let mut iter = node.iter();
        let (valid, deleted, fields) = (integer(&mut iter), integer(&mut iter), count(&mut iter));
        let names = iter.clone();
        iter.skip_elements(fields + 1);
        Self { counts: Counts { valid: valid as u64, deleted: deleted as u64 }, fields, names, first: iter.position() }
    }
}

/// How many entries a node has.
pub(super) fn counts(node: &Listpack) -> Counts {
    let mut iter = node.iter();
    let (valid, deleted) = (integer(&mut iter), integer(&mut iter));
    Counts { valid: valid as u64, deleted: deleted as u64 }
}

fn set_counts(node: &mut Listpack, counts: Counts) {
    let first = node.first().expect("a node has its master");
    node.splice(first, 2, &[Item::Int(counts.valid as i64), Item::Int(counts.deleted as i64)]);
}

/// A node whose master has the names of `pairs`, and no entry yet.
pub(super) fn new<'a>(pairs: impl ExactSizeIterator<Item = &'a [u8]>) -> Listpack {
    let mut items = vec![Item::Int(0), Item::Int(0), Item::Int((pairs.len() / 2) as i64)];
    items.extend(pairs.step_by(2).map(Item::from));
    items.push(Item::Int(0));
    Listpack::of(&items)
}

/// Puts an entry behind the last. `pairs` are names and values in turn.
pub(super) fn append<'a>(
    node: &mut Listpack,
    master: StreamId,
    id: StreamId,
    pairs: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
) {
    let head = Master::of(node);
    let fields = pairs.len() / 2;
    let is_same = head.fields == fields && head.names.zip(pairs.clone().step_by(2)).all(|(own, name)| own.equals(name));
    let counts = Counts { valid: head.counts.valid + 1, ..head.counts };
    let flags = if is_same { SAME_FIELDS } else { 0 };
    // Differences wrap, as Redis's do: a number may be less than the node's.
    let differences = [id.ms.wrapping_sub(master.ms) as i64, id.seq.wrapping_sub(master.seq) as i64];
    let mut items = Vec::with_capacity(pairs.len() + FIXED + 2);
    items.extend([Item::Int(flags), Item::Int(differences[0]), Item::Int(differences[1])]);
    if is_same {
        items.extend(pairs.skip(1).step_by(2).map(Item::from));
    } else {
        items.push(Item::Int(fields as i64));
        items.extend(pairs.map(Item::from));
    }
    items.push(Item::Int(items.len() as i64));
    node.splice(node.end(), 0, &items);
    set_counts(node, counts);
}

/// Marks the entries at `places` as deleted. Whether a valid one is left.
pub(super) fn delete(node: &mut Listpack, places: &[usize]) -> bool {
    let before = counts(node);
    for at in places {
        // The flags stay a small integer, so that the other places stay where they are.
        let flags = integer(&mut node.iter_from(*at));
        node.replace(*at, flags | DELETED);
    }
    let count = places.len() as u64;
    let after = Counts { valid: before.valid.saturating_sub(count), deleted: before.deleted + count };
    set_counts(node, after);
    after.valid > 0
}

/// An entry where it lies.
#[derive(Clone)]
pub struct Entry<'a> {
    /// Its id.
    pub id: StreamId,
    /// Where it is in its node.
    pub(super) at: usize,
    is_deleted: bool,
    fields: usize,
    /// The names, if they are the master's.
    names: Option<Iter<'a>>,
    /// The values, or names and values in turn.
    rest: Iter<'a>,
}

impl<'a> Entry<'a> {
    /// How many fields it has.
    #[must_use]
    pub fn fields(&self) -> usize {
        self.fields
    }

    /// Names and values in turn.
    pub fn items(&self) -> impl Iterator<Item = Item<'a>> + use<'a> {
        let (mut names, mut rest, mut is_name) = (self.names.clone(), self.rest.clone(), false);
        (0..self.fields * 2).map_while(move |_| {
            is_name = !is_name;
            match &mut names {
                Some(names) if is_name => names.next(),
                _ => rest.next(),
            }
        })
    }
}

/// The entries of a node that are not deleted, from either end.
#[derive(Clone)]
pub(super) struct NodeEntries<'a> {
    node: &'a Listpack,
    master: StreamId,
    names: Iter<'a>,
    fields: usize,
    front: usize,
    back: usize,
}

impl<'a> NodeEntries<'a> {
    pub(super) fn new(master: StreamId, node: &'a Listpack) -> Self {
        let head = Master::of(node);
        Self { node, master, names: head.names, fields: head.fields, front: head.first, back: node.end() }
    }

    /// The entry at `at` and what is behind it.
    fn read(&self, at: usize) -> (Entry<'a>, usize) {
        let mut iter = self.node.iter_from(at);
        let (flags, ms, seq) = (integer(&mut iter), integer(&mut iter), integer(&mut iter));
        let is_same = flags & SAME_FIELDS != 0;
        let fields = if is_same { self.fields } else { count(&mut iter) };
        let id = StreamId::new(self.master.ms.wrapping_add(ms as u64), self.master.seq.wrapping_add(seq as u64));
        let rest = iter.clone();
        iter.skip_elements(if is_same { fields } else { fields * 2 } + 1);
        let names = is_same.then(|| self.names.clone());
        (Entry { id, at, is_deleted: flags & DELETED != 0, fields, names, rest }, iter.position())
    }

    /// The last entry that was ever put in, deleted or not.
    pub(super) fn last_ever(&self) -> Option<StreamId> {
        (self.front < self.back).then(|| self.read(self.start_of(self.back)).0.id)
    }

    /// Where the entry begins that ends at `end`.
    fn start_of(&self, end: usize) -> usize {
        const WHOLE: &str = "a node is checked when it comes from elsewhere";
        let tail = self.node.prev(end).expect(WHOLE);
        let elements = count(&mut self.node.iter_from(tail));
        (0..elements).fold(tail, |at, _| self.node.prev(at).expect(WHOLE))
    }
}

impl<'a> Iterator for NodeEntries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        while self.front < self.back {
            let (entry, after) = self.read(self.front);
            self.front = after;
            if !entry.is_deleted {
                return Some(entry);
            }
        }
        None
    }
}

impl<'a> DoubleEndedIterator for NodeEntries<'a> {
    fn next_back(&mut self) -> Option<Entry<'a>> {
        while self.front < self.back {
            self.back = self.start_of(self.back);
            let (entry, _) = self.read(self.back);
            if !entry.is_deleted {
                return Some(entry);
            }
        }
        None
    }
}

/// Checks a node that comes from elsewhere, so that nobody need check it again: its parts fit together, its counts are those of
/// its entries, and their ids rise from the node's own on.
pub(super) fn check(master: StreamId, node: &Listpack) -> Result<Counts, Malformed> {
    let mut iter = node.iter();
    let mut take = || iter.next().ok_or(Malformed);
    // Numbers are kept as such, not as texts: they are changed where they lie.
    let number = |item: Item<'_>| if let Item::Int(number) = item { Ok(number) } else { Err(Malformed) };
    let size = |item: Item<'_>| number(item).and_then(|number| usize::try_from(number).map_err(|_| Malformed));
    let counted = Counts { valid: size(take()?)? as u64, deleted: size(take()?)? as u64 };
    let names = size(take()?)?;
    for _ in 0..names {
        take()?;
    }
    if number(take()?)? != 0 {
        return Err(Malformed);
    }
    let (mut found, mut least) = (Counts { valid: 0, deleted: 0 }, Some(master));
    while let Ok(flags) = take() {
        let (flags, ms, seq) = (number(flags)?, number(take()?)?, number(take()?)?);
        let id = StreamId::new(master.ms.wrapping_add(ms as u64), master.seq.wrapping_add(seq as u64));
        let is_same = flags & SAME_FIELDS != 0;
        let fields = if is_same { names } else { size(take()?)? };
        let elements = if is_same { fields } else { fields.checked_mul(2).ok_or(Malformed)? };
        for _ in 0..elements {
            take()?;
        }
        let total = elements + FIXED + usize::from(!is_same);
        if size(take()?)? != total || least.is_none_or(|least| id < least) {
            return Err(Malformed);
        }
        least = id.next();
        let count = if flags & DELETED != 0 { &mut found.deleted } else { &mut found.valid };
        *count += 1;
    }
    if found == counted { Ok(found) } else { Err(Malformed) }
}
