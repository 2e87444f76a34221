//! Scripts: the seam between the server and a language, and Lua 5.1 behind it.
//!
//! [`ScriptEngine`] is all that the server knows of a language, [`Host`] all that a script knows of the server. An engine is pure:
//! commands, time, the wish to stop and the seed of its random numbers come in; replies go out. So a script runs the same in
//! the simulator, and the log holds what its commands did, never the script.

mod digest;
mod library;
mod lua;
mod script;

pub use digest::{DIGEST_LENGTH, sha1_hex};
pub use library::{Function, HeaderError, Library, is_name};
pub use lua::LuaEngine;
pub use script::{Script, ScriptFlags, ShebangError};

use simurgh_protocol::{Args, Reply};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Memory that an engine's state may take, in bytes: a script that builds more is ended.
pub const MEMORY_MAX: usize = 256 << 20;

/// How urgent a line of `redis.log` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the levels of redis.log")]
pub enum LogLevel {
    Debug,
    Verbose,
    Notice,
    Warning,
}

/// Why a command has not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The text for a command that a script may not run, or not now.
    Refused(String),
    /// The script is to end here, whatever it would do about it.
    Ends,
}

impl From<&str> for CallError {
    fn from(text: &str) -> Self {
        Self::Refused(text.into())
    }
}

/// What a script may ask of the server while it runs.
pub trait Host {
    /// Runs a command and appends its reply, an error too.
    ///
    /// # Errors
    /// [`CallError`]; whatever stands in `reply` then is nothing.
    fn call(&mut self, args: &Args<'_>, reply: &mut Reply) -> Result<(), CallError>;

    /// An error stands in the reply of the script that has just ended: its line, with the `-`, and whether it is one that a command of
    /// the script has failed with, which was counted then.
    fn note_error(&mut self, _line: &[u8], _of_command: bool) {}

    /// Writes a line into the server's log.
    fn log(&mut self, level: LogLevel, text: &[u8]);
}

/// Looked at while a script runs.
pub trait Watch {
    /// Called every so many instructions; whether the script is to end now.
    fn is_killed(&self) -> bool;

    /// Seconds for `os.clock`.
    fn clock_seconds(&self) -> f64;
}

/// What is to run.
#[derive(Clone, Copy, Debug)]
pub enum Callable<'a> {
    /// A script, as EVAL and EVALSHA run it.
    Script {
        /// Its digest, forty hexadecimal digits.
        digest: &'a str,
        /// Its text.
        script: &'a Script,
    },
    /// A function, as FCALL runs it.
    Function {
        /// The library that has it.
        library: &'a Library,
        /// Its name, as its library has it.
        name: &'a str,
        /// The words of the request, for whoever asks what runs.
        request: &'a [&'a [u8]],
    },
}

/// The error that ended a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The whole of its text.
    pub text: Vec<u8>,
    /// A command of the script has failed with it.
    pub of_command: bool,
}

impl From<Vec<u8>> for Fault {
    fn from(text: Vec<u8>) -> Self {
        Self { text, of_command: false }
    }
}

/// A script's run.
pub struct Run<'a> {
    /// What runs.
    pub callable: Callable<'a>,
    /// The names of keys.
    pub keys: &'a [&'a [u8]],
    /// Other arguments.
    pub args: &'a [&'a [u8]],
    /// Where its random numbers begin.
    pub seed: u32,
    /// Looked at while it runs.
    pub watch: Rc<dyn Watch>,
}

/// A language.
pub trait ScriptEngine {
    /// Reads a script without running it.
    ///
    /// # Errors
    /// The fault, as the language words it.
    fn compile(&mut self, digest: &str, script: &Script) -> Result<(), Vec<u8>>;

    /// Loads a library whose functions are not known yet, and returns them.
    ///
    /// # Errors
    /// The whole text of the fault.
    fn load(&mut self, library: &Library, watch: Rc<dyn Watch>, host: &mut dyn Host) -> Result<Vec<Function>, Vec<u8>>;

    /// Forgets the libraries that are not among these.
    fn keep_libraries(&mut self, ids: &BTreeSet<u64>);

    /// Runs a script or a function and writes its reply.
    ///
    /// # Errors
    /// The error that ended it.
    fn run(&mut self, run: &Run<'_>, host: &mut dyn Host, reply: &mut Reply) -> Result<(), Fault>;

    /// Memory that the engine takes, in bytes.
    fn memory(&self) -> usize;
}
