//! How far a group is behind: how many entries of the stream it has yet to be given.
//!
//! A group counts what it is given, and the stream counts what it is given in all, so the difference is the answer for as long as
//! no entry between the two was deleted. Where one was, or where the group was put somewhere by hand, the count can sometimes be
//! had from where the group stands: at the end, or before the first entry. Else it is not known, and is told as null.

use super::entries::Entries;
use super::group::Group;
use super::id::StreamId;
use std::cmp::Ordering;

impl Entries {
    /// Whether the group stands among the entries that are there, and no later one is deleted: then it may count on from where
    /// it is.
    fn may_count_from(&self, id: StreamId) -> bool {
        let has_gap = self.may_have_gaps() && id <= self.max_deleted_id;
        !self.is_empty() && id >= self.first_id() && !has_gap
    }

    /// Whether an entry was deleted that is followed by one that is there and follows one, too.
    fn may_have_gaps(&self) -> bool {
        !self.max_deleted_id.is_zero() && self.max_deleted_id >= self.first_id()
    }

    /// How many entries there ever were up to `id`, if that can be told.
    #[must_use]
    pub fn count_up_to(&self, id: StreamId) -> Option<u64> {
        if self.added == 0 {
            return Some(0);
        }
        if self.is_empty() || id == self.last_id {
            return (id <= self.last_id).then_some(self.added);
        }
        if id > self.last_id || self.may_have_gaps() {
            return None;
        }
        let before_first = self.added.saturating_sub(self.len());
        match id.cmp(&self.first_id()) {
            Ordering::Less => Some(before_first),
            Ordering::Equal => Some(before_first + 1),
            Ordering::Greater => None,
        }
    }

    /// How many entries the group has yet to be given, if that can be told.
    #[must_use]
    pub fn lag(&self, group: &Group) -> Option<i64> {
        if self.is_empty() {
            return Some(0);
        }
        let read = match group.entries_read {
            Some(read) if self.may_count_from(group.last_id) => read,
            Some(_) | None => self.count_up_to(group.last_id)?,
        };
        Some((self.added as i64).wrapping_sub(read as i64))
    }

    /// Moves a group on to an entry that it is given now.
    pub fn advance(&self, group: &mut Group, entry: StreamId) {
        group.entries_read = match group.entries_read {
            Some(read) if self.may_count_from(group.last_id) => Some(read.saturating_add(1)),
            Some(_) | None => self.count_up_to(entry),
        };
        group.last_id = entry;
    }
}
