//! Hashes: fields with values, each field perhaps with an expiry of its own.
//!
//! Three representations. A packed list of pairs; a packed list of rows with expiries, soonest first (`packed.rs`); a table with an index of
//! expiries (`table.rs`). A hash that has once outgrown its packed form stays a table, and one that has once had an expiry keeps the
//! room for them, as in Redis.
//!
//! A field whose time has come is invisible from that millisecond on, whether or not it is still there: whoever reads passes `now_ms`
//! and gets live fields only. Who names such a field, and the cron, remove it and log `HDEL` (`expired.rs`). HLEN counts what is
//! there, as Redis does. A replay sees every field as live, since the log says when it went.

mod expire;
mod expired;
mod field_list;
mod increment;
mod packed;
mod random;
mod read;
mod scan;
mod setex;
mod table;
mod take;
#[cfg(test)]
mod tests;
mod ttl;
mod write;

pub use expire::{hexpire, hexpireat, hpersist, hpexpire, hpexpireat};
pub use expired::expire_fields;
pub use increment::{hincrby, hincrbyfloat};
pub use random::hrandfield;
pub use read::{hexists, hget, hgetall, hkeys, hlen, hmget, hstrlen, hvals};
pub use scan::hscan;
pub use setex::hsetex;
pub use take::{hgetdel, hgetex};
pub use ttl::{hexpiretime, hpexpiretime, hpttl, httl};
pub use write::{hdel, hmset, hset, hsetnx};

use crate::context::{Context, Expiry};
use crate::key_hash::KeyHasher;
use crate::listpack::{Item, Listpack};
use crate::packed_or::{Form, PackedOr};
use crate::random::Random;
use crate::snapshot::Record;
use packed::{PAIR, TRIPLE};
use simurgh_protocol::config::Packing;
use table::Table;

/// A value that holds fields.
#[derive(Clone, Debug, Default)]
#[repr(transparent)]
pub struct Hash(PackedOr<Listpack, Large>);

/// What is not a packed list of pairs.
#[derive(Clone, Debug)]
enum Large {
    Expiring(Listpack),
    Table(Box<Table>),
}

/// The representations, to be read.
enum Shape<'a> {
    Packed(&'a Listpack, usize),
    Table(&'a Table),
}

/// A field with what belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// Its name.
    pub field: Item<'a>,
    /// Its value.
    pub value: Item<'a>,
    /// When it expires, in milliseconds of Unix time.
    pub expires_at: Option<i64>,
}

impl Row<'_> {
    /// Whether its time has not come.
    #[must_use]
    pub fn is_live(&self, now_ms: i64) -> bool {
        self.expires_at.is_none_or(|at| at > now_ms)
    }
}

/// Up to which size a hash is packed, and how its fields are hashed when it is not.
#[derive(Clone, Copy)]
pub(crate) struct Limits<'a> {
    entries: u64,
    value: u64,
    hasher: &'a KeyHasher,
}

impl<'a> Limits<'a> {
    /// Those of the configuration.
    pub fn of(cx: &Context<'a>) -> Self {
        Self::new(&cx.settings.packing, &cx.layout.hasher)
    }

    /// Those of `packing`.
    pub fn new(packing: &Packing, hasher: &'a KeyHasher) -> Self {
        Self { entries: packing.hash_entries, value: packing.hash_value, hasher }
    }

    fn allow(&self, text: &[u8]) -> bool {
        text.len() as u64 <= self.value
    }
}

/// The time by which fields are live: of a replay, before all of them.
fn field_clock(cx: &Context<'_>) -> i64 {
    if cx.replaying { i64::MIN } else { cx.now_ms }
}

/// The expiry that a field has afterwards.
fn expiry_after(expiry: Expiry, before: Option<i64>) -> Option<i64> {
    match expiry {
        Expiry::Keep => before,
        Expiry::Clear => None,
        Expiry::At(at) => Some(at),
    }
}

impl Hash {
    fn shape(&self) -> Shape<'_> {
        match self.0.get() {
            Form::Packed(list) => Shape::Packed(list, PAIR),
            Form::Large(Large::Expiring(list)) => Shape::Packed(list, TRIPLE),
            Form::Large(Large::Table(table)) => Shape::Table(table),
        }
    }

    /// Number of fields, expired ones that are still there included.
    #[must_use]
    pub fn len(&self) -> usize {
        match self.shape() {
            Shape::Packed(list, stride) => packed::len(list, stride),
            Shape::Table(table) => table.len(),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of its blocks, in the allocator's size classes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self.0.get() {
            Form::Packed(list) => list.bytes(),
            Form::Large(Large::Expiring(list)) => crate::size_class(size_of::<Large>()) + list.bytes(),
            Form::Large(Large::Table(table)) => crate::size_class(size_of::<Large>()) + table.bytes(),
        }
    }

    /// The name of the representation.
    #[must_use]
    pub fn encoding_name(&self) -> &'static str {
        match self.shape() {
            Shape::Packed(_, PAIR) => "listpack",
            Shape::Packed(..) => "listpackex",
            Shape::Table(_) => "hashtable",
        }
    }

    /// Calls `with` for each field: name, value and, where it has one, expiry.
    pub fn for_each(&self, with: &mut dyn FnMut(&[&[u8]])) {
        self.each_row(|row| {
            row.field.with_text(|field| {
                row.value.with_text(|value| match row.expires_at {
                    None => with(&[field, value]),
                    Some(at) => Item::Int(at).with_text(|at| with(&[field, value, at])),
                });
            });
        });
    }

    /// How many allocations there are, about.
    #[must_use]
    pub fn free_effort(&self) -> usize {
        match self.shape() {
            Shape::Packed(..) => 1,
            Shape::Table(table) => table.len(),
        }
    }

    /// When the next field expires, in milliseconds of Unix time.
    #[must_use]
    pub fn next_field_expiry(&self) -> Option<i64> {
        match self.shape() {
            Shape::Packed(_, PAIR) => None,
            Shape::Packed(list, stride) => packed::nth(list, 0, stride).and_then(|row| row.expires_at),
            Shape::Table(table) => table.next_expiry(),
        }
    }

    /// Whether a field's time has come.
    pub(crate) fn is_due(&self, now_ms: i64) -> bool {
        self.next_field_expiry().is_some_and(|at| at <= now_ms)
    }

    /// Calls `with` for each field, live or not.
    pub fn each_row(&self, mut with: impl FnMut(Row<'_>)) {
        match self.shape() {
            Shape::Packed(list, stride) => packed::rows(list, stride).for_each(with),
            Shape::Table(table) => table.rows().for_each(&mut with),
        }
    }

    /// Calls `with` for each live field.
    pub fn each_live(&self, now_ms: i64, mut with: impl FnMut(Row<'_>)) {
        self.each_row(|row| {
            if row.is_live(now_ms) {
                with(row);
            }
        });
    }

    /// Number of live fields: at once, unless some field's time has come.
    #[must_use]
    pub fn live_len(&self, now_ms: i64) -> usize {
        if !self.is_due(now_ms) {
            return self.len();
        }
        let mut count = 0;
        self.each_live(now_ms, |_| count += 1);
        count
    }

    /// A field, live or not.
    #[must_use]
    pub fn find(&self, field: &[u8]) -> Option<Row<'_>> {
        match self.shape() {
            Shape::Packed(list, stride) => packed::find(list, field, stride),
            Shape::Table(table) => table.find(field),
        }
    }

    /// A live field.
    #[must_use]
    pub fn get(&self, field: &[u8], now_ms: i64) -> Option<Row<'_>> {
        self.find(field).filter(|row| row.is_live(now_ms))
    }

    /// A field picked at random, live or not.
    #[must_use]
    pub fn random(&self, random: &mut Random) -> Option<Row<'_>> {
        match self.shape() {
            Shape::Packed(list, stride) => {
                let len = packed::len(list, stride);
                (len > 0).then(|| random.below(len)).and_then(|rank| packed::nth(list, rank, stride))
            }
            Shape::Table(table) => table.random(random),
        }
    }

    /// The live field that has `rank` others before it.
    pub(crate) fn nth_live(&self, rank: usize, now_ms: i64) -> Option<Row<'_>> {
        match self.shape() {
            Shape::Packed(list, stride) => packed::rows(list, stride).filter(|row| row.is_live(now_ms)).nth(rank),
            Shape::Table(table) => table.rows().filter(|row| row.is_live(now_ms)).nth(rank),
        }
    }

    /// One step of a scan, which gives all of a packed hash at once.
    pub fn scan(&self, cursor: u64, with: impl FnMut(Row<'_>)) -> u64 {
        match self.shape() {
            Shape::Packed(list, stride) => {
                packed::rows(list, stride).for_each(with);
                0
            }
            Shape::Table(table) => table.scan(cursor, with),
        }
    }

    /// Sets a field; whether it is new.
    pub(crate) fn set(&mut self, field: &[u8], value: &[u8], expiry: Expiry, limits: &Limits<'_>) -> bool {
        if !limits.allow(field) || !limits.allow(value) || !self.fits(field, value) {
            self.make_table(limits.hasher);
        } else if matches!(expiry, Expiry::At(_)) {
            self.make_expiring();
        }
        let is_new = match self.0.get_mut() {
            Form::Packed(list) => packed::set(list, field, Item::from(value), expiry, PAIR),
            Form::Large(Large::Expiring(list)) => packed::set(list, field, Item::from(value), expiry, TRIPLE),
            Form::Large(Large::Table(table)) => table.set(field, value, expiry),
        };
        if is_new {
            self.keep_within(limits);
        }
        is_new
    }

    /// Whether a packed list has room for another field, be it small.
    fn fits(&self, field: &[u8], value: &[u8]) -> bool {
        /// What head and tail of two items and an expiry take at most.
        const FRAMES: usize = 64;
        match self.shape() {
            Shape::Packed(list, _) => list.fits(field.len().saturating_add(value.len()).saturating_add(FRAMES)),
            Shape::Table(_) => true,
        }
    }

    /// Gives a field that is there another expiry, or none.
    pub(crate) fn set_expiry(&mut self, field: &[u8], expires_at: Option<i64>) {
        if expires_at.is_some() {
            self.make_expiring();
        }
        match self.0.get_mut() {
            Form::Packed(_) => {}
            Form::Large(Large::Expiring(list)) => packed::set_expiry(list, field, expires_at),
            Form::Large(Large::Table(table)) => table.set_expiry(field, expires_at),
        }
    }

    /// Removes a field; whether it was there.
    pub(crate) fn remove(&mut self, field: &[u8]) -> bool {
        match self.0.get_mut() {
            Form::Packed(list) => packed::remove(list, field, PAIR),
            Form::Large(Large::Expiring(list)) => packed::remove(list, field, TRIPLE),
            Form::Large(Large::Table(table)) => table.remove(field),
        }
    }

    /// Takes out the field that expires first, if its time has come.
    pub(crate) fn take_due(&mut self, now_ms: i64) -> Option<Vec<u8>> {
        let due = match self.shape() {
            Shape::Packed(list, stride) => {
                packed::nth(list, 0, stride).filter(|row| !row.is_live(now_ms)).map(|row| row.field.to_vec())
            }
            Shape::Table(table) => table.due(now_ms),
        }?;
        self.remove(&due);
        Some(due)
    }

    /// Makes it a table if it has more fields than a packed one may have.
    fn keep_within(&mut self, limits: &Limits<'_>) {
        if self.len() as u64 > limits.entries {
            self.make_table(limits.hasher);
        }
    }

    /// Makes it a table if that is what it will be when so many fields are written, all of them new or not.
    pub(crate) fn prepare(&mut self, count: usize, limits: &Limits<'_>) {
        if count as u64 > limits.entries {
            self.make_table(limits.hasher);
        }
    }

    /// Gives its fields room for expiries.
    pub(crate) fn make_expiring(&mut self) {
        if let Form::Packed(list) = self.0.get() {
            let list = packed::with_expiries(list);
            self.0 = PackedOr::large(Box::new(Large::Expiring(list)));
        }
    }

    fn make_table(&mut self, hasher: &KeyHasher) {
        if let Shape::Packed(list, stride) = self.shape() {
            let table = Table::of(packed::rows(list, stride), hasher);
            self.0 = PackedOr::large(Box::new(Large::Table(Box::new(table))));
        }
    }

    /// A snapshot begins with it; it is a table.
    pub(crate) fn owe(&mut self, record: Record) {
        if let Form::Large(Large::Table(table)) = self.0.get_mut() {
            table.owe(record);
        }
    }

    /// Its fields, if a snapshot has begun with them and not come to their end.
    pub(crate) fn owing(&mut self) -> Option<&mut dyn crate::snapshot::Large> {
        match self.0.get_mut() {
            Form::Large(Large::Table(table)) => table.owing(),
            Form::Packed(_) | Form::Large(Large::Expiring(_)) => None,
        }
    }

    /// The packed list of pairs or, if `true` is with it, of rows with expiries; nothing of a table.
    #[must_use]
    pub fn as_packed(&self) -> Option<(&Listpack, bool)> {
        match self.shape() {
            Shape::Packed(list, stride) => Some((list, stride == TRIPLE)),
            Shape::Table(_) => None,
        }
    }
}
