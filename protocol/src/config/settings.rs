//! The values of all keys with where each came from, and the rules of `CONFIG GET` and `CONFIG SET`.

use std::fmt;
use std::sync::Arc;

use super::row::{Kind, Mutability, State};
use super::table::Key;
use super::value::{Value, ValueError, parse, split_single};
use crate::glob;

/// The value of every key and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Indexed by [`Key`].
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    value: Value,
    origin: Origin,
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// A line of a file.
    File {
        /// The file's name as it was given.
        file: Arc<str>,
        /// The line, counted from 1.
        line: usize,
    },
    /// An environment variable of this name.
    Environment(String),
    /// An option on the command line.
    CommandLine,
    /// A client's `CONFIG SET`.
    Client,
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => out.write_str("default"),
            Origin::File { file, line } => write!(out, "{file}:{line}"),
            Origin::Environment(variable) => write!(out, "environment {variable}"),
            Origin::CommandLine => out.write_str("command line"),
            Origin::Client => out.write_str("CONFIG SET"),
        }
    }
}

impl Origin {
    /// Whether both are lines of files, or both options, and so on: only then do several `save` lines add up.
    fn same_source(&self, other: &Origin) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// A value as it was given.
#[derive(Debug, Clone, Copy)]
pub enum Given<'a> {
    /// The words after the name, in a file or on the command line.
    Words(&'a [Vec<u8>]),
    /// One text, from `CONFIG SET` or an environment variable: blanks in it separate words where the key takes several.
    Whole(&'a [u8]),
}

impl Given<'_> {
    fn words(self, kind: Kind) -> Vec<Vec<u8>> {
        match self {
            Given::Words(words) if kind.takes_words() => split_single(words),
            Given::Words(words) => words.to_vec(),
            Given::Whole([]) if kind.takes_words() => Vec::new(),
            Given::Whole(text) if kind.takes_words() => text.split(|&byte| byte == b' ').map(<[u8]>::to_vec).collect(),
            Given::Whole(text) => vec![text.to_vec()],
        }
    }
}

/// Why `CONFIG SET` changed nothing; the text is the client's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetError {
    /// A name without a value.
    Syntax,
    /// No such key.
    Unknown {
        /// The name as the client wrote it.
        name: Vec<u8>,
    },
    /// This key cannot be set, or not to this value.
    Failed {
        /// The name as the client wrote it.
        name: Vec<u8>,
        /// Why.
        reason: String,
    },
}

impl SetError {
    /// The error when a side effect of a change failed, such as listening on a new port.
    pub fn failed(key: Key, reason: impl Into<String>) -> SetError {
        SetError::Failed { name: key.row().name.into(), reason: reason.into() }
    }
}

impl fmt::Display for SetError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetError::Syntax => out.write_str("ERR syntax error"),
            SetError::Unknown { name } => {
                let name = String::from_utf8_lossy(name);
                write!(out, "ERR Unknown option or number of arguments for CONFIG SET - '{name}'")
            }
            SetError::Failed { name, reason } => {
                let name = String::from_utf8_lossy(name);
                write!(out, "ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}")
            }
        }
    }
}

impl std::error::Error for SetError {}

/// What `CONFIG SET` would change. The node performs the side effects, then takes `settings` as its own.
#[derive(Debug, Clone)]
pub struct Change {
    /// All settings, with the change made.
    pub settings: Settings,
    /// The keys that have another value than before.
    pub changed: Vec<Key>,
}

impl Default for Settings {
    fn default() -> Self {
        let entries = Key::ALL.iter().map(|&key| Entry { value: default_value(key), origin: Origin::Default });
        Settings { entries: entries.collect() }
    }
}

/// The default in the table's row, which is written as in redis.conf.
pub(super) fn default_value(key: Key) -> Value {
    let row = key.row();
    let words = Given::Words(&[row.default.as_bytes().to_vec()]).words(row.kind);
    parse(row.name, row.kind, &words, None).expect("a test reads the default of every row")
}

impl Settings {
    /// The value of `key`.
    pub fn value(&self, key: Key) -> &Value {
        &self.entries[key as usize].value
    }

    /// The value of `key` as `CONFIG GET` answers it.
    pub fn text(&self, key: Key) -> Vec<u8> {
        self.value(key).text(key.row().kind)
    }

    /// Where the value of `key` came from.
    pub fn origin(&self, key: Key) -> &Origin {
        &self.entries[key as usize].origin
    }

    /// Sets `key` as files, variables and flags do: also what may only be set before the start.
    pub fn put(&mut self, key: Key, given: Given<'_>, origin: Origin) -> Result<(), ValueError> {
        let row = key.row();
        let current = &self.entries[key as usize];
        let words = given.words(row.kind);
        let mut value = parse(row.name, row.kind, &words, Some(&current.value))?;
        if let State::Refused(reason) = row.state
            && value != default_value(key)
        {
            return Err(ValueError::Refused(reason));
        }
        if let (Value::SavePoints(new), Value::SavePoints(old)) = (&mut value, &current.value)
            && !new.is_empty()
            && origin != Origin::Client
            && origin.same_source(&current.origin)
        {
            new.splice(0..0, old.iter().copied());
        }
        self.entries[key as usize] = Entry { value, origin };
        Ok(())
    }

    /// Puts the absolute path of the data folder in the place of the one that was given.
    pub fn resolve_dir(&mut self, absolute: impl Into<Vec<u8>>) {
        self.entries[Key::Dir as usize].value = Value::Text(absolute.into());
    }

    /// The names that match one of `patterns`, with their values: `CONFIG GET`.
    ///
    /// A name without wildcards is answered as the client wrote it, an alias under its own name, each once;
    /// what a pattern finds is in order.
    pub fn get(&self, patterns: &[&[u8]]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut found: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let mut add = |name: &[u8], key: Key| {
            if !found.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
                found.push((name.to_vec(), self.text(key)));
            }
        };
        for pattern in patterns {
            if !pattern.iter().any(|byte| b"[*?".contains(byte)) {
                if let Some(key) = Key::named(pattern) {
                    add(pattern, key);
                }
                continue;
            }
            let shown = Key::ALL.iter().filter(|key| !key.row().hidden);
            let names = shown.flat_map(|key| key.row().names().map(move |name| (name, *key)));
            let mut matched: Vec<(&str, Key)> =
                names.filter(|(name, _)| glob::matches_ignoring_case(pattern, name.as_bytes())).collect();
            matched.sort_unstable_by_key(|(name, _)| *name);
            matched.iter().for_each(|(name, key)| add(name.as_bytes(), *key));
        }
        found
    }

    /// What `CONFIG SET` of these names and values, one after the other, would change: everything or nothing.
    ///
    /// `local` says whether the client is on this machine, which `enable-protected-configs local` asks.
    pub fn change(&self, names_and_values: &[&[u8]], local: bool) -> Result<Change, SetError> {
        let (pairs, rest) = names_and_values.as_chunks::<2>();
        if pairs.is_empty() || !rest.is_empty() {
            return Err(SetError::Syntax);
        }
        // All names are checked before any value is, as Redis does.
        let mut keys = Vec::with_capacity(pairs.len());
        for (at, [name, _]) in pairs.iter().enumerate() {
            keys.push(self.settable(name, local)?);
            if pairs[..at].iter().any(|[earlier, _]| earlier.eq_ignore_ascii_case(name)) {
                return Err(failed(name, "duplicate parameter"));
            }
        }
        let mut settings = self.clone();
        for (key, [name, value]) in keys.iter().zip(pairs) {
            let put = settings.put(*key, Given::Whole(value), Origin::Client);
            put.map_err(|error| failed(name, error.to_string()))?;
        }
        let changed = |key: &Key| self.value(*key) != settings.value(*key);
        let changed = Key::ALL.iter().copied().filter(changed).collect();
        Ok(Change { settings, changed })
    }

    /// The key of this name, if a client may set it.
    fn settable(&self, name: &[u8], local: bool) -> Result<Key, SetError> {
        let key = Key::named(name).ok_or_else(|| SetError::Unknown { name: name.to_vec() })?;
        match key.row().mutability {
            Mutability::Runtime => Ok(key),
            Mutability::StartOnly => Err(failed(name, "can't set immutable config")),
            Mutability::Protected if self.config().enable_protected_configs.allows(local) => Ok(key),
            Mutability::Protected => Err(failed(name, "can't set protected config")),
        }
    }

    /// The keys that somebody set although they mean nothing here, with the reason: said once at the start.
    pub fn without_meaning(&self) -> impl Iterator<Item = (Key, &'static str)> {
        Key::ALL.iter().filter_map(|&key| match key.row().state {
            State::NoMeaning(reason)
                if *self.origin(key) != Origin::Default && *self.value(key) != default_value(key) =>
            {
                Some((key, reason))
            }
            State::NoMeaning(_) | State::Works | State::Refused(_) => None,
        })
    }
}

fn failed(name: &[u8], reason: impl Into<String>) -> SetError {
    SetError::Failed { name: name.to_vec(), reason: reason.into() }
}
