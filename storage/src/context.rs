//! What a command's handler is given: the shards it may use, the time, and where its reply and its effects go.
//!
//! A handler looks keys up, changes them and writes its reply through this one value, and so cannot forget what every command
//! owes: expired keys are gone before they are seen, accesses are noted, watchers hear of changes, memory is counted.
//!
//! ```ignore
//! pub fn get(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
//!     let key = cx.first_key(args);
//!     match cx.lookup(&key) {
//!         (Some(entry), reply) => reply_value(reply, entry.string()?),
//!         (None, reply) => reply.null(),
//!     }
//!     Ok(())
//! }
//! ```

use crate::access::AccessPolicy;
use crate::blocking::ReadyKey;
use crate::collection::{Collection, Edit, Kind, View};
use crate::database::{Database, Discarded, Spot};
use crate::effects::Effects;
use crate::entry::{Encoding, Entry, EntryRef};
use crate::key_hash::Key;
use crate::notify::Class;
use crate::occupied::Occupied;
use crate::random::Random;
use crate::shard::{Layout, Shard, Shards};
use crate::string_value::Value;
use simurgh_protocol::CommandError;
use simurgh_protocol::config::Packing;
use simurgh_protocol::resp::{Args, Reply};

/// The settings that handlers read.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What the access field holds, by `maxmemory-policy`.
    pub access: AccessPolicy,
    /// `proto-max-bulk-len`: the longest string, in bytes.
    pub bulk_max: u64,
    /// `lazyfree-lazy-user-flush`: FLUSHALL and FLUSHDB without an option free off the path.
    pub lazy_flush: bool,
    /// Up to which size collections are packed.
    pub packing: Packing,
    /// `notify-keyspace-events`: the events that somebody may hear of, and where.
    pub events: Class,
}

/// A collection that takes more allocations than this is freed off the path, as Redis's lazy freeing has it.
const FREED_IN_PLACE_MAX: usize = 64;

/// What becomes of a key's expiry when its value is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// It stays.
    Keep,
    /// It goes.
    Clear,
    /// It is set, in milliseconds of Unix time.
    At(i64),
}

/// Everything a handler may use.
pub struct Context<'a> {
    /// Where the reply goes.
    pub reply: &'a mut Reply,
    /// Where the effects go.
    pub effects: &'a mut Effects,
    /// The client's database.
    pub database: usize,
    /// The time at which the command runs, in milliseconds of Unix time; the same for all of a transaction.
    pub now_ms: i64,
    /// Settings.
    pub settings: &'a Settings,
    /// Slots, shards and the hash.
    pub layout: &'a Layout,
    /// Random numbers.
    pub random: &'a mut Random,
    /// The hash of argument 1, when the first pass over the batch has computed it.
    pub first_hash: Option<u64>,
    /// The client asked that its reads leave the access field alone (`CLIENT NO-TOUCH`).
    pub no_touch: bool,
    /// The command may wait for its keys: not in a transaction, nor where it is replayed.
    pub may_block: bool,
    /// A script calls it: where the reply has no order of its own, it gets one.
    pub in_script: bool,
    /// The command is replayed from the log: nothing expires by itself, and nothing is recorded.
    pub replaying: bool,
    /// What is to be freed off the path.
    pub discarded: &'a mut Vec<Discarded>,
    /// The shards that are held.
    pub shards: &'a mut dyn Shards,
}

impl<'a> Context<'a> {
    /// Argument 1 as a key, hashed at most once.
    #[must_use]
    #[inline]
    pub fn first_key<'k>(&self, args: &Args<'k>) -> Key<'k> {
        let bytes = args.at(1);
        match self.first_hash {
            Some(hash) => Key { bytes, hash },
            None => self.key(bytes),
        }
    }

    /// A key with its hash.
    #[must_use]
    #[inline]
    pub fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        self.layout.hasher.key(bytes)
    }

    /// The shard of a key.
    #[inline]
    pub fn shard_of(&mut self, key: &Key<'_>) -> &mut Shard {
        let index = self.layout.shard_of(key);
        self.shards.shard(index)
    }

    /// The part of the client's database that holds `key`.
    #[inline]
    pub fn database_of(&mut self, key: &Key<'_>) -> &mut Database {
        let database = self.database;
        self.shard_of(key).database_mut(database)
    }

    /// All shards, which must be held.
    pub fn each_shard(&mut self, mut with: impl FnMut(&mut Shard)) {
        for index in 0..self.layout.shards {
            with(self.shards.shard(index));
        }
    }

    /// Looks a key up to answer a read: notes the access, counts the hit or miss.
    #[inline]
    pub fn read(&mut self, key: &Key<'_>) -> Option<EntryRef<'_>> {
        self.lookup(key).0
    }

    /// [`Context::read`], with the reply at hand: for handlers that write what they found.
    #[inline]
    pub fn lookup(&mut self, key: &Key<'_>) -> (Option<EntryRef<'_>>, &mut Reply) {
        let spot = self.find_used(key);
        let (database, index) = (self.database, self.layout.shard_of(key));
        let Some(spot) = spot else {
            self.shards.shard(index).stats.misses += 1;
            self.notify(Class::KEY_MISS, "keymiss", key);
            return (None, self.reply);
        };
        let shard = self.shards.shard(index);
        shard.stats.hits += 1;
        (Some(shard.database(database).view_at(spot)), self.reply)
    }

    /// Looks a key up to tell something about it: counts the hit or miss, but leaves the access field alone (TYPE, TTL, EXISTS).
    pub fn inspect(&mut self, key: &Key<'_>) -> Option<EntryRef<'_>> {
        let spot = self.find_live(key);
        if spot.is_none() {
            self.notify(Class::KEY_MISS, "keymiss", key);
        }
        self.counted(spot, key)
    }

    /// [`Context::inspect`] without the event of a miss (OBJECT, MEMORY).
    pub fn inspect_untold(&mut self, key: &Key<'_>) -> Option<EntryRef<'_>> {
        let spot = self.find_live(key);
        self.counted(spot, key)
    }

    /// Counts a hit or a miss.
    fn counted(&mut self, spot: Option<Spot>, key: &Key<'_>) -> Option<EntryRef<'_>> {
        let database = self.database;
        let shard = self.shard_of(key);
        match spot {
            Some(spot) => {
                shard.stats.hits += 1;
                Some(shard.database(database).view_at(spot))
            }
            None => {
                shard.stats.misses += 1;
                None
            }
        }
    }

    /// Looks a key up without any trace: no access noted, no hit or miss counted.
    pub fn peek(&mut self, key: &Key<'_>) -> Option<EntryRef<'_>> {
        let spot = self.find_live(key)?;
        Some(self.database_of(key).view_at(spot))
    }

    /// Looks a key up to change it. Call [`Context::changed`] after the change.
    #[inline]
    pub fn write(&mut self, key: &Key<'_>) -> Option<Occupied<'_>> {
        let spot = self.find_used(key)?;
        Some(self.database_of(key).occupied_at(spot, key.hash))
    }

    /// Looks a collection up to answer a read, with the reply at hand: notes the access, counts the hit or miss.
    #[inline]
    pub fn look<T: Kind>(&mut self, key: &Key<'_>) -> Result<(Option<View<'_, T>>, &mut Reply), CommandError> {
        let (entry, reply) = self.lookup(key);
        let Some(entry) = entry else { return Ok((None, reply)) };
        let view = entry.collection().and_then(View::new).ok_or(CommandError::WrongType)?;
        Ok((Some(view), reply))
    }

    /// Looks a collection up to change it. Call [`Context::changed`] after the change; an emptied one is gone by then.
    #[inline]
    pub fn edit<T: Kind>(&mut self, key: &Key<'_>) -> Result<Option<Edit<'_, T>>, CommandError> {
        match self.write(key) {
            Some(entry) => Edit::new(entry).map(Some).ok_or(CommandError::WrongType),
            None => Ok(None),
        }
    }

    /// [`Context::edit`], with the reply at hand: for handlers that write what they take out.
    #[inline]
    pub fn edit_with_reply<T: Kind>(
        &mut self,
        key: &Key<'_>,
    ) -> Result<(Option<Edit<'_, T>>, &mut Reply), CommandError> {
        let Some(spot) = self.find_used(key) else { return Ok((None, self.reply)) };
        let (database, index) = (self.database, self.layout.shard_of(key));
        let entry = self.shards.shard(index).database_mut(database).occupied_at(spot, key.hash);
        let edit = Edit::new(entry).ok_or(CommandError::WrongType)?;
        Ok((Some(edit), self.reply))
    }

    /// [`Context::edit`], of a collection that comes to be if it is not there; one left empty does not stay.
    #[inline]
    pub fn edit_or_create<T: Kind>(&mut self, key: &Key<'_>) -> Result<Edit<'_, T>, CommandError> {
        let access = self.settings.access.fresh(self.now_ms);
        if self.find_used(key).is_none() {
            self.database_of(key).insert_entry(key, Entry::of_collection(key.bytes, T::empty(), None, access));
            self.notify(Class::NEW, "new", key);
        }
        let entry = self.database_of(key).occupied(key).expect("it was there or came to be just now");
        Edit::new(entry).ok_or(CommandError::WrongType)
    }

    /// Puts a collection under its key in place of whatever was there, without expiry; an empty one removes the key. Whether there
    /// was or is anything: then the caller calls [`Context::changed`], as after every change.
    pub fn replace(&mut self, key: &Key<'_>, collection: Collection) -> bool {
        let access = self.settings.access.fresh(self.now_ms);
        let old = self.take(key);
        let old_type = old.as_ref().map(|old| old.view().type_name());
        if let Some(old) = old {
            self.free(old);
        }
        if collection.is_void() {
            return old_type.is_some();
        }
        self.notify_stored(key, old_type, collection.type_name());
        self.database_of(key).insert_entry(key, Entry::of_collection(key.bytes, collection, None, access));
        true
    }

    /// Takes the key's entry out of the table, unless its time has come. Telling of the change is the caller's.
    pub(crate) fn take(&mut self, key: &Key<'_>) -> Option<Entry> {
        let spot = self.find_live(key)?;
        Some(self.database_of(key).occupied_at(spot, key.hash).take())
    }

    /// Frees an entry, a large collection off the path.
    pub(crate) fn free(&mut self, mut entry: Entry) {
        if let Some(collection) = entry.take_collection() {
            self.discard(collection);
        }
        entry.free();
    }

    /// Frees a collection, a large one off the path.
    pub fn discard(&mut self, collection: Collection) {
        if collection.free_effort() > FREED_IN_PLACE_MAX {
            self.discarded.push(Discarded::Collection(collection));
        }
    }

    /// Notes a use of the key; whether it is there.
    pub fn touch(&mut self, key: &Key<'_>) -> bool {
        self.find_used(key).is_some()
    }

    /// Finds a key whose time has not come and notes the access, in one visit to its shard.
    #[inline(always)]
    fn find_used(&mut self, key: &Key<'_>) -> Option<Spot> {
        let (database, now_ms) = (self.database, self.now_ms);
        let entries = self.shards.shard(self.layout.shard_of(key)).database_mut(database);
        let spot = entries.find(key)?;
        let view = entries.view_at(spot);
        if view.expires_at().is_some_and(|at| at <= now_ms) && !self.replaying {
            self.expire(key);
            return None;
        }
        if !self.no_touch {
            let before = view.access();
            let access = self.settings.access.used(before, now_ms, || self.random.unit());
            if access != before {
                entries.occupied_at(spot, key.hash).set_access(access);
            }
        }
        Some(spot)
    }

    /// Finds a key whose time has not come; one whose time has come is removed.
    #[inline]
    fn find_live(&mut self, key: &Key<'_>) -> Option<Spot> {
        let (now_ms, replaying) = (self.now_ms, self.replaying);
        let database = self.database_of(key);
        let spot = database.find(key)?;
        if database.view_at(spot).expires_at().is_some_and(|at| at <= now_ms) && !replaying {
            self.expire(key);
            return None;
        }
        Some(spot)
    }

    /// Stores a value under a key, new or not; where it is there, in place, with one look at the table.
    #[inline]
    pub fn store(&mut self, key: &Key<'_>, value: Value<'_>, expiry: Expiry) {
        self.store_as(key, value, value.encoding(), expiry);
    }

    /// Stores a value with a chosen encoding.
    #[inline]
    pub fn store_as(&mut self, key: &Key<'_>, value: Value<'_>, encoding: Encoding, expiry: Expiry) {
        let old_type = self.store_update(key, value, encoding, expiry);
        if old_type.is_some() {
            self.notify_overwritten(key, old_type, "string");
        }
    }

    /// Stores what a command has worked out from what was there: to subscribers the value is updated, not overwritten. The type
    /// of what was there.
    pub fn store_update(
        &mut self,
        key: &Key<'_>,
        value: Value<'_>,
        encoding: Encoding,
        expiry: Expiry,
    ) -> Option<&'static str> {
        let (database, now_ms, policy) = (self.database, self.now_ms, self.settings.access);
        let shard = self.shards.shard(self.layout.shard_of(key));
        let entries = shard.database_mut(database);
        let Some(spot) = entries.find(key) else {
            let expires_at = if let Expiry::At(at) = expiry { Some(at) } else { None };
            entries.insert(key, value, encoding, expires_at, policy.fresh(now_ms));
            self.changed(key);
            self.notify(Class::NEW, "new", key);
            return None;
        };
        let (old_access, old_expiry) = (entries.view_at(spot).access(), entries.view_at(spot).expires_at());
        if old_expiry.is_some_and(|at| at <= now_ms) && !self.replaying {
            self.remove_expired(key);
            return self.store_update(key, value, encoding, expiry);
        }
        let expires_at = match expiry {
            Expiry::Keep => old_expiry,
            Expiry::Clear => None,
            Expiry::At(at) => Some(at),
        };
        let mut access = old_access;
        if !self.no_touch {
            access = policy.used(old_access, now_ms, || self.random.unit());
        }
        let collection = entries.occupied_at(spot, key.hash).store(value, encoding, expires_at, access);
        self.effects.change();
        tell_watchers_in(shard, self.effects, database, key);
        let Some(collection) = collection else { return Some("string") };
        let old_type = collection.type_name();
        self.discard(collection);
        Some(old_type)
    }

    /// Puts a whole entry under its key, in place of what was there. Watchers are told; counting the change is the caller's, who
    /// may have counted it where the entry came from. The type of what was there.
    pub(crate) fn put(&mut self, key: &Key<'_>, entry: Entry) -> Option<&'static str> {
        let old = self.database_of(key).occupied(key).map(Occupied::take);
        let old_type = old.as_ref().map(|old| old.view().type_name());
        if let Some(old) = old {
            self.free(old);
        }
        self.database_of(key).receive(key, entry);
        self.tell_watchers(key);
        self.notify(Class::NEW, "new", key);
        old_type
    }

    /// Runs `with` in another database than the client's, for commands that name two.
    pub fn in_database<R>(&mut self, database: usize, with: impl FnOnce(&mut Self) -> R) -> R {
        let own = std::mem::replace(&mut self.database, database);
        let result = with(self);
        self.database = own;
        result
    }

    /// Sets or removes the expiry of a key that is there.
    pub fn set_expiry(&mut self, key: &Key<'_>, expires_at: Option<i64>) {
        if let Some(mut entry) = self.database_of(key).occupied(key) {
            entry.set_expiry(expires_at);
            self.changed(key);
        }
    }

    /// Removes a key; whether it was there (and not expired).
    pub fn remove(&mut self, key: &Key<'_>) -> bool {
        let Some(entry) = self.take(key) else { return false };
        self.free(entry);
        self.changed(key);
        true
    }

    /// Notes that a key has changed: the command is logged, watchers are told.
    #[inline]
    pub fn changed(&mut self, key: &Key<'_>) {
        self.effects.change();
        self.tell_watchers(key);
    }

    /// Tells those who watch a key, or wait for it, that it has changed.
    #[inline]
    pub fn tell_watchers(&mut self, key: &Key<'_>) {
        let shard = self.shards.shard(self.layout.shard_of(key));
        tell_watchers_in(shard, self.effects, self.database, key);
    }

    /// Records `words` in the log in place of the command as it was sent.
    pub fn log_instead(&mut self, words: &[&[u8]]) {
        self.effects.replace(self.database, words);
    }

    /// A key whose time has come has been met: it is removed before anybody sees it, unless the keyspace stands still.
    #[cold]
    fn expire(&mut self, key: &Key<'_>) {
        if !self.effects.keeps_expired {
            self.remove_expired(key);
        }
    }

    fn remove_expired(&mut self, key: &Key<'_>) {
        let database = self.database;
        let shard = self.shard_of(key);
        if let Some(entry) = shard.database_mut(database).occupied(key) {
            entry.remove();
        }
        shard.stats.expired += 1;
        self.tell_watchers(key);
        self.effects.record(database, &[b"DEL", key.bytes]);
        self.notify(Class::EXPIRED, "expired", key);
    }
}

/// Tells those who watch a key of this shard, or wait for it, that it has changed.
#[inline]
fn tell_watchers_in(shard: &mut Shard, effects: &mut Effects, database: usize, key: &Key<'_>) {
    effects.touch(key.bytes);
    if shard.is_observed() {
        shard.key_changed(database, key.bytes);
        if shard.is_awaited(database, key.bytes) {
            effects.ready.push_back(ReadyKey { database, key: key.bytes.into() });
        }
    }
}
