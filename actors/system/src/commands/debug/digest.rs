//! DEBUG DIGEST: forty hexadecimal digits that are the same for the same content, in whatever order it was made, wherever it is.
//!
//! The digest of a database is the exclusive or of the digests of its keys. The digits are not those of Redis.

use crate::client::Client;
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::{Collection, EntryRef, Shards};
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128};

/// A digest of 160 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Digest(u128, u32);

impl Digest {
    fn of(bytes: &[u8]) -> Self {
        Self(xxh3_128(bytes), xxh3_64_with_seed(bytes, 1) as u32)
    }

    fn toggle(&mut self, other: Self) {
        self.0 ^= other.0;
        self.1 ^= other.1;
    }

    fn text(self) -> String {
        format!("{:032x}{:08x}", self.0, self.1)
    }
}

fn push(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
    bytes.extend_from_slice(part);
}

/// The digest of an entry's value, with whether it has an expiry.
fn of_value(entry: EntryRef<'_>, mut bytes: Vec<u8>) -> Digest {
    push(&mut bytes, entry.type_name().as_bytes());
    if let Ok(value) = entry.string() {
        value.with_text(|text| push(&mut bytes, text));
    }
    bytes.push(u8::from(entry.expires_at().is_some()));
    let mut digest = Digest::of(&bytes);
    if let Some(collection) = entry.collection() {
        digest.toggle(of_elements(&collection));
    }
    digest
}

/// The digest of a collection's elements: their order counts where a client sees one.
fn of_elements(collection: &Collection) -> Digest {
    let is_ordered = matches!(collection, Collection::List(_) | Collection::Stream(_));
    let (mut digest, mut chain) = (Digest::default(), Vec::new());
    collection.for_each(&mut |parts| {
        let mut bytes = std::mem::take(&mut chain);
        parts.iter().for_each(|part| push(&mut bytes, part));
        let element = Digest::of(&bytes);
        if is_ordered {
            chain = element.text().into_bytes();
            digest = element;
        } else {
            digest.toggle(element);
        }
    });
    digest
}

/// DEBUG DIGEST.
pub(super) fn all(client: &mut Client, shards: &mut dyn Shards) -> Result<(), CommandError> {
    let (layout, now_ms) = (&client.node.layout, client.now_ms);
    let mut digest = Digest::default();
    for index in 0..layout.shards {
        for database in 0..layout.databases {
            shards.shard(index).database(database).for_each(|entry| {
                if entry.expires_at().is_none_or(|at| at > now_ms) {
                    let mut bytes = (database as u64).to_le_bytes().to_vec();
                    push(&mut bytes, entry.key());
                    digest.toggle(of_value(entry, bytes));
                }
            });
        }
    }
    client.reply.simple(&digest.text());
    Ok(())
}

/// DEBUG DIGEST-VALUE key \[key ...\].
pub(super) fn values(client: &mut Client, args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    client.reply.array(args.len() - 2);
    for key in args.from(2) {
        let key = client.node.layout.hasher.key(key);
        let index = client.node.layout.shard_of(&key);
        let entry = shards.shard(index).database(client.database).get(&key);
        let entry = entry.filter(|entry| entry.expires_at().is_none_or(|at| at > client.now_ms));
        let digest = entry.map_or_else(Digest::default, |entry| of_value(entry, Vec::new()));
        client.reply.simple(&digest.text());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_does_not_matter_and_the_length_is_forty() {
        let (mut one, mut other) = (Digest::default(), Digest::default());
        assert_eq!(one.text(), "0".repeat(40));
        one.toggle(Digest::of(b"a"));
        one.toggle(Digest::of(b"b"));
        other.toggle(Digest::of(b"b"));
        assert_ne!(one, other);
        other.toggle(Digest::of(b"a"));
        assert_eq!(one, other);
        assert_eq!(one.text().len(), 40);
    }
}
