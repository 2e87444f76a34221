//! Which words of a request are keys, and what the command does with them.
//!
//! Two ways lead there. Most commands have their keys at regular distances, and [`KeyRange::positions`] walks them without
//! looking at a word: the way of every request that must find its shards. [`keys`] follows the key specs, which also covers
//! the commands flagged `movablekeys` (a count or a keyword tells where the keys are) and says what is done with each key:
//! the way of `COMMAND GETKEYSANDFLAGS` and access control.

use super::flags::{CommandFlags, KeyFlags};
use super::spec::{BeginSearch, CommandSpec, FindKeys, KeyRange, KeySpec};
use super::{Command, DataCommand};
use crate::number::parse_i64;
use crate::resp::Args;

/// One key of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyPosition {
    /// Which word it is; the command's name is word 0.
    pub index: usize,
    /// What the command does with it.
    pub flags: KeyFlags,
}

/// The request contradicts its command's key specs, as a count of keys larger than the request. A request that is to run
/// is best given to its handler all the same, with all shards held: the handler has the better error text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("ERR Invalid arguments specified for command")]
pub struct InvalidKeys;

impl KeyRange {
    /// The words that are keys in a request of `count` words.
    #[inline]
    pub fn positions(self, count: usize) -> impl Iterator<Item = usize> + Clone {
        let first = usize::try_from(self.first).unwrap_or(0);
        let end = match usize::try_from(self.last) {
            Ok(last) => count.min(last + 1),
            Err(_) => (count + 1).saturating_sub(usize::from(self.last.unsigned_abs())),
        };
        let end = if first == 0 { 0 } else { end };
        (first..end).step_by(usize::try_from(self.step).unwrap_or(1).max(1))
    }
}

impl CommandSpec {
    /// Whether the command may have keys at all.
    pub fn has_keys(&self) -> bool {
        self.keys.iter().any(|spec| !spec.flags.contains(KeyFlags::NOT_KEY))
    }

    /// Whether [`CommandSpec::key_range`] tells where all the keys are.
    #[inline]
    pub fn has_key_range(&self) -> bool {
        !self.flags.contains(CommandFlags::MOVABLEKEYS)
    }
}

/// All keys of a request that has the right number of words, in the order of the key specs.
pub fn keys(spec: &CommandSpec, args: &Args<'_>) -> Result<Vec<KeyPosition>, InvalidKeys> {
    let mut found = Vec::new();
    each_key(spec, args, |key| found.push(key))?;
    Ok(found)
}

/// [`keys`], one by one. What came before an error are no keys.
pub fn each_key(spec: &CommandSpec, args: &Args<'_>, mut with: impl FnMut(KeyPosition)) -> Result<(), InvalidKeys> {
    for key_spec in spec.keys {
        if key_spec.flags.contains(KeyFlags::NOT_KEY) {
            continue;
        }
        let Some(begin) = begin(key_spec, args) else { continue };
        let flags = flags(spec, key_spec, args);
        let (first, last, step) = extent(key_spec, begin, args)?;
        if first < 1 || last < first || last >= count(args) {
            return Err(InvalidKeys);
        }
        let step = usize::try_from(step).map_err(|_| InvalidKeys)?.max(1);
        let words = (position(first)?..=position(last)?).step_by(step);
        words.for_each(|index| with(KeyPosition { index, flags }));
    }
    if spec.command == Some(Command::Data(DataCommand::Sort)) {
        let flags = KeyFlags::OW | KeyFlags::UPDATE;
        sort_destination(args).into_iter().for_each(|index| with(KeyPosition { index, flags }));
    }
    Ok(())
}

/// Where SORT stores: the key behind the last `STORE` that is not another option's value.
fn sort_destination(args: &Args<'_>) -> Option<usize> {
    let (mut found, mut index) = (None, 2);
    while index < args.len() {
        let width = match () {
            () if args.is(index, "LIMIT") => 3,
            () if args.is(index, "BY") || args.is(index, "GET") => 2,
            () if args.is(index, "STORE") && index + 1 < args.len() => {
                found = Some(index + 1);
                2
            }
            () => 1,
        };
        index += width;
    }
    found
}

fn count(args: &Args<'_>) -> i64 {
    i64::try_from(args.len()).unwrap_or(i64::MAX)
}

fn position(index: i64) -> Result<usize, InvalidKeys> {
    usize::try_from(index).map_err(|_| InvalidKeys)
}

/// The word at which the keys of the spec begin; `None` if its keyword is missing.
fn begin(spec: &KeySpec, args: &Args<'_>) -> Option<i64> {
    let (keyword, from) = match spec.begin {
        BeginSearch::Index(index) => return Some(i64::from(index)),
        BeginSearch::Keyword { keyword, from } => (keyword, from),
        BeginSearch::Unknown => return None,
    };
    let start = usize::try_from(from.unsigned_abs()).unwrap_or(usize::MAX);
    let found = if from >= 0 {
        (start..args.len()).find(|&index| args.is(index, keyword))
    } else {
        (1..(args.len() + 1).saturating_sub(start)).rev().find(|&index| args.is(index, keyword))
    };
    found.and_then(|index| i64::try_from(index + 1).ok())
}

/// First key, last key and the distance between two, for keys that begin at `begin`.
fn extent(spec: &KeySpec, begin: i64, args: &Args<'_>) -> Result<(i64, i64, i64), InvalidKeys> {
    match spec.find {
        FindKeys::Range { last, step, limit } => {
            let last = match (last, limit) {
                (0.., _) => begin + i64::from(last),
                (_, ..=1) => count(args) + i64::from(last),
                (_, limit) => begin + (count(args) - begin) / i64::from(limit) + i64::from(last),
            };
            Ok((begin, last, i64::from(step)))
        }
        FindKeys::Counted { count: at, first, step } => {
            let word = args.get(position(begin + i64::from(at))?).ok_or(InvalidKeys)?;
            let keys = parse_i64(word).filter(|keys| (1..=count(args)).contains(keys)).ok_or(InvalidKeys)?;
            let first = begin + i64::from(first);
            Ok((first, first + (keys - 1) * i64::from(step), i64::from(step)))
        }
        FindKeys::Unknown => Err(InvalidKeys),
    }
}

/// What is done with the keys of the spec, where the request has a say in it.
fn flags(spec: &CommandSpec, key_spec: &KeySpec, args: &Args<'_>) -> KeyFlags {
    let says = |words: &[&str], from: usize| {
        args.from(from).any(|word| words.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes())))
    };
    const CONDITIONS: [&str; 4] = ["IFEQ", "IFNE", "IFDEQ", "IFDNE"];
    if spec.command == Some(Command::Data(DataCommand::Set)) {
        let update = KeyFlags::UPDATE;
        return match (says(&["GET"], 3), says(&CONDITIONS, 3)) {
            (true, _) => update | KeyFlags::RW | KeyFlags::ACCESS,
            (false, true) => update | KeyFlags::RW,
            (false, false) => update | KeyFlags::OW,
        };
    }
    if spec.command == Some(Command::Data(DataCommand::Delex)) {
        return KeyFlags::DELETE | if says(&CONDITIONS, 2) { KeyFlags::RW } else { KeyFlags::RM };
    }
    if spec.command == Some(Command::Data(DataCommand::Bitfield)) {
        return if bitfield_reads(args) {
            KeyFlags::RO | KeyFlags::ACCESS
        } else {
            KeyFlags::RW | KeyFlags::ACCESS | KeyFlags::UPDATE
        };
    }
    key_spec.flags
}

/// Whether a BITFIELD only reads; one that makes no sense may do anything.
fn bitfield_reads(args: &Args<'_>) -> bool {
    let mut index = 2;
    while index < args.len() {
        let words = if args.is(index, "GET") {
            3
        } else if args.is(index, "OVERFLOW") {
            2
        } else {
            return false;
        };
        index += words;
        if index > args.len() {
            return false;
        }
    }
    true
}
