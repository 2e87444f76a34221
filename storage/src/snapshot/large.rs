//! Large collections in a snapshot: seen in steps, and handed over element by element.
//!
//! ```text
//! begin      the visit comes to it, or a command is about to change it: what stands before its elements is written down, with their
//!            number at the cut
//! visit      a bounded number of elements that were not seen; what was handed over comes first
//! hand over  whoever is about to change or remove elements that were not seen writes those first, and no others
//! end        no element is unseen
//! ```
//!
//! A [`Record`] is part of the collection's own structure while this lasts, so whatever changes the structure meets it. Renamed or
//! moved, the collection takes it along; a structure that is dropped with it is not freed but given to the [`Plan`], which has it visited
//! to its end. An RDB file has the elements of a collection in one piece: while one is being written, nothing else is.

use super::encode;
use super::{Format, Piece, Plan, Step};
use crate::collection::Collection;
use crate::element::Element;
use crate::entry::EntryRef;
use crate::rdb::string::Sink;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// What a structure owes to a snapshot, while it does. A copy of the structure owes nothing.
#[derive(Debug)]
pub(crate) struct Owed<T>(Option<Box<T>>);

impl<T> Default for Owed<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Clone for Owed<T> {
    fn clone(&self) -> Self {
        Self(None)
    }
}

impl<T> Owed<T> {
    /// From here on it owes this.
    pub fn of(owed: T) -> Self {
        Self(Some(Box::new(owed)))
    }

    pub fn take(&mut self) -> Option<Box<T>> {
        self.0.take()
    }

    pub fn put_back(&mut self, owed: Box<T>) {
        self.0 = Some(owed);
    }
}

impl<T> Deref for Owed<T> {
    type Target = Option<Box<T>>;

    fn deref(&self) -> &Option<Box<T>> {
        &self.0
    }
}

impl<T> DerefMut for Owed<T> {
    fn deref_mut(&mut self) -> &mut Option<Box<T>> {
        &mut self.0
    }
}

/// A structure that is seen in steps.
pub(crate) trait Large: Send + Sync {
    /// What the snapshot keeps of it, until it has been seen.
    fn record(&self) -> Option<&Record>;

    /// Takes a step; whether everything has been seen.
    fn visit(&mut self, step: Step, piece: &mut Piece) -> bool;

    /// The snapshot that has not seen everything of it and still wants to: who frees it keeps it for that.
    fn wanted_by(&self) -> Option<Arc<Plan>> {
        self.record().filter(|record| !record.is_given_up()).map(|record| record.plan().clone())
    }
}

/// Whether the file stands in the midst of its elements.
pub(super) fn is_writing(large: &dyn Large) -> bool {
    large.record().is_some_and(Record::is_writing)
}

/// An element that is written by itself.
pub trait Saved: Element {
    /// The command that adds such elements to a key.
    const COMMAND: &'static [u8];

    /// Appends it as in an RDB file.
    fn save(view: Self::View<'_>, form: &Form, out: &mut Sink<'_>);

    /// Gives its words, as the command has them, to `with`.
    fn words(view: Self::View<'_>, with: &mut dyn FnMut(&[u8]));

    /// When it expires.
    fn expires_at(_view: Self::View<'_>) -> Option<i64> {
        None
    }

    /// Whether the visit, which goes by an order of its own, has come past it.
    fn is_passed(_view: Self::View<'_>, _form: &Form) -> bool {
        false
    }
}

/// What the form of elements depends on.
#[derive(Debug, Default)]
pub struct Form {
    /// The key, if elements are written as commands.
    pub key: Option<Box<[u8]>>,
    /// When the first field of a hash expired at the cut, if any did.
    pub soonest: Option<i64>,
    /// The score and member that a visit to a sorted set, from the greatest on, has come to.
    pub passed: Option<(f64, Box<[u8]>)>,
}

/// Writes elements; how many.
pub(crate) fn save_all<E: Saved>(elements: &[E::View<'_>], form: &Form, out: &mut Sink<'_>) -> u64 {
    match &form.key {
        None => elements.iter().for_each(|element| E::save(*element, form, out)),
        Some(_) if elements.is_empty() => {}
        Some(key) => {
            let mut words = vec![E::COMMAND.to_vec(), key.to_vec()];
            elements.iter().for_each(|element| E::words(*element, &mut |word| words.push(word.to_vec())));
            encode::words(out, &words);
            for (element, at) in elements.iter().filter_map(|element| Some((element, E::expires_at(*element)?))) {
                encode::field_expiry(out, key, E::key(*element), at);
            }
        }
    }
    elements.len() as u64
}

/// What a snapshot keeps of a large collection from its beginning to its end.
#[derive(Debug)]
pub(crate) struct Record {
    plan: Arc<Plan>,
    database: u32,
    /// What stands before the elements, until it is written.
    front: Vec<u8>,
    /// Elements that were handed over, and are not written yet.
    early: Vec<u8>,
    /// What is to stand behind them.
    tail: Vec<u8>,
    /// Bytes that the structure keeps for the visit in places of its own.
    kept: usize,
    /// What the form of the elements depends on.
    pub form: Form,
    /// Elements or nodes, of those at the cut, that are in neither place yet.
    pub left: u64,
    is_writing: bool,
}

impl Record {
    fn new(plan: &Arc<Plan>, database: u32, front: Vec<u8>, left: usize) -> Self {
        plan.begin_large();
        plan.hand_over_early(front.len());
        let (early, tail, form) = (Vec::new(), Vec::new(), Form::default());
        let (plan, left) = (plan.clone(), left as u64);
        Self { plan, database, front, early, tail, kept: 0, form, left, is_writing: false }
    }

    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    pub fn is_writing(&self) -> bool {
        self.is_writing
    }

    /// Nothing is to be written any more.
    pub fn is_given_up(&self) -> bool {
        self.plan.is_cancelled()
    }

    /// Hands elements over by `write`, which tells how many those are.
    pub fn hand_over(&mut self, write: impl FnOnce(&Form, &mut Sink<'_>) -> u64) {
        if self.is_given_up() {
            return;
        }
        let before = self.early.len();
        self.left -= write(&self.form, &mut Sink::new(&mut self.early, self.plan.compresses));
        self.plan.hand_over_early(self.early.len() - before);
    }

    /// What is kept for the visit counts for so many bytes more.
    pub fn keep(&mut self, bytes: usize) {
        self.kept += bytes;
        self.plan.hand_over_early(bytes);
    }

    /// What was kept for the visit is written.
    pub fn release(&mut self, bytes: usize) {
        self.kept -= bytes;
        self.plan.take_early(bytes);
    }

    /// What is to stand behind the elements.
    pub fn end_with(&mut self, write: impl FnOnce(&mut Sink<'_>)) {
        write(&mut Sink::new(&mut self.tail, self.plan.compresses));
        self.plan.hand_over_early(self.tail.len());
    }

    /// Begins to write, or goes on: front and elements that were handed over come first.
    pub fn resume(&mut self, piece: &mut Piece) {
        if !self.is_writing {
            piece.choose(self.plan.format, self.database);
            self.plan.take_early(self.front.len());
            piece.bytes.append(&mut self.front);
            self.is_writing = true;
            piece.is_open = true;
        }
        self.plan.take_early(self.early.len());
        piece.bytes.append(&mut self.early);
    }

    /// Writes elements by `write`, which tells how many those are.
    pub fn write(&mut self, piece: &mut Piece, write: impl FnOnce(&Form, &mut Sink<'_>) -> u64) {
        self.left -= write(&self.form, &mut Sink::new(&mut piece.bytes, self.plan.compresses));
    }

    /// All of it is written.
    pub fn end(mut self, piece: &mut Piece) {
        debug_assert!(self.left == 0 && self.early.is_empty(), "{} elements of the cut were not seen", self.left);
        if self.left != 0 {
            // Better no file than one whose counts are wrong.
            self.plan.cancel();
        }
        self.plan.take_early(self.tail.len());
        piece.bytes.append(&mut self.tail);
        piece.is_open = false;
        self.plan.count(1);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.plan.take_early(self.front.len() + self.early.len() + self.tail.len() + self.kept);
        self.plan.end_large();
    }
}

/// Whether a snapshot sees an entry in steps.
pub(super) fn is_large(entry: EntryRef<'_>, plan: &Plan) -> bool {
    match entry.collection() {
        Some(collection) => {
            // No commands make a stream with all that is to be known of it.
            let is_possible = plan.format == Format::Rdb || !matches!(&*collection, Collection::Stream(_));
            is_possible && collection.may_owe(plan.large_bytes())
        }
        None => false,
    }
}

/// A snapshot begins with an entry's collection, which is large.
pub(super) fn begin(entry: &mut crate::entry::Entry, plan: &Arc<Plan>, database: u32) {
    if plan.is_cancelled() {
        return;
    }
    let (front, tail) = encode::around(plan, entry.view());
    let key = (plan.format == Format::Commands).then(|| entry.view().key().into());
    let Some(mut collection) = entry.take_collection() else { return };
    let mut record = Record::new(plan, database, front, collection.len());
    record.form.key = key;
    record.end_with(|out| out.extend_from_slice(&tail));
    collection.owe(record);
    entry.put_collection(collection);
}

impl Collection {
    /// Whether it is a structure of elements, of at least so many bytes, that a snapshot sees in steps.
    fn may_owe(&self, bytes_min: usize) -> bool {
        let is_structure = match self {
            Self::Hash(hash) => hash.as_packed().is_none(),
            Self::Set(set) => matches!(set.shape(), crate::set::Shape::Table(_)),
            Self::SortedSet(set) => set.as_listpack().is_none(),
            Self::List(list) => list.is_large(),
            Self::Stream(_) => true,
        };
        is_structure && self.bytes() >= bytes_min
    }

    fn owe(&mut self, record: Record) {
        match self {
            Self::Hash(hash) => hash.owe(record),
            Self::Set(set) => set.owe(record),
            Self::SortedSet(set) => set.owe(record),
            Self::List(list) => list.owe(record),
            Self::Stream(stream) => stream.owe(record),
        }
    }

    /// What is seen in steps, if a snapshot has begun with it and not come to its end.
    pub(crate) fn owing(&mut self) -> Option<&mut dyn Large> {
        match self {
            Self::Hash(hash) => hash.owing(),
            Self::Set(set) => set.owing(),
            Self::SortedSet(set) => set.owing(),
            Self::List(list) => list.owing(),
            Self::Stream(stream) => stream.entries.owing(),
        }
    }
}
