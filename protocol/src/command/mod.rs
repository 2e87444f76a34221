//! The command table: everything the server knows about a command before it runs.
//!
//! A row in `commands/*.toml` declares a command once. From it the build script makes the enums to match on, the
//! `dispatch_*!` macros that call the handlers, the [`CommandSpec`] that arity errors, key extraction and the
//! `COMMAND` replies read, and the hash table behind [`lookup`].

mod flags;
mod fold;
mod spec;
mod table;

pub use flags::{Categories, CommandFlags, KeyFlags};
pub use spec::{Argument, BeginSearch, CommandDocs, CommandSpec, FindKeys, KeyRange, KeySpec, Shards};
pub use table::{Command, ConnectionCommand, DataCommand, Lookup, ServerCommand, lookup, lookup_full_name, top_level};
