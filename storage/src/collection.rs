//! A value that is no string: what all collection types have in common, and how a handler borrows one.
//!
//! A [`Collection`] is a type and a pointer, which lie in its entry (`collection_word.rs`). Small ones are packed blocks in
//! Redis's own formats, large ones structures of ours; each type decides that for itself. A handler that changes one holds an
//! [`Edit`]: while it lives, the collection is out of the table; when it ends, the collection goes back, memory and the index of
//! expiring fields are brought up to date, and the key of an emptied one is removed. So no handler can forget any of that.

use crate::collection_word::Type;
use crate::hash::Hash;
use crate::list::List;
use crate::occupied::Occupied;
use crate::set::Set;
use crate::sorted_set::SortedSet;
use crate::stream::Stream;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

/// A value of one of the collection types.
#[derive(Clone, Debug)]
pub enum Collection {
    /// A list.
    List(List),
    /// A hash.
    Hash(Hash),
    /// A set.
    Set(Set),
    /// A sorted set.
    SortedSet(SortedSet),
    /// A stream.
    Stream(Box<Stream>),
}

const _: () = assert!(size_of::<Option<Collection>>() == 16, "a collection is a type and a pointer");

/// One arm for each type, all with the same body.
macro_rules! each {
    ($collection:expr, $value:ident => $body:expr) => {
        match $collection {
            Collection::List($value) => $body,
            Collection::Hash($value) => $body,
            Collection::Set($value) => $body,
            Collection::SortedSet($value) => $body,
            Collection::Stream($value) => $body,
        }
    };
}

impl Collection {
    pub(crate) fn of_type(&self) -> Type {
        match self {
            Self::List(_) => Type::List,
            Self::Hash(_) => Type::Hash,
            Self::Set(_) => Type::Set,
            Self::SortedSet(_) => Type::SortedSet,
            Self::Stream(_) => Type::Stream,
        }
    }

    /// The name of the type, as `TYPE` gives it.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        self.of_type().name()
    }

    /// The name of the representation, as `OBJECT ENCODING` gives it.
    #[must_use]
    pub fn encoding_name(&self) -> &'static str {
        each!(self, value => value.encoding_name())
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        each!(self, value => value.len())
    }

    /// Whether there is no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there is nothing in it, so that its key has no reason to be: never of a stream, which may be empty.
    #[must_use]
    pub fn is_void(&self) -> bool {
        !matches!(self, Self::Stream(_)) && self.is_empty()
    }

    /// Bytes that it takes beside its word in the entry, in the allocator's size classes. O(1).
    #[must_use]
    pub fn bytes(&self) -> usize {
        each!(self, value => value.bytes())
    }

    /// How many allocations are given back when it is dropped, about.
    #[must_use]
    pub fn free_effort(&self) -> usize {
        each!(self, value => value.free_effort())
    }

    /// Calls `with` for each element, with its parts: a list's value, a field, its value and when it expires, a member, a member and its
    /// score, a stream's id and its fields and values. In order where there is one.
    pub fn for_each(&self, with: &mut dyn FnMut(&[&[u8]])) {
        each!(self, value => value.for_each(with));
    }

    /// When the next of its fields expires, in milliseconds of Unix time.
    #[must_use]
    pub fn next_field_expiry(&self) -> Option<i64> {
        match self {
            Self::Hash(hash) => hash.next_field_expiry(),
            Self::List(_) | Self::Set(_) | Self::SortedSet(_) | Self::Stream(_) => None,
        }
    }
}

/// One of the collection types.
pub trait Kind: Sized {
    /// An empty one.
    fn empty() -> Collection;
    /// The collection as this type, if it is.
    fn of(collection: &Collection) -> Option<&Self>;
    /// The collection as this type, if it is, to be changed.
    fn of_mut(collection: &mut Collection) -> Option<&mut Self>;
}

macro_rules! kind {
    ($type:ty, $variant:ident, $empty:expr) => {
        impl Kind for $type {
            fn empty() -> Collection {
                Collection::$variant($empty)
            }

            fn of(collection: &Collection) -> Option<&Self> {
                if let Collection::$variant(value) = collection { Some(value) } else { None }
            }

            fn of_mut(collection: &mut Collection) -> Option<&mut Self> {
                if let Collection::$variant(value) = collection { Some(value) } else { None }
            }
        }
    };
}

kind!(List, List, List::default());
kind!(Hash, Hash, Hash::default());
kind!(Set, Set, Set::default());
kind!(SortedSet, SortedSet, SortedSet::default());
kind!(Stream, Stream, Box::default());

/// A collection where it lies, to be read.
#[derive(Debug)]
pub struct CollectionRef<'a> {
    /// Made of the entry's word; the entry owns what it leads to.
    collection: ManuallyDrop<Collection>,
    entry: PhantomData<&'a Collection>,
}

impl CollectionRef<'_> {
    /// The collection is made of the word of an entry that stays as it is for as long as the reference lives.
    pub(crate) fn new(collection: ManuallyDrop<Collection>) -> Self {
        Self { collection, entry: PhantomData }
    }

    /// The collection, which the entry still owns.
    pub(crate) fn into_collection(self) -> ManuallyDrop<Collection> {
        self.collection
    }
}

impl Deref for CollectionRef<'_> {
    type Target = Collection;

    fn deref(&self) -> &Collection {
        &self.collection
    }
}

/// A collection known to be of one type, to be read.
#[derive(Debug)]
pub struct View<'a, T> {
    collection: CollectionRef<'a>,
    kind: PhantomData<T>,
}

impl<'a, T: Kind> View<'a, T> {
    /// The collection as this type, if it is.
    pub(crate) fn new(collection: CollectionRef<'a>) -> Option<Self> {
        T::of(&collection)?;
        Some(Self { collection, kind: PhantomData })
    }
}

impl<T: Kind> Deref for View<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        T::of(&self.collection).expect("seen to when the view was made")
    }
}

/// A collection known to be of one type, taken out to be changed; it goes back when this ends (so bind it with `let ... else` and drop
/// it before the context is used again).
pub struct Edit<'a, T> {
    entry: Option<Occupied<'a>>,
    collection: Option<Collection>,
    kind: PhantomData<T>,
}

impl<'a, T: Kind> Edit<'a, T> {
    /// Takes the collection out of its entry, if it is of this type.
    pub(crate) fn new(mut entry: Occupied<'a>) -> Option<Self> {
        T::of(&*entry.view().collection()?)?;
        let collection = entry.take_collection();
        Some(Self { entry: Some(entry), collection, kind: PhantomData })
    }
}

impl<T: Kind> Deref for Edit<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.collection.as_ref().and_then(T::of).expect("taken out when the edit began, and of this type")
    }
}

impl<T: Kind> DerefMut for Edit<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.collection.as_mut().and_then(T::of_mut).expect("taken out when the edit began, and of this type")
    }
}

impl<T> Drop for Edit<'_, T> {
    fn drop(&mut self) {
        let (Some(mut entry), Some(collection)) = (self.entry.take(), self.collection.take()) else { return };
        if collection.is_void() {
            entry.remove();
        } else {
            entry.put_collection(collection);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;
    use crate::list::{End, Limit};
    use crate::{generic, keyspace, object, string};
    use simurgh_protocol::{Args, CommandError};

    /// A command of the tests: adds its words to a list, or takes its first element away.
    fn push(cx: &mut crate::Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
        let key = cx.first_key(args);
        let mut list = cx.edit_or_create::<List>(&key)?;
        args.from(2).for_each(|word| list.push(End::Back, word.into(), Limit::default()));
        let length = list.len();
        drop(list);
        cx.changed(&key);
        cx.reply.count(length);
        Ok(())
    }

    fn pop(cx: &mut crate::Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
        let key = cx.first_key(args);
        let Some(mut list) = cx.edit::<List>(&key)? else { return Err(CommandError::NoSuchKey) };
        list.pop(End::Front, |_| ());
        drop(list);
        cx.changed(&key);
        cx.notify_if_gone(&key);
        let (list, reply) = cx.look::<List>(&key)?;
        reply.count(list.map_or(0, |list| list.len()));
        Ok(())
    }

    /// A keyspace of one shard whose tables are there already, and its bytes.
    fn emptied() -> (Fixture, usize) {
        let mut fixture = Fixture::with_shards(1);
        for database in [3, 0] {
            fixture.database = database;
            fixture.reply(push, &["PUSH", "k", "a"]);
            fixture.reply(generic::del, &["DEL", "k"]);
        }
        let bytes = fixture.shards[0].bytes();
        (fixture, bytes)
    }

    #[test]
    fn a_collection_comes_goes_and_is_counted() {
        let (mut fixture, empty) = emptied();
        fixture.settings.events = crate::Class::GENERIC;
        assert_eq!(fixture.run(push, &["PUSH", "k", "a", "b"]), (":2 ".into(), vec!["PUSH k a b".into()]));
        let before = fixture.shards[0].bytes();
        fixture.reply(push, &["PUSH", "k", &"x".repeat(1000)]);
        assert!(fixture.shards[0].bytes() >= before + 1000);
        assert_eq!(fixture.reply(generic::type_of, &["TYPE", "k"]), "+list ");
        for _ in 0..3 {
            fixture.reply(pop, &["POP", "k"]);
        }
        assert_eq!(fixture.reply(keyspace::dbsize, &["DBSIZE"]), ":0 ");
        assert_eq!(fixture.shards[0].bytes(), empty);
    }

    #[test]
    fn other_types_are_refused_and_nothing_is_lost() {
        let mut fixture = Fixture::new();
        fixture.reply(push, &["PUSH", "k", "a"]);
        let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value ";
        for (handler, words) in [
            (string::get as crate::fixture::Handler, &["GET", "k"][..]),
            (string::incr, &["INCR", "k"]),
            (string::append, &["APPEND", "k", "x"]),
            (string::getset, &["GETSET", "k", "x"]),
        ] {
            assert_eq!(fixture.run(handler, words), (wrong.into(), vec![]), "{words:?}");
        }
        fixture.reply(string::set, &["SET", "s", "x"]);
        assert_eq!(fixture.run(push, &["PUSH", "s", "a"]), (wrong.into(), vec![]));
        assert_eq!(fixture.run(pop, &["POP", "s"]), (wrong.into(), vec![]));
        assert_eq!(fixture.reply(object::encoding, &["OBJECT", "ENCODING", "k"]), "$8 listpack ");
    }

    #[test]
    fn a_collection_moves_is_copied_and_overwritten_without_a_leak() {
        let (mut fixture, empty) = emptied();
        fixture.reply(push, &["PUSH", "k", "a", "b"]);
        fixture.reply(generic::rename, &["RENAME", "k", "a-longer-name"]);
        fixture.reply(generic::copy, &["COPY", "a-longer-name", "c"]);
        fixture.reply(pop, &["POP", "c"]);
        assert_eq!(fixture.reply(push, &["PUSH", "a-longer-name"]), ":2 ");
        fixture.reply(generic::move_key, &["MOVE", "a-longer-name", "3"]);
        fixture.reply(string::set, &["SET", "c", "x"]);
        assert_eq!(fixture.reply(string::get, &["GET", "c"]), "$1 x ");
        fixture.reply(generic::del, &["DEL", "c"]);
        fixture.database = 3;
        assert_eq!(fixture.reply(pop, &["POP", "a-longer-name"]), ":1 ");
        fixture.reply(generic::unlink, &["UNLINK", "a-longer-name"]);
        assert_eq!(fixture.shards[0].bytes(), empty);
    }
}
