//! What a script's commands run on: its client, and the shards that it holds.
//!
//! A command takes the way that EXEC's take, `Client::call`, with the engine's reply buffer in place of the client's.

use super::Watcher;
use crate::client::Client;
use simurgh_protocol::command::{Command, CommandFlags, Lookup, check_arity, lookup};
use simurgh_protocol::{Args, Reply};
use simurgh_scripting::{CallError, Host, LogLevel, Watch};
use simurgh_storage::Shards;
use std::borrow::Cow;
use std::rc::Rc;

const UNKNOWN: &str = "ERR Unknown Redis command called from script";
const WRONG_ARITY: &str = "ERR Wrong number of args calling Redis command from script";
const NOT_ALLOWED: &str = "ERR This Redis command is not allowed from script";
const READ_ONLY: &str = "ERR Write commands are not allowed from read-only scripts.";
const OUT_OF_MEMORY: &str = "OOM command not allowed when used memory > 'maxmemory'.";

/// Commands that take about a slice.
const CALLS_PER_LOOK: u32 = 2000;

/// What a script may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// It changes no data.
    pub reads_only: bool,
    /// Memory is full, and the script has no leave to use more.
    pub has_no_room: bool,
}

/// The server, as a script sees it.
pub(crate) struct ScriptHost<'a> {
    pub(super) client: &'a mut Client,
    pub(super) shards: &'a mut dyn Shards,
    rules: Rules,
    pub(super) watcher: Rc<Watcher>,
    /// Commands since the last look at the watcher.
    calls: u32,
    /// It has done what others may notice.
    pub(super) has_acted: bool,
    /// It ends for want of shards, to run again with all.
    pub(super) restarts: bool,
}

impl<'a> ScriptHost<'a> {
    /// For the script that `client` runs.
    pub fn new(client: &'a mut Client, shards: &'a mut dyn Shards, rules: Rules, watcher: Rc<Watcher>) -> Self {
        Self { client, shards, rules, watcher, calls: 0, has_acted: false, restarts: false }
    }

    /// The command, if it may run now. One that may not is counted as refused.
    fn admit(&self, args: &Args<'_>) -> Result<Command, CallError> {
        let command = match lookup(args.at(0), args.get(1)) {
            Lookup::Found(command) => command,
            Lookup::MissingSubcommand(_) => return Err(self.refuse(None, WRONG_ARITY.into())),
            Lookup::UnknownCommand | Lookup::UnknownSubcommand(_) => return Err(self.refuse(None, UNKNOWN.into())),
        };
        match self.refusal(command, args) {
            None => Ok(command),
            Some(text) => Err(self.refuse(Some(command), text)),
        }
    }

    /// Why a command may not run now, if it may not.
    #[inline]
    fn refusal(&self, command: Command, args: &Args<'_>) -> Option<Cow<'static, str>> {
        let (node, flags) = (&self.client.node, command.spec().flags);
        if check_arity(command.spec(), args.len()).is_err() {
            return Some(WRONG_ARITY.into());
        }
        if flags.contains(CommandFlags::NOSCRIPT) && !node.scripting.may_call(command) {
            return Some(NOT_ALLOWED.into());
        }
        if self.rules.reads_only && crate::admission::may_write(command) {
            return Some(READ_ONLY.into());
        }
        if flags.contains(CommandFlags::WRITE) && self.client.is_refused_by_log() {
            let why = node.log.refusal().unwrap_or_default();
            return Some(format!("MISCONF Errors writing to the AOF file: {why}").into());
        }
        let needs_memory = flags.contains(CommandFlags::DENYOOM);
        (needs_memory && self.rules.has_no_room && !self.watcher.has_written()).then(|| OUT_OF_MEMORY.into())
    }

    #[cold]
    fn refuse(&self, command: Option<Command>, text: Cow<'static, str>) -> CallError {
        if let Some(command) = command {
            self.client.node.command_stats.rejected(command);
        }
        self.client.node.count_error(format!("-{text}").as_bytes());
        CallError::Refused(text.into_owned())
    }
}

impl Host for ScriptHost<'_> {
    fn call(&mut self, args: &Args<'_>, reply: &mut Reply) -> Result<(), CallError> {
        let command = self.admit(args)?;
        self.calls += 1;
        if self.calls == CALLS_PER_LOOK {
            self.calls = 0;
            // One that is to end ends at its next instructions.
            let _ = self.watcher.is_killed();
        }
        let (first_hash, wanted) = crate::request::place(command, args, &self.client.node.layout);
        let lacking = wanted & !self.shards.held();
        if lacking != 0 {
            self.reach(lacking)?;
        }
        if command.spec().flags.contains(CommandFlags::WRITE) {
            self.watcher.note_write();
        }
        self.has_acted |= crate::admission::may_write(command);
        std::mem::swap(&mut self.client.reply, reply);
        self.client.call(command, args, None, first_hash, self.shards);
        std::mem::swap(&mut self.client.reply, reply);
        Ok(())
    }

    fn note_error(&mut self, line: &[u8], of_command: bool) {
        self.client.note_script_error(line, of_command);
    }

    fn log(&mut self, level: LogLevel, text: &[u8]) {
        write_line(level, text);
    }
}

/// A line of `redis.log`.
pub(super) fn write_line(level: LogLevel, text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    match level {
        LogLevel::Debug => tracing::debug!("{text}"),
        LogLevel::Verbose | LogLevel::Notice => tracing::info!("{text}"),
        LogLevel::Warning => tracing::warn!("{text}"),
    }
}
