//! What a row of `commands/*.toml` may say.
//!
//! A file begins with the `group` of its commands and the `place` where they run (a row may differ), then has
//! one `[[command]]` for each command and subcommand. The smallest useful row:
//!
//! ```toml
//! [[command]]
//! name = "STRLEN"                   # a subcommand has two words: "CLIENT LIST"
//! handler = "string::strlen"        # module::function in the floor that runs it; a container has none
//! arity = 2                         # words of the whole request; -2: two or more
//! flags = ["readonly", "fast"]
//! acl = ["string"]                  # what the flags imply (read, write, fast, slow, admin...) is added
//! keys = [{ index = 1, flags = ["RO"] }]
//! since = "2.2.0"
//! summary = "Answers the length of a string."
//! complexity = "O(1)"
//! arguments = [{ name = "key", type = "key" }]
//! ```

use serde::Deserialize;

/// One file of rows.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    group: String,
    place: Place,
    command: Vec<Row>,
}

impl File {
    /// The rows, with what the head of the file says filled in.
    pub fn into_rows(self) -> Vec<Row> {
        let (group, place) = (self.group, self.place);
        let fill = |mut row: Row| {
            row.group = row.group.or_else(|| Some(group.clone()));
            row.place = row.place.or(Some(place));
            row
        };
        self.command.into_iter().map(fill).collect()
    }
}

/// Which floor runs a command, so which enum it belongs to.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// On shards, with the keyspace at hand.
    Data,
    /// In the connection that sent it.
    Connection,
    /// On the node as a whole.
    Server,
}

/// Which shards a command holds while it runs.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Shards {
    /// None; not for data commands.
    None,
    /// Those of its keys; a command without keys runs on any one.
    Keys,
    /// All of them.
    All,
}

/// One command, subcommand or container.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// In capitals; `CONTAINER SUBCOMMAND` for a subcommand.
    pub name: String,
    /// `module::function`; absent for a container that does nothing on its own.
    pub handler: Option<String>,
    /// As the file's head says when absent.
    pub place: Option<Place>,
    /// When absent, those of its keys for a data command, none for others.
    pub shards: Option<Shards>,
    /// Number of words of a request, negative: at least so many.
    pub arity: i16,
    /// As `COMMAND INFO` names them; `movablekeys` follows from `keys`.
    #[serde(default)]
    pub flags: Vec<String>,
    /// ACL categories beyond those the flags imply.
    #[serde(default)]
    pub acl: Vec<String>,
    /// Where the keys are.
    #[serde(default)]
    pub keys: Vec<Key>,
    /// Tips for clients and proxies, as `COMMAND INFO` shows them.
    #[serde(default)]
    pub tips: Vec<String>,
    /// As the file's head says when absent.
    pub group: Option<String>,
    /// The version of the contract that brought the command.
    pub since: String,
    /// One short sentence.
    pub summary: String,
    /// Time it takes.
    pub complexity: Option<String>,
    /// Pairs of version and what changed in it.
    #[serde(default)]
    pub history: Vec<(String, String)>,
    /// `deprecated`, `syscmd`.
    #[serde(default)]
    pub doc_flags: Vec<String>,
    /// The version that deprecated it.
    pub deprecated_since: Option<String>,
    /// What to use instead.
    pub replaced_by: Option<String>,
    /// The grammar of what follows the name.
    #[serde(default)]
    pub arguments: Vec<Argument>,
}

/// Where keys begin (`index`, or the word after `keyword` sought from `from` on) and how they go on: a range up
/// to `last` (0: just one; negative: from the end of the request) or, with `count`, as many as a number says.
/// Or it is `unknown`: no rule finds them before the command runs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// Word at which keys begin.
    pub index: Option<i32>,
    /// Word after which keys begin.
    pub keyword: Option<String>,
    /// Where to start seeking the keyword; negative: backwards from the end.
    pub from: Option<i32>,
    /// Only the command itself finds these keys, while it runs.
    #[serde(default)]
    pub unknown: bool,
    /// Last key, relative to the first; negative: from the end.
    #[serde(default)]
    pub last: i32,
    /// Distance from one key to the next.
    #[serde(default = "one")]
    pub step: i32,
    /// Of what remains, one half (2), one third (3)...
    #[serde(default)]
    pub limit: i32,
    /// Where the number of keys stands, relative to the beginning.
    pub count: Option<i32>,
    /// The first key, relative to the beginning; only with `count`.
    pub first: Option<i32>,
    /// RO, RW, OW, RM and what is done: access, update, insert, delete...
    pub flags: Vec<String>,
    /// A remark shown in `COMMAND INFO`.
    pub notes: Option<String>,
}

fn one() -> i32 {
    1
}

/// One argument of a command.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Argument {
    /// Absent only for a pure token, which is named for its token.
    name: Option<String>,
    /// Absent: `pure-token` when there is no name, else `string`.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// The word that stands before it, or that it is.
    pub token: Option<String>,
    /// Of a key: which of the row's `keys` finds it; 0 when absent. Of a pattern: which finds the keys made from it.
    pub spec: Option<u8>,
    /// What to show in place of the name.
    pub display: Option<String>,
    /// May be left out.
    #[serde(default)]
    pub optional: bool,
    /// May be repeated.
    #[serde(default)]
    pub multiple: bool,
    /// The token is repeated too.
    #[serde(default)]
    pub multiple_token: bool,
    /// A remark.
    pub summary: Option<String>,
    /// The version that brought it.
    pub since: Option<String>,
    /// The version that deprecated it.
    pub deprecated_since: Option<String>,
    /// The alternatives of a `oneof`, the parts of a `block`.
    #[serde(default)]
    pub of: Vec<Argument>,
}

impl Argument {
    /// Its name, or the token's in lower case.
    pub fn name(&self) -> Option<String> {
        self.name.clone().or_else(|| self.token.as_ref().map(|token| token.to_lowercase()))
    }

    /// Which of the row's `keys` finds it, if any does.
    pub fn key_spec(&self) -> Option<u8> {
        self.spec.or_else(|| (self.kind() == "key").then_some(0))
    }

    /// Its type, as `COMMAND DOCS` names it.
    pub fn kind(&self) -> &str {
        match (&self.kind, &self.name) {
            (Some(kind), _) => kind,
            (None, Some(_)) => "string",
            (None, None) => "pure-token",
        }
    }
}
