//! The command table: everything the server knows about a command before it runs.
//!
//! A row in `commands/*.toml` declares a command once. From it the build script makes the enums to match on, the
//! `dispatch_*!` macros that call the handlers, the [`CommandSpec`] that arity errors, key extraction and the
//! `COMMAND` replies read, and the hash table behind [`lookup`].

mod docs;
mod error;
mod flags;
mod fold;
mod getkeys;
mod help;
mod info;
mod keys;
mod list;
mod spec;
mod table;

pub use error::{TableError, check_arity};
pub use flags::{Categories, CommandFlags, KeyFlags};
pub use keys::{InvalidKeys, KeyPosition, each_key, keys};
pub use spec::{Argument, BeginSearch, CommandDocs, CommandSpec, FindKeys, KeyRange, KeySpec, Shards};
pub use table::{
    Command, ConnectionCommand, DataCommand, Lookup, ServerCommand, lookup, lookup_full_name, resolve, top_level,
};

/// What `COMMAND` and its subcommands answer; the arguments are those of the whole request.
pub mod replies {
    pub use super::docs::docs;
    pub use super::getkeys::{getkeys, getkeysandflags};
    pub use super::help::{command_help, help};
    pub use super::info::{all, count, info};
    pub use super::list::list;
}

#[cfg(test)]
mod tests;
