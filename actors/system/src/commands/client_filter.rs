//! Which clients CLIENT LIST shows and CLIENT KILL closes: the filters of Redis 8.2, and those that Valkey 9.1 adds.
//!
//! A client must meet every filter. Of the same filter given twice the last counts, but for ID.

use crate::clients::ClientShared;
use crate::commands::client_list::{ClientType, flags, unknown_type};
use simurgh_kernel::net::Address;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};
use std::sync::atomic::Ordering::Relaxed;

/// Letters that Valkey knows as flags of a client.
const FLAGS: &[u8] = b"ABEIMNOPRSTUbcdeirtux";

/// What is asked of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Condition {
    Ids(Vec<u64>),
    AgeMin(i64),
    IdleMin(i64),
    Type(ClientType),
    Database(u32),
    Flags(Vec<u8>),
    Text(Text, Vec<u8>),
}

/// The text that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text {
    Address,
    LocalAddress,
    Ip,
    Name,
    LibraryName,
    LibraryVersion,
}

impl Text {
    fn named(word: &[u8]) -> Option<Self> {
        let texts = [
            ("ADDR", Self::Address),
            ("LADDR", Self::LocalAddress),
            ("IP", Self::Ip),
            ("NAME", Self::Name),
            ("LIB-NAME", Self::LibraryName),
            ("LIB-VER", Self::LibraryVersion),
        ];
        texts.iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes())).map(|(_, text)| *text)
    }

    fn is(self, client: &ClientShared, wanted: &[u8]) -> bool {
        // A name that was not set is none, not an empty one.
        let is_set_to = |text: &[u8]| !text.is_empty() && text == wanted;
        match self {
            Self::Address => client.address.remote.to_string().as_bytes() == wanted,
            Self::LocalAddress => client.address.local.to_string().as_bytes() == wanted,
            Self::Ip => match &client.address.remote {
                Address::Tcp(address) => address.ip().to_string().as_bytes() == wanted,
                Address::Unix(path) => path.as_bytes() == wanted,
            },
            Self::Name => is_set_to(&client.texts().name),
            Self::LibraryName => is_set_to(&client.texts().lib_name),
            Self::LibraryVersion => is_set_to(&client.texts().lib_ver),
        }
    }
}

impl Condition {
    fn applies_to(&self, client: &ClientShared, now_ms: i64) -> bool {
        match self {
            Self::Ids(ids) => ids.contains(&client.id),
            Self::AgeMin(seconds) => client.age_seconds(now_ms) >= *seconds,
            Self::IdleMin(seconds) => client.idle_seconds(now_ms) >= *seconds,
            Self::Type(wanted) => *wanted == ClientType::of(client),
            Self::Database(number) => client.database.load(Relaxed) == *number,
            Self::Flags(wanted) => {
                let has = flags(client);
                wanted.iter().all(|flag| has.as_bytes().contains(flag))
            }
            Self::Text(text, wanted) => text.is(client, wanted),
        }
    }

    fn is_same_kind(&self, other: &Self) -> bool {
        let same_text = |own: &Self| matches!((own, other), (Self::Text(a, _), Self::Text(b, _)) if a == b);
        match self {
            Self::Text(..) => same_text(self),
            Self::Ids(_) | Self::AgeMin(_) | Self::IdleMin(_) | Self::Type(_) | Self::Database(_) | Self::Flags(_) => {
                std::mem::discriminant(self) == std::mem::discriminant(other)
            }
        }
    }
}

/// All that is asked, each with whether the opposite is wanted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Filter {
    conditions: Vec<(bool, Condition)>,
    keeps_caller: bool,
    /// ID given again adds to the first; for Redis 8.2's CLIENT KILL it replaces it.
    collects_ids: bool,
}

impl Filter {
    /// The clients at this address, the caller too.
    pub(super) fn at_address(address: &[u8]) -> Self {
        let condition = Condition::Text(Text::Address, address.to_vec());
        Self { conditions: vec![(false, condition)], ..Self::default() }
    }

    /// The options of CLIENT LIST.
    pub(super) fn of_list(args: &Args<'_>, databases: usize) -> Result<Self, CommandError> {
        Self { collects_ids: true, ..Self::default() }.parse(args, databases)
    }

    /// The options of CLIENT KILL, which spares the caller unless SKIPME says otherwise.
    pub(super) fn of_kill(args: &Args<'_>, databases: usize) -> Result<Self, CommandError> {
        Self { keeps_caller: true, ..Self::default() }.parse(args, databases)
    }

    /// Reads the options from the third word on.
    fn parse(mut self, args: &Args<'_>, databases: usize) -> Result<Self, CommandError> {
        let mut index = 2;
        while index < args.len() {
            index = self.option(args, index, databases)?;
        }
        Ok(self)
    }

    /// Reads the option at `index`; where the next one is.
    fn option(&mut self, args: &Args<'_>, index: usize, databases: usize) -> Result<usize, CommandError> {
        let value = args.get(index + 1).ok_or(CommandError::Syntax)?;
        let word = args.at(index);
        let is_negated = word.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"NOT-"));
        let name = if is_negated { &word[4..] } else { word };
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted.as_bytes());
        if is("ID") {
            let ids = ids(args, index + 1, is_negated)?;
            let next = index + 1 + ids.len();
            self.add(is_negated, Condition::Ids(ids));
            return Ok(next);
        }
        if is("USER") {
            // There is one user: the filter leaves out nobody, or everybody.
            if value != b"default" {
                return Err(CommandError::repeats("ERR No such user '", value, "'"));
            }
            if is_negated {
                self.add(false, Condition::Ids(Vec::new()));
            }
        } else if is("TYPE") {
            let wanted = ClientType::parse(value).ok_or_else(|| unknown_type(value))?;
            self.add(is_negated, Condition::Type(wanted));
        } else if is("DB") {
            self.add(is_negated, Condition::Database(database(value, is_negated, databases)?));
        } else if is("FLAGS") {
            self.add(is_negated, Condition::Flags(known_flags(value, is_negated)?));
        } else if let Some(text) = Text::named(name) {
            self.add(is_negated, Condition::Text(text, value.to_vec()));
        } else {
            self.plain_option(args, index, value)?;
        }
        Ok(index + 2)
    }

    /// The options that have no opposite.
    fn plain_option(&mut self, args: &Args<'_>, index: usize, value: &[u8]) -> Result<(), CommandError> {
        if args.is(index, "MAXAGE") {
            let error = CommandError::Text("ERR maxage should be greater than 0");
            self.add(false, Condition::AgeMin(seconds(value, "maxage", error)?));
        } else if args.is(index, "IDLE") {
            let error = CommandError::Text("ERR idle should be greater than 0");
            self.add(false, Condition::IdleMin(seconds(value, "idle", error)?));
        } else if args.is(index, "SKIPME") {
            self.keeps_caller = match (args.is(index + 1, "YES"), args.is(index + 1, "NO")) {
                (true, _) => true,
                (_, true) => false,
                (false, false) => return Err(CommandError::Syntax),
            };
        } else {
            return Err(CommandError::Syntax);
        }
        Ok(())
    }

    fn add(&mut self, is_negated: bool, mut condition: Condition) {
        if let Condition::Ids(ids) = &mut condition
            && (is_negated || self.collects_ids)
        {
            for (negated, other) in &self.conditions {
                if let (Condition::Ids(others), true) = (other, *negated == is_negated) {
                    ids.extend(others);
                }
            }
        }
        self.conditions.retain(|(negated, other)| *negated != is_negated || !other.is_same_kind(&condition));
        self.conditions.push((is_negated, condition));
    }

    /// Whether a client is meant.
    pub(super) fn applies_to(&self, client: &ClientShared, caller: u64, now_ms: i64) -> bool {
        !(self.keeps_caller && client.id == caller)
            && self.conditions.iter().all(|(negated, condition)| condition.applies_to(client, now_ms) != *negated)
    }
}

/// One number at least, and those that follow it. A word that is none has Redis's error for ID, Valkey's for NOT-ID.
fn ids(args: &Args<'_>, from: usize, is_negated: bool) -> Result<Vec<u64>, CommandError> {
    let error = CommandError::Text("ERR client-id should be greater than 0");
    let no_number = if is_negated { CommandError::Syntax } else { error.clone() };
    let first = parse_i64(args.at(from)).ok_or(no_number)?;
    let others = args.from(from + 1).map_while(parse_i64);
    let all = std::iter::once(first).chain(others);
    all.map(|id| u64::try_from(id).ok().filter(|id| *id > 0).ok_or(error.clone())).collect()
}

fn seconds(value: &[u8], name: &'static str, too_small: CommandError) -> Result<i64, CommandError> {
    let seconds = parse_i64(value).ok_or(CommandError::ArgumentNotAnInteger(name))?;
    if seconds > 0 { Ok(seconds) } else { Err(too_small) }
}

fn database(value: &[u8], is_negated: bool, databases: usize) -> Result<u32, CommandError> {
    let name = if is_negated { "NOT-DB" } else { "DB" };
    let number = parse_i64(value).ok_or(CommandError::ArgumentNotAnInteger(name))?;
    let known = u32::try_from(number).ok().filter(|number| (*number as usize) < databases);
    let last = databases.saturating_sub(1);
    known.ok_or_else(|| CommandError::Owned(format!("ERR {name} number should be between 0 and {last}")))
}

fn known_flags(value: &[u8], is_negated: bool) -> Result<Vec<u8>, CommandError> {
    let before = if is_negated {
        "ERR Unknown flags found in the NOT-FLAGS filter: "
    } else {
        "ERR Unknown flags found in the provided filter: "
    };
    let all_known = value.iter().all(|flag| FLAGS.contains(flag));
    if all_known { Ok(value.to_vec()) } else { Err(CommandError::repeats(before, value, "")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simurgh_kernel::net::PeerAddress;
    use simurgh_protocol::resp::Range;

    fn parse(request: &str) -> Result<Filter, String> {
        let mut start = 0;
        let ranges: Vec<Range> = request
            .split(' ')
            .map(|word| {
                let range = Range { start, length: word.len() as u32 };
                start += word.len() as u32 + 1;
                range
            })
            .collect();
        Filter::of_kill(&Args::new(request.as_bytes(), &ranges), 16).map_err(|error| error.to_string())
    }

    /// Client 7 from 127.0.0.1:50000, in database 2, named `me`, connected for ten seconds and idle for five.
    fn client() -> ClientShared {
        let address = |text: &str| Address::Tcp(text.parse().expect("an address"));
        let address = PeerAddress { remote: address("127.0.0.1:50000"), local: address("127.0.0.1:6379") };
        let client = ClientShared::new(7, address, 1, 1_000);
        client.last_interaction_ms.store(6_000, Relaxed);
        client.database.store(2, Relaxed);
        client.texts().name = b"me".to_vec();
        client
    }

    #[test]
    fn a_client_must_meet_every_filter() {
        for (options, expected) in [
            ("ID 7", true),
            ("id 6 7 DB 2", true),
            ("ID 6", false),
            ("ID 6 ID 7", true),
            ("ID 7 ID 6", false),
            ("NOT-ID 7", false),
            ("NOT-ID 7 NOT-ID 6", false),
            ("MAXAGE 10 IDLE 5", true),
            ("MAXAGE 11", false),
            ("IDLE 6", false),
            ("TYPE normal USER default", true),
            ("TYPE replica", false),
            ("NOT-TYPE normal", false),
            ("NOT-USER default", false),
            ("DB 1", false),
            ("NOT-DB 1", true),
            ("FLAGS N", true),
            ("FLAGS Nx", false),
            ("NOT-FLAGS Nx", true),
            ("IP 127.0.0.1 ADDR 127.0.0.1:50000 LADDR 127.0.0.1:6379", true),
            ("IP 127.0.0.2", false),
            ("NAME me NOT-NAME you", true),
            ("LIB-NAME x", false),
            ("NOT-LIB-NAME x NOT-LIB-VER 1", true),
        ] {
            let filter = parse(&format!("CLIENT LIST {options}")).expect(options);
            assert_eq!(filter.applies_to(&client(), 1, 11_000), expected, "{options}");
        }
        assert!(!parse("CLIENT KILL ID 7").expect("options").applies_to(&client(), 7, 11_000));
        assert!(parse("CLIENT KILL ID 7 SkipMe no").expect("options").applies_to(&client(), 7, 11_000));
    }

    /// Redis 8.2.3 answered so, and Valkey 9.1.2 where Redis has no such filter.
    #[test]
    fn refusals() {
        for (options, expected) in [
            ("ID 0", "ERR client-id should be greater than 0"),
            ("ID 99999999999999999999", "ERR client-id should be greater than 0"),
            ("ID x", "ERR client-id should be greater than 0"),
            ("NOT-ID x", "ERR syntax error"),
            ("ID 7 TYPE", "ERR syntax error"),
            ("ID 7 FOO bar", "ERR syntax error"),
            ("TYPE foo", "ERR Unknown client type 'foo'"),
            ("USER nobody", "ERR No such user 'nobody'"),
            ("NOT-USER nobody", "ERR No such user 'nobody'"),
            ("MAXAGE x", "ERR maxage is not an integer or out of range"),
            ("MAXAGE 0", "ERR maxage should be greater than 0"),
            ("IDLE -1", "ERR idle should be greater than 0"),
            ("NOT-IDLE 1", "ERR syntax error"),
            ("SKIPME maybe", "ERR syntax error"),
            ("DB x", "ERR DB is not an integer or out of range"),
            ("NOT-DB x", "ERR NOT-DB is not an integer or out of range"),
            ("DB 16", "ERR DB number should be between 0 and 15"),
            ("FLAGS NQZ", "ERR Unknown flags found in the provided filter: NQZ"),
            ("NOT-FLAGS Q", "ERR Unknown flags found in the NOT-FLAGS filter: Q"),
        ] {
            assert_eq!(parse(&format!("CLIENT KILL {options}")), Err(expected.to_owned()), "{options}");
        }
    }
}
