//! A client: everything of a connection but its socket, and the loop that executes its requests.
//!
//! A client travels. Its connection parses what came and calls [`run`]; where a shard is busy, the whole client is left in that
//! shard's queue, executed there by whoever holds the shard, and given back. So nothing is copied and no reply can overtake
//! another: at any time a client is in one place.

use crate::blocking::{Served, Wait as KeyWait};
use crate::clients::ClientShared;
use crate::commands::durability::Durability;
use crate::commands::transaction::{Transaction, Watch};
use crate::configuration::Live;
use crate::counted::ScriptErrors;
use crate::memory::{Room, make_room};
use crate::node::Node;
use crate::output::Hold;
use crate::persistence::Outcome;
use crate::push::Pushes;
use crate::reply_mode::ReplyMode;
use crate::request::{Incoming, LentIncoming, Prepared};
use crate::shard::{HeldShards, NoShards, run_with};
use crate::walk::{Walking, may_walk};
use simurgh_kernel::core::AbortOnUnwind;
use simurgh_kernel::mailbox::{Entered, Held};
use simurgh_kernel::rehearsal::{Mistake, has};
use simurgh_kernel::sync::oneshot;
use simurgh_kernel::time;
use simurgh_protocol::command::{Command, Lookup};
use simurgh_protocol::resp::Limits;
use simurgh_protocol::{Args, CommandError, Reply};
use simurgh_storage::{Context, Discarded, Effects, Random, Shard, Shards};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

pub(crate) use crate::wait::Ran;
pub use crate::wait::{Close, Wait};

/// A client.
pub struct Client {
    /// The node it is connected to.
    pub node: Arc<Node>,
    /// What others may know of it.
    pub shared: Arc<ClientShared>,
    /// The configuration, as of `generation`.
    live: Arc<Live>,
    generation: u64,
    /// Its selected database.
    pub database: usize,
    /// Whether it may do more than authenticate.
    pub authenticated: bool,
    /// Its replies, waiting to be sent.
    pub reply: Reply,
    /// Whether they are sent.
    pub reply_mode: ReplyMode,
    /// Between MULTI and EXEC.
    pub transaction: Option<Transaction>,
    /// Within EXEC: the number of its commands.
    pub executing: Option<usize>,
    /// A script of it runs.
    pub(crate) in_script: bool,
    pub(crate) script_errors: ScriptErrors,
    /// The script has ended early, with nothing done, and is to run again with all shards.
    pub(crate) restarts: bool,
    /// The next request is such a script.
    pub(crate) wants_all: bool,
    /// It runs in a fiber, so that a script may.
    pub(crate) in_turns: bool,
    /// What it watches.
    pub watch: Watch,
    /// CLIENT NO-TOUCH.
    pub no_touch: bool,
    /// How it ends, once it does.
    pub close: Option<Close>,
    /// What its connection is to do before the next request.
    pub wait: Option<Wait>,
    /// The end of the snapshot that it waits for.
    pub(crate) snapshot: Option<oneshot::Receiver<Outcome>>,
    /// It is a MONITOR and is sent what others do.
    pub is_monitor: bool,
    /// It is subscribed to something.
    pub is_subscriber: bool,
    pub(crate) pushes: Pushes,
    /// The keys that it reads are tracked.
    pub(crate) tracks_reads: bool,
    /// CLIENT CACHING was called for the next command.
    pub(crate) caching: bool,
    /// Keys changed by the batch, to be told by their prefixes.
    pub(crate) changed_keys: Vec<Box<[u8]>>,
    /// The command that it waits in.
    pub(crate) blocked: Option<KeyWait>,
    /// Replies for others that its commands have served.
    pub(crate) served: Vec<Served>,
    /// The shards that the request needs which runs.
    pub(crate) wanted: u64,
    pub(crate) incoming: LentIncoming,
    pub(crate) effects: Effects,
    /// What a command has taken out and somebody else is to free; empty between commands.
    discarded: Vec<Discarded>,
    random: Random,
    /// From which byte of the replies on which position of the log must be safe.
    pub(crate) holds: VecDeque<Hold>,
    /// How many bytes at the start of the replies have been sent.
    pub(crate) sent: usize,
    /// Length of the replies from which they are to be sent before more are made.
    pub(crate) output_end: usize,
    /// Whether there is room for the next command, where memory has a limit.
    pub(crate) room: Room,
    /// Time of the batch, in milliseconds of Unix time.
    pub now_ms: i64,
    /// The same in microseconds.
    pub now_us: i64,
    /// The cycle counter when the command that runs began.
    pub(crate) ticks: u64,
    /// Commands executed and not yet counted where others read it.
    pub(crate) commands: u64,
    /// The walk through the keyspace that the next request is in the middle of.
    pub(crate) walking: Option<Box<Walking>>,
    /// Position of the log that a reply of this hold waits for besides those of the shards held.
    pub(crate) waits_for: u64,
    /// Where replies that tell nothing of keys (INFO's, refusals) begin and end: a hold of nothing else waits for no promise, or
    /// nobody saw how a full disk does, nor that it takes no writes.
    pub(crate) keyless: Option<(usize, usize)>,
    /// What it wants to be promised (CLIENT DURABILITY).
    pub(crate) durability: Durability,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Client({})", self.shared.id)
    }
}

/// Executes the client's parsed requests.
pub(crate) fn run(node: &Node, mut client: Box<Client>) -> Ran {
    client.begin_batch();
    if let Some(wanted) = client.shards_to_retry() {
        match node.shards.enter(wanted, client) {
            Entered::Here(mut held, back) => {
                client = back;
                let _guard = AbortOnUnwind::new();
                client.run_held(&mut held);
            }
            Entered::Queued => return Ran::Away,
            Entered::Full(back) => return Ran::Busy(back),
        }
    }
    client.prefetch_shared();
    while client.may_continue() {
        let Some(next) = client.incoming.peek().copied() else { break };
        if client.is_held_back(&client.incoming, &next) {
            break;
        }
        if client.is_refused_as_busy(&next) {
            continue;
        }
        if client.room == Room::Unknown && client.live.config.max_memory_bytes > 0 {
            client.room = make_room(node, &client.live);
            if node.tracking.is_active() {
                client.tell_before();
            }
        }
        let wanted = client.shards_wanted(&next);
        if wanted == 0 {
            let mut incoming = std::mem::take(&mut client.incoming);
            let is_done = client.step(&incoming, &next, &mut NoShards);
            debug_assert!(is_done, "what walks needs shards");
            incoming.advance();
            client.incoming = incoming;
            continue;
        }
        match node.shards.enter(wanted, client) {
            Entered::Here(mut held, back) => {
                let Some(back) = run_with(back, &mut held) else { return Ran::Away };
                client = back;
                drop(held);
                if client.is_walk_paused() {
                    return Ran::Busy(client);
                }
            }
            Entered::Queued => return Ran::Away,
            Entered::Full(back) => return Ran::Busy(back),
        }
    }
    client.end_batch();
    Ran::Here(client)
}

impl Client {
    /// A client that has just connected.
    #[must_use]
    pub fn new(node: Arc<Node>, shared: Arc<ClientShared>) -> Self {
        let live = node.configuration.current();
        let generation = node.configuration.generation();
        Self {
            authenticated: live.config.require_pass.is_none(),
            database: 0,
            reply: Reply::default(),
            reply_mode: ReplyMode::default(),
            transaction: None,
            executing: None,
            in_script: false,
            script_errors: ScriptErrors::default(),
            restarts: false,
            wants_all: false,
            in_turns: false,
            watch: Watch::default(),
            no_touch: false,
            close: None,
            wait: None,
            snapshot: None,
            is_monitor: false,
            is_subscriber: false,
            pushes: Pushes::default(),
            tracks_reads: false,
            caching: false,
            changed_keys: Vec::new(),
            blocked: None,
            served: Vec::new(),
            wanted: 0,
            incoming: LentIncoming::default(),
            effects: Effects::default(),
            discarded: Vec::new(),
            random: Random::new(node.seed ^ shared.id.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            holds: VecDeque::new(),
            sent: 0,
            output_end: 0,
            room: Room::Unknown,
            now_ms: time::wall_ms(),
            now_us: time::wall_us(),
            ticks: 0,
            commands: 0,
            walking: None,
            waits_for: 0,
            keyless: None,
            durability: Durability::default(),
            live,
            generation,
            node,
            shared,
        }
    }

    /// The configuration in force for this batch.
    #[must_use]
    pub fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// What the parser must not exceed now.
    pub(crate) fn limits(&self) -> Limits {
        let bulk_max = i64::try_from(self.live.config.proto_max_bulk_bytes).unwrap_or(i64::MAX);
        Limits { bulk_max, unauthenticated: !self.authenticated }
    }

    /// Parses the next batch of what was received.
    pub(crate) fn parse(&mut self) {
        self.refresh();
        let limits = self.limits();
        self.incoming.parse(&self.node.layout, limits);
        self.node.scripting.widen(&mut self.incoming, &self.node.layout);
    }

    /// Looks whether there is a newer configuration.
    pub(crate) fn refresh(&mut self) {
        let generation = self.node.configuration.generation();
        if generation != self.generation {
            self.live = self.node.configuration.current();
            self.generation = generation;
        }
    }

    /// Whether the next request may be executed before the replies so far are sent.
    #[inline]
    fn may_continue(&self) -> bool {
        self.wait.is_none() && self.close.is_none() && self.blocked.is_none() && self.reply.len() < self.output_end
    }

    /// Executes requests for as long as the shards that are held are those needed.
    pub(crate) fn run_held(&mut self, held: &mut Held<'_, Shard, Self>) {
        let set = held.set_with_gate();
        let reply_start = self.reply.len();
        let max = self.live.config.max_memory_bytes as usize;
        // The log is switched on with all shards held: whoever holds one knows whether it is.
        self.effects.recording = self.node.log.mode() != crate::log::Mode::Off;
        // Who reads a key while holding its shard has said before that it tracks.
        self.effects.watching = self.node.tracking.is_active();
        if self.blocked.is_some() {
            self.retry(held);
        }
        // CLIENT PAUSE holds all shards when it begins: looked at here, a pause that has been answered is never overlooked.
        self.effects.keeps_expired = self.node.pause.is_active();
        let mut lent = std::mem::take(&mut self.incoming);
        let incoming = &mut *lent;
        if incoming.is_fresh() {
            self.prefetch(incoming, held);
        }
        while self.may_continue() {
            let Some(next) = incoming.peek() else { break };
            if self.shards_wanted(next) & !set != 0 {
                break;
            }
            if !self.in_turns && self.runs_script(next) {
                break;
            }
            // A pause holds all shards when it begins: looked at here, with shards held, none is overlooked.
            if self.is_held_back(incoming, next) {
                break;
            }
            if max > 0 && self.room == Room::Unknown && self.node.memory.is_over(&self.node, max) {
                // Room is made by whoever holds nothing.
                break;
            }
            if !self.step(incoming, next, &mut HeldShards(held)) {
                if self.wants_all {
                    incoming.widen_next(&self.node.layout);
                }
                break;
            }
            incoming.advance();
            if !self.effects.ready.is_empty() {
                self.serve_ready(held);
            }
            if max > 0 {
                self.publish_sizes(held);
            }
        }
        let goes_on = incoming.peek().is_some_and(|next| self.shards_wanted(next) & !set != 0);
        self.incoming = lent;
        self.tell_rest(goes_on);
        self.settle(held, reply_start);
    }

    /// What was done joins the log while the shards are still held, and the replies get their condition.
    fn settle(&mut self, held: &mut Held<'_, Shard, Self>, reply_start: usize) {
        let mut set = held.set();
        let changed = self.effects.has_records();
        let promise = self.promise().filter(|_| !has(Mistake::EarlyReply));
        let is_keyless = self.keyless.take() == Some((reply_start, self.reply.len()));
        if !changed && (promise.is_none() || is_keyless) {
            return self.deliver_served(0);
        }
        let position = if changed { self.node.log.append(self.shared.core, &self.effects) } else { 0 };
        self.effects.clear();
        let mut needed = position;
        while set != 0 {
            let shard = held.get(set.trailing_zeros() as usize);
            set &= set - 1;
            if changed {
                shard.log_position = position;
            }
            if changed || !has(Mistake::UnheldRead) {
                needed = needed.max(shard.log_position);
            }
        }
        needed = needed.max(std::mem::take(&mut self.waits_for));
        if let Some(walking) = &mut self.walking {
            walking.seen_position = walking.seen_position.max(needed);
        }
        self.promise_from(reply_start, needed, promise, changed.then_some(position));
        self.deliver_served(if has(Mistake::HastyServing) { 0 } else { needed });
    }

    /// Executes one request, the next one, with the shards that it needs.
    /// Whether it is done: a walk through the keyspace takes several steps.
    fn step(&mut self, incoming: &Incoming, next: &Prepared, shards: &mut dyn Shards) -> bool {
        let args = incoming.args(next);
        if self.walking.is_none() {
            self.reply_mode.begin(&self.reply);
            self.wanted = next.shards;
            let last = if let Lookup::Found(command) = next.found { command.index() as u32 + 1 } else { 0 };
            self.shared.last_command.store(last, Relaxed);
            match self.admit(next.found, &args) {
                Ok(Some(command)) if may_walk(command) && self.begins_walk(command, &args, shards) => {}
                Ok(Some(command)) => {
                    self.call(command, &args, incoming.raw(next), next.first_hash, shards);
                    if std::mem::take(&mut self.restarts) {
                        self.node.scripting.learn_wide(&args, &self.node.layout);
                        self.wants_all = true;
                        return false;
                    }
                }
                Ok(None) => {}
                Err(error) => self.refuse(next.found, &error),
            }
        }
        if self.walking.is_some() && !self.walk_on(next.found, &args, shards) {
            return false;
        }
        self.reply_mode.end(&mut self.reply);
        self.follow_up();
        self.forget_caching(next.found);
        self.room = Room::Unknown;
        self.wants_all = false;
        true
    }

    /// Leaves MULTI without executing anything.
    pub fn end_transaction(&mut self) {
        self.transaction = None;
    }

    /// Runs one command; its shards are held.
    pub(crate) fn call(
        &mut self,
        command: Command,
        args: &Args<'_>,
        raw: Option<&[u8]>,
        first_hash: Option<u64>,
        shards: &mut dyn Shards,
    ) {
        // A command begins where the one before it ended: one look at the cycle counter for each.
        let started = self.ticks;
        let mark = self.reply.len();
        if !matches!(command, Command::Data(_)) {
            self.shared.measured_buffers.store(u64::MAX, Relaxed);
            self.publish_commands();
        }
        self.commands += 1;
        let succeeded = match command {
            Command::Data(command) => {
                let succeeded =
                    self.with_context(shards, first_hash, |cx| simurgh_storage::execute(command, cx, args, raw));
                if self.effects.block.is_some()
                    && let Some(block) = self.effects.block.take()
                {
                    self.begin_wait(command, args, block, shards);
                }
                succeeded
            }
            Command::Connection(command) => {
                let result = simurgh_protocol::dispatch_connection!(command, crate::commands, (self, args, shards));
                self.settle_script_errors(Command::Connection(command));
                self.finish(mark, result)
            }
            Command::Server(command) => {
                let result = simurgh_protocol::dispatch_server!(command, crate::commands, (self, args, shards));
                self.finish(mark, result)
            }
        };
        if self.restarts {
            self.commands -= 1;
            return;
        }
        if !succeeded {
            self.node.count_error(&self.reply.bytes()[mark.min(self.reply.len())..]);
        }
        if self.effects.has_news() {
            self.tell_news(mark);
        }
        if self.tracks_reads {
            self.remember_keys(command, args);
        }
        self.ticks = time::ticks();
        self.called(command, args, time::ticks_to_ns(started, self.ticks), succeeded);
    }

    fn finish(&mut self, mark: usize, result: Result<(), CommandError>) -> bool {
        match result {
            Ok(()) => true,
            Err(error) => {
                self.reply.truncate(mark);
                error.reply(&mut self.reply);
                false
            }
        }
    }

    /// Gives a command what it may use.
    pub fn with_context<R>(
        &mut self,
        shards: &mut dyn Shards,
        first_hash: Option<u64>,
        with: impl FnOnce(&mut Context<'_>) -> R,
    ) -> R {
        let mut cx = Context {
            reply: &mut self.reply,
            effects: &mut self.effects,
            database: self.database,
            now_ms: self.now_ms,
            settings: &self.live.storage,
            layout: &self.node.layout,
            random: &mut self.random,
            first_hash,
            no_touch: self.no_touch,
            may_block: self.executing.is_none(),
            in_script: self.in_script,
            replaying: false,
            discarded: &mut self.discarded,
            shards,
        };
        let result = with(&mut cx);
        if !self.discarded.is_empty() {
            self.node.discard(std::mem::take(&mut self.discarded));
        }
        result
    }
}
