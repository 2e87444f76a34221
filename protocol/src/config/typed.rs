//! The configuration as the code wants it: one plain field for each key that works, made from [`Settings`] at the start
//! and after each `CONFIG SET`.

use super::packing::Packing;
use super::settings::Settings;
use super::table::{FSYNC_MODES, Key, LOG_FORMATS, LOG_LEVELS, PERMISSIONS, POLICIES, SUPERVISORS};
use super::value::{OutputLimits, SavePoint, Share, Value};

/// The configuration of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The TCP port; 0 listens on none.
    pub port: u16,
    /// The addresses to listen on, each perhaps after a `-`, which lets it be missing. Empty means all.
    pub bind: Vec<String>,
    /// The path of a Unix socket.
    pub unix_socket: Option<Vec<u8>>,
    /// The mode of the Unix socket; `None` leaves it to the umask.
    pub unix_socket_mode: Option<u32>,
    /// How many connections may wait to be accepted.
    pub tcp_backlog: u32,
    /// Seconds between probes of an idle connection; 0 sends none.
    pub tcp_keepalive_seconds: u32,
    /// Close a client that was idle for so long; 0 never does.
    pub timeout_seconds: u32,
    /// Refuse connections from other machines while there is no password and no explicit address.
    pub protected_mode: bool,
    /// How many clients may be connected.
    pub max_clients: u32,
    /// The longest argument of a command.
    pub proto_max_bulk_bytes: u64,
    /// How much of an unfinished request a client may have outstanding.
    pub client_query_buffer_bytes_max: u64,
    /// How much output may wait for a client.
    pub client_output_buffer_limits: OutputLimits,
    /// Up to which size collections are packed.
    pub packing: Packing,
    /// How many threads; 0 means one for each core.
    pub threads: u32,
    /// How many shards; 0 means the default.
    pub shards: u32,
    /// Whether the log is written through io_uring.
    pub log_io_uring: bool,
    /// How many databases.
    pub databases: u32,
    /// The folder of the data files.
    pub dir: Vec<u8>,
    /// Who is told when the server is ready.
    pub supervised: Supervised,
    /// A file for the number of the process.
    pub pid_file: Option<Vec<u8>>,
    /// How much is logged.
    pub log_level: LogLevel,
    /// Where the log goes; `None` is standard output.
    pub log_file: Option<Vec<u8>>,
    /// How a line of the log looks.
    pub log_format: LogFormat,
    /// How often a second periodic work runs, from 1 to 500.
    pub hz: u32,
    /// The version of Redis that INFO and HELLO name.
    pub advertised_version: String,
    /// The password of the default user.
    pub require_pass: Option<Vec<u8>>,
    /// Who may use DEBUG.
    pub enable_debug_command: Permission,
    /// Who may set protected keys.
    pub enable_protected_configs: Permission,
    /// How much memory the data may use; 0 means no limit.
    pub max_memory_bytes: u64,
    /// What goes when it is used up.
    pub max_memory_policy: MaxMemoryPolicy,
    /// How many keys are compared to find one to evict.
    pub max_memory_samples: u32,
    /// From 0 to 100.
    pub max_memory_eviction_tenacity: u32,
    /// How much memory all clients together may use; 0 bytes means no limit.
    pub max_memory_clients: Share,
    /// How slowly access counters grow.
    pub lfu_log_factor: u32,
    /// After how many minutes an access counter loses one.
    pub lfu_decay_minutes: u32,
    /// From 1 to 10.
    pub active_expire_effort: u32,
    /// Whether there is a log of all writes.
    pub append_only: bool,
    /// What a reply promises about the log.
    pub append_fsync: AppendFsync,
    /// The base of the names of the log's files.
    pub append_file_name: String,
    /// The folder of the log's files, below `dir`.
    pub append_dir_name: String,
    /// Start although the end of the log is cut.
    pub aof_load_truncated: bool,
    /// Whether the base of the log is a snapshot, or commands.
    pub aof_use_rdb_preamble: bool,
    /// Sync a rewrite's base now and then while it is written.
    pub aof_rewrite_incremental_sync: bool,
    /// Rewrite the log when it has grown by so many percent; 0 never does.
    pub auto_rewrite_percentage: u64,
    /// Do not rewrite a log that is smaller.
    pub auto_rewrite_bytes_least: u64,
    /// When a snapshot is due.
    pub save_points: Vec<SavePoint>,
    /// The name of the snapshot's file, in `dir`.
    pub db_file_name: String,
    /// Compress strings in snapshots.
    pub rdb_compression: bool,
    /// End snapshots in a sum.
    pub rdb_checksum: bool,
    /// Microseconds for each key of a snapshot, or, below 0, keys for each microsecond.
    pub rdb_key_save_delay: i64,
    /// Sync a snapshot now and then while it is written.
    pub rdb_incremental_sync: bool,
    /// Refuse writes when the last snapshot failed.
    pub stop_writes_on_save_error: bool,
    /// `aof-timestamp-enabled`.
    pub aof_tells_time: bool,
    /// After how many milliseconds others are told of a script that runs; 0 for never.
    pub busy_reply_threshold_ms: u64,
    /// Log commands that took so long; `None` logs none.
    pub slowlog_microseconds_least: Option<u64>,
    /// How many slow commands are kept.
    pub slowlog_len_max: u64,
    /// Remember events that took so long; `None` remembers none.
    pub latency_monitor_milliseconds_least: Option<u64>,
    /// Keep a histogram of each command's latency.
    pub latency_tracking: bool,
    /// The percentiles that INFO latencystats gives.
    pub latency_percentiles: Vec<f64>,
    /// The classes of keyspace events that are told, by their letters.
    pub notify_keyspace_events: Vec<u8>,
    /// How many keys client tracking remembers; 0: any number.
    pub tracking_table_keys_max: u64,
}

impl Settings {
    /// The configuration as plain fields.
    pub fn config(&self) -> Config {
        Config {
            port: self.number(Key::Port),
            bind: self.words(Key::Bind),
            unix_socket: self.filled(Key::UnixSocket),
            unix_socket_mode: Some(self.number(Key::UnixSocketPerm)).filter(|&mode: &u32| mode != 0),
            tcp_backlog: self.number(Key::TcpBacklog),
            tcp_keepalive_seconds: self.number(Key::TcpKeepalive),
            timeout_seconds: self.number(Key::Timeout),
            protected_mode: self.on(Key::ProtectedMode),
            max_clients: self.number(Key::MaxClients),
            proto_max_bulk_bytes: self.number(Key::ProtoMaxBulkLen),
            client_query_buffer_bytes_max: self.number(Key::ClientQueryBufferLimit),
            client_output_buffer_limits: self.output_limits(Key::ClientOutputBufferLimit),
            threads: self.number(Key::Threads),
            shards: self.number(Key::Shards),
            log_io_uring: self.on(Key::LogIoUring),
            packing: self.packing(),
            databases: self.number(Key::Databases),
            dir: self.bytes(Key::Dir),
            supervised: self.chosen(Key::Supervised, &Supervised::BY_NAME),
            pid_file: self.filled(Key::PidFile),
            log_level: self.chosen(Key::LogLevel, &LogLevel::BY_NAME),
            log_file: self.filled(Key::LogFile),
            log_format: self.chosen(Key::LogFormat, &LogFormat::BY_NAME),
            hz: self.number(Key::Hz),
            advertised_version: self.string(Key::AdvertisedVersion),
            require_pass: self.filled(Key::RequirePass),
            enable_debug_command: self.chosen(Key::EnableDebugCommand, &Permission::BY_NAME),
            enable_protected_configs: self.chosen(Key::EnableProtectedConfigs, &Permission::BY_NAME),
            max_memory_bytes: self.number(Key::MaxMemory),
            max_memory_policy: self.chosen(Key::MaxMemoryPolicy, &MaxMemoryPolicy::BY_NAME),
            max_memory_samples: self.number(Key::MaxMemorySamples),
            max_memory_eviction_tenacity: self.number(Key::MaxMemoryEvictionTenacity),
            max_memory_clients: self.share(Key::MaxMemoryClients),
            lfu_log_factor: self.number(Key::LfuLogFactor),
            lfu_decay_minutes: self.number(Key::LfuDecayTime),
            active_expire_effort: self.number(Key::ActiveExpireEffort),
            append_only: self.on(Key::AppendOnly),
            append_fsync: self.chosen(Key::AppendFsync, &AppendFsync::BY_NAME),
            append_file_name: self.string(Key::AppendFileName),
            append_dir_name: self.string(Key::AppendDirName),
            aof_load_truncated: self.on(Key::AofLoadTruncated),
            aof_use_rdb_preamble: self.on(Key::AofUseRdbPreamble),
            aof_rewrite_incremental_sync: self.on(Key::AofRewriteIncrementalFsync),
            auto_rewrite_percentage: self.number(Key::AutoAofRewritePercentage),
            auto_rewrite_bytes_least: self.number(Key::AutoAofRewriteMinSize),
            save_points: self.save_points(Key::Save),
            db_file_name: self.string(Key::DbFileName),
            rdb_compression: self.on(Key::RdbCompression),
            rdb_checksum: self.on(Key::RdbChecksum),
            rdb_key_save_delay: self.integer(Key::RdbKeySaveDelay),
            rdb_incremental_sync: self.on(Key::RdbSaveIncrementalFsync),
            stop_writes_on_save_error: self.on(Key::StopWritesOnBgsaveError),
            aof_tells_time: self.on(Key::AofTimestampEnabled),
            busy_reply_threshold_ms: self.number(Key::BusyReplyThreshold),
            slowlog_microseconds_least: u64::try_from(self.integer(Key::SlowlogLogSlowerThan)).ok(),
            slowlog_len_max: self.number(Key::SlowlogMaxLen),
            latency_monitor_milliseconds_least: Some(self.number(Key::LatencyMonitorThreshold))
                .filter(|&least| least > 0),
            latency_tracking: self.on(Key::LatencyTracking),
            latency_percentiles: self.percentiles(Key::LatencyTrackingInfoPercentiles),
            notify_keyspace_events: self.bytes(Key::NotifyKeyspaceEvents),
            tracking_table_keys_max: self.number(Key::TrackingTableMaxKeys),
        }
    }

    fn on(&self, key: Key) -> bool {
        let Value::Bool(on) = self.value(key) else { other_kind(key) };
        *on
    }

    fn integer(&self, key: Key) -> i64 {
        let Value::Integer(number) = self.value(key) else { other_kind(key) };
        *number
    }

    /// A number whose bounds in the table fit the field's type.
    pub(super) fn number<T: TryFrom<i64>>(&self, key: Key) -> T {
        T::try_from(self.integer(key)).ok().expect("the bounds in the table fit the field; a test checks both ends")
    }

    fn bytes(&self, key: Key) -> Vec<u8> {
        let Value::Text(text) = self.value(key) else { other_kind(key) };
        text.clone()
    }

    fn string(&self, key: Key) -> String {
        String::from_utf8_lossy(&self.bytes(key)).into_owned()
    }

    fn filled(&self, key: Key) -> Option<Vec<u8>> {
        Some(self.bytes(key)).filter(|text| !text.is_empty())
    }

    fn words(&self, key: Key) -> Vec<String> {
        let Value::Words(words) = self.value(key) else { other_kind(key) };
        words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }

    fn chosen<T: Copy, const N: usize>(&self, key: Key, by_name: &[T; N]) -> T {
        let Value::Choice(at) = self.value(key) else { other_kind(key) };
        by_name[*at]
    }

    fn share(&self, key: Key) -> Share {
        let Value::Share(share) = self.value(key) else { other_kind(key) };
        *share
    }

    fn save_points(&self, key: Key) -> Vec<SavePoint> {
        let Value::SavePoints(points) = self.value(key) else { other_kind(key) };
        points.clone()
    }

    fn output_limits(&self, key: Key) -> OutputLimits {
        let Value::OutputLimits(limits) = self.value(key) else { other_kind(key) };
        *limits
    }

    fn percentiles(&self, key: Key) -> Vec<f64> {
        let Value::Percentiles(percentiles) = self.value(key) else { other_kind(key) };
        percentiles.clone()
    }
}

/// A value has the shape of its row's kind; a test reads every field, so a field that asks for another never ships.
fn other_kind(key: Key) -> ! {
    unreachable!("{key:?} is {:?} in the table", key.row().kind)
}

/// An enum whose variants are the names of a choice in the table: `BY_NAME` has the variant of each name.
macro_rules! chosen {
    (
        $(#[$about:meta])+ $name:ident by $names:ident: [$($listed:ident),+]
        { $( $(#[$doc:meta])+ $variant:ident, )+ }
    ) => {
        $(#[$about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $( $(#[$doc])+ $variant, )+ }

        impl $name {
            const BY_NAME: [$name; $names.len()] = [$( $name::$listed ),+];

            /// The value as redis.conf writes it.
            pub fn name(self) -> &'static str {
                let at = Self::BY_NAME.iter().position(|&other| other == self);
                at.map_or("", |at| $names[at])
            }
        }
    };
}

chosen! {
    /// What a reply to a write promises.
    AppendFsync by FSYNC_MODES: [EverySecond, Always, No, Write] {
        /// In memory; the log is synced every second.
        EverySecond,
        /// On the disk.
        Always,
        /// In memory; the kernel decides when the log reaches the disk.
        No,
        /// Handed to the kernel; the log is synced every second.
        Write,
    }
}

chosen! {
    /// What goes when the memory is used up.
    MaxMemoryPolicy by POLICIES: [
        VolatileLru, VolatileLfu, VolatileRandom, VolatileTtl, AllkeysLru, AllkeysLfu, AllkeysRandom, NoEviction
    ] {
        /// The key with an expiry that was unused for longest.
        VolatileLru,
        /// The key with an expiry that is used least.
        VolatileLfu,
        /// Any key with an expiry.
        VolatileRandom,
        /// The key that expires next.
        VolatileTtl,
        /// The key that was unused for longest.
        AllkeysLru,
        /// The key that is used least.
        AllkeysLfu,
        /// Any key.
        AllkeysRandom,
        /// Nothing: commands that need memory are refused.
        NoEviction,
    }
}

impl MaxMemoryPolicy {
    /// Whether access counters are kept instead of access times.
    pub fn is_lfu(self) -> bool {
        matches!(self, MaxMemoryPolicy::VolatileLfu | MaxMemoryPolicy::AllkeysLfu)
    }

    /// Whether access times decide.
    pub fn is_lru(self) -> bool {
        matches!(self, MaxMemoryPolicy::VolatileLru | MaxMemoryPolicy::AllkeysLru)
    }
}

chosen! {
    /// How much is logged.
    LogLevel by LOG_LEVELS: [Debug, Verbose, Notice, Warning, Nothing] {
        /// Everything.
        Debug,
        /// Much, but not everything.
        Verbose,
        /// What an operator wants to see.
        Notice,
        /// What went wrong.
        Warning,
        /// Nothing.
        Nothing,
    }
}

chosen! {
    /// How a line of the log looks.
    LogFormat by LOG_FORMATS: [Text, Json, Text] {
        /// For people.
        Text,
        /// For machines.
        Json,
    }
}

chosen! {
    /// The service manager that is told when the server is ready.
    Supervised by SUPERVISORS: [Upstart, Systemd, Auto, No] {
        /// By stopping itself.
        Upstart,
        /// By a message to `NOTIFY_SOCKET`.
        Systemd,
        /// Whichever the environment shows.
        Auto,
        /// None.
        No,
    }
}

chosen! {
    /// Who may do something.
    Permission by PERMISSIONS: [Nobody, Everybody, Local] {
        /// Nobody.
        Nobody,
        /// Everybody.
        Everybody,
        /// Connections from this machine.
        Local,
    }
}

impl Permission {
    /// Whether a client may, which is `local` if it is on this machine.
    pub fn allows(self, local: bool) -> bool {
        match self {
            Permission::Nobody => false,
            Permission::Everybody => true,
            Permission::Local => local,
        }
    }
}
