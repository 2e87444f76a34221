//! A connection's incoming side: the read buffer, and the requests parsed from it but not yet executed.
//!
//! A batch is parsed as a whole before any of it runs, so that keys can be hashed and their memory fetched ahead. Inline
//! requests are rewritten as multibulk ones into a buffer beside, so that everything behind sees one form.

use crate::admission::may_write;
use crate::commands::runs_script;
use simurgh_kernel::mailbox::GATE;
use simurgh_protocol::Args;
use simurgh_protocol::command::{
    BeginSearch, Command, CommandSpec, DataCommand, KeyRange, Lookup, Shards, each_key, lookup,
};
use simurgh_protocol::resp::{Limits, Progress, ProtocolError, Range, Request, RequestParser};
use simurgh_storage::Layout;
use simurgh_storage::walk::Walk;
use std::ops::{Deref, DerefMut};

/// How many requests are parsed before they are executed.
const BATCH_MAX: usize = 128;
/// The same before authentication, where nobody needs many.
const BATCH_UNAUTHENTICATED: usize = 8;

/// A parsed request and what could be found out about it without its shard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prepared {
    pub request: Request,
    /// Its bytes lie in the inline buffer.
    is_inline: bool,
    /// It runs a script.
    pub is_script: bool,
    pub found: Lookup,
    /// The hash of its first key, when that is argument 1.
    pub first_hash: Option<u64>,
    /// The shards it needs.
    pub shards: u64,
}

/// The command that was looked up last: the next request is often of the same.
#[derive(Debug, Default)]
struct LastCommand {
    name: Name,
    command: Option<Command>,
    /// All that it needs is the shard of argument 1.
    takes_one_key: bool,
}

/// A name of three to six bytes as a number, and its length.
type Name = (u64, usize);

#[inline]
fn name_of(word: &[u8]) -> Option<Name> {
    let bytes = match *word {
        [a, b, c] => [a, b, c, 0, 0, 0, 0, 0],
        [a, b, c, d] => [a, b, c, d, 0, 0, 0, 0],
        [a, b, c, d, e] => [a, b, c, d, e, 0, 0, 0],
        [a, b, c, d, e, f] => [a, b, c, d, e, f, 0, 0],
        _ => return None,
    };
    Some((u64::from_le_bytes(bytes), word.len()))
}

impl LastCommand {
    #[inline]
    fn find(&mut self, args: &Args<'_>) -> (Lookup, bool) {
        let word = args.at(0);
        let name = name_of(word);
        if let (Some(name), Some(command)) = (name, self.command)
            && name == self.name
        {
            return (Lookup::Found(command), self.takes_one_key);
        }
        (self.find_anew(name, word, args), false)
    }

    fn find_anew(&mut self, name: Option<Name>, word: &[u8], args: &Args<'_>) -> Lookup {
        let found = lookup(word, args.get(1));
        // A subcommand's name is two words.
        if let (Some(name), Lookup::Found(command)) = (name, found)
            && !command.spec().name.contains('|')
        {
            *self = Self { name, command: Some(command), takes_one_key: takes_one_key(command) };
        }
        found
    }
}

/// The incoming side.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    /// What was received and not yet released.
    pub buffer: Vec<u8>,
    /// Where the next request begins.
    start: usize,
    parser: RequestParser,
    ranges: Vec<Range>,
    inline: Vec<u8>,
    requests: Vec<Prepared>,
    /// The next request to be executed.
    next: usize,
    /// The last command looked up.
    last: LastCommand,
    /// What ended the stream, to be reported once everything before it has been executed.
    pub error: Option<ProtocolError>,
}

/// The incoming side while a client has one; one at rest has none, and it reads as empty. A word, so that it is cheap to hand on.
#[derive(Debug, Default)]
pub(crate) struct LentIncoming(Option<Box<Incoming>>);

impl LentIncoming {
    /// Whether there is one.
    #[inline]
    pub fn is_lent(&self) -> bool {
        self.0.is_some()
    }
}

impl Deref for LentIncoming {
    type Target = Incoming;

    #[inline]
    fn deref(&self) -> &Incoming {
        static NONE: Incoming = Incoming {
            buffer: Vec::new(),
            start: 0,
            parser: RequestParser::new(),
            ranges: Vec::new(),
            inline: Vec::new(),
            requests: Vec::new(),
            next: 0,
            last: LastCommand { name: (0, 0), command: None, takes_one_key: false },
            error: None,
        };
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl DerefMut for LentIncoming {
    #[inline]
    fn deref_mut(&mut self) -> &mut Incoming {
        self.0.get_or_insert_default()
    }
}

impl Incoming {
    /// The next request to be executed.
    #[inline]
    pub fn peek(&self) -> Option<&Prepared> {
        self.requests.get(self.next)
    }

    /// The requests that are parsed and not executed.
    pub fn waiting(&self) -> &[Prepared] {
        &self.requests[self.next.min(self.requests.len())..]
    }

    /// Gives the next request all shards.
    pub fn widen_next(&mut self, layout: &Layout) {
        if let Some(prepared) = self.requests.get_mut(self.next) {
            prepared.shards = all(layout);
        }
    }

    /// Gives those requests all shards that `is_wide` says need them.
    pub fn widen(&mut self, layout: &Layout, is_wide: impl Fn(&Args<'_>) -> bool) {
        for at in self.next..self.requests.len() {
            let prepared = self.requests[at];
            if prepared.is_script && is_wide(&self.args(&prepared)) {
                self.requests[at].shards = all(layout);
            }
        }
    }

    /// Whether nothing has been received that is not executed.
    pub fn is_at_rest(&self) -> bool {
        self.buffer.is_empty() && self.peek().is_none() && self.error.is_none()
    }

    /// Whether a batch of several requests begins.
    #[inline]
    pub fn is_fresh(&self) -> bool {
        self.next == 0 && self.requests.len() > 1
    }

    /// Moves on behind the next request.
    #[inline]
    pub fn advance(&mut self) {
        self.next += 1;
    }

    /// A request's arguments.
    #[inline]
    pub fn args(&self, prepared: &Prepared) -> Args<'_> {
        prepared.request.args(self.source(prepared), &self.ranges)
    }

    /// A request's own bytes, if they are as an encoder would write them.
    #[inline]
    pub fn raw(&self, prepared: &Prepared) -> Option<&[u8]> {
        let request = prepared.request;
        request.canonical.then(|| &self.source(prepared)[request.start..request.end])
    }

    #[inline]
    fn source(&self, prepared: &Prepared) -> &[u8] {
        if prepared.is_inline { &self.inline } else { &self.buffer }
    }

    /// Bytes received but not executed.
    pub fn pending_bytes(&self) -> usize {
        match self.peek() {
            Some(prepared) if !prepared.is_inline => self.buffer.len() - prepared.request.start,
            _ => self.buffer.len() - self.start,
        }
    }

    /// Memory that the incoming side holds, in bytes.
    pub fn memory(&self) -> usize {
        self.buffer.capacity() + self.inline.capacity() + self.ranges.capacity() * size_of::<Range>()
    }

    /// Releases what has been executed. Only between batches.
    pub fn release(&mut self) {
        debug_assert!(self.next >= self.requests.len());
        self.requests.clear();
        self.ranges.clear();
        self.inline.clear();
        self.next = 0;
        if self.start == self.buffer.len() {
            self.buffer.clear();
        } else if self.start > 0 {
            self.buffer.drain(..self.start);
        }
        self.start = 0;
    }

    /// Forgets everything received, as before a close.
    pub fn discard(&mut self) {
        self.requests.clear();
        self.next = 0;
        self.start = self.buffer.len();
    }

    /// How much room the next read should have.
    pub fn wanted_room(&self) -> usize {
        self.parser.missing(self.buffer.len() - self.start)
    }

    /// Parses up to a batch of requests.
    pub fn parse(&mut self, layout: &Layout, limits: Limits) {
        let most = if limits.unauthenticated { BATCH_UNAUTHENTICATED } else { BATCH_MAX };
        while self.requests.len() < most && self.error.is_none() {
            match self.parser.next(&self.buffer, self.start, &mut self.ranges, limits) {
                Ok(Progress::Incomplete) => return,
                Ok(Progress::Request(request)) => {
                    self.start = request.end;
                    self.push(request, false, layout);
                }
                Ok(Progress::Inline { start, length, end }) => {
                    self.start = end;
                    let line = &self.buffer[start..start + length];
                    match RequestParser::inline(line, &mut self.inline, &mut self.ranges) {
                        Ok(Some(request)) => self.push(request, true, layout),
                        Ok(None) => {}
                        Err(error) => self.error = Some(error),
                    }
                }
                Err(error) => self.error = Some(error),
            }
        }
    }

    fn push(&mut self, request: Request, is_inline: bool, layout: &Layout) {
        if request.args_count == 0 {
            return;
        }
        let source = if is_inline { &self.inline } else { &self.buffer };
        let args = request.args(source, &self.ranges);
        let (found, takes_one_key) = self.last.find(&args);
        let ((first_hash, shards), is_script) = match found {
            Lookup::Found(_) if takes_one_key => (place_key(&args, layout), false),
            Lookup::Found(command) => (place_first(command, &args, layout), runs_script(command)),
            Lookup::UnknownCommand | Lookup::UnknownSubcommand(_) | Lookup::MissingSubcommand(_) => ((None, 0), false),
        };
        self.requests.push(Prepared { request, is_inline, is_script, found, first_hash, shards });
    }
}

/// As [`place`], for a request that runs by itself: what walks through the keyspace needs one shard after the other, and a script that
/// may yet want more than the shards of its keys has to come through the gate.
#[inline]
fn place_first(command: Command, args: &Args<'_>, layout: &Layout) -> (Option<u64>, u64) {
    if let Command::Data(data) = command
        && let Some(shard) = Walk::first_shard(data, args, layout)
    {
        return (None, 1 << shard);
    }
    let (first_hash, shards) = place(command, args, layout);
    let may_want_more = shards != all(layout) && runs_script(command) && may_write(command);
    (first_hash, if may_want_more { shards | GATE } else { shards })
}

/// The hash of a command's first key (when that is argument 1), and the shards that it needs.
#[inline(always)]
pub(crate) fn place(command: Command, args: &Args<'_>, layout: &Layout) -> (Option<u64>, u64) {
    let spec = command.spec();
    match spec.shards {
        Shards::None => (None, 0),
        Shards::All => (None, all(layout)),
        Shards::Keys if !spec.has_key_range() => (None, shards_of_specs(spec, args, layout)),
        Shards::Keys => match spec.key_range {
            KeyRange { first: 1, last: 1, .. } => place_key(args, layout),
            KeyRange { first: 0, .. } => (None, all(layout)),
            range => (None, shards_of_range(range, args, layout)),
        },
    }
}

/// Whether a command's place is that of argument 1, whatever the others are.
fn takes_one_key(command: Command) -> bool {
    let spec = command.spec();
    let is_walk = matches!(command, Command::Data(DataCommand::Scan | DataCommand::Keys));
    let is_plain = !is_walk && !runs_script(command) && spec.has_key_range();
    is_plain && spec.shards == Shards::Keys && matches!(spec.key_range, KeyRange { first: 1, last: 1, .. })
}

/// The hash of argument 1, a key, and its shard.
#[inline]
fn place_key(args: &Args<'_>, layout: &Layout) -> (Option<u64>, u64) {
    match args.get(1) {
        Some(bytes) => {
            let key = layout.hasher.key(bytes);
            (Some(key.hash), 1 << layout.shard_of(&key))
        }
        None => (None, 1),
    }
}

/// Every shard.
pub(crate) fn all(layout: &Layout) -> u64 {
    u64::MAX >> (64 - layout.shards)
}

/// The shards of the keys that a count or a keyword in the request finds. A keyword that stands there twice may be a key
/// or a name the first time, so then all shards are held.
fn shards_of_specs(spec: &CommandSpec, args: &Args<'_>, layout: &Layout) -> u64 {
    for key_spec in spec.keys {
        match key_spec.begin {
            BeginSearch::Index(_) => {}
            BeginSearch::Keyword { keyword, .. } => {
                if (1..args.len()).filter(|&index| args.is(index, keyword)).nth(1).is_some() {
                    return all(layout);
                }
            }
            BeginSearch::Unknown => return all(layout),
        }
    }
    let mut shards = 0;
    let found = each_key(spec, args, |key| shards |= 1 << layout.shard_of(&layout.hasher.key(args.at(key.index))));
    match found {
        Ok(()) if shards != 0 => shards,
        // The handler has the better error text, but may look at a key before it comes to that.
        Ok(()) | Err(_) => all(layout),
    }
}

/// The shards of the keys in a range.
fn shards_of_range(range: KeyRange, args: &Args<'_>, layout: &Layout) -> u64 {
    let first = usize::try_from(range.first).unwrap_or(1);
    let last = if range.last < 0 {
        args.len().saturating_sub(usize::from(range.last.unsigned_abs()))
    } else {
        usize::try_from(range.last).unwrap_or(0)
    };
    let step = usize::try_from(range.step).unwrap_or(1).max(1);
    let mut shards = 0;
    for index in (first..=last).step_by(step) {
        if let Some(bytes) = args.get(index) {
            shards |= 1 << layout.shard_of(&layout.hasher.key(bytes));
        }
    }
    // A request without any key (too few arguments) is refused by its arity; until then it needs somewhere to stand.
    if shards == 0 { 1 } else { shards }
}

#[cfg(test)]
mod tests;
