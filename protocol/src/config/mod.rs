//! Configuration: one table of keys, from which the reading of redis.conf, flags and environment variables, `CONFIG GET`,
//! `CONFIG SET`, `CONFIG REWRITE` and `docs/configuration.md` follow.
//!
//! ```text
//! redis.conf  --lines-->  +----------+  --config()-->   Config: plain fields for the code that needs them
//! SIMURGH_*   --values->  | Settings |  --get()----->   CONFIG GET
//! --flags     --lines-->  | (TABLE)  |  --rewrite-->    redis.conf
//! CONFIG SET  --change->  +----------+
//! ```
//!
//! Everything is pure: files are read by a closure that the caller gives, and a change by `CONFIG SET` is a value that
//! the node takes over once its side effects (a port, a folder) have succeeded.

#[cfg(test)]
mod document;
mod events;
mod memory;
mod packing;
mod redis_conf;
mod rewrite;
mod row;
mod settings;
mod table;
mod typed;
mod value;

#[cfg(test)]
mod tests;

pub use memory::memory_of;
pub use packing::Packing;
pub use redis_conf::{Applied, INCLUDE_DEPTH_MAX, LINES_MAX, Line, LineError, ReadFiles, VARIABLE_PREFIX, read_lines};
pub use rewrite::rewrite;
pub use row::{Bounds, Kind, Mutability, Row, State, TextRule};
pub use settings::{Change, Given, Origin, SetError, Settings};
pub use table::{DIRECTIVES, Directive, Key, TABLE};
pub use typed::{AppendFsync, Config, LogFormat, LogLevel, MaxMemoryPolicy, Permission, Supervised};
pub use value::{OutputLimit, OutputLimits, SavePoint, Share, Value, ValueError};
