//! XDEL, XDELEX: entries are deleted by name. XSETID: the counters are set. Commands: <https://redis.io/docs/latest/commands/xdelex/>.

use super::Stream;
use super::id::StreamId;
use super::trim::References;
use crate::context::Context;
use crate::notify::Class;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};

/// Reads ids from argument `from` on.
pub(super) fn read_ids(args: &Args<'_>, from: usize) -> Result<Vec<StreamId>, CommandError> {
    args.from(from).map(|text| StreamId::parse(text, 0)).collect()
}

/// `XDEL key id [id ...]`.
pub fn xdel(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let Some(mut stream) = cx.edit::<Stream>(&key)? else {
        cx.reply.integer(0);
        return Ok(());
    };
    let ids = read_ids(args, 2)?;
    let deleted = ids.iter().filter(|id| stream.entries.delete(**id)).count();
    drop(stream);
    if deleted > 0 {
        cx.notify(Class::STREAM, "xdel", &key);
        cx.changed(&key);
    }
    cx.reply.count(deleted);
    Ok(())
}

/// The part `[KEEPREF|DELREF|ACKED] IDS numids id [id ...]` of XDELEX and XACKDEL.
pub(super) struct Selection {
    /// What becomes of references.
    pub references: References,
    /// Where the ids are.
    from: usize,
    count: usize,
}

impl Selection {
    /// Reads it from argument `at` on, to the end.
    pub(super) fn read(args: &Args<'_>, mut at: usize) -> Result<Self, CommandError> {
        let (mut references, mut ids) = (None, None);
        while at < args.len() {
            if args.is(at, "IDS") && ids.is_none() && at + 1 < args.len() {
                let count = parse_i64(args.at(at + 1)).and_then(|count| usize::try_from(count).ok());
                let count = count.filter(|count| *count > 0);
                let count = count.ok_or(CommandError::Text("ERR Number of IDs must be a positive integer"))?;
                if count > args.len() - at - 2 {
                    let text = "ERR The `numids` parameter must match the number of arguments";
                    return Err(CommandError::Text(text));
                }
                ids = Some((at + 2, count));
                at += 2 + count;
            } else if let Some(option) = References::named(args, at)
                && references.is_none()
            {
                references = Some(option);
                at += 1;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        let (from, count) = ids.ok_or(CommandError::Syntax)?;
        Ok(Self { references: references.unwrap_or_default(), from, count })
    }

    /// The ids.
    pub(super) fn ids(&self, args: &Args<'_>) -> Result<Vec<StreamId>, CommandError> {
        args.from(self.from).take(self.count).map(|text| StreamId::parse(text, 0)).collect()
    }

    /// Answers that there is none of the ids.
    pub(super) fn reply_none(&self, cx: &mut Context<'_>) {
        cx.reply.array(self.count);
        (0..self.count).for_each(|_| cx.reply.integer(Outcome::Absent.code()));
    }
}

/// What became of one id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was not there.
    Absent,
    /// It was deleted (or acknowledged and deleted).
    Deleted,
    /// A group refers to it, so it stays.
    Spared,
}

impl Outcome {
    /// The number that stands for it.
    pub(super) fn code(self) -> i64 {
        match self {
            Self::Absent => -1,
            Self::Deleted => 1,
            Self::Spared => 2,
        }
    }
}

impl Stream {
    /// Deletes an entry, with regard to what groups hold of it.
    pub(super) fn delete_entry(&mut self, id: StreamId, references: References) -> Outcome {
        match references {
            References::Keep => {}
            References::Delete => {
                self.groups.forget(id);
            }
            References::Spare if self.groups.refer_to(id) => return Outcome::Spared,
            References::Spare => {}
        }
        if self.entries.delete(id) { Outcome::Deleted } else { Outcome::Absent }
    }
}

/// `XDELEX key [KEEPREF|DELREF|ACKED] IDS numids id [id ...]`.
pub fn xdelex(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let key = cx.first_key(args);
    let is_there = cx.edit::<Stream>(&key)?.is_some();
    let selection = Selection::read(args, 2)?;
    if !is_there {
        selection.reply_none(cx);
        return Ok(());
    }
    let ids = selection.ids(args)?;
    let Some(mut stream) = cx.edit::<Stream>(&key)? else { return Ok(()) };
    let pending = stream.groups.pending();
    let outcomes: Vec<Outcome> = ids.iter().map(|id| stream.delete_entry(*id, selection.references)).collect();
    let forgot = stream.groups.pending() < pending;
    drop(stream);
    let deleted = outcomes.contains(&Outcome::Deleted);
    if deleted {
        cx.notify(Class::STREAM, "xdel", &key);
        cx.changed(&key);
    } else if forgot {
        cx.effects.change();
    }
    cx.reply.array(outcomes.len());
    outcomes.iter().for_each(|outcome| cx.reply.integer(outcome.code()));
    Ok(())
}

/// `XSETID key last-id [ENTRIESADDED entries-added] [MAXDELETEDID max-deleted-id]`.
pub fn xsetid(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let id = StreamId::parse(args.at(2), 0)?;
    let (mut added, mut max_deleted, mut at) = (None, StreamId::MIN, 3);
    while at < args.len() {
        let value = args.get(at + 1).ok_or(CommandError::Syntax)?;
        if args.is(at, "ENTRIESADDED") {
            let number = parse_i64(value).ok_or(CommandError::NotAnInteger)?;
            let negative = CommandError::Text("ERR entries_added must be positive");
            added = Some(u64::try_from(number).map_err(|_| negative)?);
        } else if args.is(at, "MAXDELETEDID") {
            max_deleted = StreamId::parse(value, 0)?;
            if id < max_deleted {
                let text = "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id";
                return Err(CommandError::Text(text));
            }
        } else {
            return Err(CommandError::Syntax);
        }
        at += 2;
    }
    let key = cx.first_key(args);
    let mut stream = cx.edit::<Stream>(&key)?.ok_or(CommandError::NoSuchKey)?;
    let entries = &mut stream.entries;
    if id < entries.max_deleted_id {
        let text = "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id";
        return Err(CommandError::Text(text));
    }
    if !entries.is_empty() && id < entries.greatest_id() {
        let text = "ERR The ID specified in XSETID is smaller than the target stream top item";
        return Err(CommandError::Text(text));
    }
    if added.is_some_and(|added| added < entries.len()) {
        let text = "ERR The entries_added specified in XSETID is smaller than the target stream length";
        return Err(CommandError::Text(text));
    }
    entries.last_id = id;
    entries.added = added.unwrap_or(entries.added);
    if !max_deleted.is_zero() {
        entries.max_deleted_id = max_deleted;
    }
    drop(stream);
    cx.reply.ok();
    cx.notify(Class::STREAM, "xsetid", &key);
    cx.effects.change();
    Ok(())
}
