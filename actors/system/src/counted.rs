//! What is counted of a command when it has run, and of errors.

use crate::client::Client;
use crate::node::Node;
use simurgh_protocol::Args;
use simurgh_protocol::command::{Command, DataCommand};
use std::sync::atomic::Ordering::Relaxed;

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
}
