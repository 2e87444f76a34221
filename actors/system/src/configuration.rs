//! The configuration in force, shared by all cores and replaced as a whole by CONFIG SET.
//!
//! Readers keep an `Arc` of it and look at one atomic counter to learn that there is a newer one, so the data path takes no
//! lock for it.

use simurgh_protocol::config::{Config, MaxMemoryPolicy, Settings};
use simurgh_storage::Class;
use simurgh_storage::access::AccessPolicy;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// One state of the configuration, in the forms in which it is read.
#[derive(Debug)]
pub struct Live {
    /// By name and as text: CONFIG GET, SET and REWRITE.
    pub settings: Settings,
    /// By field.
    pub config: Config,
    /// What the keyspace reads.
    pub storage: simurgh_storage::Settings,
}

impl Live {
    pub(crate) fn new(settings: Settings, list_plain: Option<u64>) -> Self {
        let mut config = settings.config();
        config.packing.list_plain = list_plain;
        let storage = simurgh_storage::Settings {
            access: access_policy(&config),
            bulk_max: config.proto_max_bulk_bytes,
            // Freeing is always done off the path.
            lazy_flush: true,
            packing: config.packing.clone(),
            events: Class::of_letters(&config.notify_keyspace_events),
        };
        Self { settings, config, storage }
    }
}

fn access_policy(config: &Config) -> AccessPolicy {
    if MaxMemoryPolicy::is_lfu(config.max_memory_policy) {
        AccessPolicy::Lfu { log_factor: config.lfu_log_factor, decay_minutes: config.lfu_decay_minutes }
    } else {
        AccessPolicy::Lru
    }
}

/// The configuration of a node.
#[derive(Debug)]
pub struct Configuration {
    generation: AtomicU64,
    current: Mutex<Arc<Live>>,
    /// What DEBUG QUICKLIST-PACKED-THRESHOLD has said; 0 for nothing.
    list_plain: AtomicU64,
}

impl Configuration {
    /// As it is at the start.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let current = Mutex::new(Arc::new(Live::new(settings, None)));
        Self { generation: AtomicU64::new(0), current, list_plain: AtomicU64::new(0) }
    }

    /// Grows whenever the configuration is replaced.
    #[must_use]
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// What is in force now.
    #[must_use]
    pub fn current(&self) -> Arc<Live> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces it.
    pub fn replace(&self, settings: Settings) {
        let list_plain = Some(self.list_plain.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0);
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(Live::new(settings, list_plain));
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// From how many bytes on elements of lists are nodes of their own; 0 for what `list-max-listpack-size` means.
    pub fn set_list_plain(&self, bytes: u64) {
        self.list_plain.store(bytes, Ordering::Relaxed);
        self.replace(self.current().settings.clone());
    }
}
