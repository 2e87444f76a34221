//! XREAD: what follows given ids in streams. Commands: <https://redis.io/docs/latest/commands/xread/>.
//!
//! A read is parsed first ([`Reading::of_xread`]), then served ([`super::serve`], which knows groups too). `$` becomes the id that it stands for while parsing, so that a
//! reading that waits means the same when it is tried again.

use super::Stream;
use super::id::StreamId;
use super::range::write_entries;
use super::read_group::no_key_or_group;
use crate::blocking::{Awaits, Block, Null, deadline_of_milliseconds};
use crate::collection::View;
use crate::context::Context;
use crate::key_hash::Key;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::resp::Protocol;
use simurgh_protocol::{Args, CommandError, Reply};
use std::ops::Range;

/// From where on a stream is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// Behind this id. Of a group: what the consumer holds behind this id.
    After(StreamId),
    /// `+`: the last entry.
    Last,
    /// `>`: what no consumer of the group was given.
    New,
}

/// One stream of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source<'a> {
    /// The stream's key.
    pub key: &'a [u8],
    /// From where on it is read.
    pub from: From,
}

/// The group and the consumer of XREADGROUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership<'a> {
    /// The group.
    pub group: &'a [u8],
    /// The consumer, who comes to be by reading.
    pub consumer: &'a [u8],
    /// `NOACK`: what is read need not be acknowledged.
    pub is_unacknowledged: bool,
}

/// A reading, as XREAD or XREADGROUP asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading<'a> {
    /// The streams.
    pub sources: Vec<Source<'a>>,
    /// Most entries of each stream.
    pub count: usize,
    /// It waits when there is nothing.
    pub waits: bool,
    /// Until when it waits, in milliseconds of Unix time; without end if there is none.
    pub deadline_ms: Option<i64>,
    /// As whom it is read, with XREADGROUP.
    pub membership: Option<Membership<'a>>,
}

/// The words before the keys, as they were typed.
#[derive(Debug, Default)]
struct Typed<'a> {
    count: Option<usize>,
    waits: bool,
    deadline_ms: Option<i64>,
    group: Option<(&'a [u8], &'a [u8])>,
    is_unacknowledged: bool,
    /// The arguments behind `STREAMS`: first keys, then as many ids.
    streams: Option<Range<usize>>,
}

/// Which of the two commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    Xread,
    Xreadgroup,
}

impl<'a> Typed<'a> {
    fn read(args: &Args<'a>, command: Command, now_ms: i64) -> Result<Self, CommandError> {
        let (mut typed, mut at) = (Self::default(), 1);
        while at < args.len() && typed.streams.is_none() {
            at += typed.read_one(args, at, command, now_ms)?;
        }
        if typed.streams.is_none() {
            return Err(CommandError::Syntax);
        }
        if command == Command::Xreadgroup && typed.group.is_none() {
            return Err(CommandError::Text("ERR Missing GROUP option for XREADGROUP"));
        }
        Ok(typed)
    }

    /// Reads the option at `at`. How many arguments it has.
    fn read_one(&mut self, args: &Args<'a>, at: usize, command: Command, now_ms: i64) -> Result<usize, CommandError> {
        let more = args.len() - 1 - at;
        if more >= 1 && args.is(at, "BLOCK") {
            self.deadline_ms = deadline_of_milliseconds(args.at(at + 1), now_ms)?;
            self.waits = true;
            return Ok(2);
        }
        if more >= 1 && args.is(at, "COUNT") {
            let count = parse_i64(args.at(at + 1)).ok_or(CommandError::NotAnInteger)?;
            self.count = usize::try_from(count).ok().filter(|count| *count > 0);
            return Ok(2);
        }
        if more >= 1 && args.is(at, "STREAMS") {
            if !more.is_multiple_of(2) {
                return Err(unbalanced(command));
            }
            self.streams = Some(at + 1..args.len());
            return Ok(1);
        }
        if more >= 2 && args.is(at, "GROUP") {
            if command == Command::Xread {
                let text = "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.";
                return Err(CommandError::Text(text));
            }
            self.group = Some((args.at(at + 1), args.at(at + 2)));
            return Ok(3);
        }
        if args.is(at, "NOACK") {
            if command == Command::Xread {
                let text = "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.";
                return Err(CommandError::Text(text));
            }
            self.is_unacknowledged = true;
            return Ok(1);
        }
        Err(CommandError::Syntax)
    }
}

fn unbalanced(command: Command) -> CommandError {
    CommandError::Text(match command {
        Command::Xread => {
            "ERR Unbalanced 'xread' list of streams: for each stream key an ID, '+', or '$' must be specified."
        }
        Command::Xreadgroup => {
            "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified."
        }
    })
}

impl<'a> Reading<'a> {
    /// Parses XREAD.
    pub fn of_xread(cx: &mut Context<'_>, args: &Args<'a>) -> Result<Self, CommandError> {
        Self::parse(cx, args, Command::Xread)
    }

    /// Parses XREADGROUP.
    pub fn of_xreadgroup(cx: &mut Context<'_>, args: &Args<'a>) -> Result<Self, CommandError> {
        Self::parse(cx, args, Command::Xreadgroup)
    }

    fn parse(cx: &mut Context<'_>, args: &Args<'a>, command: Command) -> Result<Self, CommandError> {
        let typed = Typed::read(args, command, cx.now_ms)?;
        let membership = typed.group.map(|(group, consumer)| Membership {
            group,
            consumer,
            is_unacknowledged: typed.is_unacknowledged,
        });
        let streams = typed.streams.unwrap_or(0..0);
        let half = streams.len() / 2;
        let mut sources = Vec::with_capacity(half);
        for at in streams.take(half) {
            let key = args.at(at);
            let from = read_from(cx, key, args.at(at + half), membership.as_ref())?;
            sources.push(Source { key, from });
        }
        Ok(Self {
            sources,
            count: typed.count.unwrap_or(usize::MAX),
            waits: typed.waits,
            deadline_ms: typed.deadline_ms,
            membership,
        })
    }

    /// The words of an XREAD that means the same whenever it runs: with ids in the place of `$`.
    fn settled_words(&self) -> Vec<Box<[u8]>> {
        let mut words: Vec<Box<[u8]>> = Vec::with_capacity(self.sources.len() * 2 + 6);
        words.extend([&b"XREAD"[..], b"BLOCK", b"0"].map(Box::from));
        if self.count < usize::MAX {
            words.extend([&b"COUNT"[..], self.count.to_string().as_bytes()].map(Box::from));
        }
        words.push(Box::from(&b"STREAMS"[..]));
        words.extend(self.sources.iter().map(|source| Box::from(source.key)));
        words.extend(self.sources.iter().map(|source| match source.from {
            From::After(id) => id.to_text().into(),
            From::Last | From::New => Box::from(&b"+"[..]),
        }));
        words
    }
}

const NO_LATEST: &str = "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.";
const NO_LAST: &str = "ERR The + ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The + ID would just return an empty result set.";

/// From where on the stream of `key` is read: the `text` that was typed as an id.
fn read_from(
    cx: &mut Context<'_>,
    key: &[u8],
    text: &[u8],
    membership: Option<&Membership<'_>>,
) -> Result<From, CommandError> {
    let key = cx.key(key);
    let stream = match cx.peek(&key) {
        Some(entry) => Some(entry.collection().and_then(View::<Stream>::new).ok_or(CommandError::WrongType)?),
        None => None,
    };
    if let Some(membership) = membership {
        let group = stream.as_ref().and_then(|stream| stream.groups.get(membership.group));
        group.ok_or_else(|| no_key_or_group(key.bytes, membership.group))?;
    }
    match text {
        b"$" | b"+" if membership.is_some() => Err(CommandError::Text(if text == b"$" { NO_LATEST } else { NO_LAST })),
        b"+" if stream.as_ref().is_some_and(|stream| !stream.is_empty()) => Ok(From::Last),
        // Where there is no last entry, the next one is.
        b"$" | b"+" => Ok(From::After(stream.map_or(StreamId::MIN, |stream| stream.entries.last_id))),
        b">" => {
            let text =
                "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.";
            membership.map(|_| From::New).ok_or(CommandError::Text(text))
        }
        text => StreamId::parse(text, 0).map(From::After),
    }
}

/// `XREAD [COUNT count] [BLOCK milliseconds] STREAMS key [key ...] id [id ...]`.
pub fn xread(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let reading = Reading::of_xread(cx, args)?;
    if !serve(cx, &reading)? {
        wait_or_reply(cx, &reading);
    }
    Ok(())
}

/// There is nothing to answer: waits for it, if the reading does; else says so.
pub(super) fn wait_or_reply(cx: &mut Context<'_>, reading: &Reading<'_>) {
    if !reading.waits {
        return cx.reply.null_array();
    }
    let block = Block {
        keys: reading.sources.iter().map(|source| source.key.into()).collect(),
        awaits: if reading.membership.is_some() { Awaits::Group } else { Awaits::Stream },
        deadline_ms: reading.deadline_ms,
        words: reading.membership.is_none().then(|| reading.settled_words()),
    };
    cx.block(block, Null::Array);
}

/// Answers a reading of no group if there is anything to answer it with. Whether there was.
pub(super) fn serve(cx: &mut Context<'_>, reading: &Reading<'_>) -> Result<bool, CommandError> {
    let mark = cx.reply.len();
    let mut answered = 0;
    for source in &reading.sources {
        let key = cx.key(source.key);
        answered += usize::from(serve_source(cx, &key, source.from, reading.count)?);
    }
    close_answers(cx.reply, mark, answered);
    Ok(answered > 0)
}

/// Writes a stream's key and what is new in it, if anything is.
fn serve_source(cx: &mut Context<'_>, key: &Key<'_>, from: From, count: usize) -> Result<bool, CommandError> {
    let (stream, reply) = cx.look::<Stream>(key)?;
    let Some(stream) = stream.filter(|stream| !stream.is_empty()) else { return Ok(false) };
    let (first, count) = match from {
        From::After(id) => match id.next().filter(|next| *next <= stream.entries.greatest_id()) {
            Some(next) => (next, count),
            None => return Ok(false),
        },
        From::Last => (stream.entries.greatest_id(), 1),
        From::New => return Ok(false),
    };
    open_answer(reply, key.bytes);
    write_entries(reply, stream.entries.range(first, StreamId::MAX).take(count));
    Ok(true)
}

/// Begins the answer of one stream: its key.
pub(super) fn open_answer(reply: &mut Reply, key: &[u8]) {
    if reply.protocol() == Protocol::Resp2 {
        reply.array(2);
    }
    reply.bulk(key);
}

/// Puts the header before the answers of `count` streams: a map from keys to entries, or an array of pairs.
pub(super) fn close_answers(reply: &mut Reply, mark: usize, count: usize) {
    if count > 0 {
        match reply.protocol() {
            Protocol::Resp2 => reply.close_array(mark, count),
            Protocol::Resp3 => reply.close_map(mark, count),
        }
    }
}
