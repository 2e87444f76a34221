//! The texts of scripts, by their digests. Those that came with EVAL are kept as long as they are among the last used;
//! those of SCRIPT LOAD until SCRIPT FLUSH.

use simurgh_scripting::{Script, ScriptFlags};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many scripts of EVAL are kept.
const EVAL_SCRIPTS_MAX: usize = 500;

#[derive(Debug)]
struct Kept {
    script: Arc<Script>,
    /// When it was used last, if it may be evicted.
    used: Option<u64>,
}

/// The scripts that are kept.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    scripts: BTreeMap<Box<str>, Kept>,
    /// The digests of those that may be evicted, by their last use.
    by_use: BTreeMap<u64, Box<str>>,
    uses: u64,
    evicted: u64,
    flushes: u64,
    bytes: usize,
}

impl Cache {
    /// A script, which is used now.
    pub fn find(&mut self, digest: &str) -> Option<Arc<Script>> {
        let kept = self.scripts.get_mut(digest)?;
        if let Some(used) = &mut kept.used
            && *used != self.uses
        {
            let name = self.by_use.remove(used)?;
            self.uses += 1;
            *used = self.uses;
            self.by_use.insert(self.uses, name);
        }
        Some(kept.script.clone())
    }

    /// The flags of a script, which is not used.
    pub fn flags(&self, digest: &str) -> Option<ScriptFlags> {
        self.scripts.get(digest).map(|kept| kept.script.flags)
    }

    /// Whether a script is kept.
    pub fn has(&self, digest: &str) -> bool {
        self.scripts.contains_key(digest)
    }

    /// Keeps the script of an EVAL.
    pub fn keep_for_now(&mut self, digest: &str, script: Arc<Script>) {
        if self.by_use.len() >= EVAL_SCRIPTS_MAX
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.forget(&oldest);
            self.evicted += 1;
        }
        self.uses += 1;
        self.by_use.insert(self.uses, digest.into());
        self.bytes += script.source.len();
        self.scripts.insert(digest.into(), Kept { script, used: Some(self.uses) });
    }

    /// Keeps the script of a SCRIPT LOAD, until it is flushed.
    pub fn keep(&mut self, digest: &str, script: Arc<Script>) {
        if let Some(kept) = self.scripts.get_mut(digest) {
            if let Some(used) = kept.used.take() {
                self.by_use.remove(&used);
            }
            return;
        }
        self.bytes += script.source.len();
        self.scripts.insert(digest.into(), Kept { script, used: None });
    }

    fn forget(&mut self, digest: &str) {
        if let Some(kept) = self.scripts.remove(digest) {
            self.bytes -= kept.script.source.len();
        }
    }

    /// Forgets all scripts.
    pub fn flush(&mut self) {
        *self = Self { evicted: self.evicted, flushes: self.flushes + 1, ..Self::default() };
    }

    /// How many times it has been flushed.
    pub fn flushes(&self) -> u64 {
        self.flushes
    }

    /// How many scripts are kept.
    pub fn len(&self) -> usize {
        self.scripts.len()
    }

    /// How many have been evicted.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Bytes of the texts.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str) -> Arc<Script> {
        Arc::new(Script::new(text.as_bytes()).expect("a script"))
    }

    #[test]
    fn the_least_used_of_eval_go_first() {
        let mut cache = Cache::default();
        cache.keep("loaded", script("0"));
        for number in 0..EVAL_SCRIPTS_MAX {
            cache.keep_for_now(&number.to_string(), script("12"));
        }
        assert!(cache.find("0").is_some());
        cache.keep("1", script("12"));
        cache.keep_for_now("new", script("12"));
        cache.keep_for_now("newer", script("12"));
        assert!(cache.has("0") && cache.has("1") && cache.has("loaded") && cache.has("newer") && !cache.has("2"));
        assert_eq!((cache.len(), cache.evicted(), cache.bytes()), (502, 1, 1 + 2 * 501));
        cache.flush();
        assert_eq!((cache.len(), cache.evicted(), cache.bytes(), cache.flushes()), (0, 1, 0, 1));
    }
}
