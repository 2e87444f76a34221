//! The scripts that run for longer than a slice, as seen from outside: what each holds, whether it has changed data, whether it
//! is to end.
//!
//! A script that ends within its first slice is never entered here, and nobody could have noticed it.

use crate::client::Client;
use crate::node::Node;
use crate::request::Prepared;
use simurgh_kernel::rehearsal::{Mistake, Point, has, reached};
use simurgh_kernel::{fiber, time};
use simurgh_protocol::CommandError;
use simurgh_protocol::command::{Command, CommandFlags, Lookup};
use simurgh_scripting::Watch;
use std::cell::{Cell, OnceCell};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const BUSY_EVAL: &str = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
const BUSY_FUNCTION: &str = "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.";

/// What kind of script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Of EVAL and its like, which SCRIPT KILL ends.
    Eval,
    /// Of FCALL and its like, which FUNCTION KILL ends.
    Function,
}

/// A call of a function, for FUNCTION STATS.
#[derive(Clone, Debug)]
pub(crate) struct FunctionCall {
    /// Of the function.
    pub name: Box<str>,
    /// The words of the call.
    pub words: Box<[Box<[u8]>]>,
}

impl FunctionCall {
    /// Of `name`, as it was requested.
    pub fn new(name: &str, request: &[&[u8]]) -> Self {
        Self { name: name.into(), words: request.iter().map(|word| (*word).into()).collect() }
    }
}

/// A script that has run for longer than a slice.
#[derive(Debug)]
pub(crate) struct LongScript {
    /// Whose it is.
    pub client: u64,
    /// What was called, if it is a function.
    call: Option<FunctionCall>,
    started_ns: u64,
    slow_after_ns: u64,
    /// The shards that it holds, and the gate.
    held: AtomicU64,
    /// Those of them that it has borrowed.
    borrowed: AtomicU64,
    has_written: AtomicBool,
    is_killed: AtomicBool,
    /// It runs for longer than `busy-reply-threshold`.
    is_slow: AtomicBool,
}

impl LongScript {
    fn kind(&self) -> Kind {
        if self.call.is_some() { Kind::Function } else { Kind::Eval }
    }

    /// The shards that it holds.
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Acquire)
    }

    /// Those of them that it has borrowed.
    pub fn borrowed(&self) -> u64 {
        self.borrowed.load(Ordering::Acquire)
    }

    /// Whether it has changed data.
    pub fn has_written(&self) -> bool {
        self.has_written.load(Ordering::Acquire)
    }

    /// Whether others are told that it makes the node busy.
    pub fn is_slow(&self) -> bool {
        self.is_slow.load(Ordering::Acquire)
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Running {
    scripts: Mutex<Vec<Arc<LongScript>>>,
    /// The shards of those that are slow.
    busy: AtomicU64,
}

/// Why no script was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotKilled {
    /// None runs.
    NotBusy,
    /// It has changed data, which nobody takes back.
    HasWritten,
    /// It is of the other kind.
    OtherKind(Kind),
}

impl Running {
    fn scripts(&self) -> MutexGuard<'_, Vec<Arc<LongScript>>> {
        self.scripts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, script: &Arc<LongScript>) {
        self.scripts().push(script.clone());
    }

    fn end(&self, script: &Arc<LongScript>) {
        let mut scripts = self.scripts();
        scripts.retain(|other| !Arc::ptr_eq(other, script));
        self.note_busy(&scripts);
    }

    fn note_busy(&self, scripts: &[Arc<LongScript>]) {
        let slow = scripts.iter().filter(|script| script.is_slow());
        self.busy.store(slow.fold(0, |set, script| set | script.held()), Ordering::Release);
    }

    /// The script that `client` runs.
    pub fn of(&self, client: u64) -> Option<Arc<LongScript>> {
        self.scripts().iter().find(|script| script.client == client).cloned()
    }

    /// Looks how long the script runs; whether it makes the node busy.
    pub fn look(&self, script: &LongScript) -> bool {
        if !script.is_slow() && time::monotonic_ns().saturating_sub(script.started_ns) <= script.slow_after_ns {
            return false;
        }
        let scripts = self.scripts();
        script.is_slow.store(true, Ordering::Release);
        self.note_busy(&scripts);
        true
    }

    /// The function that runs longest, and for how many milliseconds by now.
    ///
    /// # Errors
    /// A script of EVAL runs too long.
    pub fn function_call(&self) -> Result<Option<(FunctionCall, u64)>, CommandError> {
        let scripts = self.scripts();
        let now_ns = time::monotonic_ns();
        let ms = |script: &LongScript| now_ns.saturating_sub(script.started_ns) / 1_000_000;
        if let Some(found) = scripts.iter().find_map(|script| Some((script.call.clone()?, ms(script)))) {
            return Ok(Some(found));
        }
        if scripts.iter().any(|script| script.is_slow()) { Err(CommandError::Text(BUSY_EVAL)) } else { Ok(None) }
    }

    /// The shards of slow scripts.
    #[inline]
    pub fn busy(&self) -> u64 {
        self.busy.load(Ordering::Acquire)
    }

    /// What those are told who need one of these shards.
    pub fn busy_error(&self, wanted: u64) -> CommandError {
        let is_function = |script: &Arc<LongScript>| {
            script.is_slow() && (wanted == 0 || script.held() & wanted != 0) && script.kind() == Kind::Function
        };
        CommandError::Text(if self.scripts().iter().any(is_function) { BUSY_FUNCTION } else { BUSY_EVAL })
    }

    /// Asks all scripts of a kind to end that have changed nothing.
    pub fn kill(&self, kind: Kind) -> Result<(), NotKilled> {
        let scripts = self.scripts();
        let mut failure = NotKilled::NotBusy;
        let mut has_killed = false;
        for script in scripts.iter() {
            if script.kind() != kind {
                if failure == NotKilled::NotBusy && script.is_slow() {
                    failure = NotKilled::OtherKind(script.kind());
                }
            } else if script.has_written() && !has(Mistake::KilledWriter) {
                failure = NotKilled::HasWritten;
            } else {
                script.is_killed.store(true, Ordering::Release);
                has_killed = true;
            }
        }
        if has_killed { Ok(()) } else { Err(failure) }
    }
}

impl NotKilled {
    /// What the one is told who wanted to kill.
    pub fn error(self) -> CommandError {
        CommandError::Text(match self {
            Self::NotBusy => "NOTBUSY No scripts in execution right now.",
            Self::OtherKind(Kind::Eval) => BUSY_EVAL,
            Self::OtherKind(Kind::Function) => BUSY_FUNCTION,
            Self::HasWritten => {
                "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait \
                 the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."
            }
        })
    }
}

/// Watches a script for its engine, and gives others their turn.
#[derive(Debug)]
pub(crate) struct Watcher {
    node: Arc<Node>,
    client: u64,
    call: Option<FunctionCall>,
    held: Cell<u64>,
    borrowed: Cell<u64>,
    started_ns: u64,
    slow_after_ns: u64,
    has_written: Cell<bool>,
    /// Since its first slice is over.
    long: OnceCell<Arc<LongScript>>,
}

impl Watcher {
    /// From now on, for a script of `client` with these shards.
    pub fn new(client: &Client, call: Option<FunctionCall>, held: u64) -> Self {
        let slow_after_ms = client.live().config.busy_reply_threshold_ms;
        Self {
            node: client.node.clone(),
            client: client.shared.id,
            call,
            held: Cell::new(held),
            borrowed: Cell::new(0),
            started_ns: time::monotonic_ns(),
            slow_after_ns: if slow_after_ms == 0 { u64::MAX } else { slow_after_ms.saturating_mul(1_000_000) },
            has_written: Cell::new(false),
            long: OnceCell::new(),
        }
    }

    /// The script changes data.
    pub fn note_write(&self) {
        self.has_written.set(true);
        if let Some(long) = self.long.get() {
            long.has_written.store(true, Ordering::Release);
        }
    }

    /// Whether it has changed data.
    pub fn has_written(&self) -> bool {
        self.has_written.get()
    }

    /// The script holds more than before.
    pub fn note_held(&self, held: u64, borrowed: u64) {
        self.held.set(held);
        self.borrowed.set(borrowed);
        if let Some(long) = self.long.get() {
            long.held.store(held, Ordering::Release);
            long.borrowed.store(borrowed, Ordering::Release);
        }
    }

    /// A slice is over: others have their turn, and then whoever resumes the fiber has looked how long it has been.
    pub fn take_turns(&self) -> &LongScript {
        let long = self.long.get_or_init(|| {
            let long = Arc::new(LongScript {
                client: self.client,
                call: self.call.clone(),
                started_ns: self.started_ns,
                slow_after_ns: self.slow_after_ns,
                held: AtomicU64::new(self.held.get()),
                borrowed: AtomicU64::new(self.borrowed.get()),
                has_written: AtomicBool::new(self.has_written.get()),
                is_killed: AtomicBool::new(false),
                is_slow: AtomicBool::new(false),
            });
            self.node.scripting.running.begin(&long);
            long
        });
        reached(Point::ScriptTurn);
        if !fiber::suspend() {
            self.node.scripting.running.look(long);
        }
        long
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if let Some(long) = self.long.get() {
            self.node.scripting.running.end(long);
        }
    }
}

impl Watch for Watcher {
    fn is_killed(&self) -> bool {
        // A node that stops waits for no script.
        self.take_turns().is_killed.load(Ordering::Acquire) || self.node.shutdown.is_asked()
    }

    fn clock_seconds(&self) -> f64 {
        time::monotonic_ns() as f64 / 1e9
    }
}

impl Client {
    /// While a script runs too long, requests that need its shards are refused at once, and with all shards held all but a few.
    #[inline]
    pub(crate) fn is_refused_as_busy(&mut self, next: &Prepared) -> bool {
        let busy = self.node.scripting.running.busy();
        busy != 0 && self.refuse_as_busy(next, busy)
    }

    /// Whether it waits for a shard with a request that is refused while that shard is busy.
    pub(crate) fn can_be_turned_away(&self) -> bool {
        let is_refused = |command: Command| !command.spec().flags.contains(CommandFlags::ALLOW_BUSY);
        self.blocked.is_none()
            && self.walking.is_none()
            && self
                .incoming
                .peek()
                .is_some_and(|next| matches!(next.found, Lookup::Found(command) if is_refused(command)))
    }

    /// Whether a request runs a script.
    #[inline]
    pub(crate) fn runs_script(&self, next: &Prepared) -> bool {
        match &self.transaction {
            None => next.is_script,
            Some(transaction) => {
                transaction.has_script()
                    && matches!(next.found, Lookup::Found(command) if command == crate::commands::EXEC)
            }
        }
    }

    /// Refuses the next request, if it is one of those that are refused while these shards are busy.
    #[cold]
    pub(crate) fn refuse_as_busy(&mut self, next: &Prepared, busy: u64) -> bool {
        let Lookup::Found(command) = next.found else { return false };
        let is_queued = self.transaction.is_some() && !crate::commands::runs_inside_multi(command);
        let wanted = if is_queued { next.shards } else { self.shards_wanted(next) };
        let all = self.node.shards.all();
        if (wanted & busy == 0 && busy & all != all)
            || self.walking.is_some()
            || command.spec().flags.contains(CommandFlags::ALLOW_BUSY)
        {
            return false;
        }
        self.reply_mode.begin(&self.reply);
        let incoming = std::mem::take(&mut self.incoming);
        let refusal = match self.identify(next.found, &incoming.args(next)) {
            Err(refusal) => refusal,
            Ok(_) => self.node.scripting.running.busy_error(wanted).into(),
        };
        self.refuse(next.found, &refusal);
        self.incoming = incoming;
        self.reply_mode.end(&mut self.reply);
        self.incoming.advance();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script() -> Arc<LongScript> {
        Arc::new(LongScript {
            client: 1,
            call: None,
            started_ns: 0,
            slow_after_ns: 0,
            held: AtomicU64::new(6),
            borrowed: AtomicU64::new(0),
            has_written: AtomicBool::new(false),
            is_killed: AtomicBool::new(false),
            is_slow: AtomicBool::new(false),
        })
    }

    #[test]
    fn only_a_script_that_has_changed_nothing_is_killed_and_only_by_its_own_command() {
        let (running, one) = (Running::default(), script());
        assert_eq!(running.kill(Kind::Eval), Err(NotKilled::NotBusy));
        running.begin(&one);
        assert_eq!(running.kill(Kind::Function), Err(NotKilled::NotBusy));
        assert!(running.look(&one));
        assert_eq!((running.busy(), running.kill(Kind::Function)), (6, Err(NotKilled::OtherKind(Kind::Eval))));
        assert_eq!((running.kill(Kind::Eval), one.is_killed.load(Ordering::Relaxed)), (Ok(()), true));
        one.has_written.store(true, Ordering::Relaxed);
        assert_eq!(running.kill(Kind::Eval), Err(NotKilled::HasWritten));
        running.end(&one);
        assert_eq!((running.busy(), running.kill(Kind::Eval)), (0, Err(NotKilled::NotBusy)));
    }
}
