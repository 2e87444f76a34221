//! A node, wired in one readable place: shards, cores, log, listeners, timers.
//!
//! [`Node::start`] is what `main` calls and what the simulator calls; the only differences are the disk that is handed in and
//! what the kernel's seam stands on.

use crate::bind::{Listening, bind};
use crate::client::Client;
use crate::clients::{ClientShared, Clients};
use crate::command_stats::CommandStats;
use crate::commands::latency::LatencyMonitor;
use crate::commands::slowlog::SlowLog;
use crate::configuration::Configuration;
pub use crate::loading::Loading;
use crate::log::{CONGESTED_BYTES, Log, Mode};
use crate::log_writer::LogWriter;
use crate::memory::{Allocator, Gauge};
use crate::persistence::Persistence;
use crate::persistence::snapshotter::Snapshotter;
use crate::pubsub::PubSub;
pub use crate::recovery::RecoveryError;
use crate::recovery::{Recovered, load_snapshot, recover};
pub use crate::running::{Running, Shutdown};
use crate::samples::Samples;
use crate::stats::Stats;
use crate::supervisor::{Children, Supervisor};
use crate::tracking::Tracking;
use simurgh_kernel::actor::{Actor, ActorCell};
use simurgh_kernel::core::{self, Core, abort_on_panic};
use simurgh_kernel::disk::{DirectoryLock, Disk};
use simurgh_kernel::mailbox::Mailboxes;
use simurgh_kernel::net::Listener;
use simurgh_kernel::sync::{Notify, oneshot};
use simurgh_kernel::{random, time};
use simurgh_protocol::CommandError;
use simurgh_protocol::command::{Command, CommandFlags};
use simurgh_protocol::config::{AppendFsync, Config, LogLevel, Settings};
use simurgh_storage::aof::manifest::temporary_name;
use simurgh_storage::aof::seal::Sealer;
use simurgh_storage::{Discarded, KeyHasher, Layout, Shard};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// How many shards each thread gets, so that two threads seldom meet at one.
const SHARDS_PER_CORE: usize = 8;
/// How often a busy shard is tried before a client queues there. Nothing to gain where one thread does everything.
const SPINS: u32 = 200;

/// What a node is started with.
pub struct Options {
    /// The configuration.
    pub settings: Settings,
    /// Where CONFIG REWRITE writes, if there is such a file.
    pub config_file: Option<String>,
    /// The data folder.
    pub disk: Arc<dyn Disk>,
    /// Changes how much the process logs.
    pub set_log_level: Option<fn(LogLevel)>,
    /// The allocator, where there is one to ask. Without it the keyspace's count of bytes serves.
    pub allocator: Option<Allocator>,
}

/// A node.
pub struct Node {
    /// Forty hexadecimal digits, new at each start.
    pub run_id: String,
    /// Forty hexadecimal digits that name its stream of changes.
    pub replication_id: String,
    /// When it started, in milliseconds of Unix time.
    pub started_ms: i64,
    /// Where its random numbers begin.
    pub seed: u64,
    /// The configuration.
    pub configuration: Configuration,
    /// Held by who changes the configuration or writes its file, so that one happens after the other.
    pub setting: Mutex<()>,
    /// Where CONFIG REWRITE writes.
    pub config_file: Option<String>,
    /// The data folder.
    pub disk: Arc<dyn Disk>,
    /// Slots, shards, databases.
    pub layout: Layout,
    /// The shards.
    pub shards: Mailboxes<Shard, Client>,
    /// Number of cores that serve connections.
    pub cores: usize,
    /// The log.
    pub log: Log,
    /// The length of the file that the log is written to, in bytes.
    pub aof_size: AtomicU64,
    /// The length of the log's files before that one.
    pub aof_earlier_size: AtomicU64,
    /// The length of all of them at the start.
    pub aof_base_size: AtomicU64,
    /// Snapshots and rewrites.
    pub persistence: Persistence,
    pub(crate) log_closed: Notify,
    /// Who is connected.
    pub clients: Clients,
    pub(crate) listening: Listening,
    /// Who listens to what.
    pub pubsub: PubSub,
    /// Who is to hear of changed keys.
    pub tracking: Tracking,
    /// Counters.
    pub stats: Stats,
    /// Counters of each command.
    pub command_stats: CommandStats,
    /// What the timer notes.
    pub samples: Samples,
    /// SLOWLOG.
    pub slow_log: Mutex<SlowLog>,
    /// LATENCY.
    pub latency: Mutex<LatencyMonitor>,
    /// The clients that are MONITORs.
    pub monitors: Mutex<Vec<Arc<ClientShared>>>,
    /// How many there are, to be looked at without the lock.
    pub monitor_count: AtomicU64,
    /// Whether keys expire by themselves (DEBUG SET-ACTIVE-EXPIRE).
    pub expires_actively: AtomicBool,
    /// Whether the timer does nothing (DEBUG PAUSE-CRON).
    pub cron_paused: AtomicBool,
    /// Start-up.
    pub loading: Loading,
    /// Stopping.
    pub shutdown: Shutdown,
    /// Scripts.
    pub scripting: crate::scripting::Scripting,
    /// CLIENT PAUSE.
    pub pause: crate::commands::pause::Pause,
    pub(crate) set_log_level: Option<fn(LogLevel)>,
    /// The memory in use, and who must go when it is too much.
    pub memory: Gauge,
    /// The allocator, where there is one to ask.
    pub allocator: Option<Allocator>,
    reaper: Core,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Node({})", self.run_id)
    }
}

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant is its text")]
pub enum StartError {
    #[error("the data folder is in use by another server")]
    Locked,
    #[error("data folder: {0}")]
    Disk(io::Error),
    #[error("thread: {0}")]
    Thread(io::Error),
    #[error("actor: {0}")]
    Actor(String),
    #[error("Could not create server TCP listening socket {address}: {error}")]
    Bind { address: String, error: io::Error },
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
}

impl Node {
    /// Starts a node: it answers clients at once, with LOADING until its data is there.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn start(options: Options) -> Result<Running, StartError> {
        let lock = lock_folder(options.disk.as_ref()).await?;
        let config = options.settings.config();
        let core_count = if config.threads == 0 { core::available_cores() } else { config.threads as usize };
        let node = Arc::new(Self::new(options, &config, core_count)?);
        node.memory.startup.store(node.allocated_bytes().unwrap_or(0), Ordering::Relaxed);
        let cores: Result<Vec<Core>, _> = (0..core_count).map(|index| Core::start("core", index)).collect();
        let cores = Arc::new(cores.map_err(StartError::Thread)?);
        for core in cores.iter() {
            let (node, index) = (node.clone(), core.index());
            let writer_node = node.clone();
            // Without them replies that wait would wait for ever.
            core.spawn(abort_on_panic(async move { node.log.relay(index).await }));
            core.spawn(abort_on_panic(async move { writer_node.log.tell_writer(index).await }));
        }
        let listeners = Core::start("listen", 0).map_err(StartError::Thread)?;
        let supervisor = supervise(&node, bind(&config)?, &cores, &listeners).await?;
        node.persistence.state().last_save_s = node.started_ms / 1000;
        let log_core = Self::load(&node, &config, supervisor.clone()).await?;
        let snapshot_core = Core::start("snapshot", 0).map_err(StartError::Thread)?;
        let arguments = node.clone();
        snapshot_core.spawn(abort_on_panic(async move {
            let started = Actor::spawn_linked(None, Snapshotter, arguments, supervisor).await;
            started.expect("an actor without a name starts");
        }));
        node.loading.is_loading.store(false, Ordering::Release);
        Ok(Running { node, cores, listeners, log_core, snapshot_core, _lock: lock })
    }

    fn new(options: Options, config: &Config, core_count: usize) -> Result<Self, StartError> {
        let seed = random::entropy_u64();
        let default_shards = if core_count == 1 { 1 } else { core_count * SHARDS_PER_CORE };
        let shard_count = if config.shards == 0 { default_shards } else { config.shards as usize };
        let shard_count = shard_count.min(simurgh_kernel::mailbox::MAILBOXES_MAX);
        let layout = Layout {
            shards: shard_count,
            databases: config.databases as usize,
            hasher: KeyHasher::new(random::entropy_u64()),
        };
        let spins = if core_count == 1 { 0 } else { SPINS };
        let capacity = config.max_clients as usize + 64;
        Ok(Self {
            replication_id: forty_digits(),
            run_id: forty_digits(),
            started_ms: time::wall_ms(),
            seed,
            configuration: Configuration::new(options.settings),
            setting: Mutex::new(()),
            config_file: options.config_file,
            disk: options.disk,
            shards: Mailboxes::new(Shard::all(&layout), capacity, spins),
            layout,
            cores: core_count,
            log: Log::new(core_count),
            aof_size: AtomicU64::new(0),
            aof_earlier_size: AtomicU64::new(0),
            aof_base_size: AtomicU64::new(0),
            persistence: Persistence::default(),
            log_closed: Notify::new(),
            clients: Clients::default(),
            listening: Listening::default(),
            pubsub: PubSub::default(),
            tracking: Tracking::default(),
            stats: Stats::default(),
            command_stats: CommandStats::new(core_count),
            samples: Samples::default(),
            slow_log: Mutex::default(),
            latency: Mutex::default(),
            monitors: Mutex::default(),
            monitor_count: AtomicU64::new(0),
            expires_actively: AtomicBool::new(true),
            cron_paused: AtomicBool::new(false),
            loading: Loading { is_loading: AtomicBool::new(true), ..Loading::default() },
            shutdown: Shutdown::default(),
            scripting: crate::scripting::Scripting::default(),
            pause: crate::commands::pause::Pause::default(),
            set_log_level: options.set_log_level,
            memory: Gauge::new(shard_count),
            allocator: options.allocator,
            reaper: Core::start("reaper", 0).map_err(StartError::Thread)?,
        })
    }

    /// Loads the data, from the log if there is one, else from the last snapshot, and starts the log writer.
    async fn load(node: &Arc<Self>, config: &Config, supervisor: ActorCell) -> Result<Core, StartError> {
        let started = time::monotonic_ns();
        let mut loaded = Shard::all(&node.layout);
        node.loading.started_ms.store(u64::try_from(time::wall_ms()).unwrap_or(0), Ordering::Relaxed);
        let (file, sealer, source) = if config.append_only {
            let Recovered { file, sealer, earlier_bytes, manifest } = recover(node, &mut loaded).await?;
            node.aof_earlier_size.store(earlier_bytes, Ordering::Relaxed);
            node.aof_base_size.store(earlier_bytes + file.length(), Ordering::Relaxed);
            node.persistence.state().manifest = Some(manifest);
            crate::persistence::discard_leftovers(node).await?;
            (Some(file), sealer, "append only file")
        } else {
            load_snapshot(node, &mut loaded).await?;
            (None, Sealer::new(0, random::entropy_u64()), "disk")
        };
        // What a snapshot that was killed has left; nobody minds if there is none.
        let _ = node.disk.unlink(&temporary_name(&config.db_file_name)).await;
        let keys: usize = loaded.iter().map(|shard| shard.keys()).sum();
        let mut held = crate::shard::hold_all(node).await;
        for (index, shard) in loaded.into_iter().enumerate() {
            *held.get(index) = shard;
        }
        drop(held);
        let seconds = (time::monotonic_ns() - started) as f64 / 1e9;
        tracing::info!("DB loaded from {source}: {keys} keys in {seconds:.3} seconds");
        node.log.begin_at(sealer.position());
        node.log.set_mode(mode_of(config));
        node.log.set_tells_time(config.aof_tells_time);
        let log_core = Core::start("log", 0).map_err(StartError::Thread)?;
        let arguments = (node.clone(), file, sealer);
        log_core.spawn(abort_on_panic(async move {
            let started = Actor::spawn_linked(None, LogWriter, arguments, supervisor).await;
            started.expect("an actor without a name starts");
        }));
        Ok(log_core)
    }

    /// Whether a command may run now, besides what the client itself may do.
    #[inline]
    pub(crate) fn admit(&self, client: &Client, command: Command) -> Result<(), CommandError> {
        let flags = command.spec().flags;
        if self.loading.is_loading.load(Ordering::Acquire) && !flags.contains(CommandFlags::LOADING) {
            return Err(CommandError::Text("LOADING Redis is loading the dataset in memory"));
        }
        if flags.contains(CommandFlags::WRITE) && self.log.refuses() {
            let why = self.log.refusal().unwrap_or_default();
            return Err(CommandError::Owned(format!("MISCONF Errors writing to the AOF file: {why}")));
        }
        if flags.contains(CommandFlags::WRITE) && self.persistence.save_failed() && must_stop_writes(client) {
            return Err(SAVE_FAILED);
        }
        if client.is_without_room() && client.needs_memory(command) {
            return Err(CommandError::Text("OOM command not allowed when used memory > 'maxmemory'."));
        }
        Ok(())
    }

    /// Bytes in use by the allocator's count, where there is one.
    #[must_use]
    pub fn allocated_bytes(&self) -> Option<usize> {
        self.allocator.map(|allocator| (allocator.allocated)())
    }

    /// What allocates.
    #[must_use]
    pub fn allocator_name(&self) -> &'static str {
        if self.allocator.is_some() { "jemalloc" } else { "libc" }
    }

    /// Whether the log or a snapshot has fallen so far behind that nothing more should be read from clients.
    #[must_use]
    pub fn is_congested(&self) -> bool {
        self.log.backlog() > CONGESTED_BYTES || self.persistence.handed_bytes() > CONGESTED_BYTES as u64
    }

    /// Frees what was taken out of databases, off the path.
    pub(crate) fn discard(self: &Arc<Self>, discarded: Vec<Discarded>) {
        let objects = discarded.iter().map(Discarded::objects).sum::<usize>() as u64;
        self.stats.lazyfree_pending.fetch_add(objects, Ordering::Relaxed);
        let node = self.clone();
        self.reaper.spawn(async move {
            drop(discarded);
            node.stats.lazyfree_pending.fetch_sub(objects, Ordering::Relaxed);
            node.stats.lazyfreed_objects.add(objects);
        });
    }

    /// A connection has ended: its watches end, and its wait for a key.
    pub(crate) async fn leave(&self, mut client: Box<Client>) {
        if let Some(waiter) = client.abandon_wait() {
            self.forget_waiter(&waiter).await;
        }
        let shards = client.watch.shards();
        if shards == 0 {
            return;
        }
        let mut tries = 0;
        loop {
            if let Some(mut held) = self.shards.try_hold(shards) {
                return client.watch.end(&self.layout, &mut crate::shard::HeldShards(&mut held));
            }
            crate::shard::wait(&mut tries).await;
        }
    }

    /// Removes a client from the registry.
    pub(crate) fn forget_client(&self, shared: &Arc<ClientShared>) {
        self.clients.remove(shared.id);
        crate::memory::forget(self, shared);
        self.pubsub.unsubscribe_all(&self.layout.hasher, shared);
        self.tracking.end(shared);
        if shared.is_monitor.load(Ordering::Relaxed) {
            crate::commands::monitor::forget(self, shared);
        }
    }

    /// The node cannot go on: it stops here rather than acknowledge what may be lost. Recovery goes by what is on the disk.
    pub(crate) async fn fail(&self, why: &str) -> ! {
        tracing::error!("{why}; the server stops, so that nothing is acknowledged that may not be on the disk");
        core::abort_node()
    }
}

const SAVE_FAILED: CommandError = CommandError::Text(
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that may modify the \
     data set are disabled, because this instance is configured to report errors during writes if RDB snapshotting fails \
     (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB error.",
);

/// Whether a snapshot that failed stops writes: somebody counts on snapshots.
#[cold]
fn must_stop_writes(client: &Client) -> bool {
    let config = &client.live().config;
    config.stop_writes_on_save_error && !config.save_points.is_empty()
}

/// What replies promise, by `appendonly` and `appendfsync`.
pub(crate) fn mode_of(config: &Config) -> Mode {
    if !config.append_only {
        return Mode::Off;
    }
    match config.append_fsync {
        AppendFsync::Always => Mode::Always,
        AppendFsync::Write => Mode::Write,
        AppendFsync::EverySecond => Mode::EverySecond,
        AppendFsync::No => Mode::No,
    }
}

/// Starts the supervisor, and with it listeners and timers, on a core of their own.
async fn supervise(
    node: &Arc<Node>,
    listeners: Vec<Listener>,
    cores: &Arc<Vec<Core>>,
    core: &Core,
) -> Result<ActorCell, StartError> {
    let listeners: Vec<_> = listeners.into_iter().map(Arc::new).collect();
    let children = Children { node: node.clone(), listeners: listeners.clone(), cores: cores.clone() };
    let (answer, started) = oneshot::channel();
    core.spawn(async move {
        let _ = answer.send(Actor::spawn(None, Supervisor, children).await.map(|(actor, _)| actor));
    });
    match started.await {
        Ok(Ok(supervisor)) => {
            node.listening.begin(listeners, supervisor.clone());
            Ok(supervisor.get_cell())
        }
        Ok(Err(error)) => Err(StartError::Actor(error.to_string())),
        Err(_) => Err(StartError::Actor("its core ended".into())),
    }
}

/// A random name.
fn forty_digits() -> String {
    let words = [random::entropy_u64(), random::entropy_u64(), random::entropy_u64()];
    format!("{:016x}{:016x}{:08x}", words[0], words[1], words[2] as u32)
}

async fn lock_folder(disk: &dyn Disk) -> Result<DirectoryLock, StartError> {
    match disk.lock_directory("").await {
        Ok(lock) => Ok(lock),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(StartError::Locked),
        Err(error) => Err(StartError::Disk(error)),
    }
}
