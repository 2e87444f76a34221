//! The table itself, as the build script wrote it, and how a request's words become a [`Command`].

use super::error::{TableError, check_arity};
use super::flags::{Categories, CommandFlags, KeyFlags};
use super::fold::{Folded, WHOLE, fold, place};
use super::spec::{Argument, BeginSearch, CommandDocs, CommandSpec, FindKeys, KeyRange, KeySpec, Shards};
use crate::resp::Args;

include!(concat!(env!("OUT_DIR"), "/commands.rs"));

/// Any command, by the place that runs it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Command {
    /// Runs on shards.
    Data(DataCommand),
    /// Runs in its connection.
    Connection(ConnectionCommand),
    /// Runs on the node.
    Server(ServerCommand),
}

impl Command {
    /// How many there are: the length of an array with one item for each, see [`Command::index`].
    pub const COUNT: usize = SPECS.len();

    /// Its number, below [`Command::COUNT`].
    #[inline]
    pub const fn index(self) -> usize {
        match self {
            Command::Data(command) => DataCommand::FIRST + command as usize,
            Command::Connection(command) => ConnectionCommand::FIRST + command as usize,
            Command::Server(command) => ServerCommand::FIRST + command as usize,
        }
    }

    /// What the row of the command with this [`Command::index`] says.
    #[must_use]
    pub fn spec_at(index: usize) -> Option<&'static CommandSpec> {
        SPECS.get(index)
    }

    /// What its row says.
    #[inline]
    pub fn spec(self) -> &'static CommandSpec {
        &SPECS[self.index()]
    }
}

impl DataCommand {
    /// What its row says.
    #[inline]
    pub fn spec(self) -> &'static CommandSpec {
        Command::Data(self).spec()
    }
}

/// What the first words of a request name.
#[derive(Clone, Copy, Debug)]
pub enum Lookup {
    /// A command or subcommand.
    Found(Command),
    /// Nothing.
    UnknownCommand,
    /// A container, but nothing in it.
    UnknownSubcommand(&'static CommandSpec),
    /// A container that needs a subcommand.
    MissingSubcommand(&'static CommandSpec),
}

/// What a name in the lookup table leads to.
#[derive(Clone, Copy)]
enum Entry {
    Command(Command),
    Container(u8, &'static CommandSpec),
}

/// A place in the lookup table.
struct Slot {
    name: Folded,
    entry: Entry,
}

impl Slot {
    /// No name has this tag, so nothing is found here.
    const EMPTY: Slot =
        Slot { name: Folded { head: 0, tail: 0, tag: u32::MAX }, entry: Entry::Container(0, &SPECS[0]) };
}

/// What a request means by its first word and, if the table needs it, its second, in any case of letters.
#[inline]
pub fn lookup(name: &[u8], subcommand: Option<&[u8]>) -> Lookup {
    match (find(0, name), subcommand) {
        (Some(Entry::Command(command)), _) => Lookup::Found(command),
        (Some(Entry::Container(number, _)), Some(word)) if let Some(Entry::Command(command)) = find(number, word) => {
            Lookup::Found(command)
        }
        (Some(Entry::Container(_, spec)), Some(_)) => Lookup::UnknownSubcommand(spec),
        (Some(Entry::Container(_, spec)), None) => match spec.command {
            Some(command) => Lookup::Found(command),
            None => Lookup::MissingSubcommand(spec),
        },
        (None, _) => Lookup::UnknownCommand,
    }
}

/// The command that a request names, with as many words as it takes, or what is wrong with the request.
#[inline]
pub fn resolve(args: &Args<'_>) -> Result<Command, TableError> {
    match lookup(args.at(0), args.get(1)) {
        Lookup::Found(command) => check_arity(command.spec(), args.len()).map(|()| command),
        Lookup::UnknownCommand => Err(TableError::unknown_command(args)),
        Lookup::UnknownSubcommand(container) => {
            Err(TableError::unknown_subcommand(container, args.get(1).unwrap_or_default()))
        }
        Lookup::MissingSubcommand(container) => Err(TableError::Arity(container.name)),
    }
}

/// The command, subcommand or container of a full name like `client|list`.
pub fn lookup_full_name(name: &[u8]) -> Option<&'static CommandSpec> {
    let (container, word) = match memchr::memchr(b'|', name) {
        Some(bar) => (&name[..bar], Some(&name[bar + 1..])),
        None => (name, None),
    };
    match (find(0, container)?, word) {
        (Entry::Command(command), None) => Some(command.spec()),
        (Entry::Container(_, spec), None) => Some(spec),
        (Entry::Container(number, _), Some(word)) => match find(number, word)? {
            Entry::Command(command) => Some(command.spec()),
            Entry::Container(..) => None,
        },
        (Entry::Command(_), Some(_)) => None,
    }
}

/// Commands and containers of one word, by name; subcommands hang below them.
pub fn top_level() -> &'static [&'static CommandSpec] {
    &TOP
}

#[inline]
fn find(container: u8, name: &[u8]) -> Option<Entry> {
    let folded = fold(container, name);
    let home = place(folded, SEED, SLOTS.len());
    let slot = [home, (home + 1) % SLOTS.len()].into_iter().map(|at| &SLOTS[at]).find(|slot| slot.name == folded)?;
    (name.len() <= WHOLE || is_long_name(slot.entry, name)).then_some(slot.entry)
}

/// Whether a name too long for its numbers is the one that stands there.
#[cold]
fn is_long_name(entry: Entry, name: &[u8]) -> bool {
    let spec = match entry {
        Entry::Command(command) => command.spec(),
        Entry::Container(_, spec) => spec,
    };
    let word = spec.name.rsplit('|').next().unwrap_or_default();
    word.as_bytes().eq_ignore_ascii_case(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each_command() -> impl Iterator<Item = (&'static CommandSpec, Option<&'static CommandSpec>)> {
        let below = |top: &'static CommandSpec| top.subcommands.iter().map(move |sub| (*sub, Some(top)));
        top_level().iter().flat_map(move |top| std::iter::once((*top, None)).chain(below(top)))
    }

    #[test]
    fn every_name_is_found_in_any_case() {
        for (spec, container) in each_command() {
            let Some(command) = spec.command else { continue };
            assert!(std::ptr::eq(command.spec(), spec), "{}", spec.name);
            for name in [spec.name.to_string(), spec.name.to_uppercase()] {
                let (first, second) = match name.split_once('|') {
                    Some((first, second)) => (first, Some(second.as_bytes())),
                    None => (name.as_str(), None),
                };
                assert_eq!(second.is_some(), container.is_some());
                assert!(matches!(lookup(first.as_bytes(), second), Lookup::Found(found) if found == command), "{name}");
                assert!(std::ptr::eq(lookup_full_name(name.as_bytes()).expect("it has a row"), spec));
            }
        }
    }

    #[test]
    fn what_only_looks_like_a_name_is_not_found() {
        for name in ["", "g", "ge", "gett", "get ", "g\u{5}t", "GE\u{94}", "incrbyfloatincrbyfloat", "object|freq"] {
            assert!(matches!(lookup(name.as_bytes(), None), Lookup::UnknownCommand), "{name:?}");
        }
        // A carriage return with bit 5 set is a minus sign, an at sign a backquote: bits of letters alone may be set.
        assert!(matches!(lookup(b"client", Some(b"no\revict")), Lookup::UnknownSubcommand(_)));
        assert!(matches!(lookup(b"CONFIG", Some(b"list")), Lookup::UnknownSubcommand(spec) if spec.name == "config"));
        assert!(matches!(lookup(b"CONFIG", None), Lookup::MissingSubcommand(spec) if spec.name == "config"));
        assert!(matches!(lookup(b"command", None), Lookup::Found(Command::Connection(ConnectionCommand::Command))));
    }

    #[test]
    fn numbers_count_through_all_places() {
        let data = DataCommand::ALL.into_iter().map(Command::Data);
        let connection = ConnectionCommand::ALL.into_iter().map(Command::Connection);
        let server = ServerCommand::ALL.into_iter().map(Command::Server);
        let all: Vec<usize> = data.chain(connection).chain(server).map(Command::index).collect();
        assert_eq!(all, (0..Command::COUNT).collect::<Vec<_>>());
    }
}
