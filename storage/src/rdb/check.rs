//! The logic of `simurgh check-rdb`: reads a file as the server would, values and all, and says what is in it and what is wrong.

use super::kind::type_name;
use super::read::{Item, RawItem, ReadError, Reader};
use super::value::Loading;
use crate::key_hash::KeyHasher;
use simurgh_protocol::config::{Packing, Settings};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Length of the file.
    pub file_bytes: u64,
    /// `REDIS0012` or the like, if the file begins so.
    pub signature: Option<String>,
    /// The auxiliary fields, in order.
    pub aux: Vec<(String, String)>,
    /// Keys of each type.
    pub types: BTreeMap<&'static str, u64>,
    /// Keys of each database.
    pub databases: BTreeMap<u32, u64>,
    /// Keys that expire.
    pub expires: u64,
    /// Those of them whose time had come at the time of the check.
    pub expired: u64,
    /// Libraries of functions.
    pub functions: u64,
    /// Modules that left data beside the keys.
    pub modules: BTreeSet<String>,
    /// The key that was read last, and where its entry begins.
    pub last_key: Option<(String, u64)>,
    /// Bytes behind the end of the RDB part: the records of an AOF file that begins with one.
    pub rest_bytes: u64,
    /// Why the server would refuse it.
    pub error: Option<ReadError>,
}

impl Report {
    /// Whether the server takes all of it as it is.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.error.is_none() && self.rest_bytes == 0
    }

    /// Keys of all types.
    #[must_use]
    pub fn keys(&self) -> u64 {
        self.types.values().sum()
    }
}

/// A check in progress.
#[derive(Debug)]
pub struct Check {
    reader: Reader,
    packing: Packing,
    hasher: KeyHasher,
    now_ms: i64,
    report: Report,
}

impl Check {
    /// A check at the time `now_ms`.
    #[must_use]
    pub fn new(now_ms: i64) -> Self {
        Self {
            reader: Reader::new(),
            packing: Settings::default().config().packing,
            hasher: KeyHasher::new(0),
            now_ms,
            report: Report {
                file_bytes: 0,
                signature: None,
                aux: Vec::new(),
                types: BTreeMap::new(),
                databases: BTreeMap::new(),
                expires: 0,
                expired: 0,
                functions: 0,
                modules: BTreeSet::new(),
                last_key: None,
                rest_bytes: 0,
                error: None,
            },
        }
    }

    /// Takes the file's next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.report.file_bytes == 0 {
            self.report.signature = bytes.get(..9).map(shown);
        }
        self.report.file_bytes += bytes.len() as u64;
        if self.report.error.is_none() {
            self.reader.feed(bytes);
            self.drain();
        }
    }

    /// The file has no more bytes.
    #[must_use]
    pub fn finish(mut self) -> Report {
        if self.report.error.is_none() {
            self.reader.finish();
            self.drain();
        }
        if self.report.error.is_none() && !self.reader.is_ended() {
            self.report.error = Some(ReadError::Truncated(self.reader.offset()));
        }
        if self.reader.is_ended() {
            self.report.rest_bytes = self.report.file_bytes - self.reader.offset();
        }
        self.report
    }

    fn drain(&mut self) {
        let loading = Loading { packing: &self.packing, hasher: &self.hasher, string_bytes_max: crate::LENGTH_MAX };
        loop {
            match self.reader.next_raw(loading.string_bytes_max) {
                Ok(Some(item)) => {
                    if let Err(error) = self.report.note(item, &loading, self.now_ms) {
                        self.report.error = Some(error);
                        return;
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    self.report.error = Some(error);
                    return;
                }
            }
        }
    }
}

impl Report {
    fn note(&mut self, item: RawItem<'_>, loading: &Loading<'_>, now_ms: i64) -> Result<(), ReadError> {
        match item {
            RawItem::Key(raw) => {
                self.last_key = Some((shown(&raw.key), raw.offset));
                let (kind, database, expire_at_ms) = (raw.kind, raw.database, raw.expire_at_ms);
                raw.build(loading)?;
                *self.types.entry(type_name(kind).unwrap_or("value")).or_default() += 1;
                *self.databases.entry(database).or_default() += 1;
                self.expires += u64::from(expire_at_ms.is_some());
                self.expired += u64::from(expire_at_ms.is_some_and(|at| at <= now_ms));
            }
            RawItem::Other(Item::Aux { name, value }) => self.aux.push((shown(&name), shown(&value))),
            RawItem::Other(Item::Library { .. }) => self.functions += 1,
            RawItem::Other(Item::ModuleAux { module }) => {
                self.modules.insert(module.to_string());
            }
            RawItem::Other(Item::Resize { .. } | Item::Key { .. } | Item::End) => {}
        }
        Ok(())
    }
}

/// Bytes for a person to read.
fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signature = self.signature.as_deref().unwrap_or("none");
        writeln!(f, "file: {} bytes, signature {signature}", self.file_bytes)?;
        for (name, value) in &self.aux {
            writeln!(f, "field {name}: {value}")?;
        }
        writeln!(f, "keys: {}, {} of them expire, {} have expired", self.keys(), self.expires, self.expired)?;
        for (name, count) in &self.types {
            writeln!(f, "  {name}: {count}")?;
        }
        for (database, count) in &self.databases {
            writeln!(f, "  in database {database}: {count}")?;
        }
        if self.functions > 0 {
            writeln!(f, "function libraries: {}", self.functions)?;
        }
        for module in &self.modules {
            writeln!(f, "data of module {module} beside the keys: skipped when the file is loaded")?;
        }
        match (&self.error, self.rest_bytes) {
            (None, 0) => write!(f, "result: good"),
            (None, rest) => {
                write!(f, "result: the RDB part is good; {rest} bytes follow it (check them with check-aof)")
            }
            (Some(error), _) => {
                if let Some((key, offset)) = &self.last_key {
                    writeln!(f, "the last key that was read: '{key}' at byte {offset}")?;
                }
                write!(f, "result: REFUSED: {error}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::value::Loaded;
    use super::super::write::{Access, Origin, Writer};
    use super::*;

    fn file() -> Vec<u8> {
        let mut out = Vec::new();
        let origin = Origin { version: "8.2.3", created_s: 1, used_memory_bytes: 1, is_aof_base: false };
        let mut writer = Writer::begin(&mut out, &origin);
        writer.database(&mut out, 3, 2, 1);
        for (key, expire_at_ms) in [("a", None), ("b", Some(5)), ("c", Some(50))] {
            writer.value(&mut out, key.as_bytes(), Loaded::String(b"v"[..].into()), expire_at_ms, Access::Unknown);
        }
        writer.end(&mut out);
        out
    }

    fn check(bytes: &[u8]) -> Report {
        let mut check = Check::new(10);
        bytes.chunks(11).for_each(|chunk| check.feed(chunk));
        check.finish()
    }

    #[test]
    fn a_good_file_is_counted() {
        let report = check(&file());
        assert!(report.is_good());
        assert_eq!((report.keys(), report.expires, report.expired), (3, 2, 1));
        assert_eq!(report.databases, [(3, 3)].into());
        let text = report.to_string();
        for line in ["signature REDIS0010", "field redis-ver: 8.2.3", "  string: 3", "result: good"] {
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn damage_is_told_with_its_byte_and_the_key_before_it() {
        let mut bytes = file();
        let at = bytes.windows(3).position(|window| window == b"\0\x01b").expect("the second key");
        bytes[at] = 0x63;
        let report = check(&bytes);
        assert_eq!(report.error, Some(ReadError::Unknown { code: 0x63, offset: at as u64 }));
        assert!(report.to_string().contains("the last key that was read: 'a' at byte"), "{report}");
        let cut = file();
        assert_eq!(check(&cut[..cut.len() - 1]).error, Some(ReadError::Truncated(cut.len() as u64 - 9)));
        assert!(!check(&[&cut[..], b"*1\r\n"].concat()).is_good());
        assert_eq!(check(b"").error, Some(ReadError::Truncated(0)));
    }
}
