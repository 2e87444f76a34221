//! What a simulated timeline wants of the node's own code, and production does not have: *mistakes* that are made on purpose,
//! to prove that the simulator's judges find them, and *points* that some timeline must reach, or the campaign was too kind.
//!
//! Only the simulator's build can plant a mistake; everywhere else [`has`] is a constant `false` and its branch is not compiled.

/// A mistake that can be planted in the node. What each one does is said where it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mistake {
    /// Replies do not wait for the log.
    EarlyReply,
    /// A read does not wait for the write that it saw.
    UnheldRead,
    /// What queued during a sync is announced as safe with what was synced.
    EndAnnounced,
    /// A failed sync is taken for a good one.
    SyncErrorIgnored,
    /// A group that could not be written is given up, and its replies leave.
    WriteErrorIgnored,
    /// Seals say that groups were synced that were not.
    FalseVouching,
    /// What has queued at a shutdown is not written.
    ForgottenLastGroup,
    /// Two records of the log change places.
    SwappedRecords,
    /// The records of a transaction are logged without what holds them together.
    SplitTransaction,
    /// A torn tail is not cut, and the log goes on behind it.
    TailKept,
    /// The tail is cut a byte too early: the last record with it.
    TailCutTooFar,
    /// What the life before left in the kernel's cache is taken for durable.
    Unsettled,
    /// Times to live begin anew when the log is replayed.
    RelativeTimeToLive,
    /// Replay forgets times to live: what had expired is back.
    ForgottenTimeToLive,
    /// EXEC does not look whether what is watched has changed.
    MissedWatch,
    /// A client that queued at a shard now and then does not come back.
    LostWakeUp,
    /// Of those who wait for a key, the last is served first.
    Overtaking,
    /// Nobody who waits for a key is told that the shards are free for another try.
    ForgottenRetry,
    /// Who waited gets its item before it is safe that it was taken.
    HastyServing,
    /// Replies that still wait are given to the next connection with the buffers.
    MixedReplies,
    /// A slow reader's replies are made without end.
    UnboundedOutput,
    /// A push is dropped now and then.
    LostPush,
    /// What a script changed is logged without what holds it together.
    SplitScript,
    /// A script that has changed data begins again for want of a shard.
    RepeatedScript,
    /// A script is killed although it has changed data.
    KilledWriter,
    /// A script in the middle of its changes is ended by a shutdown.
    HalfAtShutdown,
    /// Libraries of functions are not logged.
    UnloggedLibrary,
}

impl Mistake {
    /// Each with the word that names it.
    pub const ALL: [(Self, &'static str); 27] = [
        (Self::EarlyReply, "early-reply"),
        (Self::UnheldRead, "unheld-read"),
        (Self::EndAnnounced, "end-announced"),
        (Self::SyncErrorIgnored, "sync-error-ignored"),
        (Self::WriteErrorIgnored, "write-error-ignored"),
        (Self::FalseVouching, "false-vouching"),
        (Self::ForgottenLastGroup, "forgotten-last-group"),
        (Self::SwappedRecords, "swapped-records"),
        (Self::SplitTransaction, "split-transaction"),
        (Self::TailKept, "tail-kept"),
        (Self::TailCutTooFar, "tail-cut-too-far"),
        (Self::Unsettled, "unsettled"),
        (Self::RelativeTimeToLive, "relative-ttl"),
        (Self::ForgottenTimeToLive, "forgotten-ttl"),
        (Self::MissedWatch, "missed-watch"),
        (Self::LostWakeUp, "lost-wake-up"),
        (Self::Overtaking, "overtaking"),
        (Self::ForgottenRetry, "forgotten-retry"),
        (Self::HastyServing, "hasty-serving"),
        (Self::MixedReplies, "mixed-replies"),
        (Self::UnboundedOutput, "unbounded-output"),
        (Self::LostPush, "lost-push"),
        (Self::SplitScript, "split-script"),
        (Self::RepeatedScript, "repeated-script"),
        (Self::KilledWriter, "killed-writer"),
        (Self::HalfAtShutdown, "half-at-shutdown"),
        (Self::UnloggedLibrary, "unlogged-library"),
    ];
}

/// A place in the node's code that is not reached on every day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Point {
    /// Recovery cut a torn tail.
    TornTail,
    /// Recovery wrote again what an earlier life had left unsynced.
    Settled,
    /// A sync failed while more had queued behind it.
    SyncErrorInGroupCommit,
    /// The log refused writes, and took them again.
    Refusal,
    /// A job queued at a busy actor.
    Queued,
    /// A job queued at an actor while it held others.
    QueuedHolding,
    /// A job found an actor's queue full.
    QueueFull,
    /// A waiting command was told to try again by itself.
    RetryOfWaiter,
    /// A reader was so slow that its requests had to wait.
    OutputPause,
    /// A client was cut by its output limit.
    OutputLimit,
    /// A reply waited for the log longer than its connection lived.
    UnsentReply,
    /// A script let others have their turn.
    ScriptTurn,
    /// A script began again with all shards, because one that it had not named was busy.
    ScriptAgain,
    /// A script that had changed data waited for a shard that it had not named.
    ScriptWait,
    /// A script borrowed shards of who waited for its own.
    ScriptLoan,
}

impl Point {
    /// Each with what it says of a timeline.
    pub const ALL: [(Self, &'static str); 15] = [
        (Self::TornTail, "recovery cut a torn tail"),
        (Self::Settled, "recovery wrote again what was not known to be synced"),
        (Self::SyncErrorInGroupCommit, "a sync failed while more had queued behind it"),
        (Self::Refusal, "the log refused writes and took them again"),
        (Self::Queued, "a job queued at a busy shard"),
        (Self::QueuedHolding, "a job queued at a shard while it held others"),
        (Self::QueueFull, "a shard's queue was full"),
        (Self::RetryOfWaiter, "a waiting command was told to try again by itself"),
        (Self::OutputPause, "a slow reader's requests had to wait"),
        (Self::OutputLimit, "a client was cut by its output limit"),
        (Self::UnsentReply, "a connection ended with replies that waited for the log"),
        (Self::ScriptTurn, "a script let others have their turn"),
        (Self::ScriptAgain, "a script began again with all shards"),
        (Self::ScriptWait, "a script waited for a shard that it had not named"),
        (Self::ScriptLoan, "a script borrowed a shard"),
    ];
}

/// A way in which the real world gets into a simulated one, so that the same seed gives another timeline. Planted to prove that
/// comparing two runs of a seed shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leak {
    /// Entropy is drawn from the operating system.
    Entropy,
    /// Wall time is read from the machine that the simulation runs on.
    Clock,
}

impl Leak {
    /// Each with the word that names it.
    pub const ALL: [(Self, &'static str); 2] = [(Self::Entropy, "entropy"), (Self::Clock, "clock")];
}

#[cfg(not(madsim))]
mod mode {
    use super::{Mistake, Point};

    /// Never: nothing is planted outside the simulator.
    #[inline(always)]
    #[must_use]
    pub const fn has(_mistake: Mistake) -> bool {
        false
    }

    /// Never, outside the simulator.
    #[inline(always)]
    #[must_use]
    pub const fn is_on() -> bool {
        false
    }

    /// Nobody counts outside the simulator.
    #[inline(always)]
    pub const fn reached(_point: Point) {}
}

#[cfg(madsim)]
mod mode {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeMap;

    use super::{Leak, Mistake, Point};

    thread_local! {
        static LEAKING: Cell<Option<Leak>> = const { Cell::new(None) };
        static PLANTED: Cell<Option<Mistake>> = const { Cell::new(None) };
        static REACHED: RefCell<BTreeMap<Point, u64>> = const { RefCell::new(BTreeMap::new()) };
    }

    /// Whether the mistake is planted in this timeline.
    #[must_use]
    pub fn has(mistake: Mistake) -> bool {
        PLANTED.get() == Some(mistake)
    }

    /// Whether this is a simulated timeline, where limits that are for large things hold for small ones.
    #[must_use]
    pub const fn is_on() -> bool {
        true
    }

    /// Counts that the point was reached.
    pub fn reached(point: Point) {
        REACHED.with_borrow_mut(|points| *points.entry(point).or_default() += 1);
    }

    /// Plants a mistake, or none. For the simulator alone.
    pub fn plant(mistake: Option<Mistake>) {
        PLANTED.set(mistake);
    }

    /// Lets the real world in. For the simulator alone.
    pub fn leak(leak: Leak) {
        LEAKING.set(Some(leak));
    }

    /// Whether the real world gets in this way.
    pub(crate) fn leaks(leak: Leak) -> bool {
        LEAKING.get() == Some(leak)
    }

    /// How often each point was reached.
    #[must_use]
    pub fn points() -> BTreeMap<Point, u64> {
        REACHED.with_borrow(Clone::clone)
    }
}

pub use mode::*;
