//! The beginning and the end of a batch of requests: the time that it runs at, and the counters that others read.

use crate::client::Client;
use simurgh_kernel::time;
use simurgh_storage::{Effects, Shards};
use std::sync::atomic::Ordering::Relaxed;

/// Replies that are made before an attempt to send them.
const OUTPUT_STEP: usize = 256 * 1024;
const OUTPUT_STEP_UNAUTHENTICATED: usize = 1024;

impl Client {
    /// A batch begins: all of it runs at one time, with one state of the configuration.
    pub(crate) fn begin_batch(&mut self) {
        self.refresh();
        self.now_us = time::wall_us();
        self.now_ms = self.now_us.div_euclid(1000);
        self.shared.last_interaction_ms.store(self.now_ms, Relaxed);
        self.publish_input();
        if self.node.tracking.is_active() {
            self.tell_before();
        }
        self.ticks = time::ticks();
        self.output_end = self.reply.len() + if self.authenticated { OUTPUT_STEP } else { OUTPUT_STEP_UNAUTHENTICATED };
    }

    /// What was changed in this hold joins the log now; all shards are held.
    pub(crate) fn log_so_far(&mut self, shards: &mut dyn Shards) {
        if !self.effects.has_records() {
            return;
        }
        let position = self.node.log.append(self.shared.core, &self.effects);
        self.effects.clear();
        self.durability.logged(position);
        for index in 0..self.node.layout.shards {
            shards.shard(index).log_position = position;
        }
    }

    /// Adds the commands executed since the last time to the counters that others read.
    pub(crate) fn publish_commands(&mut self) {
        let commands = std::mem::take(&mut self.commands);
        if commands > 0 {
            self.node.stats.total_commands_processed.add(commands);
            // Nobody else counts here, so there is no need for an atomic addition.
            let shared = &self.shared.commands;
            shared.store(shared.load(Relaxed) + commands, Relaxed);
        }
    }

    /// A batch has ended.
    pub(crate) fn end_batch(&mut self) {
        self.publish_commands();
        self.publish();
        let changes = self.effects.take_changes();
        if changes > 0 {
            self.node.stats.changes.add(changes);
        }
        if self.effects.take_flushed_all() {
            self.node.flushed_all();
        }
    }

    /// The effects gathered so far.
    pub(crate) fn effects(&mut self) -> &mut Effects {
        &mut self.effects
    }

    /// Whether the log takes no writes, and nothing yet of what runs now that would be left by half without them.
    pub(crate) fn is_refused_by_log(&self) -> bool {
        self.node.log.refuses() && !self.effects.is_halfway()
    }
}
