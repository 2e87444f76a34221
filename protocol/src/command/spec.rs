//! What the table says of a command: plain data, written out by the build script from the rows in `commands/`.

use super::Command;
use super::flags::{Categories, CommandFlags, KeyFlags};

/// One command, subcommand or container.
#[derive(Debug)]
pub struct CommandSpec {
    /// What runs it; `None` for a container that does nothing on its own.
    pub command: Option<Command>,
    /// In lower case: `get`, `client|list`.
    pub name: &'static str,
    /// Number of words of a request; negative: at least so many.
    pub arity: i16,
    /// What it does and where it is allowed.
    pub flags: CommandFlags,
    /// The ACL categories it belongs to.
    pub categories: Categories,
    /// Which shards it holds while it runs.
    pub shards: Shards,
    /// Its keys; with [`CommandFlags::MOVABLEKEYS`] there may be more, and only `keys` tells where.
    pub key_range: KeyRange,
    /// How to find its keys.
    pub keys: &'static [KeySpec],
    /// Hints for clients and proxies.
    pub tips: &'static [&'static str],
    /// What it contains, by name.
    pub subcommands: &'static [&'static CommandSpec],
    /// What people and tools read about it.
    pub docs: &'static CommandDocs,
}

/// The part of a spec that only `COMMAND DOCS` needs.
#[derive(Debug)]
pub struct CommandDocs {
    /// One sentence.
    pub summary: &'static str,
    /// The version of the contract that brought it.
    pub since: &'static str,
    /// The chapter it belongs to.
    pub group: &'static str,
    /// The time it takes.
    pub complexity: Option<&'static str>,
    /// Versions and what they changed.
    pub history: &'static [(&'static str, &'static str)],
    /// `deprecated`, `syscmd`.
    pub flags: &'static [&'static str],
    /// The version that deprecated it.
    pub deprecated_since: Option<&'static str>,
    /// What to use instead.
    pub replaced_by: Option<&'static str>,
    /// Its grammar.
    pub arguments: &'static [Argument],
}

/// One argument of a command's grammar.
#[derive(Debug)]
pub struct Argument {
    /// What it is called.
    pub name: &'static str,
    /// `string`, `integer`, `double`, `key`, `pattern`, `unix-time`, `pure-token`, `oneof` or `block`.
    pub kind: &'static str,
    /// The word before it, or that it is.
    pub token: Option<&'static str>,
    /// Of a key: which key spec finds it.
    pub key_spec: Option<u8>,
    /// What to show in place of the name.
    pub display: Option<&'static str>,
    /// May be left out.
    pub optional: bool,
    /// May be repeated.
    pub multiple: bool,
    /// The token is repeated too.
    pub multiple_token: bool,
    /// A remark.
    pub summary: Option<&'static str>,
    /// The version that brought it.
    pub since: Option<&'static str>,
    /// The version that deprecated it.
    pub deprecated_since: Option<&'static str>,
    /// The alternatives of a `oneof`, the parts of a `block`.
    pub of: &'static [Argument],
}

/// Which shards a command holds while it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shards {
    /// None: it is not a data command.
    None,
    /// Those of its keys; any one if a request has no keys.
    Keys,
    /// All of them.
    All,
}

/// Keys at `first`, `first + step` and so on up to `last`, which counts from the end of the request when it is
/// negative. All zero: no keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyRange {
    /// Word of the first key; 0: there are none.
    pub first: i16,
    /// Word of the last key; -1: the last word of the request.
    pub last: i16,
    /// Distance from key to key.
    pub step: i16,
}

/// How to find some of a command's keys in a request.
#[derive(Debug)]
pub struct KeySpec {
    /// Where they begin.
    pub begin: BeginSearch,
    /// How they go on from there.
    pub find: FindKeys,
    /// What the command does with them.
    pub flags: KeyFlags,
    /// A remark.
    pub notes: Option<&'static str>,
}

/// Where the keys of a [`KeySpec`] begin.
#[derive(Clone, Copy, Debug)]
pub enum BeginSearch {
    /// At this word.
    Index(i32),
    /// After this keyword, sought from `from` on (negative: backwards from the end).
    Keyword {
        /// In any case of letters.
        keyword: &'static str,
        /// Where to begin.
        from: i32,
    },
    /// Only the command itself finds them, while it runs.
    Unknown,
}

/// How the keys of a [`KeySpec`] go on from where they begin.
#[derive(Clone, Copy, Debug)]
pub enum FindKeys {
    /// Up to a last one.
    Range {
        /// Relative to the first; negative: from the end of the request.
        last: i32,
        /// From key to key.
        step: i32,
        /// With `last` = -1: only this share of what remains (2: one half).
        limit: i32,
    },
    /// As many as a number in the request says.
    Counted {
        /// Where the number stands, relative to the beginning.
        count: i32,
        /// Where the first key stands, relative to the beginning.
        first: i32,
        /// From key to key.
        step: i32,
    },
    /// Only the command itself finds them, while it runs.
    Unknown,
}
