//! Trimming: what XADD and XTRIM remove from the front of a stream, and how a client asks for it.

use super::Stream;
use super::entries::Entries;
use super::id::{NewId, StreamId};
use super::node::{self, NodeEntries};
use crate::context::Context;
use crate::notify::Class;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};

/// What happens to what groups hold of entries that are removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum References {
    /// `KEEPREF`: it stays.
    #[default]
    Keep,
    /// `DELREF`: it goes too.
    Delete,
    /// `ACKED`: only entries are removed of which no group holds or awaits anything.
    Spare,
}

impl References {
    /// The option of this name.
    pub(super) fn named(args: &Args<'_>, index: usize) -> Option<Self> {
        [Self::Keep, Self::Delete, Self::Spare].into_iter().find(|option| args.is(index, option.name()))
    }

    /// The option's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Keep => "KEEPREF",
            Self::Delete => "DELREF",
            Self::Spare => "ACKED",
        }
    }
}

/// Up to where a stream is trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// `MAXLEN`: until it has no more entries than that.
    Length(u64),
    /// `MINID`: until it has none before that.
    Id(StreamId),
}

/// A trimming that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// Up to where.
    pub bound: Bound,
    /// `~`: only nodes are removed, whole.
    pub is_approximate: bool,
    /// `LIMIT`: no more entries than this are removed; 0 means any number.
    pub limit: u64,
    /// What becomes of references.
    pub references: References,
    /// It is replayed: what remains does not depend on nodes.
    pub is_replayed: bool,
}

/// The options of XADD and XTRIM.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options {
    pub bound: Option<Bound>,
    pub is_approximate: bool,
    limit: Option<u64>,
    pub references: Option<References>,
    /// `NOMKSTREAM`.
    pub only_existing: bool,
    /// XADD's id.
    pub id: Option<NewId>,
    /// The first argument behind all that.
    pub end: usize,
}

/// Which of the two commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Xadd,
    Xtrim,
}

impl Options {
    /// Reads the options; XADD's end with its id.
    pub(super) fn read(args: &Args<'_>, command: Command) -> Result<Self, CommandError> {
        let mut options = Self { end: 2, ..Self::default() };
        while options.end < args.len() && options.id.is_none() {
            options.read_one(args, command)?;
        }
        if options.bound.is_none() {
            if options.limit.is_some_and(|limit| limit > 0) {
                let text = "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy";
                return Err(CommandError::Text(text));
            }
            if command == Command::Xtrim {
                return Err(CommandError::Text("ERR syntax error, XTRIM must be called with a trimming strategy"));
            }
        }
        Ok(options)
    }

    fn read_one(&mut self, args: &Args<'_>, command: Command) -> Result<(), CommandError> {
        let (at, has_more) = (self.end, self.end + 1 < args.len());
        if command == Command::Xadd && args.at(at) == b"*" {
            self.id = Some(NewId::Auto);
        } else if has_more && (args.is(at, "MAXLEN") || args.is(at, "MINID")) {
            self.read_bound(args)?;
        } else if has_more && args.is(at, "LIMIT") {
            let limit = parse_i64(args.at(at + 1)).ok_or(CommandError::NotAnInteger)?;
            let negative = CommandError::Text("ERR The LIMIT argument must be >= 0.");
            self.limit = Some(u64::try_from(limit).map_err(|_| negative)?);
            self.end += 1;
        } else if command == Command::Xadd && args.is(at, "NOMKSTREAM") {
            self.only_existing = true;
        } else if self.references.is_none()
            && let Some(references) = References::named(args, at)
        {
            self.references = Some(references);
        } else if command == Command::Xadd {
            self.id = Some(NewId::parse(args.at(at))?);
        } else {
            return Err(CommandError::Syntax);
        }
        self.end += 1;
        Ok(())
    }

    /// Reads `MAXLEN` or `MINID`, up to the threshold.
    fn read_bound(&mut self, args: &Args<'_>) -> Result<(), CommandError> {
        if self.bound.is_some() {
            let text = "ERR syntax error, MAXLEN and MINID options at the same time are not compatible";
            return Err(CommandError::Text(text));
        }
        let is_length = args.is(self.end, "MAXLEN");
        self.end += 1;
        self.is_approximate = false;
        if self.end + 1 < args.len() && (args.is(self.end, "~") || args.is(self.end, "=")) {
            self.is_approximate = args.is(self.end, "~");
            self.end += 1;
        }
        let threshold = args.at(self.end);
        self.bound = Some(if is_length {
            let length = parse_i64(threshold).ok_or(CommandError::NotAnInteger)?;
            let negative = CommandError::Text("ERR The MAXLEN argument must be >= 0.");
            Bound::Length(u64::try_from(length).map_err(|_| negative)?)
        } else {
            Bound::Id(StreamId::parse(threshold, 0)?)
        });
        Ok(())
    }

    /// The trimming that the options ask for.
    pub(super) fn trim(&self, cx: &Context<'_>) -> Result<Option<Trim>, CommandError> {
        let limit = if cx.replaying {
            // What is replayed was within its limit when it ran.
            0
        } else if self.is_approximate {
            self.limit.unwrap_or_else(|| default_limit(cx.settings.packing.stream_node_entries))
        } else if self.limit.is_some() {
            return Err(CommandError::Text("ERR syntax error, LIMIT cannot be used without the special ~ option"));
        } else {
            0
        };
        let references = self.references.unwrap_or_default();
        let (is_approximate, is_replayed) = (self.is_approximate, cx.replaying);
        Ok(self.bound.map(|bound| Trim { bound, is_approximate, limit, references, is_replayed }))
    }

    /// Whether a replay as it was sent could come to another result.
    pub(super) fn depends_on_nodes(&self) -> bool {
        let is_spared = self.references == Some(References::Spare) && matches!(self.bound, Some(Bound::Length(_)));
        self.is_approximate || self.limit.is_some() || is_spared
    }
}

/// The limit of an approximate trimming without `LIMIT`: a hundred full nodes.
fn default_limit(node_entries: u64) -> u64 {
    match node_entries.saturating_mul(100) {
        0 => 10_000,
        limit => limit.min(1_000_000),
    }
}

/// Words that trim a stream as `trim` did, to what `entries` are now, wherever nodes begin and end.
pub(super) fn exact_words(entries: &Entries, trim: &Trim) -> Vec<Vec<u8>> {
    let bound = match trim.bound {
        Bound::Length(_) => Bound::Length(entries.len()),
        Bound::Id(_) if trim.is_approximate && entries.is_empty() => Bound::Id(StreamId::MAX),
        Bound::Id(_) if trim.is_approximate => Bound::Id(entries.first_id()),
        Bound::Id(_) => trim.bound,
    };
    let (name, threshold) = match bound {
        Bound::Length(length) => (&b"MAXLEN"[..], length.to_string().into_bytes()),
        Bound::Id(id) => (&b"MINID"[..], id.to_text()),
    };
    let mut words = vec![name.to_vec(), b"=".to_vec(), threshold];
    if trim.references != References::Keep {
        words.insert(0, trim.references.name().into());
    }
    words
}

impl Stream {
    /// Trims. How many entries were removed.
    pub fn trim(&mut self, trim: &Trim) -> u64 {
        match (trim.references, trim.is_approximate) {
            (References::Keep, _) => self.trim_nodes(trim),
            // Entries must be looked at one by one, and so no node is ever removed whole; Redis does the same.
            (References::Delete | References::Spare, true) => 0,
            (References::Delete | References::Spare, false) => self.trim_entries(trim),
        }
    }

    /// Removes nodes while all their entries go; then, if it is to be exact, entries of the next one.
    fn trim_nodes(&mut self, trim: &Trim) -> u64 {
        let entries = &mut self.entries;
        let mut removed = 0;
        while let Some((valid, last_ever)) = entries.first_node() {
            if trim.limit > 0 && removed + valid > trim.limit {
                return removed;
            }
            let goes = match trim.bound {
                Bound::Length(length) => entries.len().checked_sub(valid).is_some_and(|left| left >= length),
                Bound::Id(id) => last_ever < id,
            };
            let is_done = match trim.bound {
                Bound::Length(length) => entries.len() <= length,
                Bound::Id(_) => false,
            };
            if is_done || !goes {
                break;
            }
            removed += entries.remove_first_node();
        }
        if !trim.is_approximate {
            let mut surplus = excess(entries, trim.bound);
            removed += entries.remove_from_first_node(|id| is_surplus(trim.bound, &mut surplus, id));
        }
        removed
    }

    /// Removes entries one by one, each with what groups hold of it, or only if no group does.
    fn trim_entries(&mut self, trim: &Trim) -> u64 {
        let ids = match (trim.references, trim.bound) {
            (References::Spare, Bound::Length(length)) if !trim.is_replayed => self.spared_beyond(length),
            (References::Keep | References::Delete | References::Spare, _) => self.to_trim(trim),
        };
        for id in &ids {
            self.entries.remove(*id);
            if trim.references == References::Delete {
                self.groups.forget(*id);
            }
        }
        ids.len() as u64
    }

    /// Which entries go when no group refers to them and no more than `length_max` are to stay. Redis looks no further than the node
    /// that would be the last one to lose entries if no group referred to any.
    fn spared_beyond(&self, length_max: u64) -> Vec<StreamId> {
        let (mut length, mut ids) = (self.entries.len(), Vec::new());
        for (master, node) in self.entries.nodes() {
            let goes_whole = length - node::counts(node).valid >= length_max;
            for entry in NodeEntries::new(*master, node) {
                if !goes_whole && length <= length_max {
                    break;
                }
                if !self.groups.refer_to(entry.id) {
                    ids.push(entry.id);
                    length -= 1;
                }
            }
            if !goes_whole {
                break;
            }
        }
        ids
    }

    /// Which entries go, from the front on until the bound is met.
    fn to_trim(&self, trim: &Trim) -> Vec<StreamId> {
        let mut surplus = excess(&self.entries, trim.bound);
        let mut ids = Vec::new();
        for entry in self.entries.iter() {
            if trim.references == References::Spare && self.groups.refer_to(entry.id) {
                let is_past = matches!(trim.bound, Bound::Id(id) if entry.id >= id);
                if is_past {
                    break;
                }
                continue;
            }
            if !is_surplus(trim.bound, &mut surplus, entry.id) {
                break;
            }
            ids.push(entry.id);
        }
        ids
    }
}

/// How many entries there are beyond `MAXLEN`.
fn excess(entries: &Entries, bound: Bound) -> u64 {
    match bound {
        Bound::Length(length) => entries.len().saturating_sub(length),
        Bound::Id(_) => 0,
    }
}

/// Whether the next entry from the front is one to go; `surplus` is how many more are there beyond `MAXLEN`.
fn is_surplus(bound: Bound, surplus: &mut u64, id: StreamId) -> bool {
    match bound {
        Bound::Length(_) => {
            let goes = *surplus > 0;
            *surplus = surplus.saturating_sub(1);
            goes
        }
        Bound::Id(least) => id < least,
    }
}

/// `XTRIM key MAXLEN|MINID [=|~] threshold [LIMIT count] [KEEPREF|DELREF|ACKED]`.
pub fn xtrim(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let options = Options::read(args, Command::Xtrim)?;
    let Some(trim) = options.trim(cx)? else { return Err(CommandError::Syntax) };
    let key = cx.first_key(args);
    let Some(mut stream) = cx.edit::<Stream>(&key)? else {
        cx.reply.integer(0);
        return Ok(());
    };
    let removed = stream.trim(&trim);
    let exact = exact_words(&stream.entries, &trim);
    drop(stream);
    cx.reply.count(usize::try_from(removed).unwrap_or(usize::MAX));
    if removed == 0 {
        return Ok(());
    }
    cx.notify(Class::STREAM, "xtrim", &key);
    if options.depends_on_nodes() {
        let mut words: Vec<&[u8]> = vec![b"XTRIM", key.bytes];
        exact.iter().for_each(|word| words.push(word));
        cx.log_instead(&words);
    }
    cx.changed(&key);
    Ok(())
}
