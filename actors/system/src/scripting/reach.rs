//! How a script gets the shard of a key that it has not named.
//!
//! An idle one is taken. Otherwise, as long as the script has done nothing that others may notice, it lets go of everything and runs again
//! with all shards, and so will it the next time. Once it has, it keeps what it holds, so nobody sees half of it, and waits: jobs that wait
//! for it in turn lend it what they hold (see the kernel's mailbox), and everybody else who holds a shard gives it back without
//! waiting for anything. Scripts that may come to this run one at a time: those that have all shards from the beginning never do,
//! those that only read can always begin again, and the rest comes through the gate.

use super::ScriptHost;
use simurgh_kernel::fiber;
use simurgh_kernel::rehearsal::{Mistake, Point, has, reached};
use simurgh_scripting::CallError;

impl ScriptHost<'_> {
    /// Gets `lacking`, or ends the script.
    #[cold]
    pub(super) fn reach(&mut self, lacking: u64) -> Result<(), CallError> {
        if self.shards.try_take(lacking, false) {
            return self.reached();
        }
        if !self.has_acted || has(Mistake::RepeatedScript) {
            reached(Point::ScriptAgain);
            self.restarts = true;
            return Err(CallError::Ends);
        }
        while !self.shards.try_take(lacking, true) {
            reached(Point::ScriptWait);
            if !fiber::is_inside() {
                return Err(
                    "ERR a key that the script has not declared is in use, and there is no memory to wait".into()
                );
            }
            self.watcher.take_turns();
        }
        self.reached()
    }

    fn reached(&mut self) -> Result<(), CallError> {
        let borrowed = self.shards.borrowed();
        if borrowed != 0 {
            reached(Point::ScriptLoan);
        }
        self.watcher.note_held(self.shards.held(), borrowed);
        Ok(())
    }
}
