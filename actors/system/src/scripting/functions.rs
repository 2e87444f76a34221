//! The libraries of functions that this node has, and how they come in: FUNCTION LOAD and RESTORE, the log, a base file.
//!
//! What is here is texts and names. The engine of the core that takes a library in runs its text once, which tells the names of
//! its functions; the other cores' engines load it when they are first asked for one of those. So a function's call needs
//! just the library as of now, by its number, and a change is seen by every core before its reply is sent.
//!
//! Whoever changes libraries holds every shard, so the log has the changes in the order in which they were made.

use super::{Engines, Scripting, with_engine};
use crate::node::Node;
use simurgh_kernel::time;
use simurgh_protocol::{Args, CommandError, Reply};
use simurgh_scripting::{CallError, Function, HeaderError, Host, Library, LogLevel, ScriptEngine, Watch};
use simurgh_storage::rdb::functions::FunctionsError;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, MutexGuard, PoisonError};

/// How long a library may take to register its functions, in ns.
const LOAD_NS_MAX: u64 = 500_000_000;
/// The same for all of a payload.
const RESTORE_NS_MAX: u64 = 5_000_000_000;

/// Why libraries are not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LibraryError {
    #[error(transparent)]
    Header(#[from] HeaderError),
    #[error(transparent)]
    Payload(#[from] FunctionsError),
    #[error("ERR Library '{0}' already exists")]
    Exists(Box<str>),
    #[error("ERR Library {0} already exists")]
    Collides(Box<str>),
    #[error("ERR Function {0} already exists")]
    FunctionExists(Box<str>),
    #[error("ERR Library not found")]
    NotFound,
    #[error("{}", String::from_utf8_lossy(.0))]
    Engine(Vec<u8>),
}

impl LibraryError {
    /// As a client is told.
    pub fn reply(&self) -> CommandError {
        CommandError::Repeats(self.to_string().into_bytes().into())
    }
}

/// What is done where a library of the same name is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collision {
    Refuse,
    Replace,
}

/// How long a library may take to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// As FUNCTION LOAD has it.
    Usual,
    /// The same, but until this moment of the monotonic clock at most.
    Until(u64),
    /// It has been loaded before: the node starts.
    Endless,
}

/// The libraries as of some moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Libraries {
    by_name: BTreeMap<Box<str>, Arc<Library>>,
    /// The functions by their names in small letters.
    functions: BTreeMap<Box<str>, (Arc<Library>, usize)>,
    /// Grows whenever a library goes, so that engines know when to forget some.
    pub generation: u64,
}

impl Libraries {
    /// A function and its library.
    pub fn function(&self, name: &[u8]) -> Option<(Arc<Library>, usize)> {
        let name = std::str::from_utf8(name).ok()?;
        if let Some(found) = self.functions.get(name) {
            return Some(found.clone());
        }
        self.functions.get(name.to_ascii_lowercase().as_str()).cloned()
    }

    /// All libraries, by name.
    pub fn all(&self) -> impl ExactSizeIterator<Item = &Arc<Library>> {
        self.by_name.values()
    }

    /// How many functions there are.
    pub fn function_count(&self) -> usize {
        self.functions.len()
    }

    /// Bytes of texts and names.
    pub fn memory(&self) -> usize {
        self.all().map(|library| library.memory()).sum()
    }

    /// Adds a library whose functions are known.
    pub fn add(&mut self, library: Library, collision: Collision) -> Result<(), LibraryError> {
        if self.by_name.contains_key(&library.name) && collision == Collision::Refuse {
            return Err(LibraryError::Exists(library.name.clone()));
        }
        for function in &library.functions {
            let there = self.functions.get(function.name.to_ascii_lowercase().as_str());
            if there.is_some_and(|(other, _)| other.name != library.name) {
                return Err(LibraryError::FunctionExists(function.name.clone()));
            }
        }
        self.take(&library.name);
        let library = Arc::new(library);
        for (index, function) in library.functions.iter().enumerate() {
            self.functions.insert(function.name.to_ascii_lowercase().into(), (library.clone(), index));
        }
        self.by_name.insert(library.name.clone(), library);
        Ok(())
    }

    fn take(&mut self, name: &str) -> Option<Arc<Library>> {
        let taken = self.by_name.remove(name)?;
        for function in &taken.functions {
            self.functions.remove(function.name.to_ascii_lowercase().as_str());
        }
        self.generation += 1;
        Some(taken)
    }

    /// Deletes a library.
    pub fn delete(&mut self, name: &[u8]) -> Result<(), LibraryError> {
        let name = std::str::from_utf8(name).map_err(|_| LibraryError::NotFound)?;
        self.take(name).map(|_| ()).ok_or(LibraryError::NotFound)
    }

    /// Deletes all.
    pub fn flush(&mut self) {
        *self = Self { generation: self.generation + 1, ..Self::default() };
    }

    /// The library that a text is, if it may come; its functions are not known yet.
    pub fn read(&self, node: &Node, source: &[u8], collision: Collision) -> Result<Library, LibraryError> {
        let id = node.scripting.next_library.fetch_add(1, Relaxed);
        let library = Library::new(id, source)?;
        if self.by_name.contains_key(&library.name) && collision == Collision::Refuse {
            return Err(LibraryError::Exists(library.name));
        }
        Ok(library)
    }

    /// Runs a text and adds the library that it makes.
    pub fn load(
        &mut self,
        node: &Node,
        source: &[u8],
        collision: Collision,
        patience: Patience,
    ) -> Result<(), LibraryError> {
        let mut library = self.read(node, source, collision)?;
        library.functions = register(node, &library, patience)?;
        self.add(library, collision)
    }

    /// The libraries of a payload, together with these; all or, in an error, none.
    pub fn restored(
        &self,
        node: &Node,
        payload: &[u8],
        policy: Policy,
        patience: Patience,
    ) -> Result<Self, LibraryError> {
        let sources = simurgh_storage::rdb::functions::restore(payload)?;
        let mut arriving = Self::default();
        let patience = match patience {
            Patience::Usual => Patience::Until(time::monotonic_ns().saturating_add(RESTORE_NS_MAX)),
            Patience::Until(_) | Patience::Endless => patience,
        };
        for source in sources {
            arriving.load(node, &source, Collision::Refuse, patience)?;
        }
        let mut all = self.clone();
        if policy == Policy::Flush {
            all.flush();
        }
        for library in arriving.by_name.into_values() {
            if policy == Policy::Append && all.by_name.contains_key(&library.name) {
                return Err(LibraryError::Collides(library.name.clone()));
            }
            // Those that are replaced go first: what arrives may have moved functions between libraries.
            all.take(&library.name);
        }
        for library in arriving.functions.into_values().map(|(library, _)| library) {
            if !all.by_name.contains_key(&library.name) {
                all.add(Arc::unwrap_or_clone(library), Collision::Refuse)?;
            }
        }
        Ok(all)
    }
}

/// What FUNCTION RESTORE does with libraries that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Flush,
    Append,
    Replace,
}

impl Scripting {
    /// The libraries of this node.
    pub(crate) fn libraries(&self) -> MutexGuard<'_, Libraries> {
        self.libraries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a library's text on an engine of this core, which tells its functions.
pub(crate) fn register(node: &Node, library: &Library, patience: Patience) -> Result<Vec<Function>, LibraryError> {
    let soon = || time::monotonic_ns().saturating_add(LOAD_NS_MAX);
    let until = match patience {
        Patience::Usual => soon(),
        Patience::Until(end) => soon().min(end),
        Patience::Endless => u64::MAX,
    };
    let mut fault = None;
    let registered = with_engine(node, Engines::Functions, |engine| {
        let loaded = engine.load(library, Rc::new(Deadline(until)), &mut Loading);
        node.scripting.function_engine_bytes.store(engine.memory() as u64, Relaxed);
        Ok(loaded.unwrap_or_else(|text| {
            fault = Some(text);
            Vec::new()
        }))
    });
    match (registered, fault) {
        (_, Some(text)) => Err(LibraryError::Engine(text)),
        (Ok(functions), None) => Ok(functions),
        (Err(error), None) => Err(LibraryError::Engine(error.to_string().into_bytes())),
    }
}

/// Ends a library that takes too long to load.
struct Deadline(u64);

impl Watch for Deadline {
    fn is_killed(&self) -> bool {
        time::monotonic_ns() >= self.0
    }

    fn clock_seconds(&self) -> f64 {
        time::monotonic_ns() as f64 / 1e9
    }
}

/// The server, as a library that is being loaded sees it.
struct Loading;

impl Host for Loading {
    fn call(&mut self, _args: &Args<'_>, _reply: &mut Reply) -> Result<(), CallError> {
        Err("ERR no command can be called while a library is loaded".into())
    }

    fn log(&mut self, level: LogLevel, text: &[u8]) {
        super::host::write_line(level, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simurgh_scripting::ScriptFlags;

    fn library(id: u64, name: &str, functions: &[&str]) -> Library {
        let mut library = Library::new(id, format!("#!lua name={name}\n").as_bytes()).expect("a library");
        let function =
            |name: &&str| Function { name: (*name).into(), description: None, flags: ScriptFlags::default() };
        library.functions = functions.iter().map(function).collect();
        library
    }

    #[test]
    fn functions_are_found_by_their_names_in_letters_of_any_size() {
        let mut all = Libraries::default();
        all.add(library(1, "a", &["One", "two"]), Collision::Refuse).expect("a first one");
        let found = |all: &Libraries, name: &str| all.function(name.as_bytes()).map(|(library, _)| library.id);
        assert_eq!((found(&all, "one"), found(&all, "ONE"), found(&all, "three")), (Some(1), Some(1), None));
        let taken = all.add(library(2, "b", &["TWO"]), Collision::Refuse);
        assert_eq!(taken, Err(LibraryError::FunctionExists("TWO".into())));
        assert_eq!(all.add(library(3, "a", &[]), Collision::Refuse), Err(LibraryError::Exists("a".into())));
        all.add(library(4, "a", &["three"]), Collision::Replace).expect("its next version");
        assert_eq!((found(&all, "one"), found(&all, "three"), all.function_count()), (None, Some(4), 1));
        let generation = all.generation;
        all.add(library(5, "c", &["four"]), Collision::Refuse).expect("one more");
        assert_eq!(all.generation, generation);
        assert_eq!((all.delete(b"b"), all.delete(b"a")), (Err(LibraryError::NotFound), Ok(())));
        assert_eq!((all.function_count(), all.all().len()), (1, 1));
        assert!(all.generation > generation);
    }
}
