//! The flags of commands and keys and the ACL categories, with the names under which replies show them.

use bitflags::bitflags;

bitflags! {
    /// What a command does and where it is allowed, as `COMMAND INFO` names it.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct CommandFlags: u32 {
        /// May change data.
        const WRITE = 1;
        /// Reads data and changes none.
        const READONLY = 1 << 1;
        /// Refused when memory is full.
        const DENYOOM = 1 << 2;
        /// For operators.
        const ADMIN = 1 << 3;
        /// Publish and subscribe.
        const PUBSUB = 1 << 4;
        /// Not in scripts.
        const NOSCRIPT = 1 << 5;
        /// May wait.
        const BLOCKING = 1 << 6;
        /// Allowed while data is loaded.
        const LOADING = 1 << 7;
        /// Allowed on a replica without its primary.
        const STALE = 1 << 8;
        /// Not shown to MONITOR.
        const SKIP_MONITOR = 1 << 9;
        /// Not in the slow log.
        const SKIP_SLOWLOG = 1 << 10;
        /// Behaves as after ASKING.
        const ASKING = 1 << 11;
        /// Takes constant or logarithmic time.
        const FAST = 1 << 12;
        /// Allowed before authentication.
        const NO_AUTH = 1 << 13;
        /// May be replicated though it is no write.
        const MAY_REPLICATE = 1 << 14;
        /// Its keys may be absent.
        const NO_MANDATORY_KEYS = 1 << 15;
        /// Refused while a replica loads data beside serving old data.
        const NO_ASYNC_LOADING = 1 << 16;
        /// Not between MULTI and EXEC.
        const NO_MULTI = 1 << 17;
        /// Only the key specs tell where its keys are.
        const MOVABLEKEYS = 1 << 18;
        /// Allowed while a script runs too long.
        const ALLOW_BUSY = 1 << 19;
    }
}

bitflags! {
    /// ACL categories.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Categories: u32 {
        /// Keys of any type.
        const KEYSPACE = 1;
        /// Reads data.
        const READ = 1 << 1;
        /// Changes data.
        const WRITE = 1 << 2;
        /// Sets.
        const SET = 1 << 3;
        /// Sorted sets.
        const SORTEDSET = 1 << 4;
        /// Lists.
        const LIST = 1 << 5;
        /// Hashes.
        const HASH = 1 << 6;
        /// Strings.
        const STRING = 1 << 7;
        /// Arrays.
        const ARRAY = 1 << 8;
        /// Bitmaps.
        const BITMAP = 1 << 9;
        /// HyperLogLogs.
        const HYPERLOGLOG = 1 << 10;
        /// Places on the globe.
        const GEO = 1 << 11;
        /// Streams.
        const STREAM = 1 << 12;
        /// Publish and subscribe.
        const PUBSUB = 1 << 13;
        /// For operators.
        const ADMIN = 1 << 14;
        /// Constant or logarithmic time.
        const FAST = 1 << 15;
        /// Everything that is not fast.
        const SLOW = 1 << 16;
        /// May wait.
        const BLOCKING = 1 << 17;
        /// Wants a second thought.
        const DANGEROUS = 1 << 18;
        /// The connection itself.
        const CONNECTION = 1 << 19;
        /// MULTI and its kin.
        const TRANSACTION = 1 << 20;
        /// Scripts and functions.
        const SCRIPTING = 1 << 21;
    }
}

bitflags! {
    /// What a command does with a key.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct KeyFlags: u16 {
        /// Reads the value.
        const RO = 1;
        /// Reads and changes the value.
        const RW = 1 << 1;
        /// Overwrites the value.
        const OW = 1 << 2;
        /// Removes the key.
        const RM = 1 << 3;
        /// The reply shows something of the value.
        const ACCESS = 1 << 4;
        /// Changes what is there.
        const UPDATE = 1 << 5;
        /// Adds without changing what is there.
        const INSERT = 1 << 6;
        /// Removes some of what is there, on purpose.
        const DELETE = 1 << 7;
        /// Not a key, though it is routed like one.
        const NOT_KEY = 1 << 8;
        /// There may be more keys than the spec finds.
        const INCOMPLETE = 1 << 9;
        /// The true flags depend on the request.
        const VARIABLE_FLAGS = 1 << 10;
    }
}

impl CommandFlags {
    /// As `COMMAND INFO` writes them.
    pub fn names(self) -> impl Iterator<Item = &'static str> + Clone {
        const NAMES: [(CommandFlags, &str); 20] = [
            (CommandFlags::WRITE, "write"),
            (CommandFlags::READONLY, "readonly"),
            (CommandFlags::DENYOOM, "denyoom"),
            (CommandFlags::ADMIN, "admin"),
            (CommandFlags::PUBSUB, "pubsub"),
            (CommandFlags::NOSCRIPT, "noscript"),
            (CommandFlags::BLOCKING, "blocking"),
            (CommandFlags::LOADING, "loading"),
            (CommandFlags::STALE, "stale"),
            (CommandFlags::SKIP_MONITOR, "skip_monitor"),
            (CommandFlags::SKIP_SLOWLOG, "skip_slowlog"),
            (CommandFlags::ASKING, "asking"),
            (CommandFlags::FAST, "fast"),
            (CommandFlags::NO_AUTH, "no_auth"),
            (CommandFlags::MAY_REPLICATE, "may_replicate"),
            (CommandFlags::NO_MANDATORY_KEYS, "no_mandatory_keys"),
            (CommandFlags::NO_ASYNC_LOADING, "no_async_loading"),
            (CommandFlags::NO_MULTI, "no_multi"),
            (CommandFlags::MOVABLEKEYS, "movablekeys"),
            (CommandFlags::ALLOW_BUSY, "allow_busy"),
        ];
        NAMES.into_iter().filter(move |(flag, _)| self.contains(*flag)).map(|(_, name)| name)
    }
}

impl Categories {
    const NAMES: [(Categories, &'static str); 22] = [
        (Categories::KEYSPACE, "@keyspace"),
        (Categories::READ, "@read"),
        (Categories::WRITE, "@write"),
        (Categories::SET, "@set"),
        (Categories::SORTEDSET, "@sortedset"),
        (Categories::LIST, "@list"),
        (Categories::HASH, "@hash"),
        (Categories::STRING, "@string"),
        (Categories::ARRAY, "@array"),
        (Categories::BITMAP, "@bitmap"),
        (Categories::HYPERLOGLOG, "@hyperloglog"),
        (Categories::GEO, "@geo"),
        (Categories::STREAM, "@stream"),
        (Categories::PUBSUB, "@pubsub"),
        (Categories::ADMIN, "@admin"),
        (Categories::FAST, "@fast"),
        (Categories::SLOW, "@slow"),
        (Categories::BLOCKING, "@blocking"),
        (Categories::DANGEROUS, "@dangerous"),
        (Categories::CONNECTION, "@connection"),
        (Categories::TRANSACTION, "@transaction"),
        (Categories::SCRIPTING, "@scripting"),
    ];

    /// As `COMMAND INFO` writes them, with the `@`.
    pub fn names(self) -> impl Iterator<Item = &'static str> + Clone {
        Self::NAMES.into_iter().filter(move |(category, _)| self.contains(*category)).map(|(_, name)| name)
    }

    /// All that there are, with their names and the `@`. Arrays, which only Redis 8.10 has, are no type here yet.
    pub fn listed() -> impl Iterator<Item = (Self, &'static str)> {
        Self::NAMES.into_iter().filter(|(category, _)| *category != Self::ARRAY)
    }

    /// The category of this name (without the `@`), in any case of letters.
    pub fn named(name: &[u8]) -> Option<Self> {
        let is = |known: &str| known.as_bytes()[1..].eq_ignore_ascii_case(name);
        Self::NAMES.into_iter().find(|(_, known)| is(known)).map(|(category, _)| category)
    }
}

impl KeyFlags {
    /// As `COMMAND INFO` writes them.
    pub fn names(self) -> impl Iterator<Item = &'static str> + Clone {
        const NAMES: [(KeyFlags, &str); 11] = [
            (KeyFlags::RO, "RO"),
            (KeyFlags::RW, "RW"),
            (KeyFlags::OW, "OW"),
            (KeyFlags::RM, "RM"),
            (KeyFlags::ACCESS, "access"),
            (KeyFlags::UPDATE, "update"),
            (KeyFlags::INSERT, "insert"),
            (KeyFlags::DELETE, "delete"),
            (KeyFlags::NOT_KEY, "not_key"),
            (KeyFlags::INCOMPLETE, "incomplete"),
            (KeyFlags::VARIABLE_FLAGS, "variable_flags"),
        ];
        NAMES.into_iter().filter(move |(flag, _)| self.contains(*flag)).map(|(_, name)| name)
    }
}
