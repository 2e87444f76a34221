//! MULTI, EXEC, DISCARD, WATCH, UNWATCH (<https://redis.io/docs/latest/develop/using-commands/transactions/>).
//!
//! Queued commands are kept as bytes and ranges, like a batch. EXEC holds every shard that any of them needs, so the
//! transaction is atomic over any keys, and its records stand between MULTI and EXEC in the log.

use crate::client::Client;
use simurgh_kernel::rehearsal::{Mistake, has};
use simurgh_protocol::command::{Command, CommandFlags};
use simurgh_protocol::resp::Range;
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::{Shards, WatchFlag};

/// What has been queued since MULTI.
#[derive(Debug, Default)]
pub struct Transaction {
    buffer: Vec<u8>,
    ranges: Vec<Range>,
    commands: Vec<Queued>,
    shards: u64,
    may_write: bool,
    is_aborted: bool,
    needs_memory: bool,
    has_script: bool,
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    command: Command,
    first: usize,
    count: usize,
}

impl Transaction {
    /// Queues a command.
    pub(crate) fn push(&mut self, command: Command, args: &Args<'_>, shards: u64, may_write: bool) {
        if self.is_aborted {
            return;
        }
        self.commands.push(Queued { command, first: self.ranges.len(), count: args.len() });
        for word in args.from(0) {
            self.ranges.push(Range { start: self.buffer.len() as u32, length: word.len() as u32 });
            self.buffer.extend_from_slice(word);
        }
        self.shards |= shards;
        self.may_write = may_write;
        self.has_script |= crate::commands::runs_script(command);
        self.needs_memory |= command.spec().flags.contains(CommandFlags::DENYOOM);
    }

    /// A request was refused: EXEC will do nothing.
    pub(crate) fn abort(&mut self) {
        self.is_aborted = true;
    }

    /// Whether one of the queued commands may write.
    pub(crate) fn may_write(&self) -> bool {
        self.may_write
    }

    /// Whether one of them runs a script.
    pub(crate) fn has_script(&self) -> bool {
        self.has_script
    }

    /// How many commands are queued.
    #[must_use]
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Bytes of the queued requests.
    #[must_use]
    pub fn memory(&self) -> usize {
        let queued = self.commands.capacity() * size_of::<Queued>();
        self.buffer.capacity() + self.ranges.capacity() * size_of::<Range>() + queued
    }

    /// Whether one of the queued commands may need more memory.
    #[must_use]
    pub fn needs_memory(&self) -> bool {
        self.needs_memory
    }

    /// The shards that the queued commands need.
    #[must_use]
    pub fn shards(&self) -> u64 {
        self.shards
    }
}

/// What a client watches.
#[derive(Debug, Default)]
pub struct Watch {
    flag: WatchFlag,
    keys: Vec<(usize, Vec<u8>)>,
    /// Bytes of the keys' names.
    names: usize,
    shards: u64,
}

/// What a watched key costs beside its name, here and with its shard, about.
const WATCHED_BYTES: usize = 2 * size_of::<(usize, Vec<u8>)>();

impl Watch {
    /// How many keys are watched.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Memory that the watches take; a name lies here and with its shard.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.keys.len() * WATCHED_BYTES + 2 * self.names
    }

    /// The shards of the watched keys.
    #[must_use]
    pub fn shards(&self) -> u64 {
        self.shards
    }

    /// Ends every watch.
    pub(crate) fn end(&mut self, client_layout: &simurgh_storage::Layout, shards: &mut dyn Shards) {
        let watch = std::mem::take(self);
        for (database, key) in &watch.keys {
            let index = client_layout.shard_of(&client_layout.hasher.key(key));
            shards.shard(index).unwatch(*database, key, &watch.flag);
        }
    }
}

/// MULTI.
pub fn multi(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    if client.transaction.is_some() {
        return Err(CommandError::Text("ERR MULTI calls can not be nested"));
    }
    client.transaction = Some(Transaction::default());
    client.reply.ok();
    Ok(())
}

/// DISCARD.
pub fn discard(client: &mut Client, _args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    if client.transaction.take().is_none() {
        return Err(CommandError::Text("ERR DISCARD without MULTI"));
    }
    end_watch(client, shards);
    client.reply.ok();
    Ok(())
}

/// WATCH key [key ...].
pub fn watch(client: &mut Client, args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    if client.transaction.is_some() {
        return Err(CommandError::Text("ERR WATCH inside MULTI is not allowed"));
    }
    let database = client.database;
    for bytes in args.from(1) {
        if client.watch.keys.iter().any(|(at, key)| *at == database && key == bytes) {
            continue;
        }
        let key = client.node.layout.hasher.key(bytes);
        let index = client.node.layout.shard_of(&key);
        // A key whose time has come is gone before it is watched, so that its removal is no change.
        client.with_context(shards, None, |cx| cx.peek(&key).is_some());
        shards.shard(index).watch(database, &key, &client.watch.flag);
        client.watch.keys.push((database, bytes.to_vec()));
        client.watch.names += bytes.len();
        client.watch.shards |= 1 << index;
    }
    client.shared.note_watched(Some(client.watch.flag.clone()));
    client.reply.ok();
    Ok(())
}

/// UNWATCH.
pub fn unwatch(client: &mut Client, _args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    end_watch(client, shards);
    client.reply.ok();
    Ok(())
}

/// Ends the client's watches; their shards are held.
pub(crate) fn end_watch(client: &mut Client, shards: &mut dyn Shards) {
    if !client.watch.is_empty() {
        let node = client.node.clone();
        client.watch.end(&node.layout, shards);
        client.shared.note_watched(None);
    }
}

/// Whether a watched key has changed, or has expired since.
fn watch_failed(client: &mut Client, shards: &mut dyn Shards) -> bool {
    let selected = client.database;
    let keys = std::mem::take(&mut client.watch.keys);
    for (database, bytes) in &keys {
        client.database = *database;
        let key = client.node.layout.hasher.key(bytes);
        client.with_context(shards, None, |cx| cx.peek(&key).is_some());
    }
    client.watch.keys = keys;
    client.database = selected;
    client.watch.flag.is_set() && !has(Mistake::MissedWatch)
}

/// EXEC.
pub fn exec(client: &mut Client, _args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    let Some(transaction) = client.transaction.take() else {
        return Err(CommandError::Text("ERR EXEC without MULTI"));
    };
    let failed = watch_failed(client, shards);
    end_watch(client, shards);
    if transaction.is_aborted {
        return Err(CommandError::Text("EXECABORT Transaction discarded because of previous errors."));
    }
    if failed {
        client.reply.null_array();
        return Ok(());
    }
    client.reply.array(transaction.len());
    client.executing = Some(transaction.len());
    client.effects().begin_transaction();
    for queued in &transaction.commands {
        let ranges = &transaction.ranges[queued.first..queued.first + queued.count];
        let args = Args::new(&transaction.buffer, ranges);
        client.call(queued.command, &args, None, None, shards);
    }
    client.effects().end_transaction();
    client.executing = None;
    Ok(())
}
