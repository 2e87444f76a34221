//! XADD: an entry joins a stream. Commands: <https://redis.io/docs/latest/commands/xadd/>.
//!
//! Its record has the id that the entry got and the exact place up to which the stream was trimmed, so a replay neither reads a
//! clock nor depends on how entries are spread over nodes.

use super::Stream;
use super::entries::{Entries, NodeLimits};
use super::id::{NewId, StreamId};
use super::trim::{Command, Options, exact_words};
use crate::context::Context;
use crate::key_hash::Key;
use crate::notify::Class;
use simurgh_protocol::{Args, CommandError};

/// `XADD key [NOMKSTREAM] [KEEPREF|DELREF|ACKED] [MAXLEN|MINID [=|~] threshold [LIMIT count]] *|id field value [field value ...]`.
pub fn xadd(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let options = Options::read(args, Command::Xadd)?;
    let trim = options.trim(cx)?;
    let pairs = args.from(options.end);
    let id = options.id.filter(|_| pairs.len() >= 2 && pairs.len().is_multiple_of(2));
    let id = id.ok_or(CommandError::WrongArity("xadd"))?;
    if id == NewId::Exact(StreamId::MIN) {
        return Err(CommandError::Text("ERR The ID specified in XADD must be greater than 0-0"));
    }
    let (key, now_ms) = (cx.first_key(args), u64::try_from(cx.now_ms).unwrap_or(0));
    let last = cx.edit::<Stream>(&key)?.map(|stream| stream.entries.last_id);
    if last.is_none() && options.only_existing {
        cx.reply.null();
        return Ok(());
    }
    let id = next_id(id, last.unwrap_or_default(), now_ms)?;
    if !Entries::may_hold(pairs.clone()) {
        return Err(CommandError::Text("ERR Elements are too large to be stored"));
    }
    let limits = NodeLimits::of(&cx.settings.packing);
    let mut stream = cx.edit_or_create::<Stream>(&key)?;
    stream.entries.append(id, pairs.clone(), limits);
    let removed = trim.as_ref().map_or(0, |trim| stream.trim(trim));
    let exact = trim.filter(|_| removed > 0).map(|trim| exact_words(&stream.entries, &trim));
    drop(stream);
    id.write_to(cx.reply);
    cx.notify(Class::STREAM, "xadd", &key);
    if removed > 0 {
        cx.notify(Class::STREAM, "xtrim", &key);
    }
    if options.id != Some(NewId::Exact(id)) || options.depends_on_nodes() {
        log(cx, &key, exact.unwrap_or_default(), id, pairs);
    }
    cx.changed(&key);
    Ok(())
}

/// The entry's id, in a stream whose last one is `last`.
fn next_id(id: NewId, last: StreamId, now_ms: u64) -> Result<StreamId, CommandError> {
    if last == StreamId::MAX {
        let text = "ERR The stream has exhausted the last possible ID, unable to add more items";
        return Err(CommandError::Text(text));
    }
    let text = "ERR The ID specified in XADD is equal or smaller than the target stream top item";
    id.choose(last, now_ms).filter(|id| *id > last).ok_or(CommandError::Text(text))
}

/// Records the outcome; `exact` are the words that trim.
fn log<'a>(
    cx: &mut Context<'_>,
    key: &Key<'_>,
    exact: Vec<Vec<u8>>,
    id: StreamId,
    pairs: impl Iterator<Item = &'a [u8]>,
) {
    let id = id.to_text();
    let mut words: Vec<&[u8]> = vec![b"XADD", key.bytes];
    words.extend(exact.iter().map(Vec::as_slice));
    words.push(&id);
    pairs.for_each(|pair| words.push(pair));
    cx.log_instead(&words);
}
