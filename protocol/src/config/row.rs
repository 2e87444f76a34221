//! What the config table says about one key: its name, the values it takes, its default, whether it may change while
//! the server runs, and whether it does anything here.
//!
//! Rows are built by `const` functions, so that a row of the table reads as a sentence:
//! `integer("timeout", "0", COUNT)` or `choice("supervised", "no", &["upstart", "systemd"]).start_only()`.

/// One row of the config table.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The directive's name as `CONFIG GET` and `CONFIG REWRITE` print it.
    pub name: &'static str,
    /// Older names, and those of Valkey, that mean the same.
    pub aliases: &'static [&'static str],
    /// One sentence for the documentation.
    pub summary: &'static str,
    /// Which values it takes.
    pub kind: Kind,
    /// The default as it would stand in redis.conf.
    pub default: &'static str,
    /// When it may be set.
    pub mutability: Mutability,
    /// Whether it does anything here.
    pub state: State,
    /// Passwords: never printed by `--print-config`.
    pub secret: bool,
    /// `CONFIG GET` gives it by its name alone, not by patterns.
    pub hidden: bool,
}

/// When a key may be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutability {
    /// At any time, by `CONFIG SET`.
    Runtime,
    /// Only before the start: `CONFIG SET` refuses it.
    StartOnly,
    /// By `CONFIG SET` only as far as `enable-protected-configs` permits.
    Protected,
}

/// Whether a key does anything here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It does what its documentation says.
    Works,
    /// It is checked, kept, readable and rewritten, and changes nothing; the text says why.
    NoMeaning(&'static str),
    /// Any value but the default is refused, because ignoring it would break what the user asked for; the text says why.
    Refused(&'static str),
}

/// Which values a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `yes` or `no`.
    Bool,
    /// A decimal number.
    Integer(Bounds),
    /// A file mode in octal, at most this.
    Octal(i64),
    /// A number of bytes with an optional unit: `1k` is 1000 and `1kb` is 1024.
    Memory(Bounds),
    /// A number of bytes as above, or a percentage of `maxmemory`.
    Share,
    /// One of these names.
    Choice(&'static [&'static str]),
    /// One or more of these names; the first stands for none.
    Flags(&'static [&'static str]),
    /// Any text that keeps the rule.
    Text(TextRule),
    /// Up to this many words.
    Words(usize),
    /// A host and a port, or `no one`.
    Master,
    /// Pairs of seconds and changes, or nothing.
    SavePoints,
    /// Groups of class, hard limit, soft limit and seconds.
    OutputLimits,
    /// Three numbers from -2000 to 2000.
    OomScores,
    /// Numbers from 0 to 100, or nothing.
    Percentiles,
}

impl Kind {
    /// Whether a line may give several words for this kind.
    pub const fn takes_words(self) -> bool {
        match self {
            Kind::Flags(_)
            | Kind::Words(_)
            | Kind::SavePoints
            | Kind::OutputLimits
            | Kind::OomScores
            | Kind::Percentiles
            | Kind::Master => true,
            Kind::Bool
            | Kind::Integer(_)
            | Kind::Octal(_)
            | Kind::Memory(_)
            | Kind::Share
            | Kind::Choice(_)
            | Kind::Text(_) => false,
        }
    }
}

/// What a text has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextRule {
    /// Anything.
    Any,
    /// The name of a file, without a path.
    FileName,
    /// The name of a folder, without a path.
    FolderName,
    /// Letters that stand for keyspace events.
    EventClasses,
    /// Letters, digits, hyphens and dots.
    HostName,
}

/// The least and the largest value, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The least value.
    pub least: i64,
    /// The largest value.
    pub largest: i64,
    /// Redis keeps it in an unsigned number and words the error for a negative value differently.
    pub unsigned: bool,
    /// A value inside the bounds is silently brought into this narrower range.
    pub clamp: Option<(i64, i64)>,
}

impl Bounds {
    /// From `least` to `largest`.
    pub const fn new(least: i64, largest: i64) -> Bounds {
        Bounds { least, largest, unsigned: false, clamp: None }
    }

    /// The same, for a number that Redis keeps unsigned.
    pub const fn unsigned(least: i64, largest: i64) -> Bounds {
        Bounds { least, largest, unsigned: true, clamp: None }
    }

    /// The same, with values silently brought into `least..=largest`.
    pub const fn clamped(mut self, least: i64, largest: i64) -> Bounds {
        self.clamp = Some((least, largest));
        self
    }
}

const fn row(name: &'static str, kind: Kind, default: &'static str) -> Row {
    Row {
        name,
        aliases: &[],
        summary: "",
        kind,
        default,
        mutability: Mutability::Runtime,
        state: State::Works,
        secret: false,
        hidden: false,
    }
}

/// A key that is `yes` or `no`.
pub(super) const fn switch(name: &'static str, default: &'static str) -> Row {
    row(name, Kind::Bool, default)
}

/// A key that is a number.
pub(super) const fn integer(name: &'static str, default: &'static str, bounds: Bounds) -> Row {
    row(name, Kind::Integer(bounds), default)
}

/// A key that is a number of bytes.
pub(super) const fn memory(name: &'static str, default: &'static str, bounds: Bounds) -> Row {
    row(name, Kind::Memory(bounds), default)
}

/// A key that is one of several names.
pub(super) const fn choice(name: &'static str, default: &'static str, names: &'static [&'static str]) -> Row {
    row(name, Kind::Choice(names), default)
}

/// A key that is any text.
pub(super) const fn text(name: &'static str, default: &'static str) -> Row {
    row(name, Kind::Text(TextRule::Any), default)
}

/// A key of any other kind.
pub(super) const fn special(name: &'static str, default: &'static str, kind: Kind) -> Row {
    row(name, kind, default)
}

impl Row {
    pub(super) const fn aliases(mut self, aliases: &'static [&'static str]) -> Row {
        self.aliases = aliases;
        self
    }

    pub(super) const fn summary(mut self, summary: &'static str) -> Row {
        self.summary = summary;
        self
    }

    pub(super) const fn start_only(mut self) -> Row {
        self.mutability = Mutability::StartOnly;
        self
    }

    pub(super) const fn protected(mut self) -> Row {
        self.mutability = Mutability::Protected;
        self
    }

    pub(super) const fn secret(mut self) -> Row {
        self.secret = true;
        self
    }

    pub(super) const fn hidden(mut self) -> Row {
        self.hidden = true;
        self
    }

    pub(super) const fn no_meaning(mut self, reason: &'static str) -> Row {
        self.state = State::NoMeaning(reason);
        self
    }

    pub(super) const fn refused(mut self, reason: &'static str) -> Row {
        self.state = State::Refused(reason);
        self
    }

    /// The name and the aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }
}
