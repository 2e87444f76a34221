//! Whether a request may run now: refused, queued by MULTI, held back by a pause, or admitted.

use crate::client::{Client, Close};
use crate::commands::pause::Paused;
use crate::request::{Incoming, Prepared};
use crate::scripting;
use simurgh_kernel::time;
use simurgh_protocol::command::{
    Command, CommandFlags, ConnectionCommand, DataCommand, Lookup, TableError, check_arity,
};
use simurgh_protocol::{Args, CommandError};

/// Whether a pause of writes holds a command back. Messages are among it: replicas pass them on; and scripts, unless they
/// only read (what they say of themselves is looked at elsewhere); and PFCOUNT, which may keep its count in the key.
pub(crate) fn may_write(command: Command) -> bool {
    use ConnectionCommand::{Eval, Evalsha, Fcall, Publish, Spublish};
    command.spec().flags.intersects(CommandFlags::WRITE | CommandFlags::MAY_REPLICATE)
        || [Publish, Spublish, Eval, Evalsha, Fcall].iter().any(|other| command == Command::Connection(*other))
        || command == Command::Data(DataCommand::Pfcount)
}

/// Why a request may not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// It names no command that could; the text repeats the request's bytes, whatever they are.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The command may not run now.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// It is no request but HTTP, which a browser was tricked into sending; it ends the connection.
    #[error("ERR HTTP is not spoken here")]
    Http,
}

impl Client {
    /// Whether CLIENT PAUSE holds a request back. What would be refused anyway is refused at once.
    #[inline]
    pub(crate) fn is_held_back(&self, incoming: &Incoming, next: &Prepared) -> bool {
        self.node.pause.at(time::wall_ms).is_some_and(|paused| self.waits_for_end_of(paused, incoming, next))
    }

    #[cold]
    fn waits_for_end_of(&self, paused: Paused, incoming: &Incoming, next: &Prepared) -> bool {
        let Lookup::Found(command) = next.found else { return false };
        let spec = command.spec();
        let is_refused = check_arity(spec, next.request.args_count).is_err()
            || (!self.authenticated && !spec.flags.contains(CommandFlags::NO_AUTH));
        if is_refused || self.is_monitor {
            return false;
        }
        match (paused, &self.transaction) {
            (Paused::All, _) => true,
            (Paused::Writes, Some(transaction)) if command == crate::commands::EXEC => transaction.may_write(),
            (Paused::Writes, _) => scripting::may_write(&self.node, command, &incoming.args(next)),
        }
    }

    /// Whether the request may run now: the command, or nothing when it has been queued by MULTI.
    pub(crate) fn admit(&mut self, found: Lookup, args: &Args<'_>) -> Result<Option<Command>, Refusal> {
        let command = self.identify(found, args)?;
        let flags = command.spec().flags;
        if self.is_monitor && (flags.contains(CommandFlags::READONLY) || may_write(command)) {
            return Err(CommandError::Text("ERR Replica can't interact with the keyspace").into());
        }
        if let Some(refusal) = crate::commands::pubsub::refusal(self, command) {
            return Err(refusal.into());
        }
        self.node.admit(self, command)?;
        if self.transaction.is_some() && !crate::commands::runs_inside_multi(command) {
            self.queue(command, args)?;
            return Ok(None);
        }
        Ok(Some(command))
    }

    /// The command, if it is one and its client may run any.
    pub(crate) fn identify(&self, found: Lookup, args: &Args<'_>) -> Result<Command, Refusal> {
        let command = match crate::commands::resolve(found, args) {
            Ok(command) => command,
            Err(_) if args.is(0, "POST") || args.is(0, "Host:") => return Err(Refusal::Http),
            Err(error) => return Err(error.into()),
        };
        if !self.authenticated && !command.spec().flags.contains(CommandFlags::NO_AUTH) {
            return Err(CommandError::Text("NOAUTH Authentication required.").into());
        }
        Ok(command)
    }

    /// Queues a command between MULTI and EXEC.
    fn queue(&mut self, command: Command, args: &Args<'_>) -> Result<(), CommandError> {
        if command.spec().flags.contains(CommandFlags::NO_MULTI) {
            return Err(CommandError::Text("ERR Command not allowed inside a transaction"));
        }
        // A script in a transaction could neither wait for more shards nor begin again.
        let shards = if crate::commands::runs_script(command) {
            self.node.shards.all()
        } else {
            crate::request::place(command, args, &self.node.layout).1
        };
        if let Some(transaction) = &mut self.transaction {
            let may_write = transaction.may_write() || scripting::may_write(&self.node, command, args);
            transaction.push(command, args, shards, may_write);
            self.reply.simple("QUEUED");
        }
        Ok(())
    }

    /// Refuses a request: the error is its reply, and a transaction that it belongs to is lost.
    pub(crate) fn refuse(&mut self, found: Lookup, refusal: &Refusal) {
        if let Lookup::Found(command) = found {
            self.node.command_stats.rejected(command);
        }
        let mark = self.reply.len();
        self.answer_refusal(found, refusal);
        if self.reply.len() > mark {
            self.node.count_error(&self.reply.bytes()[mark..]);
        }
        self.note_keyless(mark);
    }

    /// The reply that begins here tells nothing of keys.
    pub(crate) fn note_keyless(&mut self, begin: usize) {
        let begin = self.keyless.filter(|(_, end)| *end == begin).map_or(begin, |(before, _)| before);
        self.keyless = Some((begin, self.reply.len()));
    }

    fn answer_refusal(&mut self, found: Lookup, refusal: &Refusal) {
        let is_exec = matches!(found, Lookup::Found(command) if command == crate::commands::EXEC);
        if is_exec {
            let text = refusal.to_string();
            let reason = text.strip_prefix("ERR ").unwrap_or(&text);
            self.end_transaction();
            self.reply.error(format_args!("EXECABORT Transaction discarded because of: {reason}"));
            return;
        }
        if let Some(transaction) = &mut self.transaction {
            transaction.abort();
        }
        match refusal {
            Refusal::Table(error) => error.reply(&mut self.reply),
            Refusal::Command(error) => error.reply(&mut self.reply),
            Refusal::Http => {
                tracing::warn!(
                    client = self.shared.id,
                    "closed: a browser may have been tricked into sending HTTP here"
                );
                self.close = Some(Close::Now);
            }
        }
    }
}
