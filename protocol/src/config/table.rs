//! The table of config keys: every directive of Redis 8.2, those of Valkey 9.1 that it lacks, and our own.
//!
//! To add a key, add its row here in its group, its field in `typed.rs` if it works, and run
//! `UPDATE_DOCS=1 cargo test -p simurgh-protocol config` to bring `docs/configuration.md` up to date. The text above a row
//! is its documentation. What a row does not say: `yes`/`no` defaults and bounds are those of Redis 8.2.3, asked of it.

use super::row::{Bounds, Kind, Row, State, TextRule, choice, integer, memory, special, switch, text};

const INT_MAX: i64 = i32::MAX as i64;

/// A count that Redis keeps in an `int`.
const COUNT: Bounds = Bounds::new(0, INT_MAX);
/// A count of at least one.
const POSITIVE: Bounds = Bounds::new(1, INT_MAX);
/// A count or a duration that Redis keeps in a `long long`.
const LONG: Bounds = Bounds::new(0, i64::MAX);
/// A size, which Redis keeps unsigned.
const SIZE: Bounds = Bounds::unsigned(0, i64::MAX);
/// A port; 0 means none.
const PORT: Bounds = Bounds::new(0, 65535);
/// From -1, which switches a threshold off.
const THRESHOLD: Bounds = Bounds::new(-1, i64::MAX);

const NO_CLUSTER: &str = "cluster mode is not built yet";
const NO_REPLICATION: &str = "replication is not built yet";
const NO_TLS: &str = "TLS is not built yet";
const NO_TYPE: &str = "this data type is not built yet";
const NO_ACL: &str = "access control lists are not built yet; requirepass is";
const NO_DEFRAG: &str = "memory is not defragmented";
const NO_RDMA: &str = "RDMA is not supported";
const NO_MPTCP: &str = "connections use ordinary TCP";
const NO_FORK: &str = "there is no child process";
const ALWAYS_LAZY: &str = "large values are always freed off the path of commands";
const USE_TASKSET: &str = "threads are not bound to cores; start the server under taskset or a cpuset";
const NO_SYSLOG: &str = "the log goes to a file or to standard output, from which a service manager collects it";

/// Names of the values of `maxmemory-policy`, in the order of Redis's error text.
pub(super) const POLICIES: &[&str] = &[
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "noeviction",
];
/// Names of the values of `appendfsync`; `write` is ours.
pub(super) const FSYNC_MODES: &[&str] = &["everysec", "always", "no", "write"];
/// Names of the values of `loglevel`.
pub(super) const LOG_LEVELS: &[&str] = &["debug", "verbose", "notice", "warning", "nothing"];
/// Names of the values of `log-format`; `legacy` is Valkey's word for `text`.
pub(super) const LOG_FORMATS: &[&str] = &["text", "json", "legacy"];
/// Names of the values of `supervised`.
pub(super) const SUPERVISORS: &[&str] = &["upstart", "systemd", "auto", "no"];
/// Names of the values of `enable-debug-command` and its kin.
pub(super) const PERMISSIONS: &[&str] = &["no", "yes", "local"];
const SHUTDOWN: &[&str] = &["default", "save", "nosave", "now", "force"];
const FACILITIES: &[&str] = &["user", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"];

macro_rules! rows {
    ($( $(#[doc = $summary:literal])+ $key:ident => $row:expr; )+) => {
        /// A config key: the position of its row in [`TABLE`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Key {
            $( $(#[doc = $summary])+ $key, )+
        }

        /// Every config key, in the order of the documentation.
        pub const TABLE: &[Row] = &[ $( $row.summary(concat!($($summary),+)), )+ ];

        impl Key {
            /// Every key, in the order of [`TABLE`].
            pub const ALL: &[Key] = &[ $( Key::$key, )+ ];
        }
    };
}

impl Key {
    /// The key's row.
    pub fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// The key of this name or alias, in any case.
    pub fn named(name: &[u8]) -> Option<Key> {
        let same = |other: &str| other.as_bytes().eq_ignore_ascii_case(name);
        Key::ALL.iter().copied().find(|key| key.row().names().any(same))
    }
}

rows! {
    // Network.

    /// The TCP port; 0 listens on none.
    Port => integer("port", "6379", PORT);
    /// The addresses to listen on: `*` and `::*` mean all, and one after `-` may be missing on this machine.
    Bind => special("bind", "* -::*", Kind::Words(16));
    /// Refuse connections from other machines while there is no password and no explicit address to listen on.
    ProtectedMode => switch("protected-mode", "yes");
    /// The path of a Unix socket to listen on.
    UnixSocket => text("unixsocket", "").start_only();
    /// The mode of the Unix socket, in octal; 0 leaves it to the umask.
    UnixSocketPerm => special("unixsocketperm", "0", Kind::Octal(0o777)).start_only();
    /// The group of the Unix socket.
    UnixSocketGroup => text("unixsocketgroup", "").start_only().refused("the group of the socket is not changed; use unixsocketperm and the folder's group");
    /// How many connections may wait to be accepted.
    TcpBacklog => integer("tcp-backlog", "511", COUNT).start_only();
    /// Seconds between probes of an idle connection; 0 sends none.
    TcpKeepalive => integer("tcp-keepalive", "300", COUNT);
    /// Close a client that was idle for this many seconds; 0 never does.
    Timeout => integer("timeout", "0", COUNT);
    /// How many clients may be connected.
    MaxClients => integer("maxclients", "10000", Bounds::unsigned(1, u32::MAX as i64));
    /// How many connections one turn of the event loop accepts.
    MaxNewConnectionsPerCycle => integer("max-new-connections-per-cycle", "10", Bounds::unsigned(1, 1000)).no_meaning("connections are accepted beside the handling of commands");
    /// How many TLS connections one turn of the event loop accepts.
    MaxNewTlsConnectionsPerCycle => integer("max-new-tls-connections-per-cycle", "1", Bounds::unsigned(1, 1000)).no_meaning(NO_TLS);
    /// The longest argument of a command.
    ProtoMaxBulkLen => memory("proto-max-bulk-len", "512mb", Bounds::new(1 << 20, i64::MAX));
    /// How much of an unfinished request a client may have outstanding.
    ClientQueryBufferLimit => memory("client-query-buffer-limit", "1gb", Bounds::unsigned(1 << 20, i64::MAX));
    /// How much output may wait for a client before it is cut: class (normal, replica, pubsub), hard limit, soft limit, seconds.
    ClientOutputBufferLimit => special("client-output-buffer-limit", "normal 0 0 0 replica 256mb 64mb 60 pubsub 32mb 8mb 60", Kind::OutputLimits);
    /// The mark of sockets, for packet filters.
    SocketMarkId => integer("socket-mark-id", "0", Bounds::unsigned(0, u32::MAX as i64)).start_only().refused("sockets are not marked");
    /// The address that outgoing connections start from.
    BindSourceAddr => text("bind-source-addr", "").no_meaning(NO_REPLICATION);
    /// Accept multipath TCP.
    Mptcp => switch("mptcp", "no").start_only().no_meaning(NO_MPTCP);
    /// Use multipath TCP between replicas.
    ReplMptcp => switch("repl-mptcp", "no").start_only().no_meaning(NO_MPTCP);
    /// The addresses to listen on by RDMA.
    RdmaBind => text("rdma-bind", "").start_only().refused(NO_RDMA);
    /// The RDMA port.
    RdmaPort => integer("rdma-port", "0", PORT).refused(NO_RDMA);
    /// The RDMA receive buffer.
    RdmaRxSize => integer("rdma-rx-size", "1048576", Bounds::new(65536, 16 << 20)).start_only().no_meaning(NO_RDMA);
    /// The RDMA completion vector.
    RdmaCompletionVector => integer("rdma-completion-vector", "-1", Bounds::new(-1, 1024)).start_only().no_meaning(NO_RDMA);

    // The process.

    /// How many threads serve clients; 0 means one for each core.
    Threads => integer("threads", "0", Bounds::new(0, 1024)).start_only();
    /// Into how many shards the keys are divided; 0 means the default for the number of threads.
    Shards => integer("shards", "0", Bounds::new(0, 63)).start_only();
    /// Write the append-only file through io_uring where the kernel allows it. Plain system calls were faster on every disk
    /// measured so far: the kernel hands a ring's sync to a worker thread.
    LogIoUring => switch("log-io-uring", "no").start_only();
    /// How many threads read and write sockets.
    IoThreads => integer("io-threads", "1", Bounds::new(1, 128)).start_only().no_meaning("every thread serves its own connections; see threads");
    /// How many databases there are.
    Databases => integer("databases", "16", POSITIVE).start_only();
    /// How many databases there are in cluster mode.
    ClusterDatabases => integer("cluster-databases", "1", POSITIVE).start_only().no_meaning(NO_CLUSTER);
    /// The folder of the data files.
    Dir => text("dir", "./data").protected();
    /// Go to the background.
    Daemonize => switch("daemonize", "no").start_only().refused("the server stays in the foreground; let a service manager run it, or start it with nohup and &");
    /// The service manager that is told when the server is ready; `upstart` is refused.
    Supervised => choice("supervised", "no", SUPERVISORS).start_only();
    /// A file that holds the number of the process while it runs.
    PidFile => text("pidfile", "").start_only();
    /// How much is logged: `debug`, `verbose`, `notice`, `warning` or `nothing`.
    LogLevel => choice("loglevel", "notice", LOG_LEVELS);
    /// The file that the log is written to; empty means standard output.
    LogFile => text("logfile", "").start_only();
    /// How a line of the log looks: `text` for people or `json` for machines.
    LogFormat => choice("log-format", "text", LOG_FORMATS).start_only();
    /// How a time looks in the log.
    LogTimestampFormat => choice("log-timestamp-format", "legacy", &["legacy", "iso8601", "milliseconds"]).no_meaning("the log writes ISO 8601 times");
    /// Log to syslog.
    SyslogEnabled => switch("syslog-enabled", "no").start_only().refused(NO_SYSLOG);
    /// The name in syslog.
    SyslogIdent => text("syslog-ident", "redis").start_only().no_meaning(NO_SYSLOG);
    /// The facility in syslog.
    SyslogFacility => choice("syslog-facility", "local0", FACILITIES).start_only().no_meaning(NO_SYSLOG);
    /// Print the logo at the start.
    AlwaysShowLogo => switch("always-show-logo", "no").start_only().no_meaning("there is no logo");
    /// Change the title of the process.
    SetProcTitle => switch("set-proc-title", "yes").start_only().no_meaning("the title of the process stays its command line");
    /// What the title of the process looks like.
    ProcTitleTemplate => text("proc-title-template", "{title} {listen-addr} {server-mode}").no_meaning("the title of the process stays its command line");
    /// Log where the server crashed.
    CrashLogEnabled => switch("crash-log-enabled", "yes").no_meaning("a crash is always logged");
    /// Test the memory after a crash.
    CrashMemcheckEnabled => switch("crash-memcheck-enabled", "yes").no_meaning("memory is not tested after a crash");
    /// What to do on the signal INT.
    ShutdownOnSigint => special("shutdown-on-sigint", "default", Kind::Flags(SHUTDOWN)).no_meaning("a signal always ends the server in good order, with the log on the disk");
    /// What to do on the signal TERM.
    ShutdownOnSigterm => special("shutdown-on-sigterm", "default", Kind::Flags(SHUTDOWN)).no_meaning("a signal always ends the server in good order, with the log on the disk");
    /// How many seconds a shutdown waits for replicas.
    ShutdownTimeout => integer("shutdown-timeout", "10", COUNT).no_meaning(NO_REPLICATION);
    /// Which warnings about the system are not given.
    IgnoreWarnings => text("ignore-warnings", "").no_meaning("the warnings that it silences do not exist");
    /// Adjust the scores of the kernel's out-of-memory killer.
    OomScoreAdj => choice("oom-score-adj", "no", &["no", "yes", "relative", "absolute"]).no_meaning("the score is left to the service manager");
    /// The scores of the out-of-memory killer.
    OomScoreAdjValues => special("oom-score-adj-values", "0 200 800", Kind::OomScores).no_meaning("the score is left to the service manager");
    /// Switch transparent huge pages off.
    DisableThp => switch("disable-thp", "yes").start_only().no_meaning("nothing forks, so huge pages only help");
    /// The cores of the server's threads.
    ServerCpulist => text("server-cpulist", "").aliases(&["server_cpulist"]).start_only().no_meaning(USE_TASKSET);
    /// The cores of background threads.
    BioCpulist => text("bio-cpulist", "").aliases(&["bio_cpulist"]).start_only().no_meaning(USE_TASKSET);
    /// The cores of the process that rewrites the log.
    AofRewriteCpulist => text("aof-rewrite-cpulist", "").aliases(&["aof_rewrite_cpulist"]).start_only().no_meaning(NO_FORK);
    /// The cores of the process that writes snapshots.
    BgsaveCpulist => text("bgsave-cpulist", "").aliases(&["bgsave_cpulist"]).start_only().no_meaning(NO_FORK);
    /// How often a second periodic work runs.
    Hz => integer("hz", "10", COUNT.clamped(1, 500));
    /// Run periodic work more often when there are many clients.
    DynamicHz => switch("dynamic-hz", "yes").no_meaning("periodic work does not grow with the number of clients");
    /// The collation of SORT ALPHA.
    LocaleCollate => text("locale-collate", "").no_meaning("texts compare by their bytes");
    /// The version of Redis that INFO and HELLO name.
    AdvertisedVersion => text("simurgh-advertised-version", "8.2.3").start_only();
    /// Name the server Redis in INFO.
    ExtendedRedisCompatibility => switch("extended-redis-compatibility", "no").no_meaning("the server always answers as Redis");
    /// The zone that the server is in.
    AvailabilityZone => text("availability-zone", "").no_meaning("it is kept for tools that read it");
    /// How many keys are fetched ahead in a batch of commands.
    PrefetchBatchMaxSize => integer("prefetch-batch-max-size", "16", Bounds::new(0, 128)).no_meaning("a batch is always prefetched as a whole");

    // Security.

    /// The password of the default user; empty asks for none.
    RequirePass => text("requirepass", "").secret();
    /// Who may use DEBUG: `no`, `yes`, or only connections from this machine (`local`).
    EnableDebugCommand => choice("enable-debug-command", "no", PERMISSIONS).start_only();
    /// Who may set protected keys by CONFIG SET: `no`, `yes` or `local`.
    EnableProtectedConfigs => choice("enable-protected-configs", "no", PERMISSIONS).start_only();
    /// Who may load modules.
    EnableModuleCommand => choice("enable-module-command", "no", PERMISSIONS).start_only().no_meaning("there are no modules");
    /// The file of users.
    AclFile => text("aclfile", "").start_only().refused(NO_ACL);
    /// How many refused commands ACL LOG keeps.
    AclLogMaxLen => integer("acllog-max-len", "128", LONG).no_meaning(NO_ACL);
    /// The channels that a new user may use.
    AclPubsubDefault => choice("acl-pubsub-default", "resetchannels", &["allchannels", "resetchannels"]).no_meaning(NO_ACL);
    /// Keep user data out of the log.
    HideUserDataFromLog => switch("hide-user-data-from-log", "no").no_meaning("user data never goes to the log");
    /// How carefully DUMP payloads are checked.
    SanitizeDumpPayload => choice("sanitize-dump-payload", "no", &["no", "yes", "clients"]).no_meaning("payloads are always checked in full");
    /// The seed of the hash function.
    HashSeed => text("hash-seed", "").start_only().no_meaning("the seed is drawn at every start");

    // Memory.

    /// How much memory the data may use; 0 means no limit.
    MaxMemory => memory("maxmemory", "0", SIZE);
    /// What goes when the memory is used up.
    MaxMemoryPolicy => choice("maxmemory-policy", "noeviction", POLICIES);
    /// How many keys are compared to find one to evict.
    MaxMemorySamples => integer("maxmemory-samples", "5", Bounds::new(1, 64));
    /// How long a command may wait for eviction: 0 is least, 100 is without limit.
    MaxMemoryEvictionTenacity => integer("maxmemory-eviction-tenacity", "10", Bounds::new(0, 100));
    /// How much memory all clients together may use, in bytes or percent of maxmemory; 0 means no limit.
    MaxMemoryClients => special("maxmemory-clients", "0", Kind::Share);
    /// How fast access counters grow: larger is slower.
    LfuLogFactor => integer("lfu-log-factor", "10", COUNT);
    /// After how many minutes an access counter loses one.
    LfuDecayTime => integer("lfu-decay-time", "1", COUNT);
    /// How much work goes into finding expired keys, from 1 to 10.
    ActiveExpireEffort => integer("active-expire-effort", "1", Bounds::new(1, 10));
    /// Free evicted keys in the background.
    LazyfreeLazyEviction => switch("lazyfree-lazy-eviction", "no").no_meaning(ALWAYS_LAZY);
    /// Free expired keys in the background.
    LazyfreeLazyExpire => switch("lazyfree-lazy-expire", "no").no_meaning(ALWAYS_LAZY);
    /// Free overwritten values in the background.
    LazyfreeLazyServerDel => switch("lazyfree-lazy-server-del", "no").no_meaning(ALWAYS_LAZY);
    /// Make DEL behave as UNLINK.
    LazyfreeLazyUserDel => switch("lazyfree-lazy-user-del", "no").no_meaning(ALWAYS_LAZY);
    /// Make FLUSHALL behave as FLUSHALL ASYNC.
    LazyfreeLazyUserFlush => switch("lazyfree-lazy-user-flush", "no").no_meaning(ALWAYS_LAZY);
    /// Grow tables between commands.
    ActiveRehashing => switch("activerehashing", "yes").no_meaning("tables are small and grow on their own");
    /// Let the allocator return memory in the background.
    JemallocBgThread => switch("jemalloc-bg-thread", "yes").no_meaning("the allocator is set at build time");
    /// Defragment memory.
    ActiveDefrag => switch("activedefrag", "no").no_meaning(NO_DEFRAG);
    /// When defragmentation starts.
    ActiveDefragIgnoreBytes => memory("active-defrag-ignore-bytes", "100mb", Bounds::new(1, i64::MAX)).no_meaning(NO_DEFRAG);
    /// The fragmentation at which it starts.
    ActiveDefragThresholdLower => integer("active-defrag-threshold-lower", "10", Bounds::new(0, 1000)).no_meaning(NO_DEFRAG);
    /// The fragmentation at which it works hardest.
    ActiveDefragThresholdUpper => integer("active-defrag-threshold-upper", "100", Bounds::new(0, 1000)).no_meaning(NO_DEFRAG);
    /// Its least share of a core.
    ActiveDefragCycleMin => integer("active-defrag-cycle-min", "1", Bounds::new(1, 99)).no_meaning(NO_DEFRAG);
    /// Its largest share of a core.
    ActiveDefragCycleMax => integer("active-defrag-cycle-max", "25", Bounds::new(1, 99)).no_meaning(NO_DEFRAG);
    /// How long it works at once.
    ActiveDefragCycleUs => integer("active-defrag-cycle-us", "500", Bounds::new(0, 100_000)).no_meaning(NO_DEFRAG);
    /// How large a value it handles at once.
    ActiveDefragMaxScanFields => integer("active-defrag-max-scan-fields", "1000", Bounds::new(1, i64::MAX)).no_meaning(NO_DEFRAG);

    // The append-only file and snapshots.

    /// Keep a log of all writes, from which a restart recovers.
    AppendOnly => switch("appendonly", "yes");
    /// When a reply may promise that a write is safe: `always` (on the disk), `write` (handed to the kernel: survives `kill -9`), `everysec` or `no`.
    AppendFsync => choice("appendfsync", "everysec", FSYNC_MODES);
    /// The base of the names of the log's files.
    AppendFileName => special("appendfilename", "appendonly.aof", Kind::Text(TextRule::FileName)).start_only();
    /// The folder of the log's files, below dir.
    AppendDirName => special("appenddirname", "appendonlydir", Kind::Text(TextRule::FolderName)).start_only();
    /// Start although the end of the log is cut, and cut it off.
    AofLoadTruncated => switch("aof-load-truncated", "yes");
    /// Begin a rewritten log with a snapshot.
    AofUseRdbPreamble => switch("aof-use-rdb-preamble", "yes");
    /// Write times into the log.
    AofTimestampEnabled => switch("aof-timestamp-enabled", "no");
    /// Sync a rewritten log in steps.
    AofRewriteIncrementalFsync => switch("aof-rewrite-incremental-fsync", "yes");
    /// By how many percent the log grows before it is rewritten.
    AutoAofRewritePercentage => integer("auto-aof-rewrite-percentage", "100", COUNT);
    /// The least size at which the log is rewritten.
    AutoAofRewriteMinSize => memory("auto-aof-rewrite-min-size", "64mb", LONG);
    /// Do not sync while a child writes.
    NoAppendfsyncOnRewrite => switch("no-appendfsync-on-rewrite", "no").no_meaning(NO_FORK);
    /// When a snapshot is due: pairs of seconds and changes.
    Save => special("save", "", Kind::SavePoints);
    /// The name of the snapshot.
    DbFileName => special("dbfilename", "dump.rdb", Kind::Text(TextRule::FileName)).protected();
    /// Compress snapshots.
    RdbCompression => switch("rdbcompression", "yes");
    /// Put a checksum into snapshots.
    RdbChecksum => switch("rdbchecksum", "yes").start_only();
    /// Wait so many microseconds for each key that a snapshot writes, or, below 0, one for so many keys: for tests.
    RdbKeySaveDelay => integer("rdb-key-save-delay", "0", Bounds::new(i32::MIN as i64, INT_MAX)).hidden();
    /// Remove snapshots that replication left.
    RdbDelSyncFiles => switch("rdb-del-sync-files", "no").no_meaning(NO_REPLICATION);
    /// Sync a snapshot in steps.
    RdbSaveIncrementalFsync => switch("rdb-save-incremental-fsync", "yes");
    /// Load snapshots of unknown versions.
    RdbVersionCheck => choice("rdb-version-check", "strict", &["strict", "relaxed"]).no_meaning("every version that is known is loaded, and no other");
    /// Refuse writes after a snapshot failed.
    StopWritesOnBgsaveError => switch("stop-writes-on-bgsave-error", "yes");

    // Watching the server.

    /// Log commands that took at least this many microseconds; -1 logs none.
    SlowlogLogSlowerThan => integer("slowlog-log-slower-than", "10000", THRESHOLD).aliases(&["commandlog-execution-slower-than"]);
    /// How many slow commands are kept.
    SlowlogMaxLen => integer("slowlog-max-len", "128", LONG).aliases(&["commandlog-slow-execution-max-len"]);
    /// Remember events that took at least this many milliseconds; 0 remembers none.
    LatencyMonitorThreshold => integer("latency-monitor-threshold", "0", LONG);
    /// Keep a histogram of each command's latency.
    LatencyTracking => switch("latency-tracking", "yes");
    /// The percentiles that INFO latencystats gives.
    LatencyTrackingInfoPercentiles => special("latency-tracking-info-percentiles", "50 99 99.9", Kind::Percentiles);
    /// How many large requests are kept.
    CommandlogLargeRequestMaxLen => integer("commandlog-large-request-max-len", "128", LONG).no_meaning("large requests are not logged");
    /// Log requests of at least this many bytes.
    CommandlogRequestLargerThan => integer("commandlog-request-larger-than", "1048576", THRESHOLD).no_meaning("large requests are not logged");
    /// How many large replies are kept.
    CommandlogLargeReplyMaxLen => integer("commandlog-large-reply-max-len", "128", LONG).no_meaning("large replies are not logged");
    /// Log replies of at least this many bytes.
    CommandlogReplyLargerThan => integer("commandlog-reply-larger-than", "1048576", THRESHOLD).no_meaning("large replies are not logged");
    /// Which events are published for keys.
    NotifyKeyspaceEvents => special("notify-keyspace-events", "", Kind::Text(TextRule::EventClasses));
    /// How many keys client tracking remembers.
    TrackingTableMaxKeys => integer("tracking-table-max-keys", "1000000", SIZE);

    // Data types.

    /// How many fields a compact hash has.
    HashMaxListpackEntries => integer("hash-max-listpack-entries", "512", SIZE).aliases(&["hash-max-ziplist-entries"]);
    /// How long a value in a compact hash is.
    HashMaxListpackValue => memory("hash-max-listpack-value", "64", SIZE).aliases(&["hash-max-ziplist-value"]);
    /// How large a node of a list is.
    ListMaxListpackSize => integer("list-max-listpack-size", "-2", Bounds::new(i32::MIN as i64, INT_MAX)).aliases(&["list-max-ziplist-size"]);
    /// How many nodes at each end of a list stay uncompressed.
    ListCompressDepth => integer("list-compress-depth", "0", COUNT).no_meaning("nodes of lists are never compressed");
    /// How many numbers a set of integers has.
    SetMaxIntsetEntries => integer("set-max-intset-entries", "512", SIZE);
    /// How many members a compact set has.
    SetMaxListpackEntries => integer("set-max-listpack-entries", "128", SIZE);
    /// How long a member of a compact set is.
    SetMaxListpackValue => integer("set-max-listpack-value", "64", SIZE);
    /// How many members a compact sorted set has.
    ZsetMaxListpackEntries => integer("zset-max-listpack-entries", "128", SIZE).aliases(&["zset-max-ziplist-entries"]);
    /// How long a member of a compact sorted set is.
    ZsetMaxListpackValue => memory("zset-max-listpack-value", "64", SIZE).aliases(&["zset-max-ziplist-value"]);
    /// How large a sparse HyperLogLog is.
    HllSparseMaxBytes => memory("hll-sparse-max-bytes", "3000", SIZE);
    /// How large a node of a stream is.
    StreamNodeMaxBytes => memory("stream-node-max-bytes", "4kb", SIZE);
    /// How many entries a node of a stream has.
    StreamNodeMaxEntries => integer("stream-node-max-entries", "100", LONG);
    /// Run vector set commands on one thread.
    VsetForceSingleThreadedExecution => switch("vset-force-single-threaded-execution", "no").no_meaning(NO_TYPE);
    /// After how many milliseconds a script may be interrupted.
    BusyReplyThreshold => integer("busy-reply-threshold", "5000", LONG).aliases(&["lua-time-limit"]);
    /// Keep foreign keys from expiring while data is imported.
    ImportMode => switch("import-mode", "no").refused("import mode is not built");

    // Replication.

    /// The master that is followed: a host and a port, or `no one`.
    ReplicaOf => special("replicaof", "no one", Kind::Master).aliases(&["slaveof"]).start_only().refused(NO_REPLICATION);
    /// The password of the master.
    MasterAuth => text("masterauth", "").aliases(&["primaryauth"]).secret().no_meaning(NO_REPLICATION);
    /// The user at the master.
    MasterUser => text("masteruser", "").aliases(&["primaryuser"]).no_meaning(NO_REPLICATION);
    /// How many replicas must be connected for writes to be accepted.
    MinReplicasToWrite => integer("min-replicas-to-write", "0", COUNT).aliases(&["min-slaves-to-write"]).refused("replication is not built yet, so no write would ever be accepted");
    /// How far behind those replicas may be, in seconds.
    MinReplicasMaxLag => integer("min-replicas-max-lag", "10", COUNT).aliases(&["min-slaves-max-lag"]).no_meaning(NO_REPLICATION);
    /// What a failed write of a replica does.
    PropagationErrorBehavior => choice("propagation-error-behavior", "ignore", &["ignore", "panic", "panic-on-replicas"]).no_meaning(NO_REPLICATION);
    /// How much of the stream a master keeps for replicas.
    ReplBacklogSize => memory("repl-backlog-size", "1mb", Bounds::new(1, i64::MAX).clamped(16384, i64::MAX)).no_meaning(NO_REPLICATION);
    /// How many seconds it is kept without replicas.
    ReplBacklogTtl => integer("repl-backlog-ttl", "3600", LONG).no_meaning(NO_REPLICATION);
    /// Gather small packets for replicas.
    ReplDisableTcpNodelay => switch("repl-disable-tcp-nodelay", "no").no_meaning(NO_REPLICATION);
    /// How a replica loads a snapshot from its master.
    ReplDisklessLoad => choice("repl-diskless-load", "disabled", &["disabled", "on-empty-db", "swapdb"]).no_meaning(NO_REPLICATION);
    /// Send snapshots without the disk.
    ReplDisklessSync => switch("repl-diskless-sync", "yes").no_meaning(NO_REPLICATION);
    /// How many seconds to wait for more replicas.
    ReplDisklessSyncDelay => integer("repl-diskless-sync-delay", "5", COUNT).no_meaning(NO_REPLICATION);
    /// How many replicas to wait for.
    ReplDisklessSyncMaxReplicas => integer("repl-diskless-sync-max-replicas", "0", COUNT).no_meaning(NO_REPLICATION);
    /// How many seconds between pings of replicas.
    ReplPingReplicaPeriod => integer("repl-ping-replica-period", "10", POSITIVE).aliases(&["repl-ping-slave-period"]).no_meaning(NO_REPLICATION);
    /// After how many seconds a silent link is given up.
    ReplTimeout => integer("repl-timeout", "60", POSITIVE).no_meaning(NO_REPLICATION);
    /// The address that a replica announces.
    ReplicaAnnounceIp => text("replica-announce-ip", "").aliases(&["slave-announce-ip"]).no_meaning(NO_REPLICATION);
    /// The port that a replica announces.
    ReplicaAnnouncePort => integer("replica-announce-port", "0", PORT).aliases(&["slave-announce-port"]).no_meaning(NO_REPLICATION);
    /// Let Sentinel see this replica.
    ReplicaAnnounced => switch("replica-announced", "yes").no_meaning(NO_REPLICATION);
    /// How much a replica keeps of the stream during a full sync.
    ReplicaFullSyncBufferLimit => memory("replica-full-sync-buffer-limit", "0", SIZE).no_meaning(NO_REPLICATION);
    /// Let a replica go on after it could not write.
    ReplicaIgnoreDiskWriteErrors => switch("replica-ignore-disk-write-errors", "no").no_meaning(NO_REPLICATION);
    /// Leave eviction to the master.
    ReplicaIgnoreMaxmemory => switch("replica-ignore-maxmemory", "yes").aliases(&["slave-ignore-maxmemory"]).no_meaning(NO_REPLICATION);
    /// Free a replica's old data in the background.
    ReplicaLazyFlush => switch("replica-lazy-flush", "no").aliases(&["slave-lazy-flush"]).no_meaning(NO_REPLICATION);
    /// Which replica is promoted first.
    ReplicaPriority => integer("replica-priority", "100", COUNT).aliases(&["slave-priority"]).no_meaning(NO_REPLICATION);
    /// Refuse writes to a replica.
    ReplicaReadOnly => switch("replica-read-only", "yes").aliases(&["slave-read-only"]).no_meaning(NO_REPLICATION);
    /// Answer from old data while the master is away.
    ReplicaServeStaleData => switch("replica-serve-stale-data", "yes").aliases(&["slave-serve-stale-data"]).no_meaning(NO_REPLICATION);
    /// Send the snapshot beside the stream.
    DualChannelReplicationEnabled => switch("dual-channel-replication-enabled", "no").no_meaning(NO_REPLICATION);

    // Cluster.

    /// Be a node of a cluster.
    ClusterEnabled => switch("cluster-enabled", "no").start_only().refused(NO_CLUSTER);
    /// The file of the cluster's state.
    ClusterConfigFile => text("cluster-config-file", "nodes.conf").start_only().no_meaning(NO_CLUSTER);
    /// How that file is saved.
    ClusterConfigSaveBehavior => choice("cluster-config-save-behavior", "sync", &["sync", "best-effort"]).no_meaning(NO_CLUSTER);
    /// The port of the cluster's bus.
    ClusterPort => integer("cluster-port", "0", PORT).start_only().no_meaning(NO_CLUSTER);
    /// After how many milliseconds a silent node is suspected.
    ClusterNodeTimeout => integer("cluster-node-timeout", "15000", LONG).no_meaning(NO_CLUSTER);
    /// How old a replica's data may be for a failover.
    ClusterReplicaValidityFactor => integer("cluster-replica-validity-factor", "10", COUNT).aliases(&["cluster-slave-validity-factor"]).no_meaning(NO_CLUSTER);
    /// How many replicas a master keeps.
    ClusterMigrationBarrier => integer("cluster-migration-barrier", "1", COUNT).no_meaning(NO_CLUSTER);
    /// Let replicas move to masters that have none.
    ClusterAllowReplicaMigration => switch("cluster-allow-replica-migration", "yes").no_meaning(NO_CLUSTER);
    /// Refuse commands while a slot has no owner.
    ClusterRequireFullCoverage => switch("cluster-require-full-coverage", "yes").no_meaning(NO_CLUSTER);
    /// Never promote this replica.
    ClusterReplicaNoFailover => switch("cluster-replica-no-failover", "no").aliases(&["cluster-slave-no-failover"]).no_meaning(NO_CLUSTER);
    /// Answer reads while the cluster is down.
    ClusterAllowReadsWhenDown => switch("cluster-allow-reads-when-down", "no").no_meaning(NO_CLUSTER);
    /// Serve sharded channels while the cluster is down.
    ClusterAllowPubsubshardWhenDown => switch("cluster-allow-pubsubshard-when-down", "yes").no_meaning(NO_CLUSTER);
    /// How much may wait for another node.
    ClusterLinkSendbufLimit => memory("cluster-link-sendbuf-limit", "0", SIZE).no_meaning(NO_CLUSTER);
    /// The address that the node announces.
    ClusterAnnounceIp => text("cluster-announce-ip", "").no_meaning(NO_CLUSTER);
    /// The port that the node announces.
    ClusterAnnouncePort => integer("cluster-announce-port", "0", PORT).no_meaning(NO_CLUSTER);
    /// The TLS port that the node announces.
    ClusterAnnounceTlsPort => integer("cluster-announce-tls-port", "0", PORT).no_meaning(NO_CLUSTER);
    /// The bus port that the node announces.
    ClusterAnnounceBusPort => integer("cluster-announce-bus-port", "0", PORT).no_meaning(NO_CLUSTER);
    /// The host name that the node announces.
    ClusterAnnounceHostname => special("cluster-announce-hostname", "", Kind::Text(TextRule::HostName)).no_meaning(NO_CLUSTER);
    /// The name of the node for people.
    ClusterAnnounceHumanNodename => text("cluster-announce-human-nodename", "").no_meaning(NO_CLUSTER);
    /// The IPv4 address for clients.
    ClusterAnnounceClientIpv4 => text("cluster-announce-client-ipv4", "").no_meaning(NO_CLUSTER);
    /// The IPv6 address for clients.
    ClusterAnnounceClientIpv6 => text("cluster-announce-client-ipv6", "").no_meaning(NO_CLUSTER);
    /// The port for clients.
    ClusterAnnounceClientPort => integer("cluster-announce-client-port", "0", PORT).no_meaning(NO_CLUSTER);
    /// The TLS port for clients.
    ClusterAnnounceClientTlsPort => integer("cluster-announce-client-tls-port", "0", PORT).no_meaning(NO_CLUSTER);
    /// By what clients are sent to another node.
    ClusterPreferredEndpointType => choice("cluster-preferred-endpoint-type", "ip", &["ip", "hostname", "unknown-endpoint"]).no_meaning(NO_CLUSTER);
    /// For how many seconds a forgotten node stays forgotten.
    ClusterBlacklistTtl => integer("cluster-blacklist-ttl", "60", LONG).no_meaning(NO_CLUSTER);
    /// For how many milliseconds a failover by hand may take.
    ClusterManualFailoverTimeout => integer("cluster-manual-failover-timeout", "5000", POSITIVE).no_meaning(NO_CLUSTER);
    /// How many migrations of slots are remembered.
    ClusterSlotMigrationLogMaxLen => integer("cluster-slot-migration-log-max-len", "1000", LONG).no_meaning(NO_CLUSTER);
    /// How much of the stream may be missing when a slot changes its owner.
    SlotMigrationMaxFailoverReplBytes => memory("slot-migration-max-failover-repl-bytes", "0", LONG).no_meaning(NO_CLUSTER);
    /// Keep statistics of slots.
    ClusterSlotStatsEnabled => switch("cluster-slot-stats-enabled", "no").no_meaning(NO_CLUSTER);
    /// How many commands are checked for whether a cluster would take them.
    ClusterCompatibilitySampleRatio => integer("cluster-compatibility-sample-ratio", "0", Bounds::new(0, 100)).no_meaning(NO_CLUSTER);

    // TLS.

    /// The TLS port; 0 listens on none.
    TlsPort => integer("tls-port", "0", PORT).refused(NO_TLS);
    /// The server's certificate.
    TlsCertFile => text("tls-cert-file", "").refused(NO_TLS);
    /// The server's key.
    TlsKeyFile => text("tls-key-file", "").refused(NO_TLS);
    /// The password of the server's key.
    TlsKeyFilePass => text("tls-key-file-pass", "").secret().refused(NO_TLS);
    /// The certificate for outgoing connections.
    TlsClientCertFile => text("tls-client-cert-file", "").refused(NO_TLS);
    /// The key for outgoing connections.
    TlsClientKeyFile => text("tls-client-key-file", "").refused(NO_TLS);
    /// The password of that key.
    TlsClientKeyFilePass => text("tls-client-key-file-pass", "").secret().refused(NO_TLS);
    /// The Diffie-Hellman parameters.
    TlsDhParamsFile => text("tls-dh-params-file", "").refused(NO_TLS);
    /// The certificates that are trusted.
    TlsCaCertFile => text("tls-ca-cert-file", "").refused(NO_TLS);
    /// A folder of certificates that are trusted.
    TlsCaCertDir => text("tls-ca-cert-dir", "").refused(NO_TLS);
    /// Ask clients for a certificate.
    TlsAuthClients => choice("tls-auth-clients", "yes", &["no", "yes", "optional"]).no_meaning(NO_TLS);
    /// Take the user from the client's certificate.
    TlsAuthClientsUser => choice("tls-auth-clients-user", "off", &["CN", "URI", "off"]).refused(NO_TLS);
    /// Reload certificates after this many seconds.
    TlsAutoReloadInterval => integer("tls-auto-reload-interval", "0", COUNT).no_meaning(NO_TLS);
    /// Use TLS to the master.
    TlsReplication => switch("tls-replication", "no").refused(NO_TLS);
    /// Use TLS on the cluster's bus.
    TlsCluster => switch("tls-cluster", "no").refused(NO_TLS);
    /// The versions of TLS.
    TlsProtocols => text("tls-protocols", "").refused(NO_TLS);
    /// The ciphers up to TLS 1.2.
    TlsCiphers => text("tls-ciphers", "").refused(NO_TLS);
    /// The ciphers of TLS 1.3.
    TlsCiphersuites => text("tls-ciphersuites", "").refused(NO_TLS);
    /// Prefer the server's ciphers.
    TlsPreferServerCiphers => switch("tls-prefer-server-ciphers", "no").no_meaning(NO_TLS);
    /// Resume sessions.
    TlsSessionCaching => switch("tls-session-caching", "yes").no_meaning(NO_TLS);
    /// How many sessions are kept.
    TlsSessionCacheSize => integer("tls-session-cache-size", "20480", COUNT).no_meaning(NO_TLS);
    /// For how many seconds a session is kept.
    TlsSessionCacheTimeout => integer("tls-session-cache-timeout", "300", COUNT).no_meaning(NO_TLS);
}

/// A line of redis.conf that is not a key: it cannot be read or set by `CONFIG`.
#[derive(Debug, Clone, Copy)]
pub struct Directive {
    /// Its name.
    pub name: &'static str,
    /// The least number of words that follow it.
    pub least_words: usize,
    /// One sentence for the documentation.
    pub summary: &'static str,
    /// Whether it does anything here.
    pub state: State,
}

/// Every directive that is not a key.
pub const DIRECTIVES: &[Directive] = &[
    Directive { name: "include", least_words: 1, summary: "Read another file in this place.", state: State::Works },
    Directive {
        name: "rename-command",
        least_words: 2,
        summary: "Give a command another name, or none.",
        state: State::Refused("commands keep their names"),
    },
    Directive { name: "user", least_words: 1, summary: "Declare a user.", state: State::Refused(NO_ACL) },
    Directive {
        name: "loadmodule",
        least_words: 1,
        summary: "Load a module.",
        state: State::Refused("there are no modules"),
    },
    Directive {
        name: "sentinel",
        least_words: 1,
        summary: "Configure Sentinel.",
        state: State::Refused("sentinel directive while not in sentinel mode"),
    },
    Directive {
        name: "io-threads-do-reads",
        least_words: 1,
        summary: "Read sockets on several threads.",
        state: State::NoMeaning("Redis 8 ignores it too"),
    },
    Directive {
        name: "list-max-ziplist-entries",
        least_words: 1,
        summary: "How many elements a compact list has.",
        state: State::NoMeaning("Redis has ignored it since 3.2"),
    },
    Directive {
        name: "list-max-ziplist-value",
        least_words: 1,
        summary: "How long an element of a compact list is.",
        state: State::NoMeaning("Redis has ignored it since 3.2"),
    },
];

impl Directive {
    /// The directive of this name, in any case.
    pub fn named(name: &[u8]) -> Option<&'static Directive> {
        DIRECTIVES.iter().find(|directive| directive.name.as_bytes().eq_ignore_ascii_case(name))
    }
}
