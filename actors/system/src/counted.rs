//! What is counted of a command when it has run, and of errors.
//!
//! The errors of a script are those of its commands, which were counted when they failed, or its own. So each error that it answers
//! says which it is: its own one counts as an error, one of a command only makes the script one that has failed.

use crate::client::Client;
use crate::node::Node;
use simurgh_protocol::Args;
use simurgh_protocol::command::{Command, DataCommand};
use std::sync::atomic::Ordering::Relaxed;

/// The errors that the reply of a script holds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScriptErrors {
    /// Of its commands.
    of_commands: u32,
    /// Of itself.
    has_own: bool,
}

impl Node {
    /// An error is answered, or given to a script: its line, with the `-`.
    pub(crate) fn count_error(&self, line: &[u8]) {
        self.stats.total_error_replies.add(1);
        self.command_stats.error(line);
    }

    /// A command has run: counters, SLOWLOG.
    #[inline]
    pub(crate) fn called(&self, client: &Client, command: Command, args: &Args<'_>, nanos: u64, succeeded: bool) {
        let micros = nanos / 1000;
        let config = &client.live().config;
        self.command_stats.called(command, nanos, succeeded, config.latency_tracking);
        // A command that waits is told of when its wait ends.
        if config.slowlog_microseconds_least.is_some_and(|least| micros >= least) && !client.is_waiting() {
            crate::commands::slowlog::record(self, &client.shared, config, command, args, micros);
        }
        if config.latency_monitor_milliseconds_least.is_some_and(|least| micros / 1000 >= least.max(1)) {
            crate::commands::latency::record(self, client, command, micros / 1000);
        }
    }

    /// A command that has waited ends with an error; that it ran has been counted when it began to wait.
    #[cold]
    pub(crate) fn failed_after_wait(&self, command: DataCommand, line: &[u8]) {
        self.count_error(line);
        self.command_stats.failed(Command::Data(command));
    }
}

impl Client {
    /// A command has run: counters, SLOWLOG, MONITOR.
    #[inline]
    pub(crate) fn called(&mut self, command: Command, args: &Args<'_>, nanos: u64, succeeded: bool) {
        self.node.called(self, command, args, nanos, succeeded);
        if self.node.monitor_count.load(Relaxed) > 0 {
            crate::commands::monitor::tell(self, command, args);
        }
    }

    /// The reply of its script holds an error: its line, and whether it is one that a command of the script has failed with.
    pub(crate) fn note_script_error(&mut self, line: &[u8], of_command: bool) {
        if of_command {
            self.script_errors.of_commands = self.script_errors.of_commands.saturating_add(1);
        } else {
            self.script_errors.has_own = true;
            self.node.count_error(line);
        }
    }

    /// A script has ended: it has failed once for each error of a command in its reply, and once for all of its own.
    #[cold]
    fn count_failed_script(&self, command: Command, errors: ScriptErrors) {
        (0..errors.of_commands + u32::from(errors.has_own)).for_each(|_| self.node.command_stats.failed(command));
    }

    /// Counts what the errors noted of its script make of the command that ran it.
    #[inline]
    pub(crate) fn settle_script_errors(&mut self, command: Command) {
        let errors = std::mem::take(&mut self.script_errors);
        if errors.of_commands > 0 || errors.has_own {
            self.count_failed_script(command, errors);
        }
    }
}
