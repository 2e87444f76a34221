//! Streams: entries of fields and values that only join at the end, and groups of consumers that share them out.
//!
//! | file | what |
//! | --- | --- |
//! | `id`, `node`, `entries` | ids, the packed nodes, the entries as a whole |
//! | `group`, `groups`, `lag` | consumer groups, what they await, how far they are behind |
//! | `trim` | the trimming that XADD and XTRIM share |
//! | `add`, `range`, `delete`, `read`, `read_group`, `manage`, `acknowledge`, `pending`, `claim`, `auto_claim`, `info` | the commands |

mod acknowledge;
mod add;
mod auto_claim;
mod claim;
mod delete;
mod entries;
mod group;
mod groups;
mod id;
mod info;
mod lag;
mod manage;
mod node;
mod owed;
mod pending;
mod range;
mod read;
mod read_group;
#[cfg(test)]
mod tests;
mod trim;

pub use acknowledge::{xack, xackdel};
pub use add::xadd;
pub use auto_claim::xautoclaim;
pub use claim::xclaim;
pub use delete::{xdel, xdelex, xsetid};
pub use entries::{Entries, NodeLimits, Range};
pub use group::{Consumer, ConsumerId, Group, Pending};
pub use groups::Groups;
pub use id::{NewId, StreamId};
pub use info::{xinfo_consumers, xinfo_groups, xinfo_help, xinfo_stream};
pub use manage::{xgroup_create, xgroup_createconsumer, xgroup_delconsumer, xgroup_destroy, xgroup_help, xgroup_setid};
pub use node::Entry;
pub use pending::xpending;
pub use range::{xlen, xrange, xrevrange};
pub use read::{From, Membership, Reading, Source, xread};
pub use read_group::{serve, xreadgroup};
pub use trim::{Bound, References, Trim, xtrim};

use crate::context::Context;
use crate::key_hash::Key;
use simurgh_protocol::{CommandError, Reply};

/// A value that is a stream.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// The entries.
    pub entries: Entries,
    /// The consumer groups.
    pub groups: Groups,
}

impl Stream {
    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::try_from(self.entries.len()).unwrap_or(usize::MAX)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What the allocator spends on it, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.entries.bytes() + self.groups.bytes()
    }

    /// The name of the representation.
    #[must_use]
    pub fn encoding_name(&self) -> &'static str {
        "stream"
    }

    /// Calls `with` for each entry: its id, then names and values in turn.
    pub fn for_each(&self, with: &mut dyn FnMut(&[&[u8]])) {
        for entry in self.entries.iter() {
            let texts: Vec<Vec<u8>> =
                std::iter::once(entry.id.to_text()).chain(entry.items().map(|item| item.to_vec())).collect();
            let parts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
            with(&parts);
        }
    }

    /// How many allocations there are, about.
    #[must_use]
    pub fn free_effort(&self) -> usize {
        self.entries.nodes().len() + self.groups.pending() / 4
    }
}

/// Changes a stream with the reply at hand. `None` if it is not there.
fn edit_replying<R>(
    cx: &mut Context<'_>,
    key: &Key<'_>,
    change: impl FnOnce(&mut Stream, &mut Reply) -> R,
) -> Result<Option<R>, CommandError> {
    let (stream, reply) = cx.edit_with_reply::<Stream>(key)?;
    Ok(stream.map(|mut stream| change(&mut stream, reply)))
}
